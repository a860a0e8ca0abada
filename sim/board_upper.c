/* SPDX-License-Identifier: Apache-2.0 */
/* The rules above the engines: each function hands on to kdrv/core, or to the socket. */
#include "sim/board_upper.h"

#include "sim/board.h"

static void core_lock(struct board *board)
{
	npu_core_lock(board->core);
}

static void core_unlock(struct board *board)
{
	npu_core_unlock(board->core);
}

static void core_module_done(struct board *board, struct npu_session *session, uint32_t module,
			     int32_t status, const struct npu_core_func *funcs, uint32_t count,
			     const char *text)
{
	npu_core_module_done(board->core, session, module, status, funcs, count, text);
}

static void core_fault(struct board *board, struct npu_session *session, uint32_t slot,
		       const struct npu_fault_record *record)
{
	npu_core_fault(board->core, session, slot, record);
}

static void core_engine_started(struct board *board, struct npu_session *session)
{
	npu_core_engine_started(board->core, session);
}

static void core_space_gone(struct board *board, struct npu_session *session)
{
	npu_core_space_gone(board->core, session);
}

static void core_mem_gone(struct board *board, struct npu_mem *mem)
{
	npu_core_mem_gone(board->core, mem);
}

static void core_page_bad(struct board *board, uint32_t page)
{
	npu_core_page_bad(board->core, page);
}

static void core_health(struct board *board, uint32_t health)
{
	npu_core_health(board->core, health);
}

const struct board_upper board_upper_core = {
	.lock = core_lock,
	.unlock = core_unlock,
	.map_next = npu_session_map_next,
	.ctx_next = npu_session_ctx_next,
	.module_next = npu_session_module_next,
	.queue_next = npu_session_queue_next,
	.queue_at = npu_session_queue_at,
	.module_done = core_module_done,
	.fault = core_fault,
	.engine_started = core_engine_started,
	.space_gone = core_space_gone,
	.mem_gone = core_mem_gone,
	.page_bad = core_page_bad,
	.health = core_health,
};
