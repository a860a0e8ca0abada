/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NPU_SIM_BOARD_WATCH_H
#define NPU_SIM_BOARD_WATCH_H

#include "sim/board.h"
#include "sim/board_engine.h"

/*
 * board_watch - what the board does by the clock, and after each turn of the loop.
 *
 * It starts engines that are wanted (about 50 a second, more in a burst), ends those that break the
 * rules or do not answer, looks at the state pages (time limits of kernels, aborts, waits, suspect
 * engines), and measures how much the cores are used. How often it looks:
 *   5 ms    while a kernel that was told to end has not
 *   10 ms   while kernels run, or somebody waits by WAIT; sooner when a time limit ends
 *   50 ms   while workers are awake, and for a second after
 *   1 s     while an engine sleeps: then the doorbell of its space wakes the board, too
 *   never   while there is no engine
 */

/* What is due. */
void board_watch_run(struct board *board);
/* When something will be, CLOCK_MONOTONIC ns; ~0: never. */
uint64_t board_watch_next(struct board *board);

/* Core time used so far, ns, and use over about the last second, in 1/1000 of all cores. */
uint64_t board_watch_busy(struct board *board);
uint32_t board_watch_permille(struct board *board);

#endif
