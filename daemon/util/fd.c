/* SPDX-License-Identifier: Apache-2.0 */
/* Thin, errno-returning wrappers; nothing here keeps state. */
#include "daemon/util/fd.h"
#include "daemon/util/cleanup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

int fd_set_nonblock(int fd, bool on)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0)
		return -errno;
	flags = on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK;
	return fcntl(fd, F_SETFL, flags) < 0 ? -errno : 0;
}

int fd_set_cloexec(int fd, bool on)
{
	return fcntl(fd, F_SETFD, on ? FD_CLOEXEC : 0) < 0 ? -errno : 0;
}

int fd_count(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int count = 0;

	if (!dir)
		return -errno;
	while (readdir(dir))
		count++;
	closedir(dir);
	return count - 3; /* ".", "..", and the directory itself */
}

int fd_raise_limit(unsigned long want, unsigned long *ret_limit)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return -errno;
	if (limit.rlim_cur < want) {
		limit.rlim_cur = limit.rlim_max < want ? limit.rlim_max : want;
		if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
			return -errno;
	}
	*ret_limit = limit.rlim_cur;
	return 0;
}

int fd_read_file(const char *path, size_t max, char **ret_data, size_t *ret_len)
{
	cleanup(cleanup_free) char *data = NULL;
	cleanup(cleanup_close) int fd = -1;
	size_t len = 0;
	struct stat st;

	/* O_NONBLOCK: a FIFO without a writer must not hold us */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	if ((uint64_t)st.st_size > max)
		return -EFBIG;
	data = malloc(max + 1);
	if (!data)
		return -ENOMEM;
	for (;;) {
		ssize_t n = read(fd, data + len, max + 1 - len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		len += (size_t)n;
		if (len > max)
			return -EFBIG;
	}
	data[len] = '\0';
	*ret_data = steal_ptr(&data);
	*ret_len = len;
	return 0;
}

int fd_write_all(int fd, const void *data, size_t len)
{
	const char *p = data;

	while (len > 0) {
		ssize_t n = write(fd, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

int fd_wait(int fd, short events, int timeout_ms)
{
	int64_t end = now_ms() + timeout_ms;
	struct pollfd pfd = { .fd = fd, .events = events };

	for (;;) {
		int left = -1;
		int r;

		if (timeout_ms >= 0) {
			int64_t diff = end - now_ms();

			left = diff > 0 ? (int)(diff < INT_MAX ? diff : INT_MAX) : 0;
		}
		r = poll(&pfd, 1, left);
		if (r > 0)
			return 0;
		if (r == 0)
			return -ETIMEDOUT;
		if (errno != EINTR)
			return -errno;
	}
}
