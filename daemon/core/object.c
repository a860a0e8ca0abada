/* SPDX-License-Identifier: Apache-2.0 */
/* What contexts, memory, queues and modules have in common. */
#include "daemon/core/space.h"
#include "daemon/util/log.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct object_class *const classes[OBJECT_TYPES] = {
	[OBJECT_CONTEXT] = &context_class,
	[OBJECT_MEMORY] = &memory_class,
	[OBJECT_QUEUE] = &queue_class,
	[OBJECT_MODULE] = &module_class,
};

void object_init(struct object *object, enum object_type type, struct space *space, struct op *op)
{
	object->type = type;
	object->state = OBJECT_CREATING;
	object->space = space;
	object->op = op;
}

int object_add(struct object *object)
{
	struct space *space = object->space;
	struct idtab *ids = &space->session->ids[object->type];
	const struct object_class *class = classes[object->type];
	int r = idtab_add(ids, object, &object->id);

	if (r == -ENOSPC)
		return op_error(object->op, -EMFILE,
				"device %u: %u %ss, more are not allowed to one connection; see "
				"[limits] %s",
				space->device->id, ids->limit, class->name, class->limit);
	if (r < 0)
		return op_error(object->op, r, "npud has no memory left");
	TAILQ_INSERT_TAIL(&space->objects, object, entry);
	space->count[object->type]++;
	return 0;
}

void *object_get(struct session *session, enum object_type type, uint64_t id, struct op *op)
{
	struct object *object =
		id <= UINT32_MAX ? idtab_get(&session->ids[type], (uint32_t)id) : NULL;

	if (!object || object->state != OBJECT_LIVE) {
		op_error(op, -ENOENT, "%s %llu: this connection has no such object",
			 classes[type]->name, (unsigned long long)id);
		return NULL;
	}
	if (object->space->state == SPACE_LOST) {
		space_error(object->space, op, -ENODEV, "%s %llu", classes[type]->name,
			    (unsigned long long)id);
		return NULL;
	}
	return object;
}

void object_kill(struct object *object)
{
	if (object->id)
		idtab_remove(&object->space->session->ids[object->type], object->id);
	object->id = 0;
	object->state = OBJECT_DEAD;
}

void object_free(struct object *object)
{
	struct space *space = object->space;

	assert(!object->op);
	object_kill(object);
	TAILQ_REMOVE(&space->objects, object, entry);
	space->count[object->type]--;
	if (classes[object->type]->release)
		classes[object->type]->release(object);
	free(object);
}

void object_timeout(struct hal_job *job)
{
	struct object *object = job->owner;
	struct op *op = object->op;

	object->op = NULL;
	space_fail(object->space, op, -ETIMEDOUT, "%s", classes[object->type]->name);
}

static void destroy_done(struct hal_job *job)
{
	struct object *object = job->owner;
	struct space *space = object->space;
	struct op *op = object->op;

	object->op = NULL;
	if (job->result < 0 && job->result != -ENOENT && job->result != -ENODEV) {
		struct log_ident ident = space_ident(space);

		/* it stays charged till its space goes */
		log_msg(LOG_LEVEL_WARNING, "core", &ident, "the device does not free a %s: %s",
			classes[object->type]->name, strerror(-job->result));
		space_fail(space, op, job->result, "freeing a %s", classes[object->type]->name);
	} else {
		object_free(object);
		op_finish(op);
	}
	space_settle(space);
}

int object_destroy(struct object *object, struct op *op)
{
	struct space *space = object->space;
	struct hal_job *job = classes[object->type]->destroy_job(object, destroy_done);
	int r;

	if (!job)
		return op ? op_error(op, -ENOMEM, "npud has no memory left") : -ENOMEM;
	job->timeout = object_timeout;
	/* what the client no longer has must go also from a device that is slow just now */
	job->flags = HAL_JOB_ALWAYS;
	object->op = op;
	r = space_submit(space, job);
	if (r < 0) {
		object->op = NULL;
		return op ? space_error(space, op, r, "freeing a %s", classes[object->type]->name) :
			    r;
	}
	object_kill(object);
	return 0;
}

int object_submit_create(struct object *object, struct hal_job *job, const char *what)
{
	struct space *space = object->space;
	struct op *op = object->op;
	int r = -ENOMEM;

	if (job) {
		job->timeout = object_timeout;
		r = space_submit(space, job);
		if (r == 0)
			return 0;
	}
	object->op = NULL;
	object_free(object);
	return space_error(space, op, r, "%s", what);
}

bool object_created(struct object *object, int result, uint64_t device_id, const char *what)
{
	struct space *space = object->space;
	struct op *op = object->op;

	if (result < 0) {
		object->op = NULL;
		space_fail(space, op, result, "%s", what);
		object_free(object);
		return false;
	}
	object->device_id = device_id;
	if (space->state == SPACE_CLOSING) {
		/* goes with its space */
		object->op = NULL;
		space_fail(space, op, -ECANCELED, "%s", what);
		return false;
	}
	if (!op) {
		object_kill(object);
		object_destroy(object, NULL);
		return false;
	}
	return true;
}
