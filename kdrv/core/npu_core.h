/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * npu_core.h - the rules of the device interface (kdrv/uapi/npu.h), written once
 *
 * One struct npu_core is one device. npu-sim's socket server and npu.ko are fronts: they receive a
 * call's bytes once, hand them to npu_core_call() and send them back; they deliver event records;
 * they carry out admin commands (npu_shim.h). Everything else about the interface is decided here.
 *
 * Locking: all state is under one core mutex, taken by every function below (see npu_shim.h for the
 * order). No function blocks or waits for an engine. Struct fields below are for the backend to
 * read within its admin and fd_get functions; it writes none but .backend.
 *
 * Ownership and lifetimes:
 * - A file (open device, socket connection) owns sessions until it closes; they are destroyed with
 *   it, or stay as orphans, which the first file that names them in a call adopts. A session of
 *   another open file gives -EBUSY.
 * - A session owns contexts, memory handles, maps, queues, modules. SESSION_DESTROY takes it and
 *   its objects out of reach and uncharges them at once; NPU_EVENT_SESSION comes when the backend
 *   is through with it.
 * - Memory is held by handles (of the session that made it and of those that imported it), and by
 *   modules loaded from it. A handle's maps go with it. The object goes with the last holder. It is
 *   charged to the session that made it as long as both live; its export ends with its own handle.
 * - A context with queues gives -EBUSY on destroy. A module keeps its image memory.
 *
 * Handles are slot and generation, generations begin at a random number for each session: stale
 * ones and those of other sessions are refused (-ENOENT). Context ids are the plain 1..1023 of the
 * uapi, given out in turn.
 *
 * Call numbers: results of the last NPU_CALL_WINDOW mutating calls of a session (SESSION_CREATE: of
 * a file), failures included, are kept with their output. A repeated number gives result, output
 * and fresh fds and does nothing; with another call or input behind the same number: -EINVAL; a
 * number not kept and not above all that were forgotten: -ESTALE. A call that fails the generic
 * checks is not recorded. SESSION_DESTROY repeated after its success gives 0 again (the last
 * NPU_CALL_WINDOW).
 *
 * Event records: a file's queue holds NPU_CORE_EVENTS. ENGINE, QUEUE and HEALTH records of the same
 * object replace an unread one; a session has at most NPU_CORE_EVENTS_FAULTS unread FAULT records,
 * more are not queued. When the queue is full the oldest FAULT record goes, MODULE records only
 * when there are no others. The next record read then has .lost > 0, and what was missed can be
 * asked: ERROR_QUERY, FUNC_LOOKUP, WAIT, QUERY, OBJ_ENUM.
 * Records of an orphan are dropped.
 *
 * Faults: the device keeps NPU_CORE_FAULTS records for ERROR_QUERY, of one session at most
 * NPU_CORE_FAULTS_SESSION; a session beyond that loses its own oldest. When all are in use the
 * oldest one goes of the session that has most.
 *
 * After RESET every session is lost: calls that make or change something give -EIO, those that
 * destroy, unmap, or ask still work.
 */
#ifndef NPU_CORE_H
#define NPU_CORE_H

#include "kdrv/core/npu_shim.h"

#define NPU_CORE_EVENTS 256u
#define NPU_CORE_EVENTS_FAULTS 16u
#define NPU_CORE_FAULTS 256u
#define NPU_CORE_FAULTS_SESSION 32u
#define NPU_CORE_MAX_CTX 1023u
#define NPU_CORE_MAX_MODULES 4096u
#define NPU_CORE_MAX_MEM 524287u /* memory handles of a session; a handle fits 32 bits */
#define NPU_CORE_MAX_FUNCS 4096u    /* of a module */
#define NPU_CORE_FUNC_BYTES (16u << 20) /* names and sizes of all modules of a session */
#define NPU_CORE_MAP_LEVELS 12u
#define NPU_CORE_MAX_WINDOW NPU_RING_ENTRIES

/* ---- objects ------------------------------------------------------------------------------- */

/* What every object has. */
struct npu_obj {
	enum npu_object_type type;
	uint32_t tag_bytes;
	uint8_t *tag;
	uint64_t id;   /* as the uapi names it; a map's is its address */
	uint64_t user; /* the caller's, comes back in records */
};

/* Slot and generation. Id = (slot + 1) << gen_bits | generation. */
struct npu_table_slot {
	void *object; /* NULL: free */
	uint32_t gen;
	uint32_t next_free;
};

struct npu_table {
	struct npu_table_slot *slots;
	uint32_t capacity;
	uint32_t max;
	uint32_t count;
	uint32_t free; /* first free slot + 1, 0: none within capacity */
	uint32_t free_last;
	uint32_t gen_bits;
	uint32_t gen_seed;
};

struct npu_ctx {
	struct npu_obj obj; /* id 1..1023 */
	struct npu_session *session;
	void *backend;
	uint32_t priority;
	uint32_t weight;
	uint32_t cores; /* 0: all */
	uint32_t queues;
};

/* A piece of memory, perhaps held by several sessions. */
struct npu_mem {
	struct npu_list link; /* in npu_core.mems, or .dying_mems */
	struct npu_list hash; /* exported: by token */
	void *backend;
	struct npu_session *owner; /* who is charged; NULL: has gone */
	struct npu_list owned;     /* in owner->owned */
	uint64_t id; /* unique in this device for its life, never 0 */
	uint32_t kind;  /* enum npu_mem_kind */
	uint32_t flags; /* NPU_MEM_* */
	uint64_t bytes; /* whole pages */
	uint32_t page;  /* NPU_PAGE_SMALL or NPU_PAGE_LARGE */
	uint32_t holders; /* handles and modules */
	uint32_t maps;
	uint32_t imports; /* handles by MEM_IMPORT */
	uint32_t nruns; /* kind DEVICE: in order of the offset */
	struct npu_page_run *runs;
	bool exported;
	bool dying; /* destroyed, backend not yet done */
	uint64_t token[2];
};

/* A session's handle of memory: obj.id is what the uapi calls mem. */
struct npu_mem_handle {
	struct npu_obj obj;
	struct npu_session *session;
	struct npu_mem *mem;
	struct npu_list maps;
	bool imported;
};

struct npu_map {
	struct npu_obj obj; /* id = address */
	void *backend;
	struct npu_mem_handle *handle;
	struct npu_mem *mem;
	struct npu_list link; /* in handle->maps */
	uint64_t address;
	uint64_t bytes;
	uint64_t offset;
	uint64_t generation;
	uint32_t flags;  /* NPU_MAP_* */
	bool registered; /* by HOST_REGISTER */
	uint8_t levels;
	struct npu_map *next[]; /* skip list */
};

struct npu_queue {
	struct npu_obj obj;
	struct npu_session *session;
	struct npu_ctx *ctx;
	void *backend;
	uint32_t slot;
	uint32_t priority;
	uint32_t fail_mode;
	uint32_t window;
	uint32_t epoch;
	bool paused;
	bool started; /* the backend knows it */
	bool armed;
	uint64_t want;
};

enum npu_module_state { NPU_MODULE_LOADING, NPU_MODULE_READY, NPU_MODULE_FAILED };

struct npu_func {
	uint32_t name; /* offset in npu_module.names */
	uint32_t sizes; /* index in npu_module.sizes */
	uint32_t args_size;
	uint32_t params;
};

struct npu_module {
	struct npu_obj obj;
	struct npu_session *session;
	void *backend;
	struct npu_mem *mem;
	uint64_t bytes;
	enum npu_module_state state;
	int32_t status;
	uint32_t nfuncs;
	struct npu_func *funcs; /* one block: funcs, sizes, names */
	uint32_t *sizes;
	char *names;
	size_t block_bytes;
};

/* Results of mutating calls. Every mutating struct fits (checked at build). */
#define NPU_CALL_STORED 232u
struct npu_call_result {
	uint64_t call; /* 0: free */
	uint64_t hash; /* of the input behind the head */
	uint16_t nr;
	uint16_t reserved;
	int32_t result;
	uint8_t out[NPU_CALL_STORED]; /* behind the head */
};

struct npu_call_window {
	uint64_t floor; /* largest number that was forgotten */
	uint64_t newest;
	struct npu_call_result results[NPU_CALL_WINDOW];
};

struct npu_session {
	struct npu_obj obj;
	struct npu_core *core;
	void *backend;
	struct npu_core_file *file; /* NULL: orphan, or its file closed while it was dying */
	struct npu_list link;       /* in npu_core.dying */
	uint64_t orphaned_ns;
	bool dying;
	bool lost; /* the device was reset under it */

	uint32_t uid, gid, pid;
	uint64_t pid_start;
	uint8_t token_hash[32];
	char comm[16];
	uint64_t slab_address;

	uint64_t memory_limit, host_limit;
	uint32_t queue_limit, module_limit;
	uint64_t mem_used, mem_peak, host_used;
	uint64_t func_bytes;
	uint64_t faults, engine_starts;

	struct npu_ctx *ctxs[NPU_CORE_MAX_CTX + 1];
	uint32_t ctx_count, ctx_next;
	struct npu_table mems, queues, modules;
	struct npu_map *maps[NPU_CORE_MAP_LEVELS];
	uint32_t map_count;
	uint64_t map_generation;
	uint64_t map_random;
	struct npu_list owned; /* memory it is charged for */
	struct npu_call_window window;
};

/* ---- a device ------------------------------------------------------------------------------ */

struct npu_core_config {
	uint32_t kind;      /* enum npu_device_kind */
	uint32_t device_id; /* what DISCOVER answers */
	char version[64];   /* npu_version.name */
	char name[64];      /* npu_query.name */
	char firmware[32];
	uint64_t caps; /* NPU_CAP_* */
	uint32_t cores;
	uint32_t max_queues;   /* a session, 1..NPU_MAX_QUEUES; 0: NPU_MAX_QUEUES */
	uint32_t max_sessions; /* 0: 1024 */
	uint64_t memory_bytes; /* device memory, whole NPU_PAGE_LARGE pages are used */
	uint64_t host_bytes;   /* most of kinds HOST and IMAGE together, 0: no limit */
	uint64_t default_timeout_us;
};

/* -EINVAL: configuration; -ENOMEM, or what random() said. shim and config are copied. */
int npu_core_new(const struct npu_shim *shim, const struct npu_core_config *config,
		 struct npu_core **ret_core);

/*
 * Destroys every session (with the admin commands), closes every file and frees all, without
 * waiting for pending ends: the backend must have stopped its upcalls and must take every pending
 * object as gone.
 */
void npu_core_free(struct npu_core *core);

/* ---- files --------------------------------------------------------------------------------- */

/* -ENOMEM. cookie comes back in event_ready(). */
int npu_core_file_open(struct npu_core *core, void *cookie, struct npu_core_file **ret_file);

/* The file is freed. Its sessions are destroyed, or with keep_orphans wait to be adopted. */
void npu_core_file_close(struct npu_core *core, struct npu_core_file *file, bool keep_orphans);

/* Destroys orphans that have waited for at least age_ns; gives how many still wait. */
uint32_t npu_core_orphans_expire(struct npu_core *core, uint64_t age_ns);

/*
 * One call. nr: _IOC_NR; buffer: size bytes as the caller sent them (fewer than a head, too:
 * all is checked), answered in place: the front sends size bytes back on success and on error,
 * since some errors have outputs. buffer is 8 byte aligned and of no other use during the call.
 * Gives 0 or a negative errno: -EOPNOTSUPP for an unknown number, -E2BIG above NPU_CALL_MAX,
 * -EAGAIN also from FUNC_LOOKUP while the module loads (its status once it has failed), else as
 * npu.h.
 */
int npu_core_call(struct npu_core *core, struct npu_core_file *file, unsigned int nr, void *buffer,
		  uint32_t size, void *call_cookie);

/* The oldest unread record of a file: 0, or -EAGAIN when there is none. */
int npu_core_event_read(struct npu_core *core, struct npu_core_file *file,
			struct npu_event *ret_event);

/* ---- upcalls of the backend: from any thread, never from within a shim function -------------- */

/* One kernel of an image, as the engine claims it. */
struct npu_core_func {
	char name[NPU_NAME_MAX];
	uint32_t args_size;
	uint32_t params; /* at most NPU_MAX_PARAMS */
	uint32_t param_sizes[NPU_MAX_PARAMS];
};

/*
 * A load came to its end: status 0 with count funcs, or a negative errno with a text (may be NULL).
 * All strings are checked and made printable here. A module that has gone meanwhile is ignored.
 * Malformed funcs (no name, too many) turn status into -EINVAL, too many bytes into -EDQUOT.
 */
void npu_core_module_done(struct npu_core *core, struct npu_session *session, uint32_t module,
			  int32_t status, const struct npu_core_func *funcs, uint32_t count,
			  const char *text);

/*
 * A task failed. slot: ring slot of its queue, or NPU_SLOT_NONE. Filled in here: seq, session,
 * queue, context, kernel (from module and func), time_ns when 0. ERROR_QUERY and NPU_EVENT_FAULT
 * (id: the queue, user: that of the queue or of the session) carry it.
 */
#define NPU_SLOT_NONE UINT32_MAX
void npu_core_fault(struct npu_core *core, struct npu_session *session, uint32_t slot,
		    const struct npu_fault_record *record);

/* A queue with armed wait has reached done. */
void npu_core_queue_done(struct npu_core *core, struct npu_session *session, uint32_t queue,
			 uint64_t done);

/* An engine was started for the session, the first or a replacement. */
void npu_core_engine_started(struct npu_core *core, struct npu_session *session);

/* The end of a pending SPACE_DESTROY: the session is freed, NPU_EVENT_SESSION is sent. */
void npu_core_space_gone(struct npu_core *core, struct npu_session *session);

/* The end of a pending MEM_DESTROY: its pages are free again, mem is freed. */
void npu_core_mem_gone(struct npu_core *core, struct npu_mem *mem);

/* enum npu_health; a change goes to every file. With NPU_HEALTH_LOST every session is lost. */
void npu_core_health(struct npu_core *core, uint32_t health);

/*
 * A physical page failed: it is never given out again, and each session that holds it gets
 * NPU_EVENT_MEMORY (id: handle, status: bytes). -ERANGE: no such page, -EEXIST: known already.
 */
int npu_core_page_bad(struct npu_core *core, uint32_t page);

/* ---- what the backend may look up: within a shim function, or between lock and unlock -------- */

/* Live objects by slot or id, or NULL. */
struct npu_queue *npu_session_queue_at(struct npu_session *session, uint32_t slot);
struct npu_module *npu_session_module(struct npu_session *session, uint32_t module);
struct npu_map *npu_session_map_find(struct npu_session *session, uint64_t address);

/* The backend's own objects of a session in turn: first with *cursor 0, NULL at the end. For a
 * replaced engine, which needs its maps, modules and queues again. */
struct npu_map *npu_session_map_next(struct npu_session *session, uint64_t *cursor);
struct npu_module *npu_session_module_next(struct npu_session *session, uint64_t *cursor);
struct npu_queue *npu_session_queue_next(struct npu_session *session, uint64_t *cursor);
struct npu_ctx *npu_session_ctx_next(struct npu_session *session, uint64_t *cursor);

/* For a backend that works outside shim functions: take and give back the core mutex. No npu_core_*
 * function may be called in between. */
void npu_core_lock(struct npu_core *core);
void npu_core_unlock(struct npu_core *core);

#endif
