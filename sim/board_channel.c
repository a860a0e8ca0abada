/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A list of packets before the socket, a budget of messages behind it. The engine answers messages
 * in the order of their numbers, so one counter says what is still open. Each message adds what its
 * kind may take to a virtual clock, which never runs behind the real one.
 */
#include "sim/board_channel.h"

#include <string.h>
#include <sys/socket.h>

#include "sim/sim_fd.h"

#define CHANNEL_WINDOW (100 * SIM_MS)
#define CHANNEL_BUDGET 1000u /* messages a window */
#define CHANNEL_A_TURN 32
#define CHANNEL_STATUS_MIN (-4095) /* what is an errno */

/* What a message may take, not counting the limit that its owner grants once. */
#define CHANNEL_COST (5 * SIM_MS)
#define CHANNEL_COST_IMAGE_MIB (16 * SIM_MS)
#define CHANNEL_COST_MAP_GIB (500 * SIM_MS)

struct board_channel_packet {
	struct board_channel_packet *next;
	struct board_memory *memory; /* its fd goes along; NULL: none */
	struct engine_msg head;
	char payload[];
};

static void channel_break(struct board_channel *self, const char *why)
{
	if (!self->broken)
		self->broken = why;
}

/* 0, -EAGAIN, or another negative errno. */
static int channel_write(struct board_channel *self, const struct engine_msg *head,
			 const void *payload, const int *fds, unsigned int nfds)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int) * ENGINE_FDS_MAX)];
	} control;
	struct iovec iov[2] = {
		{ .iov_base = (void *)head, .iov_len = sizeof(*head) },
		{ .iov_base = (void *)payload, .iov_len = head->bytes },
	};
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };

	if (nfds) {
		struct cmsghdr *cmsg = &control.align;

		memset(&control, 0, sizeof(control));
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * nfds);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(sizeof(int) * nfds);
		memcpy(CMSG_DATA(cmsg), fds, sizeof(int) * nfds);
	}
	while (sendmsg(self->source.fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
		/* Too many fds in flight: they are taken out as the engine reads. */
		if (errno == ETOOMANYREFS)
			return -EAGAIN;
		if (errno != EINTR)
			return -errno;
	}
	return 0;
}

static int channel_enqueue(struct board_channel *self, const struct engine_msg *head,
			   const void *payload, struct board_memory *memory)
{
	struct board_channel_packet *packet;

	if (self->queued >= BOARD_CHANNEL_QUEUE)
		return -EOVERFLOW;
	packet = malloc(sizeof(*packet) + head->bytes);
	if (!packet)
		return -ENOMEM;
	packet->next = NULL;
	packet->memory = memory ? board_memory_ref(memory) : NULL;
	packet->head = *head;
	memcpy(packet->payload, payload, head->bytes);
	*self->last = packet;
	self->last = &packet->next;
	if (self->queued++ == 0)
		board_loop_modify(self->loop, &self->source,
				  EPOLLOUT | (self->throttled ? 0 : EPOLLIN));
	return 0;
}

static struct board_channel_packet *channel_pop(struct board_channel *self)
{
	struct board_channel_packet *packet = self->first;

	self->first = packet->next;
	if (!self->first)
		self->last = &self->first;
	self->queued--;
	return packet;
}

static void packet_free(struct board_channel_packet *packet)
{
	board_memory_unref(packet->memory);
	free(packet);
}

static void channel_flush(struct board_channel *self)
{
	while (self->first) {
		struct board_channel_packet *packet = self->first;
		int r = channel_write(self, &packet->head, packet->payload,
				      packet->memory ? &packet->memory->fd : NULL,
				      packet->memory ? 1 : 0);

		if (r == -EAGAIN)
			return;
		if (r < 0) {
			self->closed = true;
			return;
		}
		packet_free(channel_pop(self));
	}
	board_loop_modify(self->loop, &self->source, self->throttled ? 0 : EPOLLIN);
}

static uint64_t channel_cost(enum engine_msg_type type, const void *payload)
{
	if (type == ENGINE_MODULE)
		return CHANNEL_COST + (((const struct engine_module *)payload)->bytes >> 20) *
					      CHANNEL_COST_IMAGE_MIB;
	if (type == ENGINE_MAP || type == ENGINE_UNMAP)
		return CHANNEL_COST + (((const struct engine_map *)payload)->bytes >> 30) *
					      CHANNEL_COST_MAP_GIB;
	return CHANNEL_COST;
}

/* Room for one more open message. */
static int channel_room(struct board_channel *self)
{
	uint64_t open = self->sent - self->answered;
	struct board_channel_open *opens;
	uint32_t room;

	if (open < self->room)
		return 0;
	room = self->room ? self->room * 2 : 64;
	opens = calloc(room, sizeof(*opens));
	if (!opens)
		return -ENOMEM;
	for (uint64_t seq = self->answered + 1; seq <= self->sent; seq++)
		opens[seq % room] = self->opens[seq % self->room];
	free(self->opens);
	self->opens = opens;
	self->room = room;
	return 0;
}

/* A message begins to wait for its answer. */
static void channel_begin(struct board_channel *self, enum engine_msg_type type,
			  const void *payload)
{
	uint64_t now = sim_now();

	if (self->broken || self->closed)
		return; /* nobody asks for its time */
	if (channel_room(self) < 0) {
		channel_break(self, "cannot be followed: out of memory");
		return;
	}
	if (self->answered == self->sent)
		self->progress_ns = now;
	if (self->due_ns < now)
		self->due_ns = now;
	self->due_ns += channel_cost(type, payload);
	self->opens[(self->sent + 1) % self->room] = (struct board_channel_open){
		.sent_ns = now, .due_ns = self->due_ns,
	};
}

static uint64_t channel_give(struct board_channel *self, enum engine_msg_type type,
			     const void *payload, size_t bytes, const int *fds, unsigned int nfds,
			     struct board_memory *memory)
{
	struct engine_msg head = {
		.magic = ENGINE_PROTO_MAGIC,
		.type = (uint16_t)type,
		.nfds = (uint16_t)nfds,
		.seq = self->sent + 1,
		.bytes = (uint32_t)bytes,
	};
	int r = -EAGAIN;

	channel_begin(self, type, payload);
	self->sent++;
	if (self->broken || self->closed)
		return head.seq;
	if (!self->first)
		r = channel_write(self, &head, payload, fds, nfds);
	/* Lent fds belong to an engine's first message, which an empty socket takes. */
	if (r == -EAGAIN && (!nfds || memory))
		r = channel_enqueue(self, &head, payload, memory);
	if (r == -EPIPE || r == -ECONNRESET)
		self->closed = true;
	else if (r < 0)
		channel_break(self, "does not read its messages");
	return head.seq;
}

uint64_t board_channel_send(struct board_channel *self, enum engine_msg_type type,
			    const void *payload, size_t bytes, const int *fds, unsigned int nfds)
{
	return channel_give(self, type, payload, bytes, fds, nfds, NULL);
}

uint64_t board_channel_send_memory(struct board_channel *self, enum engine_msg_type type,
				   const void *payload, size_t bytes, struct board_memory *memory)
{
	return channel_give(self, type, payload, bytes, memory ? &memory->fd : NULL, memory ? 1 : 0,
			    memory);
}

static void channel_answer(struct board_channel *self, const struct engine_ack *ack)
{
	if (ack->seq != self->answered + 1 || ack->seq > self->sent || ack->status > 0) {
		channel_break(self, "answers what it was not asked");
		return;
	}
	self->answered = ack->seq;
	self->progress_ns = sim_now();
	self->ops->answer(self, ack);
}

/* One message that came, its length being right for its type. */
static void channel_message(struct board_channel *self, const struct engine_msg *head,
			    const void *payload)
{
	struct engine_ack ack = { .seq = 1 };

	switch (head->type) {
	case ENGINE_READY:
		channel_answer(self, &ack);
		break;
	case ENGINE_ACK:
		memcpy(&ack, payload, sizeof(ack));
		ack.text[sizeof(ack.text) - 1] = 0;
		if (ack.status < CHANNEL_STATUS_MIN)
			ack.status = CHANNEL_STATUS_MIN;
		channel_answer(self, &ack);
		break;
	case ENGINE_FUNCS:
		self->ops->funcs(self, payload);
		break;
	case ENGINE_FAULT:
		self->ops->fault(self, payload);
		break;
	}
}

static size_t channel_payload(unsigned int type)
{
	switch (type) {
	case ENGINE_READY:
		return sizeof(struct engine_ready);
	case ENGINE_ACK:
		return sizeof(struct engine_ack);
	case ENGINE_FUNCS:
		return sizeof(struct engine_funcs);
	case ENGINE_FAULT:
		return sizeof(struct engine_fault_msg);
	default:
		return SIZE_MAX;
	}
}

static bool channel_drop_fds(struct board_channel *self, struct msghdr *msg)
{
	bool any = msg->msg_flags & MSG_CTRUNC;

	for (struct cmsghdr *cmsg = CMSG_FIRSTHDR(msg); cmsg; cmsg = CMSG_NXTHDR(msg, cmsg)) {
		size_t n = 0;

		if (cmsg->cmsg_level == SOL_SOCKET && cmsg->cmsg_type == SCM_RIGHTS)
			n = (cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(cmsg) + i * sizeof(int), sizeof(fd));
			board_release_close(self->release, fd);
			any = true;
		}
	}
	return any;
}

/* True: there may be more. */
static bool channel_receive(struct board_channel *self)
{
	static _Alignas(16) char packet[ENGINE_MSG_MAX];
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int) * 16)];
	} control;
	struct iovec iov = { .iov_base = packet, .iov_len = sizeof(packet) };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	const struct engine_msg *head = (const struct engine_msg *)packet;
	ssize_t n = recvmsg(self->source.fd, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n <= 0) {
		self->closed = true;
		return false;
	}
	if (channel_drop_fds(self, &msg)) {
		channel_break(self, "sent file descriptors");
	} else if ((msg.msg_flags & MSG_TRUNC) || (size_t)n < sizeof(*head) ||
		   head->magic != ENGINE_PROTO_MAGIC ||
		   channel_payload(head->type) != (size_t)n - sizeof(*head) ||
		   head->bytes != (size_t)n - sizeof(*head)) {
		channel_break(self, "sent a malformed message");
	} else {
		channel_message(self, head, head + 1);
	}
	return !self->broken;
}

static void channel_ready(struct board_source *source, uint32_t events)
{
	struct board_channel *self = sim_container(source, struct board_channel, source);

	if (events & EPOLLOUT)
		channel_flush(self);
	if (!(events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
		return;
	for (int i = 0; i < CHANNEL_A_TURN && !self->broken && !self->closed; i++) {
		uint64_t now = sim_now();

		if (now - self->window_ns >= CHANNEL_WINDOW) {
			self->window_ns = now;
			self->used = 0;
		}
		if (self->used++ >= CHANNEL_BUDGET) {
			self->closed |= (events & EPOLLHUP) != 0;
			self->throttled = true;
			break;
		}
		if (!channel_receive(self))
			break;
	}
	/* A hang-up would wake the loop for ever. */
	if (self->broken || self->closed)
		board_loop_delete(self->loop, &self->source);
	else if (self->throttled)
		board_loop_modify(self->loop, &self->source, self->first ? EPOLLOUT : 0);
}

void board_channel_drain(struct board_channel *self)
{
	if (self->source.fd < 0)
		return;
	for (unsigned int i = 0; i < CHANNEL_BUDGET && !self->broken && !self->closed; i++) {
		if (!channel_receive(self))
			break;
	}
}

int board_channel_open(struct board_channel *self, struct board_loop *loop,
		       struct board_release *release, int fd, const struct board_channel_ops *ops)
{
	*self = (struct board_channel){
		.source = { .fd = fd, .ready = channel_ready },
		.loop = loop,
		.release = release,
		.ops = ops,
	};
	self->last = &self->first;
	return board_loop_add(loop, &self->source, EPOLLIN);
}

void board_channel_close(struct board_channel *self)
{
	if (self->source.fd < 0)
		return;
	board_loop_delete(self->loop, &self->source);
	close(self->source.fd);
	self->source.fd = -1;
	self->closed = true;
	while (self->first)
		packet_free(channel_pop(self));
	free(self->opens);
	self->opens = NULL;
	self->room = 0;
}

uint64_t board_channel_deadline(const struct board_channel *self, uint64_t limit_ns)
{
	const struct board_channel_open *oldest;
	uint64_t latest = self->progress_ns;

	if (self->closed || self->broken || self->answered == self->sent)
		return UINT64_MAX;
	oldest = &self->opens[(self->answered + 1) % self->room];
	if (oldest->due_ns < latest)
		latest = oldest->due_ns;
	if (oldest->sent_ns + BOARD_CHANNEL_AGE < latest)
		latest = oldest->sent_ns + BOARD_CHANNEL_AGE;
	return latest + limit_ns;
}

uint64_t board_channel_resume_ns(const struct board_channel *self)
{
	return self->throttled && !self->closed ? self->window_ns + CHANNEL_WINDOW : UINT64_MAX;
}

void board_channel_resume(struct board_channel *self)
{
	self->throttled = false;
	if (!self->broken && !self->closed)
		board_loop_modify(self->loop, &self->source,
				  EPOLLIN | (self->first ? EPOLLOUT : 0));
}
