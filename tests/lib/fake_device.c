/* SPDX-License-Identifier: Apache-2.0 */
/* One thread: takes what is pending, acts, sleeps in read() of the doorbell when nothing is. */
#include "tests/lib/fake_device.h"

#include <check.h>
#include <fcntl.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

struct npu_ring_ctrl *fake_device_ctrl(struct fake_device *device, uint32_t ring)
{
	return (struct npu_ring_ctrl *)((char *)device->slab + NPU_SLAB_RINGS) + ring;
}

void fake_device_init(struct fake_device *device, uint32_t nrings)
{
	memset(device, 0, sizeof(*device));
	device->slab = mmap(NULL, NPU_SLAB_SIZE, PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	ck_assert_ptr_ne(device->slab, MAP_FAILED);
	device->slab_address = 0x7e8000000000;
	device->slab->magic = NPU_QUEUE_MAGIC;
	device->slab->major = NPU_QUEUE_MAJOR;
	device->slab->max_queues = NPU_MAX_QUEUES;
	device->slab->ring_entries = NPU_RING_ENTRIES;
	device->doorbell = eventfd(0, EFD_CLOEXEC);
	device->completion = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	ck_assert_int_ge(device->doorbell, 0);
	ck_assert_int_ge(device->completion, 0);
	ck_assert_int_eq(pipe2(device->life, O_CLOEXEC), 0);
	device->nrings = nrings;
	for (uint32_t r = 0; r < nrings; r++) {
		fake_device_ctrl(device, r)->armed = 1;
		fake_device_ctrl(device, r)->state = NPU_RING_ACTIVE;
	}
}

static void complete(struct fake_device *device, struct npu_ring_ctrl *ctrl, uint64_t done)
{
	static const uint64_t one = 1;

	__atomic_store_n(&ctrl->done, done, __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (__atomic_load_n(&device->slab->client_waiting, __ATOMIC_RELAXED) &&
	    done >= __atomic_load_n(&ctrl->want, __ATOMIC_RELAXED) &&
	    __atomic_exchange_n(&device->slab->client_waiting, 0, __ATOMIC_SEQ_CST)) {
		atomic_fetch_add(&device->wakes, 1);
		ck_assert_int_eq(write(device->completion, &one, sizeof(one)), sizeof(one));
	}
}

/* Runs a ring empty and arms it. */
static void serve(struct fake_device *device, uint32_t r)
{
	struct npu_ring_ctrl *ctrl = fake_device_ctrl(device, r);
	const struct npu_entry *entries =
		(const struct npu_entry *)((char *)device->slab + NPU_SLAB_DATA +
					   (size_t)r * NPU_RING_BYTES);

	for (;;) {
		uint64_t tail = __atomic_load_n(&ctrl->tail, __ATOMIC_ACQUIRE);

		if (device->head[r] == tail) {
			__atomic_store_n(&ctrl->armed, 1, __ATOMIC_RELAXED);
			__atomic_thread_fence(__ATOMIC_SEQ_CST);
			if (__atomic_load_n(&ctrl->tail, __ATOMIC_ACQUIRE) == tail)
				return;
			__atomic_store_n(&ctrl->armed, 0, __ATOMIC_RELAXED);
			continue;
		}
		if (tail - device->head[r] > NPU_RING_ENTRIES)
			ck_abort_msg("ring %u is overfull", r);
		while (device->head[r] != tail && !atomic_load(&device->stop)) {
			struct npu_entry entry = entries[device->head[r] & (NPU_RING_ENTRIES - 1)];

			__atomic_store_n(&ctrl->head, device->head[r] + 1, __ATOMIC_RELAXED);
			if (device->act)
				device->act(device, r, &entry);
			complete(device, ctrl, ++device->head[r]);
		}
		if (atomic_load(&device->stop))
			return;
	}
}

static bool serve_pending(struct fake_device *device)
{
	bool any = false;

	if (atomic_load(&device->hold))
		return false;
	for (uint32_t w = 0; w <= (device->nrings - 1) / 64; w++) {
		uint64_t bits = __atomic_exchange_n(&device->slab->pending[w], 0, __ATOMIC_SEQ_CST);

		for (; bits; bits &= bits - 1) {
			serve(device, w * 64 + (uint32_t)__builtin_ctzll(bits));
			any = true;
		}
	}
	return any;
}

static void *device_main(void *arg)
{
	struct fake_device *device = arg;
	uint64_t count;

	while (!atomic_load(&device->stop)) {
		if (serve_pending(device))
			continue;
		__atomic_store_n(&device->slab->device_sleeping, 1, __ATOMIC_RELAXED);
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		if (serve_pending(device) || atomic_load(&device->stop))
			continue;
		atomic_fetch_add(&device->sleeps, 1);
		ck_assert_int_eq(read(device->doorbell, &count, sizeof(count)), sizeof(count));
	}
	return NULL;
}

void fake_device_start(struct fake_device *device)
{
	atomic_store(&device->stop, false);
	ck_assert_int_eq(pthread_create(&device->thread, NULL, device_main, device), 0);
}

static void ring_bell(struct fake_device *device)
{
	static const uint64_t one = 1;

	ck_assert_int_eq(write(device->doorbell, &one, sizeof(one)), sizeof(one));
}

void fake_device_stop(struct fake_device *device)
{
	atomic_store(&device->stop, true);
	ring_bell(device);
	pthread_join(device->thread, NULL);
}

void fake_device_hold(struct fake_device *device, bool hold)
{
	atomic_store(&device->hold, hold);
	ring_bell(device);
}

void fake_device_fini(struct fake_device *device)
{
	munmap(device->slab, NPU_SLAB_SIZE);
	close(device->doorbell);
	close(device->completion);
	close(device->life[0]);
	if (device->life[1] >= 0)
		close(device->life[1]);
}

void fake_device_fail(struct fake_device *device, uint32_t r, uint32_t kind)
{
	struct npu_ring_ctrl *ctrl = fake_device_ctrl(device, r);
	uint64_t count = ctrl->error.count + 1;

	__atomic_store_n(&ctrl->error.begin, count, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	ctrl->error.kind = kind;
	ctrl->error.task = device->head[r];
	__atomic_store_n(&ctrl->error.count, count, __ATOMIC_RELEASE);
	__atomic_store_n(&ctrl->error_count, count, __ATOMIC_RELEASE);
}
