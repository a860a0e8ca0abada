/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Devices: which there are, which is current, what they can do.
 */
#include "client/acl/acl_internal.h"

aclError aclrtGetDeviceCount(uint32_t *count)
{
	ACL_NOT_NULL(count);
	return rt_device_count(count);
}

aclError aclrtSetDevice(int32_t deviceId)
{
	return rt_device_set(deviceId);
}

aclError aclrtResetDevice(int32_t deviceId)
{
	return rt_device_reset(deviceId);
}

aclError aclrtResetDeviceForce(int32_t deviceId)
{
	return rt_device_reset_force(deviceId);
}

aclError aclrtGetDevice(int32_t *deviceId)
{
	ACL_NOT_NULL(deviceId);
	return rt_device_current(deviceId);
}

aclError aclrtGetRunMode(aclrtRunMode *runMode)
{
	int code;

	ACL_NOT_NULL(runMode);
	code = acl_process_check();
	if (code == 0)
		*runMode = ACL_HOST;
	return code;
}

aclError aclrtSynchronizeDevice(void)
{
	return rt_device_sync(-1);
}

aclError aclrtSynchronizeDeviceWithTimeout(int32_t timeout)
{
	ACL_ALLOW_TIMEOUT(timeout);
	return rt_device_sync(timeout);
}

/* Attributes that a device without such units answers with 0. */
static bool attribute_known(aclrtDevAttr attr)
{
	switch (attr) {
	case ACL_DEV_ATTR_AICPU_CORE_NUM:
	case ACL_DEV_ATTR_AICORE_CORE_NUM:
	case ACL_DEV_ATTR_CUBE_CORE_NUM:
	case ACL_DEV_ATTR_VECTOR_CORE_NUM:
	case ACL_DEV_ATTR_WARP_SIZE:
	case ACL_DEV_ATTR_MAX_THREAD_PER_VECTOR_CORE:
	case ACL_DEV_ATTR_UBUF_PER_VECTOR_CORE:
	case ACL_DEV_ATTR_MAX_GRID_DIM_X:
	case ACL_DEV_ATTR_MAX_GRID_DIM_Y:
	case ACL_DEV_ATTR_MAX_GRID_DIM_Z:
	case ACL_DEV_ATTR_MAX_BLOCK_PER_GRID:
	case ACL_DEV_ATTR_MAX_THREADS_PER_BLOCK:
	case ACL_DEV_ATTR_MAX_BLOCK_DIM_X:
	case ACL_DEV_ATTR_MAX_BLOCK_DIM_Y:
	case ACL_DEV_ATTR_MAX_BLOCK_DIM_Z:
	case ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE:
	case ACL_DEV_ATTR_L2_CACHE_SIZE:
	case ACL_DEV_ATTR_SMP_ID:
	case ACL_DEV_ATTR_PHY_CHIP_ID:
	case ACL_DEV_ATTR_SUPER_POD_DEVICE_ID:
	case ACL_DEV_ATTR_SUPER_POD_SERVER_ID:
	case ACL_DEV_ATTR_SUPER_POD_ID:
	case ACL_DEV_ATTR_CUST_OP_PRIVILEGE:
	case ACL_DEV_ATTR_MAINBOARD_ID:
	case ACL_DEV_ATTR_HD_CONNECT_TYPE:
	case ACL_DEV_ATTR_DEVICE_FORM_FACTOR:
	case ACL_DEV_ATTR_IS_VIRTUAL:
	case ACL_DEV_ATTR_NPU_ARCH:
		return true;
	}
	return false;
}

/* Every core of this device does scalar, vector and matrix work, so the three counts agree. */
static int64_t attribute_value(const struct rt_device_info *info, aclrtDevAttr attr)
{
	switch ((int)attr) {
	case ACL_DEV_ATTR_AICORE_CORE_NUM:
	case ACL_DEV_ATTR_CUBE_CORE_NUM:
	case ACL_DEV_ATTR_VECTOR_CORE_NUM:
		return info->cores;
	case ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE:
		return (int64_t)info->memory_total;
	case ACL_DEV_ATTR_HD_CONNECT_TYPE:
		return ACL_HOST_DEVICE_CONNECT_TYPE_PCIE;
	case ACL_DEV_ATTR_DEVICE_FORM_FACTOR:
		return ACL_DEVICE_FORM_FACTOR_PCIE_CARD;
	case ACL_DEV_ATTR_IS_VIRTUAL:
		return info->virtual_device;
	default:
		return 0;
	}
}

aclError aclrtGetDeviceInfo(uint32_t deviceId, aclrtDevAttr attr, int64_t *value)
{
	struct rt_device_info info;
	int code;

	ACL_NOT_NULL(value);
	ACL_ALLOW(attr, attribute_known(attr), "a value of aclrtDevAttr");
	/* what does not fit becomes negative, which is no device either */
	code = rt_device_info((int32_t)deviceId, &info);
	if (code == 0)
		*value = attribute_value(&info, attr);
	return code;
}

aclError aclrtGetDeviceCapability(int32_t deviceId, aclrtDevFeatureType devFeatureType,
				  int32_t *value)
{
	struct rt_device_info info;
	int code;

	ACL_NOT_NULL(value);
	ACL_ALLOW(devFeatureType,
		  devFeatureType == ACL_FEATURE_TSCPU_TASK_UPDATE_SUPPORT_AIC_AIV ||
			  devFeatureType == ACL_FEATURE_SYSTEM_MEMQ_EVENT_CROSS_DEV,
		  "a value of aclrtDevFeatureType");
	/* the device has neither of them; the call tells whether there is such a device */
	code = rt_device_info(deviceId, &info);
	if (code == 0)
		*value = ACL_DEV_FEATURE_NOT_SUPPORT;
	return code;
}

aclError aclrtGetDeviceUtilizationRate(int32_t deviceId, aclrtUtilizationInfo *utilizationInfo)
{
	struct rt_device_info info;
	int32_t percent;
	int code;

	ACL_NOT_NULL(utilizationInfo);
	if (utilizationInfo->utilizationExtend)
		return acl_bad(ACL_ERROR_INVALID_PARAM, __func__,
			       "utilizationInfo->utilizationExtend is %p, allowed: NULL",
			       (void *)utilizationInfo->utilizationExtend);
	code = rt_device_info(deviceId, &info);
	if (code)
		return code;
	percent = (int32_t)((info.util_permille + 5) / 10);
	utilizationInfo->cubeUtilization = percent;
	utilizationInfo->vectorUtilization = percent;
	utilizationInfo->aicpuUtilization = -1;
	utilizationInfo->memoryUtilization = -1;
	return 0;
}

aclError aclrtQueryDeviceStatus(int32_t deviceId, aclrtDeviceStatus *deviceStatus)
{
	struct rt_device_info info;
	int code;

	ACL_NOT_NULL(deviceStatus);
	code = rt_device_info(deviceId, &info);
	if (code == 0)
		*deviceStatus =
			info.healthy ? ACL_RT_DEVICE_STATUS_NORMAL : ACL_RT_DEVICE_STATUS_ABNORMAL;
	return code;
}

aclError aclrtDeviceCanAccessPeer(int32_t *canAccessPeer, int32_t deviceId, int32_t peerDeviceId)
{
	bool can;
	int code;

	ACL_NOT_NULL(canAccessPeer);
	ACL_ALLOW(peerDeviceId, peerDeviceId != deviceId, "another device than deviceId");
	code = rt_device_can_peer(deviceId, peerDeviceId, &can);
	if (code == 0)
		*canAccessPeer = can;
	return code;
}

aclError aclrtDeviceEnablePeerAccess(int32_t peerDeviceId, uint32_t flags)
{
	if (flags)
		return acl_bad(ACL_ERROR_FEATURE_UNSUPPORTED, __func__, "flags is 0x%x, allowed: 0",
			       flags);
	return rt_device_enable_peer(peerDeviceId);
}

aclError aclrtDeviceDisablePeerAccess(int32_t peerDeviceId)
{
	return rt_device_disable_peer(peerDeviceId);
}

const char *aclrtGetSocName(void)
{
	return rt_device_soc_name();
}

aclError aclrtGetVersion(int32_t *majorVersion, int32_t *minorVersion, int32_t *patchVersion)
{
	ACL_NOT_NULL(majorVersion);
	ACL_NOT_NULL(minorVersion);
	ACL_NOT_NULL(patchVersion);
	*majorVersion = ACL_MAJOR_VERSION;
	*minorVersion = ACL_MINOR_VERSION;
	*patchVersion = ACL_PATCH_VERSION;
	return 0;
}
