/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits on time, for the whole process.
 */
#include "client/acl/acl_internal.h"

#define US_PER_S 1000000ull

aclError aclrtSetOpWaitTimeout(uint32_t timeout)
{
	int code = acl_process_check();

	if (code == 0)
		rt_timeout_set_wait(timeout * US_PER_S);
	return code;
}

aclError aclrtSetOpExecuteTimeOut(uint32_t timeout)
{
	uint64_t actual;

	return rt_timeout_set_kernel(timeout * US_PER_S, &actual);
}

aclError aclrtSetOpExecuteTimeOutV2(uint64_t timeout, uint64_t *actualTimeout)
{
	ACL_NOT_NULL(actualTimeout);
	return rt_timeout_set_kernel(timeout, actualTimeout);
}

aclError aclrtGetOpTimeOutInterval(uint64_t *interval)
{
	int code;

	ACL_NOT_NULL(interval);
	code = acl_process_check();
	if (code == 0)
		*interval = RT_TIMEOUT_STEP_US;
	return code;
}
