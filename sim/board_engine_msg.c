/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages to an engine and its answers. Structs of the rules (npu_map, npu_queue ...) are only
 * read here; where that happens outside of an admin command the core's lock is held.
 */
#include "sim/board_engine_msg.h"

#include <string.h>

#include "sim/sim_fd.h"

void board_engine_say(struct board_engine *engine, enum engine_msg_type type, const void *payload,
		      size_t bytes)
{
	if (!engine->killed)
		board_channel_send(&engine->channel, type, payload, bytes, NULL, 0);
}

/* The message that is sent next has an answer that matters. */
static struct board_expect *engine_expect(struct board_engine *engine, enum engine_msg_type type,
					  uint32_t id)
{
	struct board_expect *expect = calloc(1, sizeof(*expect));

	if (!expect) {
		board_engine_kill(engine, NPU_FAULT_ENGINE, "cannot be followed: out of memory");
		return NULL;
	}
	expect->seq = engine->channel.sent + 1;
	expect->type = type;
	expect->id = id;
	*engine->expects_last = expect;
	engine->expects_last = &expect->next;
	return expect;
}

static void expect_pop(struct board_engine *engine)
{
	struct board_expect *expect = engine->expects;

	engine->expects = expect->next;
	if (!engine->expects)
		engine->expects_last = &engine->expects;
	free(expect->funcs);
	free(expect);
}

void board_engine_forget(struct board_engine *engine)
{
	while (engine->expects)
		expect_pop(engine);
}

/* ---- telling ------------------------------------------------------------------------------- */

static void engine_unmap(struct board_engine *engine, uint64_t address, uint64_t bytes,
			 uint64_t generation)
{
	struct engine_map message = {
		.address = address,
		.bytes = bytes,
		.generation = generation,
	};

	board_engine_say(engine, ENGINE_UNMAP, &message, sizeof(message));
}

/* Of memory that engines cannot reach (a card's host memory) they get the generation only. */
static void engine_map(struct board_engine *engine, const struct npu_map *map, uint64_t generation)
{
	struct engine_map message = {
		.address = map->address,
		.bytes = map->bytes,
		.offset = map->offset,
		.generation = generation,
		.flags = map->flags & NPU_MAP_READ_ONLY ? ENGINE_MAP_READ_ONLY : 0,
	};

	if (!map->mem->backend)
		engine_unmap(engine, map->address, map->bytes, generation);
	else if (!engine->killed)
		board_channel_send_memory(&engine->channel, ENGINE_MAP, &message, sizeof(message),
					  map->mem->backend);
}

void board_engine_map(struct board_engine *engine, const struct npu_map *map)
{
	engine_map(engine, map, map->generation);
}

void board_engine_unmap(struct board_engine *engine, const struct npu_map *map)
{
	engine_unmap(engine, map->address, map->bytes, map->generation);
}

void board_engine_context(struct board_engine *engine, const struct npu_ctx *ctx, bool clear)
{
	struct engine_context message = {
		.ctx = (uint32_t)ctx->obj.id,
		.clear_error = clear,
		.priority = ctx->priority,
		.weight = ctx->weight,
		.cores = ctx->cores,
	};

	board_engine_say(engine, ENGINE_CONTEXT, &message, sizeof(message));
}

void board_engine_queue(struct board_engine *engine, const struct npu_queue *queue)
{
	struct engine_queue message = {
		.slot = queue->slot,
		.queue = (uint32_t)queue->obj.id,
		.ctx = (uint32_t)queue->ctx->obj.id,
		.active = 1,
		.paused = queue->paused,
		.priority = queue->priority,
		.fail_mode = queue->fail_mode,
		.epoch = queue->epoch,
		.window = queue->window,
	};

	board_engine_say(engine, ENGINE_QUEUE, &message, sizeof(message));
}

void board_engine_queue_end(struct board_engine *engine, uint32_t slot)
{
	struct engine_queue message = { .slot = slot };

	if (engine->killed || !engine_expect(engine, ENGINE_QUEUE, slot))
		return;
	board_engine_say(engine, ENGINE_QUEUE, &message, sizeof(message));
	board_engine_expect_end(engine, slot);
}

void board_engine_module(struct board_engine *engine, const struct npu_module *module, bool report)
{
	struct engine_module message = {
		.bytes = module->bytes,
		.module = (uint32_t)module->obj.id,
	};
	struct board_expect *expect;

	if (engine->killed)
		return;
	expect = engine_expect(engine, ENGINE_MODULE, message.module);
	if (!expect)
		return;
	expect->report = report;
	board_channel_send_memory(&engine->channel, ENGINE_MODULE, &message, sizeof(message),
				  module->mem->backend);
}

void board_engine_module_end(struct board_engine *engine, uint32_t module)
{
	struct engine_module message = { .module = module };

	board_engine_say(engine, ENGINE_MODULE_DROP, &message, sizeof(message));
}

void board_engine_abort(struct board_engine *engine, uint32_t core, uint64_t run, uint32_t kind)
{
	struct engine_abort message = { .core = core, .kind = kind, .run = run };

	board_engine_say(engine, ENGINE_ABORT, &message, sizeof(message));
}

/* Each map holds the newest generation: what was unmapped since is not there either. */
static void replay_maps(struct board_engine *engine)
{
	const struct board_upper *upper = engine->space->board->upper;
	struct npu_session *session = engine->space->session;
	uint64_t cursor = 0, address = NPU_WINDOW_BASE;
	struct npu_map *map;
	bool any = false;

	while ((map = upper->map_next(session, &cursor))) {
		engine_map(engine, map, session->map_generation);
		any = true;
	}
	if (any || !session->map_generation)
		return;
	/* Nothing but a generation to tell: some page of the window that is not mapped. */
	if (session->slab_address == address)
		address += (NPU_SLAB_SIZE + NPU_PAGE_LARGE - 1) & ~(NPU_PAGE_LARGE - 1);
	engine_unmap(engine, address, NPU_PAGE_SMALL, session->map_generation);
}

void board_engine_replay(struct board_engine *engine)
{
	struct board_space *space = engine->space;
	const struct board_upper *upper = space->board->upper;
	struct npu_session *session = space->session;
	struct engine_start start = space->failed;
	struct npu_module *module;
	struct npu_queue *queue;
	struct npu_ctx *ctx;
	uint64_t cursor;

	upper->lock(space->board);
	replay_maps(engine);
	for (cursor = 0; (ctx = upper->ctx_next(session, &cursor));)
		board_engine_context(engine, ctx, false);
	for (cursor = 0; (module = upper->module_next(session, &cursor));) {
		if (module->state != NPU_MODULE_FAILED)
			board_engine_module(engine, module, module->state == NPU_MODULE_LOADING);
	}
	for (cursor = 0; (queue = upper->queue_next(session, &cursor));) {
		if (!board_space_ring_awaited(space, queue->slot))
			board_engine_queue(engine, queue);
	}
	upper->unlock(space->board);
	start.kind = NPU_FAULT_ENGINE;
	if (engine_expect(engine, ENGINE_START, 0))
		board_engine_say(engine, ENGINE_START, &start, sizeof(start));
}

/* ---- answers ------------------------------------------------------------------------------- */

static struct board_engine *channel_engine(struct board_channel *channel)
{
	return sim_container(channel, struct board_engine, channel);
}

static void module_done(struct board_engine *engine, const struct board_expect *expect,
			int32_t status, const char *text)
{
	struct board_space *space = engine->space;

	if (expect->report && !space->stopping)
		space->board->upper->module_done(space->board, space->session, expect->id,
						 status, expect->funcs,
						 status ? 0 : expect->count, text);
}

static void module_answer(struct board_engine *engine, const struct board_expect *expect,
			  const struct engine_ack *ack)
{
	if (ack->status == 0 && expect->report && expect->count != ack->value)
		module_done(engine, expect, -EPROTO, "the engine did not name every kernel");
	else
		module_done(engine, expect, ack->status, ack->status ? ack->text : NULL);
}

static void engine_answer(struct board_channel *channel, const struct engine_ack *ack)
{
	struct board_engine *engine = channel_engine(channel);
	struct board_space *space = engine->space;
	struct board_expect *expect = engine->expects;

	if (!expect || expect->seq != ack->seq) {
		if (ack->status && sim_log_limit_ok(&space->limit))
			sim_log(SIM_LOG_WARNING, "session %llu: engine %d refused a message: %s %s",
				(unsigned long long)space->id, (int)engine->pid,
				strerror(-ack->status), ack->text);
		return;
	}
	switch (expect->type) {
	case ENGINE_MODULE:
		module_answer(engine, expect, ack);
		break;
	case ENGINE_QUEUE:
		/* It cannot end what runs there: it must go. Its end closes the ring. */
		if (ack->status)
			board_engine_kill(engine, NPU_FAULT_ENGINE,
					  "does not let go of a queue");
		else
			board_space_ring_closed(space, expect->id);
		break;
	case ENGINE_START:
		space->failed.count = 0;
		if (ack->status)
			board_engine_kill(engine, NPU_FAULT_ENGINE, "does not start");
		break;
	default:
		break;
	}
	expect_pop(engine);
}

static void engine_funcs(struct board_channel *channel, const struct engine_funcs *funcs)
{
	struct board_engine *engine = channel_engine(channel);
	struct board_expect *expect = engine->expects;
	struct npu_core_func *all;

	/* Only for the message that is being acted on; the first one says how many there are. */
	if (!expect || expect->seq != channel->answered + 1 || expect->type != ENGINE_MODULE ||
	    funcs->module != expect->id || funcs->first != expect->count || !funcs->count ||
	    funcs->count > ENGINE_FUNCS_MAX || funcs->total > NPU_CORE_MAX_FUNCS ||
	    (expect->count && funcs->total != expect->total) || funcs->total < expect->count ||
	    funcs->count > funcs->total - expect->count) {
		channel->broken = "names kernels that it was not asked for";
		return;
	}
	expect->total = funcs->total;
	if (!expect->report) {
		expect->count += funcs->count;
		return;
	}
	all = reallocarray(expect->funcs, expect->count + funcs->count, sizeof(*all));
	if (!all) {
		channel->broken = "cannot be followed: out of memory";
		return;
	}
	expect->funcs = all;
	for (uint32_t i = 0; i < funcs->count; i++) {
		const struct engine_func_desc *desc = &funcs->funcs[i];
		struct npu_core_func *func = &all[expect->count++];

		memcpy(func->name, desc->name, sizeof(func->name));
		func->args_size = desc->args_size;
		func->params = desc->params;
		memcpy(func->param_sizes, desc->param_sizes, sizeof(func->param_sizes));
	}
}

static void engine_fault(struct board_channel *channel, const struct engine_fault_msg *fault)
{
	struct board_engine *engine = channel_engine(channel);
	struct board_space *space = engine->space;

	if (fault->fault.kind == NPU_FAULT_NONE || fault->fault.kind > NPU_FAULT_MEMORY ||
	    fault->slot >= NPU_MAX_QUEUES) {
		channel->broken = "reports a fault that does not exist";
		return;
	}
	engine->faulted = true;
	if (space->stopping)
		return;
	if (sim_log_limit_ok(&space->limit))
		sim_log(SIM_LOG_WARNING, "session %llu: task %llu in ring %u failed: fault %u at "
			"0x%llx, module %u function %u block %u",
			(unsigned long long)space->id, (unsigned long long)fault->fault.task,
			fault->slot, fault->fault.kind, (unsigned long long)fault->fault.address,
			fault->fault.module, fault->fault.func, fault->fault.block);
	space->board->upper->fault(space->board, space->session, fault->slot, &fault->fault);
	board_engine_look(engine);
}

const struct board_channel_ops board_engine_channel_ops = {
	.answer = engine_answer,
	.funcs = engine_funcs,
	.fault = engine_fault,
};

void board_engine_fail_load(struct board_engine *engine)
{
	struct board_expect *expect = engine->expects;

	if (expect && expect->type == ENGINE_MODULE && expect->seq == engine->channel.answered + 1)
		module_done(engine, expect, -EIO, "the engine died while it loaded the image");
}
