/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Size classes: every 64 bytes up to 1 KiB, then four a doubling. A chunk serves one class; objects
 * are given from its free list, then from the part that was never given. An empty chunk is kept as
 * the heap's spare, so that a lone malloc and free do not bounce a chunk to npud and back.
 */
#include "client/drv/heap.h"

#include <errno.h>
#include <stdlib.h>

#define STEP	64u
#define LINEAR	1024u /* bytes: classes below are STEP apart */
#define NLINEAR (LINEAR / STEP)

static uint32_t class_of(size_t bytes)
{
	uint32_t log, quarter;

	if (bytes <= LINEAR)
		return (uint32_t)((bytes + STEP - 1) / STEP) - 1;
	log = 63 - (uint32_t)__builtin_clzll(bytes - 1); /* 2^log <= bytes - 1, log >= 10 */
	quarter = (uint32_t)((bytes - 1) >> (log - 2)) & 3;
	return NLINEAR + (log - 10) * 4 + quarter;
}

static uint32_t class_size(uint32_t class)
{
	uint32_t log, quarter;

	if (class < NLINEAR)
		return (class + 1) * STEP;
	log = 10 + (class - NLINEAR) / 4;
	quarter = (class - NLINEAR) % 4;
	return (1u << log) + ((quarter + 1) << (log - 2));
}

_Static_assert(NLINEAR + 40 == DRV_HEAP_CLASSES, "up to DRV_HEAP_MAX = 2^20");

void drv_heap_init(struct drv_heap *heap, const struct drv_heap_source *source)
{
	*heap = (struct drv_heap){ .source = *source };
	pthread_mutex_init(&heap->lock, NULL);
}

void drv_heap_fini(struct drv_heap *heap)
{
	pthread_mutex_destroy(&heap->lock);
}

void drv_chunk_free(struct drv_chunk *chunk)
{
	free(chunk->link);
	free(chunk->used);
	free(chunk);
}

static void partial_add(struct drv_heap *heap, struct drv_chunk *chunk)
{
	chunk->prev = NULL;
	chunk->next = heap->partial[chunk->class];
	if (chunk->next)
		chunk->next->prev = chunk;
	heap->partial[chunk->class] = chunk;
}

static void partial_remove(struct drv_heap *heap, struct drv_chunk *chunk)
{
	if (chunk->prev)
		chunk->prev->next = chunk->next;
	else
		heap->partial[chunk->class] = chunk->next;
	if (chunk->next)
		chunk->next->prev = chunk->prev;
}

/* Cuts an empty chunk for a class. */
static int chunk_cut(struct drv_chunk *chunk, uint32_t class)
{
	uint32_t size = class_size(class), count = DRV_HEAP_CHUNK / size;
	uint32_t *link, *used;

	if (chunk->link && chunk->class == class)
		return 0;
	link = malloc(count * sizeof(*link));
	used = calloc(count, sizeof(*used));
	if (!link || !used) {
		free(link);
		free(used);
		return -ENOMEM;
	}
	free(chunk->link);
	free(chunk->used);
	chunk->link = link;
	chunk->used = used;
	chunk->class = class;
	chunk->size = size;
	chunk->count = chunk->nfree = count;
	chunk->next_fresh = chunk->free_head = 0;
	return 0;
}

/* A fresh chunk of the class among the partial ones; called and returns with the lock held. */
static int heap_grow(struct drv_heap *heap, uint32_t class)
{
	struct drv_chunk *chunk = heap->spare;
	int r;

	if (chunk) {
		heap->spare = NULL;
		r = chunk_cut(chunk, class);
		if (r) {
			heap->spare = chunk;
			return r;
		}
		partial_add(heap, chunk);
		return 0;
	}
	pthread_mutex_unlock(&heap->lock);
	chunk = calloc(1, sizeof(*chunk));
	r = chunk ? chunk_cut(chunk, class) : -ENOMEM;
	if (!r) {
		chunk->heap = heap;
		r = heap->source.get(heap, chunk, &chunk->address);
	}
	pthread_mutex_lock(&heap->lock);
	if (r) {
		if (chunk)
			drv_chunk_free(chunk);
		return r;
	}
	partial_add(heap, chunk);
	return 0;
}

int drv_heap_alloc(struct drv_heap *heap, size_t bytes, uintptr_t *ret_address)
{
	struct drv_chunk *chunk;
	uint32_t class, index;
	int r;

	if (!bytes || bytes >= DRV_HEAP_MAX)
		return -EINVAL;
	class = class_of(bytes);
	pthread_mutex_lock(&heap->lock);
	while (!heap->partial[class]) {
		r = heap_grow(heap, class);
		if (r) {
			pthread_mutex_unlock(&heap->lock);
			return r;
		}
	}
	chunk = heap->partial[class];
	if (chunk->free_head) {
		index = chunk->free_head - 1;
		chunk->free_head = chunk->link[index];
	} else {
		index = chunk->next_fresh++;
	}
	chunk->used[index] = (uint32_t)bytes;
	if (!--chunk->nfree)
		partial_remove(heap, chunk);
	heap->live++;
	pthread_mutex_unlock(&heap->lock);
	*ret_address = chunk->address + (uintptr_t)index * chunk->size;
	return 0;
}

int drv_heap_free(struct drv_chunk *chunk, uintptr_t address)
{
	struct drv_heap *heap = chunk->heap;
	struct drv_chunk *put = NULL;
	uint32_t index;

	pthread_mutex_lock(&heap->lock);
	index = (uint32_t)((address - chunk->address) / chunk->size);
	if ((address - chunk->address) % chunk->size || index >= chunk->count ||
	    !chunk->used[index]) {
		pthread_mutex_unlock(&heap->lock);
		return -EINVAL;
	}
	chunk->used[index] = 0;
	chunk->link[index] = chunk->free_head;
	chunk->free_head = index + 1;
	if (!chunk->nfree++)
		partial_add(heap, chunk);
	heap->live--;
	if (chunk->nfree == chunk->count) {
		partial_remove(heap, chunk);
		if (heap->spare)
			put = chunk;
		else
			heap->spare = chunk;
	}
	pthread_mutex_unlock(&heap->lock);
	if (put)
		heap->source.put(heap, put);
	return 0;
}

bool drv_heap_holds(struct drv_chunk *chunk, uintptr_t address, size_t bytes)
{
	struct drv_heap *heap = chunk->heap;
	uint32_t index, offset;
	bool holds;

	pthread_mutex_lock(&heap->lock);
	index = (uint32_t)((address - chunk->address) / chunk->size);
	offset = (uint32_t)((address - chunk->address) % chunk->size);
	holds = index < chunk->count && chunk->used[index] >= offset &&
		chunk->used[index] - offset >= bytes && chunk->used[index];
	pthread_mutex_unlock(&heap->lock);
	return holds;
}
