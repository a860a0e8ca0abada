/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The protocol with the device is in npu_queue.h. A sleeper publishes what it wants, raises
 * client_waiting, fences and looks again before it sleeps; since the device lowers the flag at each
 * wake, the leader raises it anew and looks at everybody's condition before each poll.
 */
#include "client/drv/waiter.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "client/drv/drv.h"
#include "client/drv/ring.h"

#define POLLS_A_LOOK   8  /* polls between two looks at the clock */
#define BACKOFF_WAITS  16 /* waits without polling after a preemption */
#define SPIN_MIN_NS    1000u
#define AVERAGE_MAX_NS 1000000u
#define PENDING	       1

struct drv_wait {
	struct drv_wait *next, *prev;
	const struct drv_ring *ring; /* NULL: ready() decides */
	uint64_t target;
	bool (*ready)(void *arg);
	void *arg;
	pthread_cond_t cond;
};

static inline void cpu_relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

int drv_waitroom_init(struct drv_waitroom *room, struct npu_slab_header *header, int completion,
		      int life)
{
	*room = (struct drv_waitroom){
		.header = header,
		.completion = completion,
		.life = life,
		.wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
	};
	if (room->wake < 0)
		return drv_fail(-errno, "no event descriptor left for waiting");
	drv_process_keep_fd(room->wake);
	pthread_mutex_init(&room->lock, NULL);
	return 0;
}

void drv_waitroom_fini(struct drv_waitroom *room)
{
	drv_process_close_fd(room->wake);
	drv_process_close_fd(room->completion);
	drv_process_close_fd(room->life);
	pthread_mutex_destroy(&room->lock);
}

/* 0: holds; PENDING; or why it never will. */
static int wait_state(const struct drv_waitroom *room, const struct drv_wait *wait)
{
	if (wait->ring) {
		if (drv_ring_done(wait->ring) >= wait->target)
			return 0;
		if (atomic_load_explicit(&wait->ring->dead, memory_order_acquire))
			return -ECANCELED;
	} else if (wait->ready(wait->arg)) {
		return 0;
	}
	if (atomic_load_explicit(&room->lost, memory_order_relaxed))
		return -EIO;
	return PENDING;
}

/* The device wakes us when done reaches the smallest target of a ring's sleepers. */
static void publish_want(struct drv_waitroom *room, const struct drv_ring *ring)
{
	uint64_t want = UINT64_MAX;

	for (struct drv_wait *w = room->first; w; w = w->next)
		if (w->ring == ring && w->target < want)
			want = w->target;
	__atomic_store_n(&ring->ctrl->want, want, __ATOMIC_RELAXED);
}

static void wake_ready(struct drv_waitroom *room, const struct drv_wait *self)
{
	for (struct drv_wait *w = room->first; w; w = w->next)
		if (w != self && wait_state(room, w) != PENDING)
			pthread_cond_signal(&w->cond);
}

static void drain(int fd)
{
	uint64_t count;

	while (read(fd, &count, sizeof(count)) < 0 && errno == EINTR)
		;
}

/* The leader's sleep, without the lock. */
static void lead(struct drv_waitroom *room, uint64_t deadline)
{
	struct pollfd fds[] = {
		{ .fd = room->completion, .events = POLLIN },
		{ .fd = room->life },
		{ .fd = room->wake, .events = POLLIN },
	};
	int state, n, ms = -1;

	room->led = true;
	pthread_mutex_unlock(&room->lock);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	if (deadline != DRV_FOREVER) {
		uint64_t now = drv_now_ns(), left = deadline > now ? deadline - now : 0;

		ms = left / 1000000 >= 3600000 ? 3600000 : (int)((left + 999999) / 1000000);
	}
	n = poll(fds, 3, ms);
	if (n > 0 && fds[0].revents)
		drain(room->completion);
	if (n > 0 && fds[2].revents)
		drain(room->wake);
	pthread_setcancelstate(state, NULL);
	pthread_mutex_lock(&room->lock);
	room->led = false;
	if (n > 0 && (fds[1].revents & (POLLHUP | POLLERR | POLLNVAL)))
		atomic_store(&room->lost, true);
}

static int sleep_until(struct drv_waitroom *room, struct drv_wait *wait, uint64_t deadline)
{
	struct timespec until = {
		.tv_sec = (time_t)(deadline / 1000000000u),
		.tv_nsec = (long)(deadline % 1000000000u),
	};
	pthread_condattr_t attr;
	int r;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&wait->cond, &attr);
	pthread_condattr_destroy(&attr);

	pthread_mutex_lock(&room->lock);
	wait->prev = NULL;
	wait->next = room->first;
	if (room->first)
		room->first->prev = wait;
	room->first = wait;
	if (wait->ring)
		publish_want(room, wait->ring);
	for (;;) {
		__atomic_store_n(&room->header->client_waiting, 1, __ATOMIC_RELAXED);
		if (!wait->ring)
			__atomic_store_n(&room->header->host_calls_waiting, 1, __ATOMIC_RELAXED);
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		r = wait_state(room, wait);
		if (r == PENDING && deadline != DRV_FOREVER && drv_now_ns() >= deadline)
			r = -ETIMEDOUT;
		if (r != PENDING)
			break;
		if (room->led) {
			if (deadline == DRV_FOREVER)
				pthread_cond_wait(&wait->cond, &room->lock);
			else
				pthread_cond_timedwait(&wait->cond, &room->lock, &until);
			continue;
		}
		for (struct drv_wait *w = room->first; w; w = w->next)
			if (!w->ring)
				__atomic_store_n(&room->header->host_calls_waiting, 1,
						 __ATOMIC_SEQ_CST);
		wake_ready(room, wait);
		lead(room, deadline);
		wake_ready(room, wait);
	}
	if (wait->prev)
		wait->prev->next = wait->next;
	else
		room->first = wait->next;
	if (wait->next)
		wait->next->prev = wait->prev;
	if (wait->ring)
		publish_want(room, wait->ring);
	if (!room->led && room->first)
		pthread_cond_signal(&room->first->cond);
	pthread_mutex_unlock(&room->lock);
	pthread_cond_destroy(&wait->cond);
	return r;
}

static inline bool peer_on_my_cpu(const struct drv_waitroom *room, uint32_t mine)
{
	return mine && __atomic_load_n(&room->header->device_cpu, __ATOMIC_RELAXED) == mine;
}

/*
 * Polls for as long as it is likely to pay. Returns wait_state(), PENDING when it is time to sleep.
 */
static int spin(struct drv_waitroom *room, const struct drv_wait *wait, uint64_t start)
{
	uint32_t average = atomic_load_explicit(&room->average_ns, memory_order_relaxed);
	uint32_t backoff = atomic_load_explicit(&room->backoff, memory_order_relaxed);
	uint64_t budget = DRV_SPIN_MAX_NS, last = start;
	int r = PENDING;

	if (backoff) {
		atomic_store_explicit(&room->backoff, backoff - 1, memory_order_relaxed);
		return PENDING;
	}
	if (average > DRV_SPIN_MAX_NS) {
		budget = (uint64_t)DRV_SPIN_MAX_NS * DRV_SPIN_MAX_NS / average;
		if (budget < SPIN_MIN_NS)
			budget = SPIN_MIN_NS;
	}
	for (;;) {
		uint32_t mine = (uint32_t)(sched_getcpu() + 1);
		uint64_t now;

		__atomic_store_n(&room->header->client_cpu, mine, __ATOMIC_RELAXED);
		if (peer_on_my_cpu(room, mine))
			break;
		for (int i = 0; i < POLLS_A_LOOK; i++) {
			r = wait_state(room, wait);
			if (r != PENDING)
				goto out;
			cpu_relax();
		}
		now = drv_now_ns();
		if (now - last > DRV_GAP_NS) {
			atomic_store_explicit(&room->backoff, BACKOFF_WAITS - 1,
					      memory_order_relaxed);
			break;
		}
		if (now - start > budget)
			break;
		last = now;
	}
out:
	__atomic_store_n(&room->header->client_cpu, 0, __ATOMIC_RELAXED);
	return r;
}

int drv_wait_ring(struct drv_waitroom *room, struct drv_ring *ring, uint64_t target,
		  uint64_t deadline_ns)
{
	struct drv_wait wait = { .ring = ring, .target = target };
	int r = wait_state(room, &wait);
	uint64_t start, took;
	uint32_t average;

	if (r != PENDING)
		return r;
	start = drv_now_ns();
	if (deadline_ns <= start)
		return -ETIMEDOUT;
	atomic_fetch_add_explicit(&ring->waiters, 1, memory_order_relaxed);
	r = spin(room, &wait, start);
	if (r == PENDING)
		r = sleep_until(room, &wait, deadline_ns);
	atomic_fetch_sub_explicit(&ring->waiters, 1, memory_order_release);
	took = drv_now_ns() - start;
	average = atomic_load_explicit(&room->average_ns, memory_order_relaxed);
	if (took > AVERAGE_MAX_NS)
		took = AVERAGE_MAX_NS;
	atomic_store_explicit(&room->average_ns, average - average / 8 + (uint32_t)took / 8,
			      memory_order_relaxed);
	return r;
}

int drv_wait_host_call(struct drv_waitroom *room, bool (*ready)(void *arg), void *arg,
		       uint64_t deadline_ns)
{
	struct drv_wait wait = { .ready = ready, .arg = arg };

	return sleep_until(room, &wait, deadline_ns);
}

bool drv_waitroom_check(struct drv_waitroom *room)
{
	struct pollfd life = { .fd = room->life };

	if (poll(&life, 1, 0) == 1 && (life.revents & (POLLHUP | POLLERR | POLLNVAL)))
		atomic_store(&room->lost, true);
	return atomic_load(&room->lost);
}

void drv_waitroom_wake(struct drv_waitroom *room)
{
	static const uint64_t one = 1;

	pthread_mutex_lock(&room->lock);
	for (struct drv_wait *w = room->first; w; w = w->next)
		pthread_cond_signal(&w->cond);
	if (room->led)
		while (write(room->wake, &one, sizeof(one)) < 0 && errno == EINTR)
			;
	pthread_mutex_unlock(&room->lock);
}
