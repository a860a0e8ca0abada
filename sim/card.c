/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The card put together, and what the board tells who stands above it: here that becomes
 * completions for the driver. Strings that come from an engine are made printable by the driver's
 * rules.
 */
#include "sim/card.h"

#include <string.h>
#include <sys/mman.h>

#include "sim/board_engine.h"
#include "sim/sim_fd.h"

static struct card_space *session_space(struct npu_session *session)
{
	return sim_container(session, struct card_space, session);
}

/* ---- what the board reads ------------------------------------------------------------------ */

/* One thread makes every call. */
static void upper_lock(struct board *board)
{
	(void)board;
}

static struct npu_map *upper_map_next(struct npu_session *session, uint64_t *cursor)
{
	struct card_space *space = session_space(session);

	return *cursor < space->nmaps ? &space->maps[(*cursor)++]->map : NULL;
}

static struct npu_ctx *upper_ctx_next(struct npu_session *session, uint64_t *cursor)
{
	struct card_space *space = session_space(session);

	while (*cursor <= NPU_CORE_MAX_CTX) {
		struct card_ctx *ctx = space->ctxs[(*cursor)++];

		if (ctx)
			return &ctx->ctx;
	}
	return NULL;
}

static struct npu_module *upper_module_next(struct npu_session *session, uint64_t *cursor)
{
	struct card_module *module = session_space(session)->modules;

	for (uint64_t i = 0; i < *cursor && module; i++)
		module = module->next;
	(*cursor)++;
	return module ? &module->module : NULL;
}

/* Those that the engine has not let go of the slot for are no queues yet. */
static struct npu_queue *upper_queue_next(struct npu_session *session, uint64_t *cursor)
{
	struct card_space *space = session_space(session);

	while (*cursor < NPU_MAX_QUEUES) {
		struct card_queue *queue = space->queues[(*cursor)++];

		if (queue)
			return &queue->queue;
	}
	return NULL;
}

static struct npu_queue *upper_queue_at(struct npu_session *session, uint32_t slot)
{
	struct card_queue *queue = session_space(session)->queues[slot];

	return queue ? &queue->queue : NULL;
}

/* ---- what the board tells ------------------------------------------------------------------ */

static void upper_module_done(struct board *board, struct npu_session *session, uint32_t id,
			      int32_t status, const struct npu_core_func *funcs, uint32_t count,
			      const char *text)
{
	struct card_space *space = session_space(session);
	struct card_module *module = card_module_find(space, id);
	struct npu_hw_completion completion = {
		.type = NPU_HW_CQ_MODULE, .space = space->slot, .id = id,
	};

	if (!module || !space->attached)
		return;
	if (status == 0 && count) {
		module->funcs = calloc(count, sizeof(*funcs));
		if (module->funcs)
			memcpy(module->funcs, funcs, count * sizeof(*funcs));
		else
			status = -ENOMEM;
	}
	module->count = status ? 0 : count;
	module->module.state = status ? NPU_MODULE_FAILED : NPU_MODULE_READY;
	completion.status = status;
	completion.value = module->count;
	if (text)
		memcpy(completion.text, text, strnlen(text, sizeof(completion.text) - 1));
	card_admin_complete(board->card, &completion);
}

static void upper_fault(struct board *board, struct npu_session *session, uint32_t slot,
			const struct npu_fault_record *record)
{
	struct card_space *space = session_space(session);
	struct card_queue *queue = slot < NPU_MAX_QUEUES ? space->queues[slot] : NULL;
	struct npu_hw_completion completion = {
		.type = NPU_HW_CQ_FAULT, .space = space->slot, .fault = *record,
	};

	if (!space->attached)
		return;
	if (slot == NPU_SLOT_NONE && record->kind == NPU_FAULT_LOST)
		completion.type = NPU_HW_CQ_SPACE_LOST;
	if (queue) {
		completion.id = (uint32_t)queue->queue.obj.id;
		completion.value = slot;
		completion.fault.queue = completion.id;
		completion.fault.context = (uint32_t)queue->queue.ctx->obj.id;
		completion.fault.task += queue->delta;
		card_fetch_look(space, slot);
	}
	card_admin_complete(board->card, &completion);
}

static void upper_engine_started(struct board *board, struct npu_session *session)
{
	struct card_space *space = session_space(session);
	struct board_space *below = session->backend;

	if (space->attached)
		card_admin_complete(board->card, &(struct npu_hw_completion){
			.type = NPU_HW_CQ_ENGINE, .space = space->slot, .value = below->starts });
}

/* The last step of a space: its slab in BAR2 is nobody's now, and empty. */
static void space_erased(struct board_job *mark)
{
	struct card_space *space = sim_container(mark, struct card_space, erased);
	struct card *card = space->card;

	card->spaces[space->slot] = NULL;
	card_admin_complete(card, &(struct npu_hw_completion){
		.type = NPU_HW_CQ_SPACE_GONE, .space = space->slot });
	free(space);
}

static void upper_space_gone(struct board *board, struct npu_session *session)
{
	struct card_space *space = session_space(session);
	struct card *card = board->card;

	space->gone = true;
	board_release_range(board->release, card->bar_fd,
			    card->slab_offset + space->slot * card->slab_stride,
			    card->slab_stride);
	board_release_mark(board->release, &space->erased, space_erased);
}

static void upper_mem_gone(struct board *board, struct npu_mem *mem)
{
	card_mem_gone(board->card, mem);
}

static void upper_page_bad(struct board *board, uint32_t page)
{
	card_regs_error(board->card, NPU_HW_CAUSE_ECC_UNCORRECTED, page * NPU_PAGE_SMALL, page);
}

/* There is no new engine any more: for the driver the firmware has died. */
static void upper_health(struct board *board, uint32_t health)
{
	if (health != NPU_HEALTH_OK)
		card_regs_die(board->card);
}

static void upper_ring_opened(struct board *board, struct npu_session *session, uint32_t slot)
{
	struct card_space *space = session_space(session);
	struct card_queue *queue = space->queues[slot];

	(void)board;
	if (queue && !queue->open && space->attached)
		card_fetch_open(space, queue);
}

const struct board_upper card_upper = {
	.lock = upper_lock,
	.unlock = upper_lock,
	.map_next = upper_map_next,
	.ctx_next = upper_ctx_next,
	.module_next = upper_module_next,
	.queue_next = upper_queue_next,
	.queue_at = upper_queue_at,
	.module_done = upper_module_done,
	.fault = upper_fault,
	.engine_started = upper_engine_started,
	.space_gone = upper_space_gone,
	.mem_gone = upper_mem_gone,
	.page_bad = upper_page_bad,
	.health = upper_health,
	.ring_opened = upper_ring_opened,
};

/* ---- the card ------------------------------------------------------------------------------ */

int card_new(struct board *board, int listen_fd, struct card **ret_card)
{
	struct card *card = calloc(1, sizeof(*card));
	int r;

	if (!card) {
		close(listen_fd);
		return -ENOMEM;
	}
	card->board = board;
	card->bar_fd = -1;
	card->late_last = &card->late;
	card->ivshmem.listen.fd = card->ivshmem.peer.fd = -1;
	for (unsigned int i = 0; i < NPU_HW_VECTORS; i++)
		card->ivshmem.bells[i].source.fd = card->ivshmem.irqs[i] = -1;
	r = card_regs_new(card);
	if (r == 0)
		r = card_ivshmem_new(card, listen_fd);
	if (r < 0) {
		sim_log(SIM_LOG_ERROR, "cannot set up the card: %s", strerror(-r));
		if (card->ivshmem.listen.fd < 0)
			close(listen_fd);
		card_stop(card);
		card_free(card);
		return r;
	}
	*ret_card = card;
	return 0;
}

void card_run(struct card *card)
{
	uint64_t now = sim_now();

	card_fetch_run(card, now);
	card_admin_run(card);
	card_regs_run(card, now);
}

uint64_t card_next(struct card *card)
{
	uint64_t next = card_fetch_next(card);

	if (card_admin_waits(card))
		return 0;
	return card->heartbeat_ns < next ? card->heartbeat_ns : next;
}

/* The board is ending: an engine that was dropped before may still be on its way out. */
static void stop_space(struct card_space *space)
{
	struct board_space *below = space->session.backend;

	if (!space->dropped) {
		card_space_drop(space);
	} else if (!space->gone && below->engine) {
		board_engine_abandon(below->engine);
		board_space_end(below);
	}
}

void card_stop(struct card *card)
{
	card_ivshmem_free(card);
	card->resetting = true; /* nobody reads completions any more */
	for (uint32_t slot = 0; slot < card->slots; slot++) {
		if (card->spaces[slot])
			stop_space(card->spaces[slot]);
	}
	card_mem_drop_all(card);
}

void card_free(struct card *card)
{
	for (uint32_t slot = 0; slot < card->slots; slot++)
		free(card->spaces[slot]);
	while (card->going) {
		struct card_mem *mem = card->going;

		card->going = mem->next;
		if (mem->map)
			munmap(mem->map, mem->mem.bytes);
		free(mem);
	}
	if (card->regs)
		card_admin_reset(card);
	card_dma_forget(card);
	card_regs_free(card);
	free(card);
}
