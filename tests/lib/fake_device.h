/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_device - the consumer of npu_queue.h in a thread of the test
 *
 * Serves rings 0 .. nrings - 1 of a slab in this process, strictly by the protocol: pending bitmap,
 * armed, device_sleeping, want, client_waiting. Each entry is given to act() and then
 * done. It never polls before it sleeps, so every hand-over goes through the wake flags.
 */
#ifndef NPU_TESTS_FAKE_DEVICE_H
#define NPU_TESTS_FAKE_DEVICE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "kdrv/uapi/npu_queue.h"

struct fake_device {
	struct npu_slab_header *slab;
	uint64_t slab_address;
	int doorbell, completion;
	int life[2]; /* read end, write end */
	uint32_t nrings;
	void (*act)(struct fake_device *device, uint32_t ring, const struct npu_entry *entry);
	void *arg;
	pthread_t thread;
	_Atomic bool stop, hold;	/* hold: takes no entries */
	_Atomic uint64_t sleeps, wakes; /* how often it slept; how often it woke the client */
	uint64_t head[NPU_MAX_QUEUES];
};

/* Makes slab and fds; asserts. start and stop the thread in between. */
void fake_device_init(struct fake_device *device, uint32_t nrings);
void fake_device_start(struct fake_device *device);
void fake_device_stop(struct fake_device *device);
void fake_device_fini(struct fake_device *device);

/* Holds, or lets go and looks again. */
void fake_device_hold(struct fake_device *device, bool hold);

/* Writes an error record as a device does, before the entry is done. */
void fake_device_fail(struct fake_device *device, uint32_t ring, uint32_t kind);

struct npu_ring_ctrl *fake_device_ctrl(struct fake_device *device, uint32_t ring);

#endif
