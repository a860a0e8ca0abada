/* SPDX-License-Identifier: Apache-2.0 */
/*
 * space - the process's address space on one device: slab, wake fds, memory
 *
 * Opened at the first context of the device and kept until drv_disconnect(). The slab stays mapped
 * that long, so a late reader of a ring never faults. Fields up to the mutexes are constant.
 */
#ifndef NPU_CLIENT_DRV_SPACE_H
#define NPU_CLIENT_DRV_SPACE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "client/drv/drv.h"
#include "client/drv/heap.h"
#include "client/drv/waiter.h"
#include "kdrv/uapi/npu_queue.h"

struct drv_space {
	uint32_t device; /* npud's id */
	struct drv_device info;
	bool host_visible; /* device memory can be mapped and copied by the CPU */
	struct npu_slab_header *slab;
	uint64_t slab_size, slab_address;
	int doorbell;
	struct drv_waitroom waitroom;

	/* Latest map generation of this space; every entry carries it. */
	_Atomic uint64_t generation;

	struct drv_heap device_heap, host_heap;

	/* Event words not in use, a stack; the words themselves are in the slab. */
	pthread_mutex_t event_lock;
	uint32_t *free_events, nfree_events, next_event;
};

int drv_space_open(uint32_t device, struct drv_space **ret_space);
void drv_space_close(struct drv_space *space);

/* Whether the device is gone for good. */
static inline bool drv_space_lost(const struct drv_space *space)
{
	return __builtin_expect(atomic_load_explicit(&space->waitroom.lost, memory_order_relaxed),
				0);
}

/* The generation rises to at least this. */
void drv_space_raise(struct drv_space *space, uint64_t generation);

/* A word of the slab for an event; -ENOSPC. issued goes on counting from its last user's. */
int drv_space_event_get(struct drv_space *space, uint32_t *ret_index);
void drv_space_event_put(struct drv_space *space, uint32_t index);

struct npu_event_word *drv_space_event(const struct drv_space *space, uint32_t index);

#endif
