/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the commands do: a table with one function for each. They check numbers, then go the way
 * that the rules' commands go on a board of npud's: through the board's admin function, with
 * objects of ours. Numbers come from a driver: every one is compared with a bound before it is
 * used.
 */
#include "sim/card.h"

#include <string.h>

#include "sim/board_engine.h"
#include "sim/board_watch.h"
#include "sim/sim_fd.h"

static int board_admin(struct card *card, struct npu_admin_cmd *admin)
{
	int r = board_backend_shim.admin(card->board, admin);

	return r < 0 ? r : 0;
}

/* The space of a command, if its driver may still use it. */
static struct card_space *command_space(struct card *card, const struct npu_hw_cmd *cmd)
{
	struct card_space *space = cmd->space < card->slots ? card->spaces[cmd->space] : NULL;

	return space && space->attached ? space : NULL;
}

/* ---- spaces -------------------------------------------------------------------------------- */

static int command_space_create(struct card *card, struct npu_hw_cmd *cmd)
{
	struct npu_admin_cmd admin = { .op = NPU_ADMIN_SPACE_CREATE };
	uint64_t address = cmd->space_create.slab_address;
	struct card_space *space;
	int r;

	if (cmd->space >= card->slots)
		return -ERANGE;
	if (card->spaces[cmd->space])
		return -EEXIST;
	if (address < NPU_WINDOW_BASE || address % NPU_PAGE_LARGE ||
	    address - NPU_WINDOW_BASE > NPU_WINDOW_SIZE - NPU_SLAB_SIZE)
		return -ERANGE;
	space = calloc(1, sizeof(*space));
	if (!space)
		return -ENOMEM;
	space->card = card;
	space->slot = cmd->space;
	space->completion.fd = -1;
	space->session.obj.id = cmd->session;
	space->session.uid = cmd->space_create.uid;
	space->session.pid = cmd->space_create.pid;
	space->session.slab_address = address;
	admin.session = &space->session;
	r = board_admin(card, &admin);
	if (r == 0) {
		card->spaces[cmd->space] = space;
		r = card_fetch_attach(space);
		if (r < 0)
			card_space_drop(space);
	} else {
		free(space);
	}
	return r;
}

static int command_space_stop(struct card *card, struct npu_hw_cmd *cmd)
{
	struct card_space *space = command_space(card, cmd);
	struct npu_admin_cmd admin = { .op = NPU_ADMIN_SPACE_STOP };

	if (!space)
		return -ENOENT;
	space->stopping = true;
	admin.session = &space->session;
	return board_admin(card, &admin);
}

void card_space_drop(struct card_space *space)
{
	struct npu_admin_cmd admin = { .op = NPU_ADMIN_SPACE_STOP, .session = &space->session };
	struct card *card = space->card;

	if (space->dropped)
		return;
	space->dropped = true;
	space->stopping = true;
	card_fetch_detach(space);
	board_admin(card, &admin);
	card_space_clear(space);
	admin.op = NPU_ADMIN_SPACE_DESTROY;
	board_admin(card, &admin);
}

static int command_space_destroy(struct card *card, struct npu_hw_cmd *cmd)
{
	struct card_space *space = command_space(card, cmd);

	if (!space)
		return -ENOENT;
	card_space_drop(space);
	return 0;
}

/* ---- memory and maps ----------------------------------------------------------------------- */

static int command_mem_create(struct card *card, struct npu_hw_cmd *cmd)
{
	return card_mem_create(card, cmd);
}

static int command_mem_destroy(struct card *card, struct npu_hw_cmd *cmd)
{
	struct card_mem *mem = card_mem_find(card, cmd->id);

	if (!mem)
		return -ENOENT;
	card_mem_drop(mem);
	return 0;
}

static int command_map(struct card *card, struct npu_hw_cmd *cmd)
{
	struct card_space *space = command_space(card, cmd);

	return space ? card_map_add(space, cmd) : -ENOENT;
}

static int command_unmap(struct card *card, struct npu_hw_cmd *cmd)
{
	struct card_space *space = command_space(card, cmd);

	return space ? card_map_remove(space, cmd->map.address, cmd->map.generation) : -ENOENT;
}

/* ---- contexts ------------------------------------------------------------------------------ */

static struct card_ctx *context_find(struct card_space *space, uint32_t id)
{
	return id && id <= NPU_CORE_MAX_CTX ? space->ctxs[id] : NULL;
}

static int command_ctx_set(struct card *card, struct npu_hw_cmd *cmd)
{
	struct card_space *space = command_space(card, cmd);
	struct npu_admin_cmd admin = { .op = NPU_ADMIN_CTX_SET };
	struct card_ctx *ctx;

	if (!space || !cmd->id || cmd->id > NPU_CORE_MAX_CTX)
		return -ENOENT;
	ctx = context_find(space, cmd->id);
	if (!ctx != !!cmd->ctx.created)
		return ctx ? -EEXIST : -ENOENT;
	if (!ctx) {
		ctx = calloc(1, sizeof(*ctx));
		if (!ctx)
			return -ENOMEM;
		ctx->ctx.obj.id = cmd->id;
		space->ctxs[cmd->id] = ctx;
	}
	ctx->ctx.priority = cmd->ctx.priority;
	ctx->ctx.weight = cmd->ctx.weight;
	ctx->ctx.cores = cmd->ctx.cores;
	admin.session = &space->session;
	admin.ctx.ctx = &ctx->ctx;
	admin.ctx.created = cmd->ctx.created;
	admin.ctx.clear_error = cmd->ctx.clear_error;
	if (cmd->ctx.created || cmd->ctx.clear_error)
		__atomic_store_n(&card_header(space)->context_error[cmd->id], 0, __ATOMIC_RELEASE);
	return board_admin(card, &admin);
}

static int command_ctx_drop(struct card *card, struct npu_hw_cmd *cmd)
{
	struct card_space *space = command_space(card, cmd);
	struct card_ctx *ctx = space ? context_find(space, cmd->id) : NULL;

	if (!ctx)
		return -ENOENT;
	for (uint32_t i = 0; i < NPU_MAX_QUEUES; i++) {
		if (space->queues[i] && space->queues[i]->queue.ctx == &ctx->ctx)
			return -EBUSY;
	}
	space->ctxs[cmd->id] = NULL;
	free(ctx);
	return 0;
}

/* ---- queues -------------------------------------------------------------------------------- */

static struct card_queue *queue_find(struct card_space *space, uint32_t id)
{
	for (uint32_t i = 0; i < NPU_MAX_QUEUES; i++) {
		if (space->queues[i] && space->queues[i]->queue.obj.id == id)
			return space->queues[i];
	}
	return NULL;
}

static int queue_new(struct card_space *space, struct npu_hw_cmd *cmd, struct card_ctx *ctx)
{
	struct board_space *below = space->session.backend;
	struct card_queue *queue;
	int r;

	if (cmd->queue.slot >= NPU_MAX_QUEUES || !cmd->id)
		return -EINVAL;
	if (space->queues[cmd->queue.slot] || queue_find(space, cmd->id))
		return -EEXIST;
	if (below->lost)
		return -EIO;
	queue = calloc(1, sizeof(*queue));
	if (!queue)
		return -ENOMEM;
	queue->queue.obj.id = cmd->id;
	queue->queue.session = &space->session;
	queue->queue.slot = cmd->queue.slot;
	queue->queue.ctx = &ctx->ctx;
	queue->queue.paused = cmd->queue.paused;
	queue->queue.priority = cmd->queue.priority;
	queue->queue.fail_mode = cmd->queue.fail_mode;
	queue->queue.epoch = cmd->queue.epoch;
	queue->queue.window = cmd->queue.window;
	queue->queue.started = true;
	card_fetch_fresh(space, queue);
	r = board_space_ring_open(below, &queue->queue);
	if (r < 0) {
		free(queue);
		return r;
	}
	space->queues[cmd->queue.slot] = queue;
	below->wanted = true;
	if (r == BOARD_CALL_HELD)
		return 0; /* opened, and told to the engine, later */
	if (below->engine && !below->engine->killed)
		board_engine_queue(below->engine, &queue->queue);
	card_fetch_open(space, queue);
	return 0;
}

static int command_queue_set(struct card *card, struct npu_hw_cmd *cmd)
{
	struct card_space *space = command_space(card, cmd);
	struct npu_admin_cmd admin = { .op = NPU_ADMIN_QUEUE_SET };
	struct card_queue *queue;
	struct card_ctx *ctx;
	int r;

	if (!space)
		return -ENOENT;
	ctx = context_find(space, cmd->queue.ctx);
	if (!ctx)
		return -ENOENT;
	if (cmd->queue.fail_mode > NPU_FAIL_STOP)
		return -EINVAL;
	if (cmd->queue.fresh)
		return queue_new(space, cmd, ctx);
	queue = queue_find(space, cmd->id);
	if (!queue || queue->queue.slot != cmd->queue.slot || queue->queue.ctx != &ctx->ctx)
		return -ENOENT;
	queue->queue.paused = cmd->queue.paused;
	queue->queue.priority = cmd->queue.priority;
	queue->queue.fail_mode = cmd->queue.fail_mode;
	queue->queue.epoch = cmd->queue.epoch;
	queue->queue.window = cmd->queue.window;
	card_mirror_state(space, queue);
	if (!queue->open)
		return 0; /* all of it is told once the ring is free */
	admin.session = &space->session;
	admin.queue = &queue->queue;
	r = board_admin(card, &admin);
	card_fetch_look(space, queue->queue.slot);
	return r;
}

static int command_queue_drop(struct card *card, struct npu_hw_cmd *cmd)
{
	struct card_space *space = command_space(card, cmd);
	struct card_queue *queue = space ? queue_find(space, cmd->id) : NULL;
	struct npu_admin_cmd admin = { .op = NPU_ADMIN_QUEUE_DROP };

	if (!queue)
		return -ENOENT;
	admin.session = &space->session;
	admin.queue = &queue->queue;
	/* One that was never opened: its predecessor's end is still to come. */
	if (queue->open)
		board_admin(card, &admin);
	space->queues[queue->queue.slot] = NULL;
	free(queue);
	return 0;
}

/* ---- modules ------------------------------------------------------------------------------- */

static int command_module_load(struct card *card, struct npu_hw_cmd *cmd)
{
	struct card_space *space = command_space(card, cmd);

	return space ? card_module_load(space, cmd) : -ENOENT;
}

static int command_module_drop(struct card *card, struct npu_hw_cmd *cmd)
{
	struct card_space *space = command_space(card, cmd);

	return space ? card_module_drop(space, cmd->id) : -ENOENT;
}

static int command_func_read(struct card *card, struct npu_hw_cmd *cmd)
{
	struct card_space *space = command_space(card, cmd);
	struct card_module *module = space ? card_module_find(space, cmd->id) : NULL;
	uint64_t address = cmd->func_read.address;

	if (!module)
		return -ENOENT;
	if (module->module.state != NPU_MODULE_READY)
		return module->module.state == NPU_MODULE_LOADING ? -EAGAIN : -EIO;
	if (cmd->func_read.first > module->count ||
	    cmd->func_read.count > module->count - cmd->func_read.first)
		return -ERANGE;
	for (uint32_t i = 0; i < cmd->func_read.count; i++) {
		const struct npu_core_func *func = &module->funcs[cmd->func_read.first + i];
		struct npu_hw_func out = { .args_size = func->args_size, .params = func->params };
		int r;

		memcpy(out.name, func->name, sizeof(out.name));
		memcpy(out.param_sizes, func->param_sizes, sizeof(out.param_sizes));
		r = card_dma_write(card, address + i * sizeof(out), &out, sizeof(out));
		if (r < 0)
			return r;
	}
	return 0;
}

/* ---- the card ------------------------------------------------------------------------------ */

static int command_reset(struct card *card, struct npu_hw_cmd *cmd)
{
	struct npu_admin_cmd admin = { .op = NPU_ADMIN_RESET };

	(void)cmd;
	return board_admin(card, &admin);
}

static int inject_queue(struct card *card, struct npu_hw_cmd *cmd)
{
	struct card_space *space = command_space(card, cmd);
	struct card_queue *queue = space ? queue_find(space, cmd->inject.queue) : NULL;

	if (!queue)
		return -ENOENT;
	queue->hung = true;
	return 0;
}

static int command_inject(struct card *card, struct npu_hw_cmd *cmd)
{
	struct npu_admin_cmd admin = { .op = NPU_ADMIN_INJECT };
	struct card_space *space = command_space(card, cmd);
	int r;

	switch (cmd->inject.kind) {
	case NPU_INJECT_HUNG_QUEUE:
		return inject_queue(card, cmd);
	case NPU_INJECT_LOST_INTERRUPT:
		card->lost_irqs = cmd->inject.value ? (uint32_t)cmd->inject.value : 1;
		return 0;
	case NPU_INJECT_FIRMWARE_DEATH:
		card_regs_die(card);
		return 0;
	case NPU_INJECT_LINK_LOSS:
		card_regs_error(card, NPU_HW_CAUSE_LINK, 0, 0);
		return 0;
	default:
		break;
	}
	admin.session = space && cmd->session ? &space->session : NULL;
	admin.inject.kind = cmd->inject.kind;
	admin.inject.address = cmd->inject.address;
	admin.inject.value = cmd->inject.value;
	admin.inject.page = cmd->inject.page;
	if (cmd->inject.kind == NPU_INJECT_ECC_UNCORRECTABLE &&
	    cmd->inject.page >= card->board->options.memory / NPU_PAGE_SMALL)
		return -ERANGE;
	r = board_admin(card, &admin);
	if (r == 0 && cmd->inject.kind == NPU_INJECT_ECC_CORRECTABLE)
		card_regs_error(card, NPU_HW_CAUSE_ECC_CORRECTED, cmd->inject.address, 0);
	return r;
}

static int command_counters(struct card *card, struct npu_hw_cmd *cmd)
{
	struct npu_admin_cmd admin = { .op = NPU_ADMIN_COUNTERS };
	struct card_space *space = command_space(card, cmd);
	__u64 values[NPU_COUNTER_MAX] = { 0 };
	int r;

	if (!(cmd->flags & NPU_HW_CMD_CARD)) {
		if (!space)
			return -ENOENT;
		admin.session = &space->session;
	}
	admin.counters = values;
	r = board_admin(card, &admin);
	return r < 0 ? r : card_dma_write(card, cmd->counters.address, values, sizeof(values));
}

/* ---- the table ----------------------------------------------------------------------------- */

static int (*const command_table[])(struct card *card, struct npu_hw_cmd *cmd) = {
	[NPU_ADMIN_SPACE_CREATE] = command_space_create,
	[NPU_ADMIN_SPACE_STOP] = command_space_stop,
	[NPU_ADMIN_SPACE_DESTROY] = command_space_destroy,
	[NPU_ADMIN_MEM_CREATE] = command_mem_create,
	[NPU_ADMIN_MEM_DESTROY] = command_mem_destroy,
	[NPU_ADMIN_MAP] = command_map,
	[NPU_ADMIN_UNMAP] = command_unmap,
	[NPU_ADMIN_CTX_SET] = command_ctx_set,
	[NPU_ADMIN_CTX_DROP] = command_ctx_drop,
	[NPU_ADMIN_QUEUE_SET] = command_queue_set,
	[NPU_ADMIN_QUEUE_DROP] = command_queue_drop,
	[NPU_ADMIN_MODULE_LOAD] = command_module_load,
	[NPU_ADMIN_MODULE_DROP] = command_module_drop,
	[NPU_ADMIN_RESET] = command_reset,
	[NPU_ADMIN_INJECT] = command_inject,
	[NPU_ADMIN_COUNTERS] = command_counters,
	[NPU_HW_OP_FUNC_READ] = command_func_read,
};

int card_command(struct card *card, struct npu_hw_cmd *cmd)
{
	if (cmd->op >= NPU_ARRAY_SIZE(command_table) || !command_table[cmd->op])
		return -EOPNOTSUPP;
	if (cmd->flags & ~NPU_HW_CMD_CARD)
		return -EINVAL;
	return command_table[cmd->op](card, cmd);
}
