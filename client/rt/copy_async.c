/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies and fills in stream order. Between device and pinned memory they are one ring entry. From
 * pageable memory, up to STAGE_MAX bytes are copied to a pinned buffer first, which is given back
 * when a later staged copy finds it done; what is larger, and every copy to pageable memory, waits
 * for the stream to come to it and is complete on return.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/drv/block.h"
#include "client/drv/drv_caps.h"
#include "client/rt/internal.h"

#define STAGE_MAX   ((size_t)1 << 20)	/* bytes of one copy that are staged */
#define STAGE_PIECE ((size_t)512 << 10) /* bytes of one pinned buffer */
#define STAGE_HELD  ((size_t)8 << 20)	/* bytes that one stream may hold staged */

static void staged_free_first(struct rt_stream *stream)
{
	struct rt_staged *staged = stream->staged;
	struct drv_block *block = drv_block_get((void *)staged->address);

	if (block) {
		rt_release(block, staged->address);
		drv_block_put(block);
	}
	stream->staged = staged->next;
	if (!stream->staged)
		stream->staged_end = &stream->staged;
	stream->staged_bytes -= staged->bytes;
	free(staged);
}

void rt_staged_reap(struct rt_stream *stream, bool all)
{
	struct drv_ring *ring = atomic_load(&stream->ring);
	uint64_t done = ring && !all ? drv_ring_done(ring) : 0;

	while (stream->staged && (all || stream->staged->target <= done))
		staged_free_first(stream);
}

/* A pinned buffer for bytes, filled from src; rows of width bytes, pitch apart. */
static int staged_new(struct rt_stream *stream, const unsigned char *src, size_t pitch,
		      size_t width, size_t height, struct rt_staged **ret_staged)
{
	struct rt_staged *staged;
	int r;

	rt_staged_reap(stream, false);
	while (stream->staged && stream->staged_bytes + width * height > STAGE_HELD) {
		r = rt_stream_wait(stream, atomic_load(&stream->ring), stream->staged->target, -1);
		if (r)
			return r;
		rt_staged_reap(stream, false);
	}
	staged = malloc(sizeof(*staged));
	if (!staged)
		return rt_error(ACL_ERROR_RT_MEMORY_ALLOCATION, "EL0004", "out of host memory");
	r = rt_alloc(stream->space, DRV_MEM_HOST, width * height, 0, &staged->address);
	if (r) {
		free(staged);
		return rt_error_drv(r, "no pinned memory for the copy");
	}
	staged->bytes = width * height;
	staged->next = NULL;
	for (size_t y = 0; y < height; y++)
		memcpy((unsigned char *)staged->address + y * width, src + y * pitch, width);
	*ret_staged = staged;
	return 0;
}

static void staged_submit(struct rt_stream *stream, struct rt_staged *staged)
{
	staged->target = drv_ring_submit(atomic_load(&stream->ring));
	*stream->staged_end = staged;
	stream->staged_end = &staged->next;
	stream->staged_bytes += staged->bytes;
}

static void staged_cancel(struct rt_staged *staged)
{
	struct drv_block *block = drv_block_get((void *)staged->address);

	if (block) {
		rt_release(block, staged->address);
		drv_block_put(block);
	}
	free(staged);
}

struct copy {
	unsigned char *dst;
	const unsigned char *src;
	size_t dst_pitch, src_pitch, width, height; /* plain copy: height 1 */
};

static void entry_copy(struct npu_entry *entry, const struct copy *copy)
{
	if (copy->height == 1) {
		entry->op = NPU_OP_COPY;
		entry->copy.dst = (uintptr_t)copy->dst;
		entry->copy.src = (uintptr_t)copy->src;
		entry->copy.bytes = copy->width;
		return;
	}
	entry->op = NPU_OP_COPY2D;
	entry->copy2d.dst = (uintptr_t)copy->dst;
	entry->copy2d.src = (uintptr_t)copy->src;
	entry->copy2d.dst_pitch = copy->dst_pitch;
	entry->copy2d.src_pitch = copy->src_pitch;
	entry->copy2d.width = copy->width;
	entry->copy2d.height = copy->height;
}

/* Both sides are reached by the device. */
static int copy_queued(struct rt_stream *stream, void *handle, const struct copy *copy)
{
	struct npu_entry *entry;
	int r = rt_stream_begin(stream, handle);

	if (r)
		return r;
	r = rt_stream_reserve(stream, 0, &entry, NULL);
	if (!r) {
		entry_copy(entry, copy);
		drv_ring_submit(atomic_load(&stream->ring));
	}
	rt_stream_unlock(stream);
	return r;
}

static int staged_piece(struct rt_stream *stream, const struct copy *copy)
{
	struct copy piece = *copy;
	struct rt_staged *staged = NULL;
	struct npu_entry *entry;
	int r = staged_new(stream, copy->src, copy->src_pitch, copy->width, copy->height, &staged);

	if (r)
		return r;
	/* Reserved after the buffer exists: the entry names a map generation that has it. */
	r = rt_stream_reserve(stream, 0, &entry, NULL);
	if (r) {
		staged_cancel(staged);
		return r;
	}
	piece.src = (unsigned char *)staged->address;
	piece.src_pitch = copy->width;
	entry_copy(entry, &piece);
	staged_submit(stream, staged);
	return 0;
}

/* From pageable memory, of at most STAGE_MAX bytes. */
static int copy_staged(struct rt_stream *stream, void *handle, const struct copy *copy)
{
	int r = rt_stream_begin(stream, handle);

	if (r)
		return r;
	if (copy->height > 1) {
		r = staged_piece(stream, copy);
	} else {
		for (size_t at = 0; !r && at < copy->width; at += STAGE_PIECE) {
			struct copy piece = *copy;

			piece.dst += at;
			piece.src += at;
			piece.width =
				copy->width - at < STAGE_PIECE ? copy->width - at : STAGE_PIECE;
			r = staged_piece(stream, &piece);
		}
	}
	rt_stream_unlock(stream);
	return r;
}

/* Complete on return: what the stream holds goes first. */
static int copy_waits(struct rt_stream *stream, const struct copy *copy)
{
	struct drv_ring *ring = atomic_load(&stream->ring);
	int r = rt_fault_sticky(stream);

	if (!r && ring)
		r = rt_stream_wait(stream, ring, drv_ring_target(ring), -1);
	if (r)
		return r;
	return copy->height == 1 ? rt_memcpy(copy->dst, copy->src, copy->width) :
				   rt_memcpy2d(copy->dst, copy->dst_pitch, copy->src,
					       copy->src_pitch, copy->width, copy->height);
}

static int copy_async(const struct copy *copy, size_t dst_bytes, size_t src_bytes, void *handle)
{
	struct rt_stream *stream = NULL;
	struct rt_range dst, src;
	size_t stage_max = copy->height == 1 ? STAGE_MAX : STAGE_PIECE;
	int r = rt_stream_find(handle, &stream);

	if (!r)
		r = rt_range_get(copy->dst, dst_bytes, &dst);
	if (r)
		return r;
	r = rt_range_get(copy->src, src_bytes, &src);
	if (r) {
		rt_range_put(&dst);
		return r;
	}
	if ((dst.block && dst.block->space != stream->space) ||
	    (src.block && src.block->space != stream->space))
		r = rt_error(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "EE1001",
			     "the copy touches memory of "
			     "another device than the stream's (%d)",
			     stream->device->id);
	else if (!dst.device && !src.device && (!dst.block || !src.block))
		r = rt_error(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "EE1001",
			     "a queued copy from host to host "
			     "needs pinned memory on both sides");
	else if (dst.block && src.block)
		r = copy_queued(stream, handle, copy);
	else if (!src.block && copy->width * copy->height <= stage_max)
		r = copy_staged(stream, handle, copy);
	else
		r = copy_waits(stream, copy);
	rt_range_put(&dst);
	rt_range_put(&src);
	return r;
}

int rt_memcpy_async(void *dst, const void *src, size_t count, void *stream)
{
	struct copy copy = {
		.dst = dst,
		.src = src,
		.dst_pitch = count,
		.src_pitch = count,
		.width = count,
		.height = 1,
	};

	return copy_async(&copy, count, count, stream);
}

int rt_memcpy2d_async(void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width,
		      size_t height, void *stream)
{
	struct copy copy = {
		.dst = dst,
		.src = src,
		.dst_pitch = dst_pitch,
		.src_pitch = src_pitch,
		.width = width,
		.height = height,
	};
	size_t dst_bytes, src_bytes;

	if (__builtin_mul_overflow(dst_pitch, height - 1, &dst_bytes) ||
	    __builtin_add_overflow(dst_bytes, width, &dst_bytes) ||
	    __builtin_mul_overflow(src_pitch, height - 1, &src_bytes) ||
	    __builtin_add_overflow(src_bytes, width, &src_bytes))
		return rt_error(ACL_ERROR_RT_PARAM_INVALID, "EE1001",
				"%zu rows of pitch %zu and %zu are "
				"more than an address space",
				height, dst_pitch, src_pitch);
	return copy_async(&copy, dst_bytes, src_bytes, stream);
}

int rt_memset_async(void *address, int32_t value, size_t count, void *handle)
{
	struct rt_stream *stream = NULL;
	struct npu_entry *entry;
	struct rt_range dst;
	int r = rt_stream_find(handle, &stream);

	if (!r)
		r = rt_range_get(address, count, &dst);
	if (r)
		return r;
	if (!dst.block || dst.block->space != stream->space)
		r = rt_error(ACL_ERROR_RT_PARAM_INVALID, "EE1001",
			     "%p is not memory that device %d "
			     "reaches",
			     address, stream->device->id);
	if (!r)
		r = rt_stream_begin(stream, handle);
	if (!r) {
		r = rt_stream_reserve(stream, 0, &entry, NULL);
		if (!r) {
			entry->op = NPU_OP_FILL;
			entry->fill.dst = (uintptr_t)address;
			entry->fill.bytes = count;
			entry->fill.value = (uint8_t)value;
			entry->fill.width = 1;
			drv_ring_submit(atomic_load(&stream->ring));
		}
		rt_stream_unlock(stream);
	}
	rt_range_put(&dst);
	return r;
}
