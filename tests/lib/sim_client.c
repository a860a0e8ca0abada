/* SPDX-License-Identifier: Apache-2.0 */
/* The client's side of the device interface, for tests. */
#include "tests/lib/sim_client.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/npud_fixture.h"

#define BOARD_ARGS 32

/* ---- the process --------------------------------------------------------------------------- */

static void board_exec(struct sim_board *board, const char *const more[])
{
	const char *argv[BOARD_ARGS] = { "npu-sim", "--socket", board->socket };
	int argc = 3, log = open(board->log, O_WRONLY | O_CREAT | O_APPEND, 0600);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (*more && argc < BOARD_ARGS - 1)
		argv[argc++] = *more++;
	dup2(log, STDERR_FILENO);
	execv(NPU_BUILD_DIR "/npu-sim", (char *const *)argv);
	perror(NPU_BUILD_DIR "/npu-sim");
	_exit(127);
}

static bool board_listens(void *arg)
{
	struct sim_board *board = arg;
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd, r;

	ck_assert_msg(waitpid(board->pid, NULL, WNOHANG) == 0, "npu-sim ended; see %s", board->log);
	strcpy(address.sun_path, board->socket);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	r = connect(fd, (struct sockaddr *)&address, sizeof(address));
	close(fd);
	return r == 0;
}

void sim_board_start(struct sim_board *board, const char *const more[])
{
	static const char *const none[] = { NULL };

	strcpy(board->dir, "/tmp/npu-test-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(board->dir));
	snprintf(board->socket, sizeof(board->socket), "%s/sim.sock", board->dir);
	snprintf(board->log, sizeof(board->log), "%s/sim.log", board->dir);
	board->pid = fork();
	if (!board->pid)
		board_exec(board, more ? more : none);
	ck_assert_int_gt(board->pid, 0);
	ck_assert(wait_until(board_listens, board, SIM_WAIT_MS));
}

int sim_board_stop(struct sim_board *board)
{
	char *log;
	int status;

	kill(board->pid, SIGTERM);
	status = wait_for(board->pid, SIM_WAIT_MS);
	log = read_file(board->log);
	if (status && log)
		fputs(log, stderr);
	free(log);
	unlink(board->log);
	/* Nothing else is left of a board that ended as it should. */
	ck_assert_msg(rmdir(board->dir) == 0, "%s: %s", board->dir, strerror(errno));
	return status;
}

void sim_board_clear(struct sim_board *board)
{
	static const char *const names[] = {
		"sim.sock", "sim.sock.lock", "sim.log", "npu-sim-0.log",
	};

	for (unsigned int i = 0; i < 4; i++) {
		char path[128];

		snprintf(path, sizeof(path), "%s/%s", board->dir, names[i]);
		unlink(path);
	}
	rmdir(board->dir);
}

/* ---- calls --------------------------------------------------------------------------------- */

int sim_connect(const struct sim_board *board)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	ck_assert_int_ge(fd, 0);
	strcpy(address.sun_path, board->socket);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

void sim_client_open(struct sim_client *client, const struct sim_board *board)
{
	memset(client, 0, sizeof(*client));
	client->fd = sim_connect(board);
	client->slab_fd = client->doorbell = client->completion = client->life = -1;
}

static void client_session_forget(struct sim_client *client)
{
	int fds[] = { client->slab_fd, client->doorbell, client->completion, client->life };

	if (client->slab)
		munmap(client->slab, NPU_SLAB_SIZE);
	client->slab = NULL;
	for (unsigned int i = 0; i < 4; i++) {
		if (fds[i] >= 0)
			close(fds[i]);
	}
	client->slab_fd = client->doorbell = client->completion = client->life = -1;
	client->session = 0;
}

void sim_client_close(struct sim_client *client)
{
	client_session_forget(client);
	close(client->fd);
	client->fd = -1;
}

/* One packet and its fds; the length of the struct behind the head. */
static size_t client_receive(struct sim_client *client, struct npu_msg *head, void *data)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int) * 4)];
	} control;
	struct iovec iov[2] = {
		{ .iov_base = head, .iov_len = sizeof(*head) },
		{ .iov_base = data, .iov_len = NPU_CALL_MAX },
	};
	struct msghdr msg = {
		.msg_iov = iov,
		.msg_iovlen = 2,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	struct pollfd ready = { .fd = client->fd, .events = POLLIN };
	struct cmsghdr *cmsg;
	ssize_t n;

	ck_assert_msg(poll(&ready, 1, SIM_WAIT_MS) == 1, "no answer");
	n = recvmsg(client->fd, &msg, MSG_CMSG_CLOEXEC);
	ck_assert_msg(n >= (ssize_t)sizeof(*head), "connection lost");
	ck_assert_int_eq(msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC), 0);
	ck_assert_uint_eq(head->magic, NPU_MSG_MAGIC);
	ck_assert_uint_eq(head->bytes, (size_t)n - sizeof(*head));
	client->nfds = 0;
	cmsg = CMSG_FIRSTHDR(&msg);
	if (cmsg) {
		client->nfds = (unsigned int)((cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		memcpy(client->fds, CMSG_DATA(cmsg), client->nfds * sizeof(int));
	}
	return (size_t)n - sizeof(*head);
}

static void client_keep_event(struct sim_client *client, const void *data, size_t bytes)
{
	ck_assert_uint_eq(bytes, sizeof(struct npu_event));
	if (client->nevents == SIM_CLIENT_EVENTS)
		memmove(client->events, client->events + 1,
			--client->nevents * sizeof(client->events[0]));
	memcpy(&client->events[client->nevents++], data, bytes);
}

static bool call_mutates(unsigned int nr)
{
	static const unsigned char reads[] = {
		_IOC_NR(NPU_IOCTL_VERSION), _IOC_NR(NPU_IOCTL_DISCOVER), _IOC_NR(NPU_IOCTL_QUERY),
		_IOC_NR(NPU_IOCTL_COUNTERS), _IOC_NR(NPU_IOCTL_ERROR_QUERY),
		_IOC_NR(NPU_IOCTL_OBJ_ENUM), _IOC_NR(NPU_IOCTL_OBJ_FDS), _IOC_NR(NPU_IOCTL_OBJ_TAG),
		_IOC_NR(NPU_IOCTL_MEM_QUERY), _IOC_NR(NPU_IOCTL_SUBMIT), _IOC_NR(NPU_IOCTL_WAIT),
		_IOC_NR(NPU_IOCTL_FUNC_LOOKUP), _IOC_NR(NPU_IOCTL_RESET), _IOC_NR(NPU_IOCTL_INJECT),
	};

	return !memchr(reads, (int)nr, sizeof(reads));
}

int sim_client_call(struct sim_client *client, unsigned int nr, void *arg, size_t bytes)
{
	static _Alignas(16) char data[NPU_CALL_MAX];
	struct npu_head *head = arg;
	struct npu_msg msg = {
		.magic = NPU_MSG_MAGIC,
		.type = NPU_MSG_CALL,
		.nr = (__u16)nr,
		.id = ++client->id,
		.bytes = (__u32)bytes,
	};
	struct iovec iov[2] = {
		{ .iov_base = &msg, .iov_len = sizeof(msg) },
		{ .iov_base = arg, .iov_len = bytes },
	};
	struct msghdr out = { .msg_iov = iov, .msg_iovlen = 2 };
	size_t n;

	if (!head->size)
		head->size = (__u32)bytes;
	if (call_mutates(nr) && !head->call)
		head->call = ++client->call;
	ck_assert_int_eq(sendmsg(client->fd, &out, MSG_NOSIGNAL), (ssize_t)(sizeof(msg) + bytes));
	for (;;) {
		n = client_receive(client, &msg, data);
		if (msg.type != NPU_MSG_EVENT)
			break;
		client_keep_event(client, data, n);
	}
	ck_assert_uint_eq(msg.type, NPU_MSG_REPLY);
	ck_assert_uint_eq(msg.id, client->id);
	ck_assert_uint_eq(msg.nr, nr);
	ck_assert_uint_le(n, bytes);
	memcpy(arg, data, n);
	return msg.result;
}

struct npu_event sim_client_event(struct sim_client *client, enum npu_event_type type)
{
	static _Alignas(16) char data[NPU_CALL_MAX];
	struct npu_event event;
	struct npu_msg msg;

	for (;;) {
		if (!client->nevents) {
			size_t n = client_receive(client, &msg, data);

			ck_assert_uint_eq(msg.type, NPU_MSG_EVENT);
			client_keep_event(client, data, n);
		}
		event = client->events[0];
		memmove(client->events, client->events + 1,
			--client->nevents * sizeof(client->events[0]));
		if (event.type == (__u32)type)
			return event;
	}
}

/* ---- the usual calls ----------------------------------------------------------------------- */

void sim_client_session(struct sim_client *client)
{
	struct npu_session_create create = {
		.uid = getuid(),
		.gid = getgid(),
		.pid = (__u32)getpid(),
		.slab_address = SIM_SLAB_ADDRESS,
		.comm = "test",
	};
	void *map;

	ck_assert_int_eq(SIM_CALL(client, SESSION_CREATE, &create), 0);
	ck_assert_uint_eq(client->nfds, 4);
	client->session = create.session;
	client->slab_fd = client->fds[create.fd_slab];
	client->doorbell = client->fds[create.fd_doorbell];
	client->completion = client->fds[create.fd_completion];
	client->life = client->fds[create.fd_life];
	map = mmap(NULL, NPU_SLAB_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, client->slab_fd, 0);
	ck_assert_ptr_ne(map, MAP_FAILED);
	client->slab = map;
}

void sim_client_session_end(struct sim_client *client)
{
	struct npu_session_destroy destroy = { .head.session = client->session };
	uint64_t session = client->session;

	ck_assert_int_eq(SIM_CALL(client, SESSION_DESTROY, &destroy), 0);
	client_session_forget(client);
	while (sim_client_event(client, NPU_EVENT_SESSION).session != session)
		;
}

uint32_t sim_client_context(struct sim_client *client)
{
	struct npu_ctx_create create = { .head.session = client->session };

	ck_assert_int_eq(SIM_CALL(client, CTX_CREATE, &create), 0);
	return create.ctx;
}

uint32_t sim_client_queue(struct sim_client *client, uint32_t ctx, uint32_t *ret_slot)
{
	struct npu_queue_create create = { .head.session = client->session, .ctx = ctx };

	ck_assert_int_eq(SIM_CALL(client, QUEUE_CREATE, &create), 0);
	*ret_slot = create.slot;
	return create.queue;
}

uint64_t sim_client_memory(struct sim_client *client, uint32_t kind, uint64_t bytes, int *ret_fd)
{
	struct npu_mem_alloc alloc = {
		.head.session = client->session, .kind = kind, .bytes = bytes,
	};

	ck_assert_int_eq(SIM_CALL(client, MEM_ALLOC, &alloc), 0);
	ck_assert_uint_eq(client->nfds, alloc.fd >= 0);
	*ret_fd = alloc.fd < 0 ? -1 : client->fds[alloc.fd];
	return alloc.mem;
}

void sim_client_map(struct sim_client *client, uint64_t mem, uint64_t address, uint64_t bytes)
{
	struct npu_mem_map map = {
		.head.session = client->session, .mem = mem, .address = address, .bytes = bytes,
	};

	ck_assert_int_eq(SIM_CALL(client, MEM_MAP, &map), 0);
}

int sim_client_module(struct sim_client *client, const char *path, uint32_t *ret_module)
{
	int in = open(path, O_RDONLY | O_CLOEXEC), out;
	struct npu_module_load load = { .head.session = client->session };
	struct npu_event event;
	struct stat st;
	void *map;

	ck_assert_msg(in >= 0 && fstat(in, &st) == 0, "%s: %s", path, strerror(errno));
	load.bytes = (__u64)st.st_size;
	load.mem = sim_client_memory(client, NPU_MEM_IMAGE, load.bytes, &out);
	map = mmap(NULL, load.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, out, 0);
	ck_assert_ptr_ne(map, MAP_FAILED);
	ck_assert_int_eq(read(in, map, load.bytes), (ssize_t)load.bytes);
	munmap(map, load.bytes);
	close(in);
	close(out);
	ck_assert_int_eq(SIM_CALL(client, MODULE_LOAD, &load), 0);
	do {
		event = sim_client_event(client, NPU_EVENT_MODULE);
	} while (event.id != load.module);
	if (event.status)
		fprintf(stderr, "module: %s\n", event.module.error);
	*ret_module = load.module;
	return event.status;
}

uint32_t sim_client_function(struct sim_client *client, uint32_t module, const char *name)
{
	struct npu_func_lookup lookup = { .head.session = client->session, .module = module };

	snprintf(lookup.name, sizeof(lookup.name), "%s", name);
	ck_assert_int_eq(SIM_CALL(client, FUNC_LOOKUP, &lookup), 0);
	return lookup.func;
}

uint64_t sim_client_counter(struct sim_client *client, uint64_t session, enum npu_counter counter)
{
	struct npu_counters counters = { .head.session = session };

	ck_assert_int_eq(SIM_CALL(client, COUNTERS, &counters), 0);
	return counters.values[counter];
}

struct engine_wanted {
	struct sim_client *client;
	pid_t other, found;
};

static bool engine_runs(void *arg)
{
	struct engine_wanted *wanted = arg;

	wanted->found = (pid_t)sim_client_counter(wanted->client, wanted->client->session,
						  NPU_COUNTER_ENGINE_PID);
	return wanted->found && wanted->found != wanted->other;
}

pid_t sim_client_engine(struct sim_client *client, pid_t other)
{
	struct engine_wanted wanted = { .client = client, .other = other };

	ck_assert_msg(wait_until(engine_runs, &wanted, SIM_WAIT_MS), "no engine");
	return wanted.found;
}

/* ---- rings --------------------------------------------------------------------------------- */

static struct npu_slab_header *client_header(struct sim_client *client)
{
	return (struct npu_slab_header *)(client->slab + NPU_SLAB_HEADER);
}

struct npu_ring_ctrl *sim_client_ring(struct sim_client *client, uint32_t slot)
{
	return (struct npu_ring_ctrl *)(client->slab + NPU_SLAB_RINGS) + slot;
}

static char *client_ring_data(struct sim_client *client, uint32_t slot)
{
	return client->slab + NPU_SLAB_DATA + (size_t)slot * NPU_RING_BYTES;
}

void sim_client_submit(struct sim_client *client, uint32_t slot, const struct npu_entry *entry)
{
	struct npu_slab_header *header = client_header(client);
	struct npu_ring_ctrl *ring = sim_client_ring(client, slot);
	struct npu_entry *entries = (struct npu_entry *)client_ring_data(client, slot);
	uint64_t tail = ring->tail, one = 1;

	ck_assert_uint_lt(tail - __atomic_load_n(&ring->done, __ATOMIC_ACQUIRE), NPU_RING_ENTRIES);
	entries[tail % NPU_RING_ENTRIES] = *entry;
	__atomic_store_n(&ring->tail, tail + 1, __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (!__atomic_load_n(&ring->armed, __ATOMIC_RELAXED))
		return;
	__atomic_store_n(&ring->armed, 0, __ATOMIC_RELAXED);
	__atomic_fetch_or(&header->pending[slot / 64], 1ull << slot % 64, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&header->device_sleeping, __ATOMIC_SEQ_CST) &&
	    __atomic_exchange_n(&header->device_sleeping, 0, __ATOMIC_SEQ_CST))
		ck_assert_int_eq(write(client->doorbell, &one, sizeof(one)), sizeof(one));
}

void sim_client_launch(struct sim_client *client, uint32_t slot, uint32_t module, uint32_t func,
		       const void *args, uint32_t args_size, uint32_t timeout_us)
{
	struct npu_ring_ctrl *ring = sim_client_ring(client, slot);
	uint64_t at = ring->args_tail % NPU_RING_ARGS;
	char *space = client_ring_data(client, slot) + NPU_RING_ENTRIES * NPU_ENTRY_SIZE;
	struct npu_entry entry = {
		.op = NPU_OP_KERNEL,
		.epoch = (__u16)ring->epoch,
		.kernel = {
			.module = module,
			.func = func,
			.blocks = 1,
			.args_size = args_size,
			.timeout_us = timeout_us,
			.args_total = args_size,
		},
	};

	if (at + args_size > NPU_RING_ARGS)
		at = 0;
	memcpy(space + at, args, args_size);
	entry.kernel.args = at;
	ring->args_tail = at + (args_size + 63) / 64 * 64;
	sim_client_submit(client, slot, &entry);
}

bool sim_client_sync(struct sim_client *client, uint32_t slot, unsigned int ms)
{
	struct npu_ring_ctrl *ring = sim_client_ring(client, slot);
	struct pollfd ready[2] = {
		{ .fd = client->completion, .events = POLLIN },
		{ .fd = client->life, .events = POLLIN },
	};
	uint64_t done = ring->tail, count;

	for (;;) {
		__atomic_store_n(&ring->want, done, __ATOMIC_RELAXED);
		__atomic_store_n(&client_header(client)->client_waiting, 1, __ATOMIC_SEQ_CST);
		if (__atomic_load_n(&ring->done, __ATOMIC_SEQ_CST) >= done)
			return true;
		if (poll(ready, 2, (int)ms) <= 0 || ready[1].revents)
			return __atomic_load_n(&ring->done, __ATOMIC_SEQ_CST) >= done;
		ck_assert_int_eq(read(client->completion, &count, sizeof(count)), sizeof(count));
	}
}
