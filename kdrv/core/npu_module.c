/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * Modules: kernel images that an engine loaded. What the image says of itself is kept as the
 * claim it is: checked for form, bounded, in one block of {functions, parameter sizes, names}.
 */
#include "kdrv/core/npu_core_int.h"

struct npu_module *npu_module_find(struct npu_session *session, uint64_t id)
{
	return npu_table_find(&session->modules, id);
}

struct npu_module *npu_session_module(struct npu_session *session, uint32_t module)
{
	return npu_module_find(session, module);
}

struct npu_module *npu_session_module_next(struct npu_session *session, uint64_t *cursor)
{
	uint32_t slot = (uint32_t)*cursor;
	struct npu_module *module = npu_table_next(&session->modules, &slot);

	*cursor = (uint64_t)slot + 1;
	return module;
}

const char *npu_module_func_name(const struct npu_module *module, uint32_t func)
{
	return func < module->nfuncs ? module->names + module->funcs[func].name : NULL;
}

int npu_call_module_load(struct npu_call *call, void *arg)
{
	struct npu_module_load *load = arg;
	struct npu_session *session = call->session;
	struct npu_admin_cmd cmd = { .op = NPU_ADMIN_MODULE_LOAD, .session = session };
	struct npu_mem_handle *handle = npu_mem_find(session, load->mem);
	struct npu_module *module;
	int r;

	if (!handle)
		return -ENOENT;
	if (handle->mem->kind != NPU_MEM_IMAGE || !load->bytes)
		return -EINVAL;
	if (load->bytes > handle->mem->bytes)
		return -ERANGE;
	if (session->modules.count >= session->module_limit)
		return -EDQUOT;
	module = npu_alloc(call->core, sizeof(*module));
	if (!module)
		return -ENOMEM;
	npu_obj_init(&module->obj, NPU_OBJ_MODULE, load->user);
	module->session = session;
	module->mem = handle->mem;
	module->bytes = load->bytes;
	module->state = NPU_MODULE_LOADING;
	r = npu_table_insert(call->core, &session->modules, module, &module->obj.id);
	if (r < 0)
		goto free;
	cmd.load.module = module;
	cmd.load.bytes = load->bytes;
	r = npu_admin(call->core, &cmd);
	if (r < 0)
		goto remove;
	module->mem->holders++;
	load->module = (uint32_t)module->obj.id;
	return 0;
remove:
	npu_table_remove(&session->modules, module->obj.id);
free:
	npu_free(call->core, module, sizeof(*module));
	return r == -ENOSPC ? -EDQUOT : r;
}

void npu_module_drop(struct npu_module *module)
{
	struct npu_session *session = module->session;
	struct npu_core *core = session->core;
	struct npu_admin_cmd cmd = { .op = NPU_ADMIN_MODULE_DROP, .session = session };

	cmd.module = module;
	npu_table_remove(&session->modules, module->obj.id);
	npu_admin(core, &cmd);
	session->func_bytes -= module->block_bytes;
	npu_free(core, module->funcs, module->block_bytes);
	npu_mem_put(core, module->mem);
	npu_obj_fini(core, &module->obj);
	npu_free(core, module, sizeof(*module));
}

int npu_call_module_unload(struct npu_call *call, void *arg)
{
	struct npu_module_unload *unload = arg;
	struct npu_module *module = npu_module_find(call->session, unload->module);

	if (!module)
		return -ENOENT;
	npu_module_drop(module);
	return 0;
}

/* Bytes of the block, or 0 when a claim is malformed. */
static size_t npu_funcs_bytes(const struct npu_core_func *funcs, uint32_t count,
			      uint32_t *ret_sizes)
{
	size_t bytes = count * sizeof(struct npu_func), length;
	uint32_t i, sizes = 0;

	for (i = 0; i < count; i++) {
		length = npu_strnlen(funcs[i].name, NPU_NAME_MAX);
		if (!length || length == NPU_NAME_MAX || funcs[i].params > NPU_MAX_PARAMS)
			return 0;
		bytes += length + 1 + funcs[i].params * sizeof(uint32_t);
		sizes += funcs[i].params;
	}
	*ret_sizes = sizes;
	return bytes;
}

static int npu_module_keep(struct npu_module *module, const struct npu_core_func *funcs,
			   uint32_t count)
{
	struct npu_session *session = module->session;
	uint32_t i, sizes = 0, size_at = 0, name_at = 0, length;
	size_t bytes;

	if (!count || count > NPU_CORE_MAX_FUNCS)
		return -EINVAL;
	bytes = npu_funcs_bytes(funcs, count, &sizes);
	if (!bytes)
		return -EINVAL;
	if (session->func_bytes + bytes > NPU_CORE_FUNC_BYTES)
		return -EDQUOT;
	module->funcs = npu_alloc(session->core, bytes);
	if (!module->funcs)
		return -ENOMEM;
	module->sizes = (uint32_t *)(module->funcs + count);
	module->names = (char *)(module->sizes + sizes);
	module->block_bytes = bytes;
	session->func_bytes += bytes;
	for (i = 0; i < count; i++) {
		struct npu_func *func = &module->funcs[i];

		length = (uint32_t)npu_strnlen(funcs[i].name, NPU_NAME_MAX);
		func->name = name_at;
		func->sizes = size_at;
		func->args_size = funcs[i].args_size;
		func->params = funcs[i].params;
		npu_copy_text(module->names + name_at, length + 1, funcs[i].name, length);
		memcpy(module->sizes + size_at, funcs[i].param_sizes,
		       func->params * sizeof(uint32_t));
		name_at += length + 1;
		size_at += func->params;
	}
	module->nfuncs = count;
	return 0;
}

void npu_core_module_done(struct npu_core *core, struct npu_session *session, uint32_t module_id,
			  int32_t status, const struct npu_core_func *funcs, uint32_t count,
			  const char *text)
{
	struct npu_module *module;
	struct npu_event *event;

	npu_core_lock(core);
	module = session->dying ? NULL : npu_module_find(session, module_id);
	if (!module || module->state != NPU_MODULE_LOADING) {
		npu_core_unlock(core);
		return;
	}
	if (status == 0) {
		status = npu_module_keep(module, funcs, count);
		if (status < 0)
			text = status == -EINVAL ? "the image's list of kernels is malformed" :
						   "no room for the image's list of kernels";
	} else if (status > 0) {
		status = -EIO;
	}
	module->status = status;
	module->state = status < 0 ? NPU_MODULE_FAILED : NPU_MODULE_READY;
	event = npu_event_make(core, session->file, NPU_EVENT_MODULE, session->obj.id,
			       module->obj.id, module->obj.user);
	if (event) {
		event->status = status;
		event->module.funcs = module->nfuncs;
		if (status < 0)
			npu_copy_text(event->module.error, sizeof(event->module.error), text,
				      NPU_NAME_MAX);
		npu_event_post(core, session->file);
	}
	npu_core_unlock(core);
}

int npu_call_func_lookup(struct npu_call *call, void *arg)
{
	struct npu_func_lookup *lookup = arg;
	struct npu_module *module = npu_module_find(call->session, lookup->module);
	size_t length = npu_strnlen(lookup->name, NPU_NAME_MAX);
	const struct npu_func *func;
	uint32_t i = lookup->func;
	const char *name;

	if (!module)
		return -ENOENT;
	if (length == NPU_NAME_MAX)
		return -EINVAL;
	if (module->state == NPU_MODULE_LOADING)
		return -EAGAIN;
	if (module->state == NPU_MODULE_FAILED)
		return module->status;
	if (length) {
		for (i = 0; i < module->nfuncs; i++) {
			name = npu_module_func_name(module, i);
			if (npu_strnlen(name, NPU_NAME_MAX) == length &&
			    !memcmp(name, lookup->name, length))
				break;
		}
	}
	if (i >= module->nfuncs)
		return -ENOENT;
	func = &module->funcs[i];
	name = npu_module_func_name(module, i);
	lookup->func = i;
	lookup->args_size = func->args_size;
	lookup->params = func->params;
	npu_copy_text(lookup->name, sizeof(lookup->name), name, NPU_NAME_MAX);
	memset(lookup->param_sizes, 0, sizeof(lookup->param_sizes));
	memcpy(lookup->param_sizes, module->sizes + func->sizes, func->params * sizeof(uint32_t));
	return 0;
}
