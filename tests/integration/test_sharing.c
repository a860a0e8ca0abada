/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several programs on one device: they work side by side, one that faults, hangs or is killed hurts
 * nobody and leaves nothing behind, and what one has held never reaches another. Real processes: each
 * client is a child that uses the public API only.
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
#include <sys/wait.h>
#include <unistd.h>
#include <acl/acl.h>
#include "tests/lib/npud_fixture.h"

#define MIB (1u << 20)

static struct npud_fixture f;

/* In a client: the call must succeed. */
#define OK(call) do {                                                                    \
	int code_ = (call);                                                              \
	if (code_) {                                                                     \
		const char *text_ = aclGetRecentErrMsg();                                \
		fprintf(stderr, "%d: %s:%d: %s: %d: %s\n", getpid(), __FILE__, __LINE__, \
			#call, code_, text_ ? text_ : "");                               \
		_exit(10);                                                               \
	}                                                                                \
} while (0)
#define THAT(condition) do {                                                              \
	if (!(condition)) {                                                              \
		fprintf(stderr, "%d: %s:%d: not so: %s\n", getpid(), __FILE__, __LINE__,  \
			#condition);                                                     \
		_exit(11);                                                               \
	}                                                                                \
} while (0)

struct client {
	aclrtStream stream;
	aclrtBinHandle image;
	uint64_t *device; /* MIB bytes */
};

static void begin(struct client *c)
{
	OK(aclInit(NULL));
	OK(aclrtSetDevice(0));
	OK(aclrtCreateStream(&c->stream));
	OK(aclrtBinaryLoadFromFile(NPU_TEST_KERNELS, NULL, &c->image));
	OK(aclrtMalloc((void **)&c->device, MIB, ACL_MEM_MALLOC_HUGE_FIRST));
	OK(aclrtMemset(c->device, MIB, 0, MIB));
}

static void launch(struct client *c, const char *name, uint32_t blocks, uint64_t a0, uint64_t a1,
		   unsigned nargs)
{
	uint64_t args[2] = { a0, a1 };
	aclrtFuncHandle func;

	OK(aclrtBinaryGetFunction(c->image, name, &func));
	OK(aclrtLaunchKernelWithHostArgs(func, blocks, c->stream, NULL, args, 8 * nargs, NULL, 0));
}

/* Checked work for some time: sums whose result is known. */
static void work(struct client *c, unsigned rounds)
{
	uint64_t sum = 0, got;

	OK(aclrtMemset(c->device, MIB, 0, 8));
	for (unsigned i = 1; i <= rounds; i++) {
		launch(c, "add", 1, (uintptr_t)c->device, i, 2);
		sum += i;
		if (i % 50)
			continue;
		OK(aclrtSynchronizeStream(c->stream));
		OK(aclrtMemcpy(&got, 8, c->device, 8, ACL_MEMCPY_DEVICE_TO_HOST));
		THAT(got == sum);
	}
	OK(aclrtSynchronizeStream(c->stream));
	OK(aclrtMemcpy(&got, 8, c->device, 8, ACL_MEMCPY_DEVICE_TO_HOST));
	THAT(got == sum);
}

static void end(struct client *c)
{
	OK(aclrtFree(c->device));
	OK(aclrtBinaryUnLoad(c->image));
	OK(aclrtDestroyStream(c->stream));
	OK(aclrtResetDevice(0));
	OK(aclFinalize());
}

/* Starts a client; go is a pipe whose read end it may wait on, said one that it may write to. */
static pid_t start(void (*main)(int in, int out), int *ret_in, int *ret_out)
{
	int in[2], out[2];
	pid_t pid;

	ck_assert_int_eq(pipe(in), 0);
	ck_assert_int_eq(pipe(out), 0);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (!pid) {
		close(in[1]);
		close(out[0]);
		main(in[0], out[1]);
		_exit(0);
	}
	close(in[0]);
	close(out[1]);
	*ret_in = in[1];
	*ret_out = out[0];
	return pid;
}

static void say(int fd)
{
	THAT(write(fd, "x", 1) == 1);
}

/* Waits for the other side's word; false when it is gone or 20 s have passed. */
static bool hear(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char c;

	return poll(&p, 1, 20000) == 1 && read(fd, &c, 1) == 1;
}

static void assert_ok(pid_t pid)
{
	int status = wait_for(pid, 60000);

	ck_assert_msg(WIFEXITED(status) && !WEXITSTATUS(status), "client %d: status %x", pid, status);
}

static bool no_engine(void *arg)
{
	(void)arg;
	return process_children(f.sim) <= 1; /* the nursery */
}

static void setup(void)
{
	npud_start(&f, NULL);
}

static void teardown(void)
{
	npud_stop(&f);
}

static void worker_main(int in, int out)
{
	struct client c;

	(void)in;
	begin(&c);
	say(out);
	work(&c, 20000);
	end(&c);
}

START_TEST(clients_work_side_by_side)
{
	pid_t pid[4];
	int in, out;

	for (unsigned i = 0; i < 4; i++)
		pid[i] = start(worker_main, &in, &out);
	for (unsigned i = 0; i < 4; i++)
		assert_ok(pid[i]);
	ck_assert(wait_until(no_engine, NULL, 10000));
}
END_TEST

static void faulty_main(int in, int out)
{
	static const struct { const char *kernel; uint64_t arg; } wrong[] = {
		{ "poke", 0 }, { "poke", 0x7e9000000000 }, { "divide", 0 }, { "poke", 0xffff000000000000 },
	};
	struct client c;

	(void)in;
	begin(&c);
	say(out);
	for (unsigned i = 0; i < 200; i++) {
		unsigned k = i % 4;
		uint64_t arg = k == 2 ? (uintptr_t)c.device : wrong[k].arg;
		const char *text;

		OK(aclrtMemset(c.device, MIB, 0, 8));
		launch(&c, wrong[k].kernel, 1, arg, 1, k == 2 ? 1 : 2);
		THAT(aclrtSynchronizeStream(c.stream) == ACL_ERROR_RT_AICORE_EXCEPTION);
		text = aclGetRecentErrMsg();
		THAT(text && strstr(text, wrong[k].kernel));
		if (i % 50 == 0)
			work(&c, 100);
	}
	end(&c);
}

START_TEST(a_faulting_client_hurts_nobody)
{
	pid_t good[2], bad;
	int in, out;

	good[0] = start(worker_main, &in, &out);
	bad = start(faulty_main, &in, &out);
	good[1] = start(worker_main, &in, &out);
	assert_ok(good[0]);
	assert_ok(good[1]);
	assert_ok(bad);
	ck_assert(wait_until(no_engine, NULL, 10000));
}
END_TEST

/* Holds memory of every kind, a kernel that never ends, queued work; then waits to be killed. */
static void victim_main(int in, int out)
{
	struct client c;
	void *host, *more;
	aclrtEvent event;

	begin(&c);
	OK(aclrtMallocHost(&host, 4 * MIB));
	memset(host, 1, 4 * MIB);
	OK(aclrtMalloc(&more, 64 * MIB, ACL_MEM_MALLOC_HUGE_FIRST));
	OK(aclrtMemset(more, 64 * MIB, 1, 64 * MIB));
	OK(aclrtCreateEvent(&event));
	launch(&c, "spin", 2, (uintptr_t)c.device, 0, 1);
	OK(aclrtMemcpyAsync(more, 4 * MIB, host, 4 * MIB, ACL_MEMCPY_HOST_TO_DEVICE, c.stream));
	OK(aclrtRecordEvent(event, c.stream));
	say(out);
	hear(in);
	_exit(12);
}

struct level {
	int npud_fds, sim_fds, sim_children;
};

static struct level level(void)
{
	return (struct level){ process_fds(f.npud), process_fds(f.sim), process_children(f.sim) };
}

static struct level level_before;

static bool back_to_before(void *arg)
{
	struct level now = level();

	(void)arg;
	return now.npud_fds == level_before.npud_fds && now.sim_fds == level_before.sim_fds &&
	       now.sim_children == level_before.sim_children;
}

static void memory_main(int in, int out)
{
	size_t free_bytes, total;

	(void)in;
	(void)out;
	OK(aclInit(NULL));
	OK(aclrtSetDevice(0));
	OK(aclrtGetMemInfo(ACL_HBM_MEM, &free_bytes, &total));
	THAT(free_bytes == total);
	OK(aclrtResetDevice(0));
	OK(aclFinalize());
}

START_TEST(a_killed_client_leaves_nothing)
{
	int in, out;
	pid_t pid;

	/* One client first, so that what is made once is made. */
	assert_ok(start(memory_main, &in, &out));
	ck_assert(wait_until(no_engine, NULL, 10000));
	level_before = level();
	for (unsigned i = 0; i < 10; i++) {
		pid = start(victim_main, &in, &out);
		ck_assert(hear(out));
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		close(in);
		close(out);
	}
	if (!wait_until(back_to_before, NULL, 10000)) {
		struct level now = level();

		ck_abort_msg("npud fds %d, before %d; npu-sim fds %d, before %d; children %d, before %d",
			     now.npud_fds, level_before.npud_fds, now.sim_fds, level_before.sim_fds,
			     now.sim_children, level_before.sim_children);
	}
	assert_ok(start(memory_main, &in, &out));
}
END_TEST

/* A kernel that never ends keeps neither its neighbours nor its own end from coming. */
static void hanging_main(int in, int out)
{
	struct client c;
	aclError code;

	(void)in;
	begin(&c);
	OK(aclrtSetOpExecuteTimeOutV2(200000, &(uint64_t){ 0 }));
	launch(&c, "spin", 2, (uintptr_t)c.device, 0, 1);
	say(out);
	THAT(aclrtSynchronizeStreamWithTimeout(c.stream, 1) == ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
	code = aclrtSynchronizeStream(c.stream);
	THAT(code == ACL_ERROR_RT_AICORE_TIMEOUT);
	work(&c, 100);
	end(&c);
}

START_TEST(a_hanging_kernel_ends_by_its_limit)
{
	pid_t good, bad;
	int in, out;

	bad = start(hanging_main, &in, &out);
	ck_assert(hear(out));
	good = start(worker_main, &in, &out);
	assert_ok(good);
	assert_ok(bad);
}
END_TEST

/* Keeps writing a pattern through every mapping of device files that it ever had. */
static void keeper_main(int in, int out)
{
	struct client c;
	char line[512];
	FILE *maps;

	begin(&c);
	OK(aclrtMemset(c.device, MIB, 0x5a, MIB));
	/* Maps what the library has mapped a second time, before it is freed. */
	maps = fopen("/proc/self/maps", "re");
	THAT(maps);
	void *kept[64];
	size_t sizes[64];
	unsigned n = 0;

	while (fgets(line, sizeof(line), maps) && n < 64) {
		unsigned long from, to;
		char mode[8];

		if (!strstr(line, "memfd:") || sscanf(line, "%lx-%lx %7s", &from, &to, mode) != 3 ||
		    strncmp(mode, "rw-s", 4) || to - from > 128ul * MIB)
			continue;
		kept[n] = mremap((void *)from, 0, to - from, MREMAP_MAYMOVE);
		if (kept[n] != MAP_FAILED)
			sizes[n++] = to - from;
	}
	fclose(maps);
	THAT(n > 0);
	OK(aclrtFree(c.device));
	OK(aclrtDestroyStream(c.stream));
	OK(aclrtResetDevice(0));
	OK(aclFinalize());
	say(out);
	for (;;) {
		struct pollfd p = { .fd = in, .events = POLLIN };

		for (unsigned i = 0; i < n; i++)
			memset(kept[i], 0x5a, sizes[i]);
		if (poll(&p, 1, 1))
			_exit(0);
	}
}

static void reader_main(int in, int out)
{
	uint8_t *host = malloc(32 * MIB);
	struct client c;
	void *p;

	(void)in;
	begin(&c);
	for (unsigned round = 0; round < 20; round++) {
		OK(aclrtMalloc(&p, 32 * MIB, ACL_MEM_MALLOC_HUGE_FIRST));
		for (unsigned again = 0; again < 2; again++) {
			OK(aclrtMemcpy(host, 32 * MIB, p, 32 * MIB, ACL_MEMCPY_DEVICE_TO_HOST));
			for (size_t i = 0; i < 32 * MIB; i++)
				THAT(host[i] != 0x5a);
		}
		OK(aclrtFree(p));
	}
	say(out);
	work(&c, 1000);
	end(&c);
}

START_TEST(memory_of_one_client_never_reaches_another)
{
	int keeper_in, in, out;
	pid_t keeper, reader;

	keeper = start(keeper_main, &keeper_in, &out);
	ck_assert(hear(out));
	reader = start(reader_main, &in, &out);
	assert_ok(reader);
	close(keeper_in);
	assert_ok(keeper);
}
END_TEST

/* Writes random bytes over all that it shares with anybody, fills its event fds and makes them block. */
static void hostile_main(int in, int out)
{
	uint64_t x = 88172645463325252ull ^ getpid(), full = UINT64_MAX - 1;
	struct client c;
	char line[512];
	FILE *maps;

	begin(&c);
	launch(&c, "spin", 2, (uintptr_t)c.device, 0, 1);
	for (int fd = 3; fd < 64; fd++) {
		char path[64], what[64] = "";

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		if (readlink(path, what, sizeof(what) - 1) < 0 || !strstr(what, "eventfd"))
			continue;
		THAT(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK) == 0);
		/* What of it fits; the last write may be the one that fills it. */
		fcntl(fd, F_SETFL, O_NONBLOCK);
		(void)!write(fd, &full, sizeof(full));
		fcntl(fd, F_SETFL, 0);
	}
	say(out);
	for (struct pollfd p = { .fd = in, .events = POLLIN }; !poll(&p, 1, 0);) {
		maps = fopen("/proc/self/maps", "re");
		THAT(maps);
		while (fgets(line, sizeof(line), maps)) {
			unsigned long from, to;
			char mode[8];

			if (!strstr(line, "memfd:") ||
			    sscanf(line, "%lx-%lx %7s", &from, &to, mode) != 3 ||
			    strncmp(mode, "rw-s", 4))
				continue;
			/* The first 5 MiB hold every header, ring and event of a slab. */
			for (volatile uint64_t *w = (void *)from;
			     (unsigned long)w < to && (unsigned long)w < from + 5 * MIB; w++) {
				x ^= x << 13;
				x ^= x >> 7;
				x ^= x << 17;
				*w = x & 8 ? x : x & 16 ? 0 : ~0ull;
			}
		}
		fclose(maps);
	}
	_exit(0);
}

START_TEST(a_client_that_scribbles_hurts_nobody)
{
	int hostile_in[2], in, out;
	pid_t hostile[2], good[2];

	assert_ok(start(memory_main, &in, &out));
	ck_assert(wait_until(no_engine, NULL, 10000));
	level_before = level();
	for (unsigned i = 0; i < 2; i++) {
		hostile[i] = start(hostile_main, &hostile_in[i], &out);
		ck_assert(hear(out));
		close(out);
	}
	for (unsigned i = 0; i < 2; i++)
		good[i] = start(worker_main, &in, &out);
	for (unsigned i = 0; i < 2; i++)
		assert_ok(good[i]);
	for (unsigned i = 0; i < 2; i++) {
		close(hostile_in[i]);
		assert_ok(hostile[i]);
	}
	ck_assert(wait_until(back_to_before, NULL, 10000));
	assert_ok(start(memory_main, &in, &out));
}
END_TEST

static void touch_main(int in, int out)
{
	struct client c;

	(void)in;
	(void)out;
	begin(&c);
	*(volatile uint64_t *)c.device = 1; /* as on a card: not the host's memory */
}

START_TEST(host_code_cannot_touch_device_memory)
{
	int in, out, status;

	status = wait_for(start(touch_main, &in, &out), 20000);
	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
}
END_TEST

START_TEST(a_second_npud_is_refused_by_name)
{
	char command[512], line[512] = "", want[32];
	FILE *p;
	int status;

	snprintf(command, sizeof(command),
		 NPU_BUILD_DIR "/npud --foreground --runtime-dir %s --device sim 2>&1", f.dir);
	p = popen(command, "re");
	ck_assert_ptr_nonnull(p);
	ck_assert_ptr_nonnull(fgets(line, sizeof(line), p));
	status = pclose(p);
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) != 0);
	snprintf(want, sizeof(want), "%d", f.npud);
	ck_assert_msg(strstr(line, want), "no pid %s in: %s", want, line);
}
END_TEST

/* ---- a device whose memory no client can see ------------------------------------------------- */

static void setup_hidden(void)
{
	npud_start(&f, "[device]\nsim_memory = 1G\nsim_host_visible = no\n");
}

static void copies_main(int in, int out)
{
	enum { N = 6 * MIB };
	uint8_t *a = malloc(N), *b = malloc(N), *pinned, flipped;
	struct client c;
	uint8_t *p, *q;

	(void)in;
	begin(&c);
	OK(aclrtMalloc((void **)&p, N, ACL_MEM_MALLOC_HUGE_FIRST));
	OK(aclrtMalloc((void **)&q, N, ACL_MEM_MALLOC_HUGE_FIRST));
	OK(aclrtMallocHost((void **)&pinned, N));
	for (size_t i = 0; i < N; i++)
		a[i] = i * 31 >> 3;
	OK(aclrtMemcpy(p, N, a, N, ACL_MEMCPY_HOST_TO_DEVICE));
	OK(aclrtMemcpy(q, N, p, N, ACL_MEMCPY_DEVICE_TO_DEVICE));
	OK(aclrtMemcpy(b, N, q, N, ACL_MEMCPY_DEVICE_TO_HOST));
	THAT(!memcmp(a, b, N));
	for (size_t i = 0; i < N; i++)
		pinned[i] = a[i] ^ 0xff;
	OK(aclrtMemcpyAsync(p, N, pinned, N, ACL_MEMCPY_HOST_TO_DEVICE, c.stream));
	OK(aclrtMemcpyAsync(q, N, p, N, ACL_MEMCPY_DEVICE_TO_DEVICE, c.stream));
	OK(aclrtMemsetAsync(p, N, 7, 4096, c.stream));
	OK(aclrtMemcpyAsync(b, N, q, N, ACL_MEMCPY_DEVICE_TO_HOST, c.stream)); /* pageable */
	OK(aclrtSynchronizeStream(c.stream));
	THAT(!memcmp(pinned, b, N));
	OK(aclrtMemcpyAsync(pinned, N, p, N, ACL_MEMCPY_DEVICE_TO_HOST, c.stream));
	OK(aclrtMemcpyAsync(q, N, a, 1000, ACL_MEMCPY_HOST_TO_DEVICE, c.stream)); /* staged */
	memset(a, 0, 1000);
	OK(aclrtSynchronizeStream(c.stream));
	flipped = a[4096] ^ 0xff;
	THAT(pinned[0] == 7 && pinned[4095] == 7 && pinned[4096] == flipped);
	OK(aclrtMemcpy(b, N, q, 1000, ACL_MEMCPY_DEVICE_TO_HOST));
	for (size_t i = 0; i < 1000; i++)
		THAT(b[i] == (uint8_t)(i * 31 >> 3));
	OK(aclrtMemset(p, N, 9, N));
	OK(aclrtMemcpy(b, N, p, N, ACL_MEMCPY_DEVICE_TO_HOST));
	for (size_t i = 0; i < N; i++)
		THAT(b[i] == 9);
	OK(aclrtFreeHost(pinned));
	OK(aclrtFree(p));
	OK(aclrtFree(q));
	say(out);
	work(&c, 1000);
	end(&c);
}

START_TEST(every_copy_is_right)
{
	int in, out;

	assert_ok(start(copies_main, &in, &out));
}
END_TEST

START_TEST(hidden_memory_is_not_mapped_by_clients)
{
	int keeper_in, out;
	pid_t keeper;

	/* The keeper finds the slab and pinned memory, but what it writes never shows in a copy. */
	keeper = start(keeper_main, &keeper_in, &out);
	ck_assert(hear(out));
	assert_ok(start(reader_main, &(int){ 0 }, &out));
	close(keeper_in);
	assert_ok(keeper);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("sharing");
	TCase *t = tcase_create("visible memory"), *h = tcase_create("hidden memory");
	SRunner *r;
	int failed;

	tcase_set_timeout(t, 120);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, clients_work_side_by_side);
	tcase_add_test(t, a_faulting_client_hurts_nobody);
	tcase_add_test(t, a_killed_client_leaves_nothing);
	tcase_add_test(t, a_hanging_kernel_ends_by_its_limit);
	tcase_add_test(t, memory_of_one_client_never_reaches_another);
	tcase_add_test(t, a_client_that_scribbles_hurts_nobody);
	tcase_add_test(t, host_code_cannot_touch_device_memory);
	tcase_add_test(t, a_second_npud_is_refused_by_name);
	tcase_add_test(t, every_copy_is_right);
	suite_add_tcase(s, t);
	tcase_set_timeout(h, 120);
	tcase_add_checked_fixture(h, setup_hidden, teardown);
	tcase_add_test(h, every_copy_is_right);
	tcase_add_test(h, hidden_memory_is_not_mapped_by_clients);
	suite_add_tcase(s, h);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
