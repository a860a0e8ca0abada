/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The backend notes each object it is given in a small allocation of its own behind .backend, with
 * a mark, so that a command for an object that was never made or is gone shows at once.
 */
#include "tests/lib/core_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kdrv/core/npu_core_int.h"

enum rig_mark {
	RIG_SESSION = 0x5e5510, RIG_MEM = 0x3e3000, RIG_MAP = 0x3a9000, RIG_CTX = 0xc70000,
	RIG_QUEUE = 0x90e0e0, RIG_MODULE = 0x30d01e,
};

struct rig_object {
	enum rig_mark mark;
	const void *object;
};

void core_rig_check(bool ok, const char *what)
{
	if (!ok) {
		fprintf(stderr, "core_rig: %s\n", what);
		abort();
	}
}

static void *rig_alloc(void *dev, size_t bytes)
{
	struct core_rig *rig = dev;
	size_t *block;

	rig->allocs++;
	if (rig->fail_at && --rig->fail_at == 0)
		return NULL;
	block = calloc(1, sizeof(max_align_t) + bytes);
	core_rig_check(block != NULL, "host out of memory");
	*block = bytes;
	rig->live++;
	rig->live_bytes += bytes;
	return (char *)block + sizeof(max_align_t);
}

static void rig_free(void *dev, void *ptr, size_t bytes)
{
	struct core_rig *rig = dev;
	size_t *block;

	if (!ptr)
		return;
	block = (size_t *)((char *)ptr - sizeof(max_align_t));
	core_rig_check(*block == bytes, "freed with another size than allocated");
	rig->live--;
	rig->live_bytes -= bytes;
	free(block);
}

static void rig_lock(void *dev)
{
	struct core_rig *rig = dev;

	core_rig_check(!rig->locked, "core mutex taken twice");
	rig->locked = true;
}

static void rig_unlock(void *dev)
{
	struct core_rig *rig = dev;

	core_rig_check(rig->locked, "core mutex given back twice");
	rig->locked = false;
}

static uint64_t rig_now(void *dev)
{
	return ((struct core_rig *)dev)->now;
}

static int rig_random(void *dev, void *ret_bytes, size_t bytes)
{
	struct core_rig *rig = dev;
	size_t i;

	for (i = 0; i < bytes; i++) {
		rig->random = rig->random * 6364136223846793005ull + 1442695040888963407ull;
		((uint8_t *)ret_bytes)[i] = (uint8_t)(rig->random >> 56);
	}
	return 0;
}

static void rig_make(struct core_rig *rig, void **backend, enum rig_mark mark, const void *object)
{
	struct rig_object *note = malloc(sizeof(*note));

	core_rig_check(note != NULL, "host out of memory");
	core_rig_check(*backend == NULL, "object made twice");
	note->mark = mark;
	note->object = object;
	*backend = note;
	rig->objects++;
}

static void rig_know(void *backend, enum rig_mark mark, const void *object)
{
	struct rig_object *note = backend;

	core_rig_check(note != NULL, "command for an object that was never made");
	core_rig_check(note->mark == mark && note->object == object, "wrong object");
}

static void rig_drop(struct core_rig *rig, void **backend, enum rig_mark mark, const void *object)
{
	rig_know(*backend, mark, object);
	free(*backend);
	*backend = NULL;
	rig->objects--;
}

static int rig_space(struct core_rig *rig, struct npu_admin_cmd *cmd)
{
	struct npu_session *session = cmd->session;

	switch (cmd->op) {
	case NPU_ADMIN_SPACE_CREATE:
		rig_make(rig, &session->backend, RIG_SESSION, session);
		return 0;
	case NPU_ADMIN_SPACE_STOP:
		core_rig_check(session->dying, "SPACE_STOP of a session that lives");
		rig_know(session->backend, RIG_SESSION, session);
		return 0;
	default:
		core_rig_check(!session->ctx_count && !session->queues.count &&
				       !session->modules.count && !session->mems.count &&
				       !session->map_count && !session->mem_used &&
				       !session->host_used,
			       "SPACE_DESTROY with objects or charges left");
		rig_drop(rig, &session->backend, RIG_SESSION, session);
		if (!rig->space_pending || rig->nsessions == CORE_RIG_PENDING)
			return 0;
		rig->sessions[rig->nsessions++] = session;
		return NPU_ADMIN_PENDING;
	}
}

static int rig_memory(struct core_rig *rig, struct npu_admin_cmd *cmd)
{
	struct npu_mem *mem = cmd->mem;
	uint64_t pages = 0;
	uint32_t i;

	if (cmd->op == NPU_ADMIN_MEM_CREATE) {
		for (i = 0; i < mem->nruns; i++)
			pages += mem->runs[i].count;
		core_rig_check(mem->kind != NPU_MEM_DEVICE || pages * NPU_PAGE_SMALL == mem->bytes,
			       "runs do not add up to the bytes");
		rig_make(rig, &mem->backend, RIG_MEM, mem);
		return 0;
	}
	core_rig_check(!mem->holders && !mem->maps && !mem->imports && !mem->owner,
		       "MEM_DESTROY of memory that is held");
	rig_drop(rig, &mem->backend, RIG_MEM, mem);
	if (!rig->mem_pending || rig->nmems == CORE_RIG_PENDING)
		return 0;
	rig->mems[rig->nmems++] = mem;
	return NPU_ADMIN_PENDING;
}

static int rig_object(struct core_rig *rig, struct npu_admin_cmd *cmd)
{
	struct npu_queue *queue = cmd->queue;

	switch (cmd->op) {
	case NPU_ADMIN_MAP:
		rig_know(cmd->map->mem->backend, RIG_MEM, cmd->map->mem);
		rig_make(rig, &cmd->map->backend, RIG_MAP, cmd->map);
		return 0;
	case NPU_ADMIN_UNMAP:
		rig_drop(rig, &cmd->map->backend, RIG_MAP, cmd->map);
		return 0;
	case NPU_ADMIN_CTX_SET:
		if (cmd->ctx.created)
			rig_make(rig, &cmd->ctx.ctx->backend, RIG_CTX, cmd->ctx.ctx);
		rig_know(cmd->ctx.ctx->backend, RIG_CTX, cmd->ctx.ctx);
		return 0;
	case NPU_ADMIN_CTX_DROP:
		core_rig_check(!cmd->ctx.ctx->queues, "context dropped with queues");
		rig_drop(rig, &cmd->ctx.ctx->backend, RIG_CTX, cmd->ctx.ctx);
		return 0;
	case NPU_ADMIN_QUEUE_SET:
		if (!queue->started && queue->slot < rig->busy_below)
			return -EBUSY;
		if (!queue->started)
			rig_make(rig, &queue->backend, RIG_QUEUE, queue);
		rig_know(queue->backend, RIG_QUEUE, queue);
		return 0;
	case NPU_ADMIN_QUEUE_DROP:
		rig_drop(rig, &queue->backend, RIG_QUEUE, queue);
		return 0;
	case NPU_ADMIN_SUBMIT:
		rig_know(cmd->submit.queue->backend, RIG_QUEUE, cmd->submit.queue);
		cmd->submit.taken = cmd->submit.count < rig->taken ? cmd->submit.count : rig->taken;
		cmd->submit.tail = cmd->submit.taken;
		return 0;
	case NPU_ADMIN_QUEUE_DONE:
		rig_know(cmd->wait.queue->backend, RIG_QUEUE, cmd->wait.queue);
		cmd->wait.done = rig->done;
		return 0;
	case NPU_ADMIN_MODULE_LOAD:
		rig_make(rig, &cmd->load.module->backend, RIG_MODULE, cmd->load.module);
		return 0;
	case NPU_ADMIN_MODULE_DROP:
		rig_know(cmd->module->mem->backend, RIG_MEM, cmd->module->mem);
		rig_drop(rig, &cmd->module->backend, RIG_MODULE, cmd->module);
		return 0;
	default:
		return 0;
	}
}

static bool rig_is_drop(enum npu_admin_op op)
{
	return op == NPU_ADMIN_SPACE_STOP || op == NPU_ADMIN_SPACE_DESTROY ||
	       op == NPU_ADMIN_MEM_DESTROY || op == NPU_ADMIN_UNMAP || op == NPU_ADMIN_CTX_DROP ||
	       op == NPU_ADMIN_QUEUE_DROP || op == NPU_ADMIN_MODULE_DROP;
}

static int rig_admin(void *dev, struct npu_admin_cmd *cmd)
{
	struct core_rig *rig = dev;

	core_rig_check(rig->locked, "admin command without the core mutex");
	rig->last = *cmd;
	rig->admin[cmd->op]++;
	if (rig->fail_op == (int)cmd->op && !rig_is_drop(cmd->op)) {
		if (!rig->fail_each)
			rig->fail_op = 0;
		return rig->fail_errno;
	}
	switch (cmd->op) {
	case NPU_ADMIN_SPACE_CREATE:
	case NPU_ADMIN_SPACE_STOP:
	case NPU_ADMIN_SPACE_DESTROY:
		return rig_space(rig, cmd);
	case NPU_ADMIN_MEM_CREATE:
	case NPU_ADMIN_MEM_DESTROY:
		return rig_memory(rig, cmd);
	default:
		return rig_object(rig, cmd);
	}
}

static int rig_fd_get(void *dev, void *cookie, enum npu_fd_kind kind, struct npu_session *session,
		      struct npu_mem *mem, int32_t *ret_slot)
{
	struct core_rig *rig = dev;

	core_rig_check(cookie == rig, "cookie of another call");
	if (kind <= NPU_FD_LIFE)
		rig_know(session->backend, RIG_SESSION, session);
	else
		rig_know(mem->backend, RIG_MEM, mem);
	if (rig->fd_errno)
		return rig->fd_errno;
	*ret_slot = (int32_t)rig->fds++;
	return 0;
}

static void rig_event_ready(void *dev, struct npu_core_file *file, void *file_cookie)
{
	struct core_rig *rig = dev;

	core_rig_check(file && file_cookie == rig, "event for an unknown file");
	rig->ready++;
}

int core_rig_start(struct core_rig *rig)
{
	const struct npu_shim shim = {
		.dev = rig,
		.alloc = rig_alloc,
		.free = rig_free,
		.lock = rig_lock,
		.unlock = rig_unlock,
		.now_ns = rig_now,
		.random = rig_random,
		.admin = rig_admin,
		.fd_get = rig_fd_get,
		.event_ready = rig_event_ready,
	};
	int r;

	r = npu_core_new(&shim, &rig->config, &rig->core);
	if (r < 0)
		return r;
	r = npu_core_file_open(rig->core, rig, &rig->file);
	if (r < 0) {
		npu_core_free(rig->core);
		rig->core = NULL;
	}
	return r;
}

int core_rig_init(struct core_rig *rig, uint64_t memory_bytes, uint64_t caps, uint64_t seed)
{
	memset(rig, 0, sizeof(*rig));
	rig->random = seed;
	rig->taken = NPU_SUBMIT_MAX;
	rig->now = 1000;
	rig->config = (struct npu_core_config){
		.kind = NPU_KIND_SIM,
		.device_id = 3,
		.version = "core_rig 1",
		.name = "NPU on a bench",
		.firmware = "1.0",
		.caps = caps,
		.cores = 4,
		.memory_bytes = memory_bytes,
		.host_bytes = 1ull << 30,
		.default_timeout_us = 1000000,
	};
	return core_rig_start(rig);
}

void core_rig_fini(struct core_rig *rig)
{
	if (rig->core)
		npu_core_free(rig->core);
	rig->core = NULL;
	core_rig_check(rig->live == 0 && rig->live_bytes == 0, "memory left at the end");
	core_rig_check(rig->objects == 0, "objects left in the backend");
	core_rig_check(!rig->locked, "core mutex left locked");
}

int core_rig_call(struct core_rig *rig, unsigned int nr, void *arg, uint32_t size)
{
	const struct npu_row *row = npu_row_find(nr);
	struct npu_head *head = arg;
	int r;

	if (!head->size)
		head->size = size;
	if (row && (row->props & NPU_ROW_MUTATES) && !head->call)
		head->call = ++rig->call;
	r = npu_core_call(rig->core, rig->file, nr, arg, size, rig);
	core_rig_check(!rig->locked, "core mutex left locked by a call");
	core_rig_check(r <= 0, "a call gave a positive result");
	return r;
}

int core_rig_session(struct core_rig *rig, uint64_t *ret_session)
{
	struct npu_session_create c = { .uid = 1000, .gid = 1000, .pid = 42, .pid_start = 7,
					.slab_address = CORE_RIG_SLAB, .user = 0x5e55,
					.comm = "rig" };
	int r = CORE_CALL(rig, SESSION_CREATE, &c);

	if (r == 0)
		*ret_session = c.session;
	return r;
}

int core_rig_destroy(struct core_rig *rig, uint64_t session)
{
	struct npu_session_destroy d = { .head.session = session };

	return CORE_CALL(rig, SESSION_DESTROY, &d);
}

int core_rig_ctx(struct core_rig *rig, uint64_t session, uint32_t *ret_ctx)
{
	struct npu_ctx_create c = { .head.session = session, .user = 0xc7 };
	int r = CORE_CALL(rig, CTX_CREATE, &c);

	if (r == 0)
		*ret_ctx = c.ctx;
	return r;
}

int core_rig_queue(struct core_rig *rig, uint64_t session, uint32_t ctx, uint32_t *ret_queue)
{
	struct npu_queue_create c = { .head.session = session, .ctx = ctx, .user = 0x90 };
	int r = CORE_CALL(rig, QUEUE_CREATE, &c);

	if (r == 0)
		*ret_queue = c.queue;
	return r;
}

int core_rig_mem(struct core_rig *rig, uint64_t session, uint32_t kind, uint64_t bytes,
		 uint64_t *ret_mem)
{
	struct npu_mem_alloc a = { .head.session = session, .kind = kind, .bytes = bytes,
				   .user = 0x3e };
	int r = CORE_CALL(rig, MEM_ALLOC, &a);

	if (r == 0)
		*ret_mem = a.mem;
	return r;
}

int core_rig_mem_free(struct core_rig *rig, uint64_t session, uint64_t mem)
{
	struct npu_mem_free f = { .head.session = session, .mem = mem };

	return CORE_CALL(rig, MEM_FREE, &f);
}

int core_rig_map(struct core_rig *rig, uint64_t session, uint64_t mem, uint64_t address,
		 uint64_t bytes)
{
	struct npu_mem_map m = { .head.session = session, .mem = mem, .address = address,
				 .bytes = bytes };

	return CORE_CALL(rig, MEM_MAP, &m);
}

int core_rig_unmap(struct core_rig *rig, uint64_t session, uint64_t address, uint64_t bytes)
{
	struct npu_mem_unmap m = { .head.session = session, .address = address, .bytes = bytes };

	return CORE_CALL(rig, MEM_UNMAP, &m);
}

int core_rig_module(struct core_rig *rig, uint64_t session, uint64_t mem, uint32_t *ret_module)
{
	struct npu_module_load l = { .head.session = session, .mem = mem, .bytes = 4096,
				     .user = 0x30d };
	int r = CORE_CALL(rig, MODULE_LOAD, &l);

	if (r == 0)
		*ret_module = l.module;
	return r;
}

int core_rig_query(struct core_rig *rig, struct npu_query *ret_query)
{
	memset(ret_query, 0, sizeof(*ret_query));
	return CORE_CALL(rig, QUERY, ret_query);
}

int core_rig_counter(struct core_rig *rig, uint64_t session, enum npu_counter counter,
		     uint64_t *ret_value)
{
	struct npu_counters c = { .head.session = session };
	int r = CORE_CALL(rig, COUNTERS, &c);

	if (r == 0)
		*ret_value = c.values[counter];
	return r;
}

struct npu_session *core_rig_find(struct core_rig *rig, uint64_t session)
{
	return npu_table_find(&rig->core->sessions, session);
}

void core_rig_settle(struct core_rig *rig)
{
	while (rig->nsessions)
		npu_core_space_gone(rig->core, rig->sessions[--rig->nsessions]);
	while (rig->nmems)
		npu_core_mem_gone(rig->core, rig->mems[--rig->nmems]);
}
