/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The public calls over a runtime without a device: what each says to wrong arguments, and that it
 * hands right ones to one call of the runtime and its code back. The last test sees that no call of
 * the list was left out.
 */
#include <stdlib.h>

#include "tests/lib/acl_calls.h"
#include "tests/lib/runner.h"

#define PARAM	       100000 /* ACL_ERROR_INVALID_PARAM */
#define RT_PARAM       107000
#define RT_UNSUPPORTED 207000

static char host[64];
static char other[64];
static void *const H = FAKE_HANDLE;

static void callback(void *arg)
{
	(void)arg;
}

static void init_and_errors(void)
{
	calls_note("aclInit"); /* see check_acl_config */
	calls_note("aclFinalize");
	calls_note("aclFinalizeReference");
	BAD(PARAM, "majorVersion is NULL", aclrtGetVersion(NULL, &out.i32, &out.i32_2));
	BAD(PARAM, "minorVersion is NULL", aclrtGetVersion(&out.i32, NULL, &out.i32_2));
	BAD(PARAM, "patchVersion is NULL", aclrtGetVersion(&out.i32, &out.i32_2, NULL));
	LOCAL(aclrtGetVersion(&out.i32, &out.i32_2, &out.i32_3));
	ck_assert(out.i32 == 1 && out.i32_2 == 17 && out.i32_3 == 0);

	BAD(PARAM, "level is 1", aclrtPeekAtLastError((aclrtLastErrLevel)1));
	BAD(PARAM, "level is 2", aclrtGetLastError((aclrtLastErrLevel)2));
	rt_fake.last_error = 107003;
	ck_assert_int_eq(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL), 107003);
	ck_assert_int_eq(aclrtGetLastError(ACL_RT_THREAD_LEVEL), 107003);
	ck_assert_int_eq(aclrtGetLastError(ACL_RT_THREAD_LEVEL), 0);
	calls_note("aclGetRecentErrMsg");
	rt_fake.texts = 0;
	ck_assert_ptr_null(aclGetRecentErrMsg());
}

static void device(void)
{
	aclrtUtilizationInfo use = { .utilizationExtend = (void *)host };

	BAD(PARAM, "count is NULL", aclrtGetDeviceCount(NULL));
	GOOD("rt_device_count", aclrtGetDeviceCount(&out.u32));
	ck_assert_uint_eq(out.u32, 2);
	GOOD("rt_device_set", aclrtSetDevice(-3));
	ck_assert_int_eq(rt_fake.value, -3);
	GOOD("rt_device_reset", aclrtResetDevice(2));
	GOOD("rt_device_reset_force", aclrtResetDeviceForce(2));
	BAD(PARAM, "deviceId is NULL", aclrtGetDevice(NULL));
	GOOD("rt_device_current", aclrtGetDevice(&out.i32));
	BAD(PARAM, "runMode is NULL", aclrtGetRunMode(NULL));
	LOCAL(aclrtGetRunMode(&out.mode));
	ck_assert_int_eq(out.mode, ACL_HOST);
	GOOD("rt_device_sync", aclrtSynchronizeDevice());
	ck_assert_int_eq(rt_fake.value, -1);
	BAD(RT_PARAM, "timeout is -2", aclrtSynchronizeDeviceWithTimeout(-2));
	GOOD("rt_device_sync", aclrtSynchronizeDeviceWithTimeout(0));
	ck_assert_int_eq(rt_fake.value, 0);

	BAD(PARAM, "value is NULL", aclrtGetDeviceInfo(0, ACL_DEV_ATTR_AICORE_CORE_NUM, NULL));
	BAD(PARAM, "attr is 0", aclrtGetDeviceInfo(0, (aclrtDevAttr)0, &out.i64));
	BAD(PARAM, "attr is 213", aclrtGetDeviceInfo(0, (aclrtDevAttr)213, &out.i64));
	GOOD("rt_device_info", aclrtGetDeviceInfo(7, ACL_DEV_ATTR_VECTOR_CORE_NUM, &out.i64));
	ck_assert(out.i64 == 6 && rt_fake.value == 7);
	GOOD("rt_device_info",
	     aclrtGetDeviceInfo(~0u, ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE, &out.i64));
	ck_assert(out.i64 == 1ll << 33 && rt_fake.value == -1);
	GOOD("rt_device_info", aclrtGetDeviceInfo(0, ACL_DEV_ATTR_WARP_SIZE, &out.i64));
	ck_assert_int_eq(out.i64, 0);

	BAD(PARAM, "value is NULL",
	    aclrtGetDeviceCapability(0, ACL_FEATURE_SYSTEM_MEMQ_EVENT_CROSS_DEV, NULL));
	BAD(PARAM, "devFeatureType is 2",
	    aclrtGetDeviceCapability(0, (aclrtDevFeatureType)2, &out.i32));
	GOOD("rt_device_info",
	     aclrtGetDeviceCapability(0, ACL_FEATURE_SYSTEM_MEMQ_EVENT_CROSS_DEV, &out.i32));
	ck_assert_int_eq(out.i32, 0);

	BAD(PARAM, "utilizationInfo is NULL", aclrtGetDeviceUtilizationRate(0, NULL));
	BAD(PARAM, "utilizationExtend", aclrtGetDeviceUtilizationRate(0, &use));
	use.utilizationExtend = NULL;
	GOOD("rt_device_info", aclrtGetDeviceUtilizationRate(0, &use));
	ck_assert(use.cubeUtilization == 26 && use.vectorUtilization == 26);
	ck_assert(use.aicpuUtilization == -1 && use.memoryUtilization == -1);

	BAD(PARAM, "deviceStatus is NULL", aclrtQueryDeviceStatus(0, NULL));
	GOOD("rt_device_info", aclrtQueryDeviceStatus(0, &out.device_status));
	ck_assert_int_eq(out.device_status, ACL_RT_DEVICE_STATUS_NORMAL);
	rt_fake.flag = true;
	GOOD("rt_device_info", aclrtQueryDeviceStatus(0, &out.device_status));
	ck_assert_int_eq(out.device_status, ACL_RT_DEVICE_STATUS_ABNORMAL);

	BAD(PARAM, "canAccessPeer is NULL", aclrtDeviceCanAccessPeer(NULL, 0, 1));
	BAD(PARAM, "peerDeviceId is 1", aclrtDeviceCanAccessPeer(&out.i32, 1, 1));
	GOOD("rt_device_can_peer", aclrtDeviceCanAccessPeer(&out.i32, 0, 1));
	ck_assert_int_eq(out.i32, 1);
	BAD(200006, "flags is 0x1", aclrtDeviceEnablePeerAccess(1, 1));
	GOOD("rt_device_enable_peer", aclrtDeviceEnablePeerAccess(1, 0));
	GOOD("rt_device_disable_peer", aclrtDeviceDisablePeerAccess(1));
	calls_note("aclrtGetSocName");
	ck_assert_str_eq(aclrtGetSocName(), "fake");
}

static void context_and_limits(void)
{
	BAD(PARAM, "context is NULL", aclrtCreateContext(NULL, 0));
	GOOD("rt_context_create", aclrtCreateContext(&out.handle, 4));
	ck_assert(out.handle == H && rt_fake.value == 4);
	BAD(PARAM, "context is NULL", aclrtDestroyContext(NULL));
	GOOD("rt_context_destroy", aclrtDestroyContext(H));
	BAD(PARAM, "context is NULL", aclrtSetCurrentContext(NULL));
	GOOD("rt_context_set_current", aclrtSetCurrentContext(H));
	BAD(PARAM, "context is NULL", aclrtGetCurrentContext(NULL));
	GOOD("rt_context_current", aclrtGetCurrentContext(&out.handle));
	BAD(PARAM, "stream is NULL", aclrtCtxGetCurrentDefaultStream(NULL));
	GOOD("rt_context_default_stream", aclrtCtxGetCurrentDefaultStream(&out.handle));
	BAD(PARAM, "flags is", aclrtGetPrimaryCtxState(0, &out.u32, &out.i32));
	BAD(PARAM, "active is NULL", aclrtGetPrimaryCtxState(0, NULL, NULL));
	GOOD("rt_device_primary_active", aclrtGetPrimaryCtxState(0, NULL, &out.i32));
	ck_assert_int_eq(out.i32, 1);

	rt_fake.calls = 0;
	calls_note("aclrtSetOpWaitTimeout");
	ck_assert_int_eq(aclrtSetOpWaitTimeout(UINT32_MAX), 0);
	ck_assert(rt_fake.calls == 1 && rt_fake.timeout_us == UINT32_MAX * 1000000ull);
	GOOD("rt_timeout_set_kernel", aclrtSetOpExecuteTimeOut(5));
	ck_assert_uint_eq(rt_fake.timeout_us, 5000000);
	BAD(PARAM, "actualTimeout is NULL", aclrtSetOpExecuteTimeOutV2(1, NULL));
	GOOD("rt_timeout_set_kernel", aclrtSetOpExecuteTimeOutV2(41, &out.u64));
	ck_assert(rt_fake.timeout_us == 41 && out.u64 == 42);
	BAD(PARAM, "interval is NULL", aclrtGetOpTimeOutInterval(NULL));
	LOCAL(aclrtGetOpTimeOutInterval(&out.u64));
	ck_assert_uint_eq(out.u64, RT_TIMEOUT_STEP_US);
}

static void stream(void)
{
	BAD(PARAM, "stream is NULL", aclrtCreateStream(NULL));
	GOOD("rt_stream_create", aclrtCreateStream(&out.handle));
	ck_assert(out.handle == H && rt_fake.value == 0 && rt_fake.flags == 0);
	BAD(PARAM, "stream is NULL", aclrtCreateStreamWithConfig(NULL, 0, 0));
	BAD(PARAM, "priority is 8", aclrtCreateStreamWithConfig(&out.handle, 8, 0));
	GOOD("rt_stream_create", aclrtCreateStreamWithConfig(&out.handle, 7, ~0u));
	ck_assert(rt_fake.value == 7 && rt_fake.flags == 0x3f);
	BAD(PARAM, "stream is NULL", aclrtDestroyStream(NULL));
	GOOD("rt_stream_destroy", aclrtDestroyStream(H));
	ck_assert(!rt_fake.flag);
	BAD(PARAM, "stream is NULL", aclrtDestroyStreamForce(NULL));
	GOOD("rt_stream_destroy", aclrtDestroyStreamForce(H));
	ck_assert(rt_fake.flag);
	GOOD("rt_stream_sync", aclrtSynchronizeStream(NULL));
	ck_assert_int_eq(rt_fake.value, -1);
	BAD(RT_PARAM, "timeout is -2", aclrtSynchronizeStreamWithTimeout(H, -2));
	GOOD("rt_stream_sync", aclrtSynchronizeStreamWithTimeout(H, 5));
	ck_assert(rt_fake.stream == H && rt_fake.value == 5);
	BAD(PARAM, "status is NULL", aclrtStreamQuery(H, NULL));
	rt_fake.flag = false;
	GOOD("rt_stream_query", aclrtStreamQuery(NULL, &out.stream_status));
	ck_assert_int_eq(out.stream_status, ACL_STREAM_STATUS_NOT_READY);
	rt_fake.flag = true;
	GOOD("rt_stream_query", aclrtStreamQuery(NULL, &out.stream_status));
	ck_assert_int_eq(out.stream_status, ACL_STREAM_STATUS_COMPLETE);
	BAD(PARAM, "streamId is NULL", aclrtStreamGetId(H, NULL));
	GOOD("rt_stream_id", aclrtStreamGetId(NULL, &out.i32));
	BAD(PARAM, "priority is NULL", aclrtStreamGetPriority(H, NULL));
	GOOD("rt_stream_priority", aclrtStreamGetPriority(NULL, &out.u32));
	BAD(PARAM, "leastPriority is NULL", aclrtDeviceGetStreamPriorityRange(NULL, &out.i32));
	BAD(PARAM, "greatestPriority is NULL", aclrtDeviceGetStreamPriorityRange(&out.i32, NULL));
	LOCAL(aclrtDeviceGetStreamPriorityRange(&out.i32, &out.i32_2));
	ck_assert(out.i32 == 7 && out.i32_2 == 0);
	BAD(PARAM, "streamCount is NULL", aclrtGetStreamAvailableNum(NULL));
	GOOD("rt_stream_available", aclrtGetStreamAvailableNum(&out.u32));
	BAD(PARAM, "mode is 2", aclrtSetStreamFailureMode(H, 2));
	BAD(PARAM, "mode is ", aclrtSetStreamFailureMode(H, 1ull << 32));
	GOOD("rt_stream_set_fail_mode", aclrtSetStreamFailureMode(H, ACL_STOP_ON_FAILURE));
	ck_assert_int_eq(rt_fake.value, RT_FAIL_STOP);
}

static void event(void)
{
	BAD(PARAM, "event is NULL", aclrtCreateEvent(NULL));
	GOOD("rt_event_create", aclrtCreateEvent(&out.handle));
	ck_assert(rt_fake.flags == (ACL_EVENT_SYNC | ACL_EVENT_TIME_LINE) && !rt_fake.flag);
	BAD(PARAM, "event is NULL", aclrtCreateEventWithFlag(NULL, 0));
	BAD(PARAM, "flag is 0x80", aclrtCreateEventWithFlag(&out.handle, 0x80));
	BAD(PARAM, "flag is 0x40", aclrtCreateEventWithFlag(&out.handle, ACL_EVENT_IPC));
	GOOD("rt_event_create", aclrtCreateEventWithFlag(&out.handle, ACL_EVENT_SYNC));
	ck_assert(rt_fake.flags == ACL_EVENT_SYNC && !rt_fake.flag);
	BAD(PARAM, "event is NULL", aclrtCreateEventExWithFlag(NULL, 0));
	BAD(PARAM, "flag is 0x41", aclrtCreateEventExWithFlag(&out.handle, 0x41));
	BAD(RT_UNSUPPORTED, "ACL_EVENT_IPC",
	    aclrtCreateEventExWithFlag(&out.handle, ACL_EVENT_IPC));
	GOOD("rt_event_create", aclrtCreateEventExWithFlag(&out.handle, ACL_EVENT_TIME_LINE));
	ck_assert(rt_fake.flags == ACL_EVENT_TIME_LINE && rt_fake.flag);
	BAD(PARAM, "event is NULL", aclrtDestroyEvent(NULL));
	GOOD("rt_event_destroy", aclrtDestroyEvent(H));
	BAD(PARAM, "event is NULL", aclrtRecordEvent(NULL, H));
	GOOD("rt_event_record", aclrtRecordEvent(H, NULL));
	BAD(PARAM, "event is NULL", aclrtQueryEventStatus(NULL, &out.event_status));
	BAD(PARAM, "status is NULL", aclrtQueryEventStatus(H, NULL));
	rt_fake.flag = true;
	GOOD("rt_event_query", aclrtQueryEventStatus(H, &out.event_status));
	ck_assert_int_eq(out.event_status, ACL_EVENT_RECORDED_STATUS_COMPLETE);
	rt_fake.flag = false;
	GOOD("rt_event_query", aclrtQueryEventStatus(H, &out.event_status));
	ck_assert_int_eq(out.event_status, ACL_EVENT_RECORDED_STATUS_NOT_READY);
	BAD(PARAM, "event is NULL", aclrtSynchronizeEvent(NULL));
	GOOD("rt_event_sync", aclrtSynchronizeEvent(H));
	ck_assert_int_eq(rt_fake.value, -1);
	BAD(PARAM, "event is NULL", aclrtSynchronizeEventWithTimeout(NULL, 1));
	BAD(RT_PARAM, "timeout is -2", aclrtSynchronizeEventWithTimeout(H, -2));
	GOOD("rt_event_sync", aclrtSynchronizeEventWithTimeout(H, 9));
	BAD(PARAM, "event is NULL", aclrtStreamWaitEvent(H, NULL));
	GOOD("rt_stream_wait_event", aclrtStreamWaitEvent(NULL, H));
	BAD(PARAM, "ms is NULL", aclrtEventElapsedTime(NULL, H, H));
	BAD(PARAM, "startEvent is NULL", aclrtEventElapsedTime(&out.f32, NULL, H));
	BAD(PARAM, "endEvent is NULL", aclrtEventElapsedTime(&out.f32, H, NULL));
	GOOD("rt_event_elapsed", aclrtEventElapsedTime(&out.f32, H, host));
	ck_assert(rt_fake.object == H && rt_fake.stream == host && out.f32 == 1.5f);
}

static void malloc_with_config(void)
{
	aclrtMallocAttribute attr = { .attr = ACL_RT_MEM_ATTR_RSV };
	aclrtMallocConfig cfg = { .attrs = NULL, .numAttrs = 1 };

	BAD(PARAM, "devPtr is NULL", aclrtMallocWithCfg(NULL, 1, 0, NULL));
	BAD(PARAM, "size is 0", aclrtMallocWithCfg(&out.handle, 0, 0, NULL));
	BAD(PARAM, "policy is 0x200", aclrtMallocWithCfg(&out.handle, 1, 0x200, NULL));
	BAD(PARAM, "cfg->attrs is NULL", aclrtMallocWithCfg(&out.handle, 1, 0, &cfg));
	cfg.attrs = &attr;
	BAD(PARAM, "attrs[0].attr is 0", aclrtMallocWithCfg(&out.handle, 1, 0, &cfg));
	attr.attr = (aclrtMallocAttrType)4;
	BAD(PARAM, "attrs[0].attr is 4", aclrtMallocWithCfg(&out.handle, 1, 0, &cfg));
	attr = (aclrtMallocAttribute){ .attr = ACL_RT_MEM_ATTR_VA_FLAG, .value.vaFlag = 1 };
	BAD(RT_UNSUPPORTED, "VA_FLAG", aclrtMallocWithCfg(&out.handle, 1, 0, &cfg));
	BAD(RT_UNSUPPORTED, "policy is 0x100002",
	    aclrtMallocWithCfg(&out.handle, 1,
			       ACL_MEM_ACCESS_USER_SPACE_READONLY | ACL_MEM_MALLOC_NORMAL_ONLY,
			       NULL));
	GOOD("rt_malloc",
	     aclrtMallocWithCfg(&out.handle, 33,
				ACL_MEM_TYPE_HIGH_BAND_WIDTH | ACL_MEM_MALLOC_HUGE_ONLY, NULL));
	ck_assert(rt_fake.size == 64 && rt_fake.pages == RT_PAGES_HUGE_ONLY);
	attr = (aclrtMallocAttribute){ .attr = ACL_RT_MEM_ATTR_MODULE_ID, .value.moduleId = 3 };
	GOOD("rt_malloc", aclrtMallocWithCfg(&out.handle, 32, 2, &cfg));
	ck_assert(rt_fake.size == 32 && rt_fake.pages == RT_PAGES_NORMAL);

	/* this attribute needs to know the current device */
	attr = (aclrtMallocAttribute){ .attr = ACL_RT_MEM_ATTR_DEVICE_ID, .value.deviceId = 1 };
	calls_poison();
	ck_assert_int_eq(aclrtMallocWithCfg(&out.handle, 1, 0, &cfg), 0);
	ck_assert_uint_eq(rt_fake.calls, 2);
	attr.value.deviceId = 0;
	calls_poison();
	ck_assert_int_eq(aclrtMallocWithCfg(&out.handle, 1, 0, &cfg), 107001);
	ck_assert(rt_fake.calls == 1 && calls_untouched());
}

static void memory(void)
{
	static const struct {
		size_t size;
		uint32_t policy;
		enum rt_pages pages;
	} policies[] = {
		{ 1 << 20, ACL_MEM_MALLOC_HUGE_FIRST, RT_PAGES_NORMAL },
		{ (1 << 20) + 1, ACL_MEM_MALLOC_HUGE_FIRST, RT_PAGES_HUGE_FIRST },
		{ (1 << 20) + 1, ACL_MEM_MALLOC_HUGE_FIRST_P2P, RT_PAGES_HUGE_FIRST },
		{ 1, ACL_MEM_MALLOC_HUGE_ONLY, RT_PAGES_HUGE_ONLY },
		{ 1, ACL_MEM_MALLOC_HUGE_ONLY_P2P, RT_PAGES_HUGE_ONLY },
		{ 5 << 20, ACL_MEM_MALLOC_NORMAL_ONLY, RT_PAGES_NORMAL },
		{ 5 << 20, ACL_MEM_MALLOC_NORMAL_ONLY_P2P, RT_PAGES_NORMAL },
		{ (2 << 20) - 1, 999, RT_PAGES_NORMAL },
		{ 2 << 20, 999, RT_PAGES_HUGE_FIRST },
	};

	BAD(PARAM, "devPtr is NULL", aclrtMalloc(NULL, 1, 0));
	BAD(PARAM, "size is 0", aclrtMalloc(&out.handle, 0, 0));
	BAD(207001, "size is 18446744073709551615", aclrtMalloc(&out.handle, SIZE_MAX, 0));
	BAD(RT_UNSUPPORTED, "policy is 6", aclrtMalloc(&out.handle, 1, ACL_MEM_MALLOC_HUGE1G_ONLY));
	BAD(PARAM, "devPtr is NULL", aclrtMallocAlign32(NULL, 1, 0));
	BAD(PARAM, "size is 0", aclrtMallocAlign32(&out.handle, 0, 0));
	BAD(207001, "size is ", aclrtMallocAlign32(&out.handle, SIZE_MAX - 8, 0));
	GOOD("rt_malloc", aclrtMallocAlign32(&out.handle, 33, 0));
	ck_assert_uint_eq(rt_fake.size, 64);
	for (size_t i = 0; i < sizeof(policies) / sizeof(*policies); i++) {
		size_t size = policies[i].size;

		GOOD("rt_malloc", aclrtMalloc(&out.handle, size, policies[i].policy));
		ck_assert_uint_eq(rt_fake.size, (size + 31) / 32 * 32 + 32);
		ck_assert_msg(rt_fake.pages == policies[i].pages, "row %zu", i);
	}
	malloc_with_config();

	BAD(PARAM, "devPtr is NULL", aclrtFree(NULL));
	GOOD("rt_free", aclrtFree(host));
	BAD(PARAM, "hostPtr is NULL", aclrtMallocHost(NULL, 1));
	BAD(PARAM, "size is 0", aclrtMallocHost(&out.handle, 0));
	GOOD("rt_malloc_host", aclrtMallocHost(&out.handle, 5));
	BAD(PARAM, "hostPtr is NULL", aclrtFreeHost(NULL));
	GOOD("rt_free_host", aclrtFreeHost(host));

	BAD(PARAM, "free is NULL", aclrtGetMemInfo(ACL_HBM_MEM, NULL, &out.size));
	BAD(PARAM, "total is NULL", aclrtGetMemInfo(ACL_HBM_MEM, &out.size, NULL));
	BAD(PARAM, "attr is 18", aclrtGetMemInfo((aclrtMemAttr)18, &out.size, &out.size2));
	GOOD("rt_mem_info", aclrtGetMemInfo(ACL_HBM_MEM, &out.size, &out.size2));
	ck_assert(out.size == 100 && out.size2 == 200);
	GOOD("rt_mem_info", aclrtGetMemInfo(ACL_MEM_P2P_HUGE1G, &out.size, &out.size2));
	ck_assert(out.size == 0 && out.size2 == 0);

	BAD(PARAM, "ptr is NULL", aclrtPointerGetAttributes(NULL, &out.pointer));
	BAD(PARAM, "attributes is NULL", aclrtPointerGetAttributes(host, NULL));
	rt_fake.flags = RT_PLACE_DEVICE;
	GOOD("rt_pointer_info", aclrtPointerGetAttributes(host, &out.pointer));
	ck_assert(out.pointer.location.type == ACL_MEM_LOCATION_TYPE_DEVICE);
	ck_assert(out.pointer.location.id == 1 && out.pointer.pageSize == 4096);
	rt_fake.flags = RT_PLACE_UNKNOWN;
	GOOD("rt_pointer_info", aclrtPointerGetAttributes(host, &out.pointer));
	ck_assert(out.pointer.location.type == ACL_MEM_LOCATION_TYPE_UNREGISTERED);
}

static void copies(void)
{
	BAD(PARAM, "dst is NULL", aclrtMemcpy(NULL, 8, host, 8, 0));
	BAD(PARAM, "src is NULL", aclrtMemcpy(host, 8, NULL, 8, 0));
	BAD(PARAM, "kind is 6", aclrtMemcpy(host, 8, other, 8, (aclrtMemcpyKind)6));
	BAD(PARAM, "kind is ", aclrtMemcpy(host, 8, other, 8, (aclrtMemcpyKind)-1));
	BAD(RT_PARAM, "count is 9", aclrtMemcpy(host, 8, other, 9, 0));
	LOCAL(aclrtMemcpy(NULL, 0, NULL, 0, (aclrtMemcpyKind)99));
	LOCAL(aclrtMemcpy(host, 8, host, 8, 0));
	GOOD("rt_memcpy", aclrtMemcpy(host, 8, other, 8, ACL_MEMCPY_DEFAULT));
	ck_assert(rt_fake.dst == host && rt_fake.src == other && rt_fake.size == 8);

	BAD(PARAM, "dst is NULL", aclrtMemcpyAsync(NULL, 8, host, 8, 1, H));
	BAD(PARAM, "src is NULL", aclrtMemcpyAsync(host, 8, NULL, 8, 1, H));
	BAD(PARAM, "kind is 7", aclrtMemcpyAsync(host, 8, other, 8, (aclrtMemcpyKind)7, H));
	BAD(RT_UNSUPPORTED, "HOST_TO_HOST", aclrtMemcpyAsync(host, 8, other, 8, 0, H));
	BAD(RT_PARAM, "count is 9", aclrtMemcpyAsync(host, 8, other, 9, 1, H));
	LOCAL(aclrtMemcpyAsync(NULL, 0, NULL, 0, 0, H));
	GOOD("rt_memcpy_async", aclrtMemcpyAsync(host, 8, other, 8, 1, H));
	ck_assert(rt_fake.dst == host && rt_fake.src == other && rt_fake.stream == H);

	BAD(PARAM, "dst is NULL", aclrtMemcpy2d(NULL, 8, host, 8, 8, 1, 1));
	BAD(PARAM, "src is NULL", aclrtMemcpy2d(host, 8, NULL, 8, 8, 1, 1));
	BAD(PARAM, "width is 9", aclrtMemcpy2d(host, 8, other, 9, 9, 1, 1));
	BAD(PARAM, "width is 9", aclrtMemcpy2d(host, 9, other, 8, 9, 1, 1));
	BAD(PARAM, "kind is 0", aclrtMemcpy2d(host, 8, other, 8, 8, 1, 0));
	BAD(PARAM, "kind is 5", aclrtMemcpy2d(host, 8, other, 8, 8, 1, 5));
	BAD(RT_PARAM, "height is ", aclrtMemcpy2d(host, 8, other, 8, 8, SIZE_MAX, 1));
	LOCAL(aclrtMemcpy2d(NULL, 0, NULL, 0, 0, 1, 0));
	LOCAL(aclrtMemcpy2d(NULL, 0, NULL, 0, 1, 0, 0));
	GOOD("rt_memcpy2d", aclrtMemcpy2d(host, 10, other, 9, 8, 2, ACL_MEMCPY_DEFAULT));
	ck_assert(rt_fake.pitch[0] == 10 && rt_fake.pitch[1] == 9 && rt_fake.size == 8 &&
		  rt_fake.height == 2);

	BAD(PARAM, "dst is NULL", aclrtMemcpy2dAsync(NULL, 8, host, 8, 8, 1, 1, H));
	BAD(PARAM, "src is NULL", aclrtMemcpy2dAsync(host, 8, NULL, 8, 8, 1, 1, H));
	BAD(PARAM, "width is 5000001",
	    aclrtMemcpy2dAsync(host, 1 << 23, other, 1 << 23, 5000001, 1, 1, H));
	BAD(PARAM, "height is 5242881", aclrtMemcpy2dAsync(host, 8, other, 8, 8, 5242881, 1, H));
	BAD(PARAM, "width is 9", aclrtMemcpy2dAsync(host, 9, other, 8, 9, 1, 1, H));
	BAD(PARAM, "kind is 8", aclrtMemcpy2dAsync(host, 8, other, 8, 8, 1, 8, H));
	GOOD("rt_memcpy2d_async", aclrtMemcpy2dAsync(host, 8, other, 8, 8, 1, 3, H));

	BAD(PARAM, "devPtr is NULL", aclrtMemset(NULL, 8, 0, 8));
	BAD(RT_PARAM, "count is 9", aclrtMemset(host, 8, 0, 9));
	LOCAL(aclrtMemset(NULL, 0, 0, 0));
	GOOD("rt_memset", aclrtMemset(host, 8, 5, 8));
	BAD(PARAM, "devPtr is NULL", aclrtMemsetAsync(NULL, 8, 0, 8, H));
	BAD(RT_PARAM, "count is 9", aclrtMemsetAsync(host, 8, 0, 9, H));
	LOCAL(aclrtMemsetAsync(NULL, 0, 0, 0, H));
	GOOD("rt_memset_async", aclrtMemsetAsync(host, 8, 5, 8, H));
	ck_assert(rt_fake.value == 5 && rt_fake.stream == H);
}

static void callbacks(void)
{
	BAD(PARAM, "fn is NULL", aclrtLaunchHostFunc(H, NULL, NULL));
	GOOD("rt_host_func", aclrtLaunchHostFunc(H, callback, host));
	BAD(PARAM, "threadId is 0", aclrtSubscribeReport(0, H));
	GOOD("rt_report_subscribe", aclrtSubscribeReport(5, H));
	BAD(PARAM, "threadId is 0", aclrtUnSubscribeReport(0, H));
	GOOD("rt_report_unsubscribe", aclrtUnSubscribeReport(5, H));
	BAD(PARAM, "fn is NULL", aclrtLaunchCallback(NULL, NULL, ACL_CALLBACK_BLOCK, H));
	BAD(PARAM, "blockType is 2", aclrtLaunchCallback(callback, NULL, 2, H));
	GOOD("rt_report_launch", aclrtLaunchCallback(callback, host, ACL_CALLBACK_BLOCK, H));
	ck_assert(rt_fake.flag && rt_fake.object == host);
	BAD(PARAM, "timeout is 0", aclrtProcessReport(0));
	BAD(PARAM, "timeout is -2", aclrtProcessReport(-2));
	GOOD("rt_report_process", aclrtProcessReport(-1));
}

static void images(void)
{
	aclrtBinaryLoadOption option = { .type = 9 };
	aclrtBinaryLoadOptions options = { .options = NULL, .numOpt = 1 };
	aclrtBinary binary, again;

	calls_note("aclrtCreateBinary");
	ck_assert_ptr_null(aclrtCreateBinary(NULL, 5));
	ck_assert_ptr_nonnull(strstr(rt_fake.text, "data is NULL"));
	ck_assert_ptr_null(aclrtCreateBinary(host, 0));
	ck_assert_ptr_nonnull(strstr(rt_fake.text, "dataLen is 0"));
	binary = aclrtCreateBinary(host, 5);
	ck_assert_ptr_nonnull(binary);
	BAD(PARAM, "binary is NULL", aclrtBinaryLoad(NULL, &out.handle));
	BAD(PARAM, "binHandle is NULL", aclrtBinaryLoad(binary, NULL));
	BAD(107017, "binary 0xf00d0", aclrtBinaryLoad(H, &out.handle));
	GOOD("rt_module_load", aclrtBinaryLoad(binary, &out.handle));
	ck_assert(rt_fake.src == host && rt_fake.size == 5);
	BAD(PARAM, "binary is NULL", aclrtDestroyBinary(NULL));
	BAD(107017, "binary 0xf00d0", aclrtDestroyBinary(H));
	LOCAL(aclrtDestroyBinary(binary));
	BAD(107017, "binary ", aclrtDestroyBinary(binary));
	BAD(107017, "binary ", aclrtBinaryLoad(binary, &out.handle));
	again = aclrtCreateBinary(other, 6);
	ck_assert_ptr_nonnull(again);
	ck_assert_ptr_ne(again, binary);
	BAD(107017, "binary ", aclrtBinaryLoad(binary, &out.handle));
	LOCAL(aclrtDestroyBinary(again));

	BAD(PARAM, "binPath is NULL", aclrtBinaryLoadFromFile(NULL, NULL, &out.handle));
	BAD(PARAM, "binHandle is NULL", aclrtBinaryLoadFromFile("x", NULL, NULL));
	BAD(PARAM, "options->options is NULL", aclrtBinaryLoadFromFile("x", &options, &out.handle));
	options.options = &option;
	BAD(PARAM, "type 1 to 3", aclrtBinaryLoadFromFile("x", &options, &out.handle));
	option = (aclrtBinaryLoadOption){ .type = ACL_RT_BINARY_LOAD_OPT_MAGIC, .value.magic = 1 };
	BAD(PARAM, "MAGIC", aclrtBinaryLoadFromFile("x", &options, &out.handle));
	option = (aclrtBinaryLoadOption){ .type = ACL_RT_BINARY_LOAD_OPT_LAZY_LOAD,
					  .value.isLazyLoad = 2 };
	BAD(PARAM, "LAZY_LOAD", aclrtBinaryLoadFromFile("x", &options, &out.handle));
	option.type = ACL_RT_BINARY_LOAD_OPT_CPU_KERNEL_MODE;
	BAD(RT_UNSUPPORTED, "CPU_KERNEL_MODE",
	    aclrtBinaryLoadFromData(host, 5, &options, &out.handle));
	option = (aclrtBinaryLoadOption){ .type = ACL_RT_BINARY_LOAD_OPT_MAGIC,
					  .value.magic = ACL_RT_BINARY_MAGIC_ELF_VECTOR_CORE };
	GOOD("rt_module_load_file", aclrtBinaryLoadFromFile("x", &options, &out.handle));
	BAD(PARAM, "data is NULL", aclrtBinaryLoadFromData(NULL, 5, NULL, &out.handle));
	BAD(PARAM, "length is 0", aclrtBinaryLoadFromData(host, 0, NULL, &out.handle));
	BAD(PARAM, "binHandle is NULL", aclrtBinaryLoadFromData(host, 5, NULL, NULL));
	GOOD("rt_module_load", aclrtBinaryLoadFromData(host, 5, &options, &out.handle));
	BAD(PARAM, "binHandle is NULL", aclrtBinaryGetFunction(NULL, "x", &out.handle));
	BAD(PARAM, "kernelName is NULL", aclrtBinaryGetFunction(H, NULL, &out.handle));
	BAD(PARAM, "funcHandle is NULL", aclrtBinaryGetFunction(H, "x", NULL));
	GOOD("rt_module_function", aclrtBinaryGetFunction(H, "x", &out.handle));
	ck_assert_ptr_eq(out.handle, FAKE_KERNEL);
	BAD(PARAM, "binHandle is NULL", aclrtBinaryUnLoad(NULL));
	GOOD("rt_module_unload", aclrtBinaryUnLoad(H));
	rt_fake.image_gone = false;
}

static void arguments(void)
{
	aclrtArgsHandle list;
	aclrtParamHandle param;

	BAD(PARAM, "funcHandle is NULL", aclrtKernelArgsInit(NULL, &out.handle));
	BAD(PARAM, "argsHandle is NULL", aclrtKernelArgsInit(FAKE_KERNEL, NULL));
	GOOD("rt_function_info", aclrtKernelArgsInit(FAKE_KERNEL, &out.handle));
	list = out.handle;
	BAD(PARAM, "argsHandle is NULL", aclrtKernelArgsAppend(NULL, host, 4, &out.handle));
	BAD(PARAM, "param is NULL", aclrtKernelArgsAppend(list, NULL, 4, &out.handle));
	BAD(PARAM, "paramSize is 0", aclrtKernelArgsAppend(list, host, 0, &out.handle));
	BAD(PARAM, "paramHandle is NULL", aclrtKernelArgsAppend(list, host, 4, NULL));
	BAD(107017, "0xf00d0", aclrtKernelArgsAppend(H, host, 4, &out.handle));
	LOCAL(aclrtKernelArgsAppend(list, host, 4, &param));
	BAD(PARAM, "argsHandle is NULL", aclrtKernelArgsAppendPlaceHolder(NULL, &out.handle));
	BAD(PARAM, "paramHandle is NULL", aclrtKernelArgsAppendPlaceHolder(list, NULL));
	BAD(107017, "0xf00d0", aclrtKernelArgsAppendPlaceHolder(H, &out.handle));
	BAD(PARAM, "argsHandle is NULL",
	    aclrtKernelArgsGetPlaceHolderBuffer(NULL, param, 1, &out.handle));
	BAD(PARAM, "paramHandle is NULL",
	    aclrtKernelArgsGetPlaceHolderBuffer(list, NULL, 1, &out.handle));
	BAD(PARAM, "dataSize is 0",
	    aclrtKernelArgsGetPlaceHolderBuffer(list, param, 0, &out.handle));
	BAD(PARAM, "bufferAddr is NULL", aclrtKernelArgsGetPlaceHolderBuffer(list, param, 1, NULL));
	BAD(107017, "0xf00d0", aclrtKernelArgsGetPlaceHolderBuffer(H, param, 1, &out.handle));
	BAD(PARAM, "argsHandle is NULL", aclrtKernelArgsParaUpdate(NULL, param, host, 4));
	BAD(PARAM, "paramHandle is NULL", aclrtKernelArgsParaUpdate(list, NULL, host, 4));
	BAD(PARAM, "param is NULL", aclrtKernelArgsParaUpdate(list, param, NULL, 4));
	BAD(PARAM, "paramSize is 0", aclrtKernelArgsParaUpdate(list, param, host, 0));
	BAD(107017, "0xf00d0", aclrtKernelArgsParaUpdate(H, param, host, 4));
	BAD(PARAM, "argsHandle is NULL", aclrtKernelArgsFinalize(NULL));
	BAD(107017, "0xf00d0", aclrtKernelArgsFinalize(H));
	BAD(PARAM, "funcHandle is NULL", aclrtLaunchKernelWithConfig(NULL, 1, H, NULL, list, NULL));
	BAD(PARAM, "numBlocks is 0",
	    aclrtLaunchKernelWithConfig(FAKE_KERNEL, 0, H, NULL, list, NULL));
	BAD(PARAM, "argsHandle is NULL",
	    aclrtLaunchKernelWithConfig(FAKE_KERNEL, 1, H, NULL, NULL, NULL));
	BAD(PARAM, "reserve is 0xf00d0",
	    aclrtLaunchKernelWithConfig(FAKE_KERNEL, 1, H, NULL, list, H));
	BAD(107017, "0xf00d0", aclrtLaunchKernelWithConfig(FAKE_KERNEL, 1, H, NULL, H, NULL));
}

static void launches(void)
{
	aclrtPlaceHolderInfo holder = { 8, 40 };

	BAD(PARAM, "funcHandle is NULL", aclrtLaunchKernel(NULL, 1, host, 8, H));
	BAD(PARAM, "numBlocks is 0", aclrtLaunchKernel(FAKE_KERNEL, 0, host, 8, H));
	BAD(PARAM, "argsData is NULL", aclrtLaunchKernel(FAKE_KERNEL, 1, NULL, 8, H));
	GOOD("rt_launch_device_args", aclrtLaunchKernel(FAKE_KERNEL, 3, host, 8, H));
	ck_assert(rt_fake.blocks == 3 && rt_fake.src == host && rt_fake.timeout_us == 0);
	GOOD("rt_launch_device_args", aclrtLaunchKernel(FAKE_KERNEL_NONE, 1, NULL, 0, NULL));
	BAD(PARAM, "funcHandle is NULL", aclrtLaunchKernelV2(NULL, 1, host, 8, NULL, H));
	BAD(PARAM, "numBlocks is 0", aclrtLaunchKernelV2(FAKE_KERNEL, 0, host, 8, NULL, H));
	BAD(PARAM, "argsData is NULL", aclrtLaunchKernelV2(FAKE_KERNEL, 1, NULL, 8, NULL, H));
	GOOD("rt_launch_device_args", aclrtLaunchKernelV2(FAKE_KERNEL, 1, host, 8, NULL, H));
	BAD(PARAM, "funcHandle is NULL",
	    aclrtLaunchKernelWithHostArgs(NULL, 1, H, NULL, host, 8, NULL, 0));
	BAD(PARAM, "numBlocks is 0",
	    aclrtLaunchKernelWithHostArgs(FAKE_KERNEL, 0, H, NULL, host, 8, NULL, 0));
	BAD(PARAM, "hostArgs is NULL",
	    aclrtLaunchKernelWithHostArgs(FAKE_KERNEL, 1, H, NULL, NULL, 8, NULL, 0));
	BAD(PARAM, "placeHolderArray is NULL",
	    aclrtLaunchKernelWithHostArgs(FAKE_KERNEL, 1, H, NULL, host, 8, NULL, 1));
	GOOD("rt_launch",
	     aclrtLaunchKernelWithHostArgs(FAKE_KERNEL, 2, H, NULL, host, 48, &holder, 1));
	ck_assert(rt_fake.nholders == 1 && rt_fake.holders[0].address_offset == 8 &&
		  rt_fake.holders[0].data_offset == 40 && rt_fake.size == 48);
}

static void numbers(void)
{
	calls_note("aclFloat16ToFloat"); /* see check_acl_config */
	calls_note("aclFloatToFloat16");
	calls_note("aclDataTypeSize");
}

START_TEST(wrong_arguments_are_told_and_right_ones_handed_on)
{
	rt_fake_reset();
	init_and_errors();
	device();
	context_and_limits();
	stream();
	event();
	memory();
	copies();
	callbacks();
	images();
	arguments();
	launches();
	numbers();
	calls_all_noted(NPU_TOP_SRCDIR "/client/acl/functions.list");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("acl_args");
	TCase *tcase = tcase_create("calls");

	tcase_add_test(tcase, wrong_arguments_are_told_and_right_ones_handed_on);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}
