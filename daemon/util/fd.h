/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NPU_UTIL_FD_H
#define NPU_UTIL_FD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * File descriptor helpers. All return 0 (or what they say) on success and a negative errno; none
 * takes ownership unless it says so. Any thread.
 */

int fd_set_nonblock(int fd, bool on);
int fd_set_cloexec(int fd, bool on);

/* Number of open fds of this process, or a negative errno. */
int fd_count(void);

/* Raises the soft limit of open fds to the hard limit, at most `want`. Returns the limit then. */
int fd_raise_limit(unsigned long want, unsigned long *ret_limit);

/*
 * Reads a whole file of at most max bytes into a fresh NUL-terminated buffer (free()). -EFBIG when
 * longer, -EISDIR for a directory. Only regular files: a pipe or a device is -EINVAL.
 */
int fd_read_file(const char *path, size_t max, char **ret_data, size_t *ret_len);

/* Writes all of it, restarting on EINTR. */
int fd_write_all(int fd, const void *data, size_t len);

/*
 * Waits until fd has `events` (poll bits), at most timeout_ms (negative: for ever). 0, -ETIMEDOUT.
 */
int fd_wait(int fd, short events, int timeout_ms);

#endif
