/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NPU_SIM_ENGINE_BLOCK_H
#define NPU_SIM_ENGINE_BLOCK_H

/*
 * engine_block: which block of a launch the calling core thread runs. Kernel code asks by
 * npu_block_idx() and npu_block_num(), which the loader offers under these names; the engine sets
 * both before each block. Thread-local, no locks, no errors.
 */

#include <stdint.h>

void engine_block_set(uint32_t idx, uint32_t num);

uint32_t npu_block_idx(void);
uint32_t npu_block_num(void);

#endif
