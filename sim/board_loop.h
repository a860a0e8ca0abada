/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NPU_SIM_BOARD_LOOP_H
#define NPU_SIM_BOARD_LOOP_H

#include <stdint.h>
#include <sys/epoll.h>

/*
 * board_loop - the board's event loop: epoll, one thread.
 *
 * A source is embedded in its owner, which stays the owner of the fd too. A source may be deleted,
 * and its memory freed, from any callback, its own included: events of the same turn that were
 * already collected for it are dropped. Nothing that a callback does may block.
 */

struct board_loop;

struct board_source {
	int fd;
	void (*ready)(struct board_source *source, uint32_t events); /* EPOLL* bits */
};

int board_loop_new(struct board_loop **ret_loop);
void board_loop_free(struct board_loop *loop);

/* events: EPOLL* bits to wait for. -ENOMEM, -ENOSPC and what epoll_ctl(2) says. */
int board_loop_add(struct board_loop *loop, struct board_source *source, uint32_t events);
int board_loop_modify(struct board_loop *loop, struct board_source *source, uint32_t events);
/* Before the fd is closed. */
void board_loop_delete(struct board_loop *loop, struct board_source *source);

/* Waits until `deadline` (CLOCK_MONOTONIC ns, ~0: for ever) and runs what is ready. */
int board_loop_turn(struct board_loop *loop, uint64_t deadline);

#endif
