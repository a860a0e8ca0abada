/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A list of jobs under a mutex, a thread that takes them in order, and an eventfd by which marks
 * that were reached come back to the loop. When there is no memory for a job the caller does it
 * itself: slow, but nothing is lost.
 */
#include "sim/board_release.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "sim/sim_fd.h"

#define POPULATE_PIECE (16ull << 20)

enum job_kind { JOB_CLOSE, JOB_FILE, JOB_PUNCH, JOB_UNMAP, JOB_POPULATE, JOB_MARK };

struct job_list {
	struct board_job *first, **last;
};

struct board_release {
	struct board_loop *loop;
	struct board_source source; /* eventfd: marks were reached */
	pthread_t thread;
	pthread_mutex_t lock; /* over what follows */
	pthread_cond_t wake;
	struct job_list todo;
	struct job_list marks;
	uint64_t backlog; /* bytes of JOB_FILE and JOB_POPULATE */
	bool ending;
};

static void job_list_init(struct job_list *list)
{
	list->first = NULL;
	list->last = &list->first;
}

static void job_list_push(struct job_list *list, struct board_job *job)
{
	job->next = NULL;
	job->at = list->last;
	*list->last = job;
	list->last = &job->next;
}

static void job_list_take(struct job_list *list, struct board_job *job)
{
	*job->at = job->next;
	if (job->next)
		job->next->at = job->at;
	else
		list->last = job->at;
}

static struct board_job *job_list_pop(struct job_list *list)
{
	struct board_job *job = list->first;

	if (job)
		job_list_take(list, job);
	return job;
}

static void job_run(struct board_job *job)
{
	int r = 0;

	if (job->kind == JOB_UNMAP)
		munmap((void *)(uintptr_t)job->offset, job->bytes);
	/* A failure leaves pages that are nobody else's; closing gives them back in the end. */
	if (job->kind == JOB_FILE || job->kind == JOB_PUNCH)
		r = fallocate(job->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			      (off_t)job->offset, (off_t)job->bytes);
	(void)r;
	sim_fd_close(&job->fd);
}

/* With the lock held. */
static void release_tell(struct board_release *self, struct board_job *job)
{
	bool first = !self->marks.first;

	job_list_push(&self->marks, job);
	if (first)
		eventfd_write(self->source.fd, 1);
}

/* The next piece; with the lock held, which is given up meanwhile. bytes: what is left. */
static void release_populate(struct board_release *self, struct board_job *job)
{
	uint64_t piece = job->bytes < POPULATE_PIECE ? job->bytes : POPULATE_PIECE;
	int r = -1;

	job->queued = false;
	if (!self->ending) {
		pthread_mutex_unlock(&self->lock);
		r = fallocate(job->fd, 0, (off_t)job->offset, (off_t)piece);
		pthread_mutex_lock(&self->lock);
	}
	if (r < 0 || job->cancelled)
		piece = job->bytes;
	job->offset += piece;
	job->bytes -= piece;
	self->backlog -= piece;
	if (job->bytes) {
		job->queued = true;
		job_list_push(&self->todo, job);
	} else {
		release_tell(self, job);
	}
}

static void *release_thread(void *arg)
{
	struct board_release *self = arg;
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	prctl(PR_SET_NAME, "npu-release");
	pthread_mutex_lock(&self->lock);
	for (;;) {
		struct board_job *job = job_list_pop(&self->todo);

		if (!job) {
			if (self->ending)
				break;
			pthread_cond_wait(&self->wake, &self->lock);
			continue;
		}
		if (job->kind == JOB_MARK) {
			release_tell(self, job);
			continue;
		}
		if (job->kind == JOB_POPULATE) {
			release_populate(self, job);
			continue;
		}
		pthread_mutex_unlock(&self->lock);
		job_run(job);
		pthread_mutex_lock(&self->lock);
		if (job->kind == JOB_FILE) {
			self->backlog -= job->bytes;
			release_tell(self, job);
		} else {
			free(job);
		}
	}
	pthread_mutex_unlock(&self->lock);
	return NULL;
}

static void release_reached(struct board_release *self)
{
	struct board_job *job, *next;

	pthread_mutex_lock(&self->lock);
	job = self->marks.first;
	job_list_init(&self->marks);
	pthread_mutex_unlock(&self->lock);
	for (; job; job = next) {
		next = job->next;
		job->reached(job);
	}
}

static void release_ready(struct board_source *source, uint32_t events)
{
	struct board_release *self = sim_container(source, struct board_release, source);
	eventfd_t value;

	(void)events;
	eventfd_read(source->fd, &value);
	release_reached(self);
}

int board_release_new(struct board_loop *loop, struct board_release **ret_release)
{
	struct board_release *self = calloc(1, sizeof(*self));
	int r;

	if (!self)
		return -ENOMEM;
	self->loop = loop;
	self->source.ready = release_ready;
	job_list_init(&self->todo);
	job_list_init(&self->marks);
	pthread_mutex_init(&self->lock, NULL);
	pthread_cond_init(&self->wake, NULL);
	self->source.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r = self->source.fd < 0 ? -errno : board_loop_add(loop, &self->source, EPOLLIN);
	if (r == 0)
		r = -pthread_create(&self->thread, NULL, release_thread, self);
	if (r < 0) {
		sim_fd_close(&self->source.fd);
		free(self);
		return r;
	}
	*ret_release = self;
	return 0;
}

void board_release_free(struct board_release *self)
{
	if (!self)
		return;
	pthread_mutex_lock(&self->lock);
	self->ending = true;
	pthread_cond_signal(&self->wake);
	pthread_mutex_unlock(&self->lock);
	pthread_join(self->thread, NULL);
	release_reached(self);
	board_loop_delete(self->loop, &self->source);
	close(self->source.fd);
	pthread_mutex_destroy(&self->lock);
	pthread_cond_destroy(&self->wake);
	free(self);
}

static void release_push(struct board_release *self, struct board_job *job)
{
	bool first;

	pthread_mutex_lock(&self->lock);
	first = !self->todo.first;
	job_list_push(&self->todo, job);
	if (job->kind == JOB_FILE || job->kind == JOB_POPULATE)
		self->backlog += job->bytes;
	if (first)
		pthread_cond_signal(&self->wake);
	pthread_mutex_unlock(&self->lock);
}

static void release_give(struct board_release *self, struct board_job what)
{
	struct board_job *job = malloc(sizeof(*job));

	if (!job) {
		job_run(&what);
		return;
	}
	*job = what;
	release_push(self, job);
}

void board_release_close(struct board_release *self, int fd)
{
	release_give(self, (struct board_job){ .kind = JOB_CLOSE, .fd = fd });
}

void board_release_file(struct board_release *self, struct board_job *job, int fd, uint64_t bytes,
			void (*reached)(struct board_job *job))
{
	*job = (struct board_job){
		.kind = JOB_FILE, .fd = fd, .bytes = bytes, .reached = reached,
	};
	release_push(self, job);
}

uint64_t board_release_backlog(struct board_release *self)
{
	uint64_t backlog;

	pthread_mutex_lock(&self->lock);
	backlog = self->backlog;
	pthread_mutex_unlock(&self->lock);
	return backlog;
}

/* Without an fd to spare the job is skipped: the pages go with the file. */
static void release_give_copy(struct board_release *self, struct board_job what)
{
	what.fd = fcntl(what.fd, F_DUPFD_CLOEXEC, 3);
	if (what.fd >= 0)
		release_give(self, what);
}

void board_release_range(struct board_release *self, int fd, uint64_t offset, uint64_t bytes)
{
	release_give_copy(self, (struct board_job){
		.kind = JOB_PUNCH, .fd = fd, .offset = offset, .bytes = bytes });
}

void board_release_unmap(struct board_release *self, void *map, size_t bytes)
{
	release_give(self, (struct board_job){
		.kind = JOB_UNMAP, .fd = -1, .offset = (uintptr_t)map, .bytes = bytes });
}

void board_release_populate(struct board_release *self, struct board_job *job, int fd,
			    uint64_t bytes, void (*reached)(struct board_job *job))
{
	*job = (struct board_job){
		.kind = JOB_POPULATE, .queued = true, .fd = fd, .bytes = bytes, .reached = reached,
	};
	release_push(self, job);
}

bool board_release_cancel(struct board_release *self, struct board_job *job)
{
	bool queued;

	pthread_mutex_lock(&self->lock);
	queued = job->queued;
	if (queued) {
		job->queued = false;
		job_list_take(&self->todo, job);
		self->backlog -= job->bytes;
	}
	job->cancelled = true;
	pthread_mutex_unlock(&self->lock);
	return queued;
}

void board_release_mark(struct board_release *self, struct board_job *mark,
			void (*reached)(struct board_job *mark))
{
	mark->kind = JOB_MARK;
	mark->fd = -1;
	mark->reached = reached;
	release_push(self, mark);
}
