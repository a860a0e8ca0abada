/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * Memory known to other sessions. A token is 128 random bits; who knows it may import. It ends with
 * the handle that the memory was made with; what was imported until then stays.
 */
#include "kdrv/core/npu_core_int.h"

static struct npu_list *npu_export_bucket(struct npu_core *core, const uint64_t token[2])
{
	return &core->exports[token[0] % NPU_EXPORT_BUCKETS];
}

void npu_mem_unexport(struct npu_mem *mem)
{
	if (!mem->exported)
		return;
	mem->exported = false;
	npu_list_del(&mem->hash);
}

static int npu_export_fd(struct npu_call *call, struct npu_mem *mem, int32_t *ret_fd)
{
	const struct npu_shim *shim = &call->core->shim;

	if (!(call->core->config.caps & NPU_CAP_PEER)) {
		*ret_fd = -1;
		return 0;
	}
	return shim->fd_get(shim->dev, call->cookie, NPU_FD_EXPORT, NULL, mem, ret_fd);
}

int npu_call_mem_export(struct npu_call *call, void *arg)
{
	struct npu_mem_export *export = arg;
	struct npu_mem_handle *handle = npu_mem_find(call->session, export->mem);
	struct npu_mem *mem;
	int r;

	if (!handle)
		return -ENOENT;
	if (handle->imported)
		return -EPERM;
	mem = handle->mem;
	if (mem->kind == NPU_MEM_IMAGE)
		return -EINVAL;
	r = npu_export_fd(call, mem, &export->fd);
	if (r < 0)
		return r;
	if (!mem->exported) {
		r = npu_random(call->core, mem->token, sizeof(mem->token));
		if (r < 0)
			return r;
		mem->exported = true;
		npu_list_add(npu_export_bucket(call->core, mem->token), &mem->hash);
	}
	export->token[0] = mem->token[0];
	export->token[1] = mem->token[1];
	return 0;
}

int npu_fds_mem_export(struct npu_call *call, void *arg)
{
	struct npu_mem_export *export = arg;
	struct npu_mem_handle *handle = npu_mem_find(call->session, export->mem);

	export->fd = -1;
	return handle ? npu_export_fd(call, handle->mem, &export->fd) : 0;
}

int npu_call_mem_import(struct npu_call *call, void *arg)
{
	struct npu_mem_import *import = arg;
	const uint64_t token[2] = { import->token[0], import->token[1] };
	struct npu_list *bucket = npu_export_bucket(call->core, token), *link;
	struct npu_mem_handle *handle;
	struct npu_mem *mem = NULL;
	int r;

	for (link = bucket->next; link != bucket; link = link->next) {
		mem = npu_container_of(link, struct npu_mem, hash);
		if (mem->token[0] == token[0] && mem->token[1] == token[1])
			break;
	}
	if (link == bucket)
		return -ENOENT;
	r = npu_mem_handle_new(call->session, mem, import->user, true, &handle);
	if (r < 0)
		return r;
	r = npu_mem_fd(call, mem, &import->fd);
	if (r < 0) {
		npu_mem_handle_drop(handle);
		return r;
	}
	import->mem = handle->obj.id;
	import->bytes = mem->bytes;
	return 0;
}

int npu_fds_mem_import(struct npu_call *call, void *arg)
{
	struct npu_mem_import *import = arg;
	struct npu_mem_handle *handle = npu_mem_find(call->session, import->mem);

	import->fd = -1;
	return handle ? npu_mem_fd(call, handle->mem, &import->fd) : 0;
}
