/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * Memory objects and the handles that hold them. Charged first, then made; the object ends with its
 * last holder, its pages when the backend is through with them.
 */
#include "kdrv/core/npu_core_int.h"

struct npu_mem_handle *npu_mem_find(struct npu_session *session, uint64_t id)
{
	return npu_table_find(&session->mems, id);
}

static int npu_mem_charge(struct npu_session *session, uint32_t kind, uint64_t bytes)
{
	struct npu_core *core = session->core;
	uint64_t used;

	if (kind == NPU_MEM_DEVICE) {
		if (npu_add_overflow(session->mem_used, bytes, &used) ||
		    used > session->memory_limit)
			return -EDQUOT;
		session->mem_used = used;
		if (used > session->mem_peak)
			session->mem_peak = used;
		core->mem_used += bytes;
		if (core->mem_used > core->mem_peak)
			core->mem_peak = core->mem_used;
		return 0;
	}
	if (npu_add_overflow(session->host_used, bytes, &used) || used > session->host_limit)
		return -EDQUOT;
	if (core->config.host_bytes && (bytes > core->config.host_bytes ||
					core->host_used > core->config.host_bytes - bytes))
		return -ENOMEM;
	session->host_used = used;
	core->host_used += bytes;
	return 0;
}

void npu_mem_disown(struct npu_mem *mem)
{
	if (!mem->owner)
		return;
	if (mem->kind == NPU_MEM_DEVICE)
		mem->owner->mem_used -= mem->bytes;
	else
		mem->owner->host_used -= mem->bytes;
	mem->owner = NULL;
	npu_list_del(&mem->owned);
}

void npu_mem_finish(struct npu_core *core, struct npu_mem *mem)
{
	npu_list_del(&mem->link);
	if (mem->kind == NPU_MEM_DEVICE)
		core->mem_used -= mem->bytes;
	else
		core->host_used -= mem->bytes;
	npu_pages_free(&core->pages, mem->runs, mem->nruns);
	npu_free(core, mem, sizeof(*mem));
}

void npu_mem_put(struct npu_core *core, struct npu_mem *mem)
{
	struct npu_admin_cmd cmd = { .op = NPU_ADMIN_MEM_DESTROY, .mem = mem };

	if (--mem->holders)
		return;
	npu_mem_unexport(mem);
	npu_mem_disown(mem);
	mem->dying = true;
	if (npu_admin(core, &cmd) == NPU_ADMIN_PENDING) {
		npu_list_del(&mem->link);
		npu_list_add(&core->dying_mems, &mem->link);
	} else {
		npu_mem_finish(core, mem);
	}
}

void npu_core_mem_gone(struct npu_core *core, struct npu_mem *mem)
{
	npu_core_lock(core);
	npu_mem_finish(core, mem);
	npu_core_unlock(core);
}

int npu_mem_handle_new(struct npu_session *session, struct npu_mem *mem, uint64_t user,
		       bool imported, struct npu_mem_handle **ret_handle)
{
	struct npu_mem_handle *handle = npu_alloc(session->core, sizeof(*handle));
	int r;

	if (!handle)
		return -ENOMEM;
	npu_obj_init(&handle->obj, NPU_OBJ_MEMORY, user);
	npu_list_init(&handle->maps);
	handle->session = session;
	handle->mem = mem;
	handle->imported = imported;
	r = npu_table_insert(session->core, &session->mems, handle, &handle->obj.id);
	if (r < 0) {
		npu_free(session->core, handle, sizeof(*handle));
		return r == -ENOSPC ? -EDQUOT : r;
	}
	mem->holders++;
	mem->imports += imported;
	*ret_handle = handle;
	return 0;
}

void npu_mem_handle_drop(struct npu_mem_handle *handle)
{
	struct npu_session *session = handle->session;
	struct npu_core *core = session->core;
	struct npu_mem *mem = handle->mem;

	while (!npu_list_empty(&handle->maps))
		npu_map_drop(npu_container_of(handle->maps.next, struct npu_map, link));
	npu_table_remove(&session->mems, handle->obj.id);
	mem->imports -= handle->imported;
	if (!handle->imported)
		npu_mem_unexport(mem);
	npu_obj_fini(core, &handle->obj);
	npu_free(core, handle, sizeof(*handle));
	npu_mem_put(core, mem);
}

int npu_mem_fd(struct npu_call *call, struct npu_mem *mem, int32_t *ret_fd)
{
	const struct npu_shim *shim = &call->core->shim;

	if (mem->kind == NPU_MEM_DEVICE && !(call->core->config.caps & NPU_CAP_HOST_VISIBLE)) {
		*ret_fd = -1;
		return 0;
	}
	return shim->fd_get(shim->dev, call->cookie, NPU_FD_MEM, NULL, mem, ret_fd);
}

/* The object, held once by the caller, charged. */
static int npu_mem_new(struct npu_session *session, uint32_t kind, uint32_t flags, uint64_t bytes,
		       struct npu_mem **ret_mem)
{
	struct npu_core *core = session->core;
	struct npu_admin_cmd cmd = { .op = NPU_ADMIN_MEM_CREATE, .session = session };
	struct npu_mem *mem;
	int r;

	r = npu_mem_charge(session, kind, bytes);
	if (r < 0)
		return r;
	mem = npu_alloc(core, sizeof(*mem));
	if (!mem) {
		r = -ENOMEM;
		goto uncharge;
	}
	mem->kind = kind;
	mem->flags = flags;
	mem->bytes = bytes;
	mem->page = NPU_PAGE_SMALL;
	if (kind == NPU_MEM_DEVICE) {
		r = bytes / NPU_PAGE_SMALL > core->pages.nfree ?
			    -ENOSPC :
			    npu_pages_alloc(&core->pages, (uint32_t)(bytes / NPU_PAGE_SMALL),
					    flags, &mem->runs, &mem->nruns, &mem->page);
		if (r < 0)
			goto free;
	}
	mem->owner = session;
	mem->id = ++core->mem_seq;
	mem->holders = 1;
	npu_list_init(&mem->hash);
	cmd.mem = mem;
	r = npu_admin(core, &cmd);
	if (r < 0)
		goto pages;
	npu_list_add(&core->mems, &mem->link);
	npu_list_add(&session->owned, &mem->owned);
	*ret_mem = mem;
	return 0;
pages:
	npu_pages_free(&core->pages, mem->runs, mem->nruns);
free:
	npu_free(core, mem, sizeof(*mem));
uncharge:
	if (kind == NPU_MEM_DEVICE) {
		session->mem_used -= bytes;
		core->mem_used -= bytes;
	} else {
		session->host_used -= bytes;
		core->host_used -= bytes;
	}
	return r;
}

static int npu_mem_alloc_check(const struct npu_mem_alloc *alloc, uint64_t *ret_bytes)
{
	uint32_t flags = alloc->head.flags;
	uint64_t page = flags & NPU_MEM_HUGE_ONLY ? NPU_PAGE_LARGE : NPU_PAGE_SMALL, bytes;

	if (alloc->kind < NPU_MEM_DEVICE || alloc->kind > NPU_MEM_IMAGE || !alloc->bytes)
		return -EINVAL;
	if ((flags & NPU_MEM_HUGE_FIRST) && (flags & NPU_MEM_HUGE_ONLY))
		return -EINVAL;
	if (alloc->kind != NPU_MEM_DEVICE && (flags & (NPU_MEM_HUGE_ONLY | NPU_MEM_CONTIGUOUS)))
		return -EINVAL;
	if (npu_add_overflow(alloc->bytes, page - 1, &bytes))
		return alloc->kind == NPU_MEM_DEVICE ? -ENOSPC : -ENOMEM;
	*ret_bytes = bytes & ~(page - 1);
	return 0;
}

int npu_call_mem_alloc(struct npu_call *call, void *arg)
{
	struct npu_mem_alloc *alloc = arg;
	struct npu_mem_handle *handle;
	struct npu_mem *mem = NULL;
	uint64_t bytes = 0;
	int r;

	alloc->largest = 0;
	r = npu_mem_alloc_check(alloc, &bytes);
	if (r == 0)
		r = npu_mem_new(call->session, alloc->kind, alloc->head.flags, bytes, &mem);
	if (r < 0) {
		if (r == -ENOSPC)
			alloc->largest = npu_pages_largest(&call->core->pages) * NPU_PAGE_SMALL;
		return r;
	}
	r = npu_mem_handle_new(call->session, mem, alloc->user, false, &handle);
	if (r == 0) {
		r = npu_mem_fd(call, mem, &alloc->fd);
		if (r < 0)
			npu_mem_handle_drop(handle);
	}
	if (r == 0) {
		alloc->bytes = mem->bytes;
		alloc->mem = handle->obj.id;
		alloc->page = mem->page;
	}
	npu_mem_put(call->core, mem);
	return r;
}

int npu_fds_mem_alloc(struct npu_call *call, void *arg)
{
	struct npu_mem_alloc *alloc = arg;
	struct npu_mem_handle *handle = npu_mem_find(call->session, alloc->mem);

	alloc->fd = -1;
	return handle ? npu_mem_fd(call, handle->mem, &alloc->fd) : 0;
}

int npu_call_mem_free(struct npu_call *call, void *arg)
{
	struct npu_mem_free *release = arg;
	struct npu_mem_handle *handle = npu_mem_find(call->session, release->mem);

	if (!handle)
		return -ENOENT;
	npu_mem_handle_drop(handle);
	return 0;
}

int npu_call_mem_query(struct npu_call *call, void *arg)
{
	struct npu_mem_query *query = arg;
	struct npu_mem_handle *handle = npu_mem_find(call->session, query->mem);

	if (!handle)
		return -ENOENT;
	query->kind = handle->mem->kind;
	query->maps = handle->mem->maps;
	query->bytes = handle->mem->bytes;
	query->page = handle->mem->page;
	query->imports = handle->mem->imports;
	return 0;
}
