/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * npu_shim.h - what kdrv/core needs from its surroundings, and the one seam to the hardware
 *
 * npu-sim's board and npu.ko each fill one struct npu_shim. Downwards the core posts admin
 * commands; upwards slow ends come back through the npu_core_* upcalls of npu_core.h.
 *
 * Lock order: front's own locks > core mutex (struct npu_shim lock) > backend's own locks. Every
 * function of the shim is called with the core mutex held (but alloc, free, lock and log, which are
 * called with and without it) and must not call back into the core, nor block or wait for an
 * engine.
 */
#ifndef NPU_SHIM_H
#define NPU_SHIM_H

#include "kdrv/core/npu_shim_port.h"
#include "kdrv/uapi/npu.h"

struct npu_core;
struct npu_core_file;
struct npu_session;
struct npu_ctx;
struct npu_mem;
struct npu_map;
struct npu_queue;
struct npu_module;

/* Physical device memory: a run of NPU_PAGE_SMALL pages, counted from the start of the memory. */
struct npu_page_run {
	uint32_t first;
	uint32_t count;
};

/*
 * Admin commands. Each returns at once: 0 done or accepted, or a negative errno that goes to the
 * caller of the call unchanged (the core then undoes what it had prepared). Commands of one session
 * take effect in the order in which they were posted. Those marked D (drop) cannot fail: a negative
 * value is ignored. Those marked P may answer NPU_ADMIN_PENDING: the end is told by an upcall.
 * Pointers are valid during the command; objects until their drop command.
 */
enum npu_admin_op {
	/* session->slab_address, uid, pid, ...: make slab, doorbell, completion and life fd. No
	 * engine need be started before the first QUEUE_SET or MODULE_LOAD. Sets
	 * session->backend. */
	NPU_ADMIN_SPACE_CREATE = 1,
	/* D: the session is being destroyed (session->dying is set): end its engine. The drops of
	 * all its objects follow, then SPACE_DESTROY; nothing of these need be told to the
	 * engine. */
	NPU_ADMIN_SPACE_STOP = 2,
	/* D P: last command of a session. Release slab and fds. Pending: npu_core_space_gone() when
	 * engine and memory are gone; session stays valid until then. */
	NPU_ADMIN_SPACE_DESTROY = 3,

	/* .mem: back the object (id, kind, bytes, flags, runs[nruns] for kind DEVICE). Sets
	 * mem->backend. The object may outlive the session that made it (imports). */
	NPU_ADMIN_MEM_CREATE = 4,
	/* D P: nobody holds it any more: no handle, map or module. Pending: npu_core_mem_gone()
	 * when its pages may be given to another client; they stay used until then. */
	NPU_ADMIN_MEM_DESTROY = 5,
	/* .map: address, bytes, offset, flags (NPU_MAP_*), generation, mem. */
	NPU_ADMIN_MAP = 6,
	/* D: .map, with .map->generation raised: holds once the range is gone from the space. */
	NPU_ADMIN_UNMAP = 7,

	/* .ctx: a new context (index ctx->id in context_error, to be cleared), or one that
	 * changed. */
	NPU_ADMIN_CTX_SET = 8,
	NPU_ADMIN_CTX_DROP = 9, /* D */
	/* .queue: new (queue->started is false: the ring's control words are to be made fresh), or
	 * changed: paused, priority, fail_mode, epoch (raised: drop all older entries). -EBUSY for
	 * a new one: the engine has not let go of that slot's last ring; another slot is tried. */
	NPU_ADMIN_QUEUE_SET = 10,
	NPU_ADMIN_QUEUE_DROP = 11, /* D: stop reading the ring; see QUEUE_SET for its slot */
	/* .submit: append entries to the ring of .queue; set taken and tail. */
	NPU_ADMIN_SUBMIT = 12,
	/* .wait: set done. With arm: call npu_core_queue_done() once done >= want. */
	NPU_ADMIN_QUEUE_DONE = 13,

	/* .load: have the engine load bytes of module->mem. Ends with npu_core_module_done(). The
	 * image memory stays alive as long as the module, for engines that replace this one. */
	NPU_ADMIN_MODULE_LOAD = 14,
	NPU_ADMIN_MODULE_DROP = 15, /* D */

	/* End every engine, fail every task with NPU_FAULT_LOST. session is NULL. */
	NPU_ADMIN_RESET = 16,
	/* .inject; session is NULL when the call named none. */
	NPU_ADMIN_INJECT = 17,
	/* .counters: fill TASKS_QUEUED, TASKS_DONE, CORE_NS, ENGINE_PID of session (NULL: the sums,
	 * pid 0); the core has filled the rest. */
	NPU_ADMIN_COUNTERS = 18,
	/* .query: fill util_permille, engines, sandbox_active, sandbox_missing, busy_ns. */
	NPU_ADMIN_QUERY = 19,
};

#define NPU_ADMIN_PENDING 1

struct npu_admin_cmd {
	enum npu_admin_op op;
	struct npu_session *session; /* of the command; NULL for device-wide ones and MEM_DESTROY */
	union {
		struct npu_mem *mem;
		struct npu_map *map;
		struct {
			struct npu_ctx *ctx;
			bool created;
			bool clear_error; /* CTX_SET: leave failure mode "stop" */
		} ctx;
		struct npu_queue *queue;
		struct {
			struct npu_queue *queue;
			const struct npu_entry *entries;
			uint32_t count;
			uint32_t taken; /* out */
			uint64_t tail;  /* out */
		} submit;
		struct {
			struct npu_queue *queue;
			uint64_t want;
			bool arm;
			uint64_t done; /* out */
		} wait;
		struct {
			struct npu_module *module;
			uint64_t bytes;
		} load;
		struct npu_module *module;
		struct {
			uint32_t kind;
			struct npu_queue *queue; /* or NULL */
			uint64_t address;
			uint64_t value;
			uint32_t page; /* of address, or NPU_PAGE_NONE */
		} inject;
		__u64 *counters; /* NPU_COUNTER_MAX of them */
		struct npu_query *query;
	};
};

#define NPU_PAGE_NONE UINT32_MAX

enum npu_fd_kind {
	NPU_FD_SLAB = 0,       /* of a session, as are the next three */
	NPU_FD_DOORBELL = 1,
	NPU_FD_COMPLETION = 2,
	NPU_FD_LIFE = 3,
	NPU_FD_MEM = 4,    /* of memory: for the client to map */
	NPU_FD_EXPORT = 5, /* of memory: for another device */
};

enum npu_log_level { NPU_LOG_ERROR = 0, NPU_LOG_WARNING = 1, NPU_LOG_INFO = 2, NPU_LOG_DEBUG = 3 };

struct npu_shim {
	void *dev; /* first argument of each */

	/* Zeroed memory or NULL; any size up to some MiB. free(NULL) is a no-op. */
	void *(*alloc)(void *dev, size_t bytes);
	void (*free)(void *dev, void *ptr, size_t bytes);
	/* The core mutex; both NULL where one thread makes every call. */
	void (*lock)(void *dev);
	void (*unlock)(void *dev);
	uint64_t (*now_ns)(void *dev); /* CLOCK_MONOTONIC */
	int (*random)(void *dev, void *ret_bytes, size_t bytes); /* 0 or a negative errno */
	/* One line, not terminated by a newline; session 0: of the device. May be NULL. */
	void (*log)(void *dev, enum npu_log_level level, uint64_t session, const char *text);

	int (*admin)(void *dev, struct npu_admin_cmd *cmd);

	/*
	 * One more descriptor for the reply of the call in progress; cookie is that of
	 * npu_core_call(). *ret_slot: index or number, -1 where this device has none. When
	 * npu_core_call() then returns a negative errno the front discards what it gathered for
	 * that call. session is NULL for the kinds of memory, mem for those of a session.
	 */
	int (*fd_get)(void *dev, void *cookie, enum npu_fd_kind kind, struct npu_session *session,
		      struct npu_mem *mem, int32_t *ret_slot);

	/* The file's event queue is no longer empty: call npu_core_event_read() later. May be
	 * NULL. */
	void (*event_ready)(void *dev, struct npu_core_file *file, void *file_cookie);
};

#endif
