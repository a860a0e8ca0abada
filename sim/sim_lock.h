/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NPU_SIM_LOCK_H
#define NPU_SIM_LOCK_H

#include <sys/types.h>

/*
 * sim_lock - a file that one process holds: locked, and with its process id inside.
 *
 * The lock ends with the process, however that ends, so a file left behind is no obstacle.
 */
struct sim_lock {
	char *path;
	int fd; /* -1: not held */
};

#define SIM_LOCK_INIT { .fd = -1 }

/*
 * Creates and locks the file. -EBUSY: another process holds it; *ret_holder is its process id, or 0
 * when the file does not say. Else what open(2) said.
 */
int sim_lock_take(struct sim_lock *lock, const char *path, pid_t *ret_holder);
/* Writes our process id; once more after a fork, which keeps the lock. */
int sim_lock_write(struct sim_lock *lock);
/* Removes the file, gives up the lock. Nothing to do when it is not held. */
void sim_lock_drop(struct sim_lock *lock);

#endif
