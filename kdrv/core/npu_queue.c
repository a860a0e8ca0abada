/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * Queues: which rings of the slab are read, and how. The slot freed first is used again first, and
 * one that the engine has not yet let go of is left out: nobody waits for an engine.
 */
#include "kdrv/core/npu_core_int.h"

#define NPU_PRIORITY_MAX 7u
#define NPU_WINDOW_DEFAULT 8u

struct npu_queue *npu_queue_find(struct npu_session *session, uint64_t id)
{
	return npu_table_find(&session->queues, id);
}

struct npu_queue *npu_session_queue_at(struct npu_session *session, uint32_t slot)
{
	return slot < session->queues.capacity ? session->queues.slots[slot].object : NULL;
}

struct npu_queue *npu_session_queue_next(struct npu_session *session, uint64_t *cursor)
{
	uint32_t slot = (uint32_t)*cursor;
	struct npu_queue *queue = npu_table_next(&session->queues, &slot);

	*cursor = (uint64_t)slot + 1;
	return queue;
}

static int npu_queue_post(struct npu_queue *queue)
{
	struct npu_admin_cmd cmd = { .op = NPU_ADMIN_QUEUE_SET, .session = queue->session };

	cmd.queue = queue;
	return npu_admin(queue->session->core, &cmd);
}

/* Finds a slot that the backend takes. -EBUSY: there is none now. */
static int npu_queue_place(struct npu_queue *queue)
{
	struct npu_table *table = &queue->session->queues;
	struct npu_core *core = queue->session->core;
	uint32_t tries = 0;
	int r;

	for (;;) {
		r = npu_table_insert(core, table, queue, &queue->obj.id);
		if (r < 0)
			return r == -ENOSPC ? -EDQUOT : r;
		queue->slot = npu_table_slot_of(table, queue->obj.id);
		r = npu_queue_post(queue);
		if (r == 0)
			return 0;
		npu_table_remove(table, queue->obj.id);
		if (r != -EBUSY)
			return r;
		/* The slot went behind the other free ones. */
		if (++tries < table->capacity - table->count)
			continue;
		tries = 0;
		r = npu_table_grow(core, table);
		if (r < 0)
			return r == -ENOSPC ? -EBUSY : r;
	}
}

int npu_call_queue_create(struct npu_call *call, void *arg)
{
	struct npu_queue_create *create = arg;
	struct npu_session *session = call->session;
	struct npu_ctx *ctx = npu_ctx_find(session, create->ctx);
	struct npu_queue *queue;
	int r;

	if (!ctx)
		return -ENOENT;
	if (create->priority > NPU_PRIORITY_MAX || create->fail_mode > NPU_FAIL_STOP ||
	    create->window > NPU_CORE_MAX_WINDOW)
		return -EINVAL;
	if (session->queues.count >= session->queue_limit)
		return -EDQUOT;
	queue = npu_alloc(call->core, sizeof(*queue));
	if (!queue)
		return -ENOMEM;
	npu_obj_init(&queue->obj, NPU_OBJ_QUEUE, create->user);
	queue->session = session;
	queue->ctx = ctx;
	queue->priority = create->priority;
	queue->fail_mode = create->fail_mode;
	queue->window = create->window ? create->window : NPU_WINDOW_DEFAULT;
	r = npu_queue_place(queue);
	if (r < 0) {
		npu_free(call->core, queue, sizeof(*queue));
		return r;
	}
	queue->started = true;
	ctx->queues++;
	create->queue = (uint32_t)queue->obj.id;
	create->slot = queue->slot;
	return 0;
}

void npu_queue_drop(struct npu_queue *queue)
{
	struct npu_session *session = queue->session;
	struct npu_admin_cmd cmd = { .op = NPU_ADMIN_QUEUE_DROP, .session = session };

	cmd.queue = queue;
	npu_table_remove(&session->queues, queue->obj.id);
	npu_admin(session->core, &cmd);
	queue->ctx->queues--;
	npu_obj_fini(session->core, &queue->obj);
	npu_free(session->core, queue, sizeof(*queue));
}

int npu_call_queue_destroy(struct npu_call *call, void *arg)
{
	struct npu_queue_destroy *destroy = arg;
	struct npu_queue *queue = npu_queue_find(call->session, destroy->queue);

	if (!queue)
		return -ENOENT;
	npu_queue_drop(queue);
	return 0;
}

/* What an op changes; -EINVAL: no such op or value. */
static int npu_queue_apply(struct npu_queue *queue, uint32_t op, uint32_t value)
{
	if (op < NPU_QUEUE_SET_FAIL_MODE && value)
		return -EINVAL;
	switch (op) {
	case NPU_QUEUE_PAUSE:
		queue->paused = true;
		return 0;
	case NPU_QUEUE_RESUME:
		queue->paused = false;
		return 0;
	case NPU_QUEUE_ABORT:
		queue->epoch++;
		return 0;
	case NPU_QUEUE_SET_FAIL_MODE:
		if (value > NPU_FAIL_STOP)
			return -EINVAL;
		queue->fail_mode = value;
		return 0;
	case NPU_QUEUE_SET_PRIORITY:
		if (value > NPU_PRIORITY_MAX)
			return -EINVAL;
		queue->priority = value;
		return 0;
	default:
		return -EINVAL;
	}
}

int npu_call_queue_ctrl(struct npu_call *call, void *arg)
{
	struct npu_queue_ctrl *ctrl = arg;
	struct npu_queue *queue = npu_queue_find(call->session, ctrl->queue), before;
	int r;

	if (!queue)
		return -ENOENT;
	before = *queue;
	r = npu_queue_apply(queue, ctrl->op, ctrl->value);
	if (r == 0)
		r = npu_queue_post(queue);
	if (r < 0) {
		queue->paused = before.paused;
		queue->epoch = before.epoch;
		queue->fail_mode = before.fail_mode;
		queue->priority = before.priority;
		return r;
	}
	ctrl->epoch = queue->epoch;
	return 0;
}

int npu_call_submit(struct npu_call *call, void *arg)
{
	struct npu_submit *submit = arg;
	struct npu_admin_cmd cmd = { .op = NPU_ADMIN_SUBMIT, .session = call->session };
	struct npu_queue *queue = npu_queue_find(call->session, submit->queue);
	uint32_t i;
	int r;

	if (!queue)
		return -ENOENT;
	if (!submit->count || submit->count > NPU_SUBMIT_MAX)
		return -EINVAL;
	for (i = 0; i < submit->count; i++) {
		const struct npu_entry *entry = &submit->entries[i];

		if (entry->op >= NPU_OP_MAX ||
		    (entry->op == NPU_OP_KERNEL && !(entry->flags & NPU_ENTRY_ARGS_DEVICE)))
			return -EINVAL;
	}
	cmd.submit.queue = queue;
	cmd.submit.entries = submit->entries;
	cmd.submit.count = submit->count;
	cmd.submit.taken = 0;
	cmd.submit.tail = 0;
	r = npu_admin(call->core, &cmd);
	if (r < 0)
		return r;
	submit->count = cmd.submit.taken;
	submit->tail = cmd.submit.tail;
	return cmd.submit.taken ? 0 : -EAGAIN;
}

int npu_call_wait(struct npu_call *call, void *arg)
{
	struct npu_wait *wait = arg;
	struct npu_admin_cmd cmd = { .op = NPU_ADMIN_QUEUE_DONE, .session = call->session };
	struct npu_queue *queue = npu_queue_find(call->session, wait->queue);
	uint64_t want = wait->done;
	int r;

	if (!queue)
		return -ENOENT;
	cmd.wait.queue = queue;
	cmd.wait.want = want;
	cmd.wait.done = 0;
	cmd.wait.arm = wait->head.flags & NPU_WAIT_ARM;
	r = npu_admin(call->core, &cmd);
	if (r < 0)
		return r;
	wait->done = cmd.wait.done;
	if (wait->done >= want)
		return 0;
	if (cmd.wait.arm) {
		queue->armed = true;
		queue->want = want;
	}
	return -EAGAIN;
}

void npu_core_queue_done(struct npu_core *core, struct npu_session *session, uint32_t queue_id,
			 uint64_t done)
{
	struct npu_queue *queue;

	npu_core_lock(core);
	queue = session->dying ? NULL : npu_queue_find(session, queue_id);
	if (queue && queue->armed && done >= queue->want) {
		queue->armed = false;
		npu_event_send(core, session->file, NPU_EVENT_QUEUE, session->obj.id,
			       queue->obj.id, queue->obj.user, 0);
	}
	npu_core_unlock(core);
}
