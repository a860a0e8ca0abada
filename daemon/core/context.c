/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts. The device refuses to destroy one that has queues, so its queues are destroyed first:
 * the device takes the calls in order, nobody has to wait in between.
 */
#include "daemon/core/space.h"

#include <errno.h>
#include <stdlib.h>

static struct hal_job *context_destroy_job(struct object *object, void (*done)(struct hal_job *job))
{
	struct hal_job *job = space_job(object->space, HAL_CALL(CTX_DESTROY), true, done, object);

	if (job)
		((struct npu_ctx_destroy *)job->arg)->ctx = (__u32)object->device_id;
	return job;
}

const struct object_class context_class = {
	.name = "context",
	.limit = "contexts",
	.destroy_job = context_destroy_job,
};

static void create_done(struct hal_job *job)
{
	struct object *context = job->owner;
	const struct npu_ctx_create *create = job->arg;
	struct space *space = context->space;
	struct op *op;

	if (object_created(context, job->result, create->ctx, "creating a context")) {
		op = context->op;
		context->op = NULL;
		context->state = OBJECT_LIVE;
		op->context.id = context->id;
		op->context.slot = create->ctx; /* the slab's context_error is indexed by it */
		op_finish(op);
	}
	space_settle(space);
}

int context_create(struct session *session, unsigned int device,
		   const struct context_params *params, struct op *op)
{
	struct space *space = space_get(session, device, op);
	struct npu_ctx_create *create;
	struct object *context;
	struct hal_job *job;
	int r;

	if (!space)
		return op->error;
	context = calloc(1, sizeof(*context));
	if (!context)
		return op_error(op, -ENOMEM, "npud has no memory left");
	object_init(context, OBJECT_CONTEXT, space, op);
	r = object_add(context);
	if (r < 0) {
		free(context);
		return r;
	}
	job = space_job(space, HAL_CALL(CTX_CREATE), true, create_done, context);
	if (job) {
		create = job->arg;
		create->priority = params->priority;
		create->weight = params->weight;
		create->cores = params->cores;
		create->user = context->id;
	}
	return object_submit_create(context, job, "creating a context");
}

int context_destroy(struct session *session, uint32_t id, struct op *op)
{
	struct object *context = object_get(session, OBJECT_CONTEXT, id, op);
	struct object *object, *next;

	if (!context)
		return op->error;
	TAILQ_FOREACH(object, &context->space->objects, entry) {
		if (object->type == OBJECT_QUEUE && queue_context(object) == context &&
		    object->state == OBJECT_CREATING)
			return op_error(op, -EBUSY, "context %u: a queue of it is being created",
					id);
	}
	for (object = TAILQ_FIRST(&context->space->objects); object; object = next) {
		next = TAILQ_NEXT(object, entry);
		if (object->type == OBJECT_QUEUE && object->state == OBJECT_LIVE &&
		    queue_context(object) == context)
			object_destroy(object, NULL);
	}
	return object_destroy(context, op);
}

static void set_done(struct space *space, struct hal_job *job, struct op *op)
{
	if (job->result < 0)
		space_fail(space, op, job->result, "changing a context");
	else
		op_finish(op);
}

int context_set(struct session *session, uint32_t id, uint32_t fields,
		const struct context_params *params, struct op *op)
{
	struct object *context = object_get(session, OBJECT_CONTEXT, id, op);
	struct npu_ctx_set *set;
	struct hal_job *job;

	if (!context)
		return op->error;
	job = space_job(context->space, HAL_CALL(CTX_SET), true, NULL, NULL);
	if (job) {
		set = job->arg;
		set->head.flags = fields;
		set->ctx = (__u32)context->device_id;
		set->priority = params->priority;
		set->weight = params->weight;
		set->cores = params->cores;
	}
	return space_call(context->space, job, op, set_done);
}
