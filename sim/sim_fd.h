/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NPU_SIM_FD_H
#define NPU_SIM_FD_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* Small helpers of the board: cleanup by attribute, fds, the clock. Any thread. */

/* The struct that `member` of the given type is embedded in. */
#define sim_container(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

#define cleanup(fn) __attribute__((cleanup(fn)))

/* Closes *fd if it is one, sets it to -1, leaves errno alone. */
static inline void sim_fd_close(int *fd)
{
	int saved = errno;

	if (*fd >= 0)
		close(*fd);
	*fd = -1;
	errno = saved;
}

/* Hands the fd over: *fd becomes -1. */
static inline int sim_fd_steal(int *fd)
{
	int r = *fd;

	*fd = -1;
	return r;
}

static inline void sim_free(void *p)
{
	free(*(void **)p);
}

/* CLOCK_MONOTONIC, nanoseconds. */
static inline uint64_t sim_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

#define SIM_MS 1000000ull /* nanoseconds */

#endif
