/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NPU_SIM_ENGINE_H
#define NPU_SIM_ENGINE_H

/*
 * engine: the process that runs the kernels of one session on one device.
 *
 * Threads: the control thread (main) acts on the board's messages; core threads ("workers", one for
 * each core of the device) read rings and run what they find. A worker claims a ring, drains it in
 * order, and lets it go; a launch of several blocks is open to every free worker. Nothing in here is
 * trusted by anybody else; what the engine must not trust is the slab, which the client writes.
 *
 * Struct engine is written by the control thread before ENGINE_START; afterwards its fields say who
 * writes them.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "kdrv/uapi/npu.h"
#include "sim/engine_fault.h"
#include "sim/engine_image.h"
#include "sim/engine_proto.h"

#define ENGINE_WORDS (NPU_MAX_QUEUES / 64)
#define ENGINE_MODULES 1024u /* slots of the module table, a power of two */

struct engine;

/* A module. Published to workers through engine.modules; freed when no worker can still run it. */
struct engine_module_slot {
	uint32_t id;
	struct engine_image *image;
	struct engine_module_slot *next_dead;
	uint64_t run_at_drop[ENGINE_CORES_MAX];
};

/* A launch with more than one block, owned by the worker that took it from its ring. */
struct engine_launch {
	_Alignas(64) _Atomic uint32_t open; /* helpers may join */
	_Atomic uint32_t users;             /* helpers inside */
	_Atomic uint32_t counted;           /* in engine.open_launches */
	_Atomic uint32_t failed;            /* no further block is begun */
	_Alignas(64) _Atomic uint32_t next; /* block to take */
	void (*entry)(const void *args);
	const void *args;
	uint32_t blocks;
	uint32_t fault_block;
	uint32_t fault_core;
	const struct engine_image *image;
	struct engine_core_state about; /* for the state page of helpers */
	struct engine_fault fault;      /* of the block that set failed */
};

/* A ring as the engine knows it. head and done belong to the worker that has it claimed. */
struct engine_ring {
	_Atomic uint32_t claimed; /* worker index + 1, or ENGINE_CLAIM_CONTROL */
	_Atomic uint32_t again;   /* somebody failed to claim it meanwhile: look once more */
	_Atomic uint32_t active, paused, epoch, fail_mode, priority;
	uint32_t slot, queue, ctx; /* fixed while active */
	uint64_t head, done;
	bool timed;       /* blocked, and to be looked at by the clock */
	bool partial;     /* blocked within an INDIRECT: counts as busy */
	uint64_t task_ns;       /* mean time of a task when it ran last; ~0: unknown */
	uint64_t blocked_since; /* ns; 0: the head entry is not waiting */
	uint64_t host_posted; /* sequence of the host call that was handed out */
	struct { /* an NPU_OP_INDIRECT under way */
		uint64_t address, steps;
		uint32_t count, at;
		bool running;
	} indirect;
	struct npu_ring_ctrl *ctrl;
	struct npu_entry *entries;
	uint8_t *args;
};
#define ENGINE_CLAIM_CONTROL UINT32_MAX

struct engine_worker {
	struct engine *engine;
	uint32_t index;
	int epoll; /* doorbell (exclusive) and help fd */
	struct engine_core_fault core;
	struct engine_core_state *state; /* in the state page */
	struct engine_launch launch;
	struct engine_launch *_Atomic joined; /* the launch whose blocks it runs, own or another's */
	_Atomic uint32_t abort_kind;     /* enum npu_fault_kind that the board wants for abort_run */
	_Atomic uint64_t abort_run;
	uint64_t tasks;                  /* done, not yet added to the state page */
	uint64_t wait_average_ns;        /* of recent polls until work came */
	uint32_t polls, last_slot;
};

struct engine {
	int control, doorbell, completion, help;
	struct npu_slab_header *header;
	struct npu_ring_ctrl *rings_ctrl;
	struct npu_event_word *events;
	uint64_t slab_address, slab_size;
	struct engine_state *state;
	uint32_t cores, spin_us;
	uint64_t default_timeout_us;

	_Atomic uint32_t started;
	_Atomic uint64_t map_generation;
	_Atomic uint64_t ready[ENGINE_WORDS];   /* rings to look at again */
	_Atomic uint64_t blocked[ENGINE_WORDS]; /* rings whose head entry waits */
	_Atomic uint32_t timed;    /* blocked rings that need looking at by the clock */
	_Atomic uint32_t pollers;  /* free workers that poll */
	_Atomic uint32_t sleepers; /* free workers that sleep */
	_Atomic uint32_t busy;     /* threads with work under way, rings stopped within an INDIRECT */
	_Atomic uint32_t ending;   /* threads about to end an idle engine: nobody may become busy */
	_Atomic uint32_t leaving;  /* ENGINE_EXIT: the busy ones stop behind their entry, too */
	_Atomic uint32_t open_launches; /* those with blocks left to take */

	struct engine_module_slot *_Atomic modules[ENGINE_MODULES];
	struct engine_module_slot *dead; /* control thread */
	struct engine_worker *workers;
	struct engine_ring rings[NPU_MAX_QUEUES];
};

/* The engine's whole life, in a process of its own: see nursery.h. Returns the exit status. */
int engine_main(int control_fd, void *arg);

/* ---- engine_ring.c: one ring ------------------------------------------------------------------- */

/* Points the ring at its place in the slab and takes head and done from there. Control thread. */
void engine_ring_attach(struct engine *engine, struct engine_ring *ring, uint32_t slot);

/*
 * Drains the ring, which the worker has claimed, until it is empty, waits for something, is paused, or
 * has had its turn while other work waits. Returns true when it is empty and was left unarmed (the
 * worker may poll its tail, and must call engine_ring_arm() before it lets go).
 */
bool engine_ring_run(struct engine_worker *worker, struct engine_ring *ring);

/* Arms an empty ring; returns false when entries had come meanwhile (then it is not armed). */
bool engine_ring_arm(struct engine_ring *ring);

/* Completes every entry in [done, head) with an error, as a new engine does for what ran before. */
void engine_ring_fail_running(struct engine *engine, struct engine_ring *ring, uint32_t kind);

/* Marks a ring for another look. Any thread. */
void engine_ring_mark(struct engine *engine, uint32_t slot);

/* Takes a claimed ring out of the blocked ones. */
void engine_ring_leave_blocked(struct engine *engine, struct engine_ring *ring);

/* Moves all blocked rings to the ready ones. Any thread. */
void engine_ring_unblock(struct engine *engine);

/* ---- engine_exec.c: one entry ------------------------------------------------------------------ */

enum engine_verdict {
	ENGINE_DONE,    /* entry is complete */
	ENGINE_BLOCKED, /* waits for an event, value, host call or mapping: look again later */
	ENGINE_FAILED,  /* ret_error says how */
	ENGINE_AGAIN,   /* INDIRECT: one step is done, the entry is not */
};

struct engine_error {
	enum npu_fault_kind kind;
	uint32_t flags;
	uint32_t block, core;
	uint64_t address, pc;
	bool timed; /* ENGINE_BLOCKED: nobody tells when it is over, so look by the clock */
};

enum engine_verdict engine_exec(struct engine_worker *worker, struct engine_ring *ring,
				const struct npu_entry *entry, struct engine_error *ret_error);

/* Joins an open launch of another worker and runs blocks of it. Returns whether it found one. */
bool engine_exec_help(struct engine_worker *worker);

/* Acts on ENGINE_ABORT. Control thread. */
void engine_exec_abort(struct engine *engine, uint32_t core, uint64_t run, uint32_t kind);

/* ---- engine_sched.c: workers ------------------------------------------------------------------- */

void *engine_worker_main(void *worker);

/* Whether a launch, a ready ring or a pending one wants a worker. Any thread. */
bool engine_anything(struct engine *engine);

/* Wakes sleeping workers: one unless somebody polls, or all. Any thread. */
void engine_wake(struct engine *engine, bool all);

/* After a completion: wakes the client when it sleeps and its target is reached. */
void engine_wake_client(struct engine *engine, struct engine_ring *ring, bool event);

/* Work of another thread than a worker, or that outlasts one: the engine does not end meanwhile. */
void engine_busy_begin(struct engine *engine);
void engine_busy_end(struct engine *engine);

uint64_t engine_now_ns(void);

/* ---- engine_control.c: what the board says ----------------------------------------------------- */

int engine_control_run(struct engine *engine);

/* Sends one message to the board without waiting; one that does not fit is dropped. Any thread. */
void engine_send(struct engine *engine, enum engine_msg_type type, uint64_t seq, const void *payload,
		 size_t size);

/* ---- engine_module.c --------------------------------------------------------------------------- */

/* Loads a copy of an image file. 0, or a negative errno with text. Control thread. */
int engine_module_load(struct engine *engine, uint32_t id, int fd, uint64_t bytes, char *ret_text,
		       size_t text_size, const struct engine_image **ret_image);
int engine_module_drop(struct engine *engine, uint32_t id);

/* The image of a module; NULL when there is none. Any worker; stays while it runs what it took. */
const struct engine_image *engine_module_find(struct engine *engine, uint32_t id);

#endif
