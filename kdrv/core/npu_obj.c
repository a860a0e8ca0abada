/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * What a daemon that starts anew needs to find its way: which objects there are, what it once noted
 * about them, and their fds.
 *
 * An OBJ_ENUM cursor is the place of the next object: type << 56 | session slot << 32 | index,
 * where the index is a table slot, a context id, or the page number of a map in the window.
 */
#include "kdrv/core/npu_core_int.h"

#define NPU_CURSOR(type, slot, index) ((uint64_t)(type) << 56 | (uint64_t)(slot) << 32 | (index))

/* The first object of a type at or after *index, which becomes its own; NULL: no more. */
static void *npu_obj_next(struct npu_session *session, uint32_t type, uint32_t *index)
{
	struct npu_map *map;
	uint64_t cursor;
	void *object;

	switch (type) {
	case NPU_OBJ_SESSION:
		return *index == 0 ? session : NULL;
	case NPU_OBJ_CONTEXT:
		cursor = *index ? *index - 1 : 0;
		object = npu_session_ctx_next(session, &cursor);
		*index = (uint32_t)cursor;
		return object;
	case NPU_OBJ_MEMORY:
		return npu_table_next(&session->mems, index);
	case NPU_OBJ_QUEUE:
		return npu_table_next(&session->queues, index);
	case NPU_OBJ_MODULE:
		return npu_table_next(&session->modules, index);
	default:
		map = npu_map_from(session, NPU_WINDOW_BASE + *index * NPU_PAGE_SMALL);
		if (map)
			*index = (uint32_t)((map->address - NPU_WINDOW_BASE) / NPU_PAGE_SMALL);
		return map;
	}
}

static void npu_obj_describe(struct npu_session *session, uint32_t type, const void *object,
			     struct npu_object *out)
{
	const struct npu_obj *obj = NULL;

	memset(out, 0, sizeof(*out));
	switch (type) {
	case NPU_OBJ_SESSION:
		obj = &session->obj;
		out->bytes = session->window.newest;
		out->arg = (uint64_t)session->pid << 32 | session->uid;
		break;
	case NPU_OBJ_CONTEXT:
		obj = &((const struct npu_ctx *)object)->obj;
		out->arg = ((const struct npu_ctx *)object)->priority;
		break;
	case NPU_OBJ_MEMORY:
		obj = &((const struct npu_mem_handle *)object)->obj;
		out->bytes = ((const struct npu_mem_handle *)object)->mem->bytes;
		out->arg = ((const struct npu_mem_handle *)object)->mem->kind;
		break;
	case NPU_OBJ_QUEUE:
		obj = &((const struct npu_queue *)object)->obj;
		out->parent = (uint32_t)((const struct npu_queue *)object)->ctx->obj.id;
		out->arg = ((const struct npu_queue *)object)->slot;
		break;
	case NPU_OBJ_MODULE:
		obj = &((const struct npu_module *)object)->obj;
		out->bytes = ((const struct npu_module *)object)->bytes;
		break;
	default:
		obj = &((const struct npu_map *)object)->obj;
		out->parent = (uint32_t)((const struct npu_map *)object)->handle->obj.id;
		out->bytes = ((const struct npu_map *)object)->bytes;
		out->arg = ((const struct npu_map *)object)->generation;
		break;
	}
	out->type = type;
	out->session = session->obj.id;
	out->id = obj->id;
	out->user = obj->user;
}

/* The session to look at next: the one asked for, or the first in a slot >= *slot. */
static struct npu_session *npu_enum_session(struct npu_call *call, uint32_t *slot)
{
	uint32_t own;

	if (!call->session)
		return npu_table_next(&call->core->sessions, slot);
	own = npu_table_slot_of(&call->core->sessions, call->session->obj.id);
	if (*slot > own)
		return NULL;
	*slot = own;
	return call->session;
}

int npu_call_obj_enum(struct npu_call *call, void *arg)
{
	struct npu_obj_enum *list = arg;
	uint32_t type = (uint32_t)(list->cursor >> 56);
	uint32_t slot = (uint32_t)(list->cursor >> 32) & 0xffffff;
	uint32_t index = (uint32_t)list->cursor;
	struct npu_session *session;
	void *object;

	if (!list->cursor)
		type = NPU_OBJ_SESSION;
	if (type < NPU_OBJ_SESSION || type > NPU_OBJ_MAP)
		return -EINVAL;
	list->count = 0;
	for (; type <= NPU_OBJ_MAP; type++, slot = 0, index = 0) {
		for (; (session = npu_enum_session(call, &slot)); slot++, index = 0) {
			for (; (object = npu_obj_next(session, type, &index)); index++) {
				if (list->count == NPU_ENUM_MAX) {
					list->cursor = NPU_CURSOR(type, slot, index);
					return 0;
				}
				npu_obj_describe(session, type, object,
						 &list->objects[list->count++]);
			}
		}
	}
	list->cursor = 0;
	return 0;
}

int npu_call_obj_fds(struct npu_call *call, void *arg)
{
	struct npu_obj_fds *fds = arg;
	struct npu_mem_handle *handle;
	int32_t out[4] = { -1, -1, -1, -1 };
	int r;

	switch (fds->type) {
	case NPU_OBJ_SESSION:
		if (fds->id != call->session->obj.id)
			return -ENOENT;
		r = npu_session_fds(call, call->session, out);
		break;
	case NPU_OBJ_MEMORY:
		handle = npu_mem_find(call->session, fds->id);
		if (!handle)
			return -ENOENT;
		r = npu_mem_fd(call, handle->mem, &out[0]);
		break;
	default:
		return -EINVAL;
	}
	if (r < 0)
		return r;
	memcpy(fds->fds, out, sizeof(out));
	return 0;
}

static struct npu_obj *npu_obj_find(struct npu_session *session, uint32_t type, uint64_t id)
{
	struct npu_mem_handle *handle;
	struct npu_module *module;
	struct npu_queue *queue;
	struct npu_map *map;
	struct npu_ctx *ctx;

	switch (type) {
	case NPU_OBJ_SESSION:
		return id == session->obj.id ? &session->obj : NULL;
	case NPU_OBJ_CONTEXT:
		ctx = npu_ctx_find(session, id);
		return ctx ? &ctx->obj : NULL;
	case NPU_OBJ_MEMORY:
		handle = npu_mem_find(session, id);
		return handle ? &handle->obj : NULL;
	case NPU_OBJ_QUEUE:
		queue = npu_queue_find(session, id);
		return queue ? &queue->obj : NULL;
	case NPU_OBJ_MODULE:
		module = npu_module_find(session, id);
		return module ? &module->obj : NULL;
	default:
		map = npu_session_map_find(session, id);
		return map ? &map->obj : NULL;
	}
}

static int npu_obj_tag_set(struct npu_core *core, struct npu_obj *obj,
			   const struct npu_obj_tag *tag)
{
	uint8_t *copy = NULL;

	if (tag->bytes > NPU_TAG_MAX)
		return -EINVAL;
	if (tag->bytes) {
		copy = npu_alloc(core, tag->bytes);
		if (!copy)
			return -ENOMEM;
		memcpy(copy, tag->tag, tag->bytes);
	}
	npu_obj_fini(core, obj);
	obj->tag = copy;
	obj->tag_bytes = tag->bytes;
	return 0;
}

int npu_call_obj_tag(struct npu_call *call, void *arg)
{
	struct npu_obj_tag *tag = arg;
	struct npu_obj *obj;

	if (tag->type < NPU_OBJ_SESSION || tag->type > NPU_OBJ_MAP)
		return -EINVAL;
	obj = npu_obj_find(call->session, tag->type, tag->id);
	if (!obj)
		return -ENOENT;
	if (tag->head.flags & NPU_TAG_SET)
		return npu_obj_tag_set(call->core, obj, tag);
	memset(tag->tag, 0, sizeof(tag->tag));
	if (obj->tag_bytes)
		memcpy(tag->tag, obj->tag, obj->tag_bytes);
	tag->bytes = obj->tag_bytes;
	return 0;
}
