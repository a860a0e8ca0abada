/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks are found through a table with one entry a 64 KiB page of the window, its leaves made on
 * demand. A mutex guards the table and the step from an entry to a reference, a few nanoseconds.
 */
#include "client/drv/block.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client/drv/drv.h"
#include "client/drv/drv_caps.h"
#include "client/drv/heap.h"
#include "client/drv/process.h"
#include "client/drv/space.h"

#define PAGE_SHIFT 16u
#define PAGE	   ((size_t)1 << PAGE_SHIFT)
#define LEAF_SHIFT 14u
#define LEAF	   ((size_t)1 << LEAF_SHIFT) /* pages of one leaf: 1 GiB */

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static struct drv_block ***table; /* [leaf][page] */
static size_t table_leaves;

static size_t page_of(uintptr_t address)
{
	return (address - drv_window_base) >> PAGE_SHIFT;
}

/* Enters block, or NULL, for all pages of a range; -ENOMEM. Called with the lock held. */
static int table_set(uintptr_t address, size_t bytes, struct drv_block *block)
{
	size_t first = page_of(address), end = first + ((bytes + PAGE - 1) >> PAGE_SHIFT);

	if (!table) {
		table_leaves = ((drv_window_size >> PAGE_SHIFT) + LEAF - 1) >> LEAF_SHIFT;
		table = calloc(table_leaves, sizeof(*table));
		if (!table)
			return -ENOMEM;
	}
	for (size_t l = first >> LEAF_SHIFT; l <= (end - 1) >> LEAF_SHIFT; l++) {
		if (!table[l])
			table[l] = calloc(LEAF, sizeof(**table));
		if (!table[l])
			return -ENOMEM;
	}
	for (size_t i = first; i < end; i++)
		table[i >> LEAF_SHIFT][i & (LEAF - 1)] = block;
	return 0;
}

static struct drv_block *table_get(uintptr_t address)
{
	size_t i = page_of(address);
	struct drv_block **leaf = table ? table[i >> LEAF_SHIFT] : NULL;

	return leaf ? leaf[i & (LEAF - 1)] : NULL;
}

static int block_check(const struct drv_memory *memory, size_t bytes)
{
	if (memory->bytes < bytes || !memory->bytes || memory->bytes % PAGE ||
	    memory->address % PAGE || !drv_in_window((void *)memory->address) ||
	    memory->bytes > drv_window_base + drv_window_size - memory->address)
		return drv_fail(
			-EPROTO, "npud gave memory at 0x%llx with %llu bytes, which cannot be",
			(unsigned long long)memory->address, (unsigned long long)memory->bytes);
	return 0;
}

/* When this process gave memory back last, ns. */
static _Atomic uint64_t freed_at;
#define FREED_NS 1000000000ull

/*
 * Device memory that was freed is erased before it is to be had again. A process that frees and
 * allocates at once can be ahead of that, so one that has just freed waits before it is told that
 * there is none.
 */
static int block_ask(struct drv_space *space, size_t bytes, uint32_t kind, uint32_t flags,
		     struct drv_memory *ret_memory)
{
	for (;;) {
		int r = drv_call_mem_alloc(space->device, bytes, kind, flags, ret_memory);

		if (r != -ENOSPC || kind != DRV_MEM_DEVICE ||
		    drv_now_ns() - atomic_load(&freed_at) > FREED_NS)
			return r;
		poll(NULL, 0, 2);
	}
}

int drv_block_new(struct drv_space *space, size_t bytes, uint32_t kind, uint32_t flags,
		  struct drv_block **ret_block)
{
	struct drv_block *block = calloc(1, sizeof(*block));
	struct drv_memory memory;
	uint64_t generation;
	int r;

	if (!block)
		return drv_fail(-ENOMEM, "out of host memory");
	r = block_ask(space, bytes, kind, flags, &memory);
	if (r) {
		free(block);
		return r;
	}
	*block = (struct drv_block){
		.space = space,
		.address = memory.address,
		.bytes = memory.bytes,
		.page = memory.page,
		.mem = memory.mem,
		.kind = kind,
		.fd = memory.fd,
		.usable = bytes,
		.refs = 1,
	};
	r = block_check(&memory, bytes);
	if (!r && kind == DRV_MEM_HOST) {
		if (memory.fd < 0)
			r = drv_fail(-EPROTO, "npud gave pinned memory without a descriptor");
		else
			r = drv_process_map(block->address, block->bytes, memory.fd);
		if (!r) {
			drv_process_close_fd(block->fd);
			block->fd = -1;
			block->alias = (unsigned char *)block->address;
		}
	}
	if (!r) {
		pthread_mutex_lock(&table_lock);
		r = table_set(block->address, block->bytes, block);
		pthread_mutex_unlock(&table_lock);
		if (r) {
			drv_fail(r, "out of host memory");
			if (kind == DRV_MEM_HOST)
				drv_process_unmap(block->address, block->bytes);
		}
	}
	if (r) {
		struct drv_error error = *drv_error();

		drv_process_close_fd(block->fd);
		drv_call_mem_free(memory.mem, &generation);
		free(block);
		*(struct drv_error *)drv_error() = error;
		return r;
	}
	drv_space_raise(space, memory.generation);
	*ret_block = block;
	return 0;
}

struct drv_block *drv_block_get(const void *address)
{
	struct drv_block *block;

	if (!drv_in_window(address))
		return NULL;
	pthread_mutex_lock(&table_lock);
	block = table_get((uintptr_t)address);
	if (block)
		atomic_fetch_add_explicit(&block->refs, 1, memory_order_relaxed);
	pthread_mutex_unlock(&table_lock);
	return block;
}

void drv_block_put(struct drv_block *block)
{
	unsigned char *alias;

	if (atomic_fetch_sub_explicit(&block->refs, 1, memory_order_acq_rel) != 1)
		return;
	alias = atomic_load(&block->alias);
	if (alias && block->kind == DRV_MEM_DEVICE)
		munmap(alias, block->bytes);
	drv_process_close_fd(block->fd);
	if (block->owner)
		drv_chunk_free(block->owner);
	free(block);
}

/* Out of the table; false when another was first. The pinned mapping goes at once. */
static bool block_hide(struct drv_block *block)
{
	bool mine;

	pthread_mutex_lock(&table_lock);
	mine = table_get(block->address) == block;
	if (mine)
		table_set(block->address, block->bytes, NULL);
	pthread_mutex_unlock(&table_lock);
	/* Before npud may give the address again. */
	if (mine && block->kind == DRV_MEM_HOST)
		drv_process_unmap(block->address, block->bytes);
	return mine;
}

bool drv_block_retire(struct drv_block *block)
{
	uint64_t generation;

	if (!block_hide(block))
		return false;
	/* When npud is gone the memory goes with the process's objects there. */
	if (!drv_call_mem_free(block->mem, &generation)) {
		drv_space_raise(block->space, generation);
		atomic_store(&freed_at, drv_now_ns());
	}
	drv_block_put(block);
	return true;
}

unsigned char *drv_block_cpu(struct drv_block *block)
{
	static pthread_mutex_t alias_lock = PTHREAD_MUTEX_INITIALIZER;
	unsigned char *alias = atomic_load_explicit(&block->alias, memory_order_acquire);
	void *p;

	if (alias || block->fd < 0 || !block->space->host_visible)
		return alias;
	pthread_mutex_lock(&alias_lock);
	alias = atomic_load(&block->alias);
	if (!alias) {
		p = mmap(NULL, block->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
			 block->fd, 0);
		if (p != MAP_FAILED) {
			madvise(p, block->bytes, MADV_DONTFORK);
			madvise(p, block->bytes, MADV_DONTDUMP);
			alias = p;
			atomic_store_explicit(&block->alias, alias, memory_order_release);
			drv_process_close_fd(block->fd);
			block->fd = -1;
		}
	}
	pthread_mutex_unlock(&alias_lock);
	return alias;
}

void drv_block_drop_space(struct drv_space *space)
{
	for (size_t l = 0; l < table_leaves; l++) {
		for (size_t i = 0; i < LEAF; i++) {
			struct drv_block *block;

			pthread_mutex_lock(&table_lock);
			block = table[l] ? table[l][i] : NULL;
			pthread_mutex_unlock(&table_lock);
			if (!block) {
				if (!table[l])
					break;
				continue;
			}
			if (block->space == space && block_hide(block))
				drv_block_put(block);
		}
	}
}
