/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Free ranges in a sorted array. With n ranges handed out there are at most n + 1 free ones; room
 * for that many is made at allocation, so that giving back never needs memory.
 */
#include "daemon/core/vaspace.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct vaspace_range {
	uint64_t start, end;
};

int vaspace_init(struct vaspace *space, uint64_t base, uint64_t bytes, uint64_t guard)
{
	memset(space, 0, sizeof(*space));
	space->free = reallocarray(NULL, 8, sizeof(*space->free));
	if (!space->free)
		return -ENOMEM;
	space->size = 8;
	space->free[0] = (struct vaspace_range){ base, base + bytes };
	space->count = 1;
	space->guard = guard;
	space->cursor = base;
	return 0;
}

void vaspace_fini(struct vaspace *space)
{
	free(space->free);
	memset(space, 0, sizeof(*space));
}

/* The first range whose end lies above the address. */
static size_t find(const struct vaspace *space, uint64_t address)
{
	size_t low = 0, high = space->count;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (space->free[mid].end > address)
			high = mid;
		else
			low = mid + 1;
	}
	return low;
}

static int room(struct vaspace *space)
{
	if (space->taken + 2 > space->size) {
		struct vaspace_range *more =
			reallocarray(space->free, space->size * 2, sizeof(*more));

		if (!more)
			return -ENOMEM;
		space->free = more;
		space->size *= 2;
	}
	return 0;
}

static void insert(struct vaspace *space, size_t index, struct vaspace_range range)
{
	memmove(&space->free[index + 1], &space->free[index],
		(space->count - index) * sizeof(range));
	space->free[index] = range;
	space->count++;
}

static void delete (struct vaspace *space, size_t index)
{
	space->count--;
	memmove(&space->free[index], &space->free[index + 1],
		(space->count - index) * sizeof(*space->free));
}

/* Takes [start, end) out of range index, in which it lies. */
static void cut(struct vaspace *space, size_t index, uint64_t start, uint64_t end)
{
	struct vaspace_range *range = &space->free[index];

	if (range->start == start && range->end == end) {
		delete (space, index);
	} else if (range->start == start) {
		range->start = end;
	} else if (range->end == end) {
		range->end = start;
	} else {
		struct vaspace_range rest = { end, range->end };

		range->end = start;
		insert(space, index + 1, rest);
	}
}

int vaspace_alloc(struct vaspace *space, uint64_t bytes, uint64_t align, uint64_t *ret_address)
{
	uint64_t need = bytes + space->guard;
	size_t first = find(space, space->cursor);

	if (!bytes || need < bytes)
		return -ERANGE;
	if (room(space) < 0)
		return -ENOMEM;
	/* from the cursor to the end, then from the beginning; the cursor's own range twice */
	for (size_t i = 0; i <= space->count; i++) {
		size_t index = space->count ? (first + i) % space->count : 0;
		struct vaspace_range range;
		uint64_t start;

		if (!space->count)
			break;
		range = space->free[index];
		start = range.start;
		if (i == 0 && space->cursor > start && space->cursor < range.end)
			start = space->cursor;
		start = (start + align - 1) & ~(align - 1);
		if (start < range.start || start > range.end || range.end - start < need)
			continue;
		cut(space, index, start, start + need);
		space->cursor = start + need;
		space->taken++;
		*ret_address = start;
		return 0;
	}
	return -ERANGE;
}

int vaspace_free(struct vaspace *space, uint64_t address, uint64_t bytes)
{
	uint64_t end = address + bytes + space->guard;
	size_t index = find(space, address);
	bool left, right;

	if (!space->taken || end <= address ||
	    (index < space->count && space->free[index].start < end))
		return -EINVAL;
	left = index > 0 && space->free[index - 1].end == address;
	right = index < space->count && space->free[index].start == end;
	if (left && right) {
		space->free[index - 1].end = space->free[index].end;
		delete (space, index);
	} else if (left) {
		space->free[index - 1].end = end;
	} else if (right) {
		space->free[index].start = address;
	} else {
		insert(space, index, (struct vaspace_range){ address, end });
	}
	space->taken--;
	return 0;
}

uint64_t vaspace_left(const struct vaspace *space)
{
	uint64_t left = 0;

	for (size_t i = 0; i < space->count; i++)
		left += space->free[i].end - space->free[i].start;
	return left;
}
