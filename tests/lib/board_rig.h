/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NPU_TESTS_LIB_BOARD_RIG_H
#define NPU_TESTS_LIB_BOARD_RIG_H

/*
 * board_rig - a board in a child process whose engines run a function of the test's own, and a
 * client with a session. For Check tests, one thread; what must not fail ends the test.
 */

#include <stdint.h>
#include <sys/types.h>

#include "sim/engine_proto.h"
#include "tests/lib/sim_client.h"

void board_rig_start(struct sim_board *rig, struct sim_client *client,
		     int (*engine)(int control, void *arg));
/* After the session's end. */
void board_rig_stop(struct sim_board *rig, struct sim_client *client);
/* Makes a queue in a new context. */
uint32_t board_rig_want_engine(struct sim_client *client);
/* Loads some bytes and waits for the end; gives the status, and the module. */
int board_rig_load(struct sim_board *rig, struct sim_client *client, uint32_t *ret_module);

/* ---- in an engine: they end it when the board is gone -------------------------------------- */

/* One message's head; what is behind it; the state page, after SETUP. */
ssize_t engine_take(int control, struct engine_msg *msg);
const void *engine_payload(void);
struct engine_state *engine_page(void);
void engine_give(int control, uint16_t type, const void *payload, size_t bytes);
void engine_ack(int control, uint64_t seq);
/* Answers as it should until the first message of `until`, whose number it gives. */
uint64_t engine_serve(int control, uint16_t until);
/* An engine that answers all, and loads images with one kernel whose name is no text. */
int engine_good(int control, void *arg);

#endif
