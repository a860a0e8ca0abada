/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session outlives its connection till its last space is gone, and is charged as long: a client
 * that reconnects in a hurry does not get past its limits.
 */
#include "daemon/core/space.h"
#include "daemon/util/log.h"

#include <errno.h>
#include <stdlib.h>

#define FAULT_LINES 20 /* a second */

int session_open(struct core *core, const struct session_peer *peer, struct op *op,
		 struct session **ret_session)
{
	struct charge_refusal refusal;
	struct session *session;
	int r;

	if (core->session_count >= core->conf->sessions)
		return op_error(op, -EUSERS,
				"npud serves %u connections, more are not allowed; see "
				"[limits] sessions",
				core->session_count);
	session = calloc(1, sizeof(*session));
	if (!session)
		return op_error(op, -ENOMEM, "npud has no memory left");
	session->core = core;
	session->peer = *peer;
	session->opened_ms = loop_now_ms();
	session->fault_limit.burst = FAULT_LINES;
	r = charge_open(&core->charges, peer->uid, &session->charge);
	if (r < 0)
		goto fail;
	r = charge_take(&session->charge, CHARGE_SESSION, 1, &refusal);
	if (r < 0) {
		r = op_error(op, -EUSERS,
			     "user %u has %llu connections, more are not allowed; see "
			     "[limits] sessions_per_user",
			     (unsigned int)peer->uid, (unsigned long long)refusal.used);
		goto fail;
	}
	r = vaspace_init(&session->window, NPU_WINDOW_BASE, NPU_WINDOW_SIZE, NPU_PAGE_SMALL);
	if (r < 0)
		goto fail;
	idtab_init(&session->ids[OBJECT_CONTEXT], (uint32_t)core->conf->contexts);
	idtab_init(&session->ids[OBJECT_MEMORY], (uint32_t)core->conf->allocations);
	idtab_init(&session->ids[OBJECT_QUEUE], (uint32_t)core->conf->streams);
	idtab_init(&session->ids[OBJECT_MODULE], (uint32_t)core->conf->modules);
	session->id = ++core->last_session;
	TAILQ_INSERT_TAIL(&core->sessions, session, entry);
	core->session_count++;
	*ret_session = session;
	return 0;
fail:
	charge_close(&session->charge);
	free(session);
	if (!op->error)
		op_error(op, r, "npud has no memory left");
	return r;
}

/* With the session's last space the session. */
static void session_end(struct session *session)
{
	struct core *core = session->core;

	TAILQ_REMOVE(&core->sessions, session, entry);
	for (unsigned int type = 0; type < OBJECT_TYPES; type++)
		idtab_fini(&session->ids[type]);
	vaspace_fini(&session->window);
	charge_close(&session->charge);
	free(session);
	if (core->idle && TAILQ_EMPTY(&core->sessions))
		core->idle(core->idle_arg);
}

void session_let_go(struct session *session)
{
	session->space_count--;
	if (session->closing && !session->space_count)
		session_end(session);
}

void session_close(struct session *session)
{
	struct core *core = session->core;

	session->closing = true;
	core->session_count--;
	session->space_count++; /* keeps it while the spaces go */
	for (unsigned int i = 0; i < core->device_count; i++) {
		if (session->spaces[i])
			space_close(session->spaces[i], NULL);
	}
	session_let_go(session);
}

uint64_t session_id(const struct session *session)
{
	return session->id;
}

const struct session_peer *session_peer(const struct session *session)
{
	return &session->peer;
}

struct core *session_core(const struct session *session)
{
	return session->core;
}

uint64_t session_age_ms(const struct session *session)
{
	return loop_now_ms() - session->opened_ms;
}

void session_quota(const struct session *session, uint64_t *ret_used, uint64_t *ret_limit)
{
	charge_quota(&session->charge, CHARGE_MEMORY, ret_used, ret_limit);
}

struct session *session_next(const struct core *core, uint64_t after)
{
	struct session *session;

	TAILQ_FOREACH(session, &core->sessions, entry) {
		if (session->id > after && !session->closing)
			return session;
	}
	return NULL;
}

unsigned int session_count(const struct core *core)
{
	return core->session_count;
}

bool session_visible(const struct session *session, const struct session_peer *viewer)
{
	return viewer->admin || viewer->uid == session->peer.uid;
}

bool session_usage(const struct session *session, unsigned int *device,
		   struct session_usage *ret_usage)
{
	for (unsigned int i = *device; i < session->core->device_count; i++) {
		const struct space *space = session->spaces[i];

		if (!space || (space->state != SPACE_OPEN && space->state != SPACE_LOST))
			continue;
		*device = i;
		*ret_usage = (struct session_usage){
			.device = i,
			.memory = space->memory_used,
			.memory_peak = space->memory_peak,
			.host_memory = space->host_used,
			.contexts = space->count[OBJECT_CONTEXT],
			.queues = space->count[OBJECT_QUEUE],
			.modules = space->count[OBJECT_MODULE],
			.objects = space->count[OBJECT_MEMORY],
			.tasks_queued = space->counters[NPU_COUNTER_TASKS_QUEUED],
			.tasks_done = space->counters[NPU_COUNTER_TASKS_DONE],
			.core_ns = space->counters[NPU_COUNTER_CORE_NS],
			.faults = space->faults,
			.engine_pid = (pid_t)space->counters[NPU_COUNTER_ENGINE_PID],
		};
		return true;
	}
	return false;
}

int session_open_device(struct session *session, unsigned int device, struct op *op)
{
	struct core *core = session->core;

	if (device >= core->device_count)
		return op_error(op, -ENXIO, "device %u: there is none, devices are 0 to %d", device,
				(int)core->device_count - 1);
	return space_open(session, &core->devices[device], op);
}

int session_close_device(struct session *session, unsigned int device, struct op *op)
{
	struct core *core = session->core;
	struct space *space;

	if (device >= core->device_count)
		return op_error(op, -ENXIO, "device %u: there is none, devices are 0 to %d", device,
				(int)core->device_count - 1);
	space = session->spaces[device];
	if (!space || (space->state != SPACE_OPEN && space->state != SPACE_LOST))
		return op_error(op, -ENOENT, "device %u: this connection has not opened it",
				device);
	space_close(space, op);
	return 0;
}
