/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Callbacks on the host, in both of the ways that the interface has.
 */
#include "client/acl/acl_internal.h"

aclError aclrtLaunchHostFunc(aclrtStream stream, aclrtHostFunc fn, void *args)
{
	ACL_NOT_NULL(fn);
	return rt_host_func(stream, fn, args);
}

aclError aclrtSubscribeReport(uint64_t threadId, aclrtStream stream)
{
	ACL_ALLOW(threadId, threadId != 0, "the pthread_t of a thread");
	return rt_report_subscribe(threadId, stream);
}

aclError aclrtUnSubscribeReport(uint64_t threadId, aclrtStream stream)
{
	ACL_ALLOW(threadId, threadId != 0, "the pthread_t of a thread");
	return rt_report_unsubscribe(threadId, stream);
}

aclError aclrtLaunchCallback(aclrtCallback fn, void *userData, aclrtCallbackBlockType blockType,
			     aclrtStream stream)
{
	ACL_NOT_NULL(fn);
	ACL_ALLOW(blockType, blockType == ACL_CALLBACK_NO_BLOCK || blockType == ACL_CALLBACK_BLOCK,
		  "ACL_CALLBACK_NO_BLOCK (0), ACL_CALLBACK_BLOCK (1)");
	return rt_report_launch(stream, fn, userData, blockType == ACL_CALLBACK_BLOCK);
}

aclError aclrtProcessReport(int32_t timeout)
{
	ACL_ALLOW(timeout, timeout == -1 || timeout > 0,
		  "-1 (no limit), or milliseconds from 1 on");
	return rt_report_process(timeout);
}
