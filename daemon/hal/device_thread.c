/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The device's thread: open, then serve jobs and events till the transport breaks, then tell the
 * loop and open again. Opening checks the versions and removes the sessions that an earlier npud
 * left behind. The order of posts is the order of things: an event that the device sent before a
 * reply is posted before that reply.
 */
#include "daemon/hal/device.h"
#include "daemon/hal/sim_start.h"
#include "daemon/util/fd.h"
#include "daemon/util/log.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define RETRY_FIRST_MS	250
#define RETRY_LAST_MS	30000
#define RETRY_START_MS	20
#define ORPHANS_WAIT_MS 1000
/* Larger than any call number that a session can have reached. */
#define ORPHAN_CALL (1ull << 62)

/* An abandoned device has no loop to tell any more. */
static void post(struct hal_device *device, struct loop_post *item)
{
	pthread_mutex_lock(&device->lock);
	if (!device->abandoned)
		loop_post(device->loop, item);
	pthread_mutex_unlock(&device->lock);
}

static void post_note(struct hal_device *device, struct hal_note *note,
		      void (*run)(struct loop_post *post))
{
	note->device = device;
	note->post.run = run;
	post(device, &note->post);
}

static struct hal_note *note_new(void)
{
	struct hal_note *note;

	/* Without a note the loop would not learn of the loss of a device: better end at once. */
	note = calloc(1, sizeof(*note));
	if (!note)
		abort();
	return note;
}

static void post_lost(struct hal_device *device, int error, const char *text)
{
	struct hal_note *note = note_new();

	note->error = error;
	snprintf(note->text, sizeof(note->text), "%s", text);
	post_note(device, note, hal_device_on_state);
}

/* True when the device is being freed; else after at most timeout_ms. */
static bool cancelled(struct hal_device *device, int timeout_ms)
{
	return fd_wait(device->cancel_fd, POLLIN, timeout_ms) == 0;
}

static int call(struct hal_device *device, unsigned int nr, void *arg)
{
	const struct hal_call *row = hal_call_find(nr);
	int result, r;

	((struct npu_head *)arg)->size = (__u32)row->size;
	r = device->transport->ops->call(device->transport, nr, row, arg, &result);
	return r < 0 ? r : result;
}

static int fail(char *text, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static int fail(char *text, int error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(text, HAL_TEXT_MAX, format, args);
	va_end(args);
	return error;
}

/* An npu-sim that runs already is taken; else one is started, and given time to listen. */
static int open_sim(struct hal_device *device, char *text)
{
	struct sim_start start = {
		.runtime_dir = device->sim.runtime_dir,
		.number = device->number,
		.memory = device->sim.memory,
		.cores = device->sim.cores,
		.host_visible = device->sim.host_visible,
	};
	uint64_t end;
	int r;

	device->sim_pid = 0;
	r = hal_sim_open(device->path, device->cancel_fd, &device->transport, &device->sim_pid);
	if (r == 0)
		return 0;
	if (r != -ENOENT && r != -ECONNREFUSED)
		return fail(text, r, "%s: cannot connect to npu-sim: %s", device->path,
			    strerror(-r));
	if (device->sim.attach_only)
		return fail(text, r, "%s: no npu-sim listens here; is npu-sim@%u.service active?",
			    device->path, device->number);
	r = sim_start(&start, &device->sim_child, text);
	if (r < 0)
		return r;
	end = loop_now_ms() + SIM_START_WAIT_MS;
	for (;;) {
		int status;

		r = hal_sim_open(device->path, device->cancel_fd, &device->transport,
				 &device->sim_pid);
		if (r == 0) {
			log_info("hal", "device %u: started npu-sim, pid %ld", device->number,
				 (long)device->sim_pid);
			return 0;
		}
		if (waitpid(device->sim_child, &status, WNOHANG) == device->sim_child) {
			device->sim_child = 0;
			return fail(text, -EIO,
				    "npu-sim ended at once (%s %d); see %s/npu-sim-%u.log",
				    WIFEXITED(status) ? "exit status" : "signal",
				    WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status),
				    device->sim.runtime_dir, device->number);
		}
		if (loop_now_ms() >= end)
			return fail(text, -ETIMEDOUT,
				    "npu-sim does not listen at %s after %d ms; see its log",
				    device->path, SIM_START_WAIT_MS);
		if (cancelled(device, RETRY_START_MS))
			return fail(text, -ECANCELED, "npud is stopping");
	}
}

/*
 * One pass over the sessions that the device has: how many were destroyed, and how many it still
 * counts to another connection, which is that of the earlier npud till the device has seen its end.
 */
static int orphans_pass(struct hal_device *device, struct npu_obj_enum *list,
			unsigned int *destroyed, unsigned int *ret_busy)
{
	unsigned int busy = 0;
	uint64_t cursor = 0;
	int r;

	do {
		memset(list, 0, sizeof(*list));
		list->cursor = cursor;
		r = call(device, HAL_CALL(OBJ_ENUM), list);
		if (r < 0)
			return r;
		cursor = list->cursor;
		for (unsigned int i = 0; i < list->count && i < NPU_ENUM_MAX; i++) {
			struct npu_session_destroy destroy = { .head = {
								       .session = list->objects[i]
											  .session,
								       .call = ORPHAN_CALL,
							       } };

			/* sessions come first */
			if (list->objects[i].type != NPU_OBJ_SESSION) {
				cursor = 0;
				break;
			}
			r = call(device, HAL_CALL(SESSION_DESTROY), &destroy);
			if (r == 0)
				(*destroyed)++;
			else if (r == -EBUSY)
				busy++;
			else if (r != -ENOENT)
				return r;
		}
	} while (cursor);
	*ret_busy = busy;
	return 0;
}

static int destroy_orphans(struct hal_device *device, char *text)
{
	struct npu_obj_enum *list = malloc(sizeof(*list));
	unsigned int destroyed = 0, busy = 0;
	uint64_t end = loop_now_ms() + ORPHANS_WAIT_MS;
	int r;

	if (!list)
		return fail(text, -ENOMEM, "no memory");
	do {
		r = orphans_pass(device, list, &destroyed, &busy);
	} while (r == 0 && busy && loop_now_ms() < end && !cancelled(device, RETRY_START_MS));
	free(list);
	if (r < 0)
		return fail(text, r, "%s: cannot remove the sessions of an earlier npud: %s",
			    device->path, strerror(-r));
	if (destroyed)
		log_notice("hal", "device %u: removed %u session%s of an earlier npud",
			   device->number, destroyed, destroyed == 1 ? "" : "s");
	if (busy)
		log_warning("hal", "device %u: %u session%s belong to somebody else",
			    device->number, busy, busy == 1 ? "" : "s");
	return 0;
}

static int greet(struct hal_device *device, struct hal_info *info, char *text)
{
	int r;

	info->version.major = NPU_UAPI_MAJOR;
	info->version.minor = NPU_UAPI_MINOR;
	info->version.queue_major = NPU_QUEUE_MAJOR;
	r = call(device, HAL_CALL(VERSION), &info->version);
	if (r == -EPROTO || (r == 0 && (info->version.major != NPU_UAPI_MAJOR ||
					info->version.queue_major != NPU_QUEUE_MAJOR)))
		return fail(text, -EPROTO,
			    "%s: %.64s speaks device interface %u.%u (queues %u), npud %u.%u "
			    "(queues %u): install matching versions",
			    device->path, info->version.name, info->version.major,
			    info->version.minor, info->version.queue_major, NPU_UAPI_MAJOR,
			    NPU_UAPI_MINOR, NPU_QUEUE_MAJOR);
	if (r < 0)
		return fail(text, r, "%s: cannot ask for its version: %s", device->path,
			    strerror(-r));
	info->version.name[sizeof(info->version.name) - 1] = '\0';
	r = call(device, HAL_CALL(QUERY), &info->query);
	if (r < 0)
		return fail(text, r, "%s: cannot query it: %s", device->path, strerror(-r));
	info->query.name[sizeof(info->query.name) - 1] = '\0';
	info->query.firmware[sizeof(info->query.firmware) - 1] = '\0';
	return destroy_orphans(device, text);
}

static void close_transport(struct hal_device *device)
{
	if (device->transport) {
		device->transport->ops->close(device->transport);
		device->transport = NULL;
	}
	if (device->sim_child > 0 && waitpid(device->sim_child, NULL, WNOHANG) != 0)
		device->sim_child = 0;
}

static int open_device(struct hal_device *device, char *text)
{
	struct hal_note *note;
	int r;

	if (device->is_sim) {
		r = open_sim(device, text);
	} else {
		r = hal_ioctl_open(device->path, &device->transport);
		if (r < 0)
			fail(text, r, "%s: cannot open: %s", device->path, strerror(-r));
	}
	if (r < 0)
		return r;
	note = note_new();
	r = greet(device, &note->info, text);
	if (r < 0) {
		free(note);
		close_transport(device);
		return r;
	}
	note->epoch = ++device->opened;
	post_note(device, note, hal_device_on_state);
	return 0;
}

/* All event records that are there. -EAGAIN when there are no more. */
static int drain_events(struct hal_device *device)
{
	for (;;) {
		struct hal_note *note = note_new();
		int r = device->transport->ops->event(device->transport, &note->event);

		if (r < 0) {
			free(note);
			return r;
		}
		if (note->event.type == NPU_EVENT_MODULE)
			note->event.module.error[NPU_NAME_MAX - 1] = '\0';
		else if (note->event.type == NPU_EVENT_FAULT)
			note->event.fault.kernel[NPU_NAME_MAX - 1] = '\0';
		post_note(device, note, hal_device_on_event);
	}
}

struct hal_job *hal_thread_take(struct hal_device *device)
{
	struct hal_job *job;

	pthread_mutex_lock(&device->lock);
	job = device->queue;
	if (job) {
		device->queue = job->next;
		if (!device->queue)
			device->queue_last = &device->queue;
	}
	pthread_mutex_unlock(&device->lock);
	return job;
}

static void fail_jobs(struct hal_device *device)
{
	struct hal_job *job;

	while ((job = hal_thread_take(device))) {
		job->result = -ENODEV;
		post(device, &job->post);
	}
}

/*
 * Runs one job: 0 when the device has answered, whatever it answered; else -ENODEV or -ECANCELED as
 * of serve(), and the job fails with -ENODEV.
 */
static int run_job(struct hal_device *device, struct hal_job *job)
{
	const struct hal_call *row = hal_call_find(job->nr);
	int r = device->transport->ops->call(device->transport, job->nr, row, job->arg,
					     &job->result);

	job->answered = r == 0;
	if (r < 0) {
		job->result = -ENODEV;
		return r == -ECANCELED ? r : -ENODEV;
	}
	return 0;
}

/* Serves till the transport breaks (-ENODEV) or the device is freed (-ECANCELED). */
static int serve(struct hal_device *device)
{
	struct pollfd pfd[3] = {
		{ .fd = device->wake_fd, .events = POLLIN },
		{ .fd = device->cancel_fd, .events = POLLIN },
		{ .fd = device->transport->ops->poll_fd(device->transport), .events = POLLIN },
	};

	for (;;) {
		struct hal_job *job;
		uint64_t count;
		int r;

		while ((job = hal_thread_take(device))) {
			if (job->epoch != device->opened) {
				job->result = -ENODEV;
				post(device, &job->post);
				continue;
			}
			r = run_job(device, job);
			if (r == 0)
				drain_events(device);
			post(device, &job->post);
			if (r < 0)
				return r;
		}
		r = drain_events(device);
		if (r != -EAGAIN)
			return -ENODEV;
		if (poll(pfd, 3, -1) < 0 && errno != EINTR)
			return -ENODEV;
		if (pfd[1].revents)
			return -ECANCELED;
		if (pfd[0].revents && read(device->wake_fd, &count, sizeof(count)) < 0 &&
		    errno != EAGAIN)
			return -ENODEV;
	}
}

static void *run(void *arg)
{
	struct hal_device *device = arg;
	int wait_ms = RETRY_FIRST_MS;

	while (!cancelled(device, 0)) {
		uint64_t opened_ms;
		char text[HAL_TEXT_MAX] = "";
		int r = open_device(device, text);

		if (r == 0) {
			device->last_error = 0;
			opened_ms = loop_now_ms();
			r = serve(device);
			close_transport(device);
			fail_jobs(device);
			if (r == -ECANCELED)
				break;
			snprintf(text, sizeof(text), "%s: the connection broke", device->path);
			post_lost(device, -ENODEV, text);
			if (loop_now_ms() - opened_ms > RETRY_LAST_MS) {
				wait_ms = RETRY_FIRST_MS;
				continue;
			}
		} else {
			/* each reason once, not once an attempt */
			if (r != device->last_error && r != -ECANCELED)
				post_lost(device, r, text);
			device->last_error = r;
			fail_jobs(device);
		}
		if (cancelled(device, wait_ms))
			break;
		wait_ms = wait_ms * 2 < RETRY_LAST_MS ? wait_ms * 2 : RETRY_LAST_MS;
	}
	close_transport(device);
	fail_jobs(device);
	pthread_mutex_lock(&device->lock);
	device->running = false;
	pthread_cond_signal(&device->ended);
	pthread_mutex_unlock(&device->lock);
	return NULL;
}

int hal_thread_start(struct hal_device *device)
{
	sigset_t all, old;
	int r;

	sigfillset(&all);
	device->running = true;
	pthread_sigmask(SIG_SETMASK, &all, &old);
	r = pthread_create(&device->thread, NULL, run, device);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (r) {
		device->running = false;
		return -r;
	}
	device->started = true;
	return 0;
}

void hal_thread_push(struct hal_device *device, struct hal_job *job)
{
	uint64_t one = 1;
	bool first;

	job->next = NULL;
	pthread_mutex_lock(&device->lock);
	first = !device->queue;
	*device->queue_last = job;
	device->queue_last = &job->next;
	pthread_mutex_unlock(&device->lock);
	if (first)
		fd_write_all(device->wake_fd, &one, sizeof(one));
}
