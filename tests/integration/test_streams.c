/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams, events, contexts and callbacks of the library end to end: order, time-outs, faults and
 * failure modes, and handles that are wrong, dead or of something else.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <acl/acl.h>
#include "tests/lib/npud_fixture.h"
#include "tests/lib/runner.h"

#define OK(call) ck_assert_int_eq(call, 0)

static struct npud_fixture npud;
static aclrtBinHandle image;
static aclrtFuncHandle add, poke, spin, nothing;
static aclrtStream stream;
static uint64_t *counter; /* device */

static void start(void)
{
	npud_start(&npud, NULL);
}

static void stop(void)
{
	npud_stop(&npud);
}

static void setup(void)
{
	OK(aclInit(NULL));
	OK(aclrtSetDevice(0));
	OK(aclrtBinaryLoadFromFile(NPU_TEST_KERNELS, NULL, &image));
	OK(aclrtBinaryGetFunction(image, "add", &add));
	OK(aclrtBinaryGetFunction(image, "poke", &poke));
	OK(aclrtBinaryGetFunction(image, "spin", &spin));
	OK(aclrtBinaryGetFunction(image, "nothing", &nothing));
	OK(aclrtCreateStream(&stream));
	OK(aclrtMalloc((void **)&counter, 4096, ACL_MEM_MALLOC_HUGE_FIRST));
	OK(aclrtMemset(counter, 4096, 0, 4096));
}

static int launch(aclrtFuncHandle kernel, const void *a, uint64_t b, unsigned n, aclrtStream on)
{
	uint64_t args[2] = { (uintptr_t)a, b };

	return aclrtLaunchKernelWithHostArgs(kernel, 1, on, NULL, args, n * 8, NULL, 0);
}

static uint64_t value(unsigned i)
{
	uint64_t v;

	OK(aclrtMemcpy(&v, 8, counter + i, 8, ACL_MEMCPY_DEVICE_TO_HOST));
	return v;
}

static void set_value(unsigned i, uint64_t v)
{
	OK(aclrtMemcpy(counter + i, 8, &v, 8, ACL_MEMCPY_HOST_TO_DEVICE));
}

START_TEST(launches_run_in_order_and_all)
{
	for (unsigned i = 0; i < 5000; i++)
		if (launch(add, counter, i, 2, stream))
			ck_abort_msg("launch %u: %s", i, aclGetRecentErrMsg());
	OK(aclrtSynchronizeStream(stream));
	ck_assert_uint_eq(value(0), 4999ull * 5000 / 2);
	OK(launch(add, counter, 1, 2, NULL)); /* the default stream */
	OK(aclrtSynchronizeStream(NULL));
	ck_assert_uint_eq(value(0), 4999ull * 5000 / 2 + 1);
}
END_TEST

START_TEST(sync_times_out_and_work_goes_on)
{
	aclrtStreamStatus status;

	OK(launch(spin, counter, 0, 1, stream));
	ck_assert_int_eq(aclrtSynchronizeStreamWithTimeout(stream, 50),
			 ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
	ck_assert_ptr_nonnull(strstr(aclGetRecentErrMsg(), "EE1002"));
	ck_assert_int_eq(aclrtSynchronizeDeviceWithTimeout(50), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
	OK(aclrtStreamQuery(stream, &status));
	ck_assert_int_eq(status, ACL_STREAM_STATUS_NOT_READY);
	set_value(0, 1);
	OK(aclrtSynchronizeStreamWithTimeout(stream, 20000));
	OK(aclrtStreamQuery(stream, &status));
	ck_assert_int_eq(status, ACL_STREAM_STATUS_COMPLETE);
}
END_TEST

START_TEST(events_order_streams)
{
	aclrtEventRecordedStatus status;
	aclrtStream other;
	aclrtEvent event;

	OK(aclrtCreateStream(&other));
	OK(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC | ACL_EVENT_TIME_LINE));
	OK(aclrtQueryEventStatus(event, &status));
	ck_assert_int_eq(status, ACL_EVENT_RECORDED_STATUS_COMPLETE);
	OK(aclrtSynchronizeEvent(event));
	OK(aclrtStreamWaitEvent(other, event)); /* never recorded: waits for nothing */

	OK(launch(spin, counter, 0, 1, stream));
	OK(launch(add, counter + 1, 5, 2, stream));
	OK(aclrtRecordEvent(event, stream));
	OK(aclrtStreamWaitEvent(other, event));
	OK(aclrtMemcpyAsync(counter + 2, 8, counter + 1, 8, ACL_MEMCPY_DEVICE_TO_DEVICE, other));
	OK(aclrtQueryEventStatus(event, &status));
	ck_assert_int_eq(status, ACL_EVENT_RECORDED_STATUS_NOT_READY);
	ck_assert_int_eq(aclrtSynchronizeEventWithTimeout(event, 30),
			 ACL_ERROR_RT_EVENT_SYNC_TIMEOUT);
	set_value(0, 1);
	OK(aclrtSynchronizeStreamWithTimeout(other, 20000));
	ck_assert_uint_eq(value(2), 5);
	OK(aclrtSynchronizeEvent(event));
	OK(aclrtDestroyEvent(event));
	OK(aclrtDestroyStream(other));
}
END_TEST

START_TEST(recording_again_keeps_earlier_waits)
{
	aclrtStream other, third;
	aclrtEvent event;

	OK(aclrtCreateStream(&other));
	OK(aclrtCreateStream(&third));
	OK(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC));
	OK(launch(spin, counter, 0, 1, stream));
	OK(aclrtRecordEvent(event, stream));
	OK(aclrtStreamWaitEvent(third, event));
	OK(launch(add, counter + 1, 1, 2, third));
	/* The second record comes first; the wait of third stays with the first one. */
	OK(aclrtRecordEvent(event, other));
	OK(aclrtSynchronizeEventWithTimeout(event, 20000));
	OK(aclrtSynchronizeStream(other));
	ck_assert_int_eq(aclrtSynchronizeStreamWithTimeout(third, 30),
			 ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
	ck_assert_uint_eq(value(1), 0);
	OK(aclrtDestroyEvent(event)); /* a wait that is queued stays valid */
	set_value(0, 1);
	OK(aclrtSynchronizeStreamWithTimeout(third, 20000));
	ck_assert_uint_eq(value(1), 1);
}
END_TEST

START_TEST(time_between_events)
{
	aclrtEvent a, b, no_time, never;
	float ms;

	OK(aclrtCreateEvent(&a));
	OK(aclrtCreateEvent(&b));
	OK(aclrtCreateEvent(&never));
	OK(aclrtCreateEventWithFlag(&no_time, ACL_EVENT_SYNC));
	OK(aclrtRecordEvent(a, stream));
	for (unsigned i = 0; i < 100; i++)
		OK(launch(add, counter, 1, 2, stream));
	OK(aclrtRecordEvent(b, stream));
	OK(aclrtRecordEvent(no_time, stream));
	OK(aclrtSynchronizeEvent(no_time));
	OK(aclrtEventElapsedTime(&ms, a, b));
	ck_assert(ms > 0 && ms < 10000);
	ck_assert_int_eq(aclrtEventElapsedTime(&ms, a, no_time),
			 ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID);
	ck_assert_int_eq(aclrtEventElapsedTime(&ms, never, b), ACL_ERROR_RT_INTERNAL_ERROR);
}
END_TEST

START_TEST(fault_is_told_once_and_the_stream_goes_on)
{
	const char *text;

	OK(launch(add, counter, 1, 2, stream));
	OK(launch(poke, (void *)0x10, 1, 2, stream));
	OK(launch(add, counter, 10, 2, stream));
	ck_assert_int_eq(aclrtSynchronizeStream(stream), ACL_ERROR_RT_AICORE_EXCEPTION);
	ck_assert_int_eq(aclrtGetLastError(ACL_RT_THREAD_LEVEL), ACL_ERROR_RT_AICORE_EXCEPTION);
	text = aclGetRecentErrMsg();
	ck_assert_ptr_nonnull(strstr(text, "507015"));
	ck_assert_ptr_nonnull(strstr(text, "kernel poke"));
	ck_assert_ptr_nonnull(strstr(text, "address 0x10"));
	ck_assert_ptr_nonnull(strstr(text, "task 1"));
	OK(aclrtSynchronizeStream(stream));
	ck_assert_uint_eq(value(0), 11);
}
END_TEST

START_TEST(time_limit_of_a_launch)
{
	aclrtLaunchKernelAttr attr = { .id = ACL_RT_LAUNCH_KERNEL_ATTR_TIMEOUT_US,
				       .value.timeoutUs.timeoutLow = 100000 };
	aclrtLaunchKernelCfg cfg = { .attrs = &attr, .numAttrs = 1 };
	uint64_t arg = (uintptr_t)counter;

	OK(aclrtLaunchKernelWithHostArgs(spin, 1, stream, &cfg, &arg, 8, NULL, 0));
	ck_assert_int_eq(aclrtSynchronizeStreamWithTimeout(stream, 20000),
			 ACL_ERROR_RT_AICORE_TIMEOUT);
	ck_assert_ptr_nonnull(strstr(aclGetRecentErrMsg(), "kernel spin"));
	OK(launch(add, counter, 3, 2, stream));
	OK(aclrtSynchronizeStream(stream));
}
END_TEST

START_TEST(stop_mode_sticks_to_the_context)
{
	aclrtContext context;
	aclrtStream stopping, other;

	OK(aclrtCreateContext(&context, 0));
	OK(aclrtCreateStream(&stopping));
	OK(aclrtCreateStream(&other));
	OK(aclrtSetStreamFailureMode(stopping, ACL_STOP_ON_FAILURE));
	OK(aclrtSetStreamFailureMode(stopping, ACL_STOP_ON_FAILURE));
	ck_assert_int_eq(aclrtSetStreamFailureMode(stopping, ACL_CONTINUE_ON_FAILURE),
			 ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
	OK(launch(poke, (void *)0x10, 1, 2, stopping));
	ck_assert_int_eq(aclrtSynchronizeStream(stopping), ACL_ERROR_RT_AICORE_EXCEPTION);
	ck_assert_int_eq(aclrtSynchronizeStream(stopping), ACL_ERROR_RT_AICORE_EXCEPTION);
	ck_assert_int_eq(launch(add, counter, 1, 2, stopping), ACL_ERROR_RT_AICORE_EXCEPTION);
	ck_assert_int_eq(launch(add, counter, 1, 2, other), ACL_ERROR_RT_AICORE_EXCEPTION);
	ck_assert_int_eq(aclrtSynchronizeStream(other), ACL_ERROR_RT_AICORE_EXCEPTION);
	/* Another context of the process is untouched. */
	OK(aclrtDestroyContext(context));
	OK(aclrtSetDevice(0));
	OK(launch(add, counter, 1, 2, stream));
	OK(aclrtSynchronizeStream(stream));
	ck_assert_uint_eq(value(0), 1);
}
END_TEST

START_TEST(wrong_and_dead_handles_are_refused)
{
	aclrtStream dead_stream;
	aclrtEvent event, dead_event;
	aclrtContext context, dead_context;
	uint64_t junk[4] = { 0 }, args[2] = { (uintptr_t)counter, 1 };

	OK(aclrtCreateEvent(&event));
	OK(aclrtCreateEvent(&dead_event));
	OK(aclrtDestroyEvent(dead_event));
	OK(aclrtCreateStream(&dead_stream));
	OK(aclrtDestroyStream(dead_stream));
	void *bad[] = { dead_stream, dead_event, event, junk,	(void *)-1,
			(void *)1,   image,	 add,	counter };

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		ck_assert_int_eq(aclrtSynchronizeStream(bad[i]), ACL_ERROR_RT_STREAM_CONTEXT);
		ck_assert_int_eq(aclrtDestroyStream(bad[i]), ACL_ERROR_RT_STREAM_CONTEXT);
		ck_assert_int_eq(aclrtRecordEvent(event, bad[i]), ACL_ERROR_RT_STREAM_CONTEXT);
		ck_assert_int_eq(aclrtMemsetAsync(counter, 8, 0, 8, bad[i]),
				 ACL_ERROR_RT_STREAM_CONTEXT);
		ck_assert_int_eq(
			aclrtLaunchKernelWithHostArgs(add, 1, bad[i], NULL, args, 16, NULL, 0),
			ACL_ERROR_RT_STREAM_CONTEXT);
		if (bad[i] != event) {
			ck_assert_int_eq(aclrtRecordEvent(bad[i], stream),
					 ACL_ERROR_RT_INVALID_HANDLE);
			ck_assert_int_eq(aclrtSynchronizeEvent(bad[i]),
					 ACL_ERROR_RT_INVALID_HANDLE);
			ck_assert_int_eq(aclrtDestroyEvent(bad[i]), ACL_ERROR_RT_INVALID_HANDLE);
		}
		if (bad[i] != add)
			ck_assert_int_eq(aclrtLaunchKernelWithHostArgs(bad[i], 1, stream, NULL,
								       args, 16, NULL, 0),
					 ACL_ERROR_RT_INVALID_HANDLE);
		if (bad[i] != image)
			ck_assert_int_eq(aclrtBinaryUnLoad(bad[i]), ACL_ERROR_RT_INVALID_HANDLE);
		ck_assert_int_eq(aclrtSetCurrentContext(bad[i]), ACL_ERROR_RT_CONTEXT_NULL);
		ck_assert_int_eq(aclrtDestroyContext(bad[i]), ACL_ERROR_RT_CONTEXT_NULL);
	}
	OK(aclrtGetCurrentContext(&context));
	ck_assert_int_eq(aclrtDestroyContext(context), ACL_ERROR_RT_CONTEXT_NULL); /* primary */
	OK(aclrtCreateContext(&dead_context, 0));
	/* The stream is not of this context. */
	ck_assert_int_eq(aclrtDestroyStream(stream), ACL_ERROR_RT_STREAM_CONTEXT);
	OK(aclrtDestroyContext(dead_context));
	ck_assert_int_eq(aclrtSetCurrentContext(dead_context), ACL_ERROR_RT_CONTEXT_NULL);
	OK(aclrtSetCurrentContext(context));
	/* Wrong sizes of arguments change nothing either. */
	ck_assert_int_eq(aclrtLaunchKernelWithHostArgs(add, 1, stream, NULL, args, 8, NULL, 0),
			 ACL_ERROR_RT_PARAM_INVALID);
	OK(aclrtBinaryUnLoad(image));
	ck_assert_int_eq(launch(add, counter, 1, 2, stream), ACL_ERROR_RT_INVALID_HANDLE);
	ck_assert_int_eq(aclrtBinaryUnLoad(image), ACL_ERROR_RT_INVALID_HANDLE);
	OK(aclrtSynchronizeStream(stream));
	ck_assert_uint_eq(value(0), 0);
}
END_TEST

static void *bare_thread(void *arg)
{
	aclrtContext context;
	aclrtStream made;
	void *p;

	ck_assert_int_eq(aclrtGetCurrentContext(&context), ACL_ERROR_RT_CONTEXT_NULL);
	ck_assert_int_eq(aclrtCreateStream(&made), ACL_ERROR_RT_CONTEXT_NULL);
	ck_assert_int_eq(aclrtMalloc(&p, 100, ACL_MEM_MALLOC_HUGE_FIRST),
			 ACL_ERROR_RT_CONTEXT_NULL);
	ck_assert_int_eq(aclrtSynchronizeStream(NULL), ACL_ERROR_RT_CONTEXT_NULL);
	OK(aclrtSetCurrentContext(arg));
	OK(aclrtCreateStream(&made));
	OK(aclrtDestroyStream(made));
	return NULL;
}

START_TEST(contexts_are_bound_to_threads_and_counted)
{
	aclrtContext primary, again, own;
	pthread_t thread;
	int32_t device, active;

	OK(aclrtGetCurrentContext(&primary));
	pthread_create(&thread, NULL, bare_thread, primary);
	pthread_join(thread, NULL);

	OK(aclrtCreateContext(&own, 0));
	OK(aclrtGetCurrentContext(&again));
	ck_assert_ptr_eq(again, own);
	OK(aclrtSetDevice(0)); /* the second set: back to the primary context */
	OK(aclrtGetCurrentContext(&again));
	ck_assert_ptr_eq(again, primary);
	OK(aclrtDestroyContext(own));

	OK(aclrtResetDevice(0));
	OK(aclrtGetDevice(&device));
	OK(aclrtResetDevice(0));
	ck_assert_int_eq(aclrtGetDevice(&device), ACL_ERROR_RT_CONTEXT_NULL);
	ck_assert_int_eq(aclrtResetDevice(0), ACL_ERROR_RT_CONTEXT_RELEASE_ERROR);
	ck_assert_int_eq(aclrtSynchronizeStream(stream), ACL_ERROR_RT_STREAM_CONTEXT);
	OK(aclrtGetPrimaryCtxState(0, NULL, &active));
	ck_assert_int_eq(active, 0);
	OK(aclrtSetDevice(0));
	OK(aclrtGetCurrentContext(&again));
	ck_assert_ptr_eq(again, primary); /* revived */
	ck_assert_int_eq(aclrtSetDevice(1), ACL_ERROR_RT_INVALID_DEVICEID);
	ck_assert_int_eq(aclrtSetDevice(-1), ACL_ERROR_RT_INVALID_DEVICEID);
}
END_TEST

static _Atomic unsigned calls;
static _Atomic int order_kept = 1;

static void called(void *arg)
{
	if ((unsigned)(uintptr_t)arg != atomic_fetch_add(&calls, 1))
		atomic_store(&order_kept, 0);
}

START_TEST(host_functions_run_in_stream_order)
{
	for (unsigned i = 0; i < 200; i++) {
		OK(aclrtLaunchHostFunc(stream, called, (void *)(uintptr_t)i));
		OK(launch(add, counter, 1, 2, stream));
	}
	OK(aclrtSynchronizeStreamWithTimeout(stream, 20000));
	ck_assert_uint_eq(atomic_load(&calls), 200);
	ck_assert_int_eq(order_kept, 1);
	ck_assert_uint_eq(value(0), 200);
}
END_TEST

static _Atomic int report_stop;

static void *report_main(void *arg)
{
	(void)arg;
	while (!atomic_load(&report_stop)) {
		int r = aclrtProcessReport(100);

		if (r && r != ACL_ERROR_RT_REPORT_TIMEOUT && r != ACL_ERROR_RT_THREAD_SUBSCRIBE)
			ck_abort_msg("aclrtProcessReport: %d", r);
	}
	return NULL;
}

START_TEST(reports_run_on_the_subscribed_thread)
{
	pthread_t thread;

	ck_assert_int_eq(aclrtLaunchCallback(called, NULL, ACL_CALLBACK_BLOCK, stream),
			 ACL_ERROR_RT_STREAM_NO_CB_REG);
	ck_assert_int_eq(aclrtProcessReport(10), ACL_ERROR_RT_THREAD_SUBSCRIBE);
	ck_assert_int_eq(pthread_create(&thread, NULL, report_main, NULL), 0);
	OK(aclrtSubscribeReport((uint64_t)thread, stream));
	for (unsigned i = 0; i < 100; i++)
		OK(aclrtLaunchCallback(called, (void *)(uintptr_t)i,
				       i % 2 ? ACL_CALLBACK_BLOCK : ACL_CALLBACK_NO_BLOCK, stream));
	OK(aclrtSynchronizeStreamWithTimeout(stream, 20000));
	ck_assert_uint_eq(atomic_load(&calls), 100);
	ck_assert_int_eq(order_kept, 1);
	OK(aclrtUnSubscribeReport((uint64_t)thread, stream));
	atomic_store(&report_stop, 1);
	pthread_join(thread, NULL);
}
END_TEST

static void *many_main(void *arg)
{
	unsigned n = (unsigned)(uintptr_t)arg;
	aclrtStream own;

	OK(aclrtSetDevice(0));
	OK(aclrtCreateStream(&own));
	for (unsigned i = 0; i < 500; i++) {
		if (launch(add, counter + n, 1, 2, own))
			ck_abort_msg("%s", aclGetRecentErrMsg());
		if (i % 7 == 0 && aclrtSynchronizeStream(own))
			ck_abort_msg("%s", aclGetRecentErrMsg());
	}
	OK(aclrtDestroyStream(own)); /* waits */
	OK(aclrtResetDevice(0));
	return NULL;
}

START_TEST(many_threads_wait_at_once)
{
	pthread_t threads[16];

	for (uintptr_t i = 0; i < 16; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, many_main, (void *)i), 0);
	for (unsigned i = 0; i < 16; i++)
		pthread_join(threads[i], NULL);
	for (unsigned i = 0; i < 16; i++)
		ck_assert_uint_eq(value(i), 500);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("streams");
	TCase *t = tcase_create("streams");

	tcase_add_unchecked_fixture(t, start, stop);
	tcase_add_checked_fixture(t, setup, NULL);
	tcase_set_timeout(t, 120);
	tcase_add_test(t, launches_run_in_order_and_all);
	tcase_add_test(t, sync_times_out_and_work_goes_on);
	tcase_add_test(t, events_order_streams);
	tcase_add_test(t, recording_again_keeps_earlier_waits);
	tcase_add_test(t, time_between_events);
	tcase_add_test(t, fault_is_told_once_and_the_stream_goes_on);
	tcase_add_test(t, time_limit_of_a_launch);
	tcase_add_test(t, stop_mode_sticks_to_the_context);
	tcase_add_test(t, wrong_and_dead_handles_are_refused);
	tcase_add_test(t, contexts_are_bound_to_threads_and_counted);
	tcase_add_test(t, host_functions_run_in_stream_order);
	tcase_add_test(t, reports_run_on_the_subscribed_thread);
	tcase_add_test(t, many_threads_wait_at_once);
	suite_add_tcase(s, t);
	return run_suite(s);
}
