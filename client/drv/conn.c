/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The socket is non-blocking; a call sends one packet and reads packets until the one with its id
 * comes or its time is over. A reply that comes too late is dropped by its id at the next call.
 */
#include "client/drv/conn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "client/drv/drv.h"
#include "proto/npu.pb-c.h"
#include "proto/status.h"

static const char *method_name(uint16_t method)
{
	switch (method) {
#define NPU_METHOD(id, name, Req, req, Rep, rep, plane, state, fds) \
	case id:                                                    \
		return #name;
#include "proto/methods.def"
#undef NPU_METHOD
	}
	return "unknown";
}

static void close_fds(const int *fds, size_t nfds)
{
	for (size_t i = 0; i < nfds; i++)
		close(fds[i]);
}

static int conn_lost(struct drv_conn *conn, int error)
{
	drv_process_close_fd(conn->fd);
	conn->fd = -1;
	return drv_fail(-ENOTCONN,
			"npud at %s ended the connection (%s); device calls cannot be made, "
			"queued work goes on",
			conn->path, strerror(error));
}

/* Waits for events on the socket: 0, or -ETIMEDOUT. */
static int conn_poll(struct drv_conn *conn, short events, uint64_t deadline)
{
	for (;;) {
		uint64_t now = drv_now_ns();
		struct pollfd p = { .fd = conn->fd, .events = events };
		int n;

		if (now >= deadline)
			return -ETIMEDOUT;
		n = poll(&p, 1, (int)((deadline - now) / 1000000 + 1));
		if (n > 0)
			return 0;
		if (n < 0 && errno != EINTR)
			return -errno;
	}
}

static int conn_send(struct drv_conn *conn, uint16_t method, uint32_t id, size_t bytes,
		     uint64_t deadline)
{
	struct wire_header header = {
		.magic = WIRE_MAGIC,
		.method = method,
		.id = id,
		.bytes = (uint32_t)bytes,
	};

	for (;;) {
		int r = wire_send(conn->fd, &header, conn->frame, NULL, 0);

		if (r == -EINTR)
			continue;
		if (r != -EAGAIN)
			return r;
		r = conn_poll(conn, POLLOUT, deadline);
		if (r)
			return r;
	}
}

/* The reply with this id, in conn->frame; its fds in fds. */
static int conn_receive(struct drv_conn *conn, uint16_t method, uint32_t id, uint64_t deadline,
			int *fds, size_t *ret_nfds)
{
	for (;;) {
		const struct wire_header *header = (const struct wire_header *)conn->frame;
		size_t nfds;
		int r = wire_receive(conn->fd, conn->frame, WIRE_FRAME_MAX, fds, WIRE_FDS_MAX,
				     &nfds, MSG_DONTWAIT);

		if (r == -EAGAIN) {
			close_fds(fds, nfds);
			r = conn_poll(conn, POLLIN, deadline);
			if (r)
				return r;
			continue;
		}
		if (r == -EINTR) {
			close_fds(fds, nfds);
			continue;
		}
		if (r == 0)
			r = -ECONNRESET;
		if (r > 0 &&
		    (wire_header_check(conn->frame, (size_t)r, WIRE_REPLY) || header->fds != nfds))
			r = -EBADMSG;
		if (r < 0) {
			close_fds(fds, nfds);
			return r;
		}
		if (header->id == id && header->method == method) {
			*ret_nfds = nfds;
			return 0;
		}
		close_fds(fds, nfds);
	}
}

/* Turns a refusal into drv_error(). */
static int conn_refused(const struct drv_conn *conn, uint16_t method)
{
	const struct wire_header *header = (const struct wire_header *)conn->frame;
	int status = header->status;
	int error = drv_errno_from_status(status);
	Npu__Error *body =
		npu__error__unpack(NULL, header->bytes, conn->frame + sizeof(struct wire_header));
	struct drv_error *last = (struct drv_error *)drv_error();

	if (body && body->text && body->text[0])
		drv_fail(error, "%s", body->text);
	else
		drv_fail(error, "npud refused %s: %s", method_name(method),
			 npu_status_name(status));
	last->status = status;
	if (body) {
		last->sys_errno = body->sys_errno;
		last->wanted = body->wanted;
		last->limit = body->limit;
		last->largest = body->largest;
		npu__error__free_unpacked(body, NULL);
	}
	return error;
}

int drv_conn_call(struct drv_conn *conn, uint16_t method, const ProtobufCMessage *request,
		  const ProtobufCMessageDescriptor *type, ProtobufCMessage **ret_reply, int *fds,
		  size_t *ret_nfds)
{
	uint64_t deadline = drv_now_ns() + conn->timeout_ms * 1000000ull;
	const struct wire_header *header = (const struct wire_header *)conn->frame;
	size_t bytes = protobuf_c_message_get_packed_size(request), nfds = 0;
	uint32_t id = conn->next_id++;
	int own_fds[WIRE_FDS_MAX], *got = fds ? fds : own_fds;
	ProtobufCMessage *reply;
	int r;

	if (conn->fd < 0)
		return drv_fail(-ENOTCONN, "no connection to npud at %s: it went away", conn->path);
	if (bytes > WIRE_FRAME_MAX - sizeof(struct wire_header))
		return drv_fail(-EMSGSIZE, "%s: the request has %zu bytes, the limit is %zu",
				method_name(method), bytes,
				WIRE_FRAME_MAX - sizeof(struct wire_header));
	protobuf_c_message_pack(request, conn->frame);

	r = conn_send(conn, method, id, bytes, deadline);
	if (!r)
		r = conn_receive(conn, method, id, deadline, got, &nfds);
	if (r == -ETIMEDOUT)
		return drv_fail(r, "npud at %s did not answer %s within %u ms", conn->path,
				method_name(method), conn->timeout_ms);
	if (r)
		return conn_lost(conn, -r);
	if (header->status) {
		close_fds(got, nfds);
		return conn_refused(conn, method);
	}
	reply = protobuf_c_message_unpack(type, NULL, header->bytes,
					  conn->frame + sizeof(struct wire_header));
	if (!reply) {
		close_fds(got, nfds);
		return conn_lost(conn, EBADMSG);
	}
	if (ret_reply)
		*ret_reply = reply;
	else
		protobuf_c_message_free_unpacked(reply, NULL);
	if (fds)
		*ret_nfds = nfds;
	else
		close_fds(got, nfds);
	return 0;
}

static int conn_connect(struct drv_conn *conn)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	unsigned ms = conn->timeout_ms;
	struct timeval limit = { .tv_sec = ms / 1000, .tv_usec = (suseconds_t)(ms % 1000) * 1000 };
	int r;

	strcpy(address.sun_path, conn->path);
	conn->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (conn->fd < 0)
		return drv_fail(-errno, "no socket for npud: %s", strerror(errno));
	drv_process_keep_fd(conn->fd);
	/* A full backlog makes connect wait; this bounds it. */
	setsockopt(conn->fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	do
		r = connect(conn->fd, (struct sockaddr *)&address, sizeof(address));
	while (r && errno == EINTR);
	if (r) {
		int error = errno;

		switch (error) {
		case ENOENT:
		case ECONNREFUSED:
			return drv_fail(
				-error,
				"npud is not running: no one listens at %s (%s); start npud "
				"or set " NPUD_SOCKET_ENV,
				conn->path, strerror(error));
		case EACCES:
		case EPERM:
			return drv_fail(-EACCES,
					"npud's socket %s refuses this user; join the group npu",
					conn->path);
		case EAGAIN:
			return drv_fail(-ETIMEDOUT, "npud at %s does not take connections",
					conn->path);
		default:
			return drv_fail(-error, "cannot connect to npud at %s: %s", conn->path,
					strerror(error));
		}
	}
	if (fcntl(conn->fd, F_SETFL, fcntl(conn->fd, F_GETFL) | O_NONBLOCK))
		return drv_fail(-errno, "cannot set up the socket: %s", strerror(errno));
	return 0;
}

int drv_conn_open(struct drv_conn *conn, const char *path, unsigned timeout_ms, bool admin)
{
	Npu__Hello hello = NPU__HELLO__INIT;
	Npu__HelloReply *reply;
	int r;

	*conn = (struct drv_conn){ .fd = -1, .next_id = 1 };
	conn->timeout_ms = timeout_ms ? timeout_ms : DRV_TIMEOUT_MS;
	if (!path)
		path = secure_getenv(NPUD_SOCKET_ENV);
	if (!path || !*path)
		path = NPUD_SOCKET_DEFAULT;
	if (strlen(path) >= sizeof(conn->path))
		return drv_fail(-ENAMETOOLONG,
				"the path of npud's socket has more than %zu bytes: %s",
				sizeof(conn->path) - 1, path);
	strcpy(conn->path, path);
	conn->frame = malloc(WIRE_FRAME_MAX);
	if (!conn->frame)
		return drv_fail(-ENOMEM, "out of host memory");
	r = conn_connect(conn);
	if (r)
		return r;

	hello.major = NPU_PROTO_MAJOR;
	hello.minor = NPU_PROTO_MINOR;
	hello.library = (char *)DRV_LIBRARY;
	hello.admin = admin;
	r = drv_conn_call(conn, NPU_METHOD_hello, &hello.base, &npu__hello_reply__descriptor,
			  (ProtobufCMessage **)&reply, NULL, NULL);
	if (r)
		return r;
	if (reply->major != NPU_PROTO_MAJOR) {
		r = drv_fail(-EPROTO,
			     "npud at %s speaks protocol %u.%u, this library %u.%u: install "
			     "matching versions",
			     conn->path, reply->major, reply->minor, NPU_PROTO_MAJOR,
			     NPU_PROTO_MINOR);
		npu__hello_reply__free_unpacked(reply, NULL);
		return r;
	}
	strncpy(conn->daemon, reply->daemon ? reply->daemon : "", sizeof(conn->daemon) - 1);
	conn->major = reply->major;
	conn->minor = reply->minor;
	conn->is_admin = reply->is_admin;
	conn->window_base = reply->window_base;
	conn->window_size = reply->window_size;
	if (!timeout_ms && reply->rpc_timeout_ms)
		conn->timeout_ms = reply->rpc_timeout_ms;
	npu__hello_reply__free_unpacked(reply, NULL);
	return 0;
}

void drv_conn_close(struct drv_conn *conn)
{
	drv_process_close_fd(conn->fd);
	conn->fd = -1;
	free(conn->frame);
	conn->frame = NULL;
}

bool drv_conn_alive(const struct drv_conn *conn)
{
	struct pollfd p = { .fd = conn->fd };

	return conn->fd >= 0 && (poll(&p, 1, 0) <= 0 || !(p.revents & (POLLHUP | POLLERR)));
}
