/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * A session is one client's address space on this device and the owner of all its objects. It ends
 * in two steps: out of reach with every object dropped, then freed once the backend is through.
 */
#include "kdrv/core/npu_core_int.h"

#define NPU_QUEUE_GEN_BITS 21
#define NPU_MODULE_GEN_BITS 19
#define NPU_MEM_GEN_BITS 13
#define NPU_MODULES_DEFAULT 256u

static int npu_session_seed(struct npu_session *session)
{
	struct npu_core *core = session->core;
	uint32_t seeds[3];
	int r;

	r = npu_random(core, seeds, sizeof(seeds));
	if (r < 0)
		return r;
	r = npu_random(core, &session->map_random, sizeof(session->map_random));
	if (r < 0)
		return r;
	session->map_random |= 1;
	npu_table_init(&session->mems, NPU_CORE_MAX_MEM, NPU_MEM_GEN_BITS, seeds[0]);
	npu_table_init(&session->queues, session->core->config.max_queues, NPU_QUEUE_GEN_BITS,
		       seeds[1]);
	npu_table_init(&session->modules, NPU_CORE_MAX_MODULES, NPU_MODULE_GEN_BITS, seeds[2]);
	return 0;
}

static uint32_t npu_limit(uint32_t wanted, uint32_t standard, uint32_t most)
{
	if (!wanted)
		return standard < most ? standard : most;
	return wanted < most ? wanted : most;
}

static int npu_session_new(struct npu_core *core, const struct npu_session_create *create,
			   struct npu_session **ret_session)
{
	struct npu_session *session = npu_alloc(core, sizeof(*session));
	int r;

	if (!session)
		return -ENOMEM;
	session->core = core;
	npu_obj_init(&session->obj, NPU_OBJ_SESSION, create->user);
	npu_list_init(&session->link);
	npu_list_init(&session->owned);
	session->uid = create->uid;
	session->gid = create->gid;
	session->pid = create->pid;
	session->pid_start = create->pid_start;
	memcpy(session->token_hash, create->token_hash, sizeof(session->token_hash));
	npu_copy_text(session->comm, sizeof(session->comm), create->comm, sizeof(create->comm));
	session->slab_address = create->slab_address;
	session->memory_limit = create->memory_limit ? create->memory_limit : UINT64_MAX;
	session->host_limit = create->host_limit ? create->host_limit : UINT64_MAX;
	session->queue_limit = npu_limit(create->queue_limit, core->config.max_queues,
					 core->config.max_queues);
	session->module_limit = npu_limit(create->module_limit, NPU_MODULES_DEFAULT,
					  NPU_CORE_MAX_MODULES);
	r = npu_session_seed(session);
	if (r == 0)
		r = npu_table_insert(core, &core->sessions, session, &session->obj.id);
	if (r < 0) {
		npu_free(core, session, sizeof(*session));
		return r;
	}
	*ret_session = session;
	return 0;
}

int npu_session_fds(struct npu_call *call, struct npu_session *session, int32_t ret_fds[4])
{
	const struct npu_shim *shim = &call->core->shim;
	int32_t fds[4];
	int i, r;

	for (i = 0; i < 4; i++) {
		r = shim->fd_get(shim->dev, call->cookie, (enum npu_fd_kind)(NPU_FD_SLAB + i),
				 session, NULL, &fds[i]);
		if (r < 0)
			return r;
	}
	memcpy(ret_fds, fds, sizeof(fds));
	return 0;
}

int npu_fds_session_create(struct npu_call *call, void *arg)
{
	struct npu_session_create *create = arg;
	struct npu_session *session = npu_table_find(&call->core->sessions, create->session);
	int32_t fds[4] = { -1, -1, -1, -1 };
	int r;

	if (session && session->file == call->file) {
		r = npu_session_fds(call, session, fds);
		if (r < 0)
			return r;
	}
	create->fd_slab = fds[0];
	create->fd_doorbell = fds[1];
	create->fd_completion = fds[2];
	create->fd_life = fds[3];
	return 0;
}

int npu_call_session_create(struct npu_call *call, void *arg)
{
	struct npu_session_create *create = arg;
	struct npu_admin_cmd cmd = { .op = NPU_ADMIN_SPACE_CREATE };
	struct npu_session *session;
	int r;

	r = npu_window_check(create->slab_address, NPU_SLAB_SIZE, NPU_PAGE_LARGE);
	if (r < 0)
		return r;
	r = npu_session_new(call->core, create, &session);
	if (r < 0)
		return r;
	cmd.session = session;
	r = npu_admin(call->core, &cmd);
	if (r < 0) {
		npu_table_remove(&call->core->sessions, session->obj.id);
		npu_session_finish(session);
		return r;
	}
	session->file = call->file;
	create->session = session->obj.id;
	r = npu_fds_session_create(call, create);
	if (r < 0) {
		session->file = NULL;
		npu_session_destroy(session);
		create->session = 0;
	}
	return r;
}

void npu_session_finish(struct npu_session *session)
{
	struct npu_core *core = session->core;

	npu_event_send(core, session->file, NPU_EVENT_SESSION, session->obj.id, session->obj.id,
		       session->obj.user, 0);
	npu_list_del(&session->link);
	npu_table_fini(core, &session->mems);
	npu_table_fini(core, &session->queues);
	npu_table_fini(core, &session->modules);
	npu_obj_fini(core, &session->obj);
	npu_free(core, session, sizeof(*session));
}

static void npu_session_drop_objects(struct npu_session *session)
{
	struct npu_mem_handle *handle;
	struct npu_module *module;
	struct npu_queue *queue;
	struct npu_ctx *ctx;
	uint64_t cursor;
	uint32_t slot;

	for (slot = 0; (queue = npu_table_next(&session->queues, &slot)); slot++)
		npu_queue_drop(queue);
	for (slot = 0; (module = npu_table_next(&session->modules, &slot)); slot++)
		npu_module_drop(module);
	for (slot = 0; (handle = npu_table_next(&session->mems, &slot)); slot++)
		npu_mem_handle_drop(handle);
	for (cursor = 0; (ctx = npu_session_ctx_next(session, &cursor));)
		npu_ctx_drop(ctx);
	/* what is left here is held by importers of other sessions */
	while (!npu_list_empty(&session->owned))
		npu_mem_disown(npu_container_of(session->owned.next, struct npu_mem, owned));
}

void npu_session_destroy(struct npu_session *session)
{
	struct npu_core *core = session->core;
	struct npu_admin_cmd cmd = { .op = NPU_ADMIN_SPACE_STOP, .session = session };

	session->dying = true;
	npu_table_remove(&core->sessions, session->obj.id);
	npu_admin(core, &cmd);
	npu_session_drop_objects(session);
	cmd.op = NPU_ADMIN_SPACE_DESTROY;
	if (npu_admin(core, &cmd) == NPU_ADMIN_PENDING)
		npu_list_add(&core->dying, &session->link);
	else
		npu_session_finish(session);
}

int npu_call_session_destroy(struct npu_call *call, void *arg)
{
	(void)arg;
	npu_session_destroy(call->session);
	call->session = NULL;
	return 0;
}

void npu_sessions_lose(struct npu_core *core)
{
	static const struct npu_fault_record lost = { .kind = NPU_FAULT_LOST,
						      .flags = NPU_FAULT_ADDRESS_UNKNOWN };
	struct npu_session *session;
	uint32_t slot;

	for (slot = 0; (session = npu_table_next(&core->sessions, &slot)); slot++) {
		if (session->lost)
			continue;
		session->lost = true;
		npu_fault_add(core, session, NULL, &lost);
	}
}

void npu_core_engine_started(struct npu_core *core, struct npu_session *session)
{
	npu_core_lock(core);
	if (!session->dying) {
		session->engine_starts++;
		core->engine_starts++;
		npu_event_send(core, session->file, NPU_EVENT_ENGINE, session->obj.id,
			       session->obj.id, session->obj.user,
			       (int32_t)(session->engine_starts & 0x7fffffff));
	}
	npu_core_unlock(core);
}

void npu_core_space_gone(struct npu_core *core, struct npu_session *session)
{
	npu_core_lock(core);
	npu_session_finish(session);
	npu_core_unlock(core);
}
