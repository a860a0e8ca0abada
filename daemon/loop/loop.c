/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One event_base without libevent's locks: only loop_post() and loop_stop() are cross-thread, and
 * they go through a list under our own mutex and an eventfd. An idle loop sleeps in epoll_wait.
 */
#include "daemon/loop/loop.h"
#include "daemon/util/cleanup.h"

#include <errno.h>
#include <event2/event.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

struct loop {
	struct event_base *base;
	struct event *wake;
	int wake_fd;
	pthread_mutex_t lock; /* posts */
	struct loop_post *first, **last;
	_Atomic bool stop;
};

struct loop_fd {
	struct loop *loop;
	struct event *event;
	int fd;
	unsigned int events;
	loop_fd_fn *fn;
	void *arg;
};

struct loop_timer {
	struct event *event;
	loop_timer_fn *fn;
	void *arg;
};

struct loop_signal {
	struct event *event;
	loop_signal_fn *fn;
	void *arg;
};

void loop_run_posts(struct loop *loop)
{
	struct loop_post *post;

	pthread_mutex_lock(&loop->lock);
	post = loop->first;
	loop->first = NULL;
	loop->last = &loop->first;
	pthread_mutex_unlock(&loop->lock);
	while (post) {
		struct loop_post *next = post->next;

		post->run(post);
		post = next;
	}
}

static void on_wake(evutil_socket_t fd, short what, void *arg)
{
	struct loop *loop = arg;
	uint64_t count;

	(void)what;
	if (read(fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
		return;
	loop_run_posts(loop);
	if (atomic_load(&loop->stop))
		event_base_loopbreak(loop->base);
}

static void wake(struct loop *loop)
{
	uint64_t one = 1;
	int saved = errno;

	/* EAGAIN: the counter is full, so the loop is being woken already */
	while (write(loop->wake_fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
	errno = saved;
}

int loop_new(struct loop **ret_loop)
{
	struct loop *loop = calloc(1, sizeof(*loop));
	struct event_config *config;
	int r = -ENOMEM;

	if (!loop)
		return -ENOMEM;
	loop->last = &loop->first;
	pthread_mutex_init(&loop->lock, NULL);
	loop->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (loop->wake_fd < 0) {
		r = -errno;
		goto fail;
	}
	config = event_config_new();
	if (!config)
		goto fail;
	event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK);
	event_config_set_flag(config, EVENT_BASE_FLAG_PRECISE_TIMER);
	loop->base = event_base_new_with_config(config);
	event_config_free(config);
	if (!loop->base)
		goto fail;
	loop->wake = event_new(loop->base, loop->wake_fd, EV_READ | EV_PERSIST, on_wake, loop);
	if (!loop->wake || event_add(loop->wake, NULL) < 0)
		goto fail;
	*ret_loop = loop;
	return 0;
fail:
	loop_free(loop);
	return r;
}

void loop_free(struct loop *loop)
{
	if (!loop)
		return;
	while (loop->first)
		loop_run_posts(loop);
	if (loop->wake)
		event_free(loop->wake);
	if (loop->base)
		event_base_free(loop->base);
	if (loop->wake_fd >= 0)
		close(loop->wake_fd);
	pthread_mutex_destroy(&loop->lock);
	free(loop);
}

int loop_run(struct loop *loop)
{
	if (!atomic_load(&loop->stop) && event_base_loop(loop->base, EVLOOP_NO_EXIT_ON_EMPTY) < 0)
		return -EIO;
	atomic_store(&loop->stop, false);
	return 0;
}

void loop_stop(struct loop *loop)
{
	atomic_store(&loop->stop, true);
	wake(loop);
}

void loop_post(struct loop *loop, struct loop_post *post)
{
	bool first;

	post->next = NULL;
	pthread_mutex_lock(&loop->lock);
	first = !loop->first;
	*loop->last = post;
	loop->last = &post->next;
	/* with the lock held: loop_free() may follow as soon as the post has run */
	if (first)
		wake(loop);
	pthread_mutex_unlock(&loop->lock);
}

static void on_fd(evutil_socket_t fd, short what, void *arg)
{
	struct loop_fd *source = arg;
	unsigned int events = 0;

	if (what & EV_READ)
		events |= LOOP_READ;
	if (what & EV_WRITE)
		events |= LOOP_WRITE;
	source->fn(fd, events, source->arg);
}

static short fd_what(unsigned int events)
{
	short what = EV_PERSIST;

	if (events & LOOP_READ)
		what |= EV_READ;
	if (events & LOOP_WRITE)
		what |= EV_WRITE;
	return what;
}

int loop_fd_new(struct loop *loop, int fd, unsigned int events, loop_fd_fn *fn, void *arg,
		struct loop_fd **ret_source)
{
	struct loop_fd *source = calloc(1, sizeof(*source));
	int r;

	if (!source)
		return -ENOMEM;
	source->loop = loop;
	source->fd = fd;
	source->fn = fn;
	source->arg = arg;
	source->event = event_new(loop->base, fd, fd_what(0), on_fd, source);
	if (!source->event) {
		free(source);
		return -ENOMEM;
	}
	r = loop_fd_set(source, events);
	if (r < 0) {
		loop_fd_free(source);
		return r;
	}
	*ret_source = source;
	return 0;
}

int loop_fd_set(struct loop_fd *source, unsigned int events)
{
	if (events == source->events)
		return 0;
	event_del(source->event);
	source->events = 0;
	if (!events)
		return 0;
	if (event_assign(source->event, source->loop->base, source->fd, fd_what(events), on_fd,
			 source) < 0 ||
	    event_add(source->event, NULL) < 0)
		return errno ? -errno : -EIO;
	source->events = events;
	return 0;
}

void loop_fd_free(struct loop_fd *source)
{
	if (!source)
		return;
	event_free(source->event);
	free(source);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct loop_timer *timer = arg;

	(void)fd;
	(void)what;
	timer->fn(timer->arg);
}

int loop_timer_new(struct loop *loop, loop_timer_fn *fn, void *arg, struct loop_timer **ret_timer)
{
	struct loop_timer *timer = calloc(1, sizeof(*timer));

	if (!timer)
		return -ENOMEM;
	timer->fn = fn;
	timer->arg = arg;
	timer->event = event_new(loop->base, -1, 0, on_timer, timer);
	if (!timer->event) {
		free(timer);
		return -ENOMEM;
	}
	*ret_timer = timer;
	return 0;
}

int loop_timer_set(struct loop_timer *timer, uint64_t delay_ms)
{
	struct timeval tv = { .tv_sec = (time_t)(delay_ms / 1000),
			      .tv_usec = (suseconds_t)(delay_ms % 1000 * 1000) };

	return event_add(timer->event, &tv) < 0 ? -ENOMEM : 0;
}

void loop_timer_stop(struct loop_timer *timer)
{
	event_del(timer->event);
}

void loop_timer_free(struct loop_timer *timer)
{
	if (!timer)
		return;
	event_free(timer->event);
	free(timer);
}

static void on_signal(evutil_socket_t signo, short what, void *arg)
{
	struct loop_signal *source = arg;

	(void)what;
	source->fn(signo, source->arg);
}

int loop_signal_new(struct loop *loop, int signo, loop_signal_fn *fn, void *arg,
		    struct loop_signal **ret_signal)
{
	struct loop_signal *source = calloc(1, sizeof(*source));

	if (!source)
		return -ENOMEM;
	source->fn = fn;
	source->arg = arg;
	source->event = event_new(loop->base, signo, EV_SIGNAL | EV_PERSIST, on_signal, source);
	if (!source->event || event_add(source->event, NULL) < 0) {
		loop_signal_free(source);
		return -ENOMEM;
	}
	*ret_signal = source;
	return 0;
}

void loop_signal_free(struct loop_signal *source)
{
	if (!source)
		return;
	if (source->event)
		event_free(source->event);
	free(source);
}

uint64_t loop_now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}
