/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches. This is the path that has to be short: checks, the attributes, one call. Nothing here
 * allocates or enters the kernel.
 */
#include "client/acl/acl_internal.h"

#define US_PER_S 1000000ull

/* The placeholders of the interface are handed on as they are. */
_Static_assert(sizeof(aclrtPlaceHolderInfo) == sizeof(struct rt_placeholder), "same size");
_Static_assert(offsetof(aclrtPlaceHolderInfo, addrOffset) ==
		       offsetof(struct rt_placeholder, address_offset),
	       "same place");
_Static_assert(offsetof(aclrtPlaceHolderInfo, dataOffset) ==
		       offsetof(struct rt_placeholder, data_offset),
	       "same place");

static ACL_COLD int bad_attr(const char *function, size_t i, const char *name, uint32_t value,
			     const char *allowed)
{
	return acl_bad(ACL_ERROR_INVALID_PARAM, function, "cfg->attrs[%zu] %s is %u, allowed: %s",
		       i, name, value, allowed);
}

/* An attribute that the device does not have. */
static int attr_zero(const char *function, size_t i, const char *name, uint32_t value)
{
	if (value == 0)
		return 0;
	return acl_bad_rt(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, function,
			  "cfg->attrs[%zu] %s is %u, allowed on this device: 0", i, name, value);
}

static int attr_flag(const char *function, size_t i, const char *name, uint32_t value)
{
	return value <= 1 ? 0 : bad_attr(function, i, name, value, "0, 1");
}

/*
 * What would change the result is refused when the device cannot do it; what only makes it faster,
 * or records it, may stay without effect.
 */
static int attr_check(const char *function, const aclrtLaunchKernelAttr *attr, size_t i,
		      uint64_t *timeout_us)
{
	const aclrtLaunchKernelAttrValue *value = &attr->value;

	switch (attr->id) {
	case ACL_RT_LAUNCH_KERNEL_ATTR_SCHEM_MODE:
		return attr_zero(function, i, "SCHEM_MODE", value->schemMode);
	case ACL_RT_LAUNCH_KERNEL_ATTR_DYN_UBUF_SIZE:
		return attr_zero(function, i, "DYN_UBUF_SIZE", value->dynUBufSize);
	case ACL_RT_LAUNCH_KERNEL_ATTR_BLOCKDIM_OFFSET:
		return attr_zero(function, i, "BLOCKDIM_OFFSET", value->blockDimOffset);
	case ACL_RT_LAUNCH_KERNEL_ATTR_ENGINE_TYPE:
		if ((uint32_t)value->engineType > ACL_RT_ENGINE_TYPE_AIV)
			return bad_attr(function, i, "ENGINE_TYPE", (uint32_t)value->engineType,
					"ACL_RT_ENGINE_TYPE_AIC (0), ACL_RT_ENGINE_TYPE_AIV (1)");
		return 0;
	case ACL_RT_LAUNCH_KERNEL_ATTR_BLOCK_TASK_PREFETCH:
		return attr_flag(function, i, "BLOCK_TASK_PREFETCH", value->isBlockTaskPrefetch);
	case ACL_RT_LAUNCH_KERNEL_ATTR_DATA_DUMP:
		return attr_flag(function, i, "DATA_DUMP", value->isDataDump);
	case ACL_RT_LAUNCH_KERNEL_ATTR_ENABLE_PROFILING:
		return attr_flag(function, i, "ENABLE_PROFILING", value->enableProfiling);
	case ACL_RT_LAUNCH_KERNEL_ATTR_TIMEOUT:
		*timeout_us = value->timeout * US_PER_S;
		return 0;
	case ACL_RT_LAUNCH_KERNEL_ATTR_TIMEOUT_US:
		*timeout_us =
			(uint64_t)value->timeoutUs.timeoutHigh << 32 | value->timeoutUs.timeoutLow;
		return 0;
	}
	return bad_attr(function, i, "id", (uint32_t)attr->id,
			"a value of aclrtLaunchKernelAttrId");
}

int acl_launch_config(const char *function, const aclrtLaunchKernelCfg *cfg,
		      uint64_t *ret_timeout_us)
{
	const uint32_t both = 1u << ACL_RT_LAUNCH_KERNEL_ATTR_TIMEOUT |
			      1u << ACL_RT_LAUNCH_KERNEL_ATTR_TIMEOUT_US;
	uint64_t timeout_us = 0;
	uint32_t seen = 0;
	int code;

	if (!cfg || cfg->numAttrs == 0) {
		*ret_timeout_us = 0;
		return 0;
	}
	if (!cfg->attrs)
		return acl_bad_null(function, "cfg->attrs");
	for (size_t i = 0; i < cfg->numAttrs; i++) {
		uint32_t bit;

		code = attr_check(function, &cfg->attrs[i], i, &timeout_us);
		if (code)
			return code;
		bit = 1u << cfg->attrs[i].id;
		if (seen & bit)
			return bad_attr(function, i, "id", (uint32_t)cfg->attrs[i].id,
					"each attribute once");
		seen |= bit;
	}
	if ((seen & both) == both)
		return acl_bad(ACL_ERROR_INVALID_PARAM, function,
			       "cfg has TIMEOUT and TIMEOUT_US, allowed: one of them");
	*ret_timeout_us = timeout_us;
	return 0;
}

#define ALLOW_BLOCKS() ACL_ALLOW(numBlocks, numBlocks > 0, "1 or more")

/* A kernel without parameters has no arguments to point to. */
#define ALLOW_ARGS(args)                                      \
	do {                                                  \
		if (ACL_UNLIKELY(!(args) && argsSize))        \
			return acl_bad_null(__func__, #args); \
	} while (0)

aclError aclrtLaunchKernel(aclrtFuncHandle funcHandle, uint32_t numBlocks, const void *argsData,
			   size_t argsSize, aclrtStream stream)
{
	ACL_NOT_NULL(funcHandle);
	ALLOW_BLOCKS();
	ALLOW_ARGS(argsData);
	return rt_launch_device_args(funcHandle, numBlocks, argsData, argsSize, 0, stream);
}

aclError aclrtLaunchKernelV2(aclrtFuncHandle funcHandle, uint32_t numBlocks, const void *argsData,
			     size_t argsSize, aclrtLaunchKernelCfg *cfg, aclrtStream stream)
{
	uint64_t timeout_us;
	int code;

	ACL_NOT_NULL(funcHandle);
	ALLOW_BLOCKS();
	ALLOW_ARGS(argsData);
	code = acl_launch_config(__func__, cfg, &timeout_us);
	if (ACL_UNLIKELY(code))
		return code;
	return rt_launch_device_args(funcHandle, numBlocks, argsData, argsSize, timeout_us, stream);
}

aclError aclrtLaunchKernelWithConfig(aclrtFuncHandle funcHandle, uint32_t numBlocks,
				     aclrtStream stream, aclrtLaunchKernelCfg *cfg,
				     aclrtArgsHandle argsHandle, void *reserve)
{
	uint64_t timeout_us;
	int code;

	ACL_NOT_NULL(funcHandle);
	ALLOW_BLOCKS();
	ACL_NOT_NULL(argsHandle);
	if (ACL_UNLIKELY(reserve))
		return acl_bad(ACL_ERROR_INVALID_PARAM, __func__, "reserve is %p, allowed: NULL",
			       reserve);
	code = acl_launch_config(__func__, cfg, &timeout_us);
	if (ACL_UNLIKELY(code))
		return code;
	return acl_args_launch(__func__, argsHandle, funcHandle, numBlocks, timeout_us, stream);
}

aclError aclrtLaunchKernelWithHostArgs(aclrtFuncHandle funcHandle, uint32_t numBlocks,
				       aclrtStream stream, aclrtLaunchKernelCfg *cfg,
				       void *hostArgs, size_t argsSize,
				       aclrtPlaceHolderInfo *placeHolderArray,
				       size_t placeHolderNum)
{
	uint64_t timeout_us;
	int code;

	ACL_NOT_NULL(funcHandle);
	ALLOW_BLOCKS();
	ALLOW_ARGS(hostArgs);
	if (ACL_UNLIKELY(placeHolderNum && !placeHolderArray))
		return acl_bad_null(__func__, "placeHolderArray");
	code = acl_launch_config(__func__, cfg, &timeout_us);
	if (ACL_UNLIKELY(code))
		return code;
	return rt_launch(funcHandle, numBlocks, hostArgs, argsSize,
			 (const struct rt_placeholder *)placeHolderArray, placeHolderNum,
			 timeout_us, stream);
}
