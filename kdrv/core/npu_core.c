/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * A device as a whole: its birth and end, the files opened on it, and the small helpers that all of
 * kdrv/core uses.
 */
#include "kdrv/core/npu_core_int.h"

#define NPU_CORE_SESSIONS 1024u
#define NPU_CORE_SESSIONS_MAX (1u << 20)

void *npu_alloc(struct npu_core *core, size_t bytes)
{
	return core->shim.alloc(core->shim.dev, bytes);
}

void *npu_alloc_array(struct npu_core *core, size_t count, size_t size)
{
	size_t bytes;

	if (npu_mul_overflow(count, size, &bytes))
		return NULL;
	return npu_alloc(core, bytes);
}

void npu_free(struct npu_core *core, void *ptr, size_t bytes)
{
	if (ptr)
		core->shim.free(core->shim.dev, ptr, bytes);
}

void npu_log(struct npu_core *core, enum npu_log_level level, uint64_t session, const char *text)
{
	if (core->shim.log)
		core->shim.log(core->shim.dev, level, session, text);
}

uint64_t npu_now(struct npu_core *core)
{
	return core->shim.now_ns(core->shim.dev);
}

int npu_random(struct npu_core *core, void *ret_bytes, size_t bytes)
{
	return core->shim.random(core->shim.dev, ret_bytes, bytes);
}

int npu_admin(struct npu_core *core, struct npu_admin_cmd *cmd)
{
	return core->shim.admin(core->shim.dev, cmd);
}

void npu_copy_text(char *dst, size_t size, const char *src, size_t max)
{
	size_t i, n = src ? npu_strnlen(src, max) : 0;

	if (n > size - 1)
		n = size - 1;
	for (i = 0; i < n; i++)
		dst[i] = src[i] >= ' ' && src[i] <= '~' ? src[i] : '?';
	memset(dst + n, 0, size - n);
}

void npu_obj_init(struct npu_obj *obj, enum npu_object_type type, uint64_t user)
{
	obj->type = type;
	obj->user = user;
}

void npu_obj_fini(struct npu_core *core, struct npu_obj *obj)
{
	npu_free(core, obj->tag, obj->tag_bytes);
	obj->tag = NULL;
	obj->tag_bytes = 0;
}

void npu_core_lock(struct npu_core *core)
{
	if (core->shim.lock)
		core->shim.lock(core->shim.dev);
}

void npu_core_unlock(struct npu_core *core)
{
	if (core->shim.unlock)
		core->shim.unlock(core->shim.dev);
}

static int npu_core_setup(struct npu_core *core)
{
	struct npu_core_config *config = &core->config;
	uint32_t seed, i;
	int r;

	npu_list_init(&core->files);
	npu_list_init(&core->dying);
	npu_list_init(&core->mems);
	npu_list_init(&core->dying_mems);
	for (i = 0; i < NPU_EXPORT_BUCKETS; i++)
		npu_list_init(&core->exports[i]);
	if (!config->max_queues)
		config->max_queues = NPU_MAX_QUEUES;
	if (!config->max_sessions)
		config->max_sessions = NPU_CORE_SESSIONS;
	if (config->max_queues > NPU_MAX_QUEUES || config->max_sessions > NPU_CORE_SESSIONS_MAX ||
	    !config->cores)
		return -EINVAL;
	r = npu_random(core, &seed, sizeof(seed));
	if (r < 0)
		return r;
	r = npu_random(core, &core->boot_id, sizeof(core->boot_id));
	if (r < 0)
		return r;
	npu_table_init(&core->sessions, config->max_sessions, 32, seed);
	core->faults = npu_alloc_array(core, NPU_CORE_FAULTS, sizeof(*core->faults));
	if (!core->faults)
		return -ENOMEM;
	r = npu_pages_init(&core->pages, &core->shim, config->memory_bytes);
	if (r < 0)
		npu_free(core, core->faults, NPU_CORE_FAULTS * sizeof(*core->faults));
	return r;
}

int npu_core_new(const struct npu_shim *shim, const struct npu_core_config *config,
		 struct npu_core **ret_core)
{
	struct npu_core *core = shim->alloc(shim->dev, sizeof(*core));
	int r;

	if (!core)
		return -ENOMEM;
	core->shim = *shim;
	core->config = *config;
	r = npu_core_setup(core);
	if (r < 0) {
		shim->free(shim->dev, core, sizeof(*core));
		return r;
	}
	*ret_core = core;
	return 0;
}

static void npu_file_free(struct npu_core *core, struct npu_core_file *file)
{
	npu_list_del(&file->link);
	npu_free(core, file->events, NPU_CORE_EVENTS * sizeof(*file->events));
	npu_free(core, file, sizeof(*file));
}

void npu_core_free(struct npu_core *core)
{
	struct npu_session *session;
	uint32_t slot = 0;

	npu_core_lock(core);
	while ((session = npu_table_next(&core->sessions, &slot))) {
		session->file = NULL;
		npu_session_destroy(session);
	}
	while (!npu_list_empty(&core->dying)) {
		session = npu_container_of(core->dying.next, struct npu_session, link);
		session->file = NULL;
		npu_session_finish(session);
	}
	while (!npu_list_empty(&core->dying_mems))
		npu_mem_finish(core,
			       npu_container_of(core->dying_mems.next, struct npu_mem, link));
	while (!npu_list_empty(&core->files))
		npu_file_free(core, npu_container_of(core->files.next, struct npu_core_file, link));
	npu_table_fini(core, &core->sessions);
	npu_pages_fini(&core->pages);
	npu_free(core, core->faults, NPU_CORE_FAULTS * sizeof(*core->faults));
	npu_core_unlock(core);
	npu_free(core, core, sizeof(*core));
}

int npu_core_file_open(struct npu_core *core, void *cookie, struct npu_core_file **ret_file)
{
	struct npu_core_file *file = npu_alloc(core, sizeof(*file));

	if (!file)
		return -ENOMEM;
	file->events = npu_alloc_array(core, NPU_CORE_EVENTS, sizeof(*file->events));
	if (!file->events) {
		npu_free(core, file, sizeof(*file));
		return -ENOMEM;
	}
	file->cookie = cookie;
	npu_list_init(&file->link);
	npu_core_lock(core);
	npu_list_add(&core->files, &file->link);
	npu_core_unlock(core);
	*ret_file = file;
	return 0;
}

void npu_core_file_close(struct npu_core *core, struct npu_core_file *file, bool keep_orphans)
{
	struct npu_session *session;
	struct npu_list *link;
	uint32_t slot;

	npu_core_lock(core);
	for (link = core->dying.next; link != &core->dying; link = link->next) {
		session = npu_container_of(link, struct npu_session, link);
		if (session->file == file)
			session->file = NULL;
	}
	for (slot = 0; (session = npu_table_next(&core->sessions, &slot)); slot++) {
		if (session->file != file)
			continue;
		session->file = NULL;
		session->orphaned_ns = npu_now(core);
		if (!keep_orphans)
			npu_session_destroy(session);
	}
	npu_file_free(core, file);
	npu_core_unlock(core);
}

uint32_t npu_core_orphans_expire(struct npu_core *core, uint64_t age_ns)
{
	struct npu_session *session;
	uint32_t slot, left = 0;
	uint64_t now;

	npu_core_lock(core);
	now = npu_now(core);
	for (slot = 0; (session = npu_table_next(&core->sessions, &slot)); slot++) {
		if (session->file)
			continue;
		if (now - session->orphaned_ns < age_ns) {
			left++;
			continue;
		}
		npu_log(core, NPU_LOG_WARNING, session->obj.id,
			"orphaned session was not adopted in time: destroyed");
		npu_session_destroy(session);
	}
	npu_core_unlock(core);
	return left;
}

void npu_core_health(struct npu_core *core, uint32_t health)
{
	npu_core_lock(core);
	if (core->health != health) {
		core->health = health;
		npu_event_send_all(core, NPU_EVENT_HEALTH, 0, (int32_t)health);
		if (health == NPU_HEALTH_LOST)
			npu_sessions_lose(core);
	}
	npu_core_unlock(core);
}

static bool npu_mem_holds_page(const struct npu_mem *mem, uint32_t page)
{
	uint32_t i;

	for (i = 0; i < mem->nruns; i++) {
		if (page - mem->runs[i].first < mem->runs[i].count)
			return true;
	}
	return false;
}

static void npu_session_page_bad(struct npu_session *session, uint32_t page)
{
	struct npu_mem_handle *handle;
	uint32_t slot;

	for (slot = 0; (handle = npu_table_next(&session->mems, &slot)); slot++) {
		if (npu_mem_holds_page(handle->mem, page))
			npu_event_send(session->core, session->file, NPU_EVENT_MEMORY,
				       session->obj.id, handle->obj.id, handle->obj.user,
				       (int32_t)NPU_PAGE_SMALL);
	}
}

int npu_core_page_bad(struct npu_core *core, uint32_t page)
{
	struct npu_session *session;
	uint32_t slot;
	int r;

	npu_core_lock(core);
	r = npu_pages_retire(&core->pages, page);
	if (r == 1) {
		for (slot = 0; (session = npu_table_next(&core->sessions, &slot)); slot++)
			npu_session_page_bad(session, page);
		r = 0;
	}
	npu_core_unlock(core);
	return r;
}
