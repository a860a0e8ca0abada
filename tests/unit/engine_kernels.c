/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels for check_engine: each does one thing that a test looks for. */
#include <npu/npu_kernel.h>

NPU_KERNEL(nothing, (uint64_t, unused))
{
	(void)unused;
}

/* Each block adds its index + 1 to a word of its own. */
NPU_KERNEL(mark, (uint32_t *, words))
{
	words[npu_block_idx()] += npu_block_idx() + 1;
}

NPU_KERNEL(poke, (volatile uint64_t *, address), (uint64_t, value))
{
	*address = value;
}

NPU_KERNEL(divide, (volatile int *, by))
{
	*by = 7 / *by;
}

NPU_KERNEL(spin, (volatile uint64_t *, until))
{
	while (!*until)
		;
}

NPU_KERNEL(fail_block, (uint32_t, bad))
{
	if (npu_block_idx() == bad)
		*(volatile int *)(uintptr_t)0x10 = 1;
}

NPU_KERNEL(add, (uint64_t *, counter), (uint64_t, value))
{
	*counter += value;
}
