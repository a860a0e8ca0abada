/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NPU_RPC_CLIENT_H
#define NPU_RPC_CLIENT_H

#include <sys/queue.h>

#include "daemon/core/session.h"
#include "daemon/rpc/server.h"
#include "proto/wire.h"

/*
 * One connection. It is freed when it is closed and its last request has ended. What a peer does
 * wrong closes it (client_close() with the reason for the log); nothing it does can make npud wait:
 * - a frame that is malformed, cut off, or brings file descriptors closes it; those fds, and the
 *   socket itself (whose queue may hold more of them), are closed by the closer;
 * - at most `requests` requests are worked on at once, the rest stays in the socket;
 * - at most one reply with fds is unread: further ones wait in the reply queue, since the kernel
 *   limits fds in flight for all of a user's sockets, that is for npud;
 * - a reply queue of CLIENT_QUEUE_MAX frames closes it. The loop's thread.
 */

#define CLIENT_QUEUE_MAX 64
#define CLIENT_HELLO_MS	 10000

struct server;
struct request;
struct frame;

enum client_state { CLIENT_NEW, CLIENT_ADMIN, CLIENT_READY, CLIENT_CLOSED };

struct client {
	struct server *server;
	int fd;
	enum client_state state;
	struct session_peer peer;
	struct session *session; /* READY only */
	struct loop_fd *source;
	struct loop_timer *timer; /* NEW: for Hello; then: for unread fds */
	unsigned int wait_ms;	  /* of the timer, doubles */
	unsigned int requests;	  /* under way */
	unsigned int refs;	  /* the server, then the post; and each request */
	bool fds_unread;	  /* a reply with fds has been sent and perhaps not read */
	struct loop_post close;	  /* ends the session */
	unsigned int queued;
	TAILQ_HEAD(, frame) queue;
	TAILQ_ENTRY(client) entry;
};

/* Takes fd over also on error. */
int client_new(struct server *server, int fd, const struct session_peer *peer,
	       struct client **ret_client);
/*
 * Disconnects; the caller's pointer stays valid only while it has a reference. why NULL: normal
 * end. The session is closed from the loop, not from within: replies are sent from the middle of
 * what the core does with sessions, and sending one may end here.
 */
void client_close(struct client *client, const char *why);
void client_ref(struct client *client);
void client_unref(struct client *client);

/* After Hello: opens its session unless admin_only. op is for the error. */
int client_start(struct client *client, bool admin_only, struct op *op);

/* Queues or sends a reply; takes the fds over (and sets them to -1). */
void client_send(struct client *client, struct wire_header *header, const void *body, int *fds,
		 unsigned int nfds);
/* A request has ended: more may be read. */
void client_request_done(struct client *client);

#endif
