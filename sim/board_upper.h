/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NPU_SIM_BOARD_UPPER_H
#define NPU_SIM_BOARD_UPPER_H

#include "kdrv/core/npu_core.h"

/*
 * board_upper - who stands above the board's engines: the rules themselves (kdrv/core, when npud
 * talks to the board's socket), or the card, whose driver has the rules at its end.
 *
 * The board reads the objects of the session that it gets here (struct npu_map and so on) and tells
 * what happens. Loop thread; nothing is called from within an admin command. The iterators are used
 * between lock and unlock, and may be used within an admin command.
 */

struct board;

struct board_upper {
	void (*lock)(struct board *board);
	void (*unlock)(struct board *board);
	struct npu_map *(*map_next)(struct npu_session *session, uint64_t *cursor);
	struct npu_ctx *(*ctx_next)(struct npu_session *session, uint64_t *cursor);
	struct npu_module *(*module_next)(struct npu_session *session, uint64_t *cursor);
	struct npu_queue *(*queue_next)(struct npu_session *session, uint64_t *cursor);
	struct npu_queue *(*queue_at)(struct npu_session *session, uint32_t slot);

	/* As the functions of the same names of npu_core.h. */
	void (*module_done)(struct board *board, struct npu_session *session, uint32_t module,
			    int32_t status, const struct npu_core_func *funcs, uint32_t count,
			    const char *text);
	void (*fault)(struct board *board, struct npu_session *session, uint32_t slot,
		      const struct npu_fault_record *record);
	void (*engine_started)(struct board *board, struct npu_session *session);
	void (*space_gone)(struct board *board, struct npu_session *session);
	void (*mem_gone)(struct board *board, struct npu_mem *mem);
	void (*page_bad)(struct board *board, uint32_t page);
	void (*health)(struct board *board, uint32_t health);
	/* A ring that BOARD_CALL_HELD was given for is fresh now, or its queue has gone.
	 * NULL: nothing is held, since who is above asks board_space_ring_busy() before. */
	void (*ring_opened)(struct board *board, struct npu_session *session, uint32_t slot);
};

/* The rules: board.core, answers by board.socket. */
extern const struct board_upper board_upper_core;

#endif
