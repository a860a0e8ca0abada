/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel of `make bench`: it does nothing, so that what is measured is the way to it. */
#include <npu/npu_kernel.h>

NPU_KERNEL(empty, (uint64_t, unused))
{
	(void)unused;
}
