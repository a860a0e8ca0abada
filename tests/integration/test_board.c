/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The board of npu-sim, driven over its socket without npud: what it refuses, what it gives out,
 * what it takes back.
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/npud_fixture.h"
#include "tests/lib/sim_client.h"

static struct sim_board board;
static struct sim_client client;

static void start_with(const char *const more[])
{
	sim_board_start(&board, more);
	sim_client_open(&client, &board);
}

static void start(void)
{
	start_with(NULL);
}

static void stop(void)
{
	sim_client_close(&client);
	ck_assert_int_eq(sim_board_stop(&board), 0);
}

/* What the board and its children hold open and alive. */
struct holdings {
	int fds, children;
};

static struct holdings holdings_now(void)
{
	return (struct holdings){ process_fds(board.pid), process_children(board.pid) };
}

static bool holdings_are(void *arg)
{
	const struct holdings *wanted = arg;
	struct holdings now = holdings_now();

	return now.fds == wanted->fds && now.children == wanted->children;
}

/* Everything given back: the board holds what it did at `before`. */
static void assert_given_back(struct holdings before)
{
	struct holdings now;

	if (wait_until(holdings_are, &before, SIM_WAIT_MS))
		return;
	now = holdings_now();
	ck_abort_msg("board holds %d fds and %d processes, before %d and %d", now.fds, now.children,
		     before.fds, before.children);
}

static bool mem_all_free(void *arg)
{
	struct npu_query query = { 0 };

	(void)arg;
	ck_assert_int_eq(SIM_CALL(&client, QUERY, &query), 0);
	return query.memory_free == query.memory_total;
}

/* ---- what it says and refuses -------------------------------------------------------------- */

START_TEST(test_version)
{
	struct npu_version version = { .major = NPU_UAPI_MAJOR };

	start();
	ck_assert_int_eq(SIM_CALL(&client, VERSION, &version), 0);
	ck_assert_uint_eq(version.kind, NPU_KIND_SIM);
	version = (struct npu_version){ .major = NPU_UAPI_MAJOR + 1 };
	ck_assert_int_eq(SIM_CALL(&client, VERSION, &version), -EPROTO);
	ck_assert_uint_eq(version.major, NPU_UAPI_MAJOR);
	stop();
}
END_TEST

START_TEST(test_query)
{
	static const char *const more[] = { "--memory", "64M", "--cores=3", "--device", "5", NULL };
	struct npu_discover discover = { 0 };
	struct npu_query query = { 0 };

	start_with(more);
	ck_assert_int_eq(SIM_CALL(&client, DISCOVER, &discover), 0);
	ck_assert_uint_eq(discover.count, 1);
	ck_assert_uint_eq(discover.ids[0], 5);
	ck_assert_int_eq(SIM_CALL(&client, QUERY, &query), 0);
	ck_assert_uint_eq(query.memory_total, 64u << 20);
	ck_assert_uint_eq(query.cores, 3);
	ck_assert_uint_ne(query.caps & NPU_CAP_HOST_VISIBLE, 0);
	ck_assert_uint_ne(query.sandbox_active & NPU_SANDBOX_SECCOMP, 0);
	ck_assert_uint_eq(query.engines, 0);
	stop();
}
END_TEST

/* Sends raw bytes and waits until the board has hung up. */
static void assert_disconnects(const void *data, size_t len)
{
	int fd = sim_connect(&board);
	struct pollfd gone = { .fd = fd, .events = POLLIN };
	char byte;

	ck_assert_int_eq(send(fd, data, len, MSG_NOSIGNAL), (ssize_t)len);
	ck_assert_int_eq(poll(&gone, 1, SIM_WAIT_MS), 1);
	ck_assert_int_le(recv(fd, &byte, 1, MSG_DONTWAIT), 0);
	close(fd);
}

START_TEST(test_malformed_packets)
{
	static _Alignas(16) char packet[NPU_MSG_MAX + 64];
	struct npu_msg *head = (struct npu_msg *)packet;
	struct npu_version version = { .major = NPU_UAPI_MAJOR };
	struct holdings before;
	unsigned int seed = 1;

	start();
	ck_assert_int_eq(SIM_CALL(&client, VERSION, &version), 0);
	before = holdings_now();
	*head = (struct npu_msg){ .magic = NPU_MSG_MAGIC, .type = NPU_MSG_CALL, .bytes = 64 };
	assert_disconnects(packet, 1);                              /* truncated head */
	assert_disconnects(packet, sizeof(*head));                  /* no struct */
	assert_disconnects(packet, sizeof(*head) + 63);             /* shorter than it says */
	assert_disconnects(packet, sizeof(*head) + 65);             /* longer */
	assert_disconnects(packet, sizeof(packet));                 /* oversized */
	head->magic++;
	assert_disconnects(packet, sizeof(*head) + 64);
	head->magic--;
	head->type = NPU_MSG_REPLY;
	assert_disconnects(packet, sizeof(*head) + 64);
	for (int i = 0; i < 200; i++) {
		for (size_t j = 0; j < 256; j++)
			packet[j] = (char)rand_r(&seed);
		assert_disconnects(packet, (size_t)rand_r(&seed) % 255 + 1);
	}
	assert_given_back(before);
	ck_assert_int_eq(SIM_CALL(&client, VERSION, &version), 0);
	stop();
}
END_TEST

/* Well-formed packets with every number and random bodies: answers, never an end. */
START_TEST(test_random_calls)
{
	static _Alignas(16) char body[NPU_CALL_MAX];
	struct npu_head *head = (struct npu_head *)body;
	struct npu_version version = { .major = NPU_UAPI_MAJOR };
	unsigned int seed = 7;

	start();
	sim_client_session(&client);
	for (int i = 0; i < 4000; i++) {
		size_t size = sizeof(*head) + (size_t)rand_r(&seed) % 600;

		for (size_t j = 0; j < size; j++)
			body[j] = rand_r(&seed) % 3 ? 0 : (char)rand_r(&seed);
		head->size = (__u32)size;
		head->flags = 0;
		head->session = rand_r(&seed) % 4 ? client.session : (__u64)rand_r(&seed);
		head->call = (__u64)rand_r(&seed);
		/* Not those that end the session that we use. */
		if (i % 0x70 != _IOC_NR(NPU_IOCTL_RESET) &&
		    i % 0x70 != _IOC_NR(NPU_IOCTL_SESSION_DESTROY))
			sim_client_call(&client, (unsigned int)i % 0x70, body, size);
		for (unsigned int k = 0; k < client.nfds; k++)
			close(client.fds[k]);
		client.nfds = 0;
	}
	version.head.size = 0;
	ck_assert_int_eq(SIM_CALL(&client, VERSION, &version), 0);
	stop();
}
END_TEST

START_TEST(test_fds_are_refused)
{
	struct {
		struct npu_msg head;
		struct npu_version version;
	} packet = {
		.head = {
			.magic = NPU_MSG_MAGIC, .type = NPU_MSG_CALL,
			.bytes = sizeof(packet.version),
		},
		.version = {
			.head.size = sizeof(packet.version), .major = NPU_UAPI_MAJOR,
		},
	};
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int) * 40)];
	} control = { 0 };
	struct iovec iov = { .iov_base = &packet, .iov_len = sizeof(packet) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control };
	struct npu_version version = { .major = NPU_UAPI_MAJOR };
	struct holdings before;
	int pipes[2];

	start();
	ck_assert_int_eq(SIM_CALL(&client, VERSION, &version), 0);
	ck_assert_int_eq(pipe2(pipes, O_CLOEXEC), 0);
	before = holdings_now();
	for (int n = 1; n <= 40; n += 13) {
		int fd = sim_connect(&board);
		struct pollfd gone = { .fd = fd, .events = POLLIN };
		char byte;

		msg.msg_controllen = CMSG_SPACE(sizeof(int) * (size_t)n);
		control.align.cmsg_level = SOL_SOCKET;
		control.align.cmsg_type = SCM_RIGHTS;
		control.align.cmsg_len = CMSG_LEN(sizeof(int) * (size_t)n);
		for (int i = 0; i < n; i++)
			memcpy(CMSG_DATA(&control.align) + (size_t)i * sizeof(int), &pipes[1],
			       sizeof(int));
		ck_assert_int_gt(sendmsg(fd, &msg, MSG_NOSIGNAL), 0);
		ck_assert_int_eq(poll(&gone, 1, SIM_WAIT_MS), 1);
		ck_assert_int_le(recv(fd, &byte, 1, MSG_DONTWAIT), 0);
		close(fd);
	}
	assert_given_back(before);
	/* The board has closed its copies: with ours gone the pipe has no writer. */
	close(pipes[1]);
	ck_assert_int_eq(poll(&(struct pollfd){ .fd = pipes[0] }, 1, SIM_WAIT_MS), 1);
	close(pipes[0]);
	stop();
}
END_TEST

static int run_options(const char *const argv[], char *ret_text, size_t size)
{
	int out[2], status;
	size_t len = 0;
	ssize_t n;
	pid_t pid;

	ck_assert_int_eq(pipe2(out, O_CLOEXEC), 0);
	pid = fork();
	if (!pid) {
		dup2(out[1], STDERR_FILENO);
		execv(NPU_BUILD_DIR "/npu-sim", (char *const *)argv);
		_exit(127);
	}
	close(out[1]);
	while (len < size - 1 && (n = read(out[0], ret_text + len, size - 1 - len)) > 0)
		len += (size_t)n;
	ret_text[len] = 0;
	close(out[0]);
	status = wait_for(pid, SIM_WAIT_MS);
	ck_assert(WIFEXITED(status));
	return WEXITSTATUS(status);
}

START_TEST(test_options_refused)
{
	static const char *const wrong[][5] = {
		{ "npu-sim" },
		{ "npu-sim", "--socket" },
		{ "npu-sim", "--socket", "", NULL },
		{ "npu-sim", "--socket", "s", "--memory=x" },
		{ "npu-sim", "--socket", "s", "--memory=12Q" },
		{ "npu-sim", "--socket", "s", "--memory=99999999G" },
		{ "npu-sim", "--socket", "s", "--memory=1" },
		{ "npu-sim", "--socket", "s", "--cores=0" },
		{ "npu-sim", "--socket", "s", "--cores=65" },
		{ "npu-sim", "--socket", "s", "--device=-1" },
		{ "npu-sim", "--socket", "s", "--owner=root" },
		{ "npu-sim", "--socket", "s", "--kernel-timeout=0" },
		{ "npu-sim", "--socket", "s", "--log-level=loud" },
		{ "npu-sim", "--socket", "s", "--detach=1" },
		{ "npu-sim", "--socket", "s", "--what" },
		{ "npu-sim", "--socket", "s", "stray" },
	};
	char text[512];
	char *newline;

	ck_assert_int_eq(run_options(wrong[_i], text, sizeof(text)), 2);
	newline = strchr(text, '\n');
	ck_assert_msg(newline && !newline[1], "not one line: %s", text);
	ck_assert_msg(strncmp(text, "npu-sim: ", 9) == 0, "%s", text);
}
END_TEST

START_TEST(test_second_board_refused)
{
	char text[512], pid[32], other[104], link[64];
	const char *same[] = { "npu-sim", "--socket", board.socket, NULL };
	const char *locked[] = { "npu-sim", "--socket", other, "--pid-file", link, NULL };
	char lock[128];
	const char *more[] = { "--pid-file", link, NULL };

	strcpy(link, "/tmp/npu-test-pid-XXXXXX");
	close(mkstemp(link));
	start_with(more);
	snprintf(pid, sizeof(pid), "process %d", (int)board.pid);
	ck_assert_int_eq(run_options(same, text, sizeof(text)), 1);
	ck_assert_msg(strstr(text, pid), "%s", text);
	snprintf(other, sizeof(other), "%s.2", board.socket);
	ck_assert_int_eq(run_options(locked, text, sizeof(text)), 1);
	ck_assert_msg(strstr(text, pid), "%s", text);
	snprintf(lock, sizeof(lock), "%s.lock", other);
	ck_assert_int_ne(access(lock, F_OK), 0);
	stop();
	ck_assert_int_ne(access(link, F_OK), 0);
}
END_TEST

static bool is_free(void *arg)
{
	return access(arg, F_OK) != 0;
}

/*
 * A dead board leaves its socket behind: the next one takes its place, in the background, and
 * listens when its starter returns.
 */
START_TEST(test_stale_socket)
{
	const char *argv[] = { "npu-sim", "--socket", board.socket, "--detach", NULL };
	char text[512], path[128], *pid;

	start();
	sim_client_close(&client);
	kill(board.pid, SIGKILL);
	wait_for(board.pid, SIM_WAIT_MS);
	ck_assert_int_eq(access(board.socket, F_OK), 0);
	ck_assert_int_eq(run_options(argv, text, sizeof(text)), 0);
	sim_client_open(&client, &board);
	sim_client_session(&client);
	snprintf(path, sizeof(path), "%s/npu-sim-0.log", board.dir);
	ck_assert_int_eq(access(path, F_OK), 0);
	/* The process that listens is the one in the lock. */
	snprintf(path, sizeof(path), "%s.lock", board.socket);
	pid = read_file(path);
	ck_assert_ptr_nonnull(pid);
	ck_assert_int_eq(kill(atoi(pid), SIGTERM), 0);
	free(pid);
	ck_assert(wait_until(is_free, path, SIM_WAIT_MS));
	sim_client_close(&client);
	sim_board_clear(&board);
}
END_TEST

/* ---- what it gives out --------------------------------------------------------------------- */

START_TEST(test_session_fds)
{
	struct npu_slab_header *header;

	start();
	sim_client_session(&client);
	header = (struct npu_slab_header *)client.slab;
	ck_assert_uint_eq(header->magic, NPU_QUEUE_MAGIC);
	ck_assert_uint_eq(header->slab_address, SIM_SLAB_ADDRESS);
	/* Sealed: nobody can take the pages from under the board or the engine. */
	ck_assert_int_eq(ftruncate(client.slab_fd, 4096), -1);
	ck_assert_int_eq(errno, EPERM);
	ck_assert_int_eq(ftruncate(client.slab_fd, (off_t)NPU_SLAB_SIZE * 2), -1);
	ck_assert_int_eq(fcntl(client.slab_fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
	ck_assert_int_ne(fcntl(client.doorbell, F_GETFL) & O_NONBLOCK, 0);
	/* The read end alone: a client cannot keep the life pipe alive. */
	ck_assert_int_eq(fcntl(client.life, F_GETFL) & O_ACCMODE, O_RDONLY);
	sim_client_session_end(&client);
	stop();
}
END_TEST

START_TEST(test_life_ends_with_board)
{
	int life;

	start();
	sim_client_session(&client);
	life = dup(client.life);
	kill(board.pid, SIGKILL);
	ck_assert_int_eq(poll(&(struct pollfd){ .fd = life }, 1, SIM_WAIT_MS), 1);
	wait_for(board.pid, SIM_WAIT_MS);
	close(life);
	sim_client_close(&client);
	sim_board_clear(&board);
}
END_TEST

static bool is_zero(void *arg)
{
	return *(volatile char *)arg == 0;
}

START_TEST(test_memory_never_returns)
{
	static const char *const more[] = { "--memory", "16M", NULL };
	const size_t bytes = 8u << 20;
	struct npu_mem_free freeing = { 0 };
	struct sim_client other;
	uint64_t mem;
	char *mine, *theirs;
	int fd, other_fd;

	start_with(more);
	sim_client_session(&client);
	mem = sim_client_memory(&client, NPU_MEM_DEVICE, bytes, &fd);
	ck_assert_int_eq(ftruncate(fd, 0), -1);
	mine = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ck_assert_ptr_ne(mine, MAP_FAILED);
	memset(mine, 0x5a, bytes);
	freeing.head.session = client.session;
	freeing.mem = mem;
	ck_assert_int_eq(SIM_CALL(&client, MEM_FREE, &freeing), 0);
	ck_assert(wait_until(mem_all_free, NULL, SIM_WAIT_MS));
	/* What the old holder keeps becomes empty, and is its own. */
	ck_assert(wait_until(is_zero, &mine[bytes - 1], SIM_WAIT_MS));
	ck_assert_int_eq(mine[0], 0);
	sim_client_open(&other, &board);
	sim_client_session(&other);
	for (int round = 0; round < 2; round++) {
		memset(mine, 0x77, bytes);
		sim_client_memory(&other, NPU_MEM_DEVICE, bytes, &other_fd);
		theirs = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, other_fd, 0);
		ck_assert_ptr_ne(theirs, MAP_FAILED);
		memset(mine, 0x78, bytes);
		for (size_t i = 0; i < bytes; i += 4096)
			ck_assert_int_eq(theirs[i], 0);
		munmap(theirs, bytes);
		close(other_fd);
	}
	munmap(mine, bytes);
	close(fd);
	sim_client_close(&other);
	stop();
}
END_TEST

START_TEST(test_not_host_visible)
{
	static const char *const more[] = { "--no-host-visible", NULL };
	struct npu_query query = { 0 };
	int fd;

	start_with(more);
	ck_assert_int_eq(SIM_CALL(&client, QUERY, &query), 0);
	ck_assert_uint_eq(query.caps & NPU_CAP_HOST_VISIBLE, 0);
	sim_client_session(&client);
	sim_client_memory(&client, NPU_MEM_DEVICE, 1u << 20, &fd);
	ck_assert_int_eq(fd, -1);
	sim_client_memory(&client, NPU_MEM_HOST, 1u << 20, &fd);
	ck_assert_int_ge(fd, 0);
	close(fd);
	stop();
}
END_TEST

/* ---- connections end ----------------------------------------------------------------------- */

START_TEST(test_dead_connection_leaves_nothing)
{
	static const char *const more[] = { "--orphan-grace", "0", NULL };
	struct npu_version version = { .major = NPU_UAPI_MAJOR };
	struct holdings before;
	pid_t child;
	int status;

	start_with(more);
	ck_assert_int_eq(SIM_CALL(&client, VERSION, &version), 0);
	before = holdings_now();
	child = fork();
	if (!child) {
		struct sim_client own;
		uint32_t slot;
		int fd;

		sim_client_open(&own, &board);
		sim_client_session(&own);
		for (int i = 0; i < 20; i++)
			sim_client_memory(&own, NPU_MEM_DEVICE, 1u << 20, &fd);
		sim_client_queue(&own, sim_client_context(&own), &slot);
		sim_client_engine(&own, 0);
		raise(SIGKILL);
	}
	status = wait_for(child, SIM_WAIT_MS * 2);
	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	assert_given_back(before);
	ck_assert(wait_until(mem_all_free, NULL, SIM_WAIT_MS));
	stop();
}
END_TEST

START_TEST(test_orphan_is_adopted)
{
	static const char *const more[] = { "--orphan-grace", "600000", NULL };
	struct npu_obj_enum list = { 0 };
	struct npu_obj_fds fds = { .type = NPU_OBJ_SESSION };
	uint64_t session;
	uint32_t slot, magic;
	pid_t engine;

	start_with(more);
	sim_client_session(&client);
	session = client.session;
	sim_client_queue(&client, sim_client_context(&client), &slot);
	engine = sim_client_engine(&client, 0);
	sim_client_close(&client);

	sim_client_open(&client, &board);
	client.call = 1000;
	ck_assert_int_eq(SIM_CALL(&client, OBJ_ENUM, &list), 0);
	ck_assert_uint_ge(list.count, 1);
	ck_assert_uint_eq(list.objects[0].type, NPU_OBJ_SESSION);
	ck_assert_uint_eq(list.objects[0].id, session);
	fds.head.session = fds.id = session;
	ck_assert_int_eq(SIM_CALL(&client, OBJ_FDS, &fds), 0);
	ck_assert_uint_eq(client.nfds, 4);
	ck_assert_int_eq(pread(client.fds[fds.fds[0]], &magic, sizeof(magic), 0), sizeof(magic));
	ck_assert_uint_eq(magic, NPU_QUEUE_MAGIC);
	for (unsigned int i = 0; i < 4; i++)
		close(client.fds[i]);
	client.session = session;
	ck_assert_int_eq(sim_client_engine(&client, 0), engine);
	sim_client_session_end(&client);
	stop();
}
END_TEST

START_TEST(test_orphan_expires)
{
	static const char *const more[] = { "--orphan-grace", "50", NULL };
	struct npu_version version = { .major = NPU_UAPI_MAJOR };
	struct sim_client other;
	struct holdings before;

	start_with(more);
	ck_assert_int_eq(SIM_CALL(&client, VERSION, &version), 0);
	before = holdings_now();
	sim_client_open(&other, &board);
	sim_client_session(&other);
	sim_client_close(&other);
	assert_given_back(before);
	stop();
}
END_TEST

static Suite *board_suite(void)
{
	Suite *suite = suite_create("board");
	TCase *front = tcase_create("front"), *memory = tcase_create("memory");
	TCase *ends = tcase_create("ends");

	tcase_set_timeout(front, 120);
	tcase_add_test(front, test_version);
	tcase_add_test(front, test_query);
	tcase_add_test(front, test_malformed_packets);
	tcase_add_test(front, test_random_calls);
	tcase_add_test(front, test_fds_are_refused);
	tcase_add_loop_test(front, test_options_refused, 0, 16);
	tcase_add_test(front, test_second_board_refused);
	tcase_add_test(front, test_stale_socket);
	suite_add_tcase(suite, front);
	tcase_set_timeout(memory, 120);
	tcase_add_test(memory, test_session_fds);
	tcase_add_test(memory, test_life_ends_with_board);
	tcase_add_test(memory, test_memory_never_returns);
	tcase_add_test(memory, test_not_host_visible);
	suite_add_tcase(suite, memory);
	tcase_set_timeout(ends, 120);
	tcase_add_test(ends, test_dead_connection_leaves_nothing);
	tcase_add_test(ends, test_orphan_is_adopted);
	tcase_add_test(ends, test_orphan_expires);
	suite_add_tcase(suite, ends);
	return suite;
}

int main(void)
{
	SRunner *runner = srunner_create(board_suite());
	int failed;

	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
