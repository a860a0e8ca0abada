/* SPDX-License-Identifier: Apache-2.0 */
/*
 * waiter - threads that wait for the device
 *
 * One waitroom a space. A wait first polls for a short time that adapts to how long waits have
 * been, unless the device polls on this very cpu; then it sleeps. One of the sleepers, the leader,
 * polls {completion fd, life fd} for all and wakes those whose condition holds; when it leaves,
 * another takes over. Nothing runs while nobody waits.
 */
#ifndef NPU_CLIENT_DRV_WAITER_H
#define NPU_CLIENT_DRV_WAITER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "kdrv/uapi/npu_queue.h"

struct drv_ring;
struct drv_wait;

#define DRV_SPIN_MAX_NS 50000u /* longest polling before sleeping */
#define DRV_GAP_NS	30000u /* a pause between two polls that means: I was preempted */
#define DRV_FOREVER	UINT64_MAX

struct drv_waitroom {
	struct npu_slab_header *header;
	int completion, life;
	int wake;	   /* eventfd of our own: makes the leader look again */
	_Atomic bool lost; /* the life fd hung up */

	/* Polling: guesses, races are harmless. */
	_Atomic uint32_t average_ns; /* of recent waits, capped */
	_Atomic uint32_t backoff;    /* waits that sleep at once; one in 16 probes */

	pthread_mutex_t lock;
	struct drv_wait *first; /* sleepers */
	bool led;		/* one of them polls the fds */
};

int drv_waitroom_init(struct drv_waitroom *room, struct npu_slab_header *header, int completion,
		      int life);
void drv_waitroom_fini(struct drv_waitroom *room);

/*
 * Waits until the ring's done reaches target. deadline_ns: CLOCK_MONOTONIC, or DRV_FOREVER.
 * 0; -ETIMEDOUT; -EIO: device lost; -ECANCELED: the ring died.
 */
int drv_wait_ring(struct drv_waitroom *room, struct drv_ring *ring, uint64_t target,
		  uint64_t deadline_ns);

/* Waits, without polling first, until ready(arg) is true; it is called under the room's lock. */
int drv_wait_host_call(struct drv_waitroom *room, bool (*ready)(void *arg), void *arg,
		       uint64_t deadline_ns);

/* Looks at the life fd itself; returns whether the device is lost. A system call: not on a hot path. */
bool drv_waitroom_check(struct drv_waitroom *room);

/* Makes every sleeper look again: after a ring died, or what ready() looks at changed. */
void drv_waitroom_wake(struct drv_waitroom *room);

#endif
