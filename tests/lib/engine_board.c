/* SPDX-License-Identifier: Apache-2.0 */
/* A board with one engine: see engine_board.h. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "sim/engine.h"
#include "sim/engine_data.h"
#include "sim/sandbox.h"
#include "tests/lib/engine_board.h"

#define SLAB_ADDRESS NPU_WINDOW_BASE

static void die(const char *what)
{
	fprintf(stderr, "engine_board: %s: %s\n", what, strerror(errno));
	abort();
}

static void send_msg(struct engine_board *b, uint16_t type, const void *payload, size_t size,
		     const int *fds, size_t nfds)
{
	struct engine_msg msg = {
		.magic = ENGINE_PROTO_MAGIC, .type = type, .nfds = nfds, .seq = ++b->seq,
		.bytes = size,
	};
	struct iovec iov[] = { { &msg, sizeof(msg) }, { (void *)payload, size } };
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(4 * sizeof(int))];
	} cmsg = { 0 };
	struct msghdr hdr = { .msg_iov = iov, .msg_iovlen = 2 };

	if (nfds) {
		struct cmsghdr *c;

		hdr.msg_control = &cmsg;
		hdr.msg_controllen = CMSG_SPACE(nfds * sizeof(int));
		c = CMSG_FIRSTHDR(&hdr);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(nfds * sizeof(int));
		memcpy(CMSG_DATA(c), fds, nfds * sizeof(int));
	}
	if (sendmsg(b->control, &hdr, MSG_NOSIGNAL) < 0)
		die("send to the engine");
}

/* One message from the engine; 0 when it is gone. */
static uint16_t receive(struct engine_board *b, struct engine_ack *ret_ack)
{
	struct pollfd pfd = { .fd = b->control, .events = POLLIN };
	static _Alignas(8) char buffer[ENGINE_MSG_MAX];
	struct engine_msg *msg = (void *)buffer;
	void *payload = msg + 1;
	ssize_t n;

	if (poll(&pfd, 1, 5000) != 1)
		die("no message from the engine");
	n = recv(b->control, buffer, sizeof(buffer), 0);
	if (n <= 0)
		return 0;
	if (n < (ssize_t)sizeof(*msg) || msg->magic != ENGINE_PROTO_MAGIC ||
	    msg->bytes != n - sizeof(*msg))
		die("malformed message");
	if (msg->type == ENGINE_ACK)
		memcpy(ret_ack, payload, sizeof(*ret_ack));
	if (msg->type == ENGINE_FUNCS)
		memcpy(&b->funcs, payload, sizeof(b->funcs));
	if (msg->type == ENGINE_FAULT) {
		memcpy(&b->fault, payload, sizeof(b->fault));
		b->faults++;
	}
	return msg->type;
}

void engine_board_spawn(struct engine_board *b)
{
	struct engine_setup setup = {
		.slab_address = SLAB_ADDRESS, .slab_size = NPU_SLAB_SIZE,
		.state_size = sizeof(struct engine_state), .cores = b->cores,
		.replaced = b->replaced++, .stack_size = 1 << 20,
		.default_timeout_us = 60000000, .spin_us = 50,
	};
	struct sandbox_limits limits = {
		.data = 1ull << 30, .nofile = 64, .uid = 65534, .gid = 65534,
	};
	int fds[] = { b->slab_fd, b->doorbell, b->completion, -1 }, pair[2];
	struct engine_ack ack;
	uint32_t layers;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		die("socketpair");
	if (b->state)
		munmap(b->state, sizeof(*b->state));
	b->state_fd = memfd_create("state", MFD_CLOEXEC);
	if (b->state_fd < 0 || ftruncate(b->state_fd, sizeof(*b->state)) < 0)
		die("state page");
	b->state = mmap(NULL, sizeof(*b->state), PROT_READ | PROT_WRITE, MAP_SHARED, b->state_fd, 0);
	if (b->state == MAP_FAILED)
		die("map the state page");
	fds[3] = b->state_fd;
	b->pid = fork();
	if (b->pid < 0)
		die("fork");
	if (!b->pid) {
		close(pair[0]);
		if (sandbox_prepare() < 0 || sandbox_enter(pair[1], &limits, &layers) < 0)
			_exit(77);
		_exit(engine_main(3, NULL));
	}
	close(pair[1]);
	b->control = pair[0];
	send_msg(b, ENGINE_SETUP, &setup, sizeof(setup), fds, 4);
	close(b->state_fd);
	if (receive(b, &ack) != ENGINE_READY)
		die("the engine did not get ready");
}

void engine_board_start(struct engine_board *b, uint32_t cores)
{
	memset(b, 0, sizeof(*b));
	b->cores = cores;
	b->slab_fd = memfd_create("slab", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	b->doorbell = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	b->completion = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (b->slab_fd < 0 || b->doorbell < 0 || b->completion < 0 ||
	    ftruncate(b->slab_fd, NPU_SLAB_SIZE) < 0)
		die("slab");
	b->slab = mmap(NULL, NPU_SLAB_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, b->slab_fd, 0);
	if (b->slab == MAP_FAILED)
		die("map the slab");
	b->header = (void *)b->slab;
	b->header->magic = NPU_QUEUE_MAGIC;
	b->header->major = NPU_QUEUE_MAJOR;
	b->header->slab_address = SLAB_ADDRESS;
	engine_board_spawn(b);
}

void engine_board_stop(struct engine_board *b)
{
	close(b->control);
	kill(b->pid, SIGKILL);
	waitpid(b->pid, NULL, 0);
	munmap(b->slab, NPU_SLAB_SIZE);
	munmap(b->state, sizeof(*b->state));
	close(b->slab_fd);
	close(b->doorbell);
	close(b->completion);
}

int engine_board_call(struct engine_board *b, uint16_t type, const void *payload, size_t size, int fd,
		      struct engine_ack *ret_ack)
{
	struct engine_ack ack = { 0 };
	uint16_t t;

	send_msg(b, type, payload, size, &fd, fd >= 0);
	do {
		t = receive(b, &ack);
		if (!t)
			die("the engine is gone");
	} while (t != ENGINE_ACK || ack.seq != b->seq);
	if (ret_ack)
		*ret_ack = ack;
	return ack.status;
}

int engine_board_begin(struct engine_board *b, const struct engine_start *start)
{
	struct engine_start none = { 0 };

	return engine_board_call(b, ENGINE_START, start ? start : &none, sizeof(none), -1, NULL);
}

int engine_board_queue(struct engine_board *b, uint32_t slot, uint32_t fail_mode, uint32_t epoch)
{
	struct npu_ring_ctrl *ring = engine_board_ring(b, slot);
	struct engine_queue q = {
		.slot = slot, .queue = slot + 1, .ctx = 1, .active = 1, .priority = 4,
		.fail_mode = fail_mode, .epoch = epoch, .window = 8,
	};

	if (!ring->tail) {
		ring->armed = 1;
		ring->want = ~0ull;
	}
	return engine_board_call(b, ENGINE_QUEUE, &q, sizeof(q), -1, NULL);
}

int engine_board_map(struct engine_board *b, uint64_t address, int fd, uint64_t bytes)
{
	struct engine_map m = { .address = address, .bytes = bytes, .generation = ++b->generation };

	return engine_board_call(b, fd >= 0 ? ENGINE_MAP : ENGINE_UNMAP, &m, sizeof(m), fd, NULL);
}

int engine_board_module(struct engine_board *b, uint32_t id, const char *path)
{
	struct engine_module m = { .module = id };
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC), r;

	if (fd < 0 || fstat(fd, &st) < 0)
		die(path);
	m.bytes = st.st_size;
	r = engine_board_call(b, ENGINE_MODULE, &m, sizeof(m), fd, NULL);
	close(fd);
	return r;
}

void engine_board_await_fault(struct engine_board *b)
{
	unsigned before = b->faults;
	struct engine_ack ack;

	while (b->faults == before) {
		if (!receive(b, &ack))
			die("the engine is gone without a fault");
	}
}

struct npu_ring_ctrl *engine_board_ring(struct engine_board *b, uint32_t slot)
{
	return (struct npu_ring_ctrl *)(b->slab + NPU_SLAB_RINGS) + slot;
}

static char *data(struct engine_board *b, uint32_t slot)
{
	return b->slab + NPU_SLAB_DATA + (size_t)slot * NPU_RING_BYTES;
}

uint8_t *engine_board_args(struct engine_board *b, uint32_t slot)
{
	return (uint8_t *)data(b, slot) + NPU_RING_ENTRIES * NPU_ENTRY_SIZE;
}

void engine_board_room(struct engine_board *b, uint32_t slot)
{
	struct npu_ring_ctrl *ring = engine_board_ring(b, slot);

	while (ring->tail - __atomic_load_n(&ring->done, __ATOMIC_ACQUIRE) >= NPU_RING_ENTRIES)
		engine_board_wait(b, slot, ring->tail - NPU_RING_ENTRIES / 2, 10000);
}

void engine_board_submit(struct engine_board *b, uint32_t slot, const struct npu_entry *entry)
{
	struct npu_ring_ctrl *ring = engine_board_ring(b, slot);
	uint64_t tail = ring->tail, one = 1;

	engine_board_room(b, slot);
	((struct npu_entry *)data(b, slot))[tail % NPU_RING_ENTRIES] = *entry;
	__atomic_store_n(&ring->tail, tail + 1, __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (!__atomic_load_n(&ring->armed, __ATOMIC_RELAXED))
		return;
	__atomic_store_n(&ring->armed, 0, __ATOMIC_RELAXED);
	__atomic_fetch_or(&b->header->pending[slot / 64], 1ull << (slot % 64), __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&b->header->device_sleeping, __ATOMIC_SEQ_CST) &&
	    __atomic_exchange_n(&b->header->device_sleeping, 0, __ATOMIC_SEQ_CST))
		if (write(b->doorbell, &one, sizeof(one)) < 0)
			die("doorbell");
}

int engine_board_wait(struct engine_board *b, uint32_t slot, uint64_t done, unsigned ms)
{
	struct npu_ring_ctrl *ring = engine_board_ring(b, slot);
	uint64_t limit = engine_now_ns() + ms * 1000000ull, count;
	struct pollfd pfd = { .fd = b->completion, .events = POLLIN };

	for (unsigned look = 0; look < 2000; look++) {
		if (__atomic_load_n(&ring->done, __ATOMIC_ACQUIRE) >= done)
			return 0;
		engine_pause();
	}
	for (;;) {
		uint64_t now = engine_now_ns();

		__atomic_store_n(&ring->want, done, __ATOMIC_RELAXED);
		__atomic_store_n(&b->header->client_waiting, 1, __ATOMIC_SEQ_CST);
		if (__atomic_load_n(&ring->done, __ATOMIC_SEQ_CST) >= done)
			return 0;
		if (now >= limit)
			return -ETIMEDOUT;
		if (poll(&pfd, 1, (limit - now) / 1000000 + 1) == 1 && read(b->completion, &count, 8) < 0)
			die("completion");
	}
}

void engine_board_sync(struct engine_board *b, uint32_t slot)
{
	struct npu_ring_ctrl *ring = engine_board_ring(b, slot);

	if (engine_board_wait(b, slot, ring->tail, 10000) < 0) {
		fprintf(stderr, "queue %u: done %llu of %llu, head %llu\n", slot,
			(unsigned long long)ring->done, (unsigned long long)ring->tail,
			(unsigned long long)ring->head);
		die("no completion");
	}
}
