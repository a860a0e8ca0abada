/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NPU_SIM_BOARD_SOCKET_H
#define NPU_SIM_BOARD_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "kdrv/uapi/npu.h"
#include "sim/board_loop.h"
#include "sim/board_release.h"

/*
 * board_socket - the board's front: packets in, packets out.
 *
 * A listening SOCK_SEQPACKET socket and its connections, all non-blocking. Only the owner's uid and
 * root are let in. What a peer sends is checked for form; a packet that is not a well-formed call
 * (wrong magic, type or length, longer than NPU_MSG_MAX, or with fds) ends its connection, and the
 * fds that came are closed by the releaser. A peer that does not read its replies is disconnected
 * when BOARD_SOCKET_QUEUE packets wait for it.
 */

#define BOARD_SOCKET_QUEUE 512u
#define BOARD_SOCKET_CONNECTIONS 64u
#define BOARD_REPLY_FDS 4u

struct board_socket;

/* fds of a reply, lent: the socket duplicates what it must keep. */
struct board_reply_fds {
	int fd[BOARD_REPLY_FDS];
	unsigned int count;
};

struct board_socket_ops {
	/* A connection: its number, never used twice. *ret_peer comes back below. */
	int (*opened)(void *arg, uint64_t connection, void **ret_peer);
	/*
	 * One call: data has `bytes` of the caller's struct (at least a struct npu_head), answered
	 * in place with as many. Returns the result; with an error no fd is sent.
	 */
	int (*call)(void *arg, void *peer, unsigned int nr, void *data, size_t bytes,
		    struct board_reply_fds *ret_fds);
	/* The connection ended: nothing can be sent to it any more. */
	void (*closed)(void *arg, void *peer);
};

/* Takes the listening socket over. */
int board_socket_new(struct board_loop *loop, struct board_release *release, int listen_fd,
		     uid_t owner, const struct board_socket_ops *ops, void *arg,
		     struct board_socket **ret_socket);
void board_socket_free(struct board_socket *socket);

/* Sends an event record; dropped when that connection is gone. */
void board_socket_event(struct board_socket *socket, uint64_t connection,
			const struct npu_event *event);

/*
 * False while something waits to be sent on that connection: then event records had better wait
 * where they are, since their number is bounded there. The loop turns when that has changed.
 */
bool board_socket_takes_events(struct board_socket *socket, uint64_t connection);

/*
 * Makes the listening socket: of that type (SOCK_*), mode 0600, belonging to owner. A stale socket
 * is replaced.
 * -EADDRINUSE: somebody listens there (*ret_holder: who). Else what the kernel said.
 */
int board_socket_listen(const char *path, int type, uid_t owner, int *ret_fd, pid_t *ret_holder);

#endif
