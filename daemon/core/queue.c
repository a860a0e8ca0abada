/* SPDX-License-Identifier: Apache-2.0 */
/* Queues: the rings of streams. What goes through them is between client and device. */
#include "daemon/core/space.h"

#include <errno.h>
#include <stdlib.h>

struct queue {
	struct object object;
	struct object *context; /* lives longer: see context_destroy() */
};

struct object *queue_context(const struct object *object)
{
	return ((const struct queue *)object)->context;
}

static struct hal_job *queue_destroy_job(struct object *object, void (*done)(struct hal_job *job))
{
	struct hal_job *job = space_job(object->space, HAL_CALL(QUEUE_DESTROY), true, done, object);

	if (job)
		((struct npu_queue_destroy *)job->arg)->queue = (__u32)object->device_id;
	return job;
}

const struct object_class queue_class = {
	.name = "queue",
	.limit = "streams",
	.destroy_job = queue_destroy_job,
};

static void create_done(struct hal_job *job)
{
	struct object *queue = job->owner;
	const struct npu_queue_create *create = job->arg;
	struct space *space = queue->space;
	struct op *op;

	if (object_created(queue, job->result, create->queue, "creating a queue")) {
		op = queue->op;
		queue->op = NULL;
		queue->state = OBJECT_LIVE;
		op->queue.id = queue->id;
		op->queue.slot = create->slot;
		op_finish(op);
	}
	space_settle(space);
}

int queue_create(struct session *session, uint32_t context_id, const struct queue_params *params,
		 struct op *op)
{
	struct object *context = object_get(session, OBJECT_CONTEXT, context_id, op);
	struct npu_queue_create *create;
	struct queue *queue;
	struct hal_job *job;
	int r;

	if (!context)
		return op->error;
	queue = calloc(1, sizeof(*queue));
	if (!queue)
		return op_error(op, -ENOMEM, "npud has no memory left");
	object_init(&queue->object, OBJECT_QUEUE, context->space, op);
	queue->context = context;
	r = object_add(&queue->object);
	if (r < 0) {
		free(queue);
		return r;
	}
	job = space_job(context->space, HAL_CALL(QUEUE_CREATE), true, create_done, &queue->object);
	if (job) {
		create = job->arg;
		create->ctx = (__u32)context->device_id;
		create->priority = params->priority;
		create->fail_mode = params->fail_mode;
		create->window = params->window;
		create->user = queue->object.id;
	}
	return object_submit_create(&queue->object, job, "creating a queue");
}

int queue_destroy(struct session *session, uint32_t id, struct op *op)
{
	struct object *queue = object_get(session, OBJECT_QUEUE, id, op);

	return queue ? object_destroy(queue, op) : op->error;
}

static void ctrl_done(struct space *space, struct hal_job *job, struct op *op)
{
	const struct npu_queue_ctrl *ctrl = job->arg;

	if (job->result < 0) {
		space_fail(space, op, job->result, "controlling a queue");
	} else {
		op->queue.epoch = ctrl->epoch;
		op_finish(op);
	}
}

int queue_ctrl(struct session *session, uint32_t id, uint32_t what, uint32_t value, struct op *op)
{
	struct object *queue = object_get(session, OBJECT_QUEUE, id, op);
	struct npu_queue_ctrl *ctrl;
	struct hal_job *job;

	if (!queue)
		return op->error;
	job = space_job(queue->space, HAL_CALL(QUEUE_CTRL), true, NULL, NULL);
	if (job) {
		ctrl = job->arg;
		ctrl->queue = (__u32)queue->device_id;
		ctrl->op = what;
		ctrl->value = value;
	}
	return space_call(queue->space, job, op, ctrl_done);
}
