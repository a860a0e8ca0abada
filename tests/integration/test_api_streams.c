/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams and events with a device: order, limits on waits, times; and that handles that are dead,
 * foreign or garbage get the API's codes from every call that takes one.
 */
#include <stdlib.h>

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

static void stream_refused(aclrtStream stream, aclrtEvent event, void *memory)
{
	aclrtStreamStatus status = ACL_STREAM_STATUS_RESERVED;
	int32_t id = 77;
	uint32_t priority = 77;
	char host[8] = "";

	CODE(RT_STREAM, aclrtSynchronizeStream(stream));
	CODE(RT_STREAM, aclrtSynchronizeStreamWithTimeout(stream, 1));
	CODE(RT_STREAM, aclrtStreamQuery(stream, &status));
	CODE(RT_STREAM, aclrtStreamGetId(stream, &id));
	CODE(RT_STREAM, aclrtStreamGetPriority(stream, &priority));
	CODE(RT_STREAM, aclrtSetStreamFailureMode(stream, ACL_CONTINUE_ON_FAILURE));
	CODE(RT_STREAM, aclrtRecordEvent(event, stream));
	CODE(RT_STREAM, aclrtStreamWaitEvent(stream, event));
	CODE(RT_STREAM, aclrtMemsetAsync(memory, 8, 0, 8, stream));
	CODE(RT_STREAM, aclrtMemcpyAsync(memory, 8, host, 8, ACL_MEMCPY_HOST_TO_DEVICE, stream));
	CODE(RT_STREAM, aclrtLaunchHostFunc(stream, free, NULL));
	CODE(RT_STREAM, aclrtSubscribeReport(1, stream));
	CODE(RT_STREAM, aclrtUnSubscribeReport(1, stream));
	CODE(RT_STREAM, aclrtLaunchCallback(free, NULL, ACL_CALLBACK_BLOCK, stream));
	CODE(RT_STREAM, aclrtDestroyStream(stream));
	CODE(RT_STREAM, aclrtDestroyStreamForce(stream));
	ck_assert(status == ACL_STREAM_STATUS_RESERVED && id == 77 && priority == 77);
}

START_TEST(streams_that_are_none)
{
	aclrtStream stream, old;
	aclrtEvent event;
	void *memory;

	api_begin();
	memory = api_malloc(64);
	OK(aclrtCreateEvent(&event));
	OK(aclrtCreateStream(&old));
	OK(aclrtDestroyStream(old));
	stream_refused(old, event, memory);
	OK(aclrtCreateStream(&stream)); /* perhaps in the same place */
	ck_assert_ptr_ne(stream, old);
	stream_refused(old, event, memory);
	OK(aclrtDestroyStreamForce(stream));
	stream_refused(stream, event, memory);
	stream_refused(event, event, memory);
	stream_refused((void *)0x1234, event, memory);
	stream_refused((void *)~(uintptr_t)0, event, memory);
	stream_refused(memory, event, memory);
	OK(aclrtCtxGetCurrentDefaultStream(&stream));
	CODE(RT_STREAM, aclrtDestroyStream(stream)); /* the default one */
	OK(aclrtSynchronizeStream(stream));
	api_end();
}
END_TEST

START_TEST(facts_of_streams)
{
	aclrtStream a, b;
	int32_t id_a = -1, id_b = -1;
	uint32_t priority = 77, before = 0, after = 0;

	api_begin();
	OK(aclrtGetStreamAvailableNum(&before));
	ck_assert_uint_ge(before, 2);
	OK(aclrtCreateStreamWithConfig(&a, 5, ACL_STREAM_FAST_LAUNCH | ACL_STREAM_FAST_SYNC));
	OK(aclrtCreateStream(&b));
	OK(aclrtGetStreamAvailableNum(&after));
	ck_assert_uint_eq(after, before - 2);
	OK(aclrtStreamGetPriority(a, &priority));
	ck_assert_uint_eq(priority, 5);
	OK(aclrtStreamGetPriority(NULL, &priority));
	ck_assert_uint_eq(priority, 0);
	OK(aclrtStreamGetId(a, &id_a));
	OK(aclrtStreamGetId(b, &id_b));
	ck_assert_int_ne(id_a, id_b);
	OK(aclrtSetStreamFailureMode(a, ACL_CONTINUE_ON_FAILURE));
	OK(aclrtSetStreamFailureMode(b, ACL_STOP_ON_FAILURE));
	OK(aclrtSetStreamFailureMode(b, ACL_STOP_ON_FAILURE));
	CODE(207000, aclrtSetStreamFailureMode(b, ACL_CONTINUE_ON_FAILURE));
	OK(aclrtDestroyStream(a));
	OK(aclrtDestroyStream(b));
	OK(aclrtGetStreamAvailableNum(&after));
	ck_assert_uint_eq(after, before);
	api_end();
}
END_TEST

START_TEST(waits_have_limits)
{
	aclrtStreamStatus status;
	aclrtEventRecordedStatus recorded;
	struct api_gate gate;
	aclrtBinHandle image;
	aclrtStream stream;
	aclrtEvent event;

	api_begin();
	image = api_image();
	OK(aclrtCreateStream(&stream));
	OK(aclrtCreateEvent(&event));
	OK(aclrtStreamQuery(stream, &status));
	ck_assert_int_eq(status, ACL_STREAM_STATUS_COMPLETE);
	api_gate_close(&gate, image, stream);
	OK(aclrtRecordEvent(event, stream));
	OK(aclrtStreamQuery(stream, &status));
	ck_assert_int_eq(status, ACL_STREAM_STATUS_NOT_READY);
	OK(aclrtQueryEventStatus(event, &recorded));
	ck_assert_int_eq(recorded, ACL_EVENT_RECORDED_STATUS_NOT_READY);
	SAYS(507046, "EE1002", aclrtSynchronizeStreamWithTimeout(stream, 5));
	CODE(507046, aclrtSynchronizeStreamWithTimeout(stream, 0));
	SAYS(507047, "EE1002", aclrtSynchronizeEventWithTimeout(event, 5));
	CODE(507046, aclrtSynchronizeDeviceWithTimeout(5));
	CODE(507046, aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL));
	api_gate_open(&gate);
	OK(aclrtSynchronizeStreamWithTimeout(stream, 20000));
	OK(aclrtSynchronizeEventWithTimeout(event, 20000));
	OK(aclrtSynchronizeDeviceWithTimeout(20000));
	OK(aclrtQueryEventStatus(event, &recorded));
	ck_assert_int_eq(recorded, ACL_EVENT_RECORDED_STATUS_COMPLETE);
	OK(aclrtStreamQuery(stream, &status));
	ck_assert_int_eq(status, ACL_STREAM_STATUS_COMPLETE);
	OK(aclrtDestroyEvent(event));
	OK(aclrtBinaryUnLoad(image));
	api_end();
}
END_TEST

static void event_refused(aclrtEvent event, aclrtEvent good)
{
	aclrtEventRecordedStatus status = 77;
	float ms = 77;

	CODE(RT_HANDLE, aclrtRecordEvent(event, NULL));
	CODE(RT_HANDLE, aclrtQueryEventStatus(event, &status));
	CODE(RT_HANDLE, aclrtSynchronizeEvent(event));
	CODE(RT_HANDLE, aclrtSynchronizeEventWithTimeout(event, 1));
	CODE(RT_HANDLE, aclrtStreamWaitEvent(NULL, event));
	CODE(RT_HANDLE, aclrtEventElapsedTime(&ms, event, good));
	CODE(RT_HANDLE, aclrtEventElapsedTime(&ms, good, event));
	CODE(RT_HANDLE, aclrtDestroyEvent(event));
	ck_assert(status == 77 && ms == 77);
}

START_TEST(events_that_are_none)
{
	aclrtEvent good, old, next;
	aclrtStream stream;

	api_begin();
	OK(aclrtCreateStream(&stream));
	OK(aclrtCreateEvent(&good));
	OK(aclrtRecordEvent(good, stream));
	OK(aclrtSynchronizeEvent(good));
	OK(aclrtCreateEventExWithFlag(&old, ACL_EVENT_SYNC));
	OK(aclrtDestroyEvent(old));
	event_refused(old, good);
	OK(aclrtCreateEvent(&next));
	event_refused(old, good);
	event_refused(stream, good);
	event_refused((void *)0x1234, good);
	event_refused((void *)~(uintptr_t)0, good);
	OK(aclrtDestroyEvent(next));
	OK(aclrtDestroyEvent(good));
	event_refused(good, good);
	api_end();
}
END_TEST

START_TEST(events_order_streams_and_measure)
{
	aclrtEventRecordedStatus status;
	uint32_t list[4] = { 0 }, *device;
	aclrtEvent begin, end, plain, ex;
	struct api_gate gate;
	aclrtBinHandle image;
	aclrtFuncHandle note;
	aclrtStream a, b;
	float ms = -1;

	api_begin();
	image = api_image();
	note = api_kernel(image, "note");
	OK(aclrtCreateStream(&a));
	OK(aclrtCreateStream(&b));
	OK(aclrtCreateEvent(&begin));
	OK(aclrtCreateEvent(&end));
	OK(aclrtCreateEventWithFlag(&plain, ACL_EVENT_SYNC));
	OK(aclrtCreateEventExWithFlag(&ex, ACL_EVENT_SYNC));
	OK(aclrtQueryEventStatus(ex, &status));
	ck_assert_int_eq(status, ACL_EVENT_RECORDED_STATUS_COMPLETE);
	OK(aclrtSynchronizeEvent(ex));
	CODE(507000, aclrtEventElapsedTime(&ms, begin, end));

	/* a holds at the gate, notes 1; b waits for that, then notes 2 */
	device = api_malloc(sizeof(list));
	OK(aclrtMemset(device, sizeof(list), 0, sizeof(list)));
	OK(aclrtRecordEvent(begin, a));
	api_gate_close(&gate, image, a);
	for (uint32_t i = 1; i <= 2; i++) {
		struct {
			uint32_t *to;
			uint64_t number;
		} args = { device, i };

		OK(aclrtLaunchKernelWithHostArgs(note, 1, i == 1 ? a : b, NULL, &args, 16, NULL,
						 0));
		if (i == 1) {
			OK(aclrtRecordEvent(plain, a));
			OK(aclrtStreamWaitEvent(b, plain));
		}
	}
	OK(aclrtRecordEvent(end, b));
	OK(aclrtDestroyEvent(plain)); /* what was queued stays valid */
	CODE(507047, aclrtSynchronizeEventWithTimeout(end, 10));
	api_gate_open(&gate);
	OK(aclrtSynchronizeEvent(end));
	OK(aclrtMemcpy(list, sizeof(list), device, sizeof(list), ACL_MEMCPY_DEVICE_TO_HOST));
	ck_assert(list[0] == 2 && list[1] == 1 && list[2] == 2);
	OK(aclrtEventElapsedTime(&ms, begin, end));
	ck_assert(ms >= 9.0f && ms < 60000.0f);

	OK(aclrtRecordEvent(ex, a));
	OK(aclrtSynchronizeEvent(ex));
	OK(aclrtRecordEvent(ex, b)); /* again and again */
	OK(aclrtSynchronizeEvent(ex));
	CODE(ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID, aclrtEventElapsedTime(&ms, begin, ex));
	OK(aclrtDestroyEvent(ex));
	api_end();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("api_streams");
	TCase *with = tcase_create("with npud");

	tcase_set_timeout(with, 60);
	tcase_add_unchecked_fixture(with, setup, teardown);
	tcase_add_test(with, streams_that_are_none);
	tcase_add_test(with, facts_of_streams);
	tcase_add_test(with, waits_have_limits);
	tcase_add_test(with, events_that_are_none);
	tcase_add_test(with, events_order_streams_and_measure);
	suite_add_tcase(suite, with);
	return run_suite(suite);
}
