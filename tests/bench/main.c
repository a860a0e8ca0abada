/* SPDX-License-Identifier: Apache-2.0 */
/*
 * npu-bench: what npud costs, against what the machine can do without it. One process, one run,
 * contestants interleaved; see README.md beside this file for the keys of bench.json. It starts an
 * npud and npu-sim of its own.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <acl/acl.h>
#include "tests/bench/bench.h"
#include "tests/lib/npud_fixture.h"

#define OK(call) do {                                                                    \
	int code_ = (call);                                                              \
	if (code_) {                                                                     \
		const char *text_ = aclGetRecentErrMsg();                                \
		fprintf(stderr, "npu-bench: %s: %d: %s\n", #call, code_, text_ ? text_ : ""); \
		exit(1);                                                                 \
	}                                                                                \
} while (0)

#define MIB (1ull << 20)

static aclrtStream stream;
static aclrtFuncHandle empty;

static void launch(void)
{
	uint64_t arg = 0;

	OK(aclrtLaunchKernelWithHostArgs(empty, 1, stream, NULL, &arg, sizeof(arg), NULL, 0));
}

static void bench_launches(void)
{
	struct samples submit, sync, burst;

	samples_init(&submit);
	samples_init(&sync);
	samples_init(&burst);
	for (unsigned i = 0; i < 2000; i++) {
		launch();
		OK(aclrtSynchronizeStream(stream));
	}
	for (unsigned round = 0; round < 40; round++) {
		for (unsigned i = 0; i < 1000; i++) {
			uint64_t begin = bench_now_ns();

			launch();
			OK(aclrtSynchronizeStream(stream));
			samples_add(&sync, bench_now_ns() - begin);
		}
		for (unsigned i = 0; i < 10; i++) {
			/* Half a ring, behind one that the device has just begun: nobody waits. */
			uint64_t begin = bench_now_ns();

			for (unsigned k = 0; k < 500; k++)
				launch();
			samples_add(&submit, (bench_now_ns() - begin) / 500.0);
			OK(aclrtSynchronizeStream(stream));
		}
		uint64_t begin = bench_now_ns();

		for (unsigned k = 0; k < 50000; k++)
			launch();
		OK(aclrtSynchronizeStream(stream));
		samples_add(&burst, (bench_now_ns() - begin) / 50000.0);
	}
	bench_figure("submit_ns", "submit one launch", samples_quantile(&submit, .5), "ns", 150);
	bench_figure("sync_awake_us", "launch + synchronise, device awake, p50",
		     samples_quantile(&sync, .5) / 1000, "us", 5);
	bench_figure("sync_awake_p99_us", "launch + synchronise, device awake, p99",
		     samples_quantile(&sync, .99) / 1000, "us", 0);
	bench_figure("back_to_back_ns", "a launch, back to back", samples_quantile(&burst, .5), "ns", 300);
	bench_figure("launches_per_s_1", "launches a second, one stream",
		     1e9 / samples_quantile(&burst, .5), "", 0);
	samples_fini(&submit);
	samples_fini(&sync);
	samples_fini(&burst);
}

/* One size of copies: memcpy, H2D, D2H in turn. */
static void bench_copy(size_t bytes, unsigned rounds, const char *const keys[2], const char *what)
{
	char *a = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	char *b = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	struct samples plain, up, down;
	char line[128];
	void *device;

	if (a == MAP_FAILED || b == MAP_FAILED) {
		fprintf(stderr, "npu-bench: no memory for copies of %zu MiB\n", bytes / (size_t)MIB);
		exit(1);
	}
	samples_init(&plain);
	samples_init(&up);
	samples_init(&down);
	memset(a, 1, bytes);
	OK(aclrtMalloc(&device, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
	for (unsigned i = 0; i <= rounds; i++) {
		uint64_t t[4] = { bench_now_ns() };

		memcpy(b, a, bytes);
		t[1] = bench_now_ns();
		OK(aclrtMemcpy(device, bytes, a, bytes, ACL_MEMCPY_HOST_TO_DEVICE));
		t[2] = bench_now_ns();
		OK(aclrtMemcpy(b, bytes, device, bytes, ACL_MEMCPY_DEVICE_TO_HOST));
		t[3] = bench_now_ns();
		if (!i)
			continue; /* touches everything once */
		samples_add(&plain, t[1] - t[0]);
		samples_add(&up, t[2] - t[1]);
		samples_add(&down, t[3] - t[2]);
	}
	/* Speed over speed, so the larger the better. */
	snprintf(line, sizeof(line), "copy to the device, %s, of memcpy's speed", what);
	bench_ratio(keys[0], strdup(line),
		    samples_quantile(&plain, .5) / samples_quantile(&up, .5), -0.9);
	snprintf(line, sizeof(line), "copy from the device, %s, of memcpy's speed", what);
	bench_ratio(keys[1], strdup(line),
		    samples_quantile(&plain, .5) / samples_quantile(&down, .5), -0.9);
	OK(aclrtFree(device));
	munmap(a, bytes);
	munmap(b, bytes);
	samples_fini(&plain);
	samples_fini(&up);
	samples_fini(&down);
}

static void bench_malloc(void)
{
	struct samples small, large, libc;
	void *p;

	samples_init(&small);
	samples_init(&large);
	samples_init(&libc);
	for (unsigned round = 0; round < 50; round++) {
		uint64_t begin = bench_now_ns();

		for (unsigned i = 0; i < 200; i++) {
			OK(aclrtMalloc(&p, 4096, ACL_MEM_MALLOC_HUGE_FIRST));
			OK(aclrtFree(p));
		}
		samples_add(&small, (bench_now_ns() - begin) / 200.0);
		begin = bench_now_ns();
		for (unsigned i = 0; i < 200; i++) {
			p = malloc(4096);
			__asm__ volatile("" : : "r"(p) : "memory");
			free(p);
		}
		samples_add(&libc, (bench_now_ns() - begin) / 200.0);
		begin = bench_now_ns();
		OK(aclrtMalloc(&p, 100 * MIB, ACL_MEM_MALLOC_HUGE_FIRST));
		OK(aclrtFree(p));
		samples_add(&large, bench_now_ns() - begin);
	}
	bench_figure("malloc4k_ns", "aclrtMalloc + aclrtFree of 4 KiB", samples_quantile(&small, .5), "ns", 0);
	bench_figure("libc_malloc4k_ns", "malloc + free of 4 KiB", samples_quantile(&libc, .5), "ns", 0);
	bench_figure("malloc100m_cold_us", "aclrtMalloc + aclrtFree of 100 MiB",
		     samples_quantile(&large, .5) / 1000, "us", 0);
	samples_fini(&small);
	samples_fini(&large);
	samples_fini(&libc);
}

static void bench_rpc(const char *socket_path)
{
	struct samples rpc, bare;
	struct echo echo;
	int fd = ping_open(socket_path);

	if (fd < 0 || echo_start(&echo) < 0) {
		fprintf(stderr, "npu-bench: no connection to %s: %s\n", socket_path, strerror(-fd));
		exit(1);
	}
	samples_init(&rpc);
	samples_init(&bare);
	for (unsigned round = 0; round < 60; round++) {
		for (unsigned i = 0; i < 100; i++) {
			uint64_t begin = bench_now_ns();

			if (ping(fd) < 0)
				exit(1);
			samples_add(&rpc, bench_now_ns() - begin);
		}
		for (unsigned i = 0; i < 100; i++) {
			uint64_t begin = bench_now_ns();

			if (echo_ping(&echo, 24) < 0)
				exit(1);
			samples_add(&bare, bench_now_ns() - begin);
		}
	}
	bench_ratio("rpc_over_seqpacket", "control round trip, over a bare SEQPACKET ping-pong",
		    samples_quantile(&rpc, .5) / samples_quantile(&bare, .5), 0);
	bench_figure("rpc_awake_us", "control round trip, p50", samples_quantile(&rpc, .5) / 1000, "us", 0);
	bench_figure("seqpacket_us", "bare SEQPACKET ping-pong, p50",
		     samples_quantile(&bare, .5) / 1000, "us", 0);
	echo_stop(&echo);
	close(fd);
	samples_fini(&rpc);
	samples_fini(&bare);
}

static void bench_idle(const struct npud_fixture *f)
{
	uint64_t begin, cpu, span;

	poll(NULL, 0, 500); /* everything falls asleep */
	begin = bench_now_ns();
	cpu = process_cpu_ns(f->npud, false) + process_cpu_ns(f->sim, true) +
	      process_cpu_ns(getpid(), false);
	poll(NULL, 0, 4000);
	cpu = process_cpu_ns(f->npud, false) + process_cpu_ns(f->sim, true) +
	      process_cpu_ns(getpid(), false) - cpu;
	span = bench_now_ns() - begin;
	bench_figure("idle_core_percent", "idle: npud, npu-sim and a client, of one core",
		     100.0 * cpu / span, "%", 0.5);
}

int main(int argc, char **argv)
{
	const char *json = argc > 1 ? argv[1] : "bench.json";
	struct npud_fixture f;
	aclrtBinHandle image;
	int misses;

	npud_start(&f, "[device]\nsim_memory = 2G\n");
	OK(aclInit(NULL));
	OK(aclrtSetDevice(0));
	OK(aclrtCreateStream(&stream));
	OK(aclrtBinaryLoadFromFile(NPU_BUILD_DIR "/tests/bench/bench_kernel.npuk", NULL, &image));
	OK(aclrtBinaryGetFunction(image, "empty", &empty));
	bench_launches();
	bench_copy(2 * MIB, 200, (const char *const[]){ "h2d_2m_over_memcpy", "d2h_2m_over_memcpy" },
		   "2 MiB");
	bench_copy(256 * MIB, 11,
		   (const char *const[]){ "h2d_256m_over_memcpy", "d2h_256m_over_memcpy" }, "256 MiB");
	bench_malloc();
	bench_rpc(f.socket);
	bench_idle(&f);
	misses = bench_report(stdout, json);
	OK(aclrtResetDevice(0));
	OK(aclFinalize());
	npud_stop(&f);
	return misses ? 1 : 0;
}
