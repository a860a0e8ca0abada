/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Running one entry. Whatever touches memory that an entry names runs inside engine_core_run(), like a
 * kernel does, so that a wrong address becomes a fault record. A launch of several blocks is opened to
 * free workers: they take block numbers from one counter until it runs out or a block fails; the
 * owner waits until the last helper has left before it uses the launch again.
 */
#include <errno.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "sim/engine.h"
#include "sim/engine_block.h"
#include "sim/engine_data.h"

#define STEPS_MAX (1u << 24) /* entries that one INDIRECT may run, jumps included */

static void run_begin(struct engine_worker *w, const struct engine_core_state *about)
{
	struct engine_core_state *s = w->state;

	__atomic_store_n(&s->slot, about->slot, __ATOMIC_RELAXED);
	__atomic_store_n(&s->op, about->op, __ATOMIC_RELAXED);
	__atomic_store_n(&s->head, about->head, __ATOMIC_RELAXED);
	__atomic_store_n(&s->timeout_us, about->timeout_us, __ATOMIC_RELAXED);
	__atomic_store_n(&s->module, about->module, __ATOMIC_RELAXED);
	__atomic_store_n(&s->func, about->func, __ATOMIC_RELAXED);
	__atomic_store_n(&s->run, s->run + 1, __ATOMIC_RELEASE);
}

static void run_end(struct engine_worker *w)
{
	__atomic_store_n(&w->state->run, w->state->run + 1, __ATOMIC_RELEASE);
}

/* Translates a fault of a core into the error of its task. */
static void translate(struct engine_worker *w, const struct engine_fault *fault,
		      const struct engine_image *image, uint32_t run_kind, struct engine_error *ret)
{
	static const uint8_t kinds[] = {
		[ENGINE_FAULT_ACCESS] = NPU_FAULT_ACCESS,
		[ENGINE_FAULT_BUS] = NPU_FAULT_BUS,
		[ENGINE_FAULT_ILLEGAL] = NPU_FAULT_ILLEGAL,
		[ENGINE_FAULT_ARITHMETIC] = NPU_FAULT_ARITH,
		[ENGINE_FAULT_STACK_OVERFLOW] = NPU_FAULT_STACK,
		[ENGINE_FAULT_SYSCALL] = NPU_FAULT_FORBIDDEN,
		[ENGINE_FAULT_TRAP] = NPU_FAULT_TRAP,
		[ENGINE_FAULT_ABORT] = NPU_FAULT_ABORTED,
	};
	uint64_t pc = fault->pc;

	ret->kind = fault->kind < sizeof(kinds) ? kinds[fault->kind] : NPU_FAULT_ENGINE;
	if (fault->kind == ENGINE_FAULT_ABORT && run_kind)
		ret->kind = run_kind;
	if (!image && (ret->kind == NPU_FAULT_ACCESS || ret->kind == NPU_FAULT_BUS))
		ret->kind = NPU_FAULT_DMA;
	ret->core = w->index;
	ret->address = fault->kind == ENGINE_FAULT_SYSCALL ? (uint64_t)fault->syscall_nr : fault->address;
	ret->flags = fault->address_known || fault->kind == ENGINE_FAULT_SYSCALL ?
			     0 : NPU_FAULT_ADDRESS_UNKNOWN;
	if (fault->kind == ENGINE_FAULT_ARITHMETIC || fault->kind == ENGINE_FAULT_ILLEGAL ||
	    fault->kind == ENGINE_FAULT_TRAP) {
		/* Of these the processor tells where the instruction is: that is pc's business. */
		ret->address = 0;
		ret->flags = NPU_FAULT_ADDRESS_UNKNOWN;
	}
	if (image && !engine_image_contains(image, pc))
		pc = fault->caller;
	ret->pc = image && pc && engine_image_contains(image, pc) ? engine_image_offset(image, pc) : 0;
	/* An abort leaves nothing behind that later kernels could meet; a fault may have. */
	if (fault->kind != ENGINE_FAULT_ABORT)
		__atomic_store_n(&w->engine->state->suspect, 1, __ATOMIC_RELEASE);
}

/* Why the board or the queue wanted this run to end; 0 when nobody did. */
static uint32_t abort_kind(struct engine_worker *w, uint64_t run)
{
	return atomic_load(&w->abort_run) == run ? atomic_load(&w->abort_kind) : 0;
}

/* ---- launches ------------------------------------------------------------------------------ */

/* No block is left to take: free workers need not look at it any more. */
static void uncount(struct engine *e, struct engine_launch *l)
{
	if (atomic_exchange(&l->counted, 0))
		atomic_fetch_sub(&e->open_launches, 1);
}

/* Runs blocks of a launch until none is left. */
static void run_blocks(struct engine_worker *w, struct engine_launch *l)
{
	uint64_t run = w->state->run;
	const void *start, *end;

	engine_image_code(l->image, &start, &end);
	engine_core_set_code(&w->core, start, end);
	atomic_store_explicit(&w->joined, l, memory_order_release);
	while (!atomic_load_explicit(&l->failed, memory_order_relaxed)) {
		uint32_t block = atomic_fetch_add_explicit(&l->next, 1, memory_order_relaxed);
		struct engine_fault fault;
		uint32_t none = 0;

		if (block >= l->blocks)
			break;
		engine_block_set(block, l->blocks);
		if (!engine_core_run(&w->core, l->entry, l->args, run, &fault))
			continue;
		if (atomic_compare_exchange_strong(&l->failed, &none, 2)) {
			l->fault = fault;
			l->fault_block = block;
			l->fault_core = w->index;
		}
		break;
	}
	uncount(w->engine, l);
	atomic_store_explicit(&w->joined, NULL, memory_order_release);
}

bool engine_exec_help(struct engine_worker *w)
{
	struct engine *e = w->engine;

	if (!atomic_load_explicit(&e->open_launches, memory_order_relaxed))
		return false;
	for (uint32_t i = 0; i < e->cores; i++) {
		struct engine_launch *l = &e->workers[i].launch;
		bool helped = false;

		if (i == w->index || !atomic_load_explicit(&l->open, memory_order_relaxed))
			continue;
		atomic_fetch_add(&l->users, 1);
		if (atomic_load(&l->open) &&
		    atomic_load_explicit(&l->next, memory_order_relaxed) < l->blocks) {
			run_begin(w, &l->about);
			run_blocks(w, l);
			run_end(w);
			helped = true;
		}
		if (atomic_fetch_sub(&l->users, 1) == 1 && !atomic_load(&l->open))
			syscall(SYS_futex, &l->users, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
		if (helped)
			return true;
	}
	return false;
}

/* Takes the launch back from the helpers: returns when the last one has left. */
static void close_launch(struct engine_launch *l)
{
	uint32_t users;

	atomic_store(&l->open, 0);
	for (unsigned spin = 0; (users = atomic_load(&l->users)); spin++) {
		if (spin > 2000)
			syscall(SYS_futex, &l->users, FUTEX_WAIT_PRIVATE, users, NULL, NULL, 0);
		else
			engine_pause();
	}
}

static enum engine_verdict run_kernel(struct engine_worker *w, struct engine_ring *ring,
				      const struct npu_entry *entry, struct engine_error *ret)
{
	struct engine *e = w->engine;
	const struct engine_image *image = engine_module_find(e, entry->kernel.module);
	const struct engine_func *func = image ? engine_image_func(image, entry->kernel.func) : NULL;
	struct engine_launch *l = &w->launch;
	const void *args;
	uint64_t run;

	if (!func || entry->kernel.args_size < func->args_size || !entry->kernel.blocks) {
		ret->kind = NPU_FAULT_FUNCTION;
		return ENGINE_FAILED;
	}
	if (entry->flags & NPU_ENTRY_ARGS_DEVICE) {
		args = (const void *)entry->kernel.args;
	} else {
		if (entry->kernel.args > NPU_RING_ARGS || (entry->kernel.args & 7) ||
		    entry->kernel.args_size > NPU_RING_ARGS - entry->kernel.args) {
			ret->kind = NPU_FAULT_ENTRY;
			return ENGINE_FAILED;
		}
		args = ring->args + entry->kernel.args;
		/* Most likely the arguments of a launch that follows soon. */
		__builtin_prefetch(ring->args + ((entry->kernel.args + 4 * 64) & (NPU_RING_ARGS - 1)));
	}
	l->about = (struct engine_core_state){
		.slot = ring->slot, .op = NPU_OP_KERNEL, .head = ring->head + 1,
		.timeout_us = entry->kernel.timeout_us,
		.module = entry->kernel.module, .func = entry->kernel.func,
	};
	l->entry = func->entry;
	l->args = args;
	l->blocks = entry->kernel.blocks;
	l->image = image;
	atomic_store_explicit(&l->failed, 0, memory_order_relaxed);
	atomic_store_explicit(&l->next, 0, memory_order_relaxed);

	run_begin(w, &l->about);
	run = w->state->run;
	/* The module may have been dropped before the run was announced: look once more. */
	if (engine_module_find(e, entry->kernel.module) != image) {
		run_end(w);
		ret->kind = NPU_FAULT_FUNCTION;
		return ENGINE_FAILED;
	}
	if (l->blocks == 1 || e->cores == 1) {
		run_blocks(w, l);
	} else {
		atomic_store(&l->counted, 1);
		atomic_fetch_add(&e->open_launches, 1);
		atomic_store(&l->open, 1);
		if (atomic_load(&e->sleepers))
			engine_wake(e, true);
		run_blocks(w, l);
		close_launch(l);
	}
	run_end(w);
	if (!atomic_load_explicit(&l->failed, memory_order_acquire))
		return ENGINE_DONE;
	if (atomic_load(&l->failed) == 1) { /* aborted between two blocks */
		l->fault = (struct engine_fault){ .kind = ENGINE_FAULT_ABORT };
		l->fault_core = w->index;
		l->fault_block = 0;
	}
	translate(&e->workers[l->fault_core], &l->fault, image, abort_kind(w, run), ret);
	ret->block = l->fault_block;
	return ENGINE_FAILED;
}

void engine_exec_abort(struct engine *e, uint32_t core, uint64_t run, uint32_t kind)
{
	struct engine_launch *l;
	struct engine_worker *w;
	uint32_t none = 0;

	if (core >= e->cores)
		return;
	w = &e->workers[core];
	if (__atomic_load_n(&w->state->run, __ATOMIC_ACQUIRE) != run)
		return;
	l = atomic_load(&w->joined);
	for (uint32_t i = 0; i < e->cores; i++) {
		struct engine_worker *o = &e->workers[i];
		bool owner = l == &o->launch;
		uint64_t its = __atomic_load_n(&o->state->run, __ATOMIC_ACQUIRE);

		if (o != w && !(l && owner) && !(l && atomic_load(&o->joined) == l))
			continue;
		if (o == w)
			its = run; /* that one, even if it is over by now */
		if (!(its & 1))
			continue;
		atomic_store(&o->abort_kind, kind);
		atomic_store(&o->abort_run, its);
		engine_core_abort(&o->core, its);
	}
	/* Helpers that have not come yet must find nothing to do; a fault that was first stays. */
	if (l)
		atomic_compare_exchange_strong(&l->failed, &none, 1);
}

/* ---- everything else ----------------------------------------------------------------------- */

/* Runs a data mover under fault recovery. */
static enum engine_verdict run_mover(struct engine_worker *w, struct engine_ring *ring,
				     const struct npu_entry *entry, void (*mover)(const void *),
				     struct engine_error *ret)
{
	struct engine_core_state about = {
		.slot = ring->slot, .op = entry->op, .head = ring->head + 1,
	};
	struct engine_fault fault;
	uint64_t run;
	int r;

	run_begin(w, &about);
	run = w->state->run;
	engine_core_set_code(&w->core, NULL, NULL);
	r = engine_core_run(&w->core, mover, entry, run, &fault);
	run_end(w);
	if (!r)
		return ENGINE_DONE;
	translate(w, &fault, NULL, abort_kind(w, run), ret);
	return ENGINE_FAILED;
}

static enum engine_verdict event_record(struct engine *e, const struct npu_entry *entry,
					struct engine_error *ret)
{
	struct npu_event_word *word;

	if (entry->event.index >= NPU_MAX_EVENTS) {
		ret->kind = NPU_FAULT_ENTRY;
		return ENGINE_FAILED;
	}
	word = &e->events[entry->event.index];
	__atomic_store_n(&word->time_ns, engine_now_ns(), __ATOMIC_RELAXED);
	__atomic_store_n(&word->error, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&word->done, entry->event.value, __ATOMIC_SEQ_CST);
	engine_ring_unblock(e);
	return ENGINE_DONE;
}

/* Whether a wait of the ring's head entry has lasted longer than its limit. */
static bool overdue(const struct engine_ring *ring, uint32_t timeout_ms)
{
	return timeout_ms && ring->blocked_since &&
	       engine_now_ns() - ring->blocked_since > timeout_ms * 1000000ull;
}

static enum engine_verdict event_wait(struct engine *e, const struct engine_ring *ring,
				      const struct npu_entry *entry, struct engine_error *ret)
{
	struct npu_event_word *word;
	uint32_t done;

	if (entry->event.index >= NPU_MAX_EVENTS) {
		ret->kind = NPU_FAULT_ENTRY;
		return ENGINE_FAILED;
	}
	word = &e->events[entry->event.index];
	done = __atomic_load_n(&word->done, __ATOMIC_SEQ_CST);
	if ((int32_t)(done - entry->event.value) < 0) {
		ret->timed = entry->event.timeout_ms;
		ret->kind = NPU_FAULT_TIMEOUT;
		return overdue(ring, entry->event.timeout_ms) ? ENGINE_FAILED : ENGINE_BLOCKED;
	}
	if (entry->flags & NPU_ENTRY_RESET)
		__atomic_store_n(&word->done, 0, __ATOMIC_RELEASE);
	return ENGINE_DONE;
}

/* Waits on memory: the mover stores what it read into the entry copy. */
static enum engine_verdict value_wait(struct engine_worker *w, struct engine_ring *ring,
				      const struct npu_entry *entry, struct engine_error *ret)
{
	struct engine_probe probe = { .entry = entry };
	enum engine_verdict verdict;
	struct npu_entry alias = { .op = entry->op };
	uint32_t timeout = entry->op == NPU_OP_NOTIFY_WAIT ? entry->notify.timeout_ms : 0;

	alias.raw[0] = (uintptr_t)&probe;
	verdict = run_mover(w, ring, &alias, engine_data_probe, ret);
	if (verdict != ENGINE_DONE || probe.met)
		return verdict;
	ret->timed = true;
	ret->kind = NPU_FAULT_TIMEOUT;
	return overdue(ring, timeout) ? ENGINE_FAILED : ENGINE_BLOCKED;
}

static enum engine_verdict host_call(struct engine *e, struct engine_ring *ring,
				     const struct npu_entry *entry)
{
	struct npu_ring_ctrl *ctrl = ring->ctrl;

	if (ring->host_posted != entry->host.seq) {
		ring->host_posted = entry->host.seq;
		__atomic_store_n(&ctrl->host_fn, entry->host.fn, __ATOMIC_RELAXED);
		__atomic_store_n(&ctrl->host_arg, entry->host.arg, __ATOMIC_RELAXED);
		__atomic_store_n(&ctrl->host_seq, entry->host.seq, __ATOMIC_SEQ_CST);
		if (__atomic_load_n(&e->header->host_calls_waiting, __ATOMIC_SEQ_CST) &&
		    __atomic_exchange_n(&e->header->host_calls_waiting, 0, __ATOMIC_SEQ_CST)) {
			uint64_t one = 1;

			(void)!write(e->completion, &one, sizeof(one));
		}
	}
	if (!entry->host.blocking)
		return ENGINE_DONE;
	return __atomic_load_n(&ctrl->host_reply, __ATOMIC_SEQ_CST) >= entry->host.seq ?
		       ENGINE_DONE : ENGINE_BLOCKED;
}

/* One step of an array of entries in device memory. */
static enum engine_verdict indirect(struct engine_worker *w, struct engine_ring *ring,
				    const struct npu_entry *entry, struct engine_error *ret)
{
	struct npu_entry step, alias = { .op = NPU_OP_COPY };
	enum engine_verdict verdict;

	if (!ring->indirect.running) {
		ring->indirect.running = true;
		ring->indirect.address = entry->indirect.address;
		ring->indirect.count = entry->indirect.count;
		ring->indirect.at = 0;
		ring->indirect.steps = 0;
	}
	if (ring->indirect.at >= ring->indirect.count)
		return ENGINE_DONE;
	if (++ring->indirect.steps > STEPS_MAX) {
		ret->kind = NPU_FAULT_TIMEOUT;
		return ENGINE_FAILED;
	}
	alias.copy.dst = (uintptr_t)&step;
	alias.copy.src = ring->indirect.address + (uint64_t)ring->indirect.at * sizeof(step);
	alias.copy.bytes = sizeof(step);
	verdict = run_mover(w, ring, &alias, engine_data_copy, ret);
	if (verdict != ENGINE_DONE)
		return verdict;
	if (step.op == NPU_OP_INDIRECT || step.op == NPU_OP_HOST_CALL || step.op >= NPU_OP_MAX ||
	    (step.op == NPU_OP_JUMP && !engine_data_aligned(&step))) {
		ret->kind = NPU_FAULT_ENTRY;
		return ENGINE_FAILED;
	}
	if (step.op == NPU_OP_JUMP) {
		struct engine_probe probe = { .entry = &step };

		alias.raw[0] = (uintptr_t)&probe;
		verdict = run_mover(w, ring, &alias, engine_data_probe, ret);
		if (verdict != ENGINE_DONE)
			return verdict;
		ring->indirect.at = probe.met ? step.jump.target : ring->indirect.at + 1;
		return ENGINE_AGAIN;
	}
	verdict = engine_exec(w, ring, &step, ret);
	if (verdict != ENGINE_DONE)
		return verdict;
	ring->indirect.at++;
	return ring->indirect.at < ring->indirect.count ? ENGINE_AGAIN : ENGINE_DONE;
}

enum engine_verdict engine_exec(struct engine_worker *w, struct engine_ring *ring,
				const struct npu_entry *entry, struct engine_error *ret)
{
	switch (entry->op) {
	case NPU_OP_KERNEL:
		return run_kernel(w, ring, entry, ret);
	case NPU_OP_NOP:
	case NPU_OP_LABEL:
	case NPU_OP_BARRIER: /* a ring runs in order: everything before it is complete */
		return ENGINE_DONE;
	case NPU_OP_COPY:
		return run_mover(w, ring, entry, engine_data_copy, ret);
	case NPU_OP_COPY2D:
		return run_mover(w, ring, entry, engine_data_copy2d, ret);
	case NPU_OP_FILL:
		return run_mover(w, ring, entry, engine_data_fill, ret);
	case NPU_OP_REDUCE:
		if (!engine_data_reduce_ok(entry))
			break;
		return run_mover(w, ring, entry, engine_data_reduce, ret);
	case NPU_OP_VALUE_WRITE:
	case NPU_OP_NOTIFY_RECORD: {
		enum engine_verdict verdict;

		if (!engine_data_aligned(entry))
			break;
		verdict = run_mover(w, ring, entry, engine_data_write, ret);

		engine_ring_unblock(w->engine);
		return verdict;
	}
	case NPU_OP_VALUE_WAIT:
	case NPU_OP_NOTIFY_WAIT:
		if (!engine_data_aligned(entry))
			break;
		return value_wait(w, ring, entry, ret);
	case NPU_OP_EVENT_RECORD:
		return event_record(w->engine, entry, ret);
	case NPU_OP_EVENT_WAIT:
		return event_wait(w->engine, ring, entry, ret);
	case NPU_OP_HOST_CALL:
		return host_call(w->engine, ring, entry);
	case NPU_OP_INDIRECT:
		return indirect(w, ring, entry, ret);
	}
	ret->kind = NPU_FAULT_ENTRY;
	return ENGINE_FAILED;
}
