/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels that go wrong, each in one way, and one that does not. What is wrong comes in through
 * the arguments, so a compiler can neither see it nor leave it out.
 */
#include <npu/npu_kernel.h>

NPU_KERNEL(crash_write, (volatile uint32_t *, to))
{
	*to = npu_block_idx();
}

NPU_KERNEL(crash_divide, (int32_t, by))
{
	volatile int32_t number = 1000 + (int32_t)npu_block_idx();

	number = number / by;
}

NPU_KERNEL(crash_illegal, (uint32_t, go))
{
	if (!go)
		return;
#ifdef __aarch64__
	__asm__ volatile("udf #0");
#else
	__builtin_trap();
#endif
}

__attribute__((noinline)) static uint32_t descend(uint32_t depth)
{
	volatile uint8_t frame[256];

	frame[depth % sizeof(frame)] = (uint8_t)depth;
	return depth ? descend(depth - 1) + frame[depth % sizeof(frame)] : 0;
}

NPU_KERNEL(crash_stack, (uint32_t, depth))
{
	volatile uint32_t sum = descend(depth);

	(void)sum;
}

NPU_KERNEL(crash_loop, (uint32_t, go))
{
	volatile uint32_t on = go;

	while (on)
		;
}

/* What a healthy kernel does: each block writes its own word. */
NPU_KERNEL(crash_none, (uint32_t *, words), (uint32_t, value))
{
	words[npu_block_idx()] = value + npu_block_idx();
}
