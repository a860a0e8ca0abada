/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NPU_SIM_BOARD_SPACE_H
#define NPU_SIM_BOARD_SPACE_H

#include <stdbool.h>
#include <stdint.h>

#include "kdrv/core/npu_core.h"
#include "sim/board.h"
#include "sim/board_memory.h"
#include "sim/engine_proto.h"
#include "sim/sim_log.h"

/*
 * board_space - an address space: what one session shares with its engine.
 *
 * The ring slab (a sealed file, also mapped here), doorbell and completion eventfds, and the life
 * pipe whose write end the board alone holds. The board never reads or writes the eventfds, since a
 * client can make that block. What it reads in the slab is a claim of the session, about itself.
 * Engines come and go; the space says when there should be one. Loop thread.
 */

struct board_engine;

#define SPACE_DEATHS 5u /* without a finished task within three seconds: the space is lost */
#define BOARD_CALL_HELD 1 /* see board_space_ring_open() */

/* A QUEUE_DONE that waits. */
struct board_wait {
	struct board_wait *next;
	uint32_t queue, slot;
	uint64_t want;
};

/* A ring that a new queue got before the engine let go of it for the last one. */
struct board_reopen {
	struct board_reopen *next;
	uint32_t slot;
	uint64_t ticket; /* for who is above */
};

struct board_space {
	struct board_space *next; /* in board.spaces */
	struct board *board;
	struct npu_session *session;
	uint64_t id; /* of the session, for log lines */
	struct board_memory *slab;
	char *map;
	int doorbell_fd, completion_fd;
	int life_read, life_write;

	struct board_engine *engine; /* NULL: none runs */
	bool wanted;   /* there is work for an engine */
	bool lost;     /* no engine any more; the life pipe is closed */
	bool tell_lost; /* the rules do not know yet */
	bool stopping; /* the session ends */
	bool ended;    /* last command came; waits for the engine's end */
	uint64_t respawn_ns; /* no engine is started before */
	unsigned int hasty;  /* engines in a row that ended soon, and not after a fault */
	unsigned int refused; /* starts in a row that failed */
	uint32_t starts;
	uint64_t turn;       /* of its last start, among those of all spaces */
	struct sim_log_limit limit; /* for what its client can cause */
	uint64_t deaths[SPACE_DEATHS]; /* times of the last ones */
	unsigned int death_next;

	struct engine_start failed; /* what ran when engines died; until an engine has taken it */
	uint64_t core_ns, tasks_done; /* by engines that have ended */
	struct board_wait *waits;
	uint64_t stopping_slots[NPU_MAX_QUEUES / 64]; /* an engine may still use these rings */
	struct board_reopen *reopens;
};

/* Makes all of it. -ENOMEM, -EMFILE and what the kernel says. */
int board_space_new(struct board *board, struct npu_session *session,
		    struct board_space **ret_space);
/* The session ends: ends the engine. */
void board_space_stop(struct board_space *space);
/* After stop: frees it when its engine is gone, and tells the rules when its memory is, too. */
void board_space_end(struct board_space *space);

/* Never again an engine: closes the life pipe, ends the engine. May be called twice. */
void board_space_lose(struct board_space *space, const char *why);

/* How an engine ended; but for its life, by its own account. */
struct board_space_end {
	bool progress; /* had finished tasks */
	bool fault;    /* in order, after a fault that it had reported */
	uint64_t life_ns;
};

/* Its engine was reaped (space->engine is NULL). Decides what follows. */
void board_space_engine_ended(struct board_space *space, const struct board_space_end *end);
/* The board could not start one (nobody's fault): tries again later. */
void board_space_engine_refused(struct board_space *space);
/* It is to have an engine, from respawn_ns on. */
bool board_space_wants_engine(const struct board_space *space);
/* Adds a task to those that the next engine must fail. */
void board_space_failed(struct board_space *space, uint32_t slot, uint64_t head, uint32_t kind);

/* ---- rings --------------------------------------------------------------------------------- */

struct npu_slab_header *board_space_header(struct board_space *space);
struct npu_ring_ctrl *board_space_ring(struct board_space *space, uint32_t slot);
/*
 * Makes a ring fresh for a new queue. BOARD_CALL_HELD: once the engine has let go of the slot's
 * last one; then the engine is told of it, too, and so is who is above (board.ticket).
 * -ENOMEM.
 */
int board_space_ring_open(struct board_space *space, const struct npu_queue *queue);
/* The engine has not let go of the slot's last ring. */
bool board_space_ring_busy(const struct board_space *space, uint32_t slot);
/* True while a ring that was held is still to be opened. */
bool board_space_ring_awaited(struct board_space *space, uint32_t slot);
/* Its queue ends. Without an engine that may still use it, the ring's memory is given back. */
void board_space_ring_close(struct board_space *space, uint32_t slot);
/* The engine has let go of a ring. */
void board_space_ring_closed(struct board_space *space, uint32_t slot);
/* Appends entries: as many as fit. */
void board_space_submit(struct board_space *space, uint32_t slot, const struct npu_entry *entries,
			uint32_t count, uint32_t *ret_taken, uint64_t *ret_tail);
/* Tasks in its rings that are not done, as the client claims. */
uint64_t board_space_queued(struct board_space *space);

/* Remembers, or with arm false forgets, who waits for a queue. -ENOMEM. */
int board_space_wait(struct board_space *space, const struct npu_queue *queue, uint64_t want,
		     bool arm);
/* Tells the rules of waits that were reached. */
void board_space_waits_check(struct board_space *space);

#endif
