/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies and fills. Nothing to do is success before anything else is looked at; the direction is
 * found from the addresses, so a kind has to be a valid one and no more.
 */
#include "client/acl/acl_internal.h"

#define ASYNC_WIDTH_MAX	 5000000u
#define ASYNC_HEIGHT_MAX 5242880u

static int count_over(const char *function, size_t count, const char *limit_name, size_t limit)
{
	return acl_bad_rt(ACL_ERROR_RT_PARAM_INVALID, function,
			  "count is %zu, allowed: up to %s, which is %zu", count, limit_name,
			  limit);
}

#define ALLOW_COUNT(limit)                                                 \
	do {                                                               \
		if (ACL_UNLIKELY(count > (limit)))                         \
			return count_over(__func__, count, #limit, limit); \
	} while (0)

#define ALLOW_KIND(kind)                                                      \
	ACL_ALLOW(kind, (uint32_t)(kind) <= ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE, \
		  "ACL_MEMCPY_HOST_TO_HOST (0) to ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE (5)")

aclError aclrtMemcpy(void *dst, size_t destMax, const void *src, size_t count, aclrtMemcpyKind kind)
{
	if (count == 0)
		return 0;
	ACL_NOT_NULL(dst);
	ACL_NOT_NULL(src);
	ALLOW_KIND(kind);
	ALLOW_COUNT(destMax);
	if (dst == src)
		return 0;
	return rt_memcpy(dst, src, count);
}

aclError aclrtMemcpyAsync(void *dst, size_t destMax, const void *src, size_t count,
			  aclrtMemcpyKind kind, aclrtStream stream)
{
	if (count == 0)
		return 0;
	ACL_NOT_NULL(dst);
	ACL_NOT_NULL(src);
	ALLOW_KIND(kind);
	if (ACL_UNLIKELY(kind == ACL_MEMCPY_HOST_TO_HOST))
		return acl_bad_rt(
			ACL_ERROR_RT_FEATURE_NOT_SUPPORT, __func__,
			"kind is ACL_MEMCPY_HOST_TO_HOST, allowed: kinds that involve a device");
	ALLOW_COUNT(destMax);
	if (dst == src)
		return 0;
	return rt_memcpy_async(dst, src, count, stream);
}

/* What both 2D copies ask; with a pitch of at least the width a row can only leave at the end. */
static int rows_check(const char *function, size_t dpitch, size_t spitch, size_t width,
		      size_t height, aclrtMemcpyKind kind)
{
	size_t pitch = dpitch > spitch ? dpitch : spitch, bytes;

	if ((uint32_t)kind < ACL_MEMCPY_HOST_TO_DEVICE || (uint32_t)kind > ACL_MEMCPY_DEFAULT)
		return acl_bad_value(function, "kind", kind,
				     "ACL_MEMCPY_HOST_TO_DEVICE (1) to ACL_MEMCPY_DEFAULT (4)");
	if (width > dpitch || width > spitch)
		return acl_bad(ACL_ERROR_INVALID_PARAM, function,
			       "width is %zu, allowed: up to dpitch (%zu) and spitch (%zu)", width,
			       dpitch, spitch);
	if (__builtin_mul_overflow(pitch, height, &bytes))
		return acl_bad_rt(ACL_ERROR_RT_PARAM_INVALID, function,
				  "height is %zu, with a pitch of %zu more than the address space",
				  height, pitch);
	return 0;
}

aclError aclrtMemcpy2d(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
		       size_t height, aclrtMemcpyKind kind)
{
	int code;

	if (width == 0 || height == 0)
		return 0;
	ACL_NOT_NULL(dst);
	ACL_NOT_NULL(src);
	code = rows_check(__func__, dpitch, spitch, width, height, kind);
	if (code)
		return code;
	return rt_memcpy2d(dst, dpitch, src, spitch, width, height);
}

aclError aclrtMemcpy2dAsync(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
			    size_t height, aclrtMemcpyKind kind, aclrtStream stream)
{
	int code;

	if (width == 0 || height == 0)
		return 0;
	ACL_NOT_NULL(dst);
	ACL_NOT_NULL(src);
	ACL_ALLOW(width, width <= ASYNC_WIDTH_MAX, "up to 5000000");
	ACL_ALLOW(height, height <= ASYNC_HEIGHT_MAX, "up to 5242880");
	code = rows_check(__func__, dpitch, spitch, width, height, kind);
	if (code)
		return code;
	return rt_memcpy2d_async(dst, dpitch, src, spitch, width, height, stream);
}

aclError aclrtMemset(void *devPtr, size_t maxCount, int32_t value, size_t count)
{
	if (count == 0)
		return 0;
	ACL_NOT_NULL(devPtr);
	ALLOW_COUNT(maxCount);
	return rt_memset(devPtr, value, count);
}

aclError aclrtMemsetAsync(void *devPtr, size_t maxCount, int32_t value, size_t count,
			  aclrtStream stream)
{
	if (count == 0)
		return 0;
	ACL_NOT_NULL(devPtr);
	ALLOW_COUNT(maxCount);
	return rt_memset_async(devPtr, value, count, stream);
}
