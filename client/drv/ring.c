/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Producer as npu_queue.h has it. done is cached: the device's line is read only when the ring
 * looks full or arguments must be given back. Arguments of an entry are free once the entry is
 * done; where they end is kept for each slot, so giving back costs one load.
 */
#include "client/drv/ring.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "client/drv/drv.h"
#include "client/drv/waiter.h"

#define MASK	   (NPU_RING_ENTRIES - 1)
#define ARGS_ALIGN 64u
#define AHEAD 6u /* entries to prefetch */

void drv_ring_init(struct drv_ring *ring, struct npu_slab_header *slab, uint32_t slot,
		   uint64_t slab_address, int doorbell, struct drv_waitroom *room,
		   const _Atomic uint64_t *generation)
{
	unsigned char *base = (unsigned char *)slab;
	size_t data = NPU_SLAB_DATA + (size_t)slot * NPU_RING_BYTES;
	size_t args = data + NPU_RING_ENTRIES * NPU_ENTRY_SIZE;

	memset(ring, 0, sizeof(*ring));
	ring->header = slab;
	ring->ctrl = (struct npu_ring_ctrl *)(base + NPU_SLAB_RINGS) + slot;
	ring->entries = (struct npu_entry *)(base + data);
	ring->args = base + args;
	ring->args_address = slab_address + args;
	ring->room = room;
	ring->generation = generation;
	ring->doorbell = doorbell;
	ring->slot = slot;
	__atomic_store_n(&ring->ctrl->want, UINT64_MAX, __ATOMIC_RELAXED);
	__atomic_store_n(&ring->ctrl->host_reply, 0, __ATOMIC_RELAXED);
}

/*
 * Lines that the device has read a lap ago are in its cache: asking for them ahead of time hides the
 * transfer, which the fence of a submit would otherwise wait for.
 */
static inline void ring_prefetch(const void *line)
{
#if defined(__x86_64__)
	__asm__ volatile("prefetchw %0" : : "m"(*(const char *)line));
#else
	__builtin_prefetch(line, 1);
#endif
}

/* Takes over the device's done; what it claims beyond tail is not believed. */
static void ring_refresh(struct drv_ring *ring)
{
	uint64_t done = drv_ring_done(ring);

	if (done > ring->tail || done <= ring->done)
		return;
	ring->done = done;
	ring->args_done = ring->args_end[(done - 1) & MASK];
}

static int ring_wait(struct drv_ring *ring, uint64_t target)
{
	int r = drv_wait_ring(ring->room, ring, target, DRV_FOREVER);

	if (!r)
		ring_refresh(ring);
	return r;
}

/* Room for size bytes of arguments in one piece; gives where they begin, counted for ever. */
static int ring_args(struct drv_ring *ring, size_t size, uint64_t *ret_start)
{
	uint64_t offset = ring->args_tail & (NPU_RING_ARGS - 1);
	uint64_t start = ring->args_tail;
	int r;

	if (offset + size > NPU_RING_ARGS)
		start += NPU_RING_ARGS - offset;
	while (start + size - ring->args_done > NPU_RING_ARGS) {
		ring_refresh(ring);
		if (start + size - ring->args_done <= NPU_RING_ARGS)
			break;
		if (ring->done == ring->tail) { /* nothing holds arguments but the skipped end */
			ring->args_done = start;
			break;
		}
		r = ring_wait(ring, ring->done + (ring->tail - ring->done + 1) / 2);
		if (r)
			return r;
	}
	*ret_start = start;
	return 0;
}

int drv_ring_reserve(struct drv_ring *ring, size_t bytes, struct npu_entry **ret_entry,
		     uint64_t *ret_offset)
{
	struct npu_entry *entry;
	uint64_t start = ring->args_tail;
	int r;

	if (ring->tail - ring->done >= NPU_RING_ENTRIES) {
		ring_refresh(ring);
		if (ring->tail - ring->done >= NPU_RING_ENTRIES) {
			r = ring_wait(ring, ring->tail - NPU_RING_ENTRIES / 2);
			if (r)
				return r;
		}
	}
	if (bytes) {
		size_t size = (bytes + ARGS_ALIGN - 1) & ~(size_t)(ARGS_ALIGN - 1);

		if (bytes > NPU_MAX_ARGS)
			return -EMSGSIZE;
		r = ring_args(ring, size, &start);
		if (r)
			return r;
		ring->args_tail = start + size;
		*ret_offset = start & (NPU_RING_ARGS - 1);
		ring_prefetch(&ring->args[(start + AHEAD * size) & (NPU_RING_ARGS - 1)]);
	}
	ring_prefetch(&ring->entries[(ring->tail + AHEAD) & MASK]);
	entry = &ring->entries[ring->tail & MASK];
	memset(entry, 0, sizeof(*entry));
	entry->epoch = (uint16_t)__atomic_load_n(&ring->ctrl->epoch, __ATOMIC_RELAXED);
	if (ring->generation)
		entry->map_gen =
			(uint32_t)atomic_load_explicit(ring->generation, memory_order_relaxed);
	*ret_entry = entry;
	return 0;
}

static inline void ring_wake_device(struct drv_ring *ring)
{
	static const uint64_t one = 1;

	if (__atomic_load_n(&ring->header->device_sleeping, __ATOMIC_RELAXED) &&
	    __atomic_exchange_n(&ring->header->device_sleeping, 0, __ATOMIC_SEQ_CST)) {
		/* EAGAIN: the counter is full, so it is readable anyway. */
		while (write(ring->doorbell, &one, sizeof(one)) < 0 && errno == EINTR)
			;
	}
}

static inline void ring_mark_pending(struct drv_ring *ring)
{
	__atomic_fetch_or(&ring->header->pending[ring->slot / 64], 1ull << (ring->slot % 64),
			  __ATOMIC_SEQ_CST);
}

uint64_t drv_ring_submit(struct drv_ring *ring)
{
	ring->args_end[ring->tail & MASK] = ring->args_tail;
	ring->tail++;
	atomic_store_explicit(&ring->published, ring->tail, memory_order_release);
	__atomic_store_n(&ring->ctrl->tail, ring->tail, __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (__atomic_load_n(&ring->ctrl->armed, __ATOMIC_RELAXED)) {
		__atomic_store_n(&ring->ctrl->armed, 0, __ATOMIC_RELAXED);
		ring_mark_pending(ring);
		ring_wake_device(ring);
	}
	return ring->tail;
}

void drv_ring_kick(struct drv_ring *ring)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	ring_mark_pending(ring);
	ring_wake_device(ring);
}

bool drv_ring_error(const struct drv_ring *ring, struct npu_ring_error *ret_error)
{
	const struct npu_ring_error *error = &ring->ctrl->error;

	for (int i = 0; i < 1000; i++) {
		uint64_t count = __atomic_load_n(&error->count, __ATOMIC_ACQUIRE);

		memcpy(ret_error, error, sizeof(*ret_error));
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (__atomic_load_n(&error->begin, __ATOMIC_RELAXED) == count)
			return true;
	}
	return false;
}
