/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels for test_api and test_api_data. */
#include <npu/npu_kernel.h>

/* Runs until the word is not 0. */
NPU_KERNEL(hold, (volatile uint64_t *, gate))
{
	while (!*gate)
		;
}

/* to[i] = from[i] * scale + bias + step.b of block 0's, blocks taking turns. */
struct step {
	uint8_t a;
	uint32_t b;
};

NPU_KERNEL(map, (uint32_t *, to), (const uint32_t *, from), (uint32_t, n), (int16_t, scale),
	   (struct step, step))
{
	for (uint32_t i = npu_block_idx(); i < n; i += npu_block_num())
		to[i] = from[i] * (uint32_t)scale + step.b + step.a;
}

/* Appends a number to a list whose first word counts. */
NPU_KERNEL(note, (uint32_t *, list), (uint32_t, number))
{
	list[++list[0]] = number;
}

NPU_KERNEL(poke, (volatile uint32_t *, address))
{
	*address = 1;
}

NPU_KERNEL(empty)
{
}
