/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The isolation rule seen from clients: what one has held never reaches another, what it can write
 * hurts itself alone, and copies are right on a device whose memory no client can map.
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include "tests/lib/client_process.h"

static void setup(void)
{
	npud_start(&client_npud, NULL);
}

static void teardown(void)
{
	npud_stop(&client_npud);
}

/* Keeps writing a pattern through every mapping of device files that it ever had. */
static void keeper_main(int in, int out)
{
	struct client c;
	char line[512];
	FILE *maps;

	client_begin(&c);
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
	client_say(out);
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
	client_begin(&c);
	for (unsigned round = 0; round < 20; round++) {
		OK(aclrtMalloc(&p, 32 * MIB, ACL_MEM_MALLOC_HUGE_FIRST));
		for (unsigned again = 0; again < 2; again++) {
			OK(aclrtMemcpy(host, 32 * MIB, p, 32 * MIB, ACL_MEMCPY_DEVICE_TO_HOST));
			for (size_t i = 0; i < 32 * MIB; i++)
				THAT(host[i] != 0x5a);
		}
		OK(aclrtFree(p));
	}
	client_say(out);
	client_work(&c, 1000);
	client_end(&c);
}

START_TEST(memory_of_one_client_never_reaches_another)
{
	int keeper_in, in, out;
	pid_t keeper, reader;

	keeper = client_start(keeper_main, &keeper_in, &out);
	ck_assert(client_hear(out));
	reader = client_start(reader_main, &in, &out);
	client_assert_ok(reader);
	close(keeper_in);
	client_assert_ok(keeper);
}
END_TEST

/* Writes random bytes over all that it shares with anybody, fills its event fds and makes them block. */
static void hostile_main(int in, int out)
{
	uint64_t x = 88172645463325252ull ^ getpid(), full = UINT64_MAX - 1;
	struct client c;
	char line[512];
	FILE *maps;

	client_begin(&c);
	client_launch(&c, "spin", 2, (uintptr_t)c.device, 0, 1);
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
	client_say(out);
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

	client_assert_ok(client_start(client_memory, &in, &out));
	ck_assert(wait_until(client_no_engine, NULL, 10000));
	client_level_remember();
	for (unsigned i = 0; i < 2; i++) {
		hostile[i] = client_start(hostile_main, &hostile_in[i], &out);
		ck_assert(client_hear(out));
		close(out);
	}
	for (unsigned i = 0; i < 2; i++)
		good[i] = client_start(client_worker, &in, &out);
	for (unsigned i = 0; i < 2; i++)
		client_assert_ok(good[i]);
	for (unsigned i = 0; i < 2; i++) {
		client_say(hostile_in[i]);
		client_assert_ok(hostile[i]);
		close(hostile_in[i]);
	}
	ck_assert(wait_until(client_level_is_back, NULL, 10000));
	client_assert_ok(client_start(client_memory, &in, &out));
}
END_TEST

static void touch_main(int in, int out)
{
	struct client c;

	(void)in;
	(void)out;
	client_begin(&c);
	signal(SIGSEGV, SIG_DFL); /* a sanitizer would make something else of it */
	*(volatile uint64_t *)c.device = 1; /* as on a card: not the host's memory */
}

START_TEST(host_code_cannot_touch_device_memory)
{
	int in, out, status;

	status = wait_for(client_start(touch_main, &in, &out), 20000);
	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
}
END_TEST

/* ---- a device whose memory no client can see ------------------------------------------------- */

static void setup_hidden(void)
{
	npud_start(&client_npud, "[device]\nsim_memory = 1G\nsim_host_visible = no\n");
}

static void copies_main(int in, int out)
{
	enum { N = 6 * MIB };
	uint8_t *a = malloc(N), *b = malloc(N), *pinned, flipped;
	struct client c;
	uint8_t *p, *q;

	(void)in;
	client_begin(&c);
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
	client_say(out);
	client_work(&c, 1000);
	client_end(&c);
}

START_TEST(every_copy_is_right)
{
	int in, out;

	client_assert_ok(client_start(copies_main, &in, &out));
}
END_TEST

START_TEST(hidden_memory_is_not_mapped_by_clients)
{
	int keeper_in, out;
	pid_t keeper;

	/* The keeper finds the slab and pinned memory, but what it writes never shows in a copy. */
	keeper = client_start(keeper_main, &keeper_in, &out);
	ck_assert(client_hear(out));
	client_assert_ok(client_start(reader_main, &(int){ 0 }, &out));
	close(keeper_in);
	client_assert_ok(keeper);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("isolation");
	SRunner *r;
	TCase *t;
	int failed;

	t = tcase_create("visible memory");
	tcase_set_timeout(t, 120);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, memory_of_one_client_never_reaches_another);
	tcase_add_test(t, a_client_that_scribbles_hurts_nobody);
	tcase_add_test(t, host_code_cannot_touch_device_memory);
	tcase_add_test(t, every_copy_is_right);
	suite_add_tcase(s, t);
	t = tcase_create("hidden memory");
	tcase_set_timeout(t, 120);
	tcase_add_checked_fixture(t, setup_hidden, teardown);
	tcase_add_test(t, every_copy_is_right);
	tcase_add_test(t, hidden_memory_is_not_mapped_by_clients);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
