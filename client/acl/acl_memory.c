/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device and pinned memory: the sizes and page policies that each way of allocating promises, and
 * what is known of memory. The allocator itself is the runtime's.
 */
#include "client/acl/acl_internal.h"

#include <string.h>

#define ROUND	  32u	     /* allocations are a multiple of this */
#define PADDING	  32u	     /* usable bytes behind those of aclrtMalloc() */
#define SMALL_MAX (1u << 20) /* up to here HUGE_FIRST takes normal pages */
#define HUGE_PAGE (2u << 20)

#define POLICY_KINDS 0xffu
#define POLICY_BITS                                                                  \
	(POLICY_KINDS | ACL_MEM_TYPE_LOW_BAND_WIDTH | ACL_MEM_TYPE_HIGH_BAND_WIDTH | \
	 ACL_MEM_ACCESS_USER_SPACE_READONLY)

/* Memory that peers can reach is no other memory here: the P2P kinds are the plain ones. */
static int pages_of_policy(const char *function, uint32_t policy, size_t size,
			   enum rt_pages *ret_pages)
{
	switch (policy) {
	case ACL_MEM_MALLOC_HUGE_FIRST:
	case ACL_MEM_MALLOC_HUGE_FIRST_P2P:
		*ret_pages = size <= SMALL_MAX ? RT_PAGES_NORMAL : RT_PAGES_HUGE_FIRST;
		return 0;
	case ACL_MEM_MALLOC_HUGE_ONLY:
	case ACL_MEM_MALLOC_HUGE_ONLY_P2P:
		*ret_pages = RT_PAGES_HUGE_ONLY;
		return 0;
	case ACL_MEM_MALLOC_NORMAL_ONLY:
	case ACL_MEM_MALLOC_NORMAL_ONLY_P2P:
		*ret_pages = RT_PAGES_NORMAL;
		return 0;
	case ACL_MEM_MALLOC_HUGE1G_ONLY:
	case ACL_MEM_MALLOC_HUGE1G_ONLY_P2P:
		return acl_bad_rt(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, function,
				  "policy is %u: this device has no pages of 1 GiB", policy);
	default:
		*ret_pages = size < HUGE_PAGE ? RT_PAGES_NORMAL : RT_PAGES_HUGE_FIRST;
		return 0;
	}
}

static int device_malloc(const char *function, size_t size, size_t padding, uint32_t policy,
			 void **ret_address)
{
	enum rt_pages pages = RT_PAGES_NORMAL;
	int code;

	if (size > SIZE_MAX - ROUND - padding)
		return acl_bad_rt(ACL_ERROR_RT_MEMORY_ALLOCATION, function,
				  "size is %zu, which no device has", size);
	code = pages_of_policy(function, policy, size, &pages);
	if (code)
		return code;
	size = (size + ROUND - 1) / ROUND * ROUND + padding;
	return rt_malloc(size, pages, ret_address);
}

aclError aclrtMalloc(void **devPtr, size_t size, aclrtMemMallocPolicy policy)
{
	ACL_NOT_NULL(devPtr);
	ACL_ALLOW(size, size > 0, "1 or more bytes");
	return device_malloc(__func__, size, PADDING, policy, devPtr);
}

aclError aclrtMallocAlign32(void **devPtr, size_t size, aclrtMemMallocPolicy policy)
{
	ACL_NOT_NULL(devPtr);
	ACL_ALLOW(size, size > 0, "1 or more bytes");
	return device_malloc(__func__, size, 0, policy, devPtr);
}

/* Device that an attribute asks for; it has to be the current one. */
static int config_device(const char *function, uint32_t device)
{
	int32_t current;
	int code = rt_device_current(&current);

	if (code)
		return code;
	if ((uint32_t)current != device)
		return acl_bad_rt(ACL_ERROR_RT_INVALID_DEVICEID, function,
				  "ACL_RT_MEM_ATTR_DEVICE_ID is %u, allowed: the current device %d",
				  device, current);
	return 0;
}

static int config_check(const char *function, const aclrtMallocConfig *cfg)
{
	int code = 0;

	if (cfg->numAttrs && !cfg->attrs)
		return acl_bad_null(function, "cfg->attrs");
	for (size_t i = 0; code == 0 && i < cfg->numAttrs; i++) {
		const aclrtMallocAttribute *attr = &cfg->attrs[i];

		switch (attr->attr) {
		case ACL_RT_MEM_ATTR_MODULE_ID: /* whom to count it for: nobody here */
			break;
		case ACL_RT_MEM_ATTR_DEVICE_ID:
			code = config_device(function, attr->value.deviceId);
			break;
		case ACL_RT_MEM_ATTR_VA_FLAG:
			if (attr->value.vaFlag)
				code = acl_bad_rt(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, function,
						  "ACL_RT_MEM_ATTR_VA_FLAG is %u, allowed: 0",
						  attr->value.vaFlag);
			break;
		default:
			code = acl_bad(ACL_ERROR_INVALID_PARAM, function,
				       "cfg->attrs[%zu].attr is %d, allowed: 1 to 3", i,
				       attr->attr);
		}
	}
	return code;
}

aclError aclrtMallocWithCfg(void **devPtr, size_t size, aclrtMemMallocPolicy policy,
			    aclrtMallocConfig *cfg)
{
	int code;

	ACL_NOT_NULL(devPtr);
	ACL_ALLOW(size, size > 0, "1 or more bytes");
	if ((uint32_t)policy & ~POLICY_BITS)
		return acl_bad(ACL_ERROR_INVALID_PARAM, __func__,
			       "policy is 0x%x, allowed: bits of aclrtMemMallocPolicy", policy);
	code = cfg ? config_check(__func__, cfg) : 0;
	if (code)
		return code;
	if ((uint32_t)policy & ACL_MEM_ACCESS_USER_SPACE_READONLY)
		return acl_bad_rt(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, __func__,
				  "policy is 0x%x: this device has no read-only memory for kernels",
				  policy);
	return device_malloc(__func__, size, 0, (uint32_t)policy & POLICY_KINDS, devPtr);
}

aclError aclrtFree(void *devPtr)
{
	ACL_NOT_NULL(devPtr);
	return rt_free(devPtr);
}

aclError aclrtMallocHost(void **hostPtr, size_t size)
{
	ACL_NOT_NULL(hostPtr);
	ACL_ALLOW(size, size > 0, "1 or more bytes");
	return rt_malloc_host(size, hostPtr);
}

aclError aclrtFreeHost(void *hostPtr)
{
	ACL_NOT_NULL(hostPtr);
	return rt_free_host(hostPtr);
}

/* The device has one pool of one kind, from which pages of either size are taken. */
static bool memory_kind_present(aclrtMemAttr attr)
{
	switch ((int)attr) {
	case ACL_HBM_MEM:
	case ACL_HBM_MEM_HUGE:
	case ACL_HBM_MEM_NORMAL:
	case ACL_MEM_HUGE:
	case ACL_MEM_NORMAL:
		return true;
	default:
		return false;
	}
}

aclError aclrtGetMemInfo(aclrtMemAttr attr, size_t *free, size_t *total)
{
	struct rt_mem_info info;
	bool present = memory_kind_present(attr);
	int code;

	ACL_NOT_NULL(free);
	ACL_NOT_NULL(total);
	ACL_ALLOW(attr, (uint32_t)attr <= ACL_MEM_P2P_HUGE1G, "a value of aclrtMemAttr");
	code = rt_mem_info(&info);
	if (code)
		return code;
	*free = present ? info.free : 0;
	*total = present ? info.total : 0;
	return 0;
}

aclError aclrtPointerGetAttributes(const void *ptr, aclrtPtrAttributes *attributes)
{
	static const aclrtMemLocationType types[] = {
		[RT_PLACE_HOST] = ACL_MEM_LOCATION_TYPE_HOST,
		[RT_PLACE_DEVICE] = ACL_MEM_LOCATION_TYPE_DEVICE,
		[RT_PLACE_UNKNOWN] = ACL_MEM_LOCATION_TYPE_UNREGISTERED,
	};
	struct rt_pointer_info info;
	int code;

	ACL_NOT_NULL(ptr);
	ACL_NOT_NULL(attributes);
	code = rt_pointer_info(ptr, &info);
	if (code)
		return code;
	memset(attributes, 0, sizeof(*attributes));
	attributes->location.type = types[info.place];
	attributes->location.id = (uint32_t)info.device;
	attributes->pageSize = (uint32_t)info.page;
	return 0;
}
