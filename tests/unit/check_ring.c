/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The producer's end of a ring against a device in a thread: wrap, full ring, arguments, wake-ups.
 */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/drv/drv.h"
#include "client/drv/ring.h"
#include "client/drv/waiter.h"
#include "tests/lib/fake_device.h"

static struct fake_device device;
static struct drv_waitroom room;
static struct drv_ring ring[2];
static _Atomic uint64_t generation;
static uint64_t acted;
static bool entries_right;

/* Each entry says what it is: its number in tag, and its arguments repeat the number. */
static void act(struct fake_device *fake, uint32_t r, const struct npu_entry *entry)
{
	const unsigned char *args = (unsigned char *)fake->slab + NPU_SLAB_DATA +
				    (size_t)r * NPU_RING_BYTES + NPU_RING_ENTRIES * NPU_ENTRY_SIZE;

	if (entry->tag != fake->head[r] ||
	    entry->kernel.args + entry->kernel.args_total > NPU_RING_ARGS)
		entries_right = false;
	for (uint32_t i = 0; entries_right && i < entry->kernel.args_total; i += 8) {
		uint64_t value;

		memcpy(&value, args + entry->kernel.args + i, 8);
		if (value != entry->tag)
			entries_right = false;
	}
	acted++;
}

static void setup(void)
{
	fake_device_init(&device, 2);
	device.act = act;
	acted = 0;
	entries_right = true;
	atomic_store(&generation, 7);
	ck_assert_int_eq(drv_waitroom_init(&room, device.slab, device.completion, device.life[0]),
			 0);
	for (uint32_t r = 0; r < 2; r++)
		drv_ring_init(&ring[r], device.slab, r, device.slab_address, device.doorbell, &room,
			      &generation);
}

static uint64_t put(struct drv_ring *to, size_t bytes)
{
	struct npu_entry *entry;
	uint64_t offset = 0, tag = to->tail;

	if (drv_ring_reserve(to, bytes, &entry, &offset) || entry->map_gen != 7 || offset % 64)
		ck_abort_msg("no room for an entry, or a wrong one");
	entry->tag = tag;
	entry->kernel.args = offset;
	entry->kernel.args_total = (uint32_t)bytes;
	for (size_t i = 0; i < bytes; i += 8)
		memcpy(to->args + offset + i, &tag, 8);
	return drv_ring_submit(to);
}

static void wait_all(struct drv_ring *of)
{
	ck_assert_int_eq(drv_wait_ring(&room, of, drv_ring_target(of), drv_now_ns() + 20000000000u),
			 0);
}

START_TEST(first_entry_rings_and_arms)
{
	uint64_t count;

	device.slab->device_sleeping = 1;
	put(&ring[1], 0);
	ck_assert_uint_eq(device.slab->pending[0], 2);
	ck_assert_uint_eq(fake_device_ctrl(&device, 1)->armed, 0);
	ck_assert_uint_eq(device.slab->device_sleeping, 0);
	ck_assert_int_eq(read(device.doorbell, &count, 8), 8);
	ck_assert_uint_eq(count, 1);
	/* The second finds the ring disarmed and the device awake: it touches neither. */
	device.slab->pending[0] = 0;
	put(&ring[1], 0);
	ck_assert_uint_eq(device.slab->pending[0], 0);
	ck_assert_uint_eq(fake_device_ctrl(&device, 1)->tail, 2);
}
END_TEST

START_TEST(wraps_with_arguments_of_all_sizes)
{
	fake_device_start(&device);
	for (unsigned i = 0; i < 20000; i++)
		put(&ring[0], (i * 37 % 300) * 8);
	put(&ring[0], NPU_MAX_ARGS);
	for (unsigned i = 0; i < 50; i++)
		put(&ring[0], NPU_MAX_ARGS - 8 * (i % 3));
	wait_all(&ring[0]);
	fake_device_stop(&device);
	ck_assert_uint_eq(acted, 20051);
	ck_assert(entries_right);
}
END_TEST

START_TEST(refuses_too_many_arguments)
{
	struct npu_entry *entry;
	uint64_t offset;

	ck_assert_int_eq(drv_ring_reserve(&ring[0], NPU_MAX_ARGS + 1, &entry, &offset), -EMSGSIZE);
	ck_assert_uint_eq(fake_device_ctrl(&device, 0)->tail, 0);
}
END_TEST

static void *producer(void *arg)
{
	for (unsigned i = 0; i < 3 * NPU_RING_ENTRIES; i++)
		put(arg, 8);
	return NULL;
}

START_TEST(full_ring_waits_for_half)
{
	pthread_t thread;
	uint64_t deadline = drv_now_ns() + 10000000000u;

	fake_device_hold(&device, true);
	fake_device_start(&device);
	ck_assert_int_eq(pthread_create(&thread, NULL, producer, &ring[0]), 0);
	/* Full and asleep: it asks for half a ring. */
	while (__atomic_load_n(&fake_device_ctrl(&device, 0)->want, __ATOMIC_ACQUIRE) !=
	       NPU_RING_ENTRIES / 2)
		ck_assert_uint_lt(drv_now_ns(), deadline);
	ck_assert_uint_eq(drv_ring_target(&ring[0]), NPU_RING_ENTRIES);
	fake_device_hold(&device, false);
	pthread_join(thread, NULL);
	wait_all(&ring[0]);
	fake_device_stop(&device);
	ck_assert_uint_eq(acted, 3 * NPU_RING_ENTRIES);
	ck_assert_uint_eq(fake_device_ctrl(&device, 0)->want, UINT64_MAX);
}
END_TEST

START_TEST(full_ring_ends_when_it_dies_or_the_device_is_lost)
{
	struct npu_entry *entry;

	for (unsigned i = 0; i < NPU_RING_ENTRIES; i++)
		put(&ring[0], 0);
	atomic_store(&ring[0].dead, true);
	ck_assert_int_eq(drv_ring_reserve(&ring[0], 0, &entry, NULL), -ECANCELED);
	atomic_store(&ring[0].dead, false);
	close(device.life[1]);
	device.life[1] = -1;
	ck_assert_int_eq(drv_ring_reserve(&ring[0], 0, &entry, NULL), -EIO);
	ck_assert(atomic_load(&room.lost));
}
END_TEST

START_TEST(a_lying_device_is_not_believed)
{
	for (unsigned i = 0; i < 10; i++)
		put(&ring[0], 64);
	fake_device_ctrl(&device, 0)->done = 1u << 30;
	for (unsigned i = 10; i < NPU_RING_ENTRIES; i++)
		put(&ring[0], 64);
	ck_assert_uint_eq(ring[0].done, 0);
}
END_TEST

/* One entry at a time, two threads on two rings: any lost wake-up stops it for good. */
static void *ping(void *arg)
{
	for (unsigned i = 0; i < 4000; i++) {
		put(arg, 8);
		wait_all(arg);
	}
	return NULL;
}

START_TEST(no_wakeup_is_lost)
{
	pthread_t thread;

	fake_device_start(&device);
	ck_assert_int_eq(pthread_create(&thread, NULL, ping, &ring[0]), 0);
	ping(&ring[1]);
	pthread_join(thread, NULL);
	fake_device_stop(&device);
	ck_assert_uint_eq(acted, 8000);
	ck_assert(entries_right);
	ck_assert_uint_gt(atomic_load(&device.sleeps), 0);
}
END_TEST

START_TEST(error_record_is_read_whole)
{
	struct npu_ring_error error;

	ck_assert_uint_eq(drv_ring_errors(&ring[0]), 0);
	fake_device_fail(&device, 0, NPU_FAULT_DMA);
	ck_assert_uint_eq(drv_ring_errors(&ring[0]), 1);
	ck_assert(drv_ring_error(&ring[0], &error));
	ck_assert_uint_eq(error.kind, NPU_FAULT_DMA);
	/* Half written: not taken. */
	fake_device_ctrl(&device, 0)->error.begin = 2;
	ck_assert(!drv_ring_error(&ring[0], &error));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("ring");
	TCase *t = tcase_create("ring");
	SRunner *sr;
	int failed;

	tcase_add_checked_fixture(t, setup, NULL);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, first_entry_rings_and_arms);
	tcase_add_test(t, wraps_with_arguments_of_all_sizes);
	tcase_add_test(t, refuses_too_many_arguments);
	tcase_add_test(t, full_ring_waits_for_half);
	tcase_add_test(t, full_ring_ends_when_it_dies_or_the_device_is_lost);
	tcase_add_test(t, a_lying_device_is_not_believed);
	tcase_add_test(t, no_wakeup_is_lost);
	tcase_add_test(t, error_record_is_read_whole);
	suite_add_tcase(s, t);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
