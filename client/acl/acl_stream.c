/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams. NULL is the default stream of the current context, except where it would be destroyed.
 */
#include "client/acl/acl_internal.h"

#define PRIORITY_LOWEST	 7
#define PRIORITY_HIGHEST 0
#define STREAM_FLAGS                                                                               \
	(ACL_STREAM_FAST_LAUNCH | ACL_STREAM_FAST_SYNC | ACL_STREAM_PERSISTENT | ACL_STREAM_HUGE | \
	 ACL_STREAM_CPU_SCHEDULE | ACL_STREAM_DEVICE_USE_ONLY)

aclError aclrtCreateStream(aclrtStream *stream)
{
	ACL_NOT_NULL(stream);
	return rt_stream_create(PRIORITY_HIGHEST, 0, stream);
}

aclError aclrtCreateStreamWithConfig(aclrtStream *stream, uint32_t priority, uint32_t flag)
{
	ACL_NOT_NULL(stream);
	ACL_ALLOW(priority, priority <= PRIORITY_LOWEST, "0 (highest) to 7");
	return rt_stream_create(priority, flag & STREAM_FLAGS, stream);
}

aclError aclrtDestroyStream(aclrtStream stream)
{
	ACL_NOT_NULL(stream);
	return rt_stream_destroy(stream, false);
}

aclError aclrtDestroyStreamForce(aclrtStream stream)
{
	ACL_NOT_NULL(stream);
	return rt_stream_destroy(stream, true);
}

aclError aclrtSynchronizeStream(aclrtStream stream)
{
	return rt_stream_sync(stream, -1);
}

aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t timeout)
{
	ACL_ALLOW_TIMEOUT(timeout);
	return rt_stream_sync(stream, timeout);
}

aclError aclrtStreamQuery(aclrtStream stream, aclrtStreamStatus *status)
{
	bool complete;
	int code;

	ACL_NOT_NULL(status);
	code = rt_stream_query(stream, &complete);
	if (code == 0)
		*status = complete ? ACL_STREAM_STATUS_COMPLETE : ACL_STREAM_STATUS_NOT_READY;
	return code;
}

aclError aclrtStreamGetId(aclrtStream stream, int32_t *streamId)
{
	ACL_NOT_NULL(streamId);
	return rt_stream_id(stream, streamId);
}

aclError aclrtStreamGetPriority(aclrtStream stream, uint32_t *priority)
{
	ACL_NOT_NULL(priority);
	return rt_stream_priority(stream, priority);
}

aclError aclrtDeviceGetStreamPriorityRange(int32_t *leastPriority, int32_t *greatestPriority)
{
	int code;

	ACL_NOT_NULL(leastPriority);
	ACL_NOT_NULL(greatestPriority);
	code = acl_process_check();
	if (code)
		return code;
	*leastPriority = PRIORITY_LOWEST;
	*greatestPriority = PRIORITY_HIGHEST;
	return 0;
}

aclError aclrtGetStreamAvailableNum(uint32_t *streamCount)
{
	ACL_NOT_NULL(streamCount);
	return rt_stream_available(streamCount);
}

aclError aclrtSetStreamFailureMode(aclrtStream stream, uint64_t mode)
{
	ACL_ALLOW(mode, mode <= ACL_STOP_ON_FAILURE,
		  "ACL_CONTINUE_ON_FAILURE (0), ACL_STOP_ON_FAILURE (1)");
	return rt_stream_set_fail_mode(stream, mode == ACL_STOP_ON_FAILURE ? RT_FAIL_STOP :
									     RT_FAIL_CONTINUE);
}
