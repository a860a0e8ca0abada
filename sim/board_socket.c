/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection reads one packet at a time into the socket's buffer, hands the struct to ops->call
 * in place, and sends the answer from there. Only an answer that the kernel does not take at once
 * is copied, to the connection's queue. Ids of connections are never used twice.
 */
#include "sim/board_socket.h"

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "sim/sim_fd.h"
#include "sim/sim_log.h"

#define SOCKET_CONTROL_FDS 16
#define SOCKET_PACKETS_A_TURN 16

struct packet {
	struct packet *next;
	struct board_reply_fds fds; /* owned */
	size_t len;
	char data[];
};

struct connection {
	struct board_source source;
	struct board_socket *socket;
	struct connection *next;
	uint64_t id;
	void *peer;
	pid_t pid;
	struct packet *first, **last;
	unsigned int queued;
	bool broken; /* ends when the callback that found it returns */
};

struct board_socket {
	struct board_source source;
	struct board_loop *loop;
	struct board_release *release;
	uid_t owner;
	const struct board_socket_ops *ops;
	void *arg;
	struct connection *connections;
	unsigned int count;
	uint64_t next_id;
	int spare_fd; /* to take and drop a connection when there are no fds left */
	struct sim_log_limit limit;
	_Alignas(16) char packet[NPU_MSG_MAX];
};

static void packet_free(struct packet *packet)
{
	for (unsigned int i = 0; i < packet->fds.count; i++)
		sim_fd_close(&packet->fds.fd[i]);
	free(packet);
}

static void packets_free(struct packet *packet)
{
	while (packet) {
		struct packet *next = packet->next;

		packet_free(packet);
		packet = next;
	}
}

static void connection_free(struct connection *conn)
{
	board_loop_delete(conn->socket->loop, &conn->source);
	close(conn->source.fd);
	packets_free(conn->first);
	free(conn);
}

static void connection_end(struct connection *conn, const char *why)
{
	struct board_socket *self = conn->socket;
	struct connection **at = &self->connections;
	void *peer = conn->peer;
	uint64_t id = conn->id;

	while (*at != conn)
		at = &(*at)->next;
	*at = conn->next;
	self->count--;
	if (why && sim_log_limit_ok(&self->limit))
		sim_log(SIM_LOG_WARNING, "connection %llu of process %d: %s: disconnected",
			(unsigned long long)id, (int)conn->pid, why);
	else
		sim_log(SIM_LOG_INFO, "connection %llu of process %d ended",
			(unsigned long long)id, (int)conn->pid);
	connection_free(conn);
	self->ops->closed(self->arg, peer);
}

/* 0, -EAGAIN, -ETOOMANYREFS, or what breaks the connection. */
static int packet_send(int fd, const void *data, size_t len, const struct board_reply_fds *fds)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int) * BOARD_REPLY_FDS)];
	} control;
	struct iovec iov = { .iov_base = (void *)data, .iov_len = len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *cmsg;

	if (fds && fds->count) {
		memset(&control, 0, sizeof(control));
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * fds->count);
		cmsg = CMSG_FIRSTHDR(&msg);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(sizeof(int) * fds->count);
		memcpy(CMSG_DATA(cmsg), fds->fd, sizeof(int) * fds->count);
	}
	while (sendmsg(fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
		if (errno != EINTR)
			return -errno;
	}
	return 0;
}

static int packet_new(const void *data, size_t len, const struct board_reply_fds *fds,
		      struct packet **ret_packet)
{
	struct packet *packet = malloc(sizeof(*packet) + len);

	if (!packet)
		return -ENOMEM;
	packet->next = NULL;
	packet->fds.count = 0;
	packet->len = len;
	memcpy(packet->data, data, len);
	for (unsigned int i = 0; fds && i < fds->count; i++) {
		int fd = fcntl(fds->fd[i], F_DUPFD_CLOEXEC, 3);

		if (fd < 0) {
			packet_free(packet);
			return -EMFILE;
		}
		packet->fds.fd[packet->fds.count++] = fd;
	}
	*ret_packet = packet;
	return 0;
}

static int connection_queue(struct connection *conn, const void *data, size_t len,
			    const struct board_reply_fds *fds)
{
	struct packet *packet;
	int r;

	if (conn->queued >= BOARD_SOCKET_QUEUE)
		return -EOVERFLOW;
	r = packet_new(data, len, fds, &packet);
	if (r < 0)
		return r;
	if (!conn->first)
		board_loop_modify(conn->socket->loop, &conn->source, EPOLLIN | EPOLLOUT);
	conn->queued++;
	*conn->last = packet;
	conn->last = &packet->next;
	return 0;
}

static void connection_send(struct connection *conn, void *data, size_t len,
			    const struct board_reply_fds *fds)
{
	int r = conn->first ? -EAGAIN : packet_send(conn->source.fd, data, len, fds);

	if (r == -ETOOMANYREFS) {
		/* The same call number gives the result once more, with fds. */
		((struct npu_msg *)data)->result = -EMFILE;
		fds = NULL;
		r = packet_send(conn->source.fd, data, len, NULL);
	}
	if (r == -EAGAIN)
		r = connection_queue(conn, data, len, fds);
	if (r < 0)
		conn->broken = true;
}

static void connection_flush(struct connection *conn)
{
	while (conn->first) {
		struct packet *packet = conn->first;
		int r = packet_send(conn->source.fd, packet->data, packet->len, &packet->fds);

		if (r == -EAGAIN)
			return;
		if (r < 0) {
			conn->broken = true;
			return;
		}
		conn->first = packet->next;
		if (!conn->first)
			conn->last = &conn->first;
		conn->queued--;
		packet_free(packet);
	}
	board_loop_modify(conn->socket->loop, &conn->source, EPOLLIN);
}

static void connection_call(struct connection *conn, size_t bytes)
{
	struct board_socket *self = conn->socket;
	struct npu_msg *head = (struct npu_msg *)self->packet;
	struct board_reply_fds fds = { .count = 0 };
	int r = self->ops->call(self->arg, conn->peer, head->nr, head + 1, bytes, &fds);

	if (r < 0)
		fds.count = 0;
	head->result = r < 0 ? r : 0;
	head->type = NPU_MSG_REPLY;
	connection_send(conn, head, sizeof(*head) + bytes, &fds);
}

/* Gives the received fds to the releaser. Returns whether there were any. */
static bool connection_drop_fds(struct connection *conn, struct msghdr *msg)
{
	bool any = false;

	for (struct cmsghdr *cmsg = CMSG_FIRSTHDR(msg); cmsg; cmsg = CMSG_NXTHDR(msg, cmsg)) {
		size_t n = 0;

		if (cmsg->cmsg_level == SOL_SOCKET && cmsg->cmsg_type == SCM_RIGHTS)
			n = (cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(cmsg) + i * sizeof(int), sizeof(fd));
			board_release_close(conn->socket->release, fd);
			any = true;
		}
	}
	return any;
}

/* One packet. 1: there may be more, 0: none now. *why: what is wrong with it. */
static int connection_receive(struct connection *conn, const char **why)
{
	struct board_socket *self = conn->socket;
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int) * SOCKET_CONTROL_FDS)];
	} control;
	struct iovec iov = { .iov_base = self->packet, .iov_len = sizeof(self->packet) };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	const struct npu_msg *head = (const struct npu_msg *)self->packet;
	ssize_t n = recvmsg(conn->source.fd, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0) {
		conn->broken = true;
		return 0;
	}
	if (connection_drop_fds(conn, &msg) || (msg.msg_flags & MSG_CTRUNC))
		*why = "sent file descriptors, which no call takes";
	else if (msg.msg_flags & MSG_TRUNC)
		*why = "packet longer than NPU_MSG_MAX";
	else if ((size_t)n < sizeof(*head) + sizeof(struct npu_head))
		*why = "packet shorter than a call";
	else if (head->magic != NPU_MSG_MAGIC || head->type != NPU_MSG_CALL)
		*why = "packet is not a call";
	else if (head->bytes != (size_t)n - sizeof(*head))
		*why = "packet's length is not what it says";
	if (*why)
		return 0;
	connection_call(conn, (size_t)n - sizeof(*head));
	return 1;
}

static void connection_ready(struct board_source *source, uint32_t events)
{
	struct connection *conn = sim_container(source, struct connection, source);
	const char *why = NULL;

	if (events & EPOLLOUT)
		connection_flush(conn);
	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
		/* A peer that keeps sending must not keep the others waiting. */
		for (int i = 0; i < SOCKET_PACKETS_A_TURN && !conn->broken; i++) {
			if (connection_receive(conn, &why) <= 0)
				break;
		}
	}
	if (conn->queued >= BOARD_SOCKET_QUEUE)
		why = "does not read its replies";
	if (conn->broken || why)
		connection_end(conn, why);
}

/* Out of fds: drops the next connection, which would keep the loop turning. */
static void socket_refuse(struct board_socket *self)
{
	int fd;

	sim_fd_close(&self->spare_fd);
	fd = accept4(self->source.fd, NULL, NULL, SOCK_CLOEXEC);
	sim_fd_close(&fd);
	self->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void socket_accept(struct board_source *source, uint32_t events)
{
	struct board_socket *self = sim_container(source, struct board_socket, source);
	cleanup(sim_fd_close) int fd = -1;
	struct connection *conn;
	struct ucred peer;
	socklen_t len = sizeof(peer);

	(void)events;
	fd = accept4(source->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd < 0) {
		if (errno != EAGAIN && errno != EINTR && sim_log_limit_ok(&self->limit))
			sim_log(SIM_LOG_ERROR, "accept: %m");
		if (errno == EMFILE || errno == ENFILE)
			socket_refuse(self);
		return;
	}
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
		return;
	if (peer.uid != 0 && peer.uid != self->owner) {
		if (sim_log_limit_ok(&self->limit))
			sim_log(SIM_LOG_WARNING, "process %d of user %u refused: only user %u and "
				"root may connect", (int)peer.pid, (unsigned int)peer.uid,
				(unsigned int)self->owner);
		return;
	}
	if (self->count >= BOARD_SOCKET_CONNECTIONS) {
		if (sim_log_limit_ok(&self->limit))
			sim_log(SIM_LOG_WARNING, "process %d refused: %u connections are open",
				(int)peer.pid, self->count);
		return;
	}
	conn = calloc(1, sizeof(*conn));
	if (!conn)
		return;
	conn->source.fd = fd;
	conn->source.ready = connection_ready;
	conn->socket = self;
	conn->id = ++self->next_id;
	conn->pid = peer.pid;
	conn->last = &conn->first;
	if (self->ops->opened(self->arg, conn->id, &conn->peer) < 0) {
		free(conn);
		return;
	}
	if (board_loop_add(self->loop, &conn->source, EPOLLIN) < 0) {
		self->ops->closed(self->arg, conn->peer);
		free(conn);
		return;
	}
	sim_fd_steal(&fd);
	conn->next = self->connections;
	self->connections = conn;
	self->count++;
	sim_log(SIM_LOG_INFO, "connection %llu of process %d, user %u",
		(unsigned long long)conn->id, (int)peer.pid, (unsigned int)peer.uid);
}

int board_socket_new(struct board_loop *loop, struct board_release *release, int listen_fd,
		     uid_t owner, const struct board_socket_ops *ops, void *arg,
		     struct board_socket **ret_socket)
{
	struct board_socket *self = calloc(1, sizeof(*self));
	int r;

	if (!self)
		return -ENOMEM;
	self->source.fd = listen_fd;
	self->source.ready = socket_accept;
	self->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	self->loop = loop;
	self->release = release;
	self->owner = owner;
	self->ops = ops;
	self->arg = arg;
	r = board_loop_add(loop, &self->source, EPOLLIN);
	if (r < 0) {
		sim_fd_close(&self->spare_fd);
		free(self);
		return r;
	}
	*ret_socket = self;
	return 0;
}

void board_socket_free(struct board_socket *self)
{
	if (!self)
		return;
	while (self->connections) {
		struct connection *conn = self->connections;

		self->connections = conn->next;
		self->ops->closed(self->arg, conn->peer);
		connection_free(conn);
	}
	board_loop_delete(self->loop, &self->source);
	close(self->source.fd);
	sim_fd_close(&self->spare_fd);
	free(self);
}

void board_socket_event(struct board_socket *self, uint64_t connection,
			const struct npu_event *event)
{
	struct {
		struct npu_msg head;
		struct npu_event event;
	} packet = {
		.head = { .magic = NPU_MSG_MAGIC, .type = NPU_MSG_EVENT, .bytes = sizeof(*event) },
		.event = *event,
	};

	for (struct connection *conn = self->connections; conn; conn = conn->next) {
		if (conn->id != connection || conn->broken)
			continue;
		connection_send(conn, &packet, sizeof(packet), NULL);
		if (conn->broken)
			/* Not freed here: a caller may stand in this connection's own callback. */
			shutdown(conn->source.fd, SHUT_RDWR);
		return;
	}
}

bool board_socket_takes_events(struct board_socket *self, uint64_t connection)
{
	for (struct connection *conn = self->connections; conn; conn = conn->next) {
		if (conn->id == connection)
			return !conn->first;
	}
	return true;
}

static int socket_holder(const char *path, int type, const struct sockaddr_un *address,
			 pid_t *ret_holder)
{
	cleanup(sim_fd_close) int fd = -1;
	struct ucred peer = { .pid = 0 };
	socklen_t len = sizeof(peer);
	struct stat st;

	fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(st.st_mode))
		return -EEXIST;
	if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) < 0) {
		if (errno == ECONNREFUSED)
			return unlink(path) < 0 ? -errno : 0;
		*ret_holder = 0;
		return errno == EAGAIN || errno == EPROTOTYPE ? -EADDRINUSE : -errno;
	}
	getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len);
	*ret_holder = peer.pid;
	return -EADDRINUSE;
}

int board_socket_listen(const char *path, int type, uid_t owner, int *ret_fd, pid_t *ret_holder)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	cleanup(sim_fd_close) int fd = -1;
	mode_t mask;
	int r;

	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	strcpy(address.sun_path, path);
	r = socket_holder(path, type, &address, ret_holder);
	if (r < 0)
		return r;
	fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	mask = umask(0177);
	r = bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ? -errno : 0;
	umask(mask);
	if (r < 0)
		return r;
	if ((owner != geteuid() && chown(path, owner, (gid_t)-1) < 0) || listen(fd, 32) < 0) {
		r = -errno;
		unlink(path);
		return r;
	}
	*ret_fd = sim_fd_steal(&fd);
	return 0;
}
