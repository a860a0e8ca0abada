/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handle bits, low to high: 4 zero, 20 slot, 20 generation, 4 type; the value stays in 48 bits. The
 * generation of a slot is odd while its object is live and rises at birth and death, so a handle
 * fits again only after half a million reuses of its slot.
 */
#include "client/drv/handle.h"

#include <stdlib.h>

#define SLOT_SHIFT 4
#define SLOT_BITS  20
#define GEN_SHIFT  (SLOT_SHIFT + SLOT_BITS)
#define GEN_BITS   20
#define TYPE_SHIFT (GEN_SHIFT + GEN_BITS)
#define GEN_MASK   ((1u << GEN_BITS) - 1)
#define SLOT_MASK  ((1u << SLOT_BITS) - 1)

_Static_assert(DRV_HANDLE_PAGE *DRV_HANDLE_PAGES <= 1u << SLOT_BITS, "slots fit their bits");

static struct drv_object *table_slot(const struct drv_handles *table, uint32_t slot)
{
	char *page;

	if (slot >= table->max)
		return NULL;
	page = atomic_load_explicit(&table->pages[slot / DRV_HANDLE_PAGE], memory_order_acquire);
	if (!page)
		return NULL;
	return (struct drv_object *)(page + (slot % DRV_HANDLE_PAGE) * table->size);
}

static uint32_t handle_generation(const void *handle)
{
	return ((uintptr_t)handle >> GEN_SHIFT) & GEN_MASK;
}

void *drv_handle_new(struct drv_handles *table)
{
	struct drv_object *object = NULL;
	uint32_t slot;

	pthread_mutex_lock(&table->lock);
	if (table->free_head) {
		object = table_slot(table, table->free_head - 1);
		table->free_head = object->next_free;
	} else if (table->used < table->max) {
		slot = table->used;
		if (!atomic_load(&table->pages[slot / DRV_HANDLE_PAGE])) {
			size_t bytes = (DRV_HANDLE_PAGE * table->size + 63) & ~(size_t)63;
			char *page = aligned_alloc(64, bytes);

			if (page) {
				__builtin_memset(page, 0, bytes);
				atomic_store(&table->pages[slot / DRV_HANDLE_PAGE], page);
			}
		}
		object = table_slot(table, slot);
		if (object) {
			object->slot = slot;
			table->used++;
		}
	}
	if (object)
		table->live++;
	pthread_mutex_unlock(&table->lock);
	return object;
}

void *drv_handle_of(const struct drv_handles *table, const void *object)
{
	const struct drv_object *o = object;
	uintptr_t generation =
		atomic_load_explicit(&o->generation, memory_order_relaxed) & GEN_MASK;

	return (void *)((uintptr_t)table->type << TYPE_SHIFT | generation << GEN_SHIFT |
			(uintptr_t)o->slot << SLOT_SHIFT);
}

void *drv_handle_publish(struct drv_handles *table, void *object)
{
	struct drv_object *o = object;

	atomic_fetch_add_explicit(&o->generation, 1, memory_order_release);
	return drv_handle_of(table, object);
}

bool drv_handle_live(const void *object, const void *handle)
{
	uint32_t generation = atomic_load_explicit(&((const struct drv_object *)object)->generation,
						   memory_order_acquire);

	return (generation & 1) && (generation & GEN_MASK) == handle_generation(handle);
}

void *drv_handle_get(struct drv_handles *table, const void *handle)
{
	uintptr_t value = (uintptr_t)handle;
	struct drv_object *object;

	if (value >> TYPE_SHIFT != table->type || value & ((1u << SLOT_SHIFT) - 1))
		return NULL;
	object = table_slot(table, value >> SLOT_SHIFT & SLOT_MASK);
	return object && drv_handle_live(object, handle) ? object : NULL;
}

bool drv_handle_retire(struct drv_handles *table, void *object, const void *handle)
{
	struct drv_object *o = object;
	uint32_t generation = atomic_load(&o->generation);

	(void)table;
	return (generation & 1) && (generation & GEN_MASK) == handle_generation(handle) &&
	       atomic_compare_exchange_strong(&o->generation, &generation, generation + 1);
}

void drv_handle_free(struct drv_handles *table, void *object)
{
	struct drv_object *o = object;

	pthread_mutex_lock(&table->lock);
	o->next_free = table->free_head;
	table->free_head = o->slot + 1;
	table->live--;
	pthread_mutex_unlock(&table->lock);
}

void *drv_handle_next(struct drv_handles *table, uint32_t *cursor)
{
	while (*cursor < table->max) {
		struct drv_object *object = table_slot(table, *cursor);

		if (!object)
			break;
		++*cursor;
		if (atomic_load_explicit(&object->generation, memory_order_acquire) & 1)
			return object;
	}
	return NULL;
}

uint32_t drv_handle_count(struct drv_handles *table)
{
	uint32_t live;

	pthread_mutex_lock(&table->lock);
	live = table->live;
	pthread_mutex_unlock(&table->lock);
	return live;
}
