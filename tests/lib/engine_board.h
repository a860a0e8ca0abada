/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NPU_TESTS_ENGINE_BOARD_H
#define NPU_TESTS_ENGINE_BOARD_H

/*
 * engine_board: a board with one engine, for tests of the engine and of rings. It makes the slab as
 * the real one does, forks an engine into its cage, and has the client's side of a ring. All functions
 * are for one thread and abort with a message when something fails that a test does not expect.
 */

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "kdrv/uapi/npu_queue.h"
#include "sim/engine_proto.h"

struct engine_board {
	pid_t pid;
	int control, doorbell, completion, slab_fd, state_fd;
	char *slab;
	struct npu_slab_header *header;
	struct engine_state *state;
	uint64_t seq, generation, replaced;
	uint32_t cores;
	struct engine_fault_msg fault; /* the last one that came */
	unsigned faults;
	struct engine_funcs funcs;     /* the last ones that came */
};

void engine_board_start(struct engine_board *b, uint32_t cores);
void engine_board_spawn(struct engine_board *b); /* another engine on the same slab, up to READY */
void engine_board_stop(struct engine_board *b);

/* Sends a message and waits for its acknowledgement (5 s); returns its status. */
int engine_board_call(struct engine_board *b, uint16_t type, const void *payload, size_t size, int fd,
		      struct engine_ack *ret_ack);

int engine_board_begin(struct engine_board *b, const struct engine_start *start); /* ENGINE_START */
int engine_board_queue(struct engine_board *b, uint32_t slot, uint32_t fail_mode, uint32_t epoch);
int engine_board_map(struct engine_board *b, uint64_t address, int fd, uint64_t bytes);
int engine_board_module(struct engine_board *b, uint32_t id, const char *path);

/* Takes messages (faults) until one more fault came, or fails after 5 s. */
void engine_board_await_fault(struct engine_board *b);

/* Client's side. */
struct npu_ring_ctrl *engine_board_ring(struct engine_board *b, uint32_t slot);
uint8_t *engine_board_args(struct engine_board *b, uint32_t slot);
void engine_board_room(struct engine_board *b, uint32_t slot); /* waits until one entry fits */
void engine_board_submit(struct engine_board *b, uint32_t slot, const struct npu_entry *entry);
void engine_board_sync(struct engine_board *b, uint32_t slot); /* all submitted is done, within 10 s */
int engine_board_wait(struct engine_board *b, uint32_t slot, uint64_t done, unsigned ms);

#endif
