/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One mutex, one condition, a growing ring of fds, and detached threads started on demand: a thread
 * stuck in close() can't be joined, so shutdown only drops the threads' shared reference.
 */
#include "daemon/util/closer.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct closer {
	pthread_mutex_t lock;
	pthread_cond_t more;
	int *fds;
	size_t head, count, size;
	size_t closing;
	unsigned int threads, idle;
	unsigned int refs; /* the owner and each thread */
	bool stop;
};

int closer_new(struct closer **ret_closer)
{
	struct closer *closer = calloc(1, sizeof(*closer));

	if (!closer)
		return -ENOMEM;
	pthread_mutex_init(&closer->lock, NULL);
	pthread_cond_init(&closer->more, NULL);
	closer->refs = 1;
	*ret_closer = closer;
	return 0;
}

/* Called with the lock held; releases it. */
static void closer_unref(struct closer *closer)
{
	bool last = --closer->refs == 0;

	pthread_mutex_unlock(&closer->lock);
	if (!last)
		return;
	while (closer->count--) {
		close(closer->fds[closer->head]);
		closer->head = (closer->head + 1) % closer->size;
	}
	pthread_cond_destroy(&closer->more);
	pthread_mutex_destroy(&closer->lock);
	free(closer->fds);
	free(closer);
}

void closer_free(struct closer *closer)
{
	if (!closer)
		return;
	pthread_mutex_lock(&closer->lock);
	closer->stop = true;
	pthread_cond_broadcast(&closer->more);
	closer_unref(closer);
}

/* Without the linger time of a socket, if its sender does not set it again meanwhile. */
static void close_fast(int fd)
{
	static const struct linger none;

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &none,
		   sizeof(none)); /* fails for what is no socket */
	close(fd);
}

static void *closer_run(void *arg)
{
	struct closer *closer = arg;

	pthread_mutex_lock(&closer->lock);
	for (;;) {
		int fd;

		while (!closer->count && !closer->stop) {
			closer->idle++;
			pthread_cond_wait(&closer->more, &closer->lock);
			closer->idle--;
		}
		if (!closer->count)
			break;
		fd = closer->fds[closer->head];
		closer->head = (closer->head + 1) % closer->size;
		closer->count--;
		closer->closing++;
		pthread_mutex_unlock(&closer->lock);
		close_fast(fd);
		pthread_mutex_lock(&closer->lock);
		closer->closing--;
	}
	closer->threads--;
	closer_unref(closer);
	return NULL;
}

/* With the lock held. */
static void closer_spawn(struct closer *closer)
{
	pthread_attr_t attr;
	sigset_t all, old;
	pthread_t thread;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, 128 * 1024);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	if (pthread_create(&thread, &attr, closer_run, closer) == 0) {
		closer->threads++;
		closer->refs++;
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
}

static bool closer_room(struct closer *closer)
{
	size_t size = closer->size ? closer->size * 2 : 64;
	int *fds;

	if (closer->count < closer->size)
		return true;
	fds = reallocarray(NULL, size, sizeof(*fds));
	if (!fds)
		return false;
	for (size_t i = 0; i < closer->count; i++)
		fds[i] = closer->fds[(closer->head + i) % closer->size];
	free(closer->fds);
	closer->fds = fds;
	closer->head = 0;
	closer->size = size;
	return true;
}

void closer_close(struct closer *closer, int fd)
{
	bool queued;

	if (fd < 0)
		return;
	pthread_mutex_lock(&closer->lock);
	queued = closer_room(closer);
	if (queued) {
		closer->fds[(closer->head + closer->count) % closer->size] = fd;
		closer->count++;
		if (closer->count > closer->idle && closer->threads < CLOSER_THREADS)
			closer_spawn(closer);
		queued = closer->threads > 0;
		if (!queued)
			closer->count--;
		pthread_cond_signal(&closer->more);
	}
	pthread_mutex_unlock(&closer->lock);
	if (!queued)
		close(fd);
}

size_t closer_pending(struct closer *closer)
{
	size_t pending;

	pthread_mutex_lock(&closer->lock);
	pending = closer->count + closer->closing;
	pthread_mutex_unlock(&closer->lock);
	return pending;
}
