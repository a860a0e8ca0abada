/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NPU_LOOP_H
#define NPU_LOOP_H

#include <stdint.h>

/*
 * The event loop, over libevent (which no other part sees). One thread runs a loop; all functions
 * belong to that thread, loop_post() and loop_stop() excepted. Handlers must not block. A source
 * may be freed from any handler, its own included.
 */

struct loop;
struct loop_fd;
struct loop_timer;
struct loop_signal;

enum {
	LOOP_READ = 1,
	LOOP_WRITE = 2,
};

typedef void loop_fd_fn(int fd, unsigned int events, void *arg);
typedef void loop_timer_fn(void *arg);
typedef void loop_signal_fn(int signo, void *arg);

/*
 * A piece of work for the loop's thread; lies in the poster's memory until run() has been entered.
 */
struct loop_post {
	struct loop_post *next;
	void (*run)(struct loop_post *post);
};

int loop_new(struct loop **ret_loop);
/*
 * All sources must be free. Posts that have not run are run now, so that their owners can let go.
 */
void loop_free(struct loop *loop);

/* Runs until loop_stop(). 0 or a negative errno. */
int loop_run(struct loop *loop);
/* Any thread, and handlers. Takes effect after the handler that runs now. */
void loop_stop(struct loop *loop);

/* Queues post->run for the loop's thread, in order of posting. Any thread. */
void loop_post(struct loop *loop, struct loop_post *post);

/* Runs what was posted so far, from a handler or outside of loop_run(). The loop's thread. */
void loop_run_posts(struct loop *loop);

/*
 * Calls fn while fd is ready (level-triggered) for what `events` (LOOP_READ, LOOP_WRITE, 0) asks;
 * an error or a hang-up shows as readable and writable. The fd stays the caller's, and must be open
 * till loop_fd_free().
 */
int loop_fd_new(struct loop *loop, int fd, unsigned int events, loop_fd_fn *fn, void *arg,
		struct loop_fd **ret_source);
int loop_fd_set(struct loop_fd *source, unsigned int events);
void loop_fd_free(struct loop_fd *source);

/* A one-shot timer, not armed at first. loop_timer_set() arms it anew. */
int loop_timer_new(struct loop *loop, loop_timer_fn *fn, void *arg, struct loop_timer **ret_timer);
int loop_timer_set(struct loop_timer *timer, uint64_t delay_ms);
void loop_timer_stop(struct loop_timer *timer);
void loop_timer_free(struct loop_timer *timer);

/* At most one handler a signal in a process. */
int loop_signal_new(struct loop *loop, int signo, loop_signal_fn *fn, void *arg,
		    struct loop_signal **ret_signal);
void loop_signal_free(struct loop_signal *signal);

/* CLOCK_MONOTONIC in milliseconds. Any thread. */
uint64_t loop_now_ms(void);

#endif
