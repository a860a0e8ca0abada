/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Life of an address space. Opening is one call; closing is one call too, since the device frees
 * all that is in a session: objects are then only forgotten here and their charges given back. A
 * device that is lost has forgotten the space already.
 */
#include "daemon/core/space.h"
#include "daemon/util/log.h"
#include "daemon/util/parse.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Files that a device holds for a space: slab, doorbell, completion, life pipe, its engine's. */
#define SPACE_FILES 8

/* Gives back what it has, and frees the memory. */
static void space_discard(struct space *space)
{
	struct session *session = space->session;

	if (space->slab_address)
		vaspace_free(&session->window, space->slab_address, space->slab_size);
	charge_give(&session->charge, CHARGE_HOST, space->slab_charged);
	charge_give(&session->charge, CHARGE_FILE, space->files);
	hal_job_free(space->destroy_job);
	free(space);
}

static void space_free(struct space *space)
{
	struct session *session = space->session;
	struct core_device *device = space->device;
	struct op *op = space->op;

	while (!TAILQ_EMPTY(&space->objects))
		object_free(TAILQ_FIRST(&space->objects));
	if (space->hashed)
		HASH_DEL(device->spaces, space);
	if (session->spaces[device->id] == space)
		session->spaces[device->id] = NULL;
	space_discard(space);
	core_changed(device);
	op_finish(op);
	session_let_go(session);
}

void space_settle(struct space *space)
{
	space->jobs--;
	if (space->state == SPACE_CLOSING && space->destroyed && !space->jobs)
		space_free(space);
}

struct hal_job *space_job(struct space *space, unsigned int nr, bool mutating,
			  void (*done)(struct hal_job *job), void *owner)
{
	struct hal_job *job = hal_job_new(nr, done, owner);
	struct npu_head *head;

	if (!job)
		return NULL;
	head = job->arg;
	head->session = space->hal_id;
	if (mutating)
		head->call = ++space->calls;
	return job;
}

int space_submit(struct space *space, struct hal_job *job)
{
	int r = hal_submit(space->device->hal, job);

	if (r < 0)
		hal_job_free(job);
	else
		space->jobs++;
	return r;
}

int space_charge(struct space *space, enum charge_kind kind, uint64_t amount, struct op *op)
{
	static const struct {
		const char *what, *option;
		bool bytes;
	} names[CHARGE_KINDS] = {
		[CHARGE_MEMORY] = { "of device memory", "memory", true },
		[CHARGE_HOST] = { "of host memory", "host_memory", true },
		[CHARGE_FILE] = { "files of the device", "files", false },
	};
	struct charge_refusal refusal;
	char wanted[32], used[32], limit[32];
	int r = charge_take(&space->session->charge, kind, amount, &refusal);

	if (r == 0)
		return 0;
	op->wanted = amount;
	op->limit = refusal.limit;
	if (names[kind].bytes) {
		format_size(amount, wanted, sizeof(wanted));
		format_size(refusal.used, used, sizeof(used));
		format_size(refusal.limit, limit, sizeof(limit));
	} else {
		snprintf(wanted, sizeof(wanted), "%llu", (unsigned long long)amount);
		snprintf(used, sizeof(used), "%llu", (unsigned long long)refusal.used);
		snprintf(limit, sizeof(limit), "%llu", (unsigned long long)refusal.limit);
	}
	return op_error(op, r,
			"device %u: quota: %s %s more wanted, this %s has %s of %s; free some or "
			"see [limits] %s%s",
			space->device->id, wanted, names[kind].what,
			refusal.of_user ? "user" : "connection", used,
			refusal.limit ? limit : "no limit", names[kind].option,
			refusal.of_user ? "_per_user" : "");
}

/* "device 0: WHAT: reason" */
static void error_text(struct space *space, int error, char *text, size_t len, const char *format,
		       va_list args)
{
	char what[256];

	vsnprintf(what, sizeof(what), format, args);
	switch (error) {
	case -ENODEV:
		snprintf(text, len, "device %u: %s: the device is lost; close it and open it again",
			 space->device->id, what);
		break;
	case -ETIMEDOUT:
		snprintf(text, len, "device %u: %s: the device does not answer; try later",
			 space->device->id, what);
		break;
	case -ECANCELED:
		snprintf(text, len, "device %u: %s: the device was closed meanwhile",
			 space->device->id, what);
		break;
	case -EINVAL:
		snprintf(text, len, "device %u: %s: a value is out of its range", space->device->id,
			 what);
		break;
	default:
		snprintf(text, len, "device %u: %s: %s", space->device->id, what, strerror(-error));
	}
}

void space_fail(struct space *space, struct op *op, int error, const char *format, ...)
{
	char text[OP_TEXT_MAX];
	va_list args;

	if (!op)
		return;
	va_start(args, format);
	error_text(space, error, text, sizeof(text), format, args);
	va_end(args);
	op_fail(op, error, "%s", text);
}

int space_error(struct space *space, struct op *op, int error, const char *format, ...)
{
	char text[OP_TEXT_MAX];
	va_list args;

	va_start(args, format);
	error_text(space, error, text, sizeof(text), format, args);
	va_end(args);
	return op_error(op, error, "%s", text);
}

struct space_call {
	struct space *space;
	struct op *op;
	void (*done)(struct space *space, struct hal_job *job, struct op *op);
};

static void call_done(struct hal_job *job)
{
	struct space_call *call = job->owner;

	if (call->op && call->space->state == SPACE_CLOSING)
		space_fail(call->space, call->op, -ECANCELED, "call");
	else if (call->op)
		call->done(call->space, job, call->op);
	space_settle(call->space);
	free(call);
}

static void call_timeout(struct hal_job *job)
{
	struct space_call *call = job->owner;
	struct op *op = call->op;

	call->op = NULL;
	space_fail(call->space, op, -ETIMEDOUT, "call");
}

int space_call(struct space *space, struct hal_job *job, struct op *op,
	       void (*done)(struct space *space, struct hal_job *job, struct op *op))
{
	struct space_call *call = job ? calloc(1, sizeof(*call)) : NULL;
	int r;

	if (!call) {
		hal_job_free(job);
		return op_error(op, -ENOMEM, "npud has no memory left");
	}
	call->space = space;
	call->op = op;
	call->done = done;
	job->owner = call;
	job->done = call_done;
	job->timeout = call_timeout;
	r = space_submit(space, job);
	if (r < 0) {
		free(call);
		return space_error(space, op, r, "call");
	}
	return 0;
}

struct space *space_get(struct session *session, unsigned int device, struct op *op)
{
	struct core *core = session->core;
	struct space *space;

	if (device >= core->device_count) {
		op_error(op, -ENXIO, "device %u: there is none, devices are 0 to %d", device,
			 (int)core->device_count - 1);
		return NULL;
	}
	space = session->spaces[device];
	if (!space || space->state == SPACE_CREATING || space->state == SPACE_CLOSING) {
		op_error(op, -ENOENT, "device %u: this connection has not opened it", device);
		return NULL;
	}
	if (space->state == SPACE_LOST) {
		space_error(space, op, -ENODEV, "call");
		return NULL;
	}
	return space;
}

static void destroy_timeout(struct hal_job *job)
{
	struct space *space = job->owner;
	struct op *op = space->op;

	space->op = NULL;
	space_fail(space, op, -ETIMEDOUT, "closing it");
}

static void destroy_done(struct hal_job *job)
{
	struct space *space = job->owner;

	if (job->result < 0 && job->result != -ENOENT && job->result != -ENODEV) {
		struct log_ident ident = space_ident(space);

		log_msg(LOG_LEVEL_ERROR, "core", &ident, "the device cannot end its session: %s",
			strerror(-job->result));
	}
	space->destroyed = true;
	space_settle(space);
}

/* Tells the device to let go of a CLOSING space. */
static void space_destroy(struct space *space)
{
	struct hal_job *job = space->destroy_job;
	struct npu_head *head = job->arg;

	space->destroy_job = NULL;
	head->session = space->hal_id;
	head->call = ++space->calls;
	job->flags = HAL_JOB_ALWAYS;
	job->timeout = destroy_timeout;
	/* it is refused only by a device whose connection broke, and with that the session went */
	if (space_submit(space, job) < 0)
		space->destroyed = true;
}

static void create_timeout(struct hal_job *job)
{
	struct space *space = job->owner;
	struct op *op = space->op;

	space->op = NULL;
	space_fail(space, op, -ETIMEDOUT, "opening it");
}

static void create_done(struct hal_job *job)
{
	struct space *space = job->owner;
	struct npu_session_create *create = job->arg;
	struct op *op = space->op;

	if (job->result < 0) {
		/* CLOSING: op is of the close, and ends with the space */
		if (space->state != SPACE_CLOSING) {
			space->state = SPACE_CLOSING;
			space->op = NULL;
			space_fail(space, op, job->result, "opening it");
		}
		space->destroyed = true;
		space_settle(space);
		return;
	}
	space->hal_id = create->session;
	HASH_ADD(hh, space->device->spaces, hal_id, sizeof(space->hal_id), space);
	space->hashed = true;
	if (space->state == SPACE_CREATING && op) {
		space->state = SPACE_OPEN;
		space->op = NULL;
		space->device->clients++;
		core_changed(space->device);
		op->space.slab_size = space->slab_size;
		op->space.slab_address = space->slab_address;
		op->fds[0] = hal_take_fd(&create->fd_slab);
		op->fds[1] = hal_take_fd(&create->fd_doorbell);
		op->fds[2] = hal_take_fd(&create->fd_completion);
		op->fds[3] = hal_take_fd(&create->fd_life);
		op->nfds = 4;
		op_finish(op);
	} else {
		/* nobody waits for it any more, or it is being closed already */
		space->state = SPACE_CLOSING;
		space_destroy(space);
	}
	space_settle(space);
}

/*
 * What a slab is charged. It is sparse, and most of it is the rings of streams that are not there:
 * the whole of it would let few connections use up the limit of host memory. Unless the
 * configuration says how much, sessions_per_user connections have room in half of that limit.
 */
static uint64_t slab_charge(const struct space *space)
{
	const struct core *core = space->session->core;
	const struct charge_limits *limits = &core->charges.limits;
	uint64_t bytes = space->slab_size / 8;
	uint64_t of_user = limits->user[CHARGE_HOST] / 2 / core->conf->sessions_per_user;
	uint64_t of_session = limits->session[CHARGE_HOST] / 2;

	if (core->conf->slab_charge)
		return core->conf->slab_charge < space->slab_size ? core->conf->slab_charge :
								    space->slab_size;
	if (of_user < bytes)
		bytes = of_user;
	return of_session < bytes ? of_session : bytes;
}

/* Takes what the space needs before the device is asked: 0, or an error with op's error set. */
static int space_reserve(struct space *space, struct op *op)
{
	uint64_t bytes = slab_charge(space);
	int r;

	r = space_charge(space, CHARGE_FILE, SPACE_FILES, op);
	if (r < 0)
		return r;
	space->files = SPACE_FILES;
	r = space_charge(space, CHARGE_HOST, bytes, op);
	if (r < 0)
		return r;
	space->slab_charged = bytes;
	space->destroy_job = hal_job_new(HAL_CALL(SESSION_DESTROY), destroy_done, space);
	if (!space->destroy_job)
		return op_error(op, -ENOMEM, "npud has no memory left");
	r = vaspace_alloc(&space->session->window, space->slab_size, NPU_PAGE_LARGE,
			  &space->slab_address);
	if (r < 0)
		return op_error(op, r, "device %u: no room for the slab of this connection",
				space->device->id);
	return 0;
}

int space_open(struct session *session, struct core_device *device, struct op *op)
{
	const struct conf *conf = session->core->conf;
	struct npu_session_create *create;
	struct hal_job *job;
	struct space *space;
	int r;

	if (session->spaces[device->id])
		return op_error(op, -EBUSY, "device %u: this connection has it open already",
				device->id);
	if (hal_device_state(device->hal) != HAL_READY)
		return op_error(op, -ENODEV, "device %u (%s): it is not there; see npuctl status",
				device->id, hal_device_path(device->hal));
	if (device->drained)
		return op_error(op, -EBUSY,
				"device %u: it is being drained and takes no new clients; use another, "
				"or wait till an administrator ends that",
				device->id);
	space = calloc(1, sizeof(*space));
	if (!space)
		return op_error(op, -ENOMEM, "npud has no memory left");
	TAILQ_INIT(&space->objects);
	space->session = session;
	space->device = device;
	space->op = op;
	space->slab_size = device->query.slab_size ? device->query.slab_size : NPU_SLAB_SIZE;
	r = space_reserve(space, op);
	if (r < 0) {
		space_discard(space);
		return r;
	}
	job = space_job(space, HAL_CALL(SESSION_CREATE), false, create_done, space);
	if (!job) {
		space_discard(space);
		return op_error(op, -ENOMEM, "npud has no memory left");
	}
	create = job->arg;
	create->head.call = hal_device_next_call(device->hal);
	create->uid = session->peer.uid;
	create->gid = session->peer.gid;
	create->pid = (__u32)session->peer.pid;
	create->pid_start = session->peer.pid_start;
	create->memory_limit = session->core->charges.limits.session[CHARGE_MEMORY];
	create->host_limit = session->core->charges.limits.session[CHARGE_HOST];
	create->queue_limit = (__u32)(conf->streams < NPU_MAX_QUEUES ? conf->streams : 0);
	create->module_limit = (__u32)conf->modules;
	create->slab_address = space->slab_address;
	create->user = session->id;
	memcpy(create->comm, session->peer.comm, sizeof(create->comm));
	job->timeout = create_timeout;
	r = space_submit(space, job);
	if (r < 0) {
		space_error(space, op, r, "opening it");
		space_discard(space);
		return r;
	}
	session->spaces[device->id] = space;
	session->space_count++;
	return 0;
}

void space_close(struct space *space, struct op *op)
{
	enum space_state before = space->state;
	struct op *opening = space->op;
	struct object *object;

	if (before == SPACE_CLOSING) {
		op_finish(op);
		return;
	}
	if (before != SPACE_CREATING)
		space->device->clients--;
	space->state = SPACE_CLOSING;
	space->op = op;
	space->jobs++; /* nothing below frees it */
	TAILQ_FOREACH(object, &space->objects, entry) {
		object_kill(object);
		if (object->type == OBJECT_MODULE)
			module_lose(object, -ECANCELED);
	}
	if (before == SPACE_CREATING) /* create_done() goes on from here */
		space_fail(space, opening, -ECANCELED, "opening it");
	else if (space->gone)
		space->destroyed = true;
	else
		space_destroy(space);
	space_settle(space);
}

void space_lose(struct space *space, bool gone)
{
	struct object *object;

	space->gone = space->gone || gone;
	/* the device that comes back gives out the same ids again */
	if (gone && space->hashed) {
		HASH_DEL(space->device->spaces, space);
		space->hashed = false;
	}
	if (space->state != SPACE_OPEN)
		return; /* CREATING and CLOSING: their job comes back with -ENODEV */
	space->state = SPACE_LOST;
	TAILQ_FOREACH(object, &space->objects, entry) {
		if (object->type == OBJECT_MODULE)
			module_lose(object, -ENODEV);
	}
}
