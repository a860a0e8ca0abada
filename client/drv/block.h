/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block - one piece of memory that npud gave: device memory, or pinned host memory
 *
 * Found by any device address inside it. Device memory, where the device lets the host see it, is
 * mapped a second time at an alias outside the window, at the first use by the CPU; at its device
 * address the host has no access. Pinned memory is mapped at its device address, so that one
 * address serves both. References keep the mappings while a copy runs; the creator holds one.
 */
#ifndef NPU_CLIENT_DRV_BLOCK_H
#define NPU_CLIENT_DRV_BLOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct drv_chunk;
struct drv_space;

struct drv_block {
	struct drv_space *space;
	uintptr_t address; /* device address */
	size_t bytes, page;
	uint64_t mem;
	uint32_t kind;		 /* DRV_MEM_DEVICE or DRV_MEM_HOST */
	int fd;			 /* -1 when it cannot be mapped */
	struct drv_chunk *owner; /* of a heap that carves it, or NULL: given whole to the program */
	size_t usable;		 /* given whole: bytes that the program may use */
	_Atomic(unsigned char *) alias;
	_Atomic uint32_t refs;
};

/* flags: DRV_MEM_HUGE_* and so on. The block can be found from here on. */
int drv_block_new(struct drv_space *space, size_t bytes, uint32_t kind, uint32_t flags,
		  struct drv_block **ret_block);

/* The block that holds address, with a reference; NULL: none. */
struct drv_block *drv_block_get(const void *address);
void drv_block_put(struct drv_block *block);

/*
 * Takes the block out of sight and frees it at npud; mappings go with the last reference. One of
 * several callers gets true.
 */
bool drv_block_retire(struct drv_block *block);

/* Where the CPU reaches offset 0 of the block; NULL when it cannot. */
unsigned char *drv_block_cpu(struct drv_block *block);

/* Every block of a space goes, without a word to npud: the connection is gone. */
void drv_block_drop_space(struct drv_space *space);

#endif
