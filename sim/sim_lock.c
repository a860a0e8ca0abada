/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flock(2) on the file. The holder removes it before it unlocks, so whoever gets the lock looks
 * whether the path still leads to the file that it has locked, and begins again if not.
 */
#include "sim/sim_lock.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "sim/sim_fd.h"

static pid_t lock_holder(int fd)
{
	char text[24];
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	if (n <= 0)
		return 0;
	text[n] = 0;
	return (pid_t)strtol(text, NULL, 10);
}

static int lock_try(const char *path, int *ret_fd, pid_t *ret_holder)
{
	cleanup(sim_fd_close) int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
	struct stat held, named;

	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK)
			return -errno;
		*ret_holder = lock_holder(fd);
		return -EBUSY;
	}
	if (fstat(fd, &held) < 0)
		return -errno;
	if (!S_ISREG(held.st_mode))
		return -EINVAL;
	if (stat(path, &named) < 0 || named.st_ino != held.st_ino || named.st_dev != held.st_dev)
		return -EAGAIN;
	*ret_fd = sim_fd_steal(&fd);
	return 0;
}

int sim_lock_take(struct sim_lock *lock, const char *path, pid_t *ret_holder)
{
	int r = -EAGAIN, fd = -1;

	/* Each turn needs another process that ends just then. */
	for (int i = 0; i < 100 && r == -EAGAIN; i++)
		r = lock_try(path, &fd, ret_holder);
	if (r < 0)
		return r;
	lock->path = strdup(path);
	if (!lock->path) {
		close(fd);
		return -ENOMEM;
	}
	lock->fd = fd;
	return sim_lock_write(lock);
}

int sim_lock_write(struct sim_lock *lock)
{
	char text[24];
	int n = snprintf(text, sizeof(text), "%d\n", (int)getpid());

	if (ftruncate(lock->fd, 0) < 0 || pwrite(lock->fd, text, (size_t)n, 0) != n)
		return errno ? -errno : -EIO;
	return 0;
}

void sim_lock_drop(struct sim_lock *lock)
{
	if (lock->fd < 0)
		return;
	unlink(lock->path);
	sim_fd_close(&lock->fd);
	free(lock->path);
	lock->path = NULL;
}
