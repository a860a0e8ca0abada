/* SPDX-License-Identifier: Apache-2.0 */
/* One thread, blocking in poll() on the socket and an eventfd that ends it. */
#include "tests/lib/fake_board.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

struct fake_board {
	struct fake_config config;
	char path[108];
	int listener, fd, stop_fd;
	_Atomic unsigned int connections, orphans;
	_Atomic bool hang_up;
	pthread_t thread;
	_Alignas(8) char packet[NPU_MSG_MAX];
};

#define must(condition) ((condition) ? (void)0 : (perror("fake board: " #condition), abort()))

static void reply(struct fake_board *board, struct fake_call *call)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(call->fds))];
	} control = { 0 };
	struct npu_msg head = *call->head;
	struct iovec iov[2];
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };

	head.type = NPU_MSG_REPLY;
	head.result = call->result;
	if (call->reply.magic)
		head = call->reply;
	iov[0] = (struct iovec){ &head, sizeof(head) };
	iov[1] = (struct iovec){ call->arg, call->head->bytes - call->cut };
	if (call->nfds) {
		struct cmsghdr *cmsg;

		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * call->nfds);
		cmsg = CMSG_FIRSTHDR(&msg);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(sizeof(int) * call->nfds);
		memcpy(CMSG_DATA(cmsg), call->fds, sizeof(int) * call->nfds);
	}
	sendmsg(board->fd, &msg, MSG_NOSIGNAL);
}

void fake_board_event(struct fake_board *board, const struct npu_event *event)
{
	struct npu_msg head = { .magic = NPU_MSG_MAGIC,
				.type = NPU_MSG_EVENT,
				.bytes = sizeof(*event) };
	struct iovec iov[2] = { { &head, sizeof(head) }, { (void *)event, sizeof(*event) } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };

	must(sendmsg(board->fd, &msg, MSG_NOSIGNAL) > 0);
}

void fake_board_obey(struct fake_call *call)
{
	static uint32_t last_id;
	static int some_fd = -1;
	uint32_t id = ++last_id % 1023 + 1;

	if (some_fd < 0)
		must((some_fd = eventfd(0, EFD_CLOEXEC)) >= 0);
	if (call->head->nr == _IOC_NR(NPU_IOCTL_SESSION_CREATE)) {
		struct npu_session_create *create = call->arg;
		__s32 *slots = &create->fd_slab;

		create->session = last_id;
		for (int i = 0; i < 4; i++) {
			call->fds[i] = some_fd;
			slots[i] = i;
		}
		call->nfds = 4;
	} else if (call->head->nr == _IOC_NR(NPU_IOCTL_MEM_ALLOC)) {
		struct npu_mem_alloc *alloc = call->arg;

		alloc->mem = last_id;
		alloc->page = NPU_PAGE_SMALL;
		alloc->bytes = (alloc->bytes + NPU_PAGE_SMALL - 1) & ~(NPU_PAGE_SMALL - 1);
	} else if (call->head->nr == _IOC_NR(NPU_IOCTL_CTX_CREATE)) {
		((struct npu_ctx_create *)call->arg)->ctx = id;
	} else if (call->head->nr == _IOC_NR(NPU_IOCTL_MODULE_LOAD)) {
		((struct npu_module_load *)call->arg)->module = last_id;
	}
}

static void answer(struct fake_board *board)
{
	struct fake_call call = { .head = (struct npu_msg *)board->packet,
				  .arg = board->packet + sizeof(struct npu_msg) };
	struct npu_version *version = call.arg;
	struct npu_query *query = call.arg;
	struct npu_obj_enum *list = call.arg;

	switch (call.head->nr) {
	case _IOC_NR(NPU_IOCTL_VERSION):
		version->major = board->config.major;
		version->minor = 9;
		version->queue_major = NPU_QUEUE_MAJOR;
		version->kind = NPU_KIND_SIM;
		strcpy(version->name, "fake board 1");
		if (board->config.major != NPU_UAPI_MAJOR)
			call.result = -71; /* EPROTO */
		break;
	case _IOC_NR(NPU_IOCTL_QUERY):
		strcpy(query->name, "fake");
		query->cores = 3;
		query->memory_total = query->memory_free = 1u << 30;
		break;
	case _IOC_NR(NPU_IOCTL_OBJ_ENUM):
		list->count = atomic_load(&board->orphans);
		for (unsigned int i = 0; i < list->count; i++) {
			list->objects[i].type = NPU_OBJ_SESSION;
			list->objects[i].session = list->objects[i].id = 100 + i;
		}
		break;
	default:
		if (call.head->nr == _IOC_NR(NPU_IOCTL_SESSION_DESTROY) &&
		    atomic_load(&board->orphans))
			atomic_fetch_sub(&board->orphans, 1);
		else if (board->config.call)
			board->config.call(board, &call, board->config.arg);
	}
	if (!call.silent)
		reply(board, &call);
}

/* True when the thread has to end. */
static bool serve(struct fake_board *board)
{
	for (;;) {
		struct pollfd pfd[2] = { { .fd = board->fd, .events = POLLIN },
					 { .fd = board->stop_fd, .events = POLLIN } };
		uint64_t count;
		ssize_t n;

		must(poll(pfd, 2, -1) > 0);
		if (pfd[1].revents) {
			must(read(board->stop_fd, &count, sizeof(count)) > 0);
			return !atomic_exchange(&board->hang_up, false);
		}
		n = recv(board->fd, board->packet, sizeof(board->packet), 0);
		if (n <= 0)
			return false;
		must((size_t)n >= sizeof(struct npu_msg));
		answer(board);
	}
}

static void *run(void *arg)
{
	struct fake_board *board = arg;
	bool end = false;

	while (!end) {
		struct pollfd pfd[2] = { { .fd = board->listener, .events = POLLIN },
					 { .fd = board->stop_fd, .events = POLLIN } };

		must(poll(pfd, 2, -1) > 0);
		if (pfd[1].revents)
			break;
		board->fd = accept4(board->listener, NULL, NULL, SOCK_CLOEXEC);
		must(board->fd >= 0);
		atomic_fetch_add(&board->connections, 1);
		end = serve(board);
		close(board->fd);
		board->fd = -1;
	}
	return NULL;
}

struct fake_board *fake_board_start(const char *dir, const struct fake_config *config)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct fake_board *board = calloc(1, sizeof(*board));

	must(board);
	board->config = *config;
	board->orphans = config->orphans;
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/npu-sim-0.sock", dir);
	strcpy(board->path, address.sun_path);
	board->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	must(bind(board->listener, (struct sockaddr *)&address, sizeof(address)) == 0);
	must(listen(board->listener, 4) == 0);
	board->stop_fd = eventfd(0, EFD_CLOEXEC);
	must(pthread_create(&board->thread, NULL, run, board) == 0);
	return board;
}

static void signal_thread(struct fake_board *board)
{
	uint64_t one = 1;

	must(write(board->stop_fd, &one, sizeof(one)) == sizeof(one));
}

void fake_board_hang_up(struct fake_board *board)
{
	atomic_store(&board->hang_up, true);
	signal_thread(board);
}

void fake_board_stop(struct fake_board *board)
{
	signal_thread(board);
	pthread_join(board->thread, NULL);
	close(board->listener);
	close(board->stop_fd);
	unlink(board->path);
	free(board);
}

unsigned int fake_board_connections(struct fake_board *board)
{
	return atomic_load(&board->connections);
}

unsigned int fake_board_orphans(struct fake_board *board)
{
	return atomic_load(&board->orphans);
}
