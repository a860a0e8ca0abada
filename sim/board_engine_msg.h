/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NPU_SIM_BOARD_ENGINE_MSG_H
#define NPU_SIM_BOARD_ENGINE_MSG_H

#include "sim/board_engine.h"

/* What an engine is told and what it answers: the inner side of board_engine. */

extern const struct board_channel_ops board_engine_channel_ops;

/* One message without fds. */
void board_engine_say(struct board_engine *engine, enum engine_msg_type type, const void *payload,
		      size_t bytes);
/* All that the space has, and START. */
void board_engine_replay(struct board_engine *engine);
/* It died of something: if it was loading an image, that load has failed. */
void board_engine_fail_load(struct board_engine *engine);
/* Frees what is still expected. */
void board_engine_forget(struct board_engine *engine);

#endif
