/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The public calls with a device: devices, contexts, errors, and what a forked child and a missing
 * npud get.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/api.h"
#include "tests/lib/npud_fixture.h"
#include "tests/lib/runner.h"

static struct npud_fixture npud;

static void setup(void)
{
	npud_start(&npud, NULL);
}

static void teardown(void)
{
	npud_stop(&npud);
}

/* ---- device and context ---- */

START_TEST(devices_are_set_and_reset_by_count)
{
	uint32_t count = 0;
	int32_t device = 77, active = 77;
	int64_t value = 77;

	OK(aclInit(NULL));
	OK(aclrtGetDeviceCount(&count));
	ck_assert_uint_ge(count, 1);
	OK(aclrtGetPrimaryCtxState(0, NULL, &active));
	ck_assert_int_eq(active, 0);
	SAYS(RT_CONTEXT, "aclrtSetDevice", aclrtGetDevice(&device));
	ck_assert_int_eq(device, 77);
	SAYS(107001, "-1", aclrtSetDevice(-1));
	CODE(107001, aclrtSetDevice((int32_t)count));
	CODE(107001, aclrtResetDevice((int32_t)count));
	CODE(107001, aclrtGetDeviceInfo(count, ACL_DEV_ATTR_AICORE_CORE_NUM, &value));
	CODE(107001, aclrtGetDeviceInfo(~0u, ACL_DEV_ATTR_AICORE_CORE_NUM, &value));
	ck_assert_int_eq(value, 77);
	CODE(107001, aclrtGetPrimaryCtxState(-1, NULL, &active));
	CODE(RT_RELEASED, aclrtResetDevice(0));
	CODE(RT_RELEASED, aclrtResetDeviceForce(0));

	OK(aclrtSetDevice(0));
	OK(aclrtSetDevice(0));
	OK(aclrtGetDevice(&device));
	ck_assert_int_eq(device, 0);
	OK(aclrtGetPrimaryCtxState(0, NULL, &active));
	ck_assert_int_eq(active, 1);
	OK(aclrtResetDevice(0));
	OK(aclrtGetDevice(&device));
	OK(aclrtResetDevice(0));
	CODE(RT_RELEASED, aclrtResetDevice(0));
	OK(aclrtGetPrimaryCtxState(0, NULL, &active));
	ck_assert_int_eq(active, 0);

	OK(aclrtSetDevice(0));
	OK(aclrtSetDevice(0));
	OK(aclrtResetDeviceForce(0));
	CODE(RT_RELEASED, aclrtResetDeviceForce(0));
	CODE(RT_RELEASED, aclrtResetDevice(0));
	CODE(RT_CONTEXT, aclrtSynchronizeDevice());
	OK(aclrtSetDevice(0));
	OK(aclrtSynchronizeDevice());
	OK(aclrtSynchronizeDeviceWithTimeout(0));
	OK(aclrtResetDevice(0));
	OK(aclFinalize());
}
END_TEST

START_TEST(facts_of_the_device)
{
	int64_t cores = 0, memory = 0, is_virtual = 0;
	int32_t can = 77;
	aclrtDeviceStatus status = ACL_RT_DEVICE_STATUS_ABNORMAL;
	aclrtUtilizationInfo use = { .memoryUtilization = 5 };
	size_t free_bytes, total;

	api_begin();
	OK(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_AICORE_CORE_NUM, &cores));
	ck_assert_int_ge(cores, 1);
	OK(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE, &memory));
	OK(aclrtGetMemInfo(ACL_HBM_MEM, &free_bytes, &total));
	ck_assert_uint_eq(total, (uint64_t)memory);
	OK(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_IS_VIRTUAL, &is_virtual));
	ck_assert_int_eq(is_virtual, 1);
	OK(aclrtQueryDeviceStatus(0, &status));
	ck_assert_int_eq(status, ACL_RT_DEVICE_STATUS_NORMAL);
	OK(aclrtGetDeviceUtilizationRate(0, &use));
	ck_assert(use.cubeUtilization >= 0 && use.cubeUtilization <= 100);
	ck_assert_int_eq(use.memoryUtilization, -1);
	ck_assert_ptr_nonnull(aclrtGetSocName());
	ck_assert_uint_gt(strlen(aclrtGetSocName()), 0);
	CODE(107001, aclrtDeviceCanAccessPeer(&can, 0, 63));
	ck_assert_int_eq(can, 77);
	ck_assert_int_ne(aclrtDeviceEnablePeerAccess(63, 0), 0);
	ck_assert_int_ne(aclrtDeviceDisablePeerAccess(63), 0);
	api_end();
}
END_TEST

static void in_new_thread(void *arg)
{
	aclrtContext primary = arg, context = NULL;
	aclrtStream stream = NULL;

	CODE(RT_CONTEXT, aclrtGetCurrentContext(&context));
	CODE(RT_CONTEXT, aclrtCreateStream(&stream));
	CODE(RT_CONTEXT, aclrtSynchronizeStream(NULL));
	ck_assert(!context && !stream);
	OK(aclrtSetCurrentContext(primary));
	OK(aclrtGetCurrentContext(&context));
	ck_assert_ptr_eq(context, primary);
}

START_TEST(contexts_are_a_matter_of_the_thread)
{
	aclrtContext primary, other, now;
	aclrtStream stream, default_stream, again;

	api_begin();
	OK(aclrtGetCurrentContext(&primary));
	api_on_thread(in_new_thread, primary);
	OK(aclrtCtxGetCurrentDefaultStream(&default_stream));
	OK(aclrtCreateContext(&other, 0));
	OK(aclrtGetCurrentContext(&now));
	ck_assert_ptr_eq(now, other);
	OK(aclrtCtxGetCurrentDefaultStream(&again));
	ck_assert_ptr_ne(again, default_stream);
	OK(aclrtCreateStream(&stream));
	OK(aclrtSetDevice(0)); /* back to the primary one */
	OK(aclrtGetCurrentContext(&now));
	ck_assert_ptr_eq(now, primary);
	CODE(RT_STREAM, aclrtDestroyStream(stream)); /* of another context */
	SAYS(RT_CONTEXT, "primary", aclrtDestroyContext(primary));
	OK(aclrtSetCurrentContext(other));
	OK(aclrtDestroyStream(stream));
	OK(aclrtDestroyContext(other));
	CODE(RT_CONTEXT, aclrtDestroyContext(other));
	CODE(RT_CONTEXT, aclrtSetCurrentContext(other));
	CODE(RT_CONTEXT, aclrtSetCurrentContext(default_stream)); /* no context */
	CODE(RT_CONTEXT, aclrtSetCurrentContext((void *)~(uintptr_t)0));
	CODE(RT_CONTEXT, aclrtDestroyContext((void *)8));
	OK(aclrtSetDevice(0));
	OK(aclrtSynchronizeStream(NULL));
	CODE(107001, aclrtCreateContext(&other, 99));
	OK(aclrtResetDeviceForce(0));
	OK(aclFinalize());
}
END_TEST

/* A context that another thread ends while this one has it. */
static void destroy_it(void *arg)
{
	OK(aclrtDestroyContext(arg));
}

START_TEST(a_context_that_another_thread_destroys)
{
	aclrtContext context;
	aclrtStream stream;
	int code;

	api_begin();
	OK(aclrtCreateContext(&context, 0));
	api_on_thread(destroy_it, context);
	code = aclrtCreateStream(&stream);
	ck_assert_msg(code == RT_CONTEXT || code == RT_RELEASED, "%d", code);
	OK(aclrtSetDevice(0));
	OK(aclrtCreateStream(&stream));
	OK(aclrtDestroyStream(stream));
	OK(aclrtResetDeviceForce(0));
	OK(aclFinalize());
}
END_TEST

/* A reset takes streams along; the primary context comes back under the same name. */
START_TEST(what_a_reset_takes_along)
{
	aclrtContext before, after;
	aclrtStream stream;
	aclrtEvent event;

	api_begin();
	OK(aclrtGetCurrentContext(&before));
	OK(aclrtCreateStream(&stream));
	OK(aclrtCreateEvent(&event));
	OK(aclrtRecordEvent(event, stream));
	OK(aclrtResetDevice(0));
	CODE(RT_CONTEXT, aclrtSynchronizeStream(NULL));
	OK(aclrtSetDevice(0));
	OK(aclrtGetCurrentContext(&after));
	ck_assert_ptr_eq(before, after);
	CODE(RT_STREAM, aclrtSynchronizeStream(stream));
	CODE(RT_STREAM, aclrtDestroyStream(stream));
	OK(aclrtSynchronizeStream(NULL));
	api_end();
}
END_TEST

/* ---- errors ---- */

static void no_errors_here(void *arg)
{
	(void)arg;
	ck_assert_ptr_null(aclGetRecentErrMsg());
	CODE(0, aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL));
}

START_TEST(errors_are_kept_for_the_thread)
{
	const char *text;
	void *memory;

	api_begin();
	ck_assert_ptr_null(aclGetRecentErrMsg());
	CODE(PARAM, aclrtMalloc(&memory, 0, 0)); /* of the first layer: no runtime error */
	CODE(0, aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL));
	CODE(RT_STREAM, aclrtSynchronizeStream((void *)8));
	CODE(107001, aclrtSetDevice(-5));
	api_on_thread(no_errors_here, NULL);
	CODE(107001, aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL));
	CODE(107001, aclrtGetLastError(ACL_RT_THREAD_LEVEL));
	CODE(0, aclrtGetLastError(ACL_RT_THREAD_LEVEL));
	/* newest first, one a line, gone when they were read */
	text = aclGetRecentErrMsg();
	ck_assert_ptr_nonnull(text);
	ck_assert_ptr_nonnull(strstr(text, "-5"));
	ck_assert_ptr_nonnull(strstr(text, "EH0001: aclrtMalloc: size is 0"));
	ck_assert(strstr(text, "-5") < strstr(text, "EH0001"));
	ck_assert_ptr_null(aclGetRecentErrMsg());
	api_end();
}
END_TEST

START_TEST(a_fault_is_told_once)
{
	void *bad = (void *)0x7e9000000008; /* in the window, of no allocation */
	aclrtBinHandle image;
	aclrtStream stream;
	const char *text;

	api_begin();
	image = api_image();
	OK(aclrtCreateStream(&stream));
	OK(aclrtLaunchKernelWithHostArgs(api_kernel(image, "poke"), 1, stream, NULL, &bad, 8, NULL,
					 0));
	SAYS(507015, "poke", aclrtSynchronizeStream(stream));
	CODE(507015, aclrtGetLastError(ACL_RT_THREAD_LEVEL));
	OK(aclrtSynchronizeStream(stream));
	OK(aclrtLaunchKernelWithHostArgs(api_kernel(image, "poke"), 1, stream, NULL, &bad, 8, NULL,
					 0));
	CODE(507015, aclrtSynchronizeStream(stream));
	text = aclGetRecentErrMsg();
	ck_assert_ptr_nonnull(text);
	ck_assert_msg(strstr(text, "7e9000000008") != NULL, "no address in: %s", text);
	OK(aclrtDestroyStream(stream));
	api_end();
}
END_TEST

static void fails_here(void *arg)
{
	(void)arg;
	CODE(107001, aclrtSetDevice(-6));
}

START_TEST(one_list_of_texts_for_the_process)
{
	char path[] = "/tmp/npud-acl.XXXXXX";
	static const char config[] = "{\"err_msg_mode\": \"1\", "
				     "\"defaultDevice\": {\"default_device\": \"0\"}}";
	int32_t device = 77;
	int fd = mkostemp(path, O_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, config, strlen(config)), (ssize_t)strlen(config));
	close(fd);
	OK(aclInit(path));
	unlink(path);
	api_on_thread(fails_here, NULL);
	SAYS(107001, "-7", aclrtSetDevice(-7));
	api_on_thread(fails_here, NULL);
	ck_assert_ptr_nonnull(strstr(aclGetRecentErrMsg(), "-6"));
	OK(aclrtSynchronizeStream(NULL)); /* sets the configured device */
	OK(aclrtGetDevice(&device));
	ck_assert_int_eq(device, 0);
	OK(aclFinalize());
}
END_TEST

/* ---- the process ---- */

/* In the child: 0 when every call says what it should. */
static int child_main(aclrtStream stream, void *memory)
{
	static char host[8];
	aclrtStream other;
	const char *text;

	aclGetRecentErrMsg();
	if (aclrtSynchronizeStream(stream) != 507033 || aclrtSetDevice(0) != 507033 ||
	    aclInit(NULL) != 507033 || aclrtCreateStream(&other) != 507033 ||
	    aclrtFree(memory) != 507033 || aclrtMemset(memory, 8, 0, 8) != 507033 ||
	    aclrtMemcpy(host, 8, memory, 8, ACL_MEMCPY_DEVICE_TO_HOST) != 507033 ||
	    aclrtResetDevice(0) != 507033 || aclFinalize() != 507033)
		return 1;
	if (aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL) != 507033)
		return 2;
	if (aclrtDestroyStream(NULL) != PARAM)
		return 3;
	text = aclGetRecentErrMsg();
	return text && strstr(text, "fork") ? 0 : 4;
}

START_TEST(a_forked_child_gets_a_clear_error)
{
	struct api_gate gate;
	aclrtBinHandle image;
	aclrtStream stream;
	void *memory;
	int status;
	pid_t pid;

	api_begin();
	image = api_image();
	memory = api_malloc(64);
	OK(aclrtCreateStream(&stream));
	api_gate_close(&gate, image, stream);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0)
		_exit(child_main(stream, memory));
	status = wait_for(pid, 20000);
	ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "child: 0x%x", status);
	/* the parent's work goes on */
	CODE(507046, aclrtSynchronizeStreamWithTimeout(stream, 1));
	api_gate_open(&gate);
	OK(aclrtSynchronizeStream(stream));
	OK(aclrtFree(memory));
	api_end();
}
END_TEST

START_TEST(a_fork_before_the_first_call_is_fine)
{
	pid_t pid = fork();
	int status;

	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		int code = aclInit(NULL);

		code = code ? code : aclrtSetDevice(0);
		code = code ? code : aclrtSynchronizeDevice();
		code = code ? code : aclrtResetDevice(0);
		_exit(code != 0);
	}
	api_begin();
	status = wait_for(pid, 20000);
	ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "child: 0x%x", status);
	api_end();
}
END_TEST

START_TEST(file_descriptors_end_at_exec)
{
	bool mine[256] = { false };
	struct api_gate gate;
	aclrtBinHandle image;
	unsigned found = 0;

	for (int fd = 0; fd < 256; fd++)
		mine[fd] = fcntl(fd, F_GETFD) >= 0;
	api_begin();
	image = api_image();
	ck_assert_ptr_nonnull(api_malloc(8 << 20));
	api_gate_close(&gate, image, NULL);
	api_gate_open(&gate);
	OK(aclrtSynchronizeDevice());
	for (int fd = 0; fd < 256; fd++) {
		int flags = fcntl(fd, F_GETFD);

		if (mine[fd] || flags < 0)
			continue;
		found++;
		ck_assert_msg(flags & FD_CLOEXEC, "descriptor %d stays open over exec", fd);
	}
	ck_assert_uint_gt(found, 2);
	api_end();
}
END_TEST

/* Again and again, also after the end: nothing is left behind in the process. */
START_TEST(use_and_end_again)
{
	int before = 0;

	for (unsigned i = 0; i < 30; i++) {
		aclrtStream stream;
		aclrtEvent event;
		void *memory;

		api_begin();
		OK(aclrtCreateStream(&stream));
		OK(aclrtCreateEvent(&event));
		memory = api_malloc(100);
		OK(aclrtMemsetAsync(memory, 100, 1, 100, stream));
		OK(aclrtRecordEvent(event, stream));
		OK(aclrtSynchronizeStream(stream));
		OK(aclrtFree(memory));
		OK(aclrtDestroyEvent(event));
		OK(aclrtDestroyStream(stream));
		api_end();
		if (i == 4)
			before = process_fds(getpid());
	}
	ck_assert_int_eq(process_fds(getpid()), before);
}
END_TEST

/* ---- without npud ---- */

START_TEST(without_npud_the_text_names_the_socket)
{
	static const char *const paths[] = { "/tmp/npud-nobody-is-here/npud.sock", "/dev/null" };
	uint32_t count = 77;

	OK(aclInit(NULL));
	for (unsigned i = 0; i < 2; i++) {
		const char *text, *end;

		ck_assert_int_eq(setenv("NPUD_SOCKET", paths[i], 1), 0);
		ck_assert_int_ne(aclrtSetDevice(0), 0);
		text = aclGetRecentErrMsg();
		ck_assert_ptr_nonnull(text);
		ck_assert_msg(strstr(text, paths[i]) != NULL, "%s", text);
		end = strchr(text, '\n');
		ck_assert_msg(!end || !end[1], "more than a line: %s", text);
		SAYS(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL), paths[i],
		     aclrtGetDeviceCount(&count));
		ck_assert_uint_eq(count, 77);
		ck_assert_ptr_null(aclrtGetSocName());
		ck_assert_ptr_nonnull(aclGetRecentErrMsg());
	}
	OK(aclFinalize());
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("api");
	TCase *with = tcase_create("with npud"), *without = tcase_create("without npud");

	tcase_set_timeout(with, 60);
	tcase_add_unchecked_fixture(with, setup, teardown);
	tcase_add_test(with, devices_are_set_and_reset_by_count);
	tcase_add_test(with, facts_of_the_device);
	tcase_add_test(with, contexts_are_a_matter_of_the_thread);
	tcase_add_test(with, a_context_that_another_thread_destroys);
	tcase_add_test(with, what_a_reset_takes_along);
	tcase_add_test(with, errors_are_kept_for_the_thread);
	tcase_add_test(with, a_fault_is_told_once);
	tcase_add_test(with, one_list_of_texts_for_the_process);
	tcase_add_test(with, a_forked_child_gets_a_clear_error);
	tcase_add_test(with, a_fork_before_the_first_call_is_fine);
	tcase_add_test(with, file_descriptors_end_at_exec);
	tcase_add_test(with, use_and_end_again);
	suite_add_tcase(suite, with);
	tcase_add_test(without, without_npud_the_text_names_the_socket);
	suite_add_tcase(suite, without);
	return run_suite(suite);
}
