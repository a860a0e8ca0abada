/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slots live in one array that doubles. Free slots form a singly linked queue (FIFO): the slot that
 * was free longest is reused first, which is what makes generations last.
 */
#include "daemon/util/idtab.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SLOT_BITS      20
#define SLOT_MASK      (IDTAB_MAX - 1)
#define GENERATION_MAX 4095u
#define NONE	       UINT32_MAX

struct idtab_slot {
	void *object;
	uint32_t generation; /* 1..GENERATION_MAX */
	uint32_t next_free;
};

void idtab_init(struct idtab *table, uint32_t limit)
{
	memset(table, 0, sizeof(*table));
	table->limit = limit && limit < IDTAB_MAX ? limit : IDTAB_MAX;
	table->free_head = NONE;
	table->free_tail = NONE;
}

void idtab_fini(struct idtab *table)
{
	free(table->slots);
	idtab_init(table, table->limit);
}

static void push_free(struct idtab *table, uint32_t index)
{
	table->slots[index].next_free = NONE;
	if (table->free_tail == NONE)
		table->free_head = index;
	else
		table->slots[table->free_tail].next_free = index;
	table->free_tail = index;
}

static int grow(struct idtab *table)
{
	uint32_t size = table->size ? table->size * 2 : 16;
	struct idtab_slot *slots;

	if (table->size >= IDTAB_MAX)
		return -ENOSPC;
	slots = reallocarray(table->slots, size, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	table->slots = slots;
	for (uint32_t i = table->size; i < size; i++) {
		slots[i].object = NULL;
		slots[i].generation = 1;
		push_free(table, i);
	}
	table->size = size;
	return 0;
}

int idtab_add(struct idtab *table, void *object, uint32_t *ret_id)
{
	struct idtab_slot *slot;
	uint32_t index;
	int r;

	if (table->used >= table->limit)
		return -ENOSPC;
	if (table->free_head == NONE) {
		r = grow(table);
		if (r < 0)
			return r;
	}
	index = table->free_head;
	slot = &table->slots[index];
	table->free_head = slot->next_free;
	if (table->free_head == NONE)
		table->free_tail = NONE;
	slot->object = object;
	table->used++;
	*ret_id = slot->generation << SLOT_BITS | index;
	return 0;
}

static struct idtab_slot *find(const struct idtab *table, uint32_t id)
{
	uint32_t index = id & SLOT_MASK;
	struct idtab_slot *slot;

	if (index >= table->size)
		return NULL;
	slot = &table->slots[index];
	return slot->object && slot->generation == id >> SLOT_BITS ? slot : NULL;
}

void *idtab_get(const struct idtab *table, uint32_t id)
{
	struct idtab_slot *slot = find(table, id);

	return slot ? slot->object : NULL;
}

void *idtab_remove(struct idtab *table, uint32_t id)
{
	struct idtab_slot *slot = find(table, id);
	void *object;

	if (!slot)
		return NULL;
	object = slot->object;
	slot->object = NULL;
	slot->generation = slot->generation < GENERATION_MAX ? slot->generation + 1 : 1;
	push_free(table, id & SLOT_MASK);
	table->used--;
	return object;
}

void *idtab_next(const struct idtab *table, uint32_t *pos, uint32_t *ret_id)
{
	while (*pos < table->size) {
		struct idtab_slot *slot = &table->slots[*pos];
		uint32_t index = (*pos)++;

		if (slot->object) {
			*ret_id = slot->generation << SLOT_BITS | index;
			return slot->object;
		}
	}
	return NULL;
}
