/* SPDX-License-Identifier: Apache-2.0 */
/*
 * drv_caps - numbers of the device interface that the control protocol carries
 *
 * The client may not include kdrv/uapi/npu.h; tests/unit/check_drv_caps.c holds these against it.
 */
#ifndef NPU_CLIENT_DRV_CAPS_H
#define NPU_CLIENT_DRV_CAPS_H

#define DRV_CAP_HOST_VISIBLE (1ull << 0) /* device memory comes with an fd to map */
#define DRV_CAP_HOST_MAPPED  (1ull << 1)
#define DRV_CAP_PEER	     (1ull << 2)

#define DRV_MEM_DEVICE	   1u
#define DRV_MEM_HOST	   2u
#define DRV_MEM_IMAGE	   3u
#define DRV_MEM_HUGE_FIRST 0x1u
#define DRV_MEM_HUGE_ONLY  0x2u
#define DRV_MEM_POPULATE   0x8u

#define DRV_CTX_CLEAR_ERROR 0x8u

#define DRV_QUEUE_ABORT		3u
#define DRV_QUEUE_SET_FAIL_MODE 4u
#define DRV_QUEUE_SET_PRIORITY	5u
#define DRV_FAIL_CONTINUE	0u
#define DRV_FAIL_STOP		1u

#define DRV_HEALTH_OK	    0u
#define DRV_HEALTH_DEGRADED 1u
#define DRV_HEALTH_LOST	    2u
#define DRV_KIND_SIM	    2u

#endif
