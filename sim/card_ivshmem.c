/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server of QEMU's ivshmem-doorbell device. The handshake goes out in one go, since QEMU waits
 * for it with the whole machine standing still: version, the guest's id, the memory of BAR2, the
 * board's eventfds, the guest's eventfds. One machine at a time: the next connection stays in the
 * backlog until the last one has hung up, and gets new eventfds and an id that was never used.
 * QEMU makes the eventfds that it gets non-blocking, and so does the board.
 */
#include "sim/card.h"

#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "sim/sim_fd.h"

#define IVSHMEM_VERSION 0
#define IVSHMEM_SHM (-1)
#define IVSHMEM_IDS 65535u

static void ivshmem_hang_up(struct card *card)
{
	struct card_ivshmem *self = &card->ivshmem;
	struct board_loop *loop = card->board->loop;

	if (self->peer.fd >= 0) {
		board_loop_delete(loop, &self->peer);
		sim_fd_close(&self->peer.fd);
	}
	for (unsigned int i = 0; i < NPU_HW_VECTORS; i++) {
		if (self->bells[i].source.fd >= 0) {
			board_loop_delete(loop, &self->bells[i].source);
			sim_fd_close(&self->bells[i].source.fd);
		}
		sim_fd_close(&self->irqs[i]);
	}
}

/* One message, with an fd unless that is -1. The socket takes all of a handshake. */
static int ivshmem_send(int socket, int64_t value, int fd)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int))];
	} control;
	int64_t word = (int64_t)htole64((uint64_t)value);
	struct iovec iov = { .iov_base = &word, .iov_len = sizeof(word) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n;

	if (fd >= 0) {
		struct cmsghdr *cmsg;

		memset(&control, 0, sizeof(control));
		msg.msg_control = &control;
		msg.msg_controllen = sizeof(control.space);
		cmsg = CMSG_FIRSTHDR(&msg);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(cmsg), &fd, sizeof(int));
	}
	do {
		n = sendmsg(socket, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	return n == sizeof(word) ? 0 : -EPIPE;
}

static int ivshmem_handshake(struct card *card, int64_t guest)
{
	struct card_ivshmem *self = &card->ivshmem;
	int socket = self->peer.fd, r;

	r = ivshmem_send(socket, IVSHMEM_VERSION, -1);
	if (r == 0)
		r = ivshmem_send(socket, guest, -1);
	if (r == 0)
		r = ivshmem_send(socket, IVSHMEM_SHM, card->bar_fd);
	for (unsigned int i = 0; i < NPU_HW_VECTORS && r == 0; i++)
		r = ivshmem_send(socket, CARD_PEER, self->bells[i].source.fd);
	for (unsigned int i = 0; i < NPU_HW_VECTORS && r == 0; i++)
		r = ivshmem_send(socket, guest, self->irqs[i]);
	return r;
}

/* A machine rings: the counter is only a hint, the registers say what there is. */
static void ivshmem_bell(struct board_source *source, uint32_t events)
{
	struct card_bell *bell = sim_container(source, struct card_bell, source);
	eventfd_t value;

	(void)events;
	if (eventfd_read(source->fd, &value) < 0)
		return;
	if (bell->vector == NPU_HW_RING_ADMIN)
		card_regs_mailbox(bell->card);
	else if (bell->vector == NPU_HW_RING_QUEUES)
		card_fetch_bell(bell->card);
}

/* QEMU sends nothing: whatever is readable is its end. */
static void ivshmem_peer(struct board_source *source, uint32_t events)
{
	struct card *card = sim_container(source, struct card, ivshmem.peer);
	char buffer[64];
	ssize_t n;

	if (!(events & (EPOLLHUP | EPOLLERR))) {
		n = recv(source->fd, buffer, sizeof(buffer), MSG_DONTWAIT);
		if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
			return;
	}
	sim_log(SIM_LOG_NOTICE, "the machine has let go of the card");
	ivshmem_hang_up(card);
	card_regs_reset(card);
	board_loop_modify(card->board->loop, &card->ivshmem.listen, EPOLLIN);
}

static int ivshmem_eventfds(struct card *card)
{
	struct card_ivshmem *self = &card->ivshmem;
	int r = 0;

	for (unsigned int i = 0; i < NPU_HW_VECTORS && r == 0; i++) {
		self->bells[i].source.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		self->irqs[i] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		if (self->bells[i].source.fd < 0 || self->irqs[i] < 0)
			return -errno;
		r = board_loop_add(card->board->loop, &self->bells[i].source, EPOLLIN);
	}
	return r;
}

static bool ivshmem_allowed(struct card *card, int fd)
{
	struct ucred peer = { 0 };
	socklen_t len = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
		return false;
	if (peer.uid == 0 || peer.uid == geteuid() || peer.uid == card->board->options.owner)
		return true;
	sim_log(SIM_LOG_WARNING, "user %u (process %d) may not have the card; see --owner",
		peer.uid, (int)peer.pid);
	return false;
}

static void ivshmem_listen(struct board_source *source, uint32_t events)
{
	struct card *card = sim_container(source, struct card, ivshmem.listen);
	struct card_ivshmem *self = &card->ivshmem;
	int fd = accept4(source->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK), r;
	int64_t guest;

	(void)events;
	if (fd < 0)
		return;
	if (!ivshmem_allowed(card, fd)) {
		close(fd);
		return;
	}
	guest = 1 + (int64_t)(self->guests++ % IVSHMEM_IDS);
	self->peer.fd = fd;
	card_dma_forget(card);
	r = ivshmem_eventfds(card);
	if (r == 0)
		r = ivshmem_handshake(card, guest);
	if (r == 0)
		r = board_loop_add(card->board->loop, &self->peer, EPOLLIN | EPOLLRDHUP);
	if (r < 0) {
		sim_log(SIM_LOG_ERROR, "cannot serve the machine: %s", strerror(-r));
		close(sim_fd_steal(&self->peer.fd));
		ivshmem_hang_up(card);
		return;
	}
	board_loop_modify(card->board->loop, &self->listen, 0);
	sim_log(SIM_LOG_NOTICE, "a machine has the card, as peer %lld", (long long)guest);
}

void card_interrupt(struct card *card, unsigned int vector)
{
	/* Full: then it is raised already. */
	if (card->ivshmem.irqs[vector] >= 0)
		eventfd_write(card->ivshmem.irqs[vector], 1);
}

int card_ivshmem_new(struct card *card, int listen_fd)
{
	struct card_ivshmem *self = &card->ivshmem;
	int r;

	self->listen.fd = listen_fd;
	self->listen.ready = ivshmem_listen;
	self->peer.ready = ivshmem_peer;
	for (unsigned int i = 0; i < NPU_HW_VECTORS; i++) {
		self->bells[i].source.ready = ivshmem_bell;
		self->bells[i].card = card;
		self->bells[i].vector = i;
	}
	r = board_loop_add(card->board->loop, &self->listen, EPOLLIN);
	if (r < 0)
		self->listen.fd = -1;
	return r;
}

void card_ivshmem_free(struct card *card)
{
	struct card_ivshmem *self = &card->ivshmem;

	ivshmem_hang_up(card);
	if (self->listen.fd >= 0) {
		board_loop_delete(card->board->loop, &self->listen);
		sim_fd_close(&self->listen.fd);
	}
}
