/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several programs on one device: they work side by side, and one that faults, hangs or is killed
 * hurts nobody and leaves nothing behind. Real processes: each client is a child that uses the public
 * API only.
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include "tests/lib/client_process.h"

static void setup(void)
{
	npud_start(&client_npud, NULL);
}

static void teardown(void)
{
	npud_stop(&client_npud);
}

START_TEST(clients_work_side_by_side)
{
	pid_t pid[4];
	int in, out;

	for (unsigned i = 0; i < 4; i++)
		pid[i] = client_start(client_worker, &in, &out);
	for (unsigned i = 0; i < 4; i++)
		client_assert_ok(pid[i]);
	ck_assert(wait_until(client_no_engine, NULL, 10000));
}
END_TEST

static void faulty_main(int in, int out)
{
	static const struct { const char *kernel; uint64_t arg; } wrong[] = {
		{ "poke", 0 }, { "poke", 0x7e9000000000 }, { "divide", 0 }, { "poke", 0xffff000000000000 },
	};
	struct client c;

	(void)in;
	client_begin(&c);
	client_say(out);
	for (unsigned i = 0; i < 200; i++) {
		unsigned k = i % 4;
		uint64_t arg = k == 2 ? (uintptr_t)c.device : wrong[k].arg;
		const char *text;
		aclError code;

		OK(aclrtMemset(c.device, MIB, 0, 8));
		client_launch(&c, wrong[k].kernel, 1, arg, 1, k == 2 ? 1 : 2);
		code = aclrtSynchronizeStream(c.stream);
		text = aclGetRecentErrMsg();
		if (code != ACL_ERROR_RT_AICORE_EXCEPTION)
			fprintf(stderr, "round %u: code %d: %s\n", i, code, text ? text : "no text");
		THAT(code == ACL_ERROR_RT_AICORE_EXCEPTION);
		THAT(text && strstr(text, wrong[k].kernel));
		if (i % 50 == 0)
			client_work(&c, 100);
	}
	client_end(&c);
}

START_TEST(a_faulting_client_hurts_nobody)
{
	pid_t good[2], bad;
	int in, out;

	good[0] = client_start(client_worker, &in, &out);
	bad = client_start(faulty_main, &in, &out);
	good[1] = client_start(client_worker, &in, &out);
	client_assert_ok(good[0]);
	client_assert_ok(good[1]);
	client_assert_ok(bad);
	ck_assert(wait_until(client_no_engine, NULL, 10000));
}
END_TEST

/* Holds memory of every kind, a kernel that never ends, queued work; then waits to be killed. */
static void victim_main(int in, int out)
{
	struct client c;
	void *host, *more;
	aclrtEvent event;

	client_begin(&c);
	OK(aclrtMallocHost(&host, 4 * MIB));
	memset(host, 1, 4 * MIB);
	OK(aclrtMalloc(&more, 64 * MIB, ACL_MEM_MALLOC_HUGE_FIRST));
	OK(aclrtMemset(more, 64 * MIB, 1, 64 * MIB));
	OK(aclrtCreateEvent(&event));
	client_launch(&c, "spin", 2, (uintptr_t)c.device, 0, 1);
	OK(aclrtMemcpyAsync(more, 4 * MIB, host, 4 * MIB, ACL_MEMCPY_HOST_TO_DEVICE, c.stream));
	OK(aclrtRecordEvent(event, c.stream));
	client_say(out);
	client_hear(in);
	_exit(12);
}

START_TEST(a_killed_client_leaves_nothing)
{
	int in, out;
	pid_t pid;

	/* One client first, so that what is made once is made. */
	client_assert_ok(client_start(client_memory, &in, &out));
	ck_assert(wait_until(client_no_engine, NULL, 10000));
	client_level_remember();
	for (unsigned i = 0; i < 10; i++) {
		pid = client_start(victim_main, &in, &out);
		ck_assert(client_hear(out));
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		close(in);
		close(out);
	}
	if (!wait_until(client_level_is_back, NULL, 10000)) {
		client_level_print(stderr);
		ck_abort_msg("something is left");
	}
	client_assert_ok(client_start(client_memory, &in, &out));
}
END_TEST

/* A kernel that never ends keeps neither its neighbours nor its own end from coming. */
static void hanging_main(int in, int out)
{
	struct client c;
	aclError code;

	(void)in;
	client_begin(&c);
	OK(aclrtSetOpExecuteTimeOutV2(200000, &(uint64_t){ 0 }));
	client_launch(&c, "spin", 2, (uintptr_t)c.device, 0, 1);
	client_say(out);
	THAT(aclrtSynchronizeStreamWithTimeout(c.stream, 1) == ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
	code = aclrtSynchronizeStream(c.stream);
	THAT(code == ACL_ERROR_RT_AICORE_TIMEOUT);
	client_work(&c, 100);
	client_end(&c);
}

START_TEST(a_hanging_kernel_ends_by_its_limit)
{
	pid_t good, bad;
	int in, out;

	bad = client_start(hanging_main, &in, &out);
	ck_assert(client_hear(out));
	good = client_start(client_worker, &in, &out);
	client_assert_ok(good);
	client_assert_ok(bad);
}
END_TEST

/* 20 GiB in turn on a device of 1 GiB: what was freed is there again, and full is full. */
static void churn_main(int in, int out)
{
	struct client c;
	void *p, *q;

	(void)in;
	(void)out;
	client_begin(&c);
	for (unsigned i = 0; i < 200; i++) {
		OK(aclrtMalloc(&p, 100 * MIB, ACL_MEM_MALLOC_HUGE_FIRST));
		OK(aclrtFree(p));
	}
	OK(aclrtMalloc(&p, 600 * MIB, ACL_MEM_MALLOC_HUGE_FIRST));
	THAT(aclrtMalloc(&q, 600 * MIB, ACL_MEM_MALLOC_HUGE_FIRST) == ACL_ERROR_RT_MEMORY_ALLOCATION);
	OK(aclrtFree(p));
	OK(aclrtMalloc(&q, 600 * MIB, ACL_MEM_MALLOC_HUGE_FIRST));
	OK(aclrtFree(q));
	client_end(&c);
}

START_TEST(freed_memory_is_there_again)
{
	int in, out;

	client_assert_ok(client_start(churn_main, &in, &out));
}
END_TEST

START_TEST(a_second_npud_is_refused_by_name)
{
	char command[512], line[512] = "", want[32];
	FILE *p;
	int status;

	snprintf(command, sizeof(command),
		 NPU_BUILD_DIR "/npud --foreground --runtime-dir %s --device sim 2>&1", client_npud.dir);
	p = popen(command, "re");
	ck_assert_ptr_nonnull(p);
	ck_assert_ptr_nonnull(fgets(line, sizeof(line), p));
	status = pclose(p);
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) != 0);
	snprintf(want, sizeof(want), "%d", client_npud.npud);
	ck_assert_msg(strstr(line, want), "no pid %s in: %s", want, line);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("sharing");
	SRunner *r;
	TCase *t;
	int failed;

	t = tcase_create("sharing");
	tcase_set_timeout(t, 120);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, clients_work_side_by_side);
	tcase_add_test(t, a_faulting_client_hurts_nobody);
	tcase_add_test(t, a_killed_client_leaves_nothing);
	tcase_add_test(t, a_hanging_kernel_ends_by_its_limit);
	tcase_add_test(t, freed_memory_is_there_again);
	tcase_add_test(t, a_second_npud_is_refused_by_name);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
