/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine_core_abort(): ends the run that it names, at whatever instruction it is, and no other.
 */

#include "config.h"
#include "tests/lib/fault.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

KERNEL static void kernel_loop(const void *args)
{
	volatile unsigned long turns = 0;

	(void)args;
	for (;;)
		turns++;
}

KERNEL static void kernel_count(const void *args)
{
	++**(volatile int *const *)args;
}

struct worker {
	struct engine_core_fault core;
	struct engine_fault fault;
	_Atomic uint64_t begin; /* sequence to run next; UINT64_MAX to end */
	_Atomic uint64_t ended;
	_Atomic int result;
	_Atomic int ready;
};

static void *worker_main(void *arg)
{
	struct worker *worker = arg;
	uint64_t done = 0;

	if (engine_core_init(&worker->core) < 0)
		abort();
	atomic_store(&worker->ready, 1);
	for (;;) {
		uint64_t next = atomic_load(&worker->begin);

		if (next == UINT64_MAX)
			break;
		if (next == done) {
			sched_yield();
			continue;
		}
		atomic_store(&worker->result, engine_core_run(&worker->core, kernel_loop, NULL,
							      next, &worker->fault));
		done = next;
		atomic_store(&worker->ended, done);
	}
	engine_core_fini(&worker->core);
	return NULL;
}

START_TEST(abort_of_an_endless_loop)
{
	static struct worker worker;
	pthread_t thread;
	uint64_t total = 0;

	ck_assert_int_eq(pthread_create(&thread, NULL, worker_main, &worker), 0);
	WAIT_UNTIL(atomic_load(&worker.ready));
	for (uint64_t i = 1; i <= 200; i++) {
		uint64_t start;

		atomic_store(&worker.begin, i);
		WAIT_UNTIL(atomic_load(&worker.core.running) == i);
		/* Wrong names change nothing. */
		ck_assert_int_eq(engine_core_abort(&worker.core, i - 1 ? i - 1 : 77), 0);
		ck_assert_int_eq(engine_core_abort(&worker.core, i + 1), 0);
		start = now_ns();
		while (now_ns() - start < 100000)
			ck_assert_uint_ne(atomic_load(&worker.ended), i);
		start = now_ns();
		ck_assert_int_eq(engine_core_abort(&worker.core, i), 0);
		WAIT_UNTIL(atomic_load(&worker.ended) == i);
		total += now_ns() - start;
		ck_assert_int_eq(atomic_load(&worker.result), 1);
		ck_assert_int_eq(worker.fault.kind, ENGINE_FAULT_ABORT);
		ck_assert(!worker.fault.address_known);
		ck_assert_uint_ge(worker.fault.pc, (uintptr_t)kernel_loop);
		ck_assert_uint_lt(worker.fault.pc, (uintptr_t)kernel_loop + 256);
	}
	printf("abort: %.1f us\n", (double)total / 200e3);

	/* An abort that comes before its run is honoured as the run begins. */
	ck_assert_int_eq(engine_core_abort(&worker.core, 500), 0);
	atomic_store(&worker.begin, 500);
	WAIT_UNTIL(atomic_load(&worker.ended) == 500);
	ck_assert_int_eq(worker.fault.kind, ENGINE_FAULT_ABORT);
	ck_assert_uint_eq(worker.fault.pc, 0);
	atomic_store(&worker.begin, UINT64_MAX);
	pthread_join(thread, NULL);
}
END_TEST

START_TEST(late_abort_is_ignored)
{
	int count = 0;
	int *args = &count;

	ck_assert_int_eq(run(kernel_count, &args), 0);
	ck_assert_int_eq(engine_core_abort(&core, seq),
			 0); /* to this very thread, outside a kernel */
	ck_assert_int_eq(run(kernel_count, &args), 0);
	ck_assert_int_eq(engine_core_abort(&core, seq + 5), 0);
	ck_assert_int_eq(run(kernel_count, &args), 0);
	ck_assert_int_eq(count, 3);
}
END_TEST

KERNEL static void kernel_turns(const void *args)
{
	for (volatile unsigned int left = *(const unsigned int *)args; left; left--)
		;
}

static void *hammer_main(void *arg)
{
	while (!atomic_load((_Atomic int *)arg))
		engine_core_abort(&core, atomic_load(&core.running));
	return NULL;
}

/* Aborts land at every instruction of the way in and out; the thread must come through unharmed. */
START_TEST(abort_at_any_moment)
{
	static _Atomic int stop;
	unsigned int turns = 0;
	pthread_t thread;
	int aborted = 0;
	uint64_t deadline = now_ns() + 2000000000ull;

	ck_assert_int_eq(pthread_create(&thread, NULL, hammer_main, &stop), 0);
	while (now_ns() < deadline && aborted < 20000) {
		turns = (turns * 1103515245u + 12345u) % 4096u;
		aborted += run(kernel_turns, &turns);
	}
	atomic_store(&stop, 1);
	pthread_join(thread, NULL);
	printf("short kernels aborted: %d of %llu\n", aborted, (unsigned long long)seq);
	ck_assert_int_gt(aborted, 0);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("abort");

	tcase_add_test(tcase, abort_of_an_endless_loop);
	tcase_add_test(tcase, late_abort_is_ignored);
	tcase_add_test(tcase, abort_at_any_moment);
	return run_suite("engine_abort", tcase);
}
