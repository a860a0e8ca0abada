/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NPU_TESTS_FAKE_BOARD_H
#define NPU_TESTS_FAKE_BOARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kdrv/uapi/npu.h"

/*
 * The socket end of a device, for tests of daemon/hal: a thread that accepts one connection after
 * the other at DIR/npu-sim-0.sock and answers VERSION, QUERY and OBJ_ENUM by itself; every other
 * call is given to a function of the test, which runs in that thread.
 */

struct fake_board;

struct fake_call {
	const struct npu_msg *head;
	void *arg; /* the call's struct; sent back as it is then */
	int result;
	int fds[16]; /* sent with the reply; stay the test's */
	unsigned int nfds;
	bool silent; /* no reply */
	/* what replaces a good reply: */
	struct npu_msg reply; /* taken when reply.magic is not 0 */
	size_t cut;	      /* bytes of the reply that are not sent */
};

/*
 * For call(): the answer of a device that takes everything. Ids count up; sessions get their fds,
 * memory is whole pages without a file, no event comes.
 */
void fake_board_obey(struct fake_call *call);

struct fake_config {
	uint32_t major;	  /* of VERSION */
	uint32_t orphans; /* sessions that OBJ_ENUM lists till they are destroyed */
	void (*call)(struct fake_board *board, struct fake_call *call, void *arg);
	void *arg;
};

struct fake_board *fake_board_start(const char *dir, const struct fake_config *config);
void fake_board_stop(struct fake_board *board);
/* From call(): an event record before the reply. */
void fake_board_event(struct fake_board *board, const struct npu_event *event);
/* Ends the connection that is there; the next one is accepted. Any thread. */
void fake_board_hang_up(struct fake_board *board);
/* Connections so far, orphans that are left. Any thread. */
unsigned int fake_board_connections(struct fake_board *board);
unsigned int fake_board_orphans(struct fake_board *board);

#endif
