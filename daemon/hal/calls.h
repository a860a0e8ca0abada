/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NPU_HAL_CALLS_H
#define NPU_HAL_CALLS_H

#include <stddef.h>

#include "daemon/hal/hal.h"

/* One row a call of npu.h: what transports must know of its struct. Constant; any thread. */
struct hal_call {
	const char *name;
	size_t size;
	unsigned long request; /* ioctl number */
	unsigned int fds;      /* number of fd slots */
	size_t fd_offset;      /* of the first; they are neighbours */
};

/* The row of a call, or NULL for a number that is none. */
const struct hal_call *hal_call_find(unsigned int nr);

/* The first fd slot in a call's struct (call->fds of them), or NULL. */
__s32 *hal_call_fds(const struct hal_call *call, void *arg);

#endif
