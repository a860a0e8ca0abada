/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One ring: taking entries, completing them, and the flags that let client and device sleep. See
 * kdrv/uapi/npu_queue.h for the protocol. The entry is copied once and checked; tail is checked
 * against what a ring can hold. A client that breaks its own ring gets NPU_FAULT_ENTRY, once, and the
 * ring is taken to be empty.
 */
#include <string.h>
#include "sim/engine.h"

#define MASK (NPU_RING_ENTRIES - 1)
#define BUDGET 64u                 /* entries of one ring before others get their turn */
#define AHEAD 4u                   /* entries to prefetch */
#define MAP_WAIT_NS 5000000000ull /* for a mapping that an entry names */

void engine_ring_mark(struct engine *e, uint32_t slot)
{
	atomic_fetch_or(&e->ready[slot / 64], 1ull << (slot % 64));
	engine_wake(e, false);
}

void engine_ring_unblock(struct engine *e)
{
	bool any = false;

	for (unsigned i = 0; i < ENGINE_WORDS; i++) {
		uint64_t bits;

		if (!atomic_load_explicit(&e->blocked[i], memory_order_relaxed))
			continue;
		bits = atomic_exchange(&e->blocked[i], 0);
		if (bits) {
			atomic_fetch_or(&e->ready[i], bits);
			any = true;
		}
	}
	if (any)
		engine_wake(e, false);
}

void engine_ring_attach(struct engine *e, struct engine_ring *ring, uint32_t slot)
{
	char *data = (char *)e->slab_address + NPU_SLAB_DATA + (size_t)slot * NPU_RING_BYTES;

	ring->slot = slot;
	ring->ctrl = &e->rings_ctrl[slot];
	ring->entries = (struct npu_entry *)data;
	ring->args = (uint8_t *)data + NPU_RING_ENTRIES * NPU_ENTRY_SIZE;
	ring->task_ns = UINT64_MAX;
	ring->blocked_since = 0;
	ring->host_posted = 0;
	memset(&ring->indirect, 0, sizeof(ring->indirect));
	/* Zero for a new queue; where its last engine stopped, for a replacement. */
	ring->head = __atomic_load_n(&ring->ctrl->head, __ATOMIC_ACQUIRE);
	ring->done = __atomic_load_n(&ring->ctrl->done, __ATOMIC_ACQUIRE);
	if (ring->head - ring->done > NPU_RING_ENTRIES)
		ring->done = ring->head;
	__atomic_store_n(&ring->ctrl->state, NPU_RING_ACTIVE, __ATOMIC_RELAXED);
}

bool engine_ring_arm(struct engine_ring *ring)
{
	uint32_t one = 1;

	__atomic_store_n(&ring->ctrl->armed, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&ring->ctrl->tail, __ATOMIC_SEQ_CST) == ring->head)
		return true;
	/* If the client took it already, its pending bit brings somebody here once more: harmless. */
	__atomic_compare_exchange_n(&ring->ctrl->armed, &one, 0, false, __ATOMIC_SEQ_CST,
				    __ATOMIC_SEQ_CST);
	return false;
}

/* Completes the entry at done, then looks whether somebody waits for it. */
static void complete(struct engine *e, struct engine_ring *ring, bool event)
{
	ring->done++;
	__atomic_store_n(&ring->ctrl->done, ring->done, __ATOMIC_RELEASE);
	atomic_thread_fence(memory_order_seq_cst);
	engine_wake_client(e, ring, event);
}

/* Marks an event as recorded although its record was dropped or failed. */
static void fail_event(struct engine *e, const struct npu_entry *entry, uint32_t kind)
{
	struct npu_event_word *word;

	if (entry->op != NPU_OP_EVENT_RECORD || entry->event.index >= NPU_MAX_EVENTS)
		return;
	word = &e->events[entry->event.index];
	__atomic_store_n(&word->time_ns, engine_now_ns(), __ATOMIC_RELAXED);
	__atomic_store_n(&word->error, kind, __ATOMIC_RELAXED);
	__atomic_store_n(&word->done, entry->event.value, __ATOMIC_SEQ_CST);
	engine_ring_unblock(e);
}

static void write_error(struct engine_ring *ring, const struct npu_entry *entry, uint64_t task,
			const struct engine_error *err)
{
	struct npu_ring_error *out = &ring->ctrl->error;
	uint64_t count = out->count + 1;

	__atomic_store_n(&out->begin, count, __ATOMIC_RELAXED);
	atomic_thread_fence(memory_order_release);
	out->kind = err->kind;
	out->flags = err->flags;
	out->task = task;
	out->tag = entry->tag;
	out->module = entry->op == NPU_OP_KERNEL ? entry->kernel.module : 0;
	out->func = entry->op == NPU_OP_KERNEL ? entry->kernel.func : 0;
	out->block = err->block;
	out->op = entry->op;
	out->address = err->address;
	out->pc = err->pc;
	out->time_ns = engine_now_ns();
	__atomic_store_n(&out->count, count, __ATOMIC_RELEASE);
	__atomic_store_n(&ring->ctrl->error_count, count, __ATOMIC_RELEASE);
}

/* Writes the record of a failed task, tells the board, and applies the failure mode. */
static void fail(struct engine *e, struct engine_ring *ring, const struct npu_entry *entry,
		 uint64_t task, const struct engine_error *err)
{
	struct engine_fault_msg msg = {
		.slot = ring->slot,
		.fault = {
			.time_ns = engine_now_ns(), .kind = err->kind, .flags = err->flags,
			.context = ring->ctx, .queue = ring->queue, .task = task,
			.block = err->block, .core = err->core, .address = err->address,
			.pc = err->pc,
			.module = entry->op == NPU_OP_KERNEL ? entry->kernel.module : 0,
			.func = entry->op == NPU_OP_KERNEL ? entry->kernel.func : 0,
		},
	};

	write_error(ring, entry, task, err);
	fail_event(e, entry, err->kind);
	if (err->kind != NPU_FAULT_ABORTED) {
		if (atomic_load(&ring->fail_mode) == NPU_FAIL_STOP) {
			__atomic_store_n(&e->header->context_error[ring->ctx], err->kind,
					 __ATOMIC_RELEASE);
			__atomic_store_n(&ring->ctrl->state, NPU_RING_STOPPED, __ATOMIC_RELAXED);
		}
		engine_send(e, ENGINE_FAULT, 0, &msg, sizeof(msg));
	}
}

void engine_ring_fail_running(struct engine *e, struct engine_ring *ring, uint32_t kind)
{
	struct engine_error err = { .kind = kind };

	while (ring->done < ring->head) {
		struct npu_entry entry = ring->entries[ring->done & MASK];

		fail(e, ring, &entry, ring->done, &err);
		complete(e, ring, true);
	}
}

/* Takes a ring out of the blocked ones. */
void engine_ring_leave_blocked(struct engine *e, struct engine_ring *ring)
{
	atomic_fetch_and(&e->blocked[ring->slot / 64], ~(1ull << (ring->slot % 64)));
	if (ring->timed)
		atomic_fetch_sub(&e->timed, 1);
	ring->timed = false;
	if (ring->partial)
		engine_busy_end(e);
	ring->partial = false;
	ring->blocked_since = 0;
}

static bool map_missing(struct engine *e, const struct npu_entry *entry)
{
	uint64_t have = atomic_load_explicit(&e->map_generation, memory_order_acquire);

	return (int32_t)((uint32_t)have - entry->map_gen) < 0;
}

/*
 * Blocks the ring, then looks again, since what it waits for may have come in between. Returns the
 * verdict of that second look.
 */
static enum engine_verdict block(struct engine_worker *w, struct engine_ring *ring,
				 const struct npu_entry *entry, struct engine_error *err)
{
	struct engine *e = w->engine;
	enum engine_verdict verdict;

	if (!ring->blocked_since)
		ring->blocked_since = engine_now_ns();
	if (ring->indirect.running && ring->indirect.at && !ring->partial) {
		ring->partial = true;
		atomic_fetch_add(&e->busy, 1); /* this worker is busy, so nobody is ending us */
	}
	if (err->timed && !ring->timed) {
		ring->timed = true;
		atomic_fetch_add(&e->timed, 1);
	}
	atomic_fetch_or(&e->blocked[ring->slot / 64], 1ull << (ring->slot % 64));
	atomic_thread_fence(memory_order_seq_cst);
	if (map_missing(e, entry)) {
		if (engine_now_ns() - ring->blocked_since < MAP_WAIT_NS)
			return ENGINE_BLOCKED;
		err->kind = NPU_FAULT_MAP;
		verdict = ENGINE_FAILED;
	} else {
		verdict = engine_exec(w, ring, entry, err);
		if (verdict == ENGINE_BLOCKED)
			return verdict;
	}
	engine_ring_leave_blocked(e, ring);
	return verdict;
}

/* Drops everything that a broken tail announces. */
static void empty_broken(struct engine *e, struct engine_ring *ring, uint64_t tail)
{
	struct npu_entry none = { 0 };
	struct engine_error err = { .kind = NPU_FAULT_ENTRY };

	fail(e, ring, &none, ring->head, &err);
	ring->head = tail;
	ring->done = tail - 1;
	__atomic_store_n(&ring->ctrl->head, tail, __ATOMIC_RELAXED);
	complete(e, ring, true);
}

bool engine_ring_run(struct engine_worker *w, struct engine_ring *ring)
{
	unsigned budget = BUDGET;
	struct engine *e = w->engine;
	struct npu_ring_ctrl *ctrl = ring->ctrl;
	uint64_t tail = __atomic_load_n(&ctrl->tail, __ATOMIC_ACQUIRE);

	for (;;) {
		enum engine_verdict verdict;
		struct engine_error err = { 0 };
		struct npu_entry entry;
		uint32_t stopped;

		if (ring->head == tail) {
			tail = __atomic_load_n(&ctrl->tail, __ATOMIC_ACQUIRE);
			if (ring->head == tail)
				return true;
		}
		if (atomic_load_explicit(&ring->paused, memory_order_relaxed))
			return false;
		if (atomic_load_explicit(&e->leaving, memory_order_relaxed)) {
			atomic_store(&ring->again, 1);
			return false;
		}
		if (!budget) {
			budget = BUDGET;
			if (engine_anything(e)) {
				atomic_store(&ring->again, 1); /* ready once let go */
				return false;
			}
		}
		if (tail - ring->head > NPU_RING_ENTRIES) {
			empty_broken(e, ring, tail);
			continue;
		}
		memcpy(&entry, &ring->entries[ring->head & MASK], sizeof(entry));
		/* The client has just written what comes next: fetch it while this one runs. */
		if (tail - ring->head > AHEAD)
			__builtin_prefetch(&ring->entries[(ring->head + AHEAD) & MASK]);
		stopped = __atomic_load_n(&e->header->context_error[ring->ctx], __ATOMIC_RELAXED);
		if (entry.epoch != (uint16_t)atomic_load_explicit(&ring->epoch, memory_order_relaxed) ||
		    stopped) {
			verdict = ENGINE_FAILED;
			err.kind = NPU_FAULT_ABORTED;
		} else if (map_missing(e, &entry)) {
			verdict = ENGINE_BLOCKED;
			err.timed = true;
		} else {
			__atomic_store_n(&ctrl->head, ring->head + 1, __ATOMIC_RELAXED);
			verdict = engine_exec(w, ring, &entry, &err);
		}
		if (verdict == ENGINE_BLOCKED) {
			/* Not begun: a replacement must not take it for one that ran. Steps of an
			 * INDIRECT did run, and must not run again. */
			if (!ring->indirect.running || !ring->indirect.at)
				__atomic_store_n(&ctrl->head, ring->head, __ATOMIC_RELAXED);
			verdict = block(w, ring, &entry, &err);
			if (verdict == ENGINE_BLOCKED)
				return false;
		} else if (ring->blocked_since) {
			engine_ring_leave_blocked(e, ring);
		}
		budget--;
		if (verdict == ENGINE_AGAIN)
			continue;
		if (verdict == ENGINE_FAILED)
			fail(e, ring, &entry, ring->head, &err);
		ring->indirect.running = false;
		ring->head++;
		__atomic_store_n(&ctrl->head, ring->head, __ATOMIC_RELAXED);
		w->tasks++;
		complete(e, ring, entry.op == NPU_OP_EVENT_RECORD);
	}
}
