/* SPDX-License-Identifier: Apache-2.0 */
/* What administrators do to a device, and who is told of what happens to it. */
#include "daemon/core/space.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char *core_health_name(uint32_t health)
{
	return health == NPU_HEALTH_OK ? "ok" : health == NPU_HEALTH_DEGRADED ? "degraded" : "lost";
}

void core_set_watch(struct core *core, const struct core_watch *watch, void *arg)
{
	core->watch = watch;
	core->watch_arg = arg;
}

void core_changed(const struct core_device *device)
{
	const struct core *core = device->core;

	if (core->watch)
		core->watch->changed(device->id, core->watch_arg);
}

struct reset {
	struct core_device *device;
	struct op *op; /* NULL: timed out */
};

static void reset_done(struct hal_job *job)
{
	struct reset *reset = job->owner;
	struct core_device *device = reset->device;
	struct op *op = reset->op;

	device->resetting = false;
	free(reset);
	if (!op)
		return;
	if (job->result < 0)
		op_fail(op, job->result, "device %u: it cannot be reset: %s", device->id,
			strerror(-job->result));
	else
		op_finish(op);
}

static void reset_timeout(struct hal_job *job)
{
	struct reset *reset = job->owner;
	struct op *op = reset->op;

	reset->op = NULL;
	op_fail(op, -ETIMEDOUT,
		"device %u: it has not answered in time; it is reset when it answers",
		reset->device->id);
}

int core_reset(struct core *core, unsigned int device, struct op *op)
{
	struct core_device *target;
	struct reset *reset;
	struct hal_job *job;
	int r;

	if (device >= core->device_count)
		return op_error(op, -ENXIO, "device %u: there is none, devices are 0 to %d", device,
				(int)core->device_count - 1);
	target = &core->devices[device];
	if (hal_device_state(target->hal) != HAL_READY)
		return op_error(op, -ENODEV, "device %u (%s): it is not there; see npuctl status",
				device, hal_device_path(target->hal));
	if (target->resetting)
		return op_error(op, -EBUSY, "device %u: a reset is under way", device);
	reset = calloc(1, sizeof(*reset));
	job = reset ? hal_job_new(HAL_CALL(RESET), reset_done, reset) : NULL;
	if (!job) {
		free(reset);
		return op_error(op, -ENOMEM, "npud has no memory left");
	}
	reset->device = target;
	reset->op = op;
	job->timeout = reset_timeout;
	/* a device that does not answer is what resets are for */
	job->flags = HAL_JOB_ALWAYS;
	r = hal_submit(target->hal, job);
	if (r < 0) {
		hal_job_free(job);
		free(reset);
		return op_error(op, r, "device %u: it cannot be reset: %s", device, strerror(-r));
	}
	target->resetting = true;
	return 0;
}

int core_drain(struct core *core, unsigned int device, bool on)
{
	if (device >= core->device_count)
		return -ENXIO;
	core->devices[device].drained = on;
	core_changed(&core->devices[device]);
	return 0;
}
