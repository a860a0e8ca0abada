/* SPDX-License-Identifier: Apache-2.0 */
/* Data movers: see engine_data.h. They are written for the compiler's vectoriser and libc's memcpy. */
#include <string.h>
#include "sim/engine_data.h"

/* Addresses are the client's: of any alignment, and copies of nothing may name any. */
typedef uint16_t unaligned16 __attribute__((aligned(1), may_alias));
typedef uint32_t unaligned32 __attribute__((aligned(1), may_alias));

void engine_data_copy(const void *arg)
{
	const struct npu_entry *e = arg;
	uint64_t dst = e->copy.dst, src = e->copy.src, distance = dst > src ? dst - src : src - dst;

	if (!e->copy.bytes)
		return;
	if (distance >= e->copy.bytes)
		memcpy((void *)dst, (const void *)src, e->copy.bytes);
	else
		memmove((void *)dst, (const void *)src, e->copy.bytes);
}

void engine_data_copy2d(const void *arg)
{
	const struct npu_entry *e = arg;

	for (uint64_t y = 0; e->copy2d.width && y < e->copy2d.height; y++) {
		memmove((void *)(e->copy2d.dst + y * e->copy2d.dst_pitch),
			(const void *)(e->copy2d.src + y * e->copy2d.src_pitch), e->copy2d.width);
	}
}

void engine_data_fill(const void *arg)
{
	const struct npu_entry *e = arg;

	if (e->fill.width == 2) {
		unaligned16 *dst = (unaligned16 *)e->fill.dst;

		for (uint64_t i = 0; i < e->fill.bytes / 2; i++)
			dst[i] = e->fill.value;
	} else if (e->fill.width == 4) {
		unaligned32 *dst = (unaligned32 *)e->fill.dst;

		for (uint64_t i = 0; i < e->fill.bytes / 4; i++)
			dst[i] = e->fill.value;
	} else if (e->fill.bytes) {
		memset((void *)e->fill.dst, e->fill.value, e->fill.bytes);
	}
}

bool engine_data_aligned(const struct npu_entry *e)
{
	switch (e->op) {
	case NPU_OP_NOTIFY_RECORD:
	case NPU_OP_NOTIFY_WAIT:
		return !(e->notify.address % 8);
	case NPU_OP_JUMP:
		return e->jump.cond == NPU_COND_ALWAYS || !(e->jump.address % 8);
	default:
		return !(e->value.address % (e->value.width == 4 ? 4 : 8));
	}
}

void engine_data_write(const void *arg)
{
	const struct npu_entry *e = arg;

	if (e->op == NPU_OP_NOTIFY_RECORD) {
		struct npu_event_word *word = (void *)e->notify.address;

		__atomic_store_n(&word->done, e->notify.value, __ATOMIC_SEQ_CST);
	} else if (e->value.width == 4) {
		__atomic_store_n((uint32_t *)e->value.address, e->value.value, __ATOMIC_SEQ_CST);
	} else {
		__atomic_store_n((uint64_t *)e->value.address, e->value.value, __ATOMIC_SEQ_CST);
	}
}

static bool holds(uint32_t cond, uint64_t have, uint64_t want)
{
	switch (cond) {
	case NPU_COND_GEQ:
		return have >= want;
	case NPU_COND_EQ:
		return have == want;
	case NPU_COND_AND:
		return have & want;
	case NPU_COND_NOR:
		return ~(have | want);
	default:
		return true;
	}
}

void engine_data_probe(const void *arg)
{
	struct engine_probe *probe = (void *)((const struct npu_entry *)arg)->raw[0];
	const struct npu_entry *e = probe->entry;

	if (e->op == NPU_OP_NOTIFY_WAIT) {
		struct npu_event_word *word = (void *)e->notify.address;
		uint32_t done = __atomic_load_n(&word->done, __ATOMIC_SEQ_CST);

		probe->met = (int32_t)(done - e->notify.value) >= 0;
		if (probe->met && (e->flags & NPU_ENTRY_RESET))
			__atomic_store_n(&word->done, 0, __ATOMIC_SEQ_CST);
	} else if (e->op == NPU_OP_JUMP) {
		probe->met = e->jump.cond == NPU_COND_ALWAYS ||
			     holds(e->jump.cond,
				   __atomic_load_n((uint64_t *)e->jump.address, __ATOMIC_SEQ_CST),
				   e->jump.value);
	} else {
		uint64_t have = e->value.width == 4 ?
			__atomic_load_n((uint32_t *)e->value.address, __ATOMIC_SEQ_CST) :
			__atomic_load_n((uint64_t *)e->value.address, __ATOMIC_SEQ_CST);

		probe->met = holds(e->value.cond, have, e->value.value);
	}
}

/* Sums of integers wrap, hence in the unsigned type. */
#define REDUCE(type, sum) do {                                                  \
	typedef type any_ __attribute__((aligned(1), may_alias));               \
	any_ *d = (any_ *)e->reduce.dst;                                        \
	const any_ *s = (const any_ *)e->reduce.src;                            \
	switch (e->reduce.kind) {                                               \
	case NPU_REDUCE_SUM:                                                    \
		for (uint64_t i = 0; i < e->reduce.count; i++)                  \
			d[i] = (type)((sum)d[i] + (sum)s[i]);                   \
		break;                                                          \
	case NPU_REDUCE_MIN:                                                    \
		for (uint64_t i = 0; i < e->reduce.count; i++)                  \
			d[i] = s[i] < d[i] ? s[i] : d[i];                       \
		break;                                                          \
	default:                                                                \
		for (uint64_t i = 0; i < e->reduce.count; i++)                  \
			d[i] = s[i] > d[i] ? s[i] : d[i];                       \
	}                                                                       \
} while (0)

bool engine_data_reduce_ok(const struct npu_entry *e)
{
	return e->reduce.kind <= NPU_REDUCE_MAX && e->reduce.type <= NPU_SCALAR_U64 &&
	       e->reduce.type != NPU_SCALAR_F16 && e->reduce.type != NPU_SCALAR_BF16;
}

void engine_data_reduce(const void *arg)
{
	const struct npu_entry *e = arg;

	switch (e->reduce.type) {
	case NPU_SCALAR_F32:
		REDUCE(float, float);
		break;
	case NPU_SCALAR_F64:
		REDUCE(double, double);
		break;
	case NPU_SCALAR_I8:
		REDUCE(int8_t, uint8_t);
		break;
	case NPU_SCALAR_I16:
		REDUCE(int16_t, uint16_t);
		break;
	case NPU_SCALAR_I32:
		REDUCE(int32_t, uint32_t);
		break;
	case NPU_SCALAR_I64:
		REDUCE(int64_t, uint64_t);
		break;
	case NPU_SCALAR_U8:
		REDUCE(uint8_t, uint8_t);
		break;
	case NPU_SCALAR_U16:
		REDUCE(uint16_t, uint16_t);
		break;
	case NPU_SCALAR_U32:
		REDUCE(uint32_t, uint32_t);
		break;
	case NPU_SCALAR_U64:
		REDUCE(uint64_t, uint64_t);
		break;
	}
}
