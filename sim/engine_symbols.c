/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table is built from the public list, so that npu-cc, the header's readers and the loader
 * cannot disagree. Kernels call the host's functions directly, on the core's stack.
 */
#include "sim/engine_symbols.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "sim/engine_block.h"

typedef void (*symbol_fn)(void);

struct symbol {
	const char *name;
	symbol_fn fn;
};

/* The kernel's abort(): a fault of the kernel, not the end of the engine. */
static void own_abort(void)
{
	__builtin_trap();
}

#define own_npu_block_idx npu_block_idx
#define own_npu_block_num npu_block_num

#define NPU_SYMBOL(name)     { #name, (symbol_fn)name },
#define NPU_SYMBOL_OWN(name) { #name, (symbol_fn)own_##name },
static const struct symbol symbols[] = {
#include "client/include/npu/npu_symbols.h"
};

#define N_SYMBOLS ((unsigned int)(sizeof(symbols) / sizeof(symbols[0])))

uint64_t engine_symbols_find(const char *name)
{
	for (unsigned int i = 0; i < N_SYMBOLS; i++) {
		if (strcmp(symbols[i].name, name) == 0)
			return (uint64_t)(uintptr_t)symbols[i].fn;
	}
	return 0;
}

unsigned int engine_symbols_count(void)
{
	return N_SYMBOLS;
}

const char *engine_symbols_name(unsigned int index)
{
	return symbols[index].name;
}
