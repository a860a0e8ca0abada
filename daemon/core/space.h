/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NPU_CORE_SPACE_H
#define NPU_CORE_SPACE_H

#include <sys/queue.h>
#include <uthash.h>

#include "daemon/core/charge.h"
#include "daemon/core/object.h"
#include "daemon/core/vaspace.h"
#include "daemon/hal/hal.h"
#include "daemon/util/idtab.h"
#include "daemon/util/log.h"

/*
 * Inside of the core: a space is one (session, device), which is one address space of the device,
 * and the objects in it. Only core/ includes this.
 *
 * A space is CREATING, OPEN, LOST (its device went away: only closing is left) or CLOSING. Every
 * job for the device that concerns a space is counted in space->jobs; space_settle() at the end of
 * each done() frees a closing space when its last job is back. Jobs reach the device in the order
 * of submission, so when SESSION_DESTROY has been answered nothing of the space is in use any more.
 *
 * An object is CREATING till its creation was answered (it has an id, but nobody can name it),
 * LIVE, or DEAD: no id, charged still, waiting for the device to confirm, at the latest for the end
 * of its space. An object whose op is gone when its creation succeeds is destroyed again.
 */

struct core_device {
	struct core *core;
	unsigned int id;
	struct hal_device *hal;
	bool opened;		/* answered the first time, or failed to */
	struct npu_query query; /* the last */
	struct space *spaces;	/* hash by hal_id */
	unsigned int clients;	/* spaces that are OPEN or LOST */
	bool drained;		/* opens no more spaces */
	bool resetting;		/* a RESET has not been answered */
	uint64_t dropped;	/* event records */
	struct log_limit dropped_limit;
	TAILQ_HEAD(, module) loading; /* waiting for their event */
};

enum object_type { OBJECT_CONTEXT, OBJECT_MEMORY, OBJECT_QUEUE, OBJECT_MODULE, OBJECT_TYPES };
enum object_state { OBJECT_CREATING, OBJECT_LIVE, OBJECT_DEAD };

struct session {
	struct core *core;
	uint64_t id;
	struct session_peer peer;
	struct charge charge;
	struct vaspace window;
	struct idtab ids[OBJECT_TYPES];
	struct space *spaces[CORE_DEVICES_MAX];
	unsigned int space_count; /* spaces not gone yet, closing ones included */
	uint64_t opened_ms;
	uint64_t faults;
	struct log_limit fault_limit;
	bool closing;
	TAILQ_ENTRY(session) entry;
};

enum space_state { SPACE_CREATING, SPACE_OPEN, SPACE_LOST, SPACE_CLOSING };

struct space {
	struct session *session;
	struct core_device *device;
	enum space_state state;
	bool hashed;	/* is in device->spaces */
	bool gone;	/* LOST: the device has forgotten it */
	bool destroyed; /* the device let go of it, or is gone */
	uint64_t hal_id;
	uint64_t calls; /* last call number */
	uint64_t slab_address, slab_size;
	uint64_t generation; /* the last that a map call gave */
	uint64_t slab_charged; /* bytes of host memory */
	unsigned int files;    /* charged */
	unsigned int jobs;
	struct hal_job *destroy_job; /* made with the space: closing must not fail */
	struct op *op; /* of opening, then of closing */
	unsigned int count[OBJECT_TYPES];
	uint64_t memory_used, host_used, memory_peak;
	uint64_t faults;
	uint64_t counters[NPU_COUNTER_MAX];
	TAILQ_HEAD(, object) objects;
	UT_hash_handle hh;
};

struct object {
	enum object_type type;
	enum object_state state;
	struct space *space;
	struct op *op;
	uint32_t id;	    /* 0: none any more */
	uint64_t device_id; /* 0: not known */
	TAILQ_ENTRY(object) entry;
};

struct core {
	struct loop *loop;
	const struct conf *conf;
	struct charge_table charges;
	struct core_device devices[CORE_DEVICES_MAX];
	unsigned int device_count;
	TAILQ_HEAD(, session) sessions; /* ids rise */
	unsigned int session_count;	/* open ones */
	uint64_t last_session;
	uint64_t faults;
	void (*opened)(void *arg); /* NULL: has been called */
	void *opened_arg;
	struct loop_timer *open_timer;
	void (*idle)(void *arg);
	void *idle_arg;
	const struct core_watch *watch;
	void *watch_arg;
};

/* core.c */
struct log_ident space_ident(const struct space *space);

/* admin.c: tells the watcher, if there is one */
void core_changed(const struct core_device *device);

/* space.c */
/* The OPEN space of a session on a device, or NULL with op's error set. */
struct space *space_get(struct session *session, unsigned int device, struct op *op);
int space_open(struct session *session, struct core_device *device, struct op *op);
/* op may be NULL. Always ends in space_settle(). */
void space_close(struct space *space, struct op *op);
/* gone: the connection broke; else the device was reset, and still has a dead session. */
void space_lose(struct space *space, bool gone);
/* A job on the space; mutating calls get their number. NULL without memory. */
struct hal_job *space_job(struct space *space, unsigned int nr, bool mutating,
			  void (*done)(struct hal_job *job), void *owner);
/* Submits or, on error, frees it. Counts it. */
int space_submit(struct space *space, struct hal_job *job);
/* At the end of each done(): counts the job out, and frees the space when it is through. */
void space_settle(struct space *space);
/*
 * A call about a living thing, for op: done(job, op) is called unless op has timed out by then; it
 * ends op. job comes from space_job() with done and owner NULL. 0, or a negative errno with op's
 * error set.
 */
int space_call(struct space *space, struct hal_job *job, struct op *op,
	       void (*done)(struct space *space, struct hal_job *job, struct op *op));
/*
 * Charges the space's session: 0, or -EDQUOT with op's error set, that says whose limit it is.
 * charge_give() takes it back.
 */
int space_charge(struct space *space, enum charge_kind kind, uint64_t amount, struct op *op);
/* Text for a negative errno of a call about `what` into op; op NULL: nothing. */
void space_fail(struct space *space, struct op *op, int error, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* The same for a call that fails at once; returns error. */
int space_error(struct space *space, struct op *op, int error, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* object.c */
void object_init(struct object *object, enum object_type type, struct space *space, struct op *op);
/* Gives it an id and a place in its space: 0, or a negative errno with op's error set. */
int object_add(struct object *object);
/* The LIVE object with that id; NULL with op's error set. */
void *object_get(struct session *session, enum object_type type, uint64_t id, struct op *op);
/* Takes the id away: from now on the object is DEAD. */
void object_kill(struct object *object);
/* Unlinks, gives back what it was charged, frees. No job of it may be under way. */
void object_free(struct object *object);
/* For hal_job.timeout when the owner is an object: ends its op. */
void object_timeout(struct hal_job *job);
/* Asks the device to destroy a DEAD object; op (may be NULL) ends with it. */
int object_destroy(struct object *object, struct op *op);

/*
 * Submits the job that creates it (NULL: there was no memory for it): 0, or a negative errno with
 * op's error set; then the object is freed.
 */
int object_submit_create(struct object *object, struct hal_job *job, const char *what);
/*
 * First thing in the done() of a creation: true when it succeeded and somebody waits for it. Else
 * op has ended and the object is freed, or is on its way out.
 */
bool object_created(struct object *object, int result, uint64_t device_id, const char *what);

/* What differs between the types. */
struct object_class {
	const char *name;  /* "context" */
	const char *limit; /* the option that limits them */
	/* The job that destroys it, without done; NULL without memory. */
	struct hal_job *(*destroy_job)(struct object *object, void (*done)(struct hal_job *job));
	/* Gives back what it holds outside of the device. */
	void (*release)(struct object *object);
};
extern const struct object_class context_class, memory_class, queue_class, module_class;

/* memory.c */
/* The device's handle of an image, its room and page in bytes; 0 when it is other memory. */
uint64_t memory_image(const struct object *memory, uint64_t *ret_bytes, uint64_t *ret_page);
/*
 * What a piece of memory is charged. The memory object has one reference; a module takes another,
 * since the device keeps the image of a module that lives when its memory object is freed.
 */
struct memory_hold;
struct memory_hold *memory_hold_get(struct object *memory);
/* NULL: nothing. With the last reference the charge is given back. */
void memory_hold_put(struct memory_hold *hold);

/* queue.c */
struct object *queue_context(const struct object *queue);

/* module.c */
void module_event(struct space *space, const struct npu_event *event);
/* The device dropped records: asks for the state of all modules whose event may be among them. */
void module_events_lost(struct core_device *device);
/* Ends the op of a module whose event will not come. The object itself stays. */
void module_lose(struct object *object, int error);

/* session.c */
/* One space of it is gone. */
void session_let_go(struct session *session);

#endif
