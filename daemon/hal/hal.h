/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NPU_HAL_H
#define NPU_HAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/loop/loop.h"
#include "kdrv/uapi/npu.h"

/*
 * Devices. Each has a thread of its own, which opens the transport (a /dev/npuN or an npu-sim),
 * runs the calls one after the other and reads event records; the loop's thread submits jobs and
 * gets every result and event by callbacks, so a device that hangs stalls nobody else. All
 * functions and all callbacks belong to the loop's thread.
 *
 * A job is one call. Its owner fills job->arg, submits it, and is called back exactly once through
 * done(), when the device has answered or is gone (-ENODEV). If that takes longer than the time
 * limit, timeout() is called first, once: the owner tells its client and keeps its state till
 * done(). A device with such a job is unresponsive: jobs without HAL_JOB_ALWAYS are refused with
 * -ETIMEDOUT till it answers again.
 */

#define HAL_CALL(name) _IOC_NR(NPU_IOCTL_##name)
#define HAL_FDS_MAX    4

struct hal_device;

enum {
	HAL_JOB_ALWAYS = 1, /* teardown: taken even by an unresponsive device */
};

struct hal_job {
	void *arg;  /* the call's struct, zeroed but for head.size; in and out */
	int result; /* valid in done() */
	void (*done)(struct hal_job *job);
	void (*timeout)(struct hal_job *job); /* may be NULL */
	void *owner;
	unsigned int nr;
	unsigned int flags;

	/* of the device */
	struct loop_post post;
	struct hal_device *device;
	struct hal_job *next;			    /* queue of the thread */
	struct hal_job *flight_next, **flight_prev; /* jobs not answered */
	uint64_t deadline_ms;
	unsigned int epoch; /* of the opening it is for */
	bool timed_out;
	bool answered; /* by the device: result is its word */
};

enum hal_state {
	HAL_OPENING, /* the first attempt is under way */
	HAL_READY,
	HAL_LOST, /* gone; the thread tries to open it again */
};

struct hal_device_fns {
	/*
	 * The device answers: for the first time, or again after a loss, then with another boot id.
	 */
	void (*ready)(struct hal_device *device, void *arg);
	/* The device is gone, or could not be opened: error is a negative errno, text says why. */
	void (*lost)(struct hal_device *device, int error, const char *text, void *arg);
	void (*event)(struct hal_device *device, const struct npu_event *event, void *arg);
};

struct hal_sim_config {
	const char *runtime_dir;
	uint64_t memory;    /* bytes */
	unsigned int cores; /* 0: online cpus */
	bool host_visible;
	bool attach_only; /* never start one: a service does */
	bool stop_at_end; /* end the npu-sim when the device is freed */
};

/*
 * path: a device node; NULL: software NPU number `number`. timeout_ms is the time limit of jobs.
 * The strings and structs are copied. Opening goes on behind; ready() or lost() tells.
 */
int hal_device_new(struct loop *loop, unsigned int number, const char *path,
		   const struct hal_sim_config *sim, uint64_t timeout_ms,
		   const struct hal_device_fns *fns, void *arg, struct hal_device **ret_device);

/*
 * Stops the thread and frees the device; jobs not answered get done(-ENODEV) first. Waits at most a
 * second for a call that hangs in a driver; then the thread is left to the end of the process.
 */
void hal_device_free(struct hal_device *device);

unsigned int hal_device_number(const struct hal_device *device);
enum hal_state hal_device_state(const struct hal_device *device);
bool hal_device_unresponsive(const struct hal_device *device);
/* "/dev/npu0" or the socket of the npu-sim. */
const char *hal_device_path(const struct hal_device *device);
/* What the device said when it was opened; all zero before. */
const struct npu_query *hal_device_info(const struct hal_device *device);
/* The versions it told. */
const struct npu_version *hal_device_version(const struct hal_device *device);
/* The next call number of SESSION_CREATE on this device. */
uint64_t hal_device_next_call(struct hal_device *device);

/* A job for call number nr (HAL_CALL(...)); NULL without memory. */
struct hal_job *hal_job_new(unsigned int nr, void (*done)(struct hal_job *job), void *owner);
/* Only for jobs that were not submitted; the device frees the others after done(). */
void hal_job_free(struct hal_job *job);
/*
 * 0: done() will follow, never from within. Else a negative errno, and the job is still the
 * caller's.
 */
int hal_submit(struct hal_device *device, struct hal_job *job);

/* Takes an fd slot out of a job's struct in done(): what is left there is closed with the job. */
static inline int hal_take_fd(__s32 *slot)
{
	int fd = *slot;

	*slot = -1;
	return fd;
}

#endif
