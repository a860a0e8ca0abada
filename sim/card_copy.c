/* SPDX-License-Identifier: Apache-2.0 */
/*
 * COPY, COPY2D and FILL with a host address, carried out piece by piece: a piece ends where memory
 * is not contiguous on one of its sides, or where the budget of this turn ends. All three are
 * rows; a row that overlaps its source from above is copied from its end.
 */
#include "sim/card.h"

#include <string.h>

#define ROW_COST 64u /* bytes that a row costs at least */

static bool is_host(struct card_space *space, uint64_t address)
{
	struct card_map *map = card_map_find(space, address);

	return map && map->mem->mem.kind != NPU_MEM_DEVICE;
}

bool card_copy_wanted(struct card_space *space, const struct npu_entry *entry,
		      struct card_copy *ret_copy)
{
	struct card_copy copy = { .active = true, .rows = 1 };

	switch (entry->op) {
	case NPU_OP_COPY:
		copy.dst = entry->copy.dst;
		copy.src = entry->copy.src;
		copy.width = entry->copy.bytes;
		break;
	case NPU_OP_COPY2D:
		copy.dst = entry->copy2d.dst;
		copy.src = entry->copy2d.src;
		copy.dst_pitch = entry->copy2d.dst_pitch;
		copy.src_pitch = entry->copy2d.src_pitch;
		copy.width = entry->copy2d.width;
		copy.rows = entry->copy2d.height;
		break;
	case NPU_OP_FILL:
		copy.dst = entry->fill.dst;
		copy.fill = true;
		copy.value = entry->fill.value;
		copy.value_width = entry->fill.width == 2 || entry->fill.width == 4 ?
			entry->fill.width : 1;
		copy.width = entry->fill.bytes / copy.value_width * copy.value_width;
		break;
	default:
		return false;
	}
	if (!is_host(space, copy.dst) && (copy.fill || !is_host(space, copy.src)))
		return false;
	if (!copy.width)
		copy.rows = 0;
	*ret_copy = copy;
	return true;
}

/* Bytes from `at` on; x: how many of the row lie before them, so that values stay whole. */
static void piece_fill(const struct card_copy *copy, char *at, uint64_t bytes, uint64_t x)
{
	if (copy->value_width == 1) {
		memset(at, (int)copy->value, bytes);
		return;
	}
	for (uint64_t i = 0; i < bytes; i++)
		at[i] = ((const char *)&copy->value)[(x + i) % copy->value_width];
}

static int copy_failed(struct card_space *space, uint64_t address, uint64_t bus, bool write,
		       uint64_t *ret_address)
{
	if (bus != UINT64_MAX)
		card_regs_error(space->card, NPU_HW_CAUSE_DMA, bus, write);
	*ret_address = address;
	return -EFAULT;
}

/* One piece of the row, forwards. *ret_bytes: how much it was. */
static int piece_forward(struct card_space *space, struct card_copy *copy, uint64_t want,
			 uint64_t *ret_bytes, uint64_t *ret_address)
{
	uint64_t dst = copy->dst + copy->x, src = copy->src + copy->x, n = want, bus;
	char *to = card_dma_device(space, dst, n, true, &n, &bus), *from;

	if (dst < copy->dst || !to)
		return copy_failed(space, dst, bus, true, ret_address);
	if (copy->fill) {
		piece_fill(copy, to, n, copy->x);
	} else {
		from = card_dma_device(space, src, n, false, &n, &bus);
		if (src < copy->src || !from)
			return copy_failed(space, src, bus, false, ret_address);
		memmove(to, from, n);
	}
	*ret_bytes = n;
	return 0;
}

/* The piece before what is done of the row, which is copied from its end. */
static int piece_backward(struct card_space *space, struct card_copy *copy, uint64_t want,
			  uint64_t *ret_bytes, uint64_t *ret_address)
{
	uint64_t end = copy->width - copy->x, page = 4096, step, bus, n, m;
	char *to, *from;

	/* Never across a page on either side: within one, memory is contiguous. */
	step = (copy->dst + end - 1) % page + 1;
	if ((copy->src + end - 1) % page + 1 < step)
		step = (copy->src + end - 1) % page + 1;
	if (step > want)
		step = want;
	to = card_dma_device(space, copy->dst + end - step, step, true, &n, &bus);
	if (!to || n < step)
		return copy_failed(space, copy->dst + end - step, bus, true, ret_address);
	from = card_dma_device(space, copy->src + end - step, step, false, &m, &bus);
	if (!from || m < step)
		return copy_failed(space, copy->src + end - step, bus, false, ret_address);
	memmove(to, from, step);
	*ret_bytes = step;
	return 0;
}

int card_copy_run(struct card_space *space, struct card_copy *copy, uint64_t *budget,
		  uint64_t *ret_address)
{
	while (copy->rows) {
		bool backward = !copy->fill && copy->dst > copy->src &&
				copy->dst - copy->src < copy->width;
		uint64_t want = copy->width - copy->x, n, cost;
		int r;

		if (!*budget)
			return 1;
		if (want > *budget)
			want = *budget;
		if (backward)
			r = piece_backward(space, copy, want, &n, ret_address);
		else
			r = piece_forward(space, copy, want, &n, ret_address);
		if (r < 0)
			return r;
		copy->x += n;
		if (copy->x == copy->width) {
			copy->x = 0;
			copy->rows--;
			copy->dst += copy->dst_pitch;
			copy->src += copy->src_pitch;
		}
		cost = n > ROW_COST ? n : ROW_COST;
		*budget -= cost < *budget ? cost : *budget;
	}
	copy->active = false;
	return 0;
}
