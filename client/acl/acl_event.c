/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events.
 */
#include "client/acl/acl_internal.h"

#define EVENT_FLAGS                                                                 \
	(ACL_EVENT_SYNC | ACL_EVENT_CAPTURE_STREAM_PROGRESS | ACL_EVENT_TIME_LINE | \
	 ACL_EVENT_DEVICE_USE_ONLY | ACL_EVENT_EXTERNAL)

static int event_create(const char *function, uint32_t flag, bool ex, aclrtEvent *event)
{
	if (flag & ~(EVENT_FLAGS | ACL_EVENT_IPC))
		return acl_bad(ACL_ERROR_INVALID_PARAM, function,
			       "flag is 0x%x, allowed: bits of ACL_EVENT_*", flag);
	if (flag & ACL_EVENT_IPC) {
		if (!ex || flag != ACL_EVENT_IPC)
			return acl_bad(ACL_ERROR_INVALID_PARAM, function,
				       "flag is 0x%x, allowed: ACL_EVENT_IPC alone, with "
				       "aclrtCreateEventExWithFlag",
				       flag);
		return acl_bad_rt(
			ACL_ERROR_RT_FEATURE_NOT_SUPPORT, function,
			"flag is ACL_EVENT_IPC: this device has no events between processes");
	}
	return rt_event_create(flag, ex, event);
}

aclError aclrtCreateEvent(aclrtEvent *event)
{
	ACL_NOT_NULL(event);
	return rt_event_create(ACL_EVENT_SYNC | ACL_EVENT_TIME_LINE, false, event);
}

aclError aclrtCreateEventWithFlag(aclrtEvent *event, uint32_t flag)
{
	ACL_NOT_NULL(event);
	return event_create(__func__, flag, false, event);
}

aclError aclrtCreateEventExWithFlag(aclrtEvent *event, uint32_t flag)
{
	ACL_NOT_NULL(event);
	return event_create(__func__, flag, true, event);
}

aclError aclrtDestroyEvent(aclrtEvent event)
{
	ACL_NOT_NULL(event);
	return rt_event_destroy(event);
}

aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream)
{
	ACL_NOT_NULL(event);
	return rt_event_record(event, stream);
}

aclError aclrtQueryEventStatus(aclrtEvent event, aclrtEventRecordedStatus *status)
{
	bool complete;
	int code;

	ACL_NOT_NULL(event);
	ACL_NOT_NULL(status);
	code = rt_event_query(event, &complete);
	if (code == 0)
		*status = complete ? ACL_EVENT_RECORDED_STATUS_COMPLETE :
				     ACL_EVENT_RECORDED_STATUS_NOT_READY;
	return code;
}

aclError aclrtSynchronizeEvent(aclrtEvent event)
{
	ACL_NOT_NULL(event);
	return rt_event_sync(event, -1);
}

aclError aclrtSynchronizeEventWithTimeout(aclrtEvent event, int32_t timeout)
{
	ACL_NOT_NULL(event);
	ACL_ALLOW_TIMEOUT(timeout);
	return rt_event_sync(event, timeout);
}

aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event)
{
	ACL_NOT_NULL(event);
	return rt_stream_wait_event(stream, event);
}

aclError aclrtEventElapsedTime(float *ms, aclrtEvent startEvent, aclrtEvent endEvent)
{
	ACL_NOT_NULL(ms);
	ACL_NOT_NULL(startEvent);
	ACL_NOT_NULL(endEvent);
	return rt_event_elapsed(startEvent, endEvent, ms);
}
