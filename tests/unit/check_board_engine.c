/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The board against engines that do not do what they should. The board runs in a child process,
 * with an engine_main of the test's own; the test is its client.
 */
#include <check.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/lib/board_rig.h"
#include "tests/lib/npud_fixture.h"
#include "tests/lib/sim_client.h"

static struct sim_board rig;
static struct sim_client client;

/* ---- engines ------------------------------------------------------------------------------- */

static int engine_leaves(int control, void *arg)
{
	(void)control;
	(void)arg;
	return 0;
}

static int engine_sleeps(int control, void *arg)
{
	(void)arg;
	engine_serve(control, ENGINE_START);
	pause();
	return 0;
}

static int engine_babbles(int control, void *arg)
{
	unsigned int seed = 3;
	char noise[256];

	(void)arg;
	engine_serve(control, ENGINE_START);
	for (;;) {
		size_t len = (size_t)rand_r(&seed) % 255 + 1;
		struct iovec iov = { .iov_base = noise, .iov_len = len };
		struct msghdr hdr = { .msg_iov = &iov, .msg_iovlen = 1 };

		for (size_t i = 0; i < sizeof(noise); i++)
			noise[i] = (char)rand_r(&seed);
		if (sendmsg(control, &hdr, MSG_NOSIGNAL) < 0)
			_exit(4);
	}
}

static int engine_answers_too_much(int control, void *arg)
{
	uint64_t seq = engine_serve(control, ENGINE_START);

	(void)arg;
	for (;;)
		engine_ack(control, seq++);
	return 0;
}

static int engine_gives_fds(int control, void *arg)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int))];
	} cmsg = { .align = { .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET,
			      .cmsg_type = SCM_RIGHTS } };
	struct engine_msg head = {
		.magic = ENGINE_PROTO_MAGIC, .type = ENGINE_ACK, .bytes = sizeof(struct engine_ack),
	};
	struct engine_ack ack = { .seq = engine_serve(control, ENGINE_START) };
	struct iovec iov[2] = {
		{ .iov_base = &head, .iov_len = sizeof(head) },
		{ .iov_base = &ack, .iov_len = sizeof(ack) },
	};
	struct msghdr hdr = {
		.msg_iov = iov, .msg_iovlen = 2,
		.msg_control = &cmsg, .msg_controllen = sizeof(cmsg),
	};

	(void)arg;
	memcpy(CMSG_DATA(&cmsg.align), &control, sizeof(int));
	sendmsg(control, &hdr, MSG_NOSIGNAL);
	pause();
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

static int engine_invents_faults(int control, void *arg)
{
	struct engine_fault_msg fault = { .fault.kind = 77, .slot = 5000 };

	(void)arg;
	engine_ack(control, engine_serve(control, ENGINE_START));
	engine_give(control, ENGINE_FAULT, &fault, sizeof(fault));
	pause();
	return 0;
}

/* Kernels without names, more than it says, for a module that nobody asked about. */
static int engine_invents_kernels(int control, void *arg)
{
	static struct engine_funcs funcs = {
		.module = 1, .count = ENGINE_FUNCS_MAX + 1, .total = 1,
	};

	(void)arg;
	engine_serve(control, ENGINE_MODULE);
	engine_give(control, ENGINE_FUNCS, &funcs, sizeof(funcs));
	pause();
	return 0;
}

static bool is_dead(void *arg)
{
	struct pollfd life = { .fd = client.life };
	struct npu_version version = { .major = NPU_UAPI_MAJOR };

	(void)arg;
	/* The board answers all the while. */
	ck_assert_int_eq(SIM_CALL(&client, VERSION, &version), 0);
	return poll(&life, 1, 0) == 1;
}

static bool was_replaced(void *arg)
{
	return sim_client_counter(&client, client.session, NPU_COUNTER_ENGINE_STARTS) >
	       *(uint64_t *)arg;
}

/* ---- tests --------------------------------------------------------------------------------- */

/* Dies, or has to be killed, as often as it is started: the session is lost and says so. */
static int (*const broken[])(int control, void *arg) = {
	engine_leaves, engine_babbles, engine_answers_too_much, engine_gives_fds,
	engine_invents_faults,
};

START_TEST(test_broken_engine_loses_session)
{
	struct npu_event event;

	board_rig_start(&rig, &client, broken[_i]);
	board_rig_want_engine(&client);
	ck_assert(wait_until(is_dead, NULL, SIM_WAIT_MS));
	do {
		event = sim_client_event(&client, NPU_EVENT_FAULT);
	} while (event.fault.kind != NPU_FAULT_LOST);
	ck_assert_uint_eq(event.session, client.session);
	sim_client_session_end(&client);
	board_rig_stop(&rig, &client);
}
END_TEST

/* One that takes no notice is killed after the limit, and another takes its place. */
START_TEST(test_deaf_engine_is_replaced)
{
	uint64_t once = 1;

	board_rig_start(&rig, &client, engine_sleeps);
	board_rig_want_engine(&client);
	ck_assert(wait_until(was_replaced, &once, SIM_WAIT_MS * 2));
	sim_client_session_end(&client);
	board_rig_stop(&rig, &client);
}
END_TEST

/* A flood of faults is read at a bounded rate: everybody else is served. */
START_TEST(test_flood_leaves_board_usable)
{
	struct sim_client other;
	struct npu_event event;

	board_rig_start(&rig, &client, engine_floods);
	board_rig_want_engine(&client);
	event = sim_client_event(&client, NPU_EVENT_FAULT);
	ck_assert_uint_eq(event.fault.kind, NPU_FAULT_ACCESS);
	sim_client_open(&other, &rig);
	for (int i = 0; i < 200; i++) {
		struct npu_query query = { 0 };

		ck_assert_int_eq(SIM_CALL(&other, QUERY, &query), 0);
	}
	sim_client_close(&other);
	sim_client_session_end(&client);
	board_rig_stop(&rig, &client);
}
END_TEST

START_TEST(test_invented_kernels_fail_load)
{
	uint32_t module;

	board_rig_start(&rig, &client, engine_invents_kernels);
	ck_assert_int_lt(board_rig_load(&rig, &client, &module), 0);
	sim_client_session_end(&client);
	board_rig_stop(&rig, &client);
}
END_TEST

START_TEST(test_claimed_name_is_made_printable)
{
	struct npu_func_lookup lookup = { 0 };
	uint32_t module;

	board_rig_start(&rig, &client, engine_good);
	ck_assert_int_eq(board_rig_load(&rig, &client, &module), 0);
	lookup.head.session = client.session;
	lookup.module = module;
	ck_assert_int_eq(SIM_CALL(&client, FUNC_LOOKUP, &lookup), 0);
	ck_assert_ptr_nonnull(memchr(lookup.name, 0, sizeof(lookup.name)));
	for (const char *c = lookup.name; *c; c++)
		ck_assert(*c >= 0x20 && *c < 0x7f);
	sim_client_session_end(&client);
	board_rig_stop(&rig, &client);
}
END_TEST

/* Each change of a session with an engine is a message that it answers: none is lost in a crowd. */
START_TEST(test_many_maps)
{
	uint64_t mem;
	int fd;

	board_rig_start(&rig, &client, engine_good);
	mem = sim_client_memory(&client, NPU_MEM_DEVICE, 16u << 20, &fd);
	close(fd);
	for (uint64_t i = 0; i < 256; i++) {
		struct npu_mem_map map = {
			.head.session = client.session, .mem = mem, .offset = i * NPU_PAGE_SMALL,
			.address = NPU_WINDOW_BASE + 2 * i * NPU_PAGE_SMALL,
			.bytes = NPU_PAGE_SMALL,
		};

		ck_assert_int_eq(SIM_CALL(&client, MEM_MAP, &map), 0);
		if (i == 100)
			board_rig_want_engine(&client);
	}
	sim_client_engine(&client, 0);
	ck_assert_uint_eq(sim_client_counter(&client, client.session, NPU_COUNTER_ENGINE_STARTS),
			  1);
	sim_client_session_end(&client);
	board_rig_stop(&rig, &client);
}
END_TEST

static pid_t nursery_of_rig(void)
{
	char path[64], *text;
	pid_t pid;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)rig.pid, (int)rig.pid);
	text = read_file(path);
	pid = text ? atoi(text) : 0;
	free(text);
	return pid;
}

/* Without a nursery there is no new engine: who needs one is told, and so is who asks. */
START_TEST(test_dead_nursery_is_told)
{
	struct npu_query query = { 0 };
	pid_t nursery;

	board_rig_start(&rig, &client, engine_good);
	nursery = nursery_of_rig();
	if (nursery) {
		ck_assert_int_eq(kill(nursery, SIGKILL), 0);
		board_rig_want_engine(&client);
		ck_assert(wait_until(is_dead, NULL, SIM_WAIT_MS));
		ck_assert_int_eq(SIM_CALL(&client, QUERY, &query), 0);
		ck_assert_uint_eq(query.health, NPU_HEALTH_DEGRADED);
	}
	sim_client_session_end(&client);
	board_rig_stop(&rig, &client);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("board_engine");
	TCase *tcase = tcase_create("engines");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 120);
	tcase_add_loop_test(tcase, test_broken_engine_loses_session, 0, 5);
	tcase_add_test(tcase, test_deaf_engine_is_replaced);
	tcase_add_test(tcase, test_flood_leaves_board_usable);
	tcase_add_test(tcase, test_invented_kernels_fail_load);
	tcase_add_test(tcase, test_claimed_name_is_made_printable);
	tcase_add_test(tcase, test_many_maps);
	tcase_add_test(tcase, test_dead_nursery_is_told);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
