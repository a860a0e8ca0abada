/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the engine's slab back into BAR2. What the engine wrote before it raised done is copied
 * before done is: errors, events, host calls. An engine runs client code, so its words are claims:
 * done must lie between what was done and what it was given, everything else is copied as it is,
 * into its own client's slab.
 */
#include "sim/card.h"

#include <string.h>

#include "sim/sim_fd.h"

#define MASK (NPU_RING_ENTRIES - 1)
#define ERROR_TRIES 8u
#define STEPS_MAX 65536u /* entries of an INDIRECT that are searched for events */

struct npu_slab_header *card_header(struct card_space *space)
{
	return (struct npu_slab_header *)(void *)(space->slab + NPU_SLAB_HEADER);
}

struct npu_ring_ctrl *card_ring(struct card_space *space, uint32_t ring)
{
	return (struct npu_ring_ctrl *)(void *)(space->slab + NPU_SLAB_RINGS) + ring;
}

void card_mirror_raise(struct card_space *space)
{
	struct card *card = space->card;

	__atomic_fetch_or(&card->regs->space_cause[space->slot / 64], 1ull << space->slot % 64,
			  __ATOMIC_SEQ_CST);
	if (card->lost_irqs)
		card->lost_irqs--;
	else
		card_interrupt(card, NPU_HW_IRQ_SPACE0 + space->slot % 14);
}

/* The client sleeps and has asked to be woken. */
static void mirror_wake(struct card_space *space, uint32_t *flag)
{
	if (__atomic_load_n(flag, __ATOMIC_SEQ_CST) &&
	    __atomic_exchange_n(flag, 0, __ATOMIC_SEQ_CST))
		card_mirror_raise(space);
}

void card_mirror_state(struct card_space *space, struct card_queue *queue)
{
	struct npu_ring_ctrl *ring = card_ring(space, queue->queue.slot);

	__atomic_store_n(&ring->epoch, queue->queue.epoch, __ATOMIC_RELEASE);
	__atomic_store_n(&ring->fail_mode, queue->queue.fail_mode, __ATOMIC_RELEASE);
	if (__atomic_load_n(&ring->state, __ATOMIC_RELAXED) != NPU_RING_STOPPED)
		__atomic_store_n(&ring->state,
				 queue->queue.paused ? NPU_RING_PAUSED : NPU_RING_ACTIVE,
				 __ATOMIC_RELAXED);
}

/* ---- errors -------------------------------------------------------------------------------- */

static void error_read(const struct npu_ring_ctrl *from, struct npu_ring_error *ret_error)
{
	for (unsigned int i = 0; i < ERROR_TRIES; i++) {
		uint64_t count = __atomic_load_n(&from->error.count, __ATOMIC_ACQUIRE);

		memcpy(ret_error, &from->error, sizeof(*ret_error));
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (__atomic_load_n(&from->error.begin, __ATOMIC_RELAXED) == count)
			return;
	}
}

/* What the entry was before the card put something else in its place. */
static uint32_t error_op(struct card_space *space, uint32_t slot, uint64_t task, uint32_t op)
{
	const struct npu_entry *entries =
		(const void *)(space->slab + NPU_SLAB_DATA + (uint64_t)slot * NPU_RING_BYTES);
	uint8_t was = __atomic_load_n(&entries[task & MASK].op, __ATOMIC_RELAXED);

	return was < NPU_OP_MAX ? was : op;
}

static void mirror_error(struct card_space *space, struct card_queue *queue,
			 const struct npu_ring_ctrl *from, struct npu_ring_ctrl *to)
{
	struct board_space *below = space->session.backend;
	uint32_t ctx = (uint32_t)queue->queue.ctx->obj.id;
	struct npu_ring_error error;
	uint64_t count;
	uint32_t stopped;

	error_read(from, &error);
	count = error.count;
	error.task += queue->delta;
	error.op = error_op(space, queue->queue.slot, error.task, error.op);
	__atomic_store_n(&to->error.begin, count, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	memcpy(&to->error.kind, &error.kind,
	       sizeof(error) - offsetof(struct npu_ring_error, kind));
	__atomic_store_n(&to->error.count, count, __ATOMIC_RELEASE);
	__atomic_store_n(&to->error_count, count, __ATOMIC_RELEASE);
	stopped = __atomic_load_n(&board_space_header(below)->context_error[ctx], __ATOMIC_ACQUIRE);
	if (stopped) {
		__atomic_store_n(&card_header(space)->context_error[ctx], stopped,
				 __ATOMIC_RELEASE);
		__atomic_store_n(&to->state, __atomic_load_n(&from->state, __ATOMIC_RELAXED),
				 __ATOMIC_RELAXED);
	}
}

/* ---- events -------------------------------------------------------------------------------- */

static void mirror_event(struct card_space *space, uint32_t index)
{
	struct board_space *below = space->session.backend;
	const struct npu_event_word *from;
	struct npu_event_word *to;
	uint32_t done;

	if (index >= NPU_MAX_EVENTS)
		return;
	from = (const struct npu_event_word *)(void *)(below->map + NPU_SLAB_EVENTS) + index;
	to = (struct npu_event_word *)(void *)(space->slab + NPU_SLAB_EVENTS) + index;
	/* A record raises done last: read it first, so that the rest belongs to it or is newer. */
	done = __atomic_load_n(&from->done, __ATOMIC_ACQUIRE);
	__atomic_store_n(&to->time_ns, __atomic_load_n(&from->time_ns, __ATOMIC_RELAXED),
			 __ATOMIC_RELAXED);
	__atomic_store_n(&to->error, __atomic_load_n(&from->error, __ATOMIC_RELAXED),
			 __ATOMIC_RELAXED);
	__atomic_store_n(&to->done, done, __ATOMIC_RELEASE);
}

static bool entry_has_event(const struct npu_entry *entry)
{
	return entry->op == NPU_OP_EVENT_RECORD ||
	       (entry->op == NPU_OP_EVENT_WAIT && (entry->flags & NPU_ENTRY_RESET));
}

/* Events that an array in device memory has recorded. */
static void mirror_indirect(struct card_space *space, const struct npu_entry *entry)
{
	uint32_t count = entry->indirect.count < STEPS_MAX ? entry->indirect.count : STEPS_MAX;

	for (uint32_t i = 0; i < count; i++) {
		uint64_t address = entry->indirect.address + (uint64_t)i * NPU_ENTRY_SIZE, n, bus;
		char *at = card_dma_device(space, address, NPU_ENTRY_SIZE, false, &n, &bus);
		struct npu_entry step;

		if (!at || n < NPU_ENTRY_SIZE)
			return;
		memcpy(&step, at, sizeof(step));
		if (entry_has_event(&step))
			mirror_event(space, step.event.index);
	}
}

/* What entries [queue->done, done) have written. True: an event was recorded. */
static bool mirror_events(struct card_space *space, struct card_queue *queue, uint64_t done)
{
	struct board_space *below = space->session.backend;
	const struct npu_entry *entries = (const void *)(below->map + NPU_SLAB_DATA +
		(uint64_t)queue->queue.slot * NPU_RING_BYTES);
	bool any = false;

	for (uint64_t i = queue->done; i != done; i++) {
		struct npu_entry entry;

		memcpy(&entry, &entries[i & MASK], sizeof(entry));
		if (entry_has_event(&entry))
			mirror_event(space, entry.event.index);
		else if (entry.op == NPU_OP_INDIRECT)
			mirror_indirect(space, &entry);
		else
			continue;
		any = true;
	}
	return any;
}

/* ---- a ring -------------------------------------------------------------------------------- */

static bool mirror_host_call(struct card_space *space, struct card_queue *queue,
			     struct npu_ring_ctrl *from, struct npu_ring_ctrl *to)
{
	uint64_t seq = __atomic_load_n(&from->host_seq, __ATOMIC_ACQUIRE);

	if (seq == queue->host_seq)
		return false;
	queue->host_seq = seq;
	__atomic_store_n(&to->host_fn, __atomic_load_n(&from->host_fn, __ATOMIC_RELAXED),
			 __ATOMIC_RELAXED);
	__atomic_store_n(&to->host_arg, __atomic_load_n(&from->host_arg, __ATOMIC_RELAXED),
			 __ATOMIC_RELAXED);
	__atomic_store_n(&to->host_seq, seq, __ATOMIC_SEQ_CST);
	mirror_wake(space, &card_header(space)->host_calls_waiting);
	return true;
}

bool card_mirror_ring(struct card_space *space, struct card_queue *queue)
{
	struct npu_ring_ctrl *from = board_space_ring(space->session.backend, queue->queue.slot);
	struct npu_ring_ctrl *to = card_ring(space, queue->queue.slot);
	uint64_t done = __atomic_load_n(&from->done, __ATOMIC_ACQUIRE);
	bool changed = mirror_host_call(space, queue, from, to), event;
	uint64_t errors = __atomic_load_n(&from->error_count, __ATOMIC_ACQUIRE);

	if (errors != queue->errors) {
		queue->errors = errors;
		mirror_error(space, queue, from, to);
		changed = true;
	}
	if (done == queue->done || done - queue->done > queue->fetched - queue->done)
		return changed;
	event = mirror_events(space, queue, done);
	queue->done = done;
	__atomic_store_n(&to->head, done + queue->delta, __ATOMIC_RELAXED);
	__atomic_store_n(&to->done, done + queue->delta, __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (event || done + queue->delta >= __atomic_load_n(&to->want, __ATOMIC_RELAXED))
		mirror_wake(space, &card_header(space)->client_waiting);
	return true;
}

bool card_mirror_space(struct card_space *space)
{
	struct board_space *below = space->session.backend;
	struct npu_slab_header *header = card_header(space);
	uint64_t epoch = __atomic_load_n(&board_space_header(below)->device_epoch,
					 __ATOMIC_ACQUIRE);

	if (epoch == space->epoch)
		return false;
	space->epoch = epoch;
	__atomic_store_n(&header->device_epoch, epoch, __ATOMIC_SEQ_CST);
	mirror_wake(space, &header->client_waiting);
	return true;
}
