/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies and fills that are complete on return. They use no stream: the CPU copies through the
 * aliases of device memory; what it cannot reach the device copies on a queue of the library's own.
 */
#include <string.h>

#include "client/drv/block.h"
#include "client/rt/internal.h"

/* Both ranges, or none. */
static int ranges_get(void *dst, size_t dst_bytes, const void *src, size_t src_bytes,
		      struct rt_range *ret_dst, struct rt_range *ret_src)
{
	int r;

	RT_ALIVE();
	r = rt_range_get(dst, dst_bytes, ret_dst);
	if (r)
		return r;
	r = rt_range_get(src, src_bytes, ret_src);
	if (r)
		rt_range_put(ret_dst);
	return r;
}

static int range_lost(const struct rt_range *range)
{
	if (range->block && drv_space_lost(range->block->space))
		return rt_error_lost(range->block->space, range->block->space->device);
	return 0;
}

static int ranges_lost(const struct rt_range *a, const struct rt_range *b)
{
	int r = range_lost(a);

	return r ? r : range_lost(b);
}

int rt_memcpy(void *dst, const void *src, size_t count)
{
	struct rt_range to, from;
	unsigned char *to_cpu, *from_cpu;
	int r = ranges_get(dst, count, src, count, &to, &from);

	if (r)
		return r;
	r = ranges_lost(&to, &from);
	if (!r && dst != src) {
		to_cpu = rt_range_cpu(&to);
		from_cpu = rt_range_cpu(&from);
		if (to_cpu && from_cpu)
			memmove(to_cpu, from_cpu, count);
		else
			r = rt_dma_copy(&to, &from, count);
	}
	rt_range_put(&to);
	rt_range_put(&from);
	return r;
}

int rt_memcpy2d(void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width,
		size_t height)
{
	struct rt_range to, from;
	unsigned char *to_cpu, *from_cpu;
	size_t dst_bytes, src_bytes;
	int r;

	if (__builtin_mul_overflow(dst_pitch, height - 1, &dst_bytes) ||
	    __builtin_add_overflow(dst_bytes, width, &dst_bytes) ||
	    __builtin_mul_overflow(src_pitch, height - 1, &src_bytes) ||
	    __builtin_add_overflow(src_bytes, width, &src_bytes))
		return rt_error(ACL_ERROR_RT_PARAM_INVALID, "EE1001",
				"%zu rows of pitch %zu and %zu are "
				"more than an address space",
				height, dst_pitch, src_pitch);
	r = ranges_get(dst, dst_bytes, src, src_bytes, &to, &from);
	if (r)
		return r;
	r = ranges_lost(&to, &from);
	if (!r) {
		to_cpu = rt_range_cpu(&to);
		from_cpu = rt_range_cpu(&from);
		if (!to_cpu || !from_cpu)
			r = rt_dma_copy2d(&to, dst_pitch, &from, src_pitch, width, height);
		else
			for (size_t y = 0; y < height; y++)
				memmove(to_cpu + y * dst_pitch, from_cpu + y * src_pitch, width);
	}
	rt_range_put(&to);
	rt_range_put(&from);
	return r;
}

int rt_memset(void *address, int32_t value, size_t count)
{
	struct rt_range to;
	unsigned char *cpu;
	int r;

	RT_ALIVE();
	r = rt_range_get(address, count, &to);
	if (r)
		return r;
	r = range_lost(&to);
	if (!r) {
		cpu = rt_range_cpu(&to);
		if (cpu)
			memset(cpu, value, count);
		else
			r = rt_dma_fill(&to, (uint8_t)value, count);
	}
	rt_range_put(&to);
	return r;
}
