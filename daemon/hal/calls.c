/* SPDX-License-Identifier: Apache-2.0 */
/* The table is indexed by _IOC_NR; numbers that npu.h leaves free stay empty rows. */
#include "daemon/hal/calls.h"

#define ROW(call, type) \
	[_IOC_NR(NPU_IOCTL_##call)] = { #call, sizeof(struct type), NPU_IOCTL_##call, 0, 0 }
#define ROW_FDS(call, type, count, first)                                                    \
	[_IOC_NR(NPU_IOCTL_##call)] = { #call, sizeof(struct type), NPU_IOCTL_##call, count, \
					offsetof(struct type, first) }

static const struct hal_call calls[] = {
	ROW(VERSION, npu_version),
	ROW(DISCOVER, npu_discover),
	ROW(QUERY, npu_query),
	ROW(RESET, npu_reset),
	ROW(COUNTERS, npu_counters),
	ROW(ERROR_QUERY, npu_error_query),
	ROW(INJECT, npu_inject),
	ROW_FDS(SESSION_CREATE, npu_session_create, 4, fd_slab),
	ROW(SESSION_DESTROY, npu_session_destroy),
	ROW(OBJ_ENUM, npu_obj_enum),
	ROW_FDS(OBJ_FDS, npu_obj_fds, 4, fds),
	ROW(OBJ_TAG, npu_obj_tag),
	ROW(CTX_CREATE, npu_ctx_create),
	ROW(CTX_DESTROY, npu_ctx_destroy),
	ROW(CTX_SET, npu_ctx_set),
	ROW_FDS(MEM_ALLOC, npu_mem_alloc, 1, fd),
	ROW(MEM_FREE, npu_mem_free),
	ROW(MEM_MAP, npu_mem_map),
	ROW(MEM_UNMAP, npu_mem_unmap),
	ROW_FDS(MEM_EXPORT, npu_mem_export, 1, fd),
	ROW_FDS(MEM_IMPORT, npu_mem_import, 1, fd),
	ROW(HOST_REGISTER, npu_host_register),
	ROW(HOST_UNREGISTER, npu_host_unregister),
	ROW(MEM_QUERY, npu_mem_query),
	ROW(QUEUE_CREATE, npu_queue_create),
	ROW(QUEUE_DESTROY, npu_queue_destroy),
	ROW(QUEUE_CTRL, npu_queue_ctrl),
	ROW(SUBMIT, npu_submit),
	ROW(WAIT, npu_wait),
	ROW(MODULE_LOAD, npu_module_load),
	ROW(MODULE_UNLOAD, npu_module_unload),
	ROW(FUNC_LOOKUP, npu_func_lookup),
};

_Static_assert(offsetof(struct npu_session_create, fd_life) ==
		       offsetof(struct npu_session_create, fd_slab) + 3 * sizeof(__s32),
	       "the fd slots of SESSION_CREATE are neighbours");

const struct hal_call *hal_call_find(unsigned int nr)
{
	if (nr >= sizeof(calls) / sizeof(calls[0]) || !calls[nr].name)
		return NULL;
	return &calls[nr];
}

__s32 *hal_call_fds(const struct hal_call *call, void *arg)
{
	return call->fds ? (__s32 *)((char *)arg + call->fd_offset) : NULL;
}
