/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NPU_SIM_BOARD_ENGINE_H
#define NPU_SIM_BOARD_ENGINE_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "sim/board_channel.h"
#include "sim/board_space.h"

/*
 * board_engine - one engine process, as the board sees it.
 *
 * Started for a space, it is told all that the space has (SETUP, maps, contexts, modules, queues,
 * START), then what changes. It ends by itself (status 0, when it suspects itself), by a crash, or
 * by board_engine_kill(); in each case its pidfd tells, it is reaped, what ran is taken from its
 * state page, and the space decides about the next one. What it writes there or sends is a claim
 * about its own session. Loop thread.
 */

#define ENGINE_STACK_SIZE (1u << 20) /* of a kernel */
#define ENGINE_SPIN_US 50u

/* A core, between two looks of the watch. */
struct board_core {
	uint64_t run;      /* as last seen */
	uint64_t since_ns; /* when it was first seen */
	uint64_t limit_ns; /* ~0: none */
	uint64_t abort_run; /* told to end this one; 0: none */
	uint64_t abort_ns, abort_cpu_ns;
	uint32_t abort_kind;
	bool abort_by_engine; /* the engine ends it, we only look that it does */
};

/* A message whose answer matters. */
struct board_expect {
	struct board_expect *next;
	uint64_t seq;
	enum engine_msg_type type;
	uint32_t id;  /* module, or ring slot */
	bool report;  /* MODULE: the rules wait for the end */
	uint32_t count, total;
	struct npu_core_func *funcs; /* MODULE: so far */
};

struct board_engine {
	struct board_space *space;
	struct board_channel channel;
	struct board_source exit; /* pidfd */
	pid_t pid;
	clockid_t clock;
	struct engine_state *state; /* mapped for reading */
	struct board_expect *expects, **expects_last;
	bool killed;
	bool faulted;       /* has reported a fault, and so may leave */
	uint64_t start_ns;
	uint32_t kill_kind; /* enum npu_fault_kind for what runs, unless its core says better */
	uint64_t exit_ns;   /* told to end; killed then. ~0: not told */

	/* board_watch.c */
	struct board_core cores[ENGINE_CORES_MAX];
	uint64_t tick_ns;      /* next look */
	uint64_t idle_ns;      /* since when nothing happens; 0: something does */
	uint64_t idle_runs;    /* sum of the cores' counters then */
	unsigned int suspect_looks;
	struct board_source doorbell; /* watched while idle: fd -1 when not */
	bool doorbell_fresh; /* its first event says nothing */
};

/* Starts one for the space, which has none. Negative errno, logged. */
int board_engine_start(struct board_space *space);
/* Ends it by SIGKILL, at once. kind: what its tasks get. why: for the log, or NULL. */
void board_engine_kill(struct board_engine *engine, uint32_t kind, const char *why);
/* Asks it to end; killed if it does not within 200 ms. */
void board_engine_leave(struct board_engine *engine);
/* Kills and frees it: the board ends. */
void board_engine_abandon(struct board_engine *engine);
/* CPU time so far, ns. */
uint64_t board_engine_cpu(struct board_engine *engine);
/* How long an answer may take. */
uint64_t board_engine_limit(void);

/* ---- what changed -------------------------------------------------------------------------- */

void board_engine_map(struct board_engine *engine, const struct npu_map *map);
void board_engine_unmap(struct board_engine *engine, const struct npu_map *map);
void board_engine_context(struct board_engine *engine, const struct npu_ctx *ctx, bool clear);
void board_engine_queue(struct board_engine *engine, const struct npu_queue *queue);
void board_engine_queue_end(struct board_engine *engine, uint32_t slot);
void board_engine_module(struct board_engine *engine, const struct npu_module *module, bool report);
void board_engine_module_end(struct board_engine *engine, uint32_t module);
/* Ends the kernel of a core. */
void board_engine_abort(struct board_engine *engine, uint32_t core, uint64_t run, uint32_t kind);

/* ---- board_watch.c ------------------------------------------------------------------------- */

/* Look at it at once. */
void board_engine_look(struct board_engine *engine);
/* The engine was told to drop what runs for a ring: look that it does. */
void board_engine_expect_end(struct board_engine *engine, uint32_t slot);

#endif
