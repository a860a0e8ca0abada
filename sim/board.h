/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NPU_SIM_BOARD_H
#define NPU_SIM_BOARD_H

#include <stdbool.h>
#include <stdint.h>

#include "kdrv/core/npu_core.h"
#include "sim/board_loop.h"
#include "sim/board_release.h"
#include "sim/board_socket.h"
#include "sim/board_upper.h"
#include "sim/nursery.h"
#include "sim/sim_options.h"

/*
 * board - one software NPU: the rules of the device interface (kdrv/core) between a socket and a
 * set of engine processes.
 *
 * Everything but the releasers runs in one thread, the one that called nursery_start(): engines
 * end with it. The rules call down through board_backend; what must not happen within such a call
 * (start an engine, tell the rules of an end) is left in flags that board_watch_run() acts on
 * before the loop turns again.
 */

struct board_space;
struct card;

#define BOARD_BAD_PAGES 16u
#define BOARD_SAMPLES 16u

struct board {
	struct sim_options options;
	struct board_loop *loop;
	struct board_release *release; /* gives back memory, closes fds */
	struct board_release *fill;    /* populates memory */
	struct board_socket *socket;
	struct nursery *nursery;
	const struct board_upper *upper;
	struct npu_core *core; /* NULL: a card */
	struct card *card;     /* NULL: none */
	struct board_source signals;
	struct board_file *files;      /* connections */
	struct board_space *spaces;    /* address spaces */
	uint64_t orphans_ns;           /* when to look for orphans; ~0: there are none */
	bool ending;                   /* no more upcalls */
	bool stop;                     /* leave the loop */

	uint64_t ticket;               /* of the newest ring that was held */

	/* starts of engines, see board_watch.c */
	uint32_t start_tokens;
	uint64_t start_token_ns;
	uint64_t start_turn;

	/* left for board_watch_run() */
	uint32_t bad_pages[BOARD_BAD_PAGES];
	unsigned int bad_count;
	bool nursery_dead; /* there can be no new engine */
	uint32_t health;   /* as last told */

	/* use of the cores */
	uint64_t busy_ns; /* by engines that have ended */
	struct {
		uint64_t time_ns, busy_ns;
	} samples[BOARD_SAMPLES];
	unsigned int sample_next;
};

/*
 * Builds a board on a listening socket (taken over) and a nursery (owned from now on). Errors are
 * logged. nursery may be NULL in tests that start no engine.
 */
int board_new(const struct sim_options *options, struct nursery *nursery, int listen_fd,
	      struct board **ret_board);
/* Runs until a signal (SIGTERM, SIGINT) or an error of the loop. */
int board_run(struct board *board);
/* Ends engines, frees all. NULL is allowed. */
void board_free(struct board *board);

/* ---- board_backend.c ----------------------------------------------------------------------- */

/* What the rules need of us: npu_shim.h. */
extern const struct npu_shim board_backend_shim;

#endif
