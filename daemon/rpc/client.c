/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Receiving is level-triggered and bounded a turn; sending is direct while the reply queue is
 * empty. Whether a peer has read a reply with fds is asked of the kernel (SIOCOUTQ is 0 when it has
 * read all there is); nothing tells when that changes, so a timer asks again while somebody waits
 * for it.
 */
#include "daemon/rpc/request.h"
#include "daemon/rpc/server_int.h"
#include "daemon/util/cleanup.h"
#include "daemon/util/log.h"

#include <errno.h>
#include <linux/sockios.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#define RECEIVE_BATCH 8
#define WAIT_FIRST_MS 1
#define WAIT_LAST_MS  64

struct frame {
	TAILQ_ENTRY(frame) entry;
	struct wire_header header;
	int fds[WIRE_FDS_MAX];
	unsigned int nfds;
	unsigned char body[];
};

static struct log_ident client_ident(const struct client *client)
{
	return (struct log_ident){
		.session = client->session ? session_id(client->session) : 0,
		.pid = client->peer.pid,
		.uid = client->peer.uid,
		.comm = client->peer.comm,
	};
}

static void frame_free(struct server *server, struct frame *frame)
{
	for (unsigned int i = 0; i < frame->nfds; i++)
		closer_close(server->closer, frame->fds[i]);
	free(frame);
}

void client_ref(struct client *client)
{
	client->refs++;
}

void client_unref(struct client *client)
{
	if (--client->refs == 0)
		free(client);
}

static void close_session(struct loop_post *post)
{
	struct client *client =
		(struct client *)((char *)post - offsetof(struct client, close));

	session_close(client->session);
	client->session = NULL;
	client_unref(client);
}

void client_close(struct client *client, const char *why)
{
	static struct log_limit limit;
	struct server *server = client->server;
	struct log_ident ident = client_ident(client);
	struct frame *frame;

	if (client->state == CLIENT_CLOSED)
		return;
	if (why && log_limit_ok(&limit, "rpc"))
		log_msg(LOG_LEVEL_WARNING, "rpc", &ident, "disconnected: %s", why);
	if (client->session)
		log_msg(LOG_LEVEL_INFO, "rpc", &ident, "session ended after %llu ms",
			(unsigned long long)session_age_ms(client->session));
	client->state = CLIENT_CLOSED;
	loop_fd_free(client->source);
	client->source = NULL;
	loop_timer_free(client->timer);
	client->timer = NULL;
	while ((frame = TAILQ_FIRST(&client->queue))) {
		TAILQ_REMOVE(&client->queue, frame, entry);
		frame_free(server, frame);
	}
	/* what lies unread in its queue may be as bad as what was received */
	shutdown(client->fd, SHUT_RDWR);
	closer_close(server->closer, client->fd);
	client->fd = -1;
	TAILQ_REMOVE(&server->clients, client, entry);
	server->connections--;
	if (client->session) {
		client->close.run = close_session;
		loop_post(server->loop, &client->close);
	} else {
		client_unref(client);
	}
}

int client_start(struct client *client, bool admin_only, struct op *op)
{
	struct log_ident ident;
	int r;

	if (!admin_only) {
		r = session_open(client->server->core, &client->peer, op, &client->session);
		if (r < 0)
			return r;
	}
	client->state = admin_only ? CLIENT_ADMIN : CLIENT_READY;
	loop_timer_stop(client->timer);
	ident = client_ident(client);
	if (!admin_only)
		log_msg(LOG_LEVEL_INFO, "rpc", &ident, "session started");
	return 0;
}

/* True while the peer has not read all, a reply with fds among it. */
static bool fds_unread(struct client *client)
{
	int unread = 0;

	if (client->fds_unread && ioctl(client->fd, SIOCOUTQ, &unread) == 0 && unread == 0)
		client->fds_unread = false;
	return client->fds_unread;
}

/*
 * 0: sent; -EAGAIN: has to wait (for room, or for the peer to read); else the connection is broken.
 */
static int try_send(struct client *client, struct wire_header *header, const void *body,
		    const int *fds, unsigned int nfds)
{
	int r;

	if (nfds && fds_unread(client))
		return -EBUSY;
	r = wire_send(client->fd, header, body, fds, nfds);
	if (r == -ETOOMANYREFS)
		return -EBUSY; /* fds in flight of other clients: they will read, or go */
	if (r == 0 && nfds)
		client->fds_unread = true;
	return r;
}

static void update_source(struct client *client, bool want_write)
{
	unsigned int events = want_write ? LOOP_WRITE : 0;

	if (client->requests < client->server->conf->requests)
		events |= LOOP_READ;
	loop_fd_set(client->source, events);
}

/* Sends what can be sent, and arranges to be called again for the rest. */
static void flush(struct client *client)
{
	struct frame *frame;
	int r = 0;

	while ((frame = TAILQ_FIRST(&client->queue))) {
		r = try_send(client, &frame->header, frame->body, frame->fds, frame->nfds);
		if (r < 0)
			break;
		TAILQ_REMOVE(&client->queue, frame, entry);
		client->queued--;
		client->wait_ms = WAIT_FIRST_MS;
		frame_free(client->server, frame);
	}
	if (r < 0 && r != -EAGAIN && r != -EBUSY) {
		client_close(client, r == -EPIPE || r == -ECONNRESET ? NULL : strerror(-r));
		return;
	}
	if (r == -EBUSY) {
		loop_timer_set(client->timer, client->wait_ms);
		if (client->wait_ms < WAIT_LAST_MS)
			client->wait_ms *= 2;
	}
	update_source(client, r == -EAGAIN);
}

void client_send(struct client *client, struct wire_header *header, const void *body, int *fds,
		 unsigned int nfds)
{
	struct frame *frame;
	int r = -EAGAIN;

	if (client->state == CLIENT_CLOSED)
		return;
	if (TAILQ_EMPTY(&client->queue))
		r = try_send(client, header, body, fds, nfds);
	if (r == 0)
		return;
	if (r != -EAGAIN && r != -EBUSY) {
		client_close(client, r == -EPIPE || r == -ECONNRESET ? NULL : strerror(-r));
		return;
	}
	if (client->queued >= CLIENT_QUEUE_MAX) {
		client_close(client, "it does not read its replies");
		return;
	}
	frame = malloc(sizeof(*frame) + header->bytes);
	if (!frame) {
		client_close(client, "no memory for a reply");
		return;
	}
	frame->header = *header;
	frame->nfds = nfds;
	for (unsigned int i = 0; i < nfds; i++) {
		frame->fds[i] = fds[i];
		fds[i] = -1;
	}
	if (header->bytes)
		memcpy(frame->body, body, header->bytes);
	TAILQ_INSERT_TAIL(&client->queue, frame, entry);
	client->queued++;
	if (client->queued == 1) {
		client->wait_ms = WAIT_FIRST_MS;
		flush(client);
	}
}

void client_request_done(struct client *client)
{
	if (client->state == CLIENT_CLOSED)
		return;
	if (client->requests + 1 == client->server->conf->requests)
		flush(client);
}

static void receive(struct client *client)
{
	struct server *server = client->server;

	for (unsigned int i = 0; i < RECEIVE_BATCH; i++) {
		size_t nfds;
		int n;

		if (client->state == CLIENT_CLOSED || client->requests >= server->conf->requests)
			return;
		n = wire_receive(client->fd, server->frame, sizeof(server->frame), server->fds,
				 WIRE_FDS_RECEIVE_MAX, &nfds, MSG_DONTWAIT);
		for (size_t k = 0; k < nfds; k++)
			closer_close(server->closer, server->fds[k]);
		if (n == -EAGAIN)
			return;
		if (n == 0 || n == -ECONNRESET) {
			client_close(client, NULL);
		} else if (n == -EMSGSIZE) {
			client_close(client, "a frame longer than allowed, or cut off");
		} else if (n < 0) {
			client_close(client, strerror(-n));
		} else if (nfds) {
			client_close(client, "it sent file descriptors, which no method takes");
		} else if (wire_header_check(server->frame, (size_t)n, 0) < 0) {
			client_close(client, "malformed frame");
		} else {
			request_receive(client, server->frame);
		}
	}
}

static void on_ready(int fd, unsigned int events, void *arg)
{
	struct client *client = arg;

	(void)fd;
	client_ref(client);
	if (events & LOOP_READ)
		receive(client);
	if (client->state != CLIENT_CLOSED)
		flush(client);
	client_unref(client);
}

static void on_timer(void *arg)
{
	struct client *client = arg;

	/* also with replies that it does not read: nothing that waits for fds to be read is NEW */
	if (client->state == CLIENT_NEW)
		client_close(client, "no Hello in time");
	else
		flush(client);
}

int client_new(struct server *server, int fd, const struct session_peer *peer,
	       struct client **ret_client)
{
	struct client *client = calloc(1, sizeof(*client));
	int r = -ENOMEM;

	if (!client)
		goto fail;
	client->server = server;
	client->fd = fd;
	client->peer = *peer;
	client->refs = 1;
	client->wait_ms = WAIT_FIRST_MS;
	TAILQ_INIT(&client->queue);
	r = loop_timer_new(server->loop, on_timer, client, &client->timer);
	if (r == 0)
		r = loop_timer_set(client->timer, CLIENT_HELLO_MS);
	if (r == 0)
		r = loop_fd_new(server->loop, fd, LOOP_READ, on_ready, client, &client->source);
	if (r < 0)
		goto fail;
	TAILQ_INSERT_TAIL(&server->clients, client, entry);
	server->connections++;
	*ret_client = client;
	return 0;
fail:
	if (client)
		loop_timer_free(client->timer);
	free(client);
	closer_close(server->closer, fd);
	return r;
}
