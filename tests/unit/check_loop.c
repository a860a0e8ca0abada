/* SPDX-License-Identifier: Apache-2.0 */
/* daemon/loop: fds, timers, signals, posts from other threads. */
#include "daemon/loop/loop.h"
#include "tests/lib/runner.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static struct loop *loop;

static void setup(void)
{
	ck_assert_int_eq(loop_new(&loop), 0);
}

static void teardown(void)
{
	loop_free(loop);
}

struct seen {
	unsigned int count;
	unsigned int events;
	struct loop_fd *source;
	struct loop_timer *timer;
};

static void stop_soon(void *arg)
{
	loop_stop(arg);
}

static void on_fd(int fd, unsigned int events, void *arg)
{
	struct seen *seen = arg;
	char byte;

	seen->count++;
	seen->events |= events;
	if (events & LOOP_READ)
		ck_assert_int_eq(read(fd, &byte, 1), 1);
	if (seen->count == 3) {
		/* from its own handler */
		loop_fd_free(seen->source);
		seen->source = NULL;
		loop_stop(loop);
	}
}

START_TEST(watches_fds)
{
	struct seen seen = { 0 };
	int fds[2];

	ck_assert_int_eq(pipe(fds), 0);
	ck_assert_int_eq(write(fds[1], "abcd", 4), 4);
	ck_assert_int_eq(loop_fd_new(loop, fds[0], LOOP_READ, on_fd, &seen, &seen.source), 0);
	ck_assert_int_eq(loop_run(loop), 0);
	ck_assert_uint_eq(seen.count, 3);
	ck_assert_uint_eq(seen.events, LOOP_READ);
	/* off, then for writing */
	ck_assert_int_eq(loop_fd_new(loop, fds[1], 0, on_fd, &seen, &seen.source), 0);
	seen = (struct seen){ .count = 2, .source = seen.source };
	ck_assert_int_eq(loop_fd_set(seen.source, LOOP_WRITE), 0);
	ck_assert_int_eq(loop_run(loop), 0);
	ck_assert_uint_eq(seen.events, LOOP_WRITE);
	close(fds[0]);
	close(fds[1]);
}
END_TEST

static void on_timer(void *arg)
{
	struct seen *seen = arg;

	if (++seen->count == 3)
		loop_stop(loop);
	else
		loop_timer_set(seen->timer, 5);
}

START_TEST(runs_timers)
{
	struct seen seen = { 0 }, other = { 0 };
	uint64_t begin = loop_now_ms();

	ck_assert_int_eq(loop_timer_new(loop, on_timer, &seen, &seen.timer), 0);
	ck_assert_int_eq(loop_timer_new(loop, on_timer, &other, &other.timer), 0);
	loop_timer_set(seen.timer, 20);
	loop_timer_set(other.timer, 1);
	loop_timer_stop(other.timer);
	ck_assert_int_eq(loop_run(loop), 0);
	ck_assert_uint_eq(seen.count, 3);
	ck_assert_uint_eq(other.count, 0);
	ck_assert_uint_ge(loop_now_ms() - begin, 29);
	loop_timer_free(seen.timer);
	loop_timer_free(other.timer);
}
END_TEST

static void on_signal(int signo, void *arg)
{
	*(int *)arg = signo;
	loop_stop(loop);
}

START_TEST(takes_signals)
{
	struct loop_signal *source;
	int seen = 0;

	ck_assert_int_eq(loop_signal_new(loop, SIGUSR1, on_signal, &seen, &source), 0);
	kill(getpid(), SIGUSR1);
	ck_assert_int_eq(loop_run(loop), 0);
	ck_assert_int_eq(seen, SIGUSR1);
	loop_signal_free(source);
}
END_TEST

#define THREADS 4
#define POSTS	5000

struct note {
	struct loop_post post;
	unsigned int thread, number;
};

static unsigned int expected[THREADS];
static unsigned int total;
static pthread_t loop_thread;

static void on_post(struct loop_post *post)
{
	struct note *note = (struct note *)post;

	ck_assert(pthread_equal(pthread_self(), loop_thread));
	ck_assert_uint_eq(note->number, expected[note->thread]);
	expected[note->thread]++;
	if (++total == THREADS * POSTS)
		loop_stop(loop);
	free(note);
}

static void *poster(void *arg)
{
	for (unsigned int i = 0; i < POSTS; i++) {
		struct note *note = calloc(1, sizeof(*note));

		note->post.run = on_post;
		note->thread = (unsigned int)(uintptr_t)arg;
		note->number = i;
		loop_post(loop, &note->post);
	}
	return NULL;
}

START_TEST(takes_posts_in_order)
{
	pthread_t threads[THREADS];

	loop_thread = pthread_self();
	for (uintptr_t i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, poster, (void *)i), 0);
	ck_assert_int_eq(loop_run(loop), 0);
	for (unsigned int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	ck_assert_uint_eq(total, THREADS * POSTS);
}
END_TEST

START_TEST(lets_posts_go_at_the_end)
{
	struct note *note = calloc(1, sizeof(*note));

	loop_thread = pthread_self();
	note->post.run = on_post;
	loop_post(loop, &note->post);
	loop_free(loop);
	ck_assert_uint_eq(total, 1);
	ck_assert_int_eq(loop_new(&loop), 0);
}
END_TEST

START_TEST(sleeps_when_idle)
{
	struct rusage before, after;
	struct loop_timer *timer;

	ck_assert_int_eq(loop_timer_new(loop, stop_soon, loop, &timer), 0);
	loop_timer_set(timer, 200);
	getrusage(RUSAGE_SELF, &before);
	ck_assert_int_eq(loop_run(loop), 0);
	getrusage(RUSAGE_SELF, &after);
	ck_assert_int_lt(after.ru_nvcsw - before.ru_nvcsw, 20);
	ck_assert_int_lt((after.ru_utime.tv_sec - before.ru_utime.tv_sec) * 1000000 +
				 after.ru_utime.tv_usec - before.ru_utime.tv_usec,
			 50000);
	loop_timer_free(timer);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("loop");
	TCase *tc = tcase_create("loop");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 30);
	tcase_add_test(tc, watches_fds);
	tcase_add_test(tc, runs_timers);
	tcase_add_test(tc, takes_signals);
	tcase_add_test(tc, takes_posts_in_order);
	tcase_add_test(tc, lets_posts_go_at_the_end);
	tcase_add_test(tc, sleeps_when_idle);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
