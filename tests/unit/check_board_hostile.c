/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a client and its engine can do to the board stays within limits: nobody else waits for them,
 * is lost with them, or finds the board without means.
 */
#include <check.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "sim/board_engine.h"
#include "tests/lib/board_rig.h"
#include "tests/lib/npud_fixture.h"

static struct sim_board rig;
static struct sim_client client;

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* ---- engines ------------------------------------------------------------------------------- */

static bool ends_queue(const struct engine_msg *msg)
{
	return msg->type == ENGINE_QUEUE && !((const struct engine_queue *)engine_payload())->active;
}

static void engine_begin(int control)
{
	struct engine_ready ready = { .cores = 1 };
	struct engine_msg msg;

	if (engine_take(control, &msg) <= 0 || msg.type != ENGINE_SETUP)
		_exit(5);
	engine_give(control, ENGINE_READY, &ready, sizeof(ready));
}

/* Says nothing any more once a queue ends. */
static int engine_keeps_queue(int control, void *arg)
{
	struct engine_msg msg;

	(void)arg;
	engine_begin(control);
	while (engine_take(control, &msg) > 0 && !ends_queue(&msg))
		engine_ack(control, msg.seq);
	while (engine_take(control, &msg) > 0)
		;
	return 0;
}

/* Each answer comes just in time. */
static int engine_drags(int control, void *arg)
{
	struct engine_msg msg;

	(void)arg;
	engine_begin(control);
	while (engine_take(control, &msg) > 0) {
		poll(NULL, 0, (int)(board_engine_limit() / 1000000 * 3 / 4));
		engine_ack(control, msg.seq);
	}
	return 0;
}

/* Says that there are many kernels, then fewer than it has named. */
static int engine_takes_back(int control, void *arg)
{
	static struct engine_funcs funcs;
	struct engine_ack ack = { .value = 2 * ENGINE_FUNCS_MAX };

	(void)arg;
	ack.seq = engine_serve(control, ENGINE_MODULE);
	funcs.module = ((const struct engine_module *)engine_payload())->module;
	funcs.count = ENGINE_FUNCS_MAX;
	funcs.total = 2 * ENGINE_FUNCS_MAX;
	for (uint32_t i = 0; i < ENGINE_FUNCS_MAX; i++)
		funcs.funcs[i].name[0] = 'a';
	engine_give(control, ENGINE_FUNCS, &funcs, sizeof(funcs));
	funcs.first = ENGINE_FUNCS_MAX;
	funcs.total = 1;
	engine_give(control, ENGINE_FUNCS, &funcs, sizeof(funcs));
	engine_give(control, ENGINE_ACK, &ack, sizeof(ack));
	engine_serve(control, ENGINE_EXIT);
	return 0;
}

static int engine_exaggerates(int control, void *arg)
{
	struct engine_ack ack = { .status = INT32_MIN };

	(void)arg;
	ack.seq = engine_serve(control, ENGINE_MODULE);
	engine_give(control, ENGINE_ACK, &ack, sizeof(ack));
	engine_serve(control, ENGINE_EXIT);
	return 0;
}

/* The first one has a reason to leave when it is to load an image. */
static int engine_leaves_load(int control, void *arg)
{
	const struct engine_setup *setup = engine_payload();
	struct engine_ready ready = { .cores = 1 };
	struct engine_msg msg;

	if (engine_take(control, &msg) <= 0)
		return 5;
	if (setup->replaced) {
		engine_give(control, ENGINE_READY, &ready, sizeof(ready));
		return engine_good(control, arg);
	}
	engine_give(control, ENGINE_READY, &ready, sizeof(ready));
	engine_serve(control, ENGINE_MODULE);
	return 0;
}

/* Ends in order, again and again, and says that it has done something. */
static int engine_comes_and_goes(int control, void *arg)
{
	(void)arg;
	engine_begin(control);
	engine_page()->tasks_done = 1;
	return 0;
}

/* As above, each time with a fault. */
static int engine_fails_each_time(int control, void *arg)
{
	struct engine_fault_msg fault = { .fault.kind = NPU_FAULT_ACCESS };

	(void)arg;
	engine_begin(control);
	engine_page()->tasks_done = 1;
	engine_give(control, ENGINE_FAULT, &fault, sizeof(fault));
	return 0;
}

static int engine_floods(int control, void *arg)
{
	struct engine_fault_msg fault = { .fault.kind = NPU_FAULT_ACCESS };

	(void)arg;
	engine_ack(control, engine_serve(control, ENGINE_START));
	for (;;)
		engine_give(control, ENGINE_FAULT, &fault, sizeof(fault));
	return 0;
}

/* ---- what tests wait for ------------------------------------------------------------------- */

static uint64_t starts(void)
{
	return sim_client_counter(&client, client.session, NPU_COUNTER_ENGINE_STARTS);
}

static bool has_started(void *arg)
{
	return starts() >= *(uint64_t *)arg;
}

static void end(void)
{
	sim_client_session_end(&client);
	board_rig_stop(&rig, &client);
}

/* ---- tests --------------------------------------------------------------------------------- */

/* A new queue does not wait for the end of an old one; and when all slots are taken it says so. */
START_TEST(test_queue_end_holds_nobody)
{
	struct npu_queue_create create = { 0 };
	struct npu_queue_destroy destroy = { 0 };
	uint64_t once = 1;

	board_rig_start(&rig, &client, engine_keeps_queue);
	destroy.queue = board_rig_want_engine(&client);
	create.ctx = sim_client_context(&client);
	ck_assert(wait_until(has_started, &once, SIM_WAIT_MS));
	for (uint32_t i = 0; i < 40; i++) {
		create.head = destroy.head = (struct npu_head){ .session = client.session };
		ck_assert_int_eq(SIM_CALL(&client, QUEUE_DESTROY, &destroy), 0);
		ck_assert_int_eq(SIM_CALL(&client, QUEUE_CREATE, &create), 0);
		destroy.queue = create.queue;
	}
	ck_assert_uint_eq(starts(), 1);
	end();
}
END_TEST

/* Answers that all come in time, but only just, do not add up. */
START_TEST(test_dragging_engine_is_stopped)
{
	uint64_t twice = 2;

	board_rig_start(&rig, &client, engine_drags);
	for (uint32_t i = 0; i < 8; i++)
		board_rig_want_engine(&client);
	ck_assert(wait_until(has_started, &twice, SIM_WAIT_MS));
	end();
}
END_TEST

START_TEST(test_total_is_fixed)
{
	uint32_t module;

	board_rig_start(&rig, &client, engine_takes_back);
	ck_assert_int_lt(board_rig_load(&rig, &client, &module), 0);
	end();
}
END_TEST

START_TEST(test_status_is_an_errno)
{
	uint32_t module;

	board_rig_start(&rig, &client, engine_exaggerates);
	ck_assert_int_eq(board_rig_load(&rig, &client, &module), -4095);
	end();
}
END_TEST

START_TEST(test_orderly_end_keeps_load)
{
	uint32_t module;

	board_rig_start(&rig, &client, engine_leaves_load);
	board_rig_want_engine(&client);
	sim_client_engine(&client, 0);
	ck_assert_int_eq(board_rig_load(&rig, &client, &module), 0);
	ck_assert_uint_eq(starts(), 2);
	end();
}
END_TEST

/* The pause before the next engine doubles up to a second. */
START_TEST(test_restarts_are_paced)
{
	uint64_t many = 11, begin = now_ms();

	board_rig_start(&rig, &client, engine_comes_and_goes);
	board_rig_want_engine(&client);
	ck_assert(wait_until(has_started, &many, SIM_WAIT_MS));
	ck_assert_uint_ge(now_ms() - begin, 2000);
	end();
}
END_TEST

/* After a fault there is none, but a budget. */
START_TEST(test_restarts_have_a_budget)
{
	uint64_t burst = 64, many = 64 + 100, begin = now_ms();

	board_rig_start(&rig, &client, engine_fails_each_time);
	board_rig_want_engine(&client);
	ck_assert(wait_until(has_started, &burst, 2 * SIM_WAIT_MS));
	/* Under sanitizers an engine takes its time to start and to end. */
	ck_assert(wait_until(has_started, &many, 4 * SIM_WAIT_MS));
	ck_assert_uint_ge(now_ms() - begin, 1900);
	end();
}
END_TEST

/* Without fds there is no new engine now, but nobody is lost. */
START_TEST(test_no_fds_loses_nobody)
{
	struct rlimit all, few;
	struct pollfd life;
	uint64_t once = 1;

	board_rig_start(&rig, &client, engine_good);
	ck_assert_int_eq(prlimit(rig.pid, RLIMIT_NOFILE, NULL, &all), 0);
	few = all;
	few.rlim_cur = (rlim_t)process_fds(rig.pid);
	ck_assert_int_eq(prlimit(rig.pid, RLIMIT_NOFILE, &few, NULL), 0);
	board_rig_want_engine(&client);
	life = (struct pollfd){ .fd = client.life };
	ck_assert_int_eq(poll(&life, 1, 1500), 0);
	ck_assert_uint_eq(starts(), 0);
	ck_assert_int_eq(prlimit(rig.pid, RLIMIT_NOFILE, &all, NULL), 0);
	ck_assert(wait_until(has_started, &once, SIM_WAIT_MS));
	end();
}
END_TEST

/* One who takes memory until there are no fds leaves some for sessions and engines. */
START_TEST(test_memory_leaves_fds)
{
	struct rlimit few = { .rlim_cur = 256, .rlim_max = 256 };
	struct npu_mem_alloc alloc = { .kind = NPU_MEM_HOST, .bytes = NPU_PAGE_SMALL };
	struct sim_client other;
	unsigned int count = 0;
	int r;

	board_rig_start(&rig, &client, engine_good);
	ck_assert_int_eq(prlimit(rig.pid, RLIMIT_NOFILE, &few, NULL), 0);
	do {
		alloc.head = (struct npu_head){ .session = client.session };
		r = SIM_CALL(&client, MEM_ALLOC, &alloc);
		if (r == 0)
			close(client.fds[alloc.fd]);
		count++;
	} while (r == 0 && count < 1000);
	ck_assert_int_eq(r, -ENOMEM);
	ck_assert_uint_gt(count, 100);
	sim_client_open(&other, &rig);
	sim_client_session(&other);
	board_rig_want_engine(&other);
	sim_client_engine(&other, 0);
	sim_client_session_end(&other);
	sim_client_close(&other);
	end();
}
END_TEST

/* There may be none for a moment, while the releaser is behind. */
static bool allocates(void *arg)
{
	struct npu_mem_alloc *alloc = arg;
	int r;

	*alloc = (struct npu_mem_alloc){
		.head.session = client.session, .head.flags = NPU_MEM_POPULATE,
		.kind = NPU_MEM_DEVICE, .bytes = 16u << 20,
	};
	r = SIM_CALL(&client, MEM_ALLOC, alloc);
	ck_assert(r == 0 || r == -ENOSPC);
	return r == 0;
}

/* What is freed is not populated any more, and leaves nothing open. */
START_TEST(test_freed_memory_is_not_populated)
{
	struct npu_mem_alloc alloc;
	struct npu_mem_free free;
	int before;

	board_rig_start(&rig, &client, engine_good);
	before = process_fds(rig.pid);
	for (unsigned int i = 0; i < 300; i++) {
		ck_assert(wait_until(allocates, &alloc, SIM_WAIT_MS));
		close(client.fds[alloc.fd]);
		free = (struct npu_mem_free){ .head.session = client.session, .mem = alloc.mem };
		ck_assert_int_eq(SIM_CALL(&client, MEM_FREE, &free), 0);
	}
	ck_assert_int_lt(process_fds(rig.pid), before + 32);
	end();
}
END_TEST

static bool many_faults(void *arg)
{
	struct npu_error_query query = { .after = 3000 };

	return SIM_CALL((struct sim_client *)arg, ERROR_QUERY, &query) == 0;
}

/* One who does not look at its events for a while is not cut off for what an engine says. */
START_TEST(test_faults_do_not_fill_connection)
{
	struct npu_query query = { 0 };
	struct sim_client other;

	board_rig_start(&rig, &client, engine_floods);
	sim_client_open(&other, &rig);
	board_rig_want_engine(&client);
	ck_assert(wait_until(many_faults, &other, SIM_WAIT_MS));
	ck_assert_int_eq(SIM_CALL(&client, QUERY, &query), 0);
	sim_client_close(&other);
	end();
}
END_TEST

static unsigned long switches(pid_t pid)
{
	char path[64], *text, *at;
	unsigned long n;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	text = read_file(path);
	ck_assert_ptr_nonnull(text);
	at = strstr(text, "voluntary_ctxt_switches:");
	ck_assert_ptr_nonnull(at);
	n = strtoul(strchr(at, ':') + 1, NULL, 10);
	free(text);
	return n;
}

/* A doorbell that is rung all the time wakes the board only so often. */
START_TEST(test_doorbell_flood)
{
	unsigned long before = 0, rings = 0;
	uint64_t begin, one = 1;

	board_rig_start(&rig, &client, engine_good);
	board_rig_want_engine(&client);
	sim_client_engine(&client, 0);
	begin = now_ms();
	while (now_ms() - begin < 3500) {
		if (!before && now_ms() - begin > 2500)
			before = switches(rig.pid);
		ck_assert_int_eq(write(client.doorbell, &one, sizeof(one)), sizeof(one));
		rings += before != 0;
	}
	ck_assert_uint_gt(rings, 10000);
	ck_assert_uint_lt(switches(rig.pid) - before, 1000);
	end();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("board_hostile");
	TCase *tcase = tcase_create("all");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 240);
	tcase_add_test(tcase, test_queue_end_holds_nobody);
	tcase_add_test(tcase, test_dragging_engine_is_stopped);
	tcase_add_test(tcase, test_total_is_fixed);
	tcase_add_test(tcase, test_status_is_an_errno);
	tcase_add_test(tcase, test_orderly_end_keeps_load);
	tcase_add_test(tcase, test_restarts_are_paced);
	tcase_add_test(tcase, test_restarts_have_a_budget);
	tcase_add_test(tcase, test_no_fds_loses_nobody);
	tcase_add_test(tcase, test_memory_leaves_fds);
	tcase_add_test(tcase, test_freed_memory_is_not_populated);
	tcase_add_test(tcase, test_faults_do_not_fill_connection);
	tcase_add_test(tcase, test_doorbell_flood);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
