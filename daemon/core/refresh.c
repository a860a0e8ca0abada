/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fresh figures: a batch of queries, each of which is done or timed out once; the last of them ends
 * the op. Spaces may go while their query is under way, so a query keeps its space by counting as a
 * job of it.
 */
#include "daemon/core/space.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct batch {
	struct op *op;
	unsigned int waiting; /* neither done nor timed out */
	unsigned int refs;    /* not done */
};

struct query {
	struct batch *batch;
	struct core_device *device; /* of a QUERY */
	struct space *space;	    /* of COUNTERS */
	bool timed_out;
};

static void batch_less(struct batch *batch)
{
	if (--batch->waiting == 0)
		op_finish(batch->op);
}

static void batch_unref(struct batch *batch)
{
	if (--batch->refs == 0)
		free(batch);
}

static void query_done(struct hal_job *job)
{
	struct query *query = job->owner;
	struct batch *batch = query->batch;

	if (job->result == 0 && query->device)
		query->device->query = *(struct npu_query *)job->arg;
	if (job->result == 0 && query->space)
		memcpy(query->space->counters, ((struct npu_counters *)job->arg)->values,
		       sizeof(query->space->counters));
	if (query->device) {
		struct npu_query *info = &query->device->query;

		info->name[sizeof(info->name) - 1] = '\0';
		info->firmware[sizeof(info->firmware) - 1] = '\0';
	}
	if (!query->timed_out)
		batch_less(batch);
	if (query->space)
		space_settle(query->space);
	batch_unref(batch);
	free(query);
}

static void query_timeout(struct hal_job *job)
{
	struct query *query = job->owner;

	query->timed_out = true;
	batch_less(query->batch);
}

/* One query more, if the device takes it. */
static void batch_add(struct batch *batch, struct core_device *device, struct space *space)
{
	struct query *query = calloc(1, sizeof(*query));
	struct hal_job *job;
	int r;

	if (!query)
		return;
	query->batch = batch;
	query->space = space;
	if (space) {
		job = space_job(space, HAL_CALL(COUNTERS), false, query_done, query);
	} else {
		query->device = device;
		job = hal_job_new(HAL_CALL(QUERY), query_done, query);
	}
	if (!job) {
		free(query);
		return;
	}
	job->timeout = query_timeout;
	if (space) {
		r = space_submit(space, job);
	} else {
		r = hal_submit(device->hal, job);
		if (r < 0)
			hal_job_free(job);
	}
	if (r < 0) {
		free(query);
		return;
	}
	batch->waiting++;
	batch->refs++;
}

/* A batch without queries ends too, but not within the call that made it. */
struct later {
	struct loop_post post;
	struct op *op;
};

static void run_later(struct loop_post *post)
{
	struct later *later = (struct later *)post;
	struct op *op = later->op;

	free(later);
	op_finish(op);
}

int core_refresh(struct core *core, bool devices, const struct session_peer *viewer, uint64_t after,
		 unsigned int max, struct op *op)
{
	struct batch *batch = calloc(1, sizeof(*batch));
	struct session *session;
	struct later *later;

	if (!batch)
		return op_error(op, -ENOMEM, "npud has no memory left");
	batch->op = op;
	for (unsigned int i = 0; devices && i < core->device_count; i++)
		batch_add(batch, &core->devices[i], NULL);
	TAILQ_FOREACH(session, &core->sessions, entry) {
		if (!viewer || !max)
			break;
		if (session->id <= after || session->closing || !session_visible(session, viewer))
			continue;
		max--;
		for (unsigned int i = 0; i < core->device_count; i++) {
			if (session->spaces[i] && session->spaces[i]->state == SPACE_OPEN)
				batch_add(batch, &core->devices[i], session->spaces[i]);
		}
	}
	if (batch->refs)
		return 0;
	free(batch);
	later = calloc(1, sizeof(*later));
	if (!later)
		return op_error(op, -ENOMEM, "npud has no memory left");
	later->post.run = run_later;
	later->op = op;
	loop_post(core->loop, &later->post);
	return 0;
}
