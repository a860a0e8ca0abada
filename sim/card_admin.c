/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The queue pair in BAR2. Indices are the card's own; what BAR2 says of them is copied from there,
 * and only the driver's two are read. Completions without room wait in a list, and while there are
 * any no further command is taken, so the list is bounded by what the objects can cause by
 * themselves.
 */
#include "sim/card.h"

#include <string.h>

#include "sim/sim_fd.h"

#define LATE_FAULTS 4096u /* waiting completions beyond which fault records are not kept */
#define ADMIN_BUDGET 256u /* commands a turn */

/* Writes one if there is room. A driver that claims to have read more than there was gets none. */
static bool cq_write(struct card *card, const struct npu_hw_completion *completion)
{
	uint32_t head = __atomic_load_n(&card->regs->admin_cq_head, __ATOMIC_ACQUIRE);

	if (card->cq_tail - head >= CARD_CQ_ENTRIES)
		return false;
	memcpy(&card->cq[card->cq_tail & (CARD_CQ_ENTRIES - 1)], completion, sizeof(*completion));
	__atomic_store_n(&card->regs->admin_cq_tail, ++card->cq_tail, __ATOMIC_RELEASE);
	card->cq_written = true;
	return true;
}

void card_admin_complete(struct card *card, const struct npu_hw_completion *completion)
{
	struct card_late *late;

	if (card->resetting)
		return; /* the queue is emptied anyway */
	if (!card->late && cq_write(card, completion))
		return;
	if (completion->type == NPU_HW_CQ_FAULT && card->nlate >= LATE_FAULTS)
		return; /* the ring has its record */
	late = malloc(sizeof(*late));
	if (!late) {
		sim_log(SIM_LOG_ERROR, "out of memory: a completion is lost");
		return;
	}
	late->next = NULL;
	late->completion = *completion;
	*card->late_last = late;
	card->late_last = &late->next;
	card->nlate++;
}

void card_admin_done(struct card *card, uint32_t cid, uint32_t space, uint32_t id, int status,
		     uint32_t value)
{
	if (cid)
		card_admin_complete(card, &(struct npu_hw_completion){
			.type = NPU_HW_CQ_DONE, .cid = cid, .space = space, .id = id,
			.status = status, .value = value });
}

static void admin_late(struct card *card)
{
	while (card->late && cq_write(card, &card->late->completion)) {
		struct card_late *late = card->late;

		card->late = late->next;
		if (!card->late)
			card->late_last = &card->late;
		card->nlate--;
		free(late);
	}
}

static void admin_take(struct card *card)
{
	struct npu_hw_cmd cmd;
	int r;

	memcpy(&cmd, &card->sq[card->sq_head & (CARD_SQ_ENTRIES - 1)], sizeof(cmd));
	r = card_command(card, &cmd);
	if (r < 0 && sim_log_limit_ok(&card->limit))
		sim_log(SIM_LOG_INFO, "command %u of space %u, object %u: %s", cmd.op, cmd.space,
			cmd.id, strerror(-r));
	card_admin_done(card, cmd.cid, cmd.space, cmd.id, r, 0);
	__atomic_store_n(&card->regs->admin_sq_head, ++card->sq_head, __ATOMIC_RELEASE);
}

void card_admin_run(struct card *card)
{
	unsigned int budget = ADMIN_BUDGET;

	admin_late(card);
	while (card->state == NPU_HW_READY && !card->late && budget--) {
		uint32_t tail = __atomic_load_n(&card->regs->admin_sq_tail, __ATOMIC_ACQUIRE);

		/* More than fits is nonsense: then nothing is taken until it makes sense again. */
		if (tail == card->sq_head || tail - card->sq_head > CARD_SQ_ENTRIES)
			break;
		admin_take(card);
	}
	if (card->cq_written) {
		card->cq_written = false;
		card_interrupt(card, NPU_HW_IRQ_ADMIN);
	}
}

bool card_admin_waits(struct card *card)
{
	uint32_t tail = __atomic_load_n(&card->regs->admin_sq_tail, __ATOMIC_RELAXED);

	return card->state == NPU_HW_READY && !card->late && tail != card->sq_head &&
	       tail - card->sq_head <= CARD_SQ_ENTRIES;
}

void card_admin_reset(struct card *card)
{
	struct npu_hw_regs *regs = card->regs;

	while (card->late) {
		struct card_late *late = card->late;

		card->late = late->next;
		free(late);
	}
	card->late_last = &card->late;
	card->nlate = 0;
	card->cq_written = false;
	card->sq_head = card->cq_tail = 0;
	__atomic_store_n(&regs->admin_sq_tail, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&regs->admin_sq_head, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&regs->admin_cq_head, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&regs->admin_cq_tail, 0, __ATOMIC_RELEASE);
}
