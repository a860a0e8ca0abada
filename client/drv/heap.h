/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heap - small allocations of one kind of memory, carved from blocks
 *
 * Sizes below DRV_HEAP_MAX are served from chunks of 2 MiB, each cut into objects of one size
 * class; the bookkeeping lies outside the memory. Freed objects are given again only to this
 * process. Objects are 64 byte aligned. One mutex a heap; a malloc or free is a few dozen
 * nanoseconds.
 */
#ifndef NPU_CLIENT_DRV_HEAP_H
#define NPU_CLIENT_DRV_HEAP_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct drv_block;
struct drv_heap;
struct drv_chunk;

#define DRV_HEAP_MAX	 (1u << 20) /* larger requests are blocks of their own */
#define DRV_HEAP_CHUNK	 (2u << 20) /* bytes of a chunk */
#define DRV_HEAP_CLASSES 56u

/*
 * Where a heap gets the memory of its chunks, DRV_HEAP_CHUNK bytes each. put gets empty chunks
 * back; a chunk that was got is the source's to free, with drv_chunk_free(). Both are called
 * unlocked.
 */
struct drv_heap_source {
	int (*get)(struct drv_heap *heap, struct drv_chunk *chunk, uintptr_t *ret_address);
	void (*put)(struct drv_heap *heap, struct drv_chunk *chunk);
	void *arg;
};

struct drv_heap {
	struct drv_heap_source source;
	pthread_mutex_t lock;
	struct drv_chunk *partial[DRV_HEAP_CLASSES]; /* chunks with free objects */
	struct drv_chunk *spare;		     /* one empty chunk, kept */
	uint64_t live;				     /* objects */
};

struct drv_chunk {
	struct drv_heap *heap;
	struct drv_block *block; /* of the source */
	uintptr_t address;
	uint32_t class, size, count, nfree;
	uint32_t next_fresh; /* objects from here on were never given */
	uint32_t free_head;  /* index + 1 */
	struct drv_chunk *next, *prev;
	uint32_t *link; /* of free objects: next index + 1 */
	uint32_t *used; /* bytes that the program asked for; 0: free */
};

void drv_heap_init(struct drv_heap *heap, const struct drv_heap_source *source);
/* The chunks are not touched: the source has freed them. */
void drv_heap_fini(struct drv_heap *heap);

/* Frees the bookkeeping of a chunk: for the source, when its memory is gone. */
void drv_chunk_free(struct drv_chunk *chunk);

/* bytes: 1 .. DRV_HEAP_MAX - 1. Forwards the source's error. */
int drv_heap_alloc(struct drv_heap *heap, size_t bytes, uintptr_t *ret_address);

/* Of an address inside chunk: -EINVAL when no object begins there, or it is free. */
int drv_heap_free(struct drv_chunk *chunk, uintptr_t address);

/* Whether [address, address + bytes) lies inside one live object of chunk. */
bool drv_heap_holds(struct drv_chunk *chunk, uintptr_t address, size_t bytes);

#endif
