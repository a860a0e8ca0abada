/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process keeps when it forks, when npud goes away and when the device does: a child gets a
 * clear error and none of the parent's fds or memory; without npud queued work goes on and calls
 * fail at once; without the device everything says so, for ever.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <acl/acl.h>
#include "tests/lib/npud_fixture.h"
#include "tests/lib/runner.h"

#define OK(call) ck_assert_int_eq(call, 0)

static struct npud_fixture npud;
static aclrtBinHandle image;
static aclrtFuncHandle add, spin;
static aclrtStream stream;
static uint64_t *counter;
static unsigned fds_before;

static void setup(void)
{
	npud_start(&npud, NULL);
	fds_before = (unsigned)process_fds(getpid());
	OK(aclInit(NULL));
	OK(aclrtSetDevice(0));
	OK(aclrtBinaryLoadFromFile(NPU_TEST_KERNELS, NULL, &image));
	OK(aclrtBinaryGetFunction(image, "add", &add));
	OK(aclrtBinaryGetFunction(image, "spin", &spin));
	OK(aclrtCreateStream(&stream));
	OK(aclrtMalloc((void **)&counter, 4096, ACL_MEM_MALLOC_HUGE_FIRST));
	OK(aclrtMemset(counter, 4096, 0, 4096));
}

static void teardown(void)
{
	npud_stop(&npud);
}

static int launch(void)
{
	uint64_t args[2] = { (uintptr_t)counter, 1 };

	return aclrtLaunchKernelWithHostArgs(add, 1, stream, NULL, args, 16, NULL, 0);
}

static uint64_t value(void)
{
	uint64_t v;

	OK(aclrtMemcpy(&v, 8, counter, 8, ACL_MEMCPY_DEVICE_TO_HOST));
	return v;
}

/* Mappings of shared memory that this process has. */
static unsigned shared_mappings(void)
{
	char line[512];
	unsigned n = 0;
	FILE *maps = fopen("/proc/self/maps", "re");

	while (maps && fgets(line, sizeof(line), maps))
		n += strstr(line, "memfd:") != NULL;
	if (maps)
		fclose(maps);
	return n;
}

/* In the child: 0, or the number of what was wrong. */
static int child_checks(void *pinned)
{
	uint32_t count;
	int32_t device;
	void *p;

	(void)pinned;
	if ((unsigned)process_fds(getpid()) != fds_before)
		return 1;
	if (shared_mappings())
		return 2;
	if (launch() != ACL_ERROR_RT_DEV_SETUP_ERROR)
		return 3;
	if (!strstr(aclGetRecentErrMsg(), "fork"))
		return 4;
	if (aclrtSynchronizeStream(stream) != ACL_ERROR_RT_DEV_SETUP_ERROR ||
	    aclrtSynchronizeDevice() != ACL_ERROR_RT_DEV_SETUP_ERROR)
		return 5;
	if (aclrtMalloc(&p, 100, ACL_MEM_MALLOC_HUGE_FIRST) != ACL_ERROR_RT_DEV_SETUP_ERROR ||
	    aclrtFree(counter) != ACL_ERROR_RT_DEV_SETUP_ERROR)
		return 6;
	if (aclrtMemcpy(&p, 8, counter, 8, ACL_MEMCPY_DEVICE_TO_HOST) !=
	    ACL_ERROR_RT_DEV_SETUP_ERROR)
		return 7;
	if (aclrtSetDevice(0) != ACL_ERROR_RT_DEV_SETUP_ERROR ||
	    aclrtGetDevice(&device) != ACL_ERROR_RT_DEV_SETUP_ERROR ||
	    aclrtGetDeviceCount(&count) != ACL_ERROR_RT_DEV_SETUP_ERROR)
		return 8;
	aclrtResetDevice(0);
	aclFinalize();
	return 0;
}

START_TEST(child_gets_a_clear_error_and_nothing_else)
{
	void *pinned;
	int status;
	pid_t pid;

	OK(aclrtMallocHost(&pinned, 3 << 20));
	OK(launch());
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (!pid)
		_exit(child_checks(pinned));
	status = wait_for(pid, 20000);
	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), 0);
	/* The parent does not feel it. */
	OK(launch());
	OK(aclrtSynchronizeStream(stream));
	ck_assert_uint_eq(value(), 2);
	OK(aclrtFreeHost(pinned));
}
END_TEST

START_TEST(child_of_a_fresh_process_may_begin)
{
	int status;
	pid_t pid;

	pid = fork();
	if (!pid) {
		OK(aclInit(NULL));
		OK(aclrtSetDevice(0));
		OK(aclrtMalloc((void **)&counter, 4096, ACL_MEM_MALLOC_HUGE_FIRST));
		_exit(0);
	}
	status = wait_for(pid, 20000);
	ck_assert(WIFEXITED(status) && !WEXITSTATUS(status));
}
END_TEST

START_TEST(every_fd_is_close_on_exec)
{
	unsigned open_fds = 0;

	for (int fd = 0; fd < 1024; fd++) {
		int flags = fcntl(fd, F_GETFD);

		if (flags >= 0 && !(flags & FD_CLOEXEC))
			open_fds++;
	}
	/* Those that were there before the library: of Check and of the caller. */
	ck_assert_uint_le(open_fds, fds_before);
	ck_assert_uint_gt((unsigned)process_fds(getpid()), fds_before);
}
END_TEST

START_TEST(work_goes_on_without_npud)
{
	aclrtStream more;
	void *small, *large;

	OK(launch());
	OK(aclrtSynchronizeStream(stream));
	npud_end(&npud, SIGKILL);
	for (unsigned i = 0; i < 5000; i++)
		if (launch())
			ck_abort_msg("%s", aclGetRecentErrMsg());
	OK(aclrtSynchronizeStream(stream));
	ck_assert_uint_eq(value(), 5001);
	/* What needs npud fails at once, what the library has does not. */
	OK(aclrtMalloc(&small, 4096, ACL_MEM_MALLOC_HUGE_FIRST));
	OK(aclrtFree(small));
	ck_assert_int_eq(aclrtMalloc(&large, 64 << 20, ACL_MEM_MALLOC_HUGE_FIRST),
			 ACL_ERROR_RT_LOST_HEARTBEAT);
	ck_assert_ptr_nonnull(strstr(aclGetRecentErrMsg(), "npud"));
	OK(aclrtCreateStream(&more)); /* virtual until it has work */
	ck_assert_int_eq(aclrtMemsetAsync(counter, 8, 0, 8, more), ACL_ERROR_RT_LOST_HEARTBEAT);
}
END_TEST

static void *late_kill(void *arg)
{
	(void)arg;
	while (aclrtSetDevice(0) == 0) {
		aclrtStreamStatus status;

		if (aclrtStreamQuery(stream, &status) == 0 && status == ACL_STREAM_STATUS_NOT_READY)
			break;
	}
	kill(npud.sim, SIGKILL);
	return NULL;
}

START_TEST(lost_device_ends_every_wait)
{
	uint64_t arg = (uintptr_t)counter;
	pthread_t thread;
	void *p;

	OK(aclrtLaunchKernelWithHostArgs(spin, 1, stream, NULL, &arg, 8, NULL, 0));
	ck_assert_int_eq(pthread_create(&thread, NULL, late_kill, NULL), 0);
	ck_assert_int_eq(aclrtSynchronizeStreamWithTimeout(stream, 20000),
			 ACL_ERROR_RT_SOCKET_CLOSE);
	pthread_join(thread, NULL);
	ck_assert_ptr_nonnull(strstr(aclGetRecentErrMsg(), "lost"));
	ck_assert_int_eq(launch(), ACL_ERROR_RT_SOCKET_CLOSE);
	ck_assert_int_eq(aclrtSynchronizeDevice(), ACL_ERROR_RT_SOCKET_CLOSE);
	ck_assert_int_eq(aclrtMalloc(&p, 100, ACL_MEM_MALLOC_HUGE_FIRST),
			 ACL_ERROR_RT_SOCKET_CLOSE);
	ck_assert_int_eq(aclrtMemset(counter, 8, 0, 8), ACL_ERROR_RT_SOCKET_CLOSE);
}
END_TEST

START_TEST(no_npud_is_said_so)
{
	uint32_t count;

	setenv("NPUD_SOCKET", "/nonexistent/npud.sock", 1);
	OK(aclInit(NULL));
	ck_assert_int_eq(aclrtGetDeviceCount(&count), ACL_ERROR_RT_DEV_SETUP_ERROR);
	ck_assert_ptr_nonnull(strstr(aclGetRecentErrMsg(), "/nonexistent/npud.sock"));
	ck_assert_int_eq(aclrtSetDevice(0), ACL_ERROR_RT_DEV_SETUP_ERROR);
	OK(aclFinalize());
}
END_TEST

START_TEST(a_restart_of_npud_is_not_felt_without_open_devices)
{
	int64_t cores;
	uint32_t count;

	OK(aclInit(NULL));
	OK(aclrtGetDeviceCount(&count));
	npud_end(&npud, SIGKILL);
	ck_assert_int_ne(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_AICORE_CORE_NUM, &cores), 0);
	npud_launch(&npud);
	OK(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_AICORE_CORE_NUM, &cores));
	ck_assert_int_gt(cores, 0);
	OK(aclrtSetDevice(0));
	OK(aclrtResetDevice(0));
	OK(aclFinalize());
}
END_TEST

START_TEST(finalize_lets_go_and_init_begins_again)
{
	OK(aclrtFree(counter));
	OK(aclrtDestroyStream(stream));
	OK(aclrtBinaryUnLoad(image));
	OK(aclrtResetDevice(0));
	OK(aclFinalize());
	ck_assert_uint_eq((unsigned)process_fds(getpid()), fds_before);
	ck_assert_uint_eq(shared_mappings(), 0);
	OK(aclInit(NULL));
	OK(aclrtSetDevice(0));
	OK(aclrtBinaryLoadFromFile(NPU_TEST_KERNELS, NULL, &image));
	OK(aclrtBinaryGetFunction(image, "add", &add));
	OK(aclrtCreateStream(&stream));
	OK(aclrtMalloc((void **)&counter, 4096, ACL_MEM_MALLOC_HUGE_FIRST));
	OK(aclrtMemset(counter, 4096, 0, 4096));
	OK(launch());
	OK(aclrtSynchronizeStream(stream));
	ck_assert_uint_eq(value(), 1);
}
END_TEST

static void setup_daemon_only(void)
{
	npud_start(&npud, NULL);
}

int main(void)
{
	Suite *s = suite_create("fork_and_loss");
	TCase *t = tcase_create("used");
	TCase *fresh = tcase_create("fresh");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 120);
	tcase_add_test(t, child_gets_a_clear_error_and_nothing_else);
	tcase_add_test(t, every_fd_is_close_on_exec);
	tcase_add_test(t, work_goes_on_without_npud);
	tcase_add_test(t, lost_device_ends_every_wait);
	tcase_add_test(t, finalize_lets_go_and_init_begins_again);
	suite_add_tcase(s, t);
	tcase_add_checked_fixture(fresh, setup_daemon_only, teardown);
	tcase_set_timeout(fresh, 60);
	tcase_add_test(fresh, child_of_a_fresh_process_may_begin);
	tcase_add_test(fresh, no_npud_is_said_so);
	tcase_add_test(fresh, a_restart_of_npud_is_not_felt_without_open_devices);
	suite_add_tcase(s, fresh);
	return run_suite(s);
}
