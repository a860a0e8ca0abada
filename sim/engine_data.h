/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NPU_SIM_ENGINE_DATA_H
#define NPU_SIM_ENGINE_DATA_H

/*
 * engine_data: the data movers of an engine, one for each operation that touches memory. Each takes
 * a struct npu_entry and runs inside engine_core_run(), so an address that is not mapped ends it
 * there; none has state or takes a lock. Overlapping copies behave like memmove().
 */

#include <stdbool.h>
#include <stdint.h>
#include "kdrv/uapi/npu.h"

void engine_data_copy(const void *entry);
void engine_data_copy2d(const void *entry);
void engine_data_fill(const void *entry);
void engine_data_write(const void *entry); /* VALUE_WRITE, NOTIFY_RECORD */

/* Whether the word that VALUE_*, NOTIFY_* or JUMP names is aligned, as atomic access needs it. */
bool engine_data_aligned(const struct npu_entry *entry);

/* REDUCE: dst[i] = kind(dst[i], src[i]); the types that this device reduces are in reduce_ok(). */
bool engine_data_reduce_ok(const struct npu_entry *entry);
void engine_data_reduce(const void *entry);

/* VALUE_WAIT, NOTIFY_WAIT, JUMP: raw[0] of the entry points to a probe, which gets the answer. */
struct engine_probe {
	const struct npu_entry *entry;
	bool met;
};
void engine_data_probe(const void *entry);

static inline void engine_pause(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

#endif
