/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NPU_MGMT_INT_H
#define NPU_MGMT_INT_H

#include <sys/queue.h>

#include "daemon/core/op.h"
#include "daemon/mgmt/admin.h"
#include "daemon/mgmt/bus.h"
#include "daemon/mgmt/mgmt.h"

/* Inside of struct mgmt; only mgmt/ includes this. */

#define MGMT_NAME     "org.npud"
#define MGMT_PATH     "/org/npud"
#define MGMT_MANAGER  "org.npud.Manager1"
#define MGMT_DEVICE   "org.npud.Device1"
#define MGMT_PATH_MAX 32 /* of a device's object */

struct mgmt_device {
	struct mgmt *mgmt;
	unsigned int id;
	struct core_device_info shown; /* what the last signals were about */
};

struct mgmt {
	struct loop *loop;
	struct core *core;
	const struct conf *conf;
	const char *version;
	gid_t admin_gid; /* (gid_t)-1: there is no such group */
	struct bus *bus;
	unsigned int device_count;
	struct mgmt_device devices[CORE_DEVICES_MAX];
	TAILQ_HEAD(, admin_call) calls;

	/* fresh figures */
	struct loop_timer *timer;
	uint64_t due_ms; /* of the timer; 0: not armed */
	struct op refresh;
	bool refreshing;
	uint64_t refreshed_ms;
	uint64_t follow_ms; /* till the next look at a device that works; 0: none does */
};

/* mgmt.c */
/* Figures may be old: they are fetched soon, and what has changed is signalled. */
void mgmt_touch(struct mgmt *mgmt);
/* Somebody reads them: the same when they are older than a second. */
void mgmt_read(struct mgmt *mgmt);

/* objects.c */
/* Adds all objects to a new connection: 0 or a negative errno. */
int objects_add(struct mgmt *mgmt, sd_bus *sd);
/* Takes the present figures as known to everybody. */
void objects_settle(struct mgmt *mgmt);
/* Signals what has changed since. */
void objects_show(struct mgmt *mgmt);
void objects_fault(struct mgmt *mgmt, const struct core_fault_report *report);
void objects_reset(struct mgmt *mgmt, unsigned int device);

#endif
