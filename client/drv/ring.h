/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring - the client's end of one queue: the producer of npu_queue.h
 *
 * The caller serialises: one thread at a time between drv_ring_reserve() and drv_ring_submit().
 * Reading progress needs no lock. A submission makes no system call while the device is awake and
 * the ring has room, and allocates nothing.
 */
#ifndef NPU_CLIENT_DRV_RING_H
#define NPU_CLIENT_DRV_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "kdrv/uapi/npu_queue.h"

struct drv_waitroom;

struct drv_ring {
	struct npu_slab_header *header;
	struct npu_ring_ctrl *ctrl;
	struct npu_entry *entries;
	unsigned char *args;
	uint64_t args_address; /* device address of args */
	struct drv_waitroom *room;
	const _Atomic uint64_t *generation; /* of the maps; every entry carries it */
	int doorbell;
	uint32_t slot;
	uint64_t tail;			     /* entries written */
	uint64_t done;			     /* device's done as last seen */
	uint64_t args_tail;		     /* bytes ever taken of the argument ring */
	uint64_t args_done;		     /* bytes given back */
	uint64_t args_freed;		     /* entries whose arguments have been given back */
	_Atomic uint64_t published;	     /* tail, for readers without the lock */
	_Atomic bool dead;		     /* its queue is destroyed: waiters give up */
	_Atomic uint32_t waiters;	     /* threads inside drv_wait_ring() for it */
	uint64_t args_end[NPU_RING_ENTRIES]; /* args_tail after each entry */
};

/* slab: the mapped slab; slot: index that QueueCreate gave; slab_address: on the device. */
void drv_ring_init(struct drv_ring *ring, struct npu_slab_header *slab, uint32_t slot,
		   uint64_t slab_address, int doorbell, struct drv_waitroom *room,
		   const _Atomic uint64_t *generation);

/*
 * Room for one entry and bytes of arguments (at most NPU_MAX_ARGS; 0 for none): waits, by the sleep
 * rule and until half a ring is free, while there is none. The entry is zeroed but for its
 * epoch and map generation.
 * *ret_offset is the arguments' offset, 64 byte aligned. -EIO: device lost; -ECANCELED: queue
 * destroyed.
 */
int drv_ring_reserve(struct drv_ring *ring, size_t bytes, struct npu_entry **ret_entry,
		     uint64_t *ret_offset);

/* Publishes the reserved entry and wakes the device when it sleeps. Returns its index + 1. */
uint64_t drv_ring_submit(struct drv_ring *ring);

/* Tells the device to look at this ring again (a host call was answered). */
void drv_ring_kick(struct drv_ring *ring);

/* Entries written, by any thread: the target that a sync waits for. */
static inline uint64_t drv_ring_target(const struct drv_ring *ring)
{
	return atomic_load_explicit(&ring->published, memory_order_acquire);
}

static inline uint64_t drv_ring_done(const struct drv_ring *ring)
{
	return __atomic_load_n(&ring->ctrl->done, __ATOMIC_ACQUIRE);
}

/* Errors of the queue so far; read after drv_ring_done(). */
static inline uint64_t drv_ring_errors(const struct drv_ring *ring)
{
	return __atomic_load_n(&ring->ctrl->error_count, __ATOMIC_ACQUIRE);
}

/* Consistent copy of the last error; false when the device keeps changing it. */
bool drv_ring_error(const struct drv_ring *ring, struct npu_ring_error *ret_error);

#endif
