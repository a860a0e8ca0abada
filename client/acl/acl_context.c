/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts.
 */
#include "client/acl/acl_internal.h"

aclError aclrtCreateContext(aclrtContext *context, int32_t deviceId)
{
	ACL_NOT_NULL(context);
	return rt_context_create(deviceId, context);
}

aclError aclrtDestroyContext(aclrtContext context)
{
	ACL_NOT_NULL(context);
	return rt_context_destroy(context);
}

aclError aclrtSetCurrentContext(aclrtContext context)
{
	ACL_NOT_NULL(context);
	return rt_context_set_current(context);
}

aclError aclrtGetCurrentContext(aclrtContext *context)
{
	ACL_NOT_NULL(context);
	return rt_context_current(context);
}

aclError aclrtCtxGetCurrentDefaultStream(aclrtStream *stream)
{
	ACL_NOT_NULL(stream);
	return rt_context_default_stream(stream);
}

aclError aclrtGetPrimaryCtxState(int32_t deviceId, uint32_t *flags, int32_t *active)
{
	bool is_active;
	int code;

	if (flags)
		return acl_bad(ACL_ERROR_INVALID_PARAM, __func__, "flags is %p, allowed: NULL",
			       (void *)flags);
	ACL_NOT_NULL(active);
	code = rt_device_primary_active(deviceId, &is_active);
	if (code == 0)
		*active = is_active;
	return code;
}
