/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A callback is a ring entry with a sequence number; what to call stays here, in the stream's list,
 * so nothing that the device can write is ever called. The device posts the number in the ring's
 * host_seq; all callbacks up to it are due. They run on the thread that the stream is subscribed
 * to, or on one thread of the library a space, made at the first need.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>

#include "client/rt/internal.h"

struct runner {
	struct drv_space *space; /* NULL: free row */
	pthread_t thread;
	_Atomic bool stop;
};

/* Who looks for due callbacks: a space's runner (thread 0), or a subscribed thread. */
struct watcher {
	struct drv_space *space;
	uint64_t thread;
	const struct runner *runner;
};

static struct runner runners[RT_MAX_DEVICES];
static pthread_mutex_t callback_lock = PTHREAD_MUTEX_INITIALIZER;

static bool stream_due(struct rt_stream *stream)
{
	struct drv_ring *ring = atomic_load_explicit(&stream->ring, memory_order_acquire);

	return ring && __atomic_load_n(&ring->ctrl->host_seq, __ATOMIC_ACQUIRE) >
			       atomic_load_explicit(&stream->callbacks_done, memory_order_acquire);
}

static bool watches(const struct watcher *watcher, struct rt_stream *stream)
{
	return stream->space == watcher->space &&
	       atomic_load(&stream->report_thread) == watcher->thread;
}

static bool watcher_ready(void *arg)
{
	const struct watcher *watcher = arg;
	struct rt_stream *stream;
	uint32_t cursor = 0;
	bool any = false;

	if (watcher->runner && atomic_load(&watcher->runner->stop))
		return true;
	while ((stream = drv_handle_next(&rt_streams, &cursor))) {
		if (!watches(watcher, stream))
			continue;
		any = true;
		if (stream_due(stream))
			return true;
	}
	return !any && !watcher->runner; /* unsubscribed meanwhile */
}

/* Runs what is due on one stream; whether there was anything. */
static bool stream_run(struct rt_stream *stream)
{
	bool ran = false;

	for (;;) {
		struct rt_callback *callback = NULL;
		struct drv_ring *ring;
		uint64_t seq;

		pthread_mutex_lock(&callback_lock);
		ring = atomic_load(&stream->ring);
		seq = ring ? __atomic_load_n(&ring->ctrl->host_seq, __ATOMIC_ACQUIRE) : 0;
		if (stream->callbacks && stream->callbacks->seq <= seq) {
			callback = stream->callbacks;
			stream->callbacks = callback->next;
			if (!stream->callbacks)
				stream->callbacks_end = &stream->callbacks;
			atomic_store(&stream->callbacks_done, callback->seq);
		} else if (seq > atomic_load(&stream->callbacks_done)) {
			/* A number that was never given out: the ring was scribbled on. */
			atomic_store(&stream->callbacks_done, seq);
		}
		pthread_mutex_unlock(&callback_lock);
		if (!callback)
			return ran;
		callback->fn(callback->arg);
		ran = true;
		/* The ring's memory stays; after the stream's end nobody reads the reply. */
		if (atomic_load(&stream->ring) == ring) {
			__atomic_store_n(&ring->ctrl->host_reply, callback->seq, __ATOMIC_RELEASE);
			drv_ring_kick(ring);
		}
		free(callback);
	}
}

static bool watcher_run(const struct watcher *watcher)
{
	struct rt_stream *stream;
	uint32_t cursor = 0;
	bool ran = false;

	while ((stream = drv_handle_next(&rt_streams, &cursor)))
		if (watches(watcher, stream) && stream_due(stream))
			ran |= stream_run(stream);
	return ran;
}

static void *runner_main(void *arg)
{
	struct runner *runner = arg;
	struct watcher watcher = { .space = runner->space, .runner = runner };

	while (!atomic_load(&runner->stop)) {
		if (watcher_run(&watcher))
			continue;
		if (drv_wait_host_call(&runner->space->waitroom, watcher_ready, &watcher,
				       DRV_FOREVER))
			break; /* device lost */
	}
	return NULL;
}

static int runner_start(struct drv_space *space)
{
	struct runner *row = NULL;
	sigset_t all, old;
	int r = 0;

	pthread_mutex_lock(&callback_lock);
	for (size_t i = 0; i < RT_MAX_DEVICES; i++) {
		if (runners[i].space == space) {
			pthread_mutex_unlock(&callback_lock);
			return 0;
		}
		if (!runners[i].space && !row)
			row = &runners[i];
	}
	if (row) {
		row->space = space;
		atomic_store(&row->stop, false);
		sigfillset(&all);
		pthread_sigmask(SIG_BLOCK, &all, &old);
		r = pthread_create(&row->thread, NULL, runner_main, row);
		pthread_sigmask(SIG_SETMASK, &old, NULL);
		if (r)
			row->space = NULL;
	}
	pthread_mutex_unlock(&callback_lock);
	return row && !r ? 0 :
			   rt_error(ACL_ERROR_RT_RESOURCE_ALLOC_FAIL, "EE1003",
				    "no thread for "
				    "callbacks");
}

void rt_callback_stop(struct drv_space *space)
{
	for (size_t i = 0; i < RT_MAX_DEVICES; i++) {
		if (runners[i].space != space)
			continue;
		atomic_store(&runners[i].stop, true);
		drv_waitroom_wake(&space->waitroom);
		pthread_join(runners[i].thread, NULL);
		runners[i].space = NULL;
	}
}

void rt_callback_drop(struct rt_stream *stream)
{
	pthread_mutex_lock(&callback_lock);
	while (stream->callbacks) {
		struct rt_callback *next = stream->callbacks->next;

		free(stream->callbacks);
		stream->callbacks = next;
	}
	stream->callbacks_end = &stream->callbacks;
	pthread_mutex_unlock(&callback_lock);
}

static int callback_queue(struct rt_stream *stream, void *handle, void (*fn)(void *arg), void *arg,
			  bool block)
{
	struct rt_callback *callback = malloc(sizeof(*callback));
	struct npu_entry *entry;
	int r;

	if (!callback)
		return rt_error(ACL_ERROR_RT_MEMORY_ALLOCATION, "EL0004", "out of host memory");
	r = rt_stream_begin(stream, handle);
	if (r) {
		free(callback);
		return r;
	}
	r = rt_stream_reserve(stream, 0, &entry, NULL);
	if (!r) {
		*callback = (struct rt_callback){ .fn = fn, .arg = arg, .block = block };
		pthread_mutex_lock(&callback_lock);
		callback->seq = ++stream->callback_seq;
		*stream->callbacks_end = callback;
		stream->callbacks_end = &callback->next;
		pthread_mutex_unlock(&callback_lock);
		entry->op = NPU_OP_HOST_CALL;
		entry->host.seq = stream->callback_seq;
		entry->host.blocking = block;
		drv_ring_submit(atomic_load(&stream->ring));
	} else {
		free(callback);
	}
	rt_stream_unlock(stream);
	return r;
}

int rt_host_func(void *handle, void (*fn)(void *arg), void *arg)
{
	struct rt_stream *stream = NULL;
	int r = rt_stream_find(handle, &stream);

	if (!r && !atomic_load(&stream->report_thread))
		r = runner_start(stream->space);
	return r ? r : callback_queue(stream, handle, fn, arg, true);
}

int rt_report_subscribe(uint64_t thread, void *handle)
{
	struct rt_stream *stream = NULL;
	uint64_t none = 0;
	int r = rt_stream_find(handle, &stream);

	if (r)
		return r;
	if (!thread)
		return rt_error(ACL_ERROR_RT_PARAM_INVALID, "EE1001",
				"0 is not the id of a thread");
	if (!atomic_compare_exchange_strong(&stream->report_thread, &none, thread))
		return rt_error(ACL_ERROR_RT_STREAM_SUBSCRIBE, "EE1001",
				"stream %u already has a thread "
				"for its callbacks",
				stream->object.slot);
	return 0;
}

int rt_report_unsubscribe(uint64_t thread, void *handle)
{
	struct rt_stream *stream = NULL;
	uint64_t expected = thread;
	int r = rt_stream_find(handle, &stream);

	if (r)
		return r;
	if (!thread || !atomic_compare_exchange_strong(&stream->report_thread, &expected, 0))
		return rt_error(ACL_ERROR_RT_THREAD_SUBSCRIBE, "EE1001",
				"that thread is not subscribed to "
				"stream %u",
				stream->object.slot);
	drv_waitroom_wake(&stream->space->waitroom);
	return 0;
}

int rt_report_launch(void *handle, void (*fn)(void *arg), void *arg, bool block)
{
	struct rt_stream *stream = NULL;
	int r = rt_stream_find(handle, &stream);

	if (r)
		return r;
	if (!atomic_load(&stream->report_thread))
		return rt_error(ACL_ERROR_RT_STREAM_NO_CB_REG, "EE1001",
				"stream %u has no thread for its "
				"callbacks: call aclrtSubscribeReport",
				stream->object.slot);
	return callback_queue(stream, handle, fn, arg, block);
}

int rt_report_process(int32_t timeout_ms)
{
	uint64_t deadline = rt_deadline(timeout_ms);
	struct watcher watcher = { .thread = (uint64_t)pthread_self() };

	RT_ALIVE();
	for (;;) {
		struct rt_stream *stream;
		uint32_t cursor = 0;
		int r;

		watcher.space = NULL;
		while (!watcher.space && (stream = drv_handle_next(&rt_streams, &cursor)))
			if (atomic_load(&stream->report_thread) == watcher.thread)
				watcher.space = stream->space;
		if (!watcher.space)
			return rt_error(ACL_ERROR_RT_THREAD_SUBSCRIBE, "EE1001",
					"this thread is not "
					"subscribed to the callbacks of a stream");
		if (watcher_run(&watcher))
			return 0;
		r = drv_wait_host_call(&watcher.space->waitroom, watcher_ready, &watcher, deadline);
		if (r == -ETIMEDOUT)
			return rt_error(ACL_ERROR_RT_REPORT_TIMEOUT, "EE1002",
					"no callback came within "
					"%d ms",
					timeout_ms);
		if (r == -EIO)
			return rt_error_lost(watcher.space, watcher.space->device);
	}
}
