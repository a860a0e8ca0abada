/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workers: who looks for work, who polls, who sleeps.
 *
 * A free worker looks at open launches, ready rings and the pending bitmap. One free worker at a time
 * polls: it keeps the ring that it drained last ("hot"), unarmed, and watches its tail, so that a
 * client that launches and waits in turn meets one cache line. All other free workers sleep in epoll on
 * the doorbell (exclusive: one wakes) and on the help eventfd (all wake).
 *
 * header.device_sleeping is 1 while a worker sleeps and none polls; then a client that hands over new
 * work writes the doorbell. A poller that takes work raises it if others sleep, unless the ring has
 * shown short tasks only: raising it costs a client that launches and waits a cache miss each time,
 * and another stream's work is seen within those few microseconds anyway.
 *
 * Polling follows the rule that won in measurements: publish the cpu; block at once when the client
 * polls on the same one; poll at most spin_us, an eighth of it when recent waits were much longer
 * (with a full one now and then to notice a change); a gap between two looks means that the thread
 * was preempted by somebody who needs the cpu: block.
 */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "sim/engine.h"
#include "sim/engine_data.h"

#define GAP_NS 30000u          /* between two looks: preempted */
#define SHORT_NS 10000u        /* a task that is not worth raising device_sleeping for */
#define TIMED_MS 1             /* between two looks at rings that wait by the clock */
#define LOOK_MS 5              /* a sleeper's, while another worker is awake but may be stuck */
#define LOOKS_PER_CLOCK 16u

uint64_t engine_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

void engine_wake(struct engine *e, bool all)
{
	uint64_t one = 1;

	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load(&e->sleepers) && (all || !atomic_load(&e->pollers)))
		(void)!write(all ? e->help : e->doorbell, &one, sizeof(one));
}

void engine_wake_client(struct engine *e, struct engine_ring *ring, bool event)
{
	uint64_t one = 1;

	if (!__atomic_load_n(&e->header->client_waiting, __ATOMIC_RELAXED))
		return;
	if (!event && ring->done < __atomic_load_n(&ring->ctrl->want, __ATOMIC_RELAXED))
		return;
	if (__atomic_exchange_n(&e->header->client_waiting, 0, __ATOMIC_SEQ_CST))
		(void)!write(e->completion, &one, sizeof(one));
}

/* ---- finding work -------------------------------------------------------------------------- */

/*
 * Takes one ring off the ready and pending bits: the most urgent, in turn among equals. Returns NULL
 * when there is none.
 */
static struct engine_ring *take_ready(struct engine_worker *w)
{
	struct engine *e = w->engine;
	uint64_t best = UINT64_MAX, bit;
	uint32_t slot;

	for (unsigned i = 0; i < ENGINE_WORDS; i++) {
		uint64_t bits = 0;

		if (__atomic_load_n(&e->header->pending[i], __ATOMIC_RELAXED))
			bits = __atomic_exchange_n(&e->header->pending[i], 0, __ATOMIC_SEQ_CST);
		if (bits)
			bits |= atomic_fetch_or(&e->ready[i], bits);
		else
			bits = atomic_load_explicit(&e->ready[i], memory_order_relaxed);
		for (; bits; bits &= bits - 1) {
			uint32_t s = i * 64 + __builtin_ctzll(bits);
			uint32_t turn = (s - w->last_slot - 1) % NPU_MAX_QUEUES;
			uint64_t priority = atomic_load_explicit(&e->rings[s].priority,
								 memory_order_relaxed);
			uint64_t key = priority << 32 | turn << 12 | s;

			if (key < best)
				best = key;
		}
	}
	if (best == UINT64_MAX)
		return NULL;
	slot = best & (NPU_MAX_QUEUES - 1);
	bit = 1ull << (slot % 64);
	if (!(atomic_fetch_and(&e->ready[slot / 64], ~bit) & bit))
		return NULL;
	w->last_slot = slot;
	return &e->rings[slot];
}

static bool claim(struct engine_worker *w, struct engine_ring *ring)
{
	uint32_t nobody = 0;

	do {
		nobody = 0;
		if (atomic_compare_exchange_strong(&ring->claimed, &nobody, w->index + 1)) {
			atomic_store(&ring->again, 0);
			if (atomic_load(&ring->active))
				return true;
			atomic_store(&ring->claimed, 0);
			return false;
		}
		/* Whoever has it looks at again when it lets go; it may have let go just now. */
		atomic_store(&ring->again, 1);
	} while (!atomic_load(&ring->claimed));
	return false;
}

/* This worker itself looks at the ready rings next, so nobody is woken here. */
static void let_go(struct engine_worker *w, struct engine_ring *ring)
{
	uint32_t slot = ring - w->engine->rings;

	atomic_store(&ring->claimed, 0);
	if (atomic_exchange(&ring->again, 0))
		atomic_fetch_or(&w->engine->ready[slot / 64], 1ull << (slot % 64));
}

/* Arms a hot ring and lets it go; if entries came meanwhile it is marked ready instead. */
static void cool(struct engine_worker *w, struct engine_ring *ring)
{
	if (!ring)
		return;
	if (!engine_ring_arm(ring))
		atomic_store(&ring->again, 1);
	let_go(w, ring);
}

static void publish_tasks(struct engine_worker *w)
{
	if (w->tasks)
		__atomic_fetch_add(&w->engine->state->tasks_done, w->tasks, __ATOMIC_RELAXED);
	w->tasks = 0;
}

/* ---- being free ---------------------------------------------------------------------------- */

static void stop_polling(struct engine *e)
{
	atomic_store(&e->pollers, 0);
	if (__atomic_load_n(&e->header->device_cpu, __ATOMIC_RELAXED))
		__atomic_store_n(&e->header->device_cpu, 0, __ATOMIC_RELAXED);
}

/*
 * Before work that may be long: while others sleep and nobody polls, clients have to ring for what
 * comes next, and what came before they could see the flag is passed on.
 */
static void announce(struct engine *e)
{
	if (!atomic_load_explicit(&e->sleepers, memory_order_relaxed) || atomic_load(&e->pollers))
		return;
	__atomic_store_n(&e->header->device_sleeping, 1, __ATOMIC_SEQ_CST);
	if (engine_anything(e))
		engine_wake(e, false);
}

bool engine_anything(struct engine *e)
{
	if (atomic_load(&e->open_launches))
		return true;
	for (unsigned i = 0; i < ENGINE_WORDS; i++) {
		if (__atomic_load_n(&e->header->pending[i], __ATOMIC_SEQ_CST) ||
		    atomic_load_explicit(&e->ready[i], memory_order_relaxed))
			return true;
	}
	return false;
}

/*
 * After a fault, with nothing to do: makes room for a clean engine. Queued work waits in its rings.
 * Whoever becomes busy meanwhile sees ending and waits: no task may be begun and then lost.
 */
static void end_if_suspect(struct engine *e)
{
	if (!__atomic_load_n(&e->state->suspect, __ATOMIC_ACQUIRE))
		return;
	atomic_fetch_add(&e->ending, 1);
	if (!atomic_load(&e->busy))
		_exit(0);
	atomic_fetch_sub(&e->ending, 1);
}

void engine_busy_begin(struct engine *e)
{
	atomic_fetch_add(&e->busy, 1);
	while (atomic_load(&e->ending) || atomic_load(&e->leaving)) {
		atomic_fetch_sub(&e->busy, 1);
		sched_yield();
		atomic_fetch_add(&e->busy, 1);
	}
}

void engine_busy_end(struct engine *e)
{
	/* Who sleeps has seen us busy and may be the one to end a suspect engine. */
	if (atomic_fetch_sub(&e->busy, 1) == 1 && __atomic_load_n(&e->state->suspect, __ATOMIC_ACQUIRE))
		engine_wake(e, true);
}

static void nap(struct engine_worker *w, bool was_poller)
{
	struct engine *e = w->engine;
	struct epoll_event ev;
	uint64_t count;
	int timeout = -1, n;

	atomic_fetch_add(&e->sleepers, 1);
	if (__atomic_sub_fetch(&e->state->awake, 1, __ATOMIC_RELAXED))
		timeout = LOOK_MS;
	if (atomic_load(&e->timed))
		timeout = TIMED_MS;
	if (was_poller)
		stop_polling(e);
	if (!atomic_load(&e->pollers))
		__atomic_store_n(&e->header->device_sleeping, 1, __ATOMIC_SEQ_CST);
	atomic_thread_fence(memory_order_seq_cst);
	if (!engine_anything(e)) {
		end_if_suspect(e);
		n = epoll_wait(w->epoll, &ev, 1, timeout);
		if (n == 1)
			(void)!read(ev.data.u32 ? e->help : e->doorbell, &count, sizeof(count));
		else if (n == 0 && atomic_load(&e->timed))
			engine_ring_unblock(e);
	}
	__atomic_fetch_add(&e->state->awake, 1, __ATOMIC_RELAXED);
	atomic_fetch_sub(&e->sleepers, 1);
}

/* How long this worker may poll now, in ns. */
static uint64_t poll_limit(struct engine_worker *w)
{
	uint64_t limit = w->engine->spin_us * 1000ull;

	if (w->wait_average_ns > 2 * limit && w->polls % 16)
		return limit / 8;
	return limit;
}

/*
 * Free time of a worker: polls if nobody else does, then sleeps. Returns the hot ring when its tail
 * moved (still claimed), NULL when something else may have come up (hot was let go).
 */
static struct engine_ring *be_free(struct engine_worker *w, struct engine_ring *hot)
{
	struct engine *e = w->engine;
	uint64_t begin, last, now, limit;
	uint32_t none = 0;

	w->polls++;
	if (!e->spin_us || !atomic_compare_exchange_strong(&e->pollers, &none, 1)) {
		cool(w, hot);
		if (!engine_anything(e))
			nap(w, false);
		return NULL;
	}
	if (__atomic_load_n(&e->header->device_sleeping, __ATOMIC_RELAXED))
		__atomic_store_n(&e->header->device_sleeping, 0, __ATOMIC_RELAXED);
	begin = last = engine_now_ns();
	limit = poll_limit(w);
	for (unsigned look = 0;; look++) {
		bool work = atomic_load_explicit(&e->open_launches, memory_order_relaxed);

		if (hot && __atomic_load_n(&hot->ctrl->tail, __ATOMIC_ACQUIRE) != hot->head)
			break;
		for (unsigned i = 0; !work && i < ENGINE_WORDS; i++)
			work = __atomic_load_n(&e->header->pending[i], __ATOMIC_RELAXED) ||
			       atomic_load_explicit(&e->ready[i], memory_order_relaxed);
		if (work || (hot && atomic_load_explicit(&hot->again, memory_order_relaxed))) {
			cool(w, hot);
			hot = NULL;
			break;
		}
		engine_pause();
		if ((look + 1) % LOOKS_PER_CLOCK)
			continue;
		now = engine_now_ns();
		if ((look + 1) % (LOOKS_PER_CLOCK * 8) == LOOKS_PER_CLOCK) {
			uint32_t cpu = sched_getcpu() + 1;

			if (__atomic_load_n(&e->header->device_cpu, __ATOMIC_RELAXED) != cpu)
				__atomic_store_n(&e->header->device_cpu, cpu, __ATOMIC_RELAXED);
			if (__atomic_load_n(&e->header->client_cpu, __ATOMIC_RELAXED) == cpu)
				limit = 0;
		}
		if (now - last > GAP_NS || now - begin >= limit) {
			cool(w, hot);
			hot = NULL;
			nap(w, true);
			now = engine_now_ns();
			w->wait_average_ns += ((int64_t)(now - begin) - (int64_t)w->wait_average_ns) / 8;
			return NULL;
		}
		last = now;
	}
	w->wait_average_ns += ((int64_t)(last - begin) - (int64_t)w->wait_average_ns) / 8;
	stop_polling(e);
	return hot;
}

/* Waits until ENGINE_START. */
static void wait_for_start(struct engine *e)
{
	while (!atomic_load(&e->started))
		syscall(SYS_futex, &e->started, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
}

void *engine_worker_main(void *arg)
{
	struct engine_worker *w = arg;
	struct engine *e = w->engine;
	struct engine_ring *ring = NULL;
	bool hot;

	if (engine_core_init(&w->core) < 0)
		_exit(1);
	__atomic_fetch_add(&e->state->awake, 1, __ATOMIC_RELAXED);
	atomic_fetch_add(&e->busy, 1);
	wait_for_start(e);
	for (;;) {
		uint64_t begin, tasks;

		/* Here the worker counts as busy; ring is claimed, or NULL. */
		if (atomic_load_explicit(&e->leaving, memory_order_relaxed)) {
			atomic_fetch_sub(&e->busy, 1);
			engine_busy_begin(e);
		}
		if (!ring) {
			if (engine_exec_help(w))
				continue;
			ring = take_ready(w);
			if (ring && !claim(w, ring)) {
				ring = NULL;
				continue;
			}
			if (ring && atomic_load(&e->sleepers) && engine_anything(e))
				engine_wake(e, false);
		}
		if (ring) {
			if (ring->task_ns > SHORT_NS)
				announce(e);
			begin = engine_now_ns();
			tasks = w->tasks;
			hot = engine_ring_run(w, ring);
			tasks = w->tasks - tasks;
			if (tasks)
				ring->task_ns = (engine_now_ns() - begin) / tasks;
			if (!hot) {
				let_go(w, ring);
				ring = NULL;
				continue;
			}
		}
		publish_tasks(w); /* while busy: the engine must not end before it has told */
		atomic_fetch_sub(&e->busy, 1);
		ring = be_free(w, ring);
		engine_busy_begin(e);
	}
	return NULL;
}
