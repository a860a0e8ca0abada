/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * The table of calls and the one function that enforces it: size, flags, reserved fields, session,
 * call number, in this order, before a handler sees anything. A new call: a row, a handler, a
 * test.
 */
#include "kdrv/core/npu_core_int.h"

#define NPU_ROW(NR, type, ...) \
	{ .nr = (NR), .size = sizeof(struct type), __VA_ARGS__ }
#define NPU_ZERO(type, field) \
	{ offsetof(struct type, field), sizeof(((struct type *)0)->field) }
#define NPU_MADE (NPU_ROW_SESSION | NPU_ROW_MUTATES | NPU_ROW_MAKES)
#define NPU_DROPPED (NPU_ROW_SESSION | NPU_ROW_MUTATES)
#define NPU_MEM_FLAGS \
	(NPU_MEM_HUGE_FIRST | NPU_MEM_HUGE_ONLY | NPU_MEM_CONTIGUOUS | NPU_MEM_POPULATE)
#define NPU_CTX_FLAGS (NPU_CTX_PRIORITY | NPU_CTX_WEIGHT | NPU_CTX_CORES | NPU_CTX_CLEAR_ERROR)

const struct npu_row npu_rows[] = {
	NPU_ROW(0x00, npu_version, .handler = npu_call_version),
	NPU_ROW(0x01, npu_discover, .handler = npu_call_discover,
		.zero = { NPU_ZERO(npu_discover, reserved) }),
	NPU_ROW(0x10, npu_query, .handler = npu_call_query,
		.zero = { NPU_ZERO(npu_query, reserved) }),
	NPU_ROW(0x11, npu_reset, .handler = npu_call_reset),
	NPU_ROW(0x12, npu_counters, .props = NPU_ROW_SESSION_OPT, .handler = npu_call_counters),
	NPU_ROW(0x13, npu_error_query, .props = NPU_ROW_SESSION_OPT,
		.handler = npu_call_error_query),
	NPU_ROW(0x14, npu_inject, .props = NPU_ROW_SESSION_OPT, .handler = npu_call_inject),
	NPU_ROW(0x20, npu_session_create, .props = NPU_ROW_MUTATES | NPU_ROW_MAKES,
		.handler = npu_call_session_create, .fds = npu_fds_session_create,
		.zero = { NPU_ZERO(npu_session_create, reserved0) }),
	NPU_ROW(0x21, npu_session_destroy, .props = NPU_DROPPED,
		.handler = npu_call_session_destroy),
	NPU_ROW(0x28, npu_obj_enum, .props = NPU_ROW_SESSION_OPT, .handler = npu_call_obj_enum,
		.zero = { NPU_ZERO(npu_obj_enum, reserved) }),
	NPU_ROW(0x29, npu_obj_fds, .props = NPU_ROW_SESSION, .handler = npu_call_obj_fds,
		.zero = { NPU_ZERO(npu_obj_fds, reserved) }),
	NPU_ROW(0x2a, npu_obj_tag, .flags_mask = NPU_TAG_SET, .props = NPU_ROW_SESSION,
		.handler = npu_call_obj_tag),
	NPU_ROW(0x30, npu_ctx_create, .props = NPU_MADE, .handler = npu_call_ctx_create,
		.zero = { NPU_ZERO(npu_ctx_create, reserved),
			  NPU_ZERO(npu_ctx_create, reserved1) }),
	NPU_ROW(0x31, npu_ctx_destroy, .props = NPU_DROPPED, .handler = npu_call_ctx_destroy,
		.zero = { NPU_ZERO(npu_ctx_destroy, reserved) }),
	NPU_ROW(0x32, npu_ctx_set, .flags_mask = NPU_CTX_FLAGS, .props = NPU_MADE,
		.handler = npu_call_ctx_set),
	NPU_ROW(0x40, npu_mem_alloc, .flags_mask = NPU_MEM_FLAGS, .props = NPU_MADE,
		.handler = npu_call_mem_alloc, .fds = npu_fds_mem_alloc,
		.zero = { NPU_ZERO(npu_mem_alloc, reserved),
			  NPU_ZERO(npu_mem_alloc, reserved1) }),
	NPU_ROW(0x41, npu_mem_free, .props = NPU_DROPPED, .handler = npu_call_mem_free),
	NPU_ROW(0x42, npu_mem_map, .flags_mask = NPU_MAP_READ_ONLY, .props = NPU_MADE,
		.handler = npu_call_mem_map),
	NPU_ROW(0x43, npu_mem_unmap, .props = NPU_DROPPED, .handler = npu_call_mem_unmap),
	NPU_ROW(0x44, npu_mem_export, .props = NPU_MADE, .handler = npu_call_mem_export,
		.fds = npu_fds_mem_export, .zero = { NPU_ZERO(npu_mem_export, reserved) }),
	NPU_ROW(0x45, npu_mem_import, .props = NPU_MADE, .handler = npu_call_mem_import,
		.fds = npu_fds_mem_import, .zero = { NPU_ZERO(npu_mem_import, reserved) }),
	NPU_ROW(0x46, npu_host_register, .props = NPU_MADE, .handler = npu_call_host_register),
	NPU_ROW(0x47, npu_host_unregister, .props = NPU_DROPPED,
		.handler = npu_call_host_unregister),
	NPU_ROW(0x48, npu_mem_query, .props = NPU_ROW_SESSION, .handler = npu_call_mem_query),
	NPU_ROW(0x50, npu_queue_create, .props = NPU_MADE, .handler = npu_call_queue_create),
	NPU_ROW(0x51, npu_queue_destroy, .props = NPU_DROPPED, .handler = npu_call_queue_destroy,
		.zero = { NPU_ZERO(npu_queue_destroy, reserved) }),
	NPU_ROW(0x52, npu_queue_ctrl, .props = NPU_MADE, .handler = npu_call_queue_ctrl),
	NPU_ROW(0x53, npu_submit, .props = NPU_ROW_SESSION | NPU_ROW_MAKES,
		.handler = npu_call_submit),
	NPU_ROW(0x54, npu_wait, .flags_mask = NPU_WAIT_ARM, .props = NPU_ROW_SESSION,
		.handler = npu_call_wait, .zero = { NPU_ZERO(npu_wait, reserved) }),
	NPU_ROW(0x60, npu_module_load, .props = NPU_MADE, .handler = npu_call_module_load,
		.zero = { NPU_ZERO(npu_module_load, reserved) }),
	NPU_ROW(0x61, npu_module_unload, .props = NPU_DROPPED, .handler = npu_call_module_unload,
		.zero = { NPU_ZERO(npu_module_unload, reserved) }),
	NPU_ROW(0x62, npu_func_lookup, .props = NPU_ROW_SESSION, .handler = npu_call_func_lookup),
};
const uint32_t npu_rows_count = NPU_ARRAY_SIZE(npu_rows);

NPU_STATIC_ASSERT(sizeof(struct npu_session_create) - sizeof(struct npu_head) <= NPU_CALL_STORED,
		  "npu_session_create, the largest of the mutating structs, fits a stored result");
NPU_STATIC_ASSERT(sizeof(struct npu_mem_alloc) <= sizeof(struct npu_session_create), "order");
NPU_STATIC_ASSERT(sizeof(struct npu_mem_import) <= sizeof(struct npu_session_create), "order");
NPU_STATIC_ASSERT(sizeof(struct npu_queue_create) <= sizeof(struct npu_session_create), "order");

const struct npu_row *npu_row_find(unsigned int nr)
{
	uint32_t i;

	for (i = 0; i < npu_rows_count; i++) {
		if (npu_rows[i].nr == nr)
			return &npu_rows[i];
	}
	return NULL;
}

static bool npu_is_zero(const uint8_t *bytes, uint32_t size)
{
	uint32_t i;

	for (i = 0; i < size; i++) {
		if (bytes[i])
			return false;
	}
	return true;
}

static int npu_call_check(const struct npu_row *row, const void *arg, uint32_t size)
{
	const struct npu_head *head = arg;
	const uint8_t *bytes = arg;
	uint32_t i;

	if (size < row->size || head->size != size)
		return -EINVAL;
	if (!npu_is_zero(bytes + row->size, size - row->size))
		return -E2BIG;
	if (head->flags & ~row->flags_mask)
		return -EINVAL;
	for (i = 0; i < NPU_ARRAY_SIZE(row->zero) && row->zero[i].bytes; i++) {
		if (!npu_is_zero(bytes + row->zero[i].offset, row->zero[i].bytes))
			return -EINVAL;
	}
	if (!(row->props & NPU_ROW_MUTATES) != !head->call)
		return -EINVAL;
	if (!(row->props & (NPU_ROW_SESSION | NPU_ROW_SESSION_OPT)) && head->session)
		return -EINVAL;
	return 0;
}

/* A session that was destroyed by this very call. */
static bool npu_call_was_destroy(const struct npu_call *call, const struct npu_row *row,
				 const struct npu_head *head)
{
	uint32_t i;

	if (row->handler != npu_call_session_destroy || !head->session)
		return false;
	for (i = 0; i < NPU_CALL_WINDOW; i++) {
		if (call->core->tombs[i].session == head->session &&
		    call->core->tombs[i].call == head->call)
			return true;
	}
	return false;
}

static int npu_call_session(struct npu_call *call, const struct npu_row *row,
			    const struct npu_head *head)
{
	struct npu_session *session;

	if (!(row->props & NPU_ROW_SESSION) && !head->session)
		return 0;
	session = npu_table_find(&call->core->sessions, head->session);
	if (!session)
		return -ENOENT;
	if (!session->file) {
		session->file = call->file;
		npu_log(call->core, NPU_LOG_INFO, session->obj.id, "orphaned session adopted");
	} else if (session->file != call->file) {
		return -EBUSY;
	}
	call->session = session;
	return 0;
}

static int npu_call_run(struct npu_call *call, const struct npu_row *row, void *arg)
{
	struct npu_core *core = call->core;
	struct npu_head *head = arg;
	struct npu_call_window *window = NULL;
	uint64_t hash = 0, session = head->session, number = head->call;
	bool destroy = row->handler == npu_call_session_destroy;
	int r, result;

	if (npu_call_was_destroy(call, row, head))
		return 0;
	r = npu_call_session(call, row, head);
	if (r < 0)
		return r;
	if (row->props & NPU_ROW_MUTATES) {
		window = call->session ? &call->session->window : &call->file->window;
		hash = npu_window_hash(row, arg);
		r = npu_window_replay(window, row, hash, arg, &result);
		if (r < 0)
			return r;
		if (r > 0) {
			r = result == 0 && row->fds ? row->fds(call, arg) : 0;
			return r < 0 ? r : result;
		}
	}
	if (row->props & NPU_ROW_MAKES) {
		if (core->health == NPU_HEALTH_LOST)
			result = -ENODEV;
		else if (call->session && call->session->lost)
			result = -EIO;
		else
			result = row->handler(call, arg);
	} else {
		result = row->handler(call, arg);
	}
	if (destroy) {
		/* the window went with the session */
		core->tombs[core->tomb_next].session = session;
		core->tombs[core->tomb_next].call = number;
		core->tomb_next = (core->tomb_next + 1) % NPU_CALL_WINDOW;
	} else if (window) {
		npu_window_store(window, row, number, hash, arg, result);
	}
	return result;
}

int npu_core_call(struct npu_core *core, struct npu_core_file *file, unsigned int nr, void *buffer,
		  uint32_t size, void *call_cookie)
{
	struct npu_call call = { .core = core, .file = file, .cookie = call_cookie };
	const struct npu_row *row = npu_row_find(nr);
	int r;

	if (!row)
		return -EOPNOTSUPP;
	if (size > NPU_CALL_MAX)
		return -E2BIG;
	r = npu_call_check(row, buffer, size);
	if (r < 0)
		return r;
	npu_core_lock(core);
	r = npu_call_run(&call, row, buffer);
	npu_core_unlock(core);
	return r;
}
