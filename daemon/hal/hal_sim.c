/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transport over the socket of an npu-sim: a call is a packet out and the packet with the same id
 * back. Event records that arrive before the reply are kept in a list. Whatever breaks the framing
 * ends the connection: there is nothing to resynchronise with.
 */
#include "daemon/hal/transport.h"
#include "daemon/util/cleanup.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define SIM_FDS_MAX 16

struct sim_event {
	struct sim_event *next;
	struct npu_event event;
};

struct hal_sim {
	struct hal_transport transport;
	int fd;
	int cancel_fd;
	uint64_t next_id;
	struct sim_event *first, **last;
	_Alignas(8) char packet[NPU_MSG_MAX];
};

struct sim_fds {
	int fd[SIM_FDS_MAX];
	unsigned int count;
};

static void sim_fds_close(struct sim_fds *fds)
{
	for (unsigned int i = 0; i < fds->count; i++) {
		if (fds->fd[i] >= 0)
			close(fds->fd[i]);
	}
	fds->count = 0;
}

/* 0: ready, -ECANCELED, or a negative errno. */
static int sim_wait(struct hal_sim *self, short events)
{
	struct pollfd pfd[2] = {
		{ .fd = self->fd, .events = events },
		{ .fd = self->cancel_fd, .events = POLLIN },
	};

	for (;;) {
		if (poll(pfd, 2, -1) < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		if (pfd[1].revents)
			return -ECANCELED;
		return 0;
	}
}

/* One packet with its fds; -EAGAIN: none now; -ENODEV: the connection is broken. */
static int sim_receive(struct hal_sim *self, size_t *ret_len, struct sim_fds *ret_fds)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int) * SIM_FDS_MAX)];
	} control;
	struct iovec iov = { .iov_base = self->packet, .iov_len = sizeof(self->packet) };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	const struct npu_msg *head = (const struct npu_msg *)self->packet;
	ssize_t n;

	ret_fds->count = 0;
	do {
		n = recvmsg(self->fd, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == EAGAIN ? -EAGAIN : -ENODEV;
	for (struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg); cmsg; cmsg = CMSG_NXTHDR(&msg, cmsg)) {
		if (cmsg->cmsg_level != SOL_SOCKET || cmsg->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < (cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int); i++)
			memcpy(&ret_fds->fd[ret_fds->count++], CMSG_DATA(cmsg) + i * sizeof(int),
			       sizeof(int));
	}
	if (n == 0 || (msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) || (size_t)n < sizeof(*head) ||
	    head->magic != NPU_MSG_MAGIC || head->bytes != (size_t)n - sizeof(*head)) {
		sim_fds_close(ret_fds);
		return -ENODEV;
	}
	*ret_len = (size_t)n;
	return 0;
}

static int sim_keep_event(struct hal_sim *self)
{
	const struct npu_msg *head = (const struct npu_msg *)self->packet;
	struct sim_event *item;

	if (head->bytes < offsetof(struct npu_event, module))
		return -ENODEV;
	item = calloc(1, sizeof(*item));
	if (!item)
		return -ENODEV;
	memcpy(&item->event, head + 1,
	       head->bytes < sizeof(item->event) ? head->bytes : sizeof(item->event));
	*self->last = item;
	self->last = &item->next;
	return 0;
}

/* Turns the indexes of the reply's fd slots into fds; every fd at most once. */
static int sim_take_fds(const struct hal_call *call, void *arg, struct sim_fds *fds)
{
	__s32 *slots = hal_call_fds(call, arg);
	int r = 0;

	for (unsigned int i = 0; i < call->fds; i++) {
		__s32 index = slots[i];

		slots[i] = -1;
		if (index < 0)
			continue;
		if ((unsigned int)index >= fds->count || fds->fd[index] < 0) {
			r = -ENODEV;
			continue;
		}
		slots[i] = fds->fd[index];
		fds->fd[index] = -1;
	}
	sim_fds_close(fds);
	return r;
}

static int sim_send(struct hal_sim *self, unsigned int nr, const struct hal_call *call,
		    const void *arg, uint64_t id)
{
	struct npu_msg head = {
		.magic = NPU_MSG_MAGIC,
		.type = NPU_MSG_CALL,
		.nr = (__u16)nr,
		.id = id,
		.bytes = (__u32)call->size,
	};
	struct iovec iov[2] = {
		{ .iov_base = &head, .iov_len = sizeof(head) },
		{ .iov_base = (void *)arg, .iov_len = call->size },
	};
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };

	for (;;) {
		int r;

		if (sendmsg(self->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0)
			return 0;
		if (errno == EINTR)
			continue;
		if (errno != EAGAIN)
			return -ENODEV;
		r = sim_wait(self, POLLOUT);
		if (r < 0)
			return r;
	}
}

static int sim_call(struct hal_transport *transport, unsigned int nr, const struct hal_call *call,
		    void *arg, int *ret_result)
{
	struct hal_sim *self = (struct hal_sim *)transport;
	const struct npu_msg *head = (const struct npu_msg *)self->packet;
	__s32 *slots = hal_call_fds(call, arg);
	uint64_t id = self->next_id++;
	int r;

	for (unsigned int i = 0; i < call->fds; i++)
		slots[i] = -1;
	r = sim_send(self, nr, call, arg, id);
	while (r == 0) {
		struct sim_fds fds;
		size_t len;

		r = sim_receive(self, &len, &fds);
		if (r == -EAGAIN) {
			r = sim_wait(self, POLLIN);
			continue;
		}
		if (r < 0)
			return r;
		if (head->type == NPU_MSG_EVENT) {
			sim_fds_close(&fds);
			r = sim_keep_event(self);
			continue;
		}
		if (head->type != NPU_MSG_REPLY || head->id != id || head->nr != nr ||
		    head->bytes > call->size || head->result > 0) {
			sim_fds_close(&fds);
			return -ENODEV;
		}
		/* an error may come without its struct */
		memcpy(arg, head + 1, head->bytes);
		if (head->bytes < call->fd_offset + call->fds * sizeof(__s32)) {
			sim_fds_close(&fds);
			*ret_result = head->result;
			return head->result < 0 || !call->fds ? 0 : -ENODEV;
		}
		*ret_result = head->result;
		return sim_take_fds(call, arg, &fds);
	}
	return r;
}

static int sim_event(struct hal_transport *transport, struct npu_event *ret_event)
{
	struct hal_sim *self = (struct hal_sim *)transport;
	struct sim_event *item = self->first;

	if (!item) {
		struct sim_fds fds;
		size_t len;
		int r = sim_receive(self, &len, &fds);

		if (r < 0)
			return r;
		sim_fds_close(&fds);
		if (((const struct npu_msg *)self->packet)->type != NPU_MSG_EVENT)
			return -ENODEV; /* an answer that nobody asked for */
		r = sim_keep_event(self);
		if (r < 0)
			return r;
		item = self->first;
	}
	self->first = item->next;
	if (!self->first)
		self->last = &self->first;
	*ret_event = item->event;
	free(item);
	return 0;
}

static int sim_poll_fd(struct hal_transport *transport)
{
	return ((struct hal_sim *)transport)->fd;
}

static void sim_close(struct hal_transport *transport)
{
	struct hal_sim *self = (struct hal_sim *)transport;

	while (self->first) {
		struct sim_event *item = self->first;

		self->first = item->next;
		free(item);
	}
	close(self->fd);
	free(self);
}

static const struct hal_transport_ops sim_ops = {
	.call = sim_call,
	.event = sim_event,
	.poll_fd = sim_poll_fd,
	.close = sim_close,
};

int hal_sim_open(const char *path, int cancel_fd, struct hal_transport **ret_transport,
		 pid_t *ret_pid)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	cleanup(cleanup_close) int fd = -1;
	struct ucred peer;
	socklen_t len = sizeof(peer);
	struct hal_sim *self;

	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	strcpy(address.sun_path, path);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	/* EAGAIN: its backlog is full, so it lives but does not accept */
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return -errno;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
		return -errno;
	if (peer.uid != 0 && peer.uid != geteuid())
		return -EPERM;
	self = calloc(1, sizeof(*self));
	if (!self)
		return -ENOMEM;
	self->transport.ops = &sim_ops;
	self->fd = steal_fd(&fd);
	self->cancel_fd = cancel_fd;
	self->next_id = 1;
	self->last = &self->first;
	*ret_transport = &self->transport;
	*ret_pid = peer.pid;
	return 0;
}
