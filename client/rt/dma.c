/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where device memory is not host visible, the device copies: on a queue of the library's own, one
 * a space, in a context of its own, so that faults and failure modes of the program's contexts do
 * not touch it. Pageable memory goes through a pinned buffer of two halves, one filled while the
 * other is on its way. A mutex a space: one such copy at a time.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/drv/block.h"
#include "client/drv/drv_caps.h"
#include "client/rt/internal.h"

#define HALF ((size_t)1 << 20)

struct dma {
	struct drv_space *space; /* NULL: free row */
	pthread_mutex_t lock;
	bool ready;
	uint32_t ctx, queue;
	struct drv_ring *ring;
	struct drv_block *buffer; /* two halves */
	uint64_t errors_seen;
};

static struct dma dmas[RT_MAX_DEVICES];
static pthread_mutex_t dmas_lock = PTHREAD_MUTEX_INITIALIZER;

static int dma_prepare(struct dma *dma)
{
	struct drv_space *space = dma->space;
	uint32_t slot, ctx_slot;
	int r;

	if (dma->ready)
		return 0;
	dma->ring =
		dma->ring ? dma->ring : aligned_alloc(64, (sizeof(*dma->ring) + 63) & ~(size_t)63);
	if (!dma->ring)
		return rt_error(ACL_ERROR_RT_MEMORY_ALLOCATION, "EL0004", "out of host memory");
	r = drv_block_new(space, 2 * HALF, DRV_MEM_HOST, DRV_MEM_POPULATE, &dma->buffer);
	if (r)
		return rt_error_drv(r, "no pinned memory for copies");
	r = drv_call_ctx_create(space->device, &dma->ctx, &ctx_slot);
	if (!r) {
		r = drv_call_queue_create(dma->ctx, 0, DRV_FAIL_CONTINUE, &dma->queue, &slot);
		if (!r && slot >= NPU_MAX_QUEUES)
			r = drv_fail(-EPROTO, "npud gave the queue slot %u, which cannot be", slot);
		if (r)
			drv_call_ctx_destroy(dma->ctx);
	}
	if (r) {
		r = rt_error_drv(r, "cannot make a queue for copies");
		drv_block_retire(dma->buffer);
		return r;
	}
	drv_ring_init(dma->ring, space->slab, slot, space->slab_address, space->doorbell,
		      &space->waitroom, &space->generation);
	dma->errors_seen = drv_ring_errors(dma->ring);
	dma->ready = true;
	return 0;
}

/* The row of a space, locked and ready. */
static int dma_begin(struct drv_space *space, struct dma **ret_dma)
{
	struct dma *dma = NULL;
	int r;

	pthread_mutex_lock(&dmas_lock);
	for (size_t i = 0; i < RT_MAX_DEVICES && !dma; i++)
		if (dmas[i].space == space)
			dma = &dmas[i];
	for (size_t i = 0; i < RT_MAX_DEVICES && !dma; i++) {
		if (!dmas[i].space) {
			dma = &dmas[i];
			dma->space = space;
			pthread_mutex_init(&dma->lock, NULL);
		}
	}
	pthread_mutex_unlock(&dmas_lock);
	if (!dma)
		return rt_error(ACL_ERROR_RT_RESOURCE_ALLOC_FAIL, "EE1003", "too many devices");
	pthread_mutex_lock(&dma->lock);
	r = dma_prepare(dma);
	if (r)
		pthread_mutex_unlock(&dma->lock);
	else
		*ret_dma = dma;
	return r;
}

void rt_dma_drop_space(struct drv_space *space)
{
	pthread_mutex_lock(&dmas_lock);
	for (size_t i = 0; i < RT_MAX_DEVICES; i++) {
		if (dmas[i].space != space)
			continue;
		/* The queue and the buffer go with the space. */
		pthread_mutex_destroy(&dmas[i].lock);
		free(dmas[i].ring);
		memset(&dmas[i], 0, sizeof(dmas[i]));
	}
	pthread_mutex_unlock(&dmas_lock);
}

static int dma_reserve(struct dma *dma, struct npu_entry **ret_entry)
{
	int r = drv_ring_reserve(dma->ring, 0, ret_entry, NULL);

	return r ? rt_error_lost(dma->space, dma->space->device) : 0;
}

static int dma_submit_copy(struct dma *dma, uintptr_t dst, uintptr_t src, size_t bytes,
			   uint64_t *ret_target)
{
	struct npu_entry *entry;
	int r = dma_reserve(dma, &entry);

	if (r)
		return r;
	entry->op = NPU_OP_COPY;
	entry->copy.dst = dst;
	entry->copy.src = src;
	entry->copy.bytes = bytes;
	*ret_target = drv_ring_submit(dma->ring);
	return 0;
}

static int dma_wait(struct dma *dma, uint64_t target)
{
	struct npu_ring_error error;
	uint64_t errors;

	if (drv_wait_ring(&dma->space->waitroom, dma->ring, target, DRV_FOREVER))
		return rt_error_lost(dma->space, dma->space->device);
	errors = drv_ring_errors(dma->ring);
	if (errors == dma->errors_seen)
		return 0;
	dma->errors_seen = errors;
	if (!drv_ring_error(dma->ring, &error))
		error.kind = NPU_FAULT_DMA;
	return rt_error(rt_fault_code(error.kind, error.op), "EZ9999",
			"code %d, layer device %u: the "
			"copy failed: %s",
			rt_fault_code(error.kind, error.op), dma->space->device,
			rt_fault_name(error.kind));
}

/* Pageable memory to the device. */
static int dma_push(struct dma *dma, uintptr_t dst, const unsigned char *src, size_t bytes)
{
	uint64_t target[2] = { 0, 0 };
	int r = 0;

	for (size_t at = 0, half = 0; !r && at < bytes; at += HALF, half ^= 1) {
		size_t n = bytes - at < HALF ? bytes - at : HALF;
		uintptr_t buffer = dma->buffer->address + half * HALF;

		r = dma_wait(dma, target[half]);
		if (r)
			break;
		memcpy((void *)buffer, src + at, n);
		r = dma_submit_copy(dma, dst + at, buffer, n, &target[half]);
	}
	return r ? r : dma_wait(dma, dma->ring->tail);
}

/* The device to pageable memory. */
static int dma_pull(struct dma *dma, unsigned char *dst, uintptr_t src, size_t bytes)
{
	uint64_t target[2] = { 0, 0 };
	size_t sent = 0;
	int r = 0;

	for (size_t at = 0, half = 0; !r && at < bytes; at += HALF, half ^= 1) {
		size_t n = bytes - at < HALF ? bytes - at : HALF;

		while (!r && sent < bytes && sent <= at + HALF) {
			size_t m = bytes - sent < HALF ? bytes - sent : HALF, to = sent / HALF & 1;

			r = dma_submit_copy(dma, dma->buffer->address + to * HALF, src + sent, m,
					    &target[to]);
			sent += m;
		}
		if (!r)
			r = dma_wait(dma, target[half]);
		if (!r)
			memcpy(dst + at, (void *)(dma->buffer->address + half * HALF), n);
	}
	return r;
}

/* A space that the copy runs in: that of device memory, else of pinned memory. */
static struct drv_space *ranges_space(const struct rt_range *dst, const struct rt_range *src)
{
	const struct rt_range *r = dst->device ? dst : src->device ? src : dst->block ? dst : src;

	return r->block->space;
}

static int spaces_check(const struct rt_range *dst, const struct rt_range *src)
{
	if (dst->block && src->block && dst->block->space != src->block->space)
		return rt_error(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "EE1001",
				"the copy is between devices "
				"%u and %u, which do not reach each other's memory",
				src->block->space->device, dst->block->space->device);
	return 0;
}

static int dma_copy_locked(struct dma *dma, const struct rt_range *dst, const struct rt_range *src,
			   size_t bytes)
{
	uint64_t target;
	int r;

	if (!src->block)
		return dma_push(dma, (uintptr_t)dst->address, src->address, bytes);
	if (!dst->block)
		return dma_pull(dma, dst->address, (uintptr_t)src->address, bytes);
	r = dma_submit_copy(dma, (uintptr_t)dst->address, (uintptr_t)src->address, bytes, &target);
	return r ? r : dma_wait(dma, target);
}

int rt_dma_copy(const struct rt_range *dst, const struct rt_range *src, size_t bytes)
{
	struct dma *dma = NULL;
	int r = spaces_check(dst, src);

	if (!r)
		r = dma_begin(ranges_space(dst, src), &dma);
	if (r)
		return r;
	r = dma_copy_locked(dma, dst, src, bytes);
	pthread_mutex_unlock(&dma->lock);
	return r;
}

int rt_dma_copy2d(const struct rt_range *dst, size_t dst_pitch, const struct rt_range *src,
		  size_t src_pitch, size_t width, size_t height)
{
	struct npu_entry *entry;
	struct dma *dma = NULL;
	int r = spaces_check(dst, src);

	if (!r)
		r = dma_begin(ranges_space(dst, src), &dma);
	if (r)
		return r;
	if (dst->block && src->block) {
		r = dma_reserve(dma, &entry);
		if (!r) {
			entry->op = NPU_OP_COPY2D;
			entry->copy2d.dst = (uintptr_t)dst->address;
			entry->copy2d.src = (uintptr_t)src->address;
			entry->copy2d.dst_pitch = dst_pitch;
			entry->copy2d.src_pitch = src_pitch;
			entry->copy2d.width = width;
			entry->copy2d.height = height;
			r = dma_wait(dma, drv_ring_submit(dma->ring));
		}
	} else {
		for (size_t y = 0; !r && y < height; y++) {
			struct rt_range to = *dst, from = *src;

			to.address += y * dst_pitch;
			from.address += y * src_pitch;
			r = dma_copy_locked(dma, &to, &from, width);
		}
	}
	pthread_mutex_unlock(&dma->lock);
	return r;
}

int rt_dma_fill(const struct rt_range *dst, uint8_t value, size_t bytes)
{
	struct npu_entry *entry;
	struct dma *dma = NULL;
	int r = dma_begin(dst->block->space, &dma);

	if (r)
		return r;
	r = dma_reserve(dma, &entry);
	if (!r) {
		entry->op = NPU_OP_FILL;
		entry->fill.dst = (uintptr_t)dst->address;
		entry->fill.bytes = bytes;
		entry->fill.value = value;
		entry->fill.width = 1;
		r = dma_wait(dma, drv_ring_submit(dma->ring));
	}
	pthread_mutex_unlock(&dma->lock);
	return r;
}
