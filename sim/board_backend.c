/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The seam between the rules (kdrv/core) and the board: the shim's functions, and a table with one
 * function for each admin command. A command changes the board's own objects, tells the engine if
 * there is one, and returns; an engine that is wanted is started after the call.
 */
#include "sim/board.h"

#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>

#include "sim/board_engine.h"
#include "sim/board_memory.h"
#include "sim/board_space.h"
#include "sim/board_watch.h"
#include "sim/sandbox.h"
#include "sim/sim_fd.h"

#define FDS_RESERVED 10240u /* ten for each of 1024 sessions */

static struct board_space *command_space(const struct npu_admin_cmd *cmd)
{
	return cmd->session->backend;
}

/* The space's engine, if it takes messages. */
static struct board_engine *space_engine(struct board_space *space)
{
	return space->engine && !space->engine->killed ? space->engine : NULL;
}

/* ---- spaces -------------------------------------------------------------------------------- */

static int admin_space_create(struct board *board, struct npu_admin_cmd *cmd)
{
	struct board_space *space;
	int r = board_space_new(board, cmd->session, &space);

	if (r == 0)
		cmd->session->backend = space;
	return r;
}

static int admin_space_stop(struct board *board, struct npu_admin_cmd *cmd)
{
	(void)board;
	board_space_stop(command_space(cmd));
	return 0;
}

static int admin_space_destroy(struct board *board, struct npu_admin_cmd *cmd)
{
	struct board_space *space = command_space(cmd);

	if (board->ending && space->engine)
		board_engine_abandon(space->engine);
	board_space_end(space);
	return NPU_ADMIN_PENDING;
}

/* ---- memory -------------------------------------------------------------------------------- */

/*
 * The lowest free number is what a new fd gets, so it says how many are open. The last quarter, but
 * no more than FDS_RESERVED, is for engines, sessions and connections.
 */
static bool fd_is_reserved(int fd)
{
	struct rlimit limit;
	uint64_t reserve;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return false;
	reserve = limit.rlim_cur / 4 < FDS_RESERVED ? limit.rlim_cur / 4 : FDS_RESERVED;
	return (uint64_t)fd >= limit.rlim_cur - reserve;
}

static int admin_mem_create(struct board *board, struct npu_admin_cmd *cmd)
{
	static const char *const names[] = {
		[NPU_MEM_DEVICE] = "npu-device",
		[NPU_MEM_HOST] = "npu-host",
		[NPU_MEM_IMAGE] = "npu-image",
	};
	struct npu_mem *mem = cmd->mem;
	struct board_memory *memory;
	int r = board_memory_new(board->release, names[mem->kind], mem->bytes, &memory);

	if (r < 0)
		return r == -EMFILE || r == -ENFILE ? -ENOMEM : r;
	if (fd_is_reserved(memory->fd)) {
		board_memory_unref(memory);
		return -ENOMEM;
	}
	/* A filler that is behind by all there is has no use: pages come at the first touch, too. */
	if ((mem->flags & NPU_MEM_POPULATE) &&
	    board_release_backlog(board->fill) + mem->bytes <= board->options.memory)
		board_memory_populate(memory, board->fill);
	mem->backend = memory;
	return 0;
}

struct mem_end {
	struct board *board;
	struct npu_mem *mem;
};

static void mem_retired(void *arg)
{
	struct mem_end *end = arg;

	if (!end->board->ending)
		end->board->upper->mem_gone(end->board, end->mem);
	free(end);
}

/*
 * The file is never used again, so its pages count as free at once; only when the releaser is as
 * much behind as the device has memory (twice that is what the machine has, at least) they wait for
 * it.
 */
static int admin_mem_destroy(struct board *board, struct npu_admin_cmd *cmd)
{
	uint64_t behind = board_release_backlog(board->release) + cmd->mem->bytes;
	struct mem_end *end = NULL;

	if (behind > board->options.memory)
		end = malloc(sizeof(*end));
	if (!end) {
		board_memory_unref(cmd->mem->backend);
		return 0;
	}
	end->board = board;
	end->mem = cmd->mem;
	board_memory_retire(cmd->mem->backend, mem_retired, end);
	return NPU_ADMIN_PENDING;
}

static int admin_map(struct board *board, struct npu_admin_cmd *cmd)
{
	struct board_space *space = command_space(cmd);

	(void)board;
	if (space->lost)
		return -EIO;
	if (space_engine(space))
		board_engine_map(space->engine, cmd->map);
	return 0;
}

static int admin_unmap(struct board *board, struct npu_admin_cmd *cmd)
{
	struct board_space *space = command_space(cmd);

	(void)board;
	if (space_engine(space))
		board_engine_unmap(space->engine, cmd->map);
	return 0;
}

/* ---- contexts and queues ------------------------------------------------------------------- */

static int admin_ctx_set(struct board *board, struct npu_admin_cmd *cmd)
{
	struct board_space *space = command_space(cmd);
	bool clear = cmd->ctx.created || cmd->ctx.clear_error;

	(void)board;
	if (clear)
		__atomic_store_n(&board_space_header(space)->context_error[cmd->ctx.ctx->obj.id], 0,
				 __ATOMIC_RELEASE);
	if (space_engine(space))
		board_engine_context(space->engine, cmd->ctx.ctx, clear);
	return 0;
}

static int admin_nothing(struct board *board, struct npu_admin_cmd *cmd)
{
	(void)board;
	(void)cmd;
	return 0;
}

static int admin_queue_new(struct board_space *space, struct npu_queue *queue)
{
	int r;

	/* Nobody waits for an engine: there are other slots. */
	if (board_space_ring_busy(space, queue->slot))
		return -EBUSY;
	r = board_space_ring_open(space, queue);
	if (r < 0)
		return r;
	space->wanted = true;
	if (space_engine(space))
		board_engine_queue(space->engine, queue);
	return 0;
}

static int admin_queue_set(struct board *board, struct npu_admin_cmd *cmd)
{
	struct board_space *space = command_space(cmd);
	struct npu_queue *queue = cmd->queue;
	struct npu_ring_ctrl *ring = board_space_ring(space, queue->slot);
	bool aborts;

	(void)board;
	if (space->lost)
		return -EIO;
	if (!queue->started)
		return admin_queue_new(space, queue);
	aborts = __atomic_exchange_n(&ring->epoch, queue->epoch, __ATOMIC_SEQ_CST) != queue->epoch;
	if (ring->state != NPU_RING_STOPPED)
		ring->state = queue->paused ? NPU_RING_PAUSED : NPU_RING_ACTIVE;
	if (space_engine(space)) {
		board_engine_queue(space->engine, queue);
		if (aborts)
			board_engine_expect_end(space->engine, queue->slot);
	}
	return 0;
}

static int admin_queue_drop(struct board *board, struct npu_admin_cmd *cmd)
{
	struct board_space *space = command_space(cmd);

	(void)board;
	board_space_wait(space, cmd->queue, 0, false);
	board_space_ring_close(space, cmd->queue->slot);
	if (!space->stopping && space_engine(space))
		board_engine_queue_end(space->engine, cmd->queue->slot);
	return 0;
}

static int admin_submit(struct board *board, struct npu_admin_cmd *cmd)
{
	struct board_space *space = command_space(cmd);
	struct npu_queue *queue = cmd->submit.queue;

	(void)board;
	if (space->lost)
		return -EIO;
	board_space_submit(space, queue->slot, cmd->submit.entries, cmd->submit.count,
			   &cmd->submit.taken, &cmd->submit.tail);
	/* The doorbell is the client's, so the engine is told by a message. */
	if (cmd->submit.taken && space_engine(space))
		board_engine_queue(space->engine, queue);
	return 0;
}

static int admin_queue_done(struct board *board, struct npu_admin_cmd *cmd)
{
	struct board_space *space = command_space(cmd);
	struct npu_queue *queue = cmd->wait.queue;

	(void)board;
	cmd->wait.done = __atomic_load_n(&board_space_ring(space, queue->slot)->done,
					 __ATOMIC_ACQUIRE);
	if (cmd->wait.done >= cmd->wait.want || !cmd->wait.arm)
		return 0;
	if (space->lost)
		return -EIO;
	return board_space_wait(space, queue, cmd->wait.want, true);
}

/* ---- modules ------------------------------------------------------------------------------- */

static int admin_module_load(struct board *board, struct npu_admin_cmd *cmd)
{
	struct board_space *space = command_space(cmd);

	(void)board;
	if (space->lost)
		return -EIO;
	/* Without an engine it is among what the first one is told. */
	space->wanted = true;
	if (space_engine(space))
		board_engine_module(space->engine, cmd->load.module, true);
	return 0;
}

static int admin_module_drop(struct board *board, struct npu_admin_cmd *cmd)
{
	struct board_space *space = command_space(cmd);

	(void)board;
	if (!space->stopping && space_engine(space))
		board_engine_module_end(space->engine, (uint32_t)cmd->module->obj.id);
	return 0;
}

/* ---- the device ---------------------------------------------------------------------------- */

static int admin_reset(struct board *board, struct npu_admin_cmd *cmd)
{
	(void)cmd;
	for (struct board_space *space = board->spaces; space; space = space->next) {
		if (!space->stopping)
			board_space_lose(space, "the device was reset");
	}
	return 0;
}

static int admin_inject(struct board *board, struct npu_admin_cmd *cmd)
{
	struct board_space *space = cmd->session ? command_space(cmd) : NULL;

	switch (cmd->inject.kind) {
	case NPU_INJECT_ENGINE_KILL:
		if (!space)
			return -EINVAL;
		if (!space_engine(space))
			return -ENOENT;
		board_engine_kill(space->engine, NPU_FAULT_ENGINE, "is killed by request");
		return 0;
	case NPU_INJECT_ECC_CORRECTABLE:
		sim_log(SIM_LOG_NOTICE, "correctable memory error at 0x%llx",
			(unsigned long long)cmd->inject.address);
		return 0;
	case NPU_INJECT_ECC_UNCORRECTABLE:
		if (cmd->inject.page == NPU_PAGE_NONE)
			return -ERANGE;
		if (board->bad_count == BOARD_BAD_PAGES)
			return -EBUSY;
		board->bad_pages[board->bad_count++] = cmd->inject.page;
		return 0;
	default:
		return -EOPNOTSUPP;
	}
}

static void space_counters(struct board_space *space, __u64 *values)
{
	values[NPU_COUNTER_TASKS_QUEUED] += board_space_queued(space);
	values[NPU_COUNTER_TASKS_DONE] += space->tasks_done;
	values[NPU_COUNTER_CORE_NS] += space->core_ns;
	if (space->engine) {
		values[NPU_COUNTER_TASKS_DONE] +=
			__atomic_load_n(&space->engine->state->tasks_done, __ATOMIC_RELAXED);
		values[NPU_COUNTER_CORE_NS] += board_engine_cpu(space->engine);
	}
}

static int admin_counters(struct board *board, struct npu_admin_cmd *cmd)
{
	static const unsigned int own[] = {
		NPU_COUNTER_TASKS_QUEUED, NPU_COUNTER_TASKS_DONE, NPU_COUNTER_CORE_NS,
		NPU_COUNTER_ENGINE_PID,
	};
	struct board_space *space = cmd->session ? command_space(cmd) : NULL;

	for (unsigned int i = 0; i < NPU_ARRAY_SIZE(own); i++)
		cmd->counters[own[i]] = 0;
	if (space) {
		space_counters(space, cmd->counters);
		if (space->engine)
			cmd->counters[NPU_COUNTER_ENGINE_PID] = (uint64_t)space->engine->pid;
		return 0;
	}
	for (space = board->spaces; space; space = space->next) {
		if (!space->stopping)
			space_counters(space, cmd->counters);
	}
	cmd->counters[NPU_COUNTER_CORE_NS] = board_watch_busy(board);
	return 0;
}

/* Layers of the sandbox and bits of the interface are the same numbers. */
_Static_assert((uint32_t)SANDBOX_PARENT_DEATH == NPU_SANDBOX_PARENT_DEATH &&
		       SANDBOX_LAYER_COUNT == NPU_SANDBOX_COUNT, "sandbox layers");

static int admin_query(struct board *board, struct npu_admin_cmd *cmd)
{
	struct npu_query *query = cmd->query;
	uint32_t layers = board->nursery ? nursery_layers(board->nursery) : 0;

	query->util_permille = board_watch_permille(board);
	query->engines = 0;
	for (struct board_space *space = board->spaces; space; space = space->next)
		query->engines += space->engine != NULL;
	query->sandbox_active = layers;
	query->sandbox_missing = SANDBOX_ALL & ~layers;
	query->busy_ns = board_watch_busy(board);
	return 0;
}

/* ---- the shim ------------------------------------------------------------------------------ */

static int (*const admin_table[])(struct board *board, struct npu_admin_cmd *cmd) = {
	[NPU_ADMIN_SPACE_CREATE] = admin_space_create,
	[NPU_ADMIN_SPACE_STOP] = admin_space_stop,
	[NPU_ADMIN_SPACE_DESTROY] = admin_space_destroy,
	[NPU_ADMIN_MEM_CREATE] = admin_mem_create,
	[NPU_ADMIN_MEM_DESTROY] = admin_mem_destroy,
	[NPU_ADMIN_MAP] = admin_map,
	[NPU_ADMIN_UNMAP] = admin_unmap,
	[NPU_ADMIN_CTX_SET] = admin_ctx_set,
	[NPU_ADMIN_CTX_DROP] = admin_nothing,
	[NPU_ADMIN_QUEUE_SET] = admin_queue_set,
	[NPU_ADMIN_QUEUE_DROP] = admin_queue_drop,
	[NPU_ADMIN_SUBMIT] = admin_submit,
	[NPU_ADMIN_QUEUE_DONE] = admin_queue_done,
	[NPU_ADMIN_MODULE_LOAD] = admin_module_load,
	[NPU_ADMIN_MODULE_DROP] = admin_module_drop,
	[NPU_ADMIN_RESET] = admin_reset,
	[NPU_ADMIN_INJECT] = admin_inject,
	[NPU_ADMIN_COUNTERS] = admin_counters,
	[NPU_ADMIN_QUERY] = admin_query,
};

static int backend_admin(void *dev, struct npu_admin_cmd *cmd)
{
	if (cmd->op >= NPU_ARRAY_SIZE(admin_table) || !admin_table[cmd->op])
		return -EOPNOTSUPP;
	return admin_table[cmd->op](dev, cmd);
}

static void *backend_alloc(void *dev, size_t bytes)
{
	(void)dev;
	return calloc(1, bytes);
}

static void backend_free(void *dev, void *ptr, size_t bytes)
{
	(void)dev;
	(void)bytes;
	free(ptr);
}

static uint64_t backend_now(void *dev)
{
	(void)dev;
	return sim_now();
}

static int backend_random(void *dev, void *ret_bytes, size_t bytes)
{
	(void)dev;
	while (bytes) {
		ssize_t n = getrandom(ret_bytes, bytes, 0);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0) {
			ret_bytes = (char *)ret_bytes + n;
			bytes -= (size_t)n;
		}
	}
	return 0;
}

static void backend_log(void *dev, enum npu_log_level level, uint64_t session, const char *text)
{
	static const enum sim_log_level levels[] = {
		[NPU_LOG_ERROR] = SIM_LOG_ERROR,
		[NPU_LOG_WARNING] = SIM_LOG_WARNING,
		[NPU_LOG_INFO] = SIM_LOG_INFO,
		[NPU_LOG_DEBUG] = SIM_LOG_DEBUG,
	};

	(void)dev;
	if (session)
		sim_log(levels[level], "session %llu: %s", (unsigned long long)session, text);
	else
		sim_log(levels[level], "%s", text);
}

/* -1: none for this kind here. */
static int backend_fd(struct board *board, enum npu_fd_kind kind, struct npu_session *session,
		      struct npu_mem *mem)
{
	struct board_space *space = session ? session->backend : NULL;
	struct board_memory *memory = mem ? mem->backend : NULL;

	switch (kind) {
	case NPU_FD_SLAB:
		return space->slab->fd;
	case NPU_FD_DOORBELL:
		return space->doorbell_fd;
	case NPU_FD_COMPLETION:
		return space->completion_fd;
	case NPU_FD_LIFE:
		return space->life_read;
	case NPU_FD_MEM:
		if (mem->kind == NPU_MEM_DEVICE && !board->options.host_visible)
			return -1;
		return memory->fd;
	default:
		return -1;
	}
}

static int backend_fd_get(void *dev, void *cookie, enum npu_fd_kind kind,
			  struct npu_session *session, struct npu_mem *mem, int32_t *ret_slot)
{
	struct board_reply_fds *fds = cookie;
	int fd = backend_fd(dev, kind, session, mem);

	if (fd < 0) {
		*ret_slot = -1;
		return 0;
	}
	if (fds->count == BOARD_REPLY_FDS)
		return -EMFILE;
	fds->fd[fds->count] = fd;
	*ret_slot = (int32_t)fds->count++;
	return 0;
}

static void backend_event_ready(void *dev, struct npu_core_file *file, void *file_cookie)
{
	bool *ready = file_cookie;

	(void)dev;
	(void)file;
	*ready = true;
}

const struct npu_shim board_backend_shim = {
	.alloc = backend_alloc,
	.free = backend_free,
	.now_ns = backend_now,
	.random = backend_random,
	.log = backend_log,
	.admin = backend_admin,
	.fd_get = backend_fd_get,
	.event_ready = backend_event_ready,
};
