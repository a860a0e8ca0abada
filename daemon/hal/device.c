/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop's side of a device: which jobs are under way, their time limits, and the callbacks. The
 * thread's side is device_thread.c; between them are the locked job queue and posts to the loop.
 *
 * A job lies in the flight list from its submission till done(), oldest first; since all have the
 * same time limit, one timer at the head serves all.
 */
#include "daemon/hal/device.h"
#include "daemon/util/cleanup.h"
#include "daemon/util/fd.h"
#include "daemon/util/log.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#define FREE_WAIT_S 1
#define SIM_END_MS  2000

static void flight_add(struct hal_device *device, struct hal_job *job)
{
	job->flight_next = NULL;
	job->flight_prev = device->flight_last;
	*device->flight_last = job;
	device->flight_last = &job->flight_next;
}

static void flight_remove(struct hal_device *device, struct hal_job *job)
{
	*job->flight_prev = job->flight_next;
	if (job->flight_next)
		job->flight_next->flight_prev = job->flight_prev;
	else
		device->flight_last = job->flight_prev;
}

/* The first job whose limit has not passed: where the timer belongs. */
static void timer_update(struct hal_device *device)
{
	uint64_t now = loop_now_ms();
	struct hal_job *job = device->flight;

	while (job && job->timed_out)
		job = job->flight_next;
	if (job)
		loop_timer_set(device->timer, job->deadline_ms > now ? job->deadline_ms - now : 0);
	else
		loop_timer_stop(device->timer);
	device->timer_armed = job != NULL;
}

static void on_timer(void *arg)
{
	struct hal_device *device = arg;
	uint64_t now = loop_now_ms();
	struct hal_job *job = device->flight, *next;

	device->timer_armed = false;
	for (; job; job = next) {
		next = job->flight_next;
		if (job->timed_out)
			continue;
		if (job->deadline_ms > now)
			break;
		job->timed_out = true;
		if (!device->unresponsive) {
			const struct hal_call *call = hal_call_find(job->nr);

			device->unresponsive = true;
			log_warning("hal", "device %u (%s) has not answered %s for %llu ms",
				    device->number, device->path, call->name,
				    (unsigned long long)device->timeout_ms);
		}
		if (job->timeout)
			job->timeout(job);
	}
	timer_update(device);
}

static void job_finish(struct hal_device *device, struct hal_job *job)
{
	flight_remove(device, job);
	job->done(job);
	hal_job_free(job);
}

/* Posted by the thread when a job has its result. */
void hal_device_on_job(struct loop_post *post)
{
	struct hal_job *job = (struct hal_job *)((char *)post - offsetof(struct hal_job, post));
	struct hal_device *device = job->device;
	bool first = job == device->flight;

	if (device->unresponsive && job->answered) {
		device->unresponsive = false;
		log_notice("hal", "device %u (%s) answers again", device->number, device->path);
	}
	job_finish(device, job);
	/* done() may have submitted the job that is the first now */
	if (first && !device->flight && device->timer_armed) {
		loop_timer_stop(device->timer);
		device->timer_armed = false;
	}
}

void hal_device_on_event(struct loop_post *post)
{
	struct hal_note *note = (struct hal_note *)post;
	struct hal_device *device = note->device;

	if (!device->freeing)
		device->fns.event(device, &note->event, device->arg);
	free(note);
}

void hal_device_on_state(struct loop_post *post)
{
	struct hal_note *note = (struct hal_note *)post;
	struct hal_device *device = note->device;

	device->unresponsive = false;
	if (note->error) {
		struct hal_job *job;

		device->state = HAL_LOST;
		/* came too late for the thread to fail them: not to wait till it is open again */
		while ((job = hal_thread_take(device))) {
			job->result = -ENODEV;
			job_finish(device, job);
		}
		if (!device->freeing)
			device->fns.lost(device, note->error, note->text, device->arg);
	} else {
		device->state = HAL_READY;
		device->info = note->info;
		device->epoch = note->epoch;
		if (!device->freeing)
			device->fns.ready(device, device->arg);
	}
	free(note);
}

int hal_submit(struct hal_device *device, struct hal_job *job)
{
	if (device->state != HAL_READY || device->freeing)
		return -ENODEV;
	if (device->unresponsive && !(job->flags & HAL_JOB_ALWAYS))
		return -ETIMEDOUT;
	job->device = device;
	job->epoch = device->epoch;
	job->deadline_ms = loop_now_ms() + device->timeout_ms;
	flight_add(device, job);
	/* an armed timer is early at worst, and then arms itself anew */
	if (!device->timer_armed)
		timer_update(device);
	hal_thread_push(device, job);
	return 0;
}

struct hal_job *hal_job_new(unsigned int nr, void (*done)(struct hal_job *job), void *owner)
{
	const struct hal_call *call = hal_call_find(nr);
	struct hal_job *job;
	size_t head = (sizeof(*job) + 15) & ~(size_t)15;
	__s32 *fds;

	if (!call)
		return NULL;
	job = calloc(1, head + call->size);
	if (!job)
		return NULL;
	job->arg = (char *)job + head;
	((struct npu_head *)job->arg)->size = (__u32)call->size;
	fds = hal_call_fds(call, job->arg);
	for (unsigned int i = 0; i < call->fds; i++)
		fds[i] = -1;
	job->nr = nr;
	job->done = done;
	job->owner = owner;
	job->post.run = hal_device_on_job;
	return job;
}

void hal_job_free(struct hal_job *job)
{
	const struct hal_call *call;
	__s32 *fds;

	if (!job)
		return;
	call = hal_call_find(job->nr);
	fds = hal_call_fds(call, job->arg);
	for (unsigned int i = 0; i < call->fds; i++) {
		if (fds[i] >= 0)
			close(fds[i]);
	}
	free(job);
}

int hal_device_new(struct loop *loop, unsigned int number, const char *path,
		   const struct hal_sim_config *sim, uint64_t timeout_ms,
		   const struct hal_device_fns *fns, void *arg, struct hal_device **ret_device)
{
	struct hal_device *device = calloc(1, sizeof(*device));
	int r;

	if (!device)
		return -ENOMEM;
	device->loop = loop;
	device->number = number;
	device->is_sim = !path;
	device->timeout_ms = timeout_ms;
	device->fns = *fns;
	device->arg = arg;
	device->flight_last = &device->flight;
	device->queue_last = &device->queue;
	device->wake_fd = -1;
	device->cancel_fd = -1;
	pthread_mutex_init(&device->lock, NULL);
	pthread_cond_init(&device->ended, NULL);
	if (path) {
		r = asprintf(&device->path, "%s", path);
	} else {
		device->sim = *sim;
		device->sim.runtime_dir = strdup(sim->runtime_dir);
		r = asprintf(&device->path, "%s/npu-sim-%u.sock", sim->runtime_dir, number);
	}
	if (r < 0 || (!path && !device->sim.runtime_dir)) {
		device->path = r < 0 ? NULL : device->path;
		r = -ENOMEM;
		goto fail;
	}
	device->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	device->cancel_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (device->wake_fd < 0 || device->cancel_fd < 0) {
		r = -errno;
		goto fail;
	}
	r = loop_timer_new(loop, on_timer, device, &device->timer);
	if (r < 0)
		goto fail;
	r = hal_thread_start(device);
	if (r < 0)
		goto fail;
	*ret_device = device;
	return 0;
fail:
	hal_device_free(device);
	return r;
}

/* Waits till the thread has ended, a second at most; true when it has. */
static bool thread_stop(struct hal_device *device)
{
	struct timespec end;
	bool ended;
	uint64_t one = 1;

	fd_write_all(device->cancel_fd, &one, sizeof(one));
	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += FREE_WAIT_S;
	pthread_mutex_lock(&device->lock);
	while (device->running) {
		if (pthread_cond_timedwait(&device->ended, &device->lock, &end) == ETIMEDOUT)
			break;
	}
	ended = !device->running;
	device->abandoned = !ended;
	pthread_mutex_unlock(&device->lock);
	if (ended)
		pthread_join(device->thread, NULL);
	else
		pthread_detach(device->thread);
	return ended;
}

/* Asks an npu-sim to end, and waits a little for it: who ends npud may want its directory next. */
static void end_sim(struct hal_device *device)
{
	/* started, but not connected yet: the child is all we know */
	pid_t pid = device->sim_pid > 0 ? device->sim_pid : device->sim_child;
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	if (fd < 0)
		return; /* it has ended already */
	if (kill(pid, SIGTERM) < 0 || fd_wait(fd, POLLIN, SIM_END_MS) < 0)
		log_warning("hal", "npu-sim, pid %ld, does not end", (long)pid);
	else if (device->sim_child == pid)
		waitpid(device->sim_child, NULL, WNOHANG);
	close(fd);
}

void hal_device_free(struct hal_device *device)
{
	bool ended = true;

	if (!device)
		return;
	device->freeing = true;
	if (device->started)
		ended = thread_stop(device);
	if (!ended)
		log_warning("hal", "device %u (%s) hangs in a call, giving it up", device->number,
			    device->path);
	/* what the thread has posted has its effect now; a hung one keeps its job and us */
	loop_run_posts(device->loop);
	while (device->flight) {
		struct hal_job *job = device->flight;

		job->result = -ENODEV;
		flight_remove(device, job);
		job->done(job);
		if (ended)
			hal_job_free(job);
	}
	loop_timer_free(device->timer);
	device->timer = NULL;
	if (!ended)
		return;
	if (device->sim.stop_at_end && (device->sim_pid > 0 || device->sim_child > 0))
		end_sim(device);
	if (device->wake_fd >= 0)
		close(device->wake_fd);
	if (device->cancel_fd >= 0)
		close(device->cancel_fd);
	pthread_cond_destroy(&device->ended);
	pthread_mutex_destroy(&device->lock);
	free((char *)device->sim.runtime_dir);
	free(device->path);
	free(device);
}

unsigned int hal_device_number(const struct hal_device *device)
{
	return device->number;
}

enum hal_state hal_device_state(const struct hal_device *device)
{
	return device->state;
}

bool hal_device_unresponsive(const struct hal_device *device)
{
	return device->unresponsive;
}

const char *hal_device_path(const struct hal_device *device)
{
	return device->path;
}

const struct npu_query *hal_device_info(const struct hal_device *device)
{
	return &device->info.query;
}

const struct npu_version *hal_device_version(const struct hal_device *device)
{
	return &device->info.version;
}

uint64_t hal_device_next_call(struct hal_device *device)
{
	return ++device->session_calls;
}
