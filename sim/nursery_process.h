/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NPU_SIM_NURSERY_PROCESS_H
#define NPU_SIM_NURSERY_PROCESS_H

/*
 * nursery_process: the inside of the nursery, and what it says to the board. Private to nursery.c.
 *
 * One SOCK_SEQPACKET pair. The nursery speaks first: a reply with the result of its engine on
 * trial, whose pid the board has to reap. Then it answers each request (with the control fd) by one
 * reply (with the pidfd, unless error is set).
 */

#include <stdint.h>
#include <sys/types.h>

#include "sim/nursery.h"

#define NURSERY_TEXT_MAX 128

struct nursery_request {
	uint32_t uid;
	uint32_t gid;
};

struct nursery_reply {
	int32_t error; /* negative errno; 0: none */
	int32_t pid;   /* of the new process, 0: none was made */
	uint32_t layers;
	char text[NURSERY_TEXT_MAX]; /* what went wrong */
};

/* Runs in the forked child until the socket closes. config has its defaults filled in. */
_Noreturn void nursery_process_run(const struct nursery_config *config, int socket, pid_t board);

/* Sends data and at most one fd (-1: none); blocking unless flags say otherwise. Negative errno. */
int nursery_send(int socket, const void *data, size_t size, int fd, int flags);

/*
 * Receives exactly size bytes and at most one fd (*ret_fd, -1: none). 0, or negative errno: -EPIPE
 * at the end of the connection, -EPROTO for another size, -EMFILE for an fd that found no place.
 */
int nursery_receive(int socket, void *data, size_t size, int flags, int *ret_fd);

#endif
