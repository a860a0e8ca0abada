/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting: time-outs, many sleepers behind one leader, hang-up, death of a ring, host calls. */
#include <check.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client/drv/drv.h"
#include "client/drv/ring.h"
#include "client/drv/waiter.h"
#include "tests/lib/fake_device.h"

#define WAITERS 8

static struct fake_device device;
static struct drv_waitroom room;
static struct drv_ring ring[WAITERS];
static _Atomic uint64_t generation;

static void setup(void)
{
	fake_device_init(&device, WAITERS);
	ck_assert_int_eq(drv_waitroom_init(&room, device.slab, device.completion, device.life[0]),
			 0);
	for (uint32_t r = 0; r < WAITERS; r++)
		drv_ring_init(&ring[r], device.slab, r, device.slab_address, device.doorbell, &room,
			      &generation);
}

static void put(struct drv_ring *to)
{
	struct npu_entry *entry;

	ck_assert_int_eq(drv_ring_reserve(to, 0, &entry, NULL), 0);
	drv_ring_submit(to);
}

static uint64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

START_TEST(done_needs_no_wait)
{
	ck_assert_int_eq(drv_wait_ring(&room, &ring[0], 0, 0), 0);
	ck_assert_uint_eq(device.slab->client_waiting, 0);
}
END_TEST

START_TEST(times_out_without_burning_cpu)
{
	uint64_t start = drv_now_ns(), cpu = cpu_ns(), took;

	put(&ring[0]);
	ck_assert_int_eq(drv_wait_ring(&room, &ring[0], 1, start + 100000000), -ETIMEDOUT);
	took = drv_now_ns() - start;
	ck_assert_uint_ge(took, 100000000);
	ck_assert_uint_lt(took, 5000000000u);
	ck_assert_uint_lt(cpu_ns() - cpu, 20000000);
	ck_assert_int_eq(drv_wait_ring(&room, &ring[0], 1, 0), -ETIMEDOUT);
	ck_assert_uint_eq(fake_device_ctrl(&device, 0)->want, UINT64_MAX);
	ck_assert_ptr_null(room.first);
}
END_TEST

START_TEST(same_cpu_sleeps_at_once)
{
	cpu_set_t set;
	int cpu = sched_getcpu();

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	ck_assert_int_eq(sched_setaffinity(0, sizeof(set), &set), 0);
	device.slab->device_cpu = (uint32_t)cpu + 1;
	put(&ring[0]);
	/* A device that polls here can only run when this thread sleeps. */
	fake_device_start(&device);
	ck_assert_int_eq(drv_wait_ring(&room, &ring[0], 1, DRV_FOREVER), 0);
	fake_device_stop(&device);
	ck_assert_uint_eq(device.slab->client_cpu, 0);
}
END_TEST

struct waiter {
	pthread_t thread;
	struct drv_ring *ring;
	uint64_t target;
	int result;
};

static void *waiter_main(void *arg)
{
	struct waiter *w = arg;

	w->result = drv_wait_ring(&room, w->ring, w->target, DRV_FOREVER);
	return NULL;
}

static unsigned sleepers(void)
{
	unsigned n = 0;

	pthread_mutex_lock(&room.lock);
	for (struct drv_wait *w = room.first; w; w = *(struct drv_wait **)w)
		n++;
	if (!room.led)
		n = 0;
	pthread_mutex_unlock(&room.lock);
	return n;
}

static void start_waiters(struct waiter *waiters, unsigned n)
{
	uint64_t deadline = drv_now_ns() + 20000000000u;

	for (unsigned i = 0; i < n; i++) {
		waiters[i].result = -1;
		ck_assert_int_eq(pthread_create(&waiters[i].thread, NULL, waiter_main, &waiters[i]),
				 0);
	}
	while (sleepers() != n) {
		ck_assert_uint_lt(drv_now_ns(), deadline);
		sched_yield();
	}
}

START_TEST(one_leader_wakes_all)
{
	struct waiter waiters[WAITERS];

	for (unsigned i = 0; i < WAITERS; i++) {
		put(&ring[i]);
		waiters[i] = (struct waiter){ .ring = &ring[i], .target = 1 };
	}
	start_waiters(waiters, WAITERS);
	fake_device_start(&device);
	fake_device_hold(&device, false);
	for (unsigned i = 0; i < WAITERS; i++) {
		pthread_join(waiters[i].thread, NULL);
		ck_assert_int_eq(waiters[i].result, 0);
	}
	fake_device_stop(&device);
	ck_assert_ptr_null(room.first);
	ck_assert(!room.led);
}
END_TEST

START_TEST(smallest_target_of_a_ring_is_wanted)
{
	struct waiter waiters[2] = { { .ring = &ring[0], .target = 2 },
				     { .ring = &ring[0], .target = 1 } };
	static const uint64_t one = 1;

	put(&ring[0]);
	put(&ring[0]);
	start_waiters(waiters, 2);
	ck_assert_uint_eq(fake_device_ctrl(&device, 0)->want, 1);
	/* Done by hand, a step at a time. */
	__atomic_store_n(&fake_device_ctrl(&device, 0)->done, 1, __ATOMIC_SEQ_CST);
	ck_assert_int_eq(write(device.completion, &one, 8), 8);
	pthread_join(waiters[1].thread, NULL);
	ck_assert_int_eq(waiters[1].result, 0);
	ck_assert_uint_eq(fake_device_ctrl(&device, 0)->want, 2);
	__atomic_store_n(&fake_device_ctrl(&device, 0)->done, 2, __ATOMIC_SEQ_CST);
	ck_assert_int_eq(write(device.completion, &one, 8), 8);
	pthread_join(waiters[0].thread, NULL);
	ck_assert_int_eq(waiters[0].result, 0);
}
END_TEST

START_TEST(hang_up_ends_every_wait)
{
	struct waiter waiters[WAITERS];

	for (unsigned i = 0; i < WAITERS; i++)
		waiters[i] = (struct waiter){ .ring = &ring[i], .target = 1 };
	start_waiters(waiters, WAITERS);
	close(device.life[1]);
	device.life[1] = -1;
	for (unsigned i = 0; i < WAITERS; i++) {
		pthread_join(waiters[i].thread, NULL);
		ck_assert_int_eq(waiters[i].result, -EIO);
	}
	ck_assert_int_eq(drv_wait_ring(&room, &ring[0], 1, DRV_FOREVER), -EIO);
}
END_TEST

START_TEST(death_of_a_ring_wakes_its_waiters_only)
{
	struct waiter waiters[2] = { { .ring = &ring[0], .target = 1 },
				     { .ring = &ring[1], .target = 1 } };

	start_waiters(waiters, 2);
	atomic_store(&ring[0].dead, true);
	drv_waitroom_wake(&room);
	pthread_join(waiters[0].thread, NULL);
	ck_assert_int_eq(waiters[0].result, -ECANCELED);
	ck_assert_int_eq(waiters[1].result, -1);
	atomic_store(&ring[1].dead, true);
	drv_waitroom_wake(&room);
	pthread_join(waiters[1].thread, NULL);
	ck_assert_int_eq(waiters[1].result, -ECANCELED);
	ck_assert_uint_eq(atomic_load(&ring[0].waiters), 0);
}
END_TEST

static _Atomic bool called;

static bool call_ready(void *arg)
{
	(void)arg;
	return atomic_load(&called);
}

static void *call_main(void *arg)
{
	*(int *)arg = drv_wait_host_call(&room, call_ready, NULL, DRV_FOREVER);
	return NULL;
}

START_TEST(host_call_raises_its_own_flag)
{
	static const uint64_t one = 1;
	pthread_t thread;
	int result = -1;

	ck_assert_int_eq(drv_wait_host_call(&room, call_ready, NULL, drv_now_ns() + 1000000),
			 -ETIMEDOUT);
	ck_assert_int_eq(pthread_create(&thread, NULL, call_main, &result), 0);
	while (sleepers() != 1)
		sched_yield();
	ck_assert_uint_eq(
		__atomic_exchange_n(&device.slab->host_calls_waiting, 0, __ATOMIC_SEQ_CST), 1);
	atomic_store(&called, true);
	ck_assert_int_eq(write(device.completion, &one, 8), 8);
	pthread_join(thread, NULL);
	ck_assert_int_eq(result, 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("waiter");
	TCase *t = tcase_create("waiter");
	SRunner *sr;
	int failed;

	tcase_add_checked_fixture(t, setup, NULL);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, done_needs_no_wait);
	tcase_add_test(t, times_out_without_burning_cpu);
	tcase_add_test(t, same_cpu_sleeps_at_once);
	tcase_add_test(t, one_leader_wakes_all);
	tcase_add_test(t, smallest_target_of_a_ring_is_wanted);
	tcase_add_test(t, hang_up_ends_every_wait);
	tcase_add_test(t, death_of_a_ring_wakes_its_waiters_only);
	tcase_add_test(t, host_call_raises_its_own_flag);
	suite_add_tcase(s, t);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
