/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two words in the static TLS block: one load from the thread pointer each, and no call of the
 * dynamic linker, which the sandbox could not bear.
 */

#include "sim/engine_block.h"

static __thread uint32_t block_idx __attribute__((tls_model("initial-exec")));
static __thread uint32_t block_num __attribute__((tls_model("initial-exec")));

void engine_block_set(uint32_t idx, uint32_t num)
{
	block_idx = idx;
	block_num = num;
}

uint32_t npu_block_idx(void)
{
	return block_idx;
}

uint32_t npu_block_num(void)
{
	return block_num;
}
