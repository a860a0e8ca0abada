/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Failures of the first layer, and the calls that tell the program about failures. The texts and
 * the last error are the runtime's.
 */
#include "client/acl/acl_internal.h"

#include <stdarg.h>
#include <stdio.h>

#define TEXT_MAX 512

int acl_bad_null(const char *function, const char *argument)
{
	rt_error_text("EH0001", "%s: %s is NULL, allowed: a valid pointer or handle", function,
		      argument);
	return ACL_ERROR_INVALID_PARAM;
}

int acl_bad_value(const char *function, const char *argument, long long value, const char *allowed)
{
	rt_error_text("EH0001", "%s: %s is %lld, allowed: %s", function, argument, value, allowed);
	return ACL_ERROR_INVALID_PARAM;
}

int acl_bad(int code, const char *function, const char *format, ...)
{
	char text[TEXT_MAX];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	rt_error_text("EH0001", "%s: %s", function, text);
	return code;
}

int acl_bad_rt(int code, const char *function, const char *format, ...)
{
	char text[TEXT_MAX];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return rt_error(code, code == ACL_ERROR_RT_MEMORY_ALLOCATION ? "EL0004" : "EE1001",
			"%s: %s", function, text);
}

const char *aclGetRecentErrMsg(void)
{
	return rt_error_recent();
}

aclError aclrtPeekAtLastError(aclrtLastErrLevel level)
{
	ACL_ALLOW(level, level == ACL_RT_THREAD_LEVEL, "ACL_RT_THREAD_LEVEL (0)");
	return rt_last_error_peek();
}

aclError aclrtGetLastError(aclrtLastErrLevel level)
{
	ACL_ALLOW(level, level == ACL_RT_THREAD_LEVEL, "ACL_RT_THREAD_LEVEL (0)");
	return rt_last_error_get();
}
