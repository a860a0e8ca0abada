/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NPU_UTIL_CLEANUP_H
#define NPU_UTIL_CLEANUP_H

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

/*
 * Release at the end of a scope, and the two ways to take a value out of it. All of them leave
 * errno as it was, so a function may return -errno after them. Any thread.
 */

#define cleanup(fn) __attribute__((cleanup(fn)))

static inline void cleanup_free(void *p)
{
	int saved = errno;

	free(*(void **)p);
	errno = saved;
}

static inline void cleanup_close(int *fd)
{
	int saved = errno;

	if (*fd >= 0)
		close(*fd);
	errno = saved;
}

/* Hands the pointer on: the scope no longer frees it. */
static inline void *steal_ptr_at(void **p)
{
	void *value = *p;

	*p = NULL;
	return value;
}

#define steal_ptr(pp) ((__typeof__(*(pp)))steal_ptr_at((void **)(pp)))

/* Hands the fd on: the scope no longer closes it. */
static inline int steal_fd(int *fd)
{
	int value = *fd;

	*fd = -1;
	return value;
}

#endif
