/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * A handle table is an array of slots that doubles up to its limit. The slot freed first is used
 * again first. Its generation moves on when its object goes, so an id that was given out once finds
 * nothing until generations have wrapped.
 */
#include "kdrv/core/npu_core_int.h"

#define NPU_TABLE_FIRST 16u

static uint32_t npu_table_gen(const struct npu_table *table, uint32_t gen)
{
	return table->gen_bits == 32 ? gen : gen & ((1u << table->gen_bits) - 1);
}

void npu_table_init(struct npu_table *table, uint32_t max, uint32_t gen_bits, uint32_t gen_seed)
{
	memset(table, 0, sizeof(*table));
	table->max = max;
	table->gen_bits = gen_bits;
	table->gen_seed = gen_seed;
}

void npu_table_fini(struct npu_core *core, struct npu_table *table)
{
	npu_free(core, table->slots, table->capacity * sizeof(*table->slots));
	memset(table, 0, sizeof(*table));
}

static void npu_table_push(struct npu_table *table, uint32_t slot)
{
	if (!table->free) {
		table->slots[slot].next_free = 0;
		table->free = slot + 1;
		table->free_last = slot + 1;
	} else {
		table->slots[slot].next_free = 0;
		table->slots[table->free_last - 1].next_free = slot + 1;
		table->free_last = slot + 1;
	}
}

int npu_table_grow(struct npu_core *core, struct npu_table *table)
{
	uint32_t capacity = table->capacity ? table->capacity * 2 : NPU_TABLE_FIRST, i;
	struct npu_table_slot *slots;

	if (capacity > table->max)
		capacity = table->max;
	if (capacity == table->capacity)
		return -ENOSPC;
	slots = npu_alloc_array(core, capacity, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	if (table->capacity)
		memcpy(slots, table->slots, table->capacity * sizeof(*slots));
	npu_free(core, table->slots, table->capacity * sizeof(*slots));
	table->slots = slots;
	for (i = table->capacity; i < capacity; i++)
		slots[i].gen = npu_table_gen(table, table->gen_seed);
	i = table->capacity;
	table->capacity = capacity;
	for (; i < capacity; i++)
		npu_table_push(table, i);
	return 0;
}

int npu_table_insert(struct npu_core *core, struct npu_table *table, void *object,
		     uint64_t *ret_id)
{
	struct npu_table_slot *slot;
	uint32_t i;
	int r;

	if (!table->free) {
		r = npu_table_grow(core, table);
		if (r < 0)
			return r;
	}
	i = table->free - 1;
	slot = &table->slots[i];
	table->free = slot->next_free;
	slot->object = object;
	table->count++;
	*ret_id = ((uint64_t)i + 1) << table->gen_bits | slot->gen;
	return 0;
}

uint32_t npu_table_slot_of(const struct npu_table *table, uint64_t id)
{
	return (uint32_t)(id >> table->gen_bits) - 1;
}

static struct npu_table_slot *npu_table_slot(const struct npu_table *table, uint64_t id)
{
	uint64_t high = id >> table->gen_bits;
	struct npu_table_slot *slot;

	if (!high || high > table->capacity)
		return NULL;
	slot = &table->slots[high - 1];
	if (!slot->object || slot->gen != npu_table_gen(table, (uint32_t)id))
		return NULL;
	return slot;
}

void npu_table_remove(struct npu_table *table, uint64_t id)
{
	struct npu_table_slot *slot = npu_table_slot(table, id);

	if (!slot)
		return;
	slot->object = NULL;
	slot->gen = npu_table_gen(table, slot->gen + 1);
	table->count--;
	npu_table_push(table, npu_table_slot_of(table, id));
}

void *npu_table_find(const struct npu_table *table, uint64_t id)
{
	struct npu_table_slot *slot = npu_table_slot(table, id);

	return slot ? slot->object : NULL;
}

void *npu_table_next(const struct npu_table *table, uint32_t *slot)
{
	uint32_t i;

	for (i = *slot; i < table->capacity; i++) {
		if (table->slots[i].object) {
			*slot = i;
			return table->slots[i].object;
		}
	}
	return NULL;
}
