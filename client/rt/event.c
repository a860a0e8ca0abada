/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An event has a word in the slab from its first record on. A record names a value that rises with
 * each record of that word. While a record is pending, another on a different stream takes a new
 * word: records of two streams may complete in any order, and a word must not fall back. A word
 * whose last record is still pending waits in limbo before it serves another event.
 */
#include <errno.h>
#include <stdlib.h>

#include "acl/acl_rt.h"
#include "client/rt/internal.h"

#define LIMBO 256u /* words that may wait there */

struct drv_handles rt_events = DRV_HANDLES_INIT(3, RT_MAX_EVENTS, struct rt_event);

static struct limbo_word {
	struct drv_space *space;
	uint32_t index, value;
} limbo[LIMBO];
static unsigned nlimbo;
static pthread_mutex_t limbo_lock = PTHREAD_MUTEX_INITIALIZER;

static bool word_reached(const struct drv_space *space, uint32_t index, uint32_t value)
{
	const struct npu_event_word *word = drv_space_event(space, index);

	return (int32_t)(__atomic_load_n(&word->done, __ATOMIC_ACQUIRE) - value) >= 0;
}

/* Gives back the words of limbo that are reached. */
static void limbo_sweep(void)
{
	for (unsigned i = 0; i < nlimbo;) {
		if (word_reached(limbo[i].space, limbo[i].index, limbo[i].value)) {
			drv_space_event_put(limbo[i].space, limbo[i].index);
			limbo[i] = limbo[--nlimbo];
		} else {
			i++;
		}
	}
}

/* The word is not needed by its event any more. With a full limbo it is lost until the end. */
static void word_release(struct drv_space *space, uint32_t index, uint32_t value)
{
	pthread_mutex_lock(&limbo_lock);
	limbo_sweep();
	if (word_reached(space, index, value))
		drv_space_event_put(space, index);
	else if (nlimbo < LIMBO)
		limbo[nlimbo++] = (struct limbo_word){ space, index, value };
	pthread_mutex_unlock(&limbo_lock);
}

void rt_event_drop_space(struct drv_space *space)
{
	struct rt_event *event;
	uint32_t cursor = 0;

	pthread_mutex_lock(&limbo_lock);
	for (unsigned i = 0; i < nlimbo;) {
		if (limbo[i].space == space)
			limbo[i] = limbo[--nlimbo];
		else
			i++;
	}
	pthread_mutex_unlock(&limbo_lock);
	while ((event = drv_handle_next(&rt_events, &cursor)))
		if (event->space == space &&
		    drv_handle_retire(&rt_events, event, drv_handle_of(&rt_events, event)))
			drv_handle_free(&rt_events, event);
}

static int event_unknown(const void *handle)
{
	return rt_error(ACL_ERROR_RT_INVALID_HANDLE, "EE1001",
			"%p is not an event of this process, or "
			"was destroyed",
			handle);
}

/* On success the event's lock is held. */
static int event_lock(void *handle, struct rt_event **ret_event)
{
	struct rt_event *event;

	RT_ALIVE();
	event = drv_handle_get(&rt_events, handle);
	if (!event)
		return event_unknown(handle);
	pthread_mutex_lock(&event->lock);
	if (!drv_handle_live(event, handle)) {
		pthread_mutex_unlock(&event->lock);
		return event_unknown(handle);
	}
	*ret_event = event;
	return 0;
}

int rt_event_create(uint32_t flags, bool ex, void **ret_event)
{
	struct rt_context *context = NULL;
	struct rt_event *event;
	int r = rt_current(&context);

	if (r)
		return r;
	event = drv_handle_new(&rt_events);
	if (!event)
		return rt_error(ACL_ERROR_RT_NO_EVENT_RESOURCE, "EE1003", "no event left: %u exist",
				RT_MAX_EVENTS);
	if (!event->lock_made) {
		pthread_mutex_init(&event->lock, NULL);
		event->lock_made = true;
	}
	event->device = context->device;
	event->space = context->space;
	event->flags = flags;
	event->ex = ex;
	event->recorded = event->has_word = false;
	*ret_event = drv_handle_publish(&rt_events, event);
	return 0;
}

int rt_event_destroy(void *handle)
{
	struct rt_event *event = NULL;
	int r = event_lock(handle, &event);

	if (r)
		return r;
	drv_handle_retire(&rt_events, event, handle);
	if (event->has_word)
		word_release(event->space, event->index, event->value);
	pthread_mutex_unlock(&event->lock);
	drv_handle_free(&rt_events, event);
	return 0;
}

/* A word for the next record on stream; the event's lock is held. */
static int event_take_word(struct rt_event *event, const struct rt_stream *stream)
{
	uint32_t index;
	int r;

	if (event->has_word &&
	    (event->stream == stream || word_reached(event->space, event->index, event->value)))
		return 0;
	pthread_mutex_lock(&limbo_lock);
	limbo_sweep();
	pthread_mutex_unlock(&limbo_lock);
	r = drv_space_event_get(event->space, &index);
	if (r)
		return rt_error(ACL_ERROR_RT_NO_EVENT_RESOURCE, "EE1003",
				"no event left: device %d gives "
				"%u to a process",
				event->device->id, NPU_MAX_EVENTS);
	if (event->has_word)
		word_release(event->space, event->index, event->value);
	event->index = index;
	event->value =
		__atomic_load_n(&drv_space_event(event->space, index)->issued, __ATOMIC_RELAXED);
	event->has_word = true;
	return 0;
}

int rt_event_record(void *handle, void *stream_handle)
{
	struct rt_event *event = NULL;
	struct rt_stream *stream = NULL;
	struct npu_entry *entry;
	int r = rt_stream_find(stream_handle, &stream);

	if (!r)
		r = event_lock(handle, &event);
	if (r)
		return r;
	if (event->device != stream->device) {
		pthread_mutex_unlock(&event->lock);
		return rt_error(ACL_ERROR_RT_STREAM_CONTEXT, "EE1001",
				"the event is of device %d, the "
				"stream of device %d",
				event->device->id, stream->device->id);
	}
	r = event_take_word(event, stream);
	if (!r)
		r = rt_stream_begin(stream, stream_handle);
	if (!r) {
		r = rt_stream_reserve(stream, 0, &entry, NULL);
		if (!r) {
			struct npu_event_word *word = drv_space_event(event->space, event->index);
			struct drv_ring *ring = atomic_load(&stream->ring);

			entry->op = NPU_OP_EVENT_RECORD;
			entry->event.index = event->index;
			entry->event.value = ++event->value;
			__atomic_store_n(&word->issued, event->value, __ATOMIC_RELAXED);
			event->target = drv_ring_submit(ring);
			event->ring = ring;
			event->stream = stream;
			event->stream_handle = stream->handle;
			event->recorded = true;
		}
		rt_stream_unlock(stream);
	}
	pthread_mutex_unlock(&event->lock);
	return r;
}

int rt_event_query(void *handle, bool *ret_complete)
{
	struct rt_event *event = NULL;
	int r = event_lock(handle, &event);

	if (r)
		return r;
	if (drv_space_lost(event->space))
		r = rt_error_lost(event->space, (uint32_t)event->device->id);
	else
		*ret_complete = event->recorded ?
					word_reached(event->space, event->index, event->value) :
					event->ex;
	pthread_mutex_unlock(&event->lock);
	return r;
}

/* What the stream of a completed record has to tell. */
static int event_fault(const struct rt_event *event)
{
	return drv_handle_live(event->stream, event->stream_handle) ? rt_fault_take(event->stream) :
								      0;
}

int rt_event_sync(void *handle, int32_t timeout_ms)
{
	struct rt_event *event = NULL;
	struct rt_event copy;
	int r = event_lock(handle, &event);

	if (r)
		return r;
	copy.device = event->device;
	copy.space = event->space;
	copy.index = event->index;
	copy.value = event->value;
	copy.recorded = event->recorded;
	copy.ex = event->ex;
	copy.stream = event->stream;
	copy.stream_handle = event->stream_handle;
	copy.ring = event->ring;
	copy.target = event->target;
	if (copy.recorded && !word_reached(copy.space, copy.index, copy.value))
		atomic_fetch_add(&copy.ring->waiters, 1);
	else
		copy.ring = NULL;
	pthread_mutex_unlock(&event->lock);
	if (!copy.recorded)
		return copy.ex ? 0 :
				 rt_error(ACL_ERROR_RT_INTERNAL_ERROR, "EE1001",
					  "the event was never "
					  "recorded");
	if (!copy.ring)
		return event_fault(&copy);

	r = drv_handle_live(copy.stream, copy.stream_handle) ?
		    drv_wait_ring(&copy.space->waitroom, copy.ring, copy.target,
				  rt_deadline(timeout_ms)) :
		    -ECANCELED;
	atomic_fetch_sub(&copy.ring->waiters, 1);
	if (!r || word_reached(copy.space, copy.index, copy.value))
		return event_fault(&copy);
	switch (r) {
	case -ETIMEDOUT:
		return rt_error(ACL_ERROR_RT_EVENT_SYNC_TIMEOUT, "EE1002",
				"the event has not come within "
				"%d ms",
				timeout_ms);
	case -EIO:
		return rt_error_lost(copy.space, (uint32_t)copy.device->id);
	default:
		return rt_error(ACL_ERROR_RT_STREAM_ABORT, "EE1001",
				"the stream of the event's record was "
				"destroyed before it came to it");
	}
}

/* Time of a completed record. */
static int event_time(void *handle, const char *which, uint64_t *ret_ns)
{
	struct rt_event *event = NULL;
	int r = event_lock(handle, &event);

	if (r)
		return r;
	if (!event->recorded)
		r = rt_error(ACL_ERROR_RT_INTERNAL_ERROR, "EE1001",
			     "the %s event was never recorded", which);
	else if (!(event->flags & ACL_EVENT_TIME_LINE))
		r = rt_error(ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID, "EE1001",
			     "the %s event has no time "
			     "stamp: create it with ACL_EVENT_TIME_LINE",
			     which);
	else if (!word_reached(event->space, event->index, event->value))
		r = rt_error(ACL_ERROR_RT_EVENT_NOT_COMPLETE, "EE1001",
			     "the %s event has not come yet", which);
	else
		*ret_ns = __atomic_load_n(&drv_space_event(event->space, event->index)->time_ns,
					  __ATOMIC_RELAXED);
	pthread_mutex_unlock(&event->lock);
	return r;
}

int rt_event_elapsed(void *start, void *end, float *ret_ms)
{
	uint64_t from = 0, to = 0;
	int r = event_time(start, "start", &from);

	if (!r)
		r = event_time(end, "end", &to);
	if (!r)
		*ret_ms = (float)((double)(int64_t)(to - from) / 1e6);
	return r;
}

int rt_stream_wait_event(void *stream_handle, void *handle)
{
	struct rt_event *event = NULL;
	struct rt_stream *stream = NULL;
	struct npu_entry *entry;
	uint32_t index, value;
	bool needed;
	int r = rt_stream_find(stream_handle, &stream);

	if (!r)
		r = event_lock(handle, &event);
	if (r)
		return r;
	index = event->index;
	value = event->value;
	needed = event->recorded;
	if (event->device != stream->device)
		r = rt_error(ACL_ERROR_RT_STREAM_CONTEXT, "EE1001",
			     "the event is of device %d, the stream "
			     "of device %d",
			     event->device->id, stream->device->id);
	else if (!event->ex && !(event->flags & ACL_EVENT_SYNC))
		r = rt_error(ACL_ERROR_RT_PARAM_INVALID, "EE1001",
			     "no stream can wait for this event: "
			     "create it with ACL_EVENT_SYNC");
	/* The word must not be given to another event before the wait is queued. */
	if (!r && needed)
		r = rt_stream_begin(stream, stream_handle);
	if (!r && needed) {
		r = rt_stream_reserve(stream, 0, &entry, NULL);
		if (!r) {
			entry->op = NPU_OP_EVENT_WAIT;
			entry->event.index = index;
			entry->event.value = value;
			entry->event.timeout_ms = (uint32_t)atomic_load(&rt_wait_timeout_ms);
			drv_ring_submit(atomic_load(&stream->ring));
		}
		rt_stream_unlock(stream);
	}
	pthread_mutex_unlock(&event->lock);
	return r;
}
