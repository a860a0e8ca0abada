/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NPU_TESTS_LIB_FAULT_H
#define NPU_TESTS_LIB_FAULT_H

/*
 * One core of an engine in the test's own thread: fixture, and a way to run a kernel on it.
 */

#include <check.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include "sim/engine_fault.h"

/* Kernels do wrong on purpose: no sanitizer may see it before the processor does. */
#define KERNEL __attribute__((noinline, no_sanitize("address", "undefined")))

static struct engine_core_fault core;
static struct engine_fault fault;
static uint64_t seq;

static inline int run(void (*entry)(const void *), const void *args)
{
	memset(&fault, 0xff, sizeof(fault));
	return engine_core_run(&core, entry, args, ++seq, &fault);
}

static inline void setup(void)
{
	memset(&core, 0, sizeof(core));
	core.stack_size = 1u << 20;
	ck_assert_int_eq(engine_core_init(&core), 0);
}

static inline void teardown(void)
{
	engine_core_fini(&core);
}

static inline uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

#define WAIT_UNTIL(condition)                                     \
	do {                                                      \
		uint64_t deadline_ns = now_ns() + 5000000000ull;  \
		while (!(condition)) {                            \
			ck_assert_uint_lt(now_ns(), deadline_ns); \
			sched_yield();                            \
		}                                                 \
	} while (0)

static inline int run_suite(const char *name, TCase *tcase)
{
	Suite *suite = suite_create(name);
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_set_timeout(tcase, 60);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}

#endif
