/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NPU_SIM_ENGINE_SYMBOLS_H
#define NPU_SIM_ENGINE_SYMBOLS_H

/*
 * engine_symbols: what a kernel image may call in the engine, by name: npu/npu_symbols.h with the
 * addresses of this process. Constant, any thread, no errors but "not there".
 */

#include <stdint.h>

/* Address of the symbol; 0 when the device does not provide it. */
uint64_t engine_symbols_find(const char *name);

/* Number of symbols, and the name at an index below it. */
unsigned int engine_symbols_count(void);
const char *engine_symbols_name(unsigned int index);

#endif
