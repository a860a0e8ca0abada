/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stream is virtual until its first task, when npud makes a queue for it. The ring structure is
 * kept with the slot for the next stream there, since a late waiter may still look at it; only when
 * one does at that moment is it left alone and another taken.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#include "client/drv/drv_caps.h"
#include "client/rt/internal.h"

struct drv_handles rt_streams = DRV_HANDLES_INIT(2, RT_MAX_STREAMS, struct rt_stream);

static int stream_unknown(const void *handle)
{
	return rt_error(ACL_ERROR_RT_STREAM_CONTEXT, "EE1001",
			"%p is not a stream of this process, or "
			"was destroyed",
			handle);
}

int rt_stream_new(struct rt_context *context, uint32_t priority, uint32_t flags, bool is_default,
		  void **ret_handle)
{
	struct rt_device *device = context->device;
	struct rt_stream *stream = NULL;

	if (atomic_fetch_add(&device->streams, 1) >= device->info.max_queues) {
		atomic_fetch_sub(&device->streams, 1);
		return rt_error(ACL_ERROR_RT_NO_STREAM_RESOURCE, "EE1003",
				"no stream left: device %d "
				"gives %u to a process",
				device->id, device->info.max_queues);
	}
	stream = drv_handle_new(&rt_streams);
	if (!stream) {
		atomic_fetch_sub(&device->streams, 1);
		return rt_error(ACL_ERROR_RT_NO_STREAM_RESOURCE, "EE1003",
				"no stream left: %u exist", RT_MAX_STREAMS);
	}
	if (!stream->lock_made) {
		pthread_mutex_init(&stream->lock, NULL);
		stream->lock_made = true;
	}
	stream->context = context;
	stream->device = device;
	stream->space = context->space;
	stream->priority = priority;
	stream->flags = flags;
	stream->fail_mode = RT_FAIL_CONTINUE;
	stream->is_default = is_default;
	stream->errors_seen = 0;
	stream->staged = NULL;
	stream->staged_end = &stream->staged;
	stream->staged_bytes = 0;
	stream->callbacks = NULL;
	stream->callbacks_end = &stream->callbacks;
	stream->report_thread = 0;
	stream->callback_seq = 0;
	atomic_store(&stream->callbacks_done, 0);
	stream->handle = drv_handle_publish(&rt_streams, stream);
	*ret_handle = stream->handle;
	return 0;
}

/* Makes the queue. The lock is held. */
static int stream_make_ring(struct rt_stream *stream)
{
	struct drv_space *space = stream->space;
	struct drv_ring *ring = stream->spare_ring;
	uint32_t slot;
	int r;

	if (ring && atomic_load_explicit(&ring->waiters, memory_order_acquire))
		ring = NULL; /* a waiter still looks at it: it is left as it is */
	if (!ring)
		ring = aligned_alloc(64, (sizeof(*ring) + 63) & ~(size_t)63);
	if (!ring)
		return rt_error(ACL_ERROR_RT_MEMORY_ALLOCATION, "EL0004", "out of host memory");
	stream->spare_ring = ring;
	r = drv_call_queue_create(stream->context->ctx, stream->priority, stream->fail_mode,
				  &stream->queue, &slot);
	if (r == -EUSERS)
		return rt_error(ACL_ERROR_RT_NO_STREAM_RESOURCE, "EE1003",
				"no queue left for the stream: "
				"%s",
				drv_error()->text);
	if (r)
		return rt_error_drv(r, "cannot make a queue for the stream");
	if (slot >= NPU_MAX_QUEUES)
		return rt_error(ACL_ERROR_RT_DRV_INTERNAL_ERROR, "EL0003",
				"npud gave the queue slot %u, "
				"which cannot be",
				slot);
	drv_ring_init(ring, space->slab, slot, space->slab_address, space->doorbell,
		      &space->waitroom, &space->generation);
	atomic_store_explicit(&stream->errors_seen, drv_ring_errors(ring), memory_order_relaxed);
	atomic_store_explicit(&stream->ring, ring, memory_order_release);
	return 0;
}

int rt_stream_find(void *handle, struct rt_stream **ret_stream)
{
	struct rt_stream *stream = NULL;

	RT_ALIVE();
	if (!handle) {
		struct rt_context *context;
		int r = rt_current(&context);

		if (r)
			return r;
		handle = context->default_stream;
	}
	stream = drv_handle_get(&rt_streams, handle);
	if (!stream)
		return stream_unknown(handle);
	*ret_stream = stream;
	return 0;
}

int rt_stream_begin(struct rt_stream *stream, void *handle)
{
	int r = 0;

	pthread_mutex_lock(&stream->lock);
	if (!drv_handle_live(stream, rt_stream_handle(stream, handle)))
		r = stream_unknown(handle);
	if (!r)
		r = rt_fault_sticky(stream);
	if (!r && !atomic_load_explicit(&stream->ring, memory_order_relaxed))
		r = stream_make_ring(stream);
	if (r)
		pthread_mutex_unlock(&stream->lock);
	return r;
}

int rt_stream_reserve(struct rt_stream *stream, size_t args, struct npu_entry **ret_entry,
		      uint64_t *ret_offset)
{
	struct drv_ring *ring = atomic_load_explicit(&stream->ring, memory_order_relaxed);
	int r = drv_ring_reserve(ring, args, ret_entry, ret_offset);

	if (__builtin_expect(!r, 1))
		return 0;
	if (r == -EIO)
		return rt_error_lost(stream->space, (uint32_t)stream->device->id);
	if (r == -EMSGSIZE)
		return rt_error(ACL_ERROR_RT_PARAM_INVALID, "EE1001",
				"%zu bytes of arguments, the limit "
				"is %u",
				args, NPU_MAX_ARGS);
	return stream_unknown(stream->handle);
}

int rt_stream_create(uint32_t priority, uint32_t flags, void **ret_stream)
{
	struct rt_context *context = NULL;
	int r = rt_current(&context);

	if (r)
		return r;
	if (priority >= RT_PRIORITIES)
		return rt_error(ACL_ERROR_RT_PARAM_INVALID, "EE1001",
				"priority %u of a stream: 0 (highest) "
				"to %u",
				priority, RT_PRIORITIES - 1);
	return rt_stream_new(context, priority, flags, false, ret_stream);
}

int rt_stream_wait(struct rt_stream *stream, struct drv_ring *ring, uint64_t target,
		   int32_t timeout_ms)
{
	int r = drv_wait_ring(&stream->space->waitroom, ring, target, rt_deadline(timeout_ms));

	switch (r) {
	case 0:
		return 0;
	case -ETIMEDOUT:
		return rt_error(ACL_ERROR_RT_STREAM_SYNC_TIMEOUT, "EE1002",
				"stream %u has not come to "
				"its end within %d ms",
				stream->object.slot, timeout_ms);
	case -EIO:
		return rt_error_lost(stream->space, (uint32_t)stream->device->id);
	default:
		return rt_error(ACL_ERROR_RT_STREAM_CONTEXT, "EE1001",
				"stream %u was destroyed while a "
				"thread waited for it",
				stream->object.slot);
	}
}

void rt_stream_end(struct rt_stream *stream, void *handle, bool force)
{
	struct drv_space *space = stream->space;
	struct drv_ring *ring = atomic_load(&stream->ring);

	if (ring && !force)
		drv_wait_ring(&space->waitroom, ring, drv_ring_target(ring), DRV_FOREVER);
	if (!drv_handle_retire(&rt_streams, stream, handle))
		return;
	/* From here on no producer gets in; the one that is inside is waited for. */
	if (ring) {
		atomic_store(&ring->dead, true);
		drv_waitroom_wake(&space->waitroom);
	}
	pthread_mutex_lock(&stream->lock);
	if (atomic_exchange(&stream->ring, NULL))
		drv_call_queue_destroy(stream->queue);
	rt_staged_reap(stream, true);
	rt_callback_drop(stream);
	pthread_mutex_unlock(&stream->lock);
	atomic_fetch_sub(&stream->device->streams, 1);
	drv_handle_free(&rt_streams, stream);
}

int rt_stream_destroy(void *handle, bool force)
{
	struct rt_context *context = NULL;
	struct rt_stream *stream = NULL;
	int r = rt_current(&context);

	if (!r)
		r = rt_stream_find(handle, &stream);
	if (r)
		return r;
	if (stream->context != context)
		return rt_error(ACL_ERROR_RT_STREAM_CONTEXT, "EE1001",
				"stream %p belongs to another "
				"context than the current one",
				handle);
	if (stream->is_default)
		return rt_error(ACL_ERROR_RT_STREAM_CONTEXT, "EE1001",
				"the default stream of a context "
				"cannot be destroyed");
	rt_stream_end(stream, handle, force);
	return 0;
}

int rt_stream_sync(void *handle, int32_t timeout_ms)
{
	struct rt_stream *stream = NULL;
	struct drv_ring *ring;
	int r = rt_stream_find(handle, &stream);

	if (r)
		return r;
	ring = atomic_load_explicit(&stream->ring, memory_order_acquire);
	if (ring) {
		r = rt_stream_wait(stream, ring, drv_ring_target(ring), timeout_ms);
		if (r)
			return r;
	}
	return rt_fault_take(stream);
}

int rt_stream_query(void *handle, bool *ret_complete)
{
	struct rt_stream *stream = NULL;
	struct drv_ring *ring;
	int r = rt_stream_find(handle, &stream);

	if (r)
		return r;
	if (drv_space_lost(stream->space))
		return rt_error_lost(stream->space, (uint32_t)stream->device->id);
	ring = atomic_load(&stream->ring);
	*ret_complete = !ring || drv_ring_done(ring) >= drv_ring_target(ring);
	return 0;
}

int rt_stream_id(void *handle, int32_t *ret_id)
{
	struct rt_stream *stream = NULL;
	int r = rt_stream_find(handle, &stream);

	if (!r)
		*ret_id = (int32_t)stream->object.slot;
	return r;
}

int rt_stream_priority(void *handle, uint32_t *ret_priority)
{
	struct rt_stream *stream = NULL;
	int r = rt_stream_find(handle, &stream);

	if (!r)
		*ret_priority = stream->priority;
	return r;
}

int rt_stream_available(uint32_t *ret_count)
{
	struct rt_context *context = NULL;
	uint32_t used;
	int r = rt_current(&context);

	if (r)
		return r;
	used = atomic_load(&context->device->streams);
	*ret_count = used < context->device->info.max_queues ?
			     context->device->info.max_queues - used :
			     0;
	return 0;
}

/*
 * npud's reply does not wait for the engine: work that is queued now could still run under the old
 * mode. The device tells when the new one is in force; a device that is too busy to do so within the
 * limit has the change in its hands and needs no more from us.
 */
static void await_fail_mode(const struct rt_stream *stream, enum rt_fail_mode mode)
{
	const struct drv_ring *ring = atomic_load(&stream->ring);
	uint64_t limit = drv_now_ns() + 2000000000ull;

	while (__atomic_load_n(&ring->ctrl->fail_mode, __ATOMIC_ACQUIRE) != mode &&
	       !atomic_load(&ring->room->lost) && drv_now_ns() < limit)
		poll(NULL, 0, 1);
}

int rt_stream_set_fail_mode(void *handle, enum rt_fail_mode mode)
{
	struct rt_stream *stream = NULL;
	uint32_t epoch;
	int r = rt_stream_find(handle, &stream);

	if (r)
		return r;
	if (stream->fail_mode == mode)
		return 0;
	if (stream->fail_mode == RT_FAIL_STOP)
		return rt_error(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "EE1001",
				"stream %u stops at failures: "
				"there is no way back",
				stream->object.slot);
	pthread_mutex_lock(&stream->lock);
	if (!drv_handle_live(stream, rt_stream_handle(stream, handle)))
		r = stream_unknown(handle);
	else if (atomic_load(&stream->ring)) {
		r = drv_call_queue_ctrl(stream->queue, DRV_QUEUE_SET_FAIL_MODE, mode, &epoch);
		if (r)
			r = rt_error_drv(r, "cannot set the failure mode");
		else
			await_fail_mode(stream, mode);
	}
	if (!r)
		stream->fail_mode = mode;
	pthread_mutex_unlock(&stream->lock);
	return r;
}
