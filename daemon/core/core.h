/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NPU_CORE_H
#define NPU_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/conf/conf.h"
#include "daemon/core/op.h"
#include "daemon/loop/loop.h"

/*
 * The daemon's state: devices, and the sessions of clients with all they own. The loop's thread.
 *
 * What a client asks becomes an operation (op.h) that ends when the device has answered or the time
 * limit has passed. Sessions are in session.h, their objects in object.h.
 */

#define CORE_DEVICES_MAX 16

struct core;
struct op;
struct session_peer;

/* A device as the last query of it told. Numbers are those of the device interface. */
struct core_device_info {
	unsigned int id;
	bool ready;	   /* it is there */
	bool unresponsive; /* it has not answered in time, and still does not */
	char name[64];
	char firmware[32];
	char driver[64];    /* driver or simulator, with version */
	char transport[64]; /* "sim" or the device node */
	uint32_t kind, health;
	uint32_t uapi_major, uapi_minor;
	uint64_t caps;
	uint32_t cores, util_permille, sessions, engines, max_queues;
	uint64_t memory_total, memory_free, memory_bad, largest_run;
	uint64_t slab_size, busy_ns, default_timeout_us;
	uint32_t sandbox_active, sandbox_missing;
	uint32_t clients; /* connections that have it open; the core's own count, always fresh */
	bool drained;	  /* takes no new clients */
};

struct core_config {
	const struct conf *conf;
	const char *runtime_dir;
	bool sim_attach_only; /* npu-sims are somebody else's to start */
	uint64_t open_files;  /* that a device can have; 0: no limit is known */
};

/*
 * Makes the devices that conf names and starts to open them. opened() is called once, when each
 * device has been opened or has failed to.
 */
int core_new(struct loop *loop, const struct core_config *config, void (*opened)(void *arg),
	     void *arg, struct core **ret_core);
/* All sessions must be closed by their owners; what is left of them is let go. */
void core_free(struct core *core);

/* True when no session is left, those that are being torn down included. */
bool core_idle(const struct core *core);
/* Calls idle() from now on whenever the last session is gone (NULL: no more). */
void core_watch_idle(struct core *core, void (*idle)(void *arg), void *arg);

unsigned int core_device_count(const struct core *core);
/* 0, or -ENODEV for a number that is no device's. */
int core_device_info(const struct core *core, unsigned int id, struct core_device_info *ret_info);
/* The window that device addresses of a session come from: a constant of the device interface. */
void core_window(uint64_t *ret_base, uint64_t *ret_size);
/* Faults since the start. */
uint64_t core_faults(const struct core *core);

/* "ok", "degraded" or "lost"; static. */
const char *core_health_name(uint32_t health);

/* A fault, and whose it was. */
struct core_fault_report {
	unsigned int device;
	uint64_t session;
	const struct session_peer *peer;
	const struct core_fault *fault;
	const char *kind;   /* in words */
	bool address_known; /* fault->address is the one */
};

/*
 * Somebody who wants to know what happens. Called from the middle of the core's work: the watcher
 * may look, but starts no operation and closes no session from within.
 */
struct core_watch {
	/* What core_device_info() tells may be another now, or would be after a core_refresh(). */
	void (*changed)(unsigned int device, void *arg);
	/* Faults of living sessions, as many of each as the log takes (20 a second). */
	void (*fault)(const struct core_fault_report *report, void *arg);
	void (*reset)(unsigned int device, void *arg);
};

/* At most one watcher; NULL: no more. watch must stay. */
void core_set_watch(struct core *core, const struct core_watch *watch, void *arg);

/*
 * Resets a device: all its sessions are lost. Errors: -ENXIO there is no such device, -EBUSY a
 * reset of it is under way, -ENODEV it is not there, -ETIMEDOUT it has not answered in time, and
 * what the device answers.
 */
int core_reset(struct core *core, unsigned int device, struct op *op);
/* A drained device is opened for nobody; who has it open goes on. 0 or -ENXIO. */
int core_drain(struct core *core, unsigned int device, bool on);

#endif
