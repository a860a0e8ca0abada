/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NPU_CORE_SESSION_H
#define NPU_CORE_SESSION_H

#include "daemon/core/core.h"

/*
 * A session is what one connection owns: an identity, an account, one window of device addresses,
 * and for each device it has opened a space (space.h) with contexts, memory, queues and modules.
 * The owner of the connection opens and closes it; after session_close() the core keeps it till the
 * devices have let go of everything. Ids are the session's own. The loop's thread.
 */

struct session;

struct session_peer {
	pid_t pid;
	uid_t uid;
	gid_t gid;
	uint64_t pid_start; /* clock ticks since boot; with pid an identity */
	char comm[16];
	bool admin;
};

struct session_usage {
	unsigned int device;
	uint64_t memory, memory_peak, host_memory;
	uint32_t contexts, queues, modules;
	uint64_t objects; /* memory objects */
	uint64_t tasks_queued, tasks_done, core_ns, faults;
	pid_t engine_pid;
};

/* 0; -EDQUOT: too many (text in op); -ENOMEM. op is only for the error. */
int session_open(struct core *core, const struct session_peer *peer, struct op *op,
		 struct session **ret_session);
/* Begins to take everything apart. Operations under way still end, with -ECANCELED as a rule. */
void session_close(struct session *session);

uint64_t session_id(const struct session *session);
const struct session_peer *session_peer(const struct session *session);
struct core *session_core(const struct session *session);
uint64_t session_age_ms(const struct session *session);
/* Memory of the session (or its user, whichever is nearer its limit), and the limit (0: none). */
void session_quota(const struct session *session, uint64_t *ret_used, uint64_t *ret_limit);

/* The open session with the smallest id above `after`, or NULL. */
struct session *session_next(const struct core *core, uint64_t after);
unsigned int session_count(const struct core *core);
/*
 * What it has on the open device with the smallest number >= *device; false when there is none,
 * else *device is that number. The device's part is of the last session_refresh().
 */
bool session_usage(const struct session *session, unsigned int *device,
		   struct session_usage *ret_usage);

/* Opens a device: op->space, fds slab, doorbell, completion, life. -EBUSY when it is open. */
int session_open_device(struct session *session, unsigned int device, struct op *op);
/* Everything of the session on that device goes. */
int session_close_device(struct session *session, unsigned int device, struct op *op);
/* The session's faults on that device with seq > after: op->faults. */
int session_faults(struct session *session, unsigned int device, uint64_t after, struct op *op);

/*
 * Asks all devices for their state (devices), and for the counters of up to max sessions above
 * `after` that `viewer` may see (NULL: none of them). Devices that do not answer leave the last
 * state.
 */
int core_refresh(struct core *core, bool devices, const struct session_peer *viewer, uint64_t after,
		 unsigned int max, struct op *op);
/* Whether viewer may see what session does: its own user's, or an administrator. */
bool session_visible(const struct session *session, const struct session_peer *viewer);

#endif
