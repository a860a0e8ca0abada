/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine_proto - what board and engine say to each other
 *
 * A SOCK_SEQPACKET socketpair, one message a packet: struct engine_msg, then .bytes of payload; the
 * board's messages carry at most ENGINE_FDS_MAX fds. The board numbers its messages from 1 (seq);
 * the engine acts on them in order and answers each with ENGINE_ACK {seq, status}. An engine that
 * does not act within the limit is killed. The engine runs client code: everything it sends is a
 * claim about its own session and is checked for form by the board; what it does not send is
 * replaced by its death (pidfd). The board never blocks on an engine: its end is non-blocking, and a
 * full socket is treated as an engine that does not act.
 *
 * Life of an engine: ENGINE_SETUP (fds: slab, doorbell, completion, state page), then for a
 * replacement its maps, modules and queues again, then ENGINE_START: until then no ring is read.
 * After a fault the engine is suspect (engine_state.suspect): it goes on with queued work, and at its
 * next idle point it ends by itself with status 0 and nothing running; the board then starts another
 * at once, with an empty failed list. Work that arrives in between waits in the rings.
 */
#ifndef NPU_SIM_ENGINE_PROTO_H
#define NPU_SIM_ENGINE_PROTO_H

#include <stdint.h>
#include "kdrv/uapi/npu.h"

#define ENGINE_PROTO_MAGIC 0x454e4750u
#define ENGINE_MSG_MAX 8192u
#define ENGINE_FDS_MAX 4u
#define ENGINE_CORES_MAX 64u
#define ENGINE_CONTROL_FD 3 /* in the engine */

enum engine_msg_type {
	/* board to engine */
	ENGINE_SETUP = 1,   /* engine_setup; fds: slab, doorbell, completion, state page */
	ENGINE_MAP = 2,     /* engine_map; fd: memory */
	ENGINE_UNMAP = 3,   /* engine_map without fd */
	ENGINE_MODULE = 4,  /* engine_module; fd: image memory. Answer: ENGINE_FUNCS.., ENGINE_ACK */
	ENGINE_MODULE_DROP = 5, /* engine_module */
	ENGINE_QUEUE = 6,   /* engine_queue: start, change or stop reading a ring */
	ENGINE_ABORT = 7,   /* engine_abort: end the kernel on one core */
	ENGINE_CONTEXT = 8, /* engine_context */
	ENGINE_START = 9,   /* engine_start */
	ENGINE_EXIT = 10,   /* begin nothing more, end when the running tasks have: no answer */
	/* engine to board */
	ENGINE_READY = 32,  /* threads stand, sandbox is sealed: engine_ready */
	ENGINE_ACK = 33,    /* engine_ack */
	ENGINE_FUNCS = 34,  /* engine_funcs: some of a module's kernels */
	ENGINE_FAULT = 35,  /* engine_fault_msg: a task failed; the ring has its record already */
};

struct engine_msg {
	uint32_t magic;
	uint16_t type;
	uint16_t nfds;
	uint64_t seq;
	uint32_t bytes;
	uint32_t reserved;
};

struct engine_setup {
	uint64_t slab_address; /* map the slab here */
	uint64_t slab_size;
	uint64_t state_size;
	uint32_t cores;        /* worker threads */
	uint32_t replaced;     /* 0: first engine of its session, else how many came before */
	uint64_t stack_size;   /* of a kernel stack, bytes */
	uint64_t default_timeout_us;
	uint32_t spin_us;      /* longest polling before a worker sleeps */
	uint32_t reserved;
};

#define ENGINE_MAP_READ_ONLY 0x1u
struct engine_map {
	uint64_t address;
	uint64_t bytes;
	uint64_t offset; /* in the file */
	uint64_t generation; /* holds once this message was acted on */
	uint32_t flags;
	uint32_t reserved;
};

struct engine_module {
	uint64_t bytes;
	uint32_t module;
	uint32_t reserved;
};

/* A queue to read: sent at creation, at each change, and once with active 0 at the end. */
struct engine_queue {
	uint32_t slot;
	uint32_t queue; /* handle, for records */
	uint32_t ctx;   /* index in context_error, too */
	uint32_t active;
	uint32_t paused;
	uint32_t priority;
	uint32_t fail_mode;
	uint32_t epoch; /* a new value drops all entries of older epochs, the running one is aborted */
	uint32_t window;
	uint32_t reserved;
};

struct engine_abort {
	uint32_t core;
	uint32_t kind; /* enum npu_fault_kind that the task gets */
	uint64_t run;  /* engine_core_state.run it is meant for; another value: too late, ignored */
};

struct engine_context {
	uint32_t ctx;
	uint32_t clear_error;
	uint32_t priority, weight, cores;
	uint32_t reserved;
};

/* What ran when the last engine died: fail exactly these, then begin reading rings. */
struct engine_start {
	uint32_t kind;  /* enum npu_fault_kind for them, if any */
	uint32_t count;
	struct {
		uint32_t slot;
		uint32_t kind; /* overrides kind when not 0 */
		uint64_t head; /* ring's head as last seen in the state page */
	} failed[ENGINE_CORES_MAX];
};

struct engine_ready {
	uint32_t sandbox; /* NPU_SANDBOX_* that this engine has set for itself */
	uint32_t cores;
};

struct engine_ack {
	uint64_t seq;
	int32_t status; /* 0 or a negative errno */
	uint32_t value; /* ENGINE_MODULE: number of kernels */
	char text[NPU_NAME_MAX]; /* why not */
};

#define ENGINE_FUNCS_MAX 12u
struct engine_func_desc {
	char name[NPU_NAME_MAX];
	uint32_t args_size;
	uint32_t params;
	uint32_t param_sizes[NPU_MAX_PARAMS];
};
struct engine_funcs {
	uint32_t module;
	uint32_t first; /* index of funcs[0] */
	uint32_t count;
	uint32_t total;
	struct engine_func_desc funcs[ENGINE_FUNCS_MAX];
};

struct engine_fault_msg {
	struct npu_fault_record fault; /* seq, session, kernel, context, queue are filled in by the board */
	uint32_t slot;
	uint32_t reserved;
};

/*
 * The state page: written by the engine, read by the board at its tick. Shared by these two only,
 * zeroed by the board for each engine. A core's fields are consistent when begin == end.
 */
struct engine_core_state {
	uint64_t run;   /* counts kernels (and long copies) begun on this core; even: idle, odd: in one */
	uint32_t slot;  /* queue that it works for */
	uint32_t op;    /* enum npu_op */
	uint64_t head;  /* ring's head, so task index + 1 */
	uint64_t reserved; /* the board itself measures for how long it has seen the same odd run */
	uint64_t timeout_us; /* 0: default; ~0: none */
	uint32_t module, func;
	uint64_t block;
};
struct engine_state {
	uint64_t generation; /* maps in force */
	uint32_t awake;      /* workers not asleep */
	uint32_t suspect;    /* a fault happened: replace when idle */
	uint64_t tasks_done;
	uint64_t reserved[5];
	struct engine_core_state cores[ENGINE_CORES_MAX];
};

_Static_assert(sizeof(struct engine_msg) + sizeof(struct engine_funcs) <= ENGINE_MSG_MAX, "funcs");

#endif
