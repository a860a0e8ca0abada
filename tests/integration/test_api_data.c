/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory, copies, kernels and callbacks with a device: results byte by byte, and the codes for
 * what is wrong.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/lib/api.h"
#include "tests/lib/npud_fixture.h"

#define MIB (1u << 20)
#define H2D ACL_MEMCPY_HOST_TO_DEVICE
#define D2H ACL_MEMCPY_DEVICE_TO_HOST
#define D2D ACL_MEMCPY_DEVICE_TO_DEVICE

static struct npud_fixture npud;

static void setup(void)
{
	npud_start(&npud, NULL);
}

static void setup_hidden(void)
{
	npud_start(&npud, "[device]\nsim_host_visible = no\n");
}

static void teardown(void)
{
	npud_stop(&npud);
}

static void fill(uint8_t *bytes, size_t n, uint32_t seed)
{
	for (size_t i = 0; i < n; i++) {
		seed = seed * 1664525 + 1013904223;
		bytes[i] = (uint8_t)(seed >> 24);
	}
}

static void *pinned(size_t size)
{
	void *address;

	OK(aclrtMallocHost(&address, size));
	return address;
}

/* ---- memory ---- */

START_TEST(allocations)
{
	static const size_t sizes[] = { 1, 31, 32, 33, 4096, 65536, MIB, 3 * MIB + 5, 40 * MIB };
	size_t before, after, total;
	void *addresses[9], *memory = &before;

	api_begin();
	OK(aclrtGetMemInfo(ACL_HBM_MEM, &before, &total));
	ck_assert(before <= total && before > 64 * MIB);
	for (unsigned i = 0; i < 9; i++) {
		uint8_t last = 0xee;

		addresses[i] = api_malloc(sizes[i]);
		ck_assert_uint_eq((uintptr_t)addresses[i] % 64, 0);
		/* the padding is usable as well */
		OK(aclrtMemset(addresses[i], sizes[i] + 32, 0x5a, sizes[i] + 32));
		OK(aclrtMemcpy(&last, 1, (uint8_t *)addresses[i] + sizes[i] + 31, 1, D2H));
		ck_assert_uint_eq(last, 0x5a);
	}
	OK(aclrtGetMemInfo(ACL_HBM_MEM, &after, &total));
	ck_assert_uint_le(after, before - 44 * MIB);
	for (unsigned i = 0; i < 9; i++) {
		OK(aclrtFree(addresses[i]));
		CODE(RT_PARAM, aclrtFree(addresses[i])); /* twice */
	}
	SAYS(207001, "EL0004", aclrtMalloc(&memory, total + MIB, ACL_MEM_MALLOC_HUGE_FIRST));
	CODE(207001, aclrtMalloc(&memory, (size_t)1 << 62, ACL_MEM_MALLOC_NORMAL_ONLY));
	CODE(207001, aclrtMalloc(&memory, SIZE_MAX, ACL_MEM_MALLOC_NORMAL_ONLY));
	CODE(207000, aclrtMalloc(&memory, 1, ACL_MEM_MALLOC_HUGE1G_ONLY));
	ck_assert_ptr_eq(memory, &before);
	OK(aclrtMalloc(&memory, 1, ACL_MEM_MALLOC_HUGE_ONLY));
	OK(aclrtFree(memory));
	OK(aclrtMallocAlign32(&memory, 5, ACL_MEM_MALLOC_NORMAL_ONLY));
	OK(aclrtFree(memory));
	api_end();
}
END_TEST

START_TEST(addresses_that_are_none)
{
	aclrtPtrAttributes what = { 0 };
	uint8_t *device, *host, own[8];

	api_begin();
	device = api_malloc(4096);
	host = pinned(4096);
	CODE(RT_PARAM, aclrtFree(device + 64)); /* inside */
	CODE(RT_PARAM, aclrtFree(host));	/* the other kind */
	CODE(RT_PARAM, aclrtFreeHost(device));
	CODE(RT_PARAM, aclrtFree(own));
	CODE(RT_PARAM, aclrtFreeHost(own));
	CODE(RT_PARAM, aclrtFree((void *)1));
	CODE(RT_PARAM, aclrtFree((void *)0x7e8000000000));
	OK(aclrtPointerGetAttributes(device + 100, &what));
	ck_assert_int_eq(what.location.type, ACL_MEM_LOCATION_TYPE_DEVICE);
	ck_assert_uint_eq(what.location.id, 0);
	ck_assert_uint_ge(what.pageSize, 4096);
	OK(aclrtPointerGetAttributes(host + 4095, &what));
	ck_assert_int_eq(what.location.type, ACL_MEM_LOCATION_TYPE_HOST);
	OK(aclrtPointerGetAttributes(own, &what));
	ck_assert_int_eq(what.location.type, ACL_MEM_LOCATION_TYPE_UNREGISTERED);
	OK(aclrtPointerGetAttributes((void *)1, &what));
	ck_assert_int_eq(what.location.type, ACL_MEM_LOCATION_TYPE_UNREGISTERED);
	fill(host, 4096, 1); /* a program's to use */
	OK(aclrtFreeHost(host));
	CODE(RT_PARAM, aclrtFreeHost(host));
	OK(aclrtFree(device));
	CODE(RT_PARAM, aclrtMemset(device, 8, 0, 8)); /* after free */
	api_end();
}
END_TEST

/* ---- copies ---- */

/* Every direction, in place of each kind that names it, synchronous and queued. */
START_TEST(copies_in_every_direction)
{
	static const size_t sizes[] = { 1, 7, 4096, 100001, MIB + 3, 5 * MIB };
	uint8_t *a = malloc(5 * MIB), *b = malloc(5 * MIB), *p, *q, *d, *e;
	aclrtStream stream;

	api_begin();
	OK(aclrtCreateStream(&stream));
	p = pinned(5 * MIB);
	q = pinned(5 * MIB);
	d = api_malloc(5 * MIB);
	e = api_malloc(5 * MIB);
	for (unsigned i = 0; i < 6; i++) {
		size_t n = sizes[i];

		fill(a, n, i);
		OK(aclrtMemcpy(d, n, a, n, H2D));
		OK(aclrtMemcpy(e, n, d, n, D2D));
		OK(aclrtMemcpy(q, n, e, n, ACL_MEMCPY_DEFAULT)); /* pinned */
		OK(aclrtMemcpy(b, n, q, n, ACL_MEMCPY_HOST_TO_HOST));
		ck_assert(!memcmp(a, b, n));

		fill(p, n, i + 100);
		memset(q, 0, n);
		OK(aclrtMemcpyAsync(d, n, p, n, H2D, stream));
		OK(aclrtMemcpyAsync(e, n, d, n, D2D, stream));
		OK(aclrtMemcpyAsync(q, n, e, n, D2H, stream));
		OK(aclrtSynchronizeStream(stream));
		ck_assert(!memcmp(p, q, n));

		fill(a, n, i + 200); /* of the program: complete on return, in stream order */
		OK(aclrtMemcpyAsync(d, n, a, n, ACL_MEMCPY_DEFAULT, stream));
		memset(a, 0, n);
		OK(aclrtMemcpyAsync(b, n, d, n, ACL_MEMCPY_DEFAULT, stream));
		fill(a, n, i + 200);
		OK(aclrtSynchronizeStream(stream));
		ck_assert(!memcmp(a, b, n));
	}
	free(a);
	free(b);
	api_end();
}
END_TEST

START_TEST(rows_in_every_direction)
{
	enum { WIDTH = 100, HEIGHT = 37, PITCH = 128, OTHER = 160 };
	uint8_t a[OTHER * HEIGHT], b[OTHER * HEIGHT], *p, *q, *d;
	aclrtStream stream;

	api_begin();
	OK(aclrtCreateStream(&stream));
	p = pinned(sizeof(a));
	q = pinned(sizeof(a));
	d = api_malloc(PITCH * HEIGHT);
	for (unsigned queued = 0; queued < 2; queued++) {
		uint8_t *from = queued ? p : a, *to = queued ? q : b;

		fill(from, sizeof(a), queued + 5);
		memset(to, 0xcc, sizeof(b));
		OK(aclrtMemset(d, PITCH * HEIGHT, 0x11, PITCH * HEIGHT));
		if (queued) {
			OK(aclrtMemcpy2dAsync(d, PITCH, from, OTHER, WIDTH, HEIGHT, H2D, stream));
			OK(aclrtMemcpy2dAsync(to, OTHER, d, PITCH, PITCH, HEIGHT, D2H, stream));
			OK(aclrtSynchronizeStream(stream));
		} else {
			OK(aclrtMemcpy2d(d, PITCH, from, OTHER, WIDTH, HEIGHT, H2D));
			OK(aclrtMemcpy2d(to, OTHER, d, PITCH, PITCH, HEIGHT, ACL_MEMCPY_DEFAULT));
		}
		for (unsigned y = 0; y < HEIGHT; y++)
			for (unsigned x = 0; x < OTHER; x++) {
				uint8_t want = x < WIDTH ? from[y * OTHER + x] :
					       x < PITCH ? 0x11 :
							   0xcc;

				ck_assert_msg(to[y * OTHER + x] == want, "queued %u row %u byte %u",
					      queued, y, x);
			}
	}
	CODE(RT_PARAM, aclrtMemcpy2d(d, PITCH, a, PITCH, PITCH, MIB, H2D)); /* leaves the memory */
	CODE(RT_PARAM, aclrtMemcpy2dAsync(d, PITCH, p, PITCH, PITCH, MIB, H2D, stream));
	OK(aclrtSynchronizeStream(stream));
	api_end();
}
END_TEST

START_TEST(fills_and_ranges)
{
	uint8_t *d, *p, *q, host[256];
	aclrtStream stream;

	api_begin();
	OK(aclrtCreateStream(&stream));
	d = api_malloc(MIB);
	p = pinned(256);
	q = api_malloc(8 * MIB);
	OK(aclrtMemset(d, MIB, 0x1234, 256)); /* the low byte */
	OK(aclrtMemsetAsync(d + 3, 256, -1, 5, stream));
	OK(aclrtMemset(p, 256, 9, 256));
	OK(aclrtSynchronizeStream(stream));
	OK(aclrtMemcpy(host, 256, d, 256, D2H));
	for (unsigned i = 0; i < 256; i++) {
		ck_assert_uint_eq(host[i], i >= 3 && i < 8 ? 0xff : 0x34);
		ck_assert_uint_eq(p[i], 9);
	}
	OK(aclrtMemsetAsync(p, 256, 8, 256, stream));
	OK(aclrtSynchronizeStream(stream));
	ck_assert_uint_eq(p[255], 8);

	/* over the end of what was allocated, by far or where the window ends */
	CODE(RT_PARAM, aclrtMemset(q, 1ull << 40, 0, 16 * MIB));
	CODE(RT_PARAM, aclrtMemset(q, SIZE_MAX, 0, SIZE_MAX));
	CODE(RT_PARAM, aclrtMemcpy(q, 16 * MIB, d, 16 * MIB, D2D));
	CODE(RT_PARAM, aclrtMemcpy(host, 16 * MIB, q, 16 * MIB, D2H));
	CODE(RT_PARAM, aclrtMemcpyAsync(q, 16 * MIB, d, 16 * MIB, D2D, stream));
	CODE(RT_PARAM, aclrtMemsetAsync(q, 16 * MIB, 0, 16 * MIB, stream));
	CODE(RT_PARAM, aclrtMemcpy((void *)0x7e8fff000000, 8, host, 8, H2D));
	CODE(207000, aclrtMemcpyAsync(host, 8, host + 8, 8, ACL_MEMCPY_DEFAULT, stream));
	OK(aclrtSynchronizeStream(stream));
	api_end();
}
END_TEST

/* ---- images ---- */

static char dir[64], path[96];

static const char *file(const void *bytes, size_t n)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, bytes, n), (ssize_t)n);
	close(fd);
	return path;
}

START_TEST(images_that_are_none)
{
	aclrtBinHandle image = &path;
	char *good, *bytes;
	struct stat st;
	int fd;

	snprintf(dir, sizeof(dir), "/tmp/npud-image.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/kernel.npuk", dir);
	fd = open(NPU_API_KERNELS, O_RDONLY | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fstat(fd, &st), 0);
	good = malloc((size_t)st.st_size);
	ck_assert_int_eq(read(fd, good, (size_t)st.st_size), st.st_size);
	close(fd);

	OK(aclInit(NULL));
	CODE(RT_CONTEXT, aclrtBinaryLoadFromFile(NPU_API_KERNELS, NULL, &image));
	OK(aclrtSetDevice(0));
	SAYS(107009, path, aclrtBinaryLoadFromFile(path, NULL, &image));
	SAYS(107009, dir, aclrtBinaryLoadFromFile(dir, NULL, &image));
	SAYS(RT_PARAM, path, aclrtBinaryLoadFromFile(file("", 0), NULL, &image));
	SAYS(RT_PARAM, path, aclrtBinaryLoadFromFile(file("int main(void);", 15), NULL, &image));
	SAYS(RT_PARAM, path, aclrtBinaryLoadFromFile(file(good, 64), NULL, &image));
	for (unsigned part = 1; part < 8; part++)
		SAYS(RT_PARAM, path,
		     aclrtBinaryLoadFromFile(file(good, (size_t)st.st_size * part / 8), NULL,
					     &image));
	bytes = malloc((size_t)st.st_size);
	fill((uint8_t *)bytes, (size_t)st.st_size, 3);
	CODE(RT_PARAM, aclrtBinaryLoadFromData(bytes, (size_t)st.st_size, NULL, &image));
	ck_assert_ptr_eq(image, &path);
	OK(aclrtBinaryLoadFromData(good, (size_t)st.st_size, NULL, &image));
	OK(aclrtBinaryUnLoad(image));
	free(good);
	free(bytes);
	unlink(path);
	rmdir(dir);
	api_end();
}
END_TEST

START_TEST(handles_of_images_that_are_none)
{
	aclrtArgsHandle list = &path;
	aclrtFuncHandle kernel = &path, old;
	aclrtBinHandle image;
	aclrtParamHandle param;
	uint64_t word = 0;

	api_begin();
	image = api_image();
	SAYS(507027, "no_such_kernel", aclrtBinaryGetFunction(image, "no_such_kernel", &kernel));
	CODE(507027, aclrtBinaryGetFunction(image, "", &kernel));
	CODE(RT_HANDLE, aclrtBinaryGetFunction((void *)0x1234, "hold", &kernel));
	ck_assert_ptr_eq(kernel, &path);
	old = api_kernel(image, "hold");
	ck_assert_ptr_eq(old, api_kernel(image, "hold"));
	OK(aclrtKernelArgsInit(old, &list));
	OK(aclrtKernelArgsAppend(list, &word, 8, &param));
	OK(aclrtKernelArgsFinalize(list));
	CODE(RT_HANDLE, aclrtBinaryUnLoad(old));
	OK(aclrtBinaryUnLoad(image));
	for (unsigned again = 0; again < 2; again++) {
		void *memory = api_malloc(8);

		CODE(RT_HANDLE, aclrtBinaryUnLoad(image));
		CODE(RT_HANDLE, aclrtBinaryGetFunction(image, "hold", &kernel));
		CODE(RT_HANDLE, aclrtLaunchKernel(old, 1, memory, 8, NULL));
		CODE(RT_HANDLE, aclrtLaunchKernelV2(old, 1, memory, 8, NULL, NULL));
		CODE(RT_HANDLE,
		     aclrtLaunchKernelWithHostArgs(old, 1, NULL, NULL, &word, 8, NULL, 0));
		CODE(RT_HANDLE, aclrtLaunchKernelWithConfig(old, 1, NULL, NULL, list, NULL));
		CODE(RT_HANDLE, aclrtKernelArgsFinalize(list));
		CODE(RT_HANDLE, aclrtKernelArgsInit(old, &kernel));
		image = api_image(); /* perhaps in the same place */
		api_kernel(image, "hold");
		OK(aclrtBinaryUnLoad(image));
	}
	ck_assert_ptr_eq(kernel, &path);
	OK(aclrtSynchronizeStream(NULL));
	api_end();
}
END_TEST

/* ---- launches ---- */

enum { N = 1000 };

struct step {
	uint8_t a;
	uint32_t b;
};

/* Arguments of the kernel "map" as they lie in memory. */
struct map_args {
	uint64_t to, from, n, scale;
	struct step step;
};

struct map {
	aclrtBinHandle image;
	aclrtFuncHandle kernel;
	uint32_t *to, *from;
	uint32_t numbers[N];
	struct map_args args;
};

static void map_begin(struct map *map)
{
	api_begin();
	map->image = api_image();
	map->kernel = api_kernel(map->image, "map");
	map->to = api_malloc(N * 4);
	map->from = api_malloc(N * 4);
	for (uint32_t i = 0; i < N; i++)
		map->numbers[i] = i * i;
	OK(aclrtMemcpy(map->from, N * 4, map->numbers, N * 4, H2D));
	map->args = (struct map_args){ .to = (uintptr_t)map->to,
				       .from = (uintptr_t)map->from,
				       .n = N,
				       .scale = (uint16_t)-3,
				       .step = { 1, 5 } };
}

static void map_check(struct map *map, uint32_t bias)
{
	uint32_t got[N];

	OK(aclrtSynchronizeStream(NULL));
	OK(aclrtMemcpy(got, sizeof(got), map->to, sizeof(got), D2H));
	for (uint32_t i = 0; i < N; i++)
		ck_assert_uint_eq(got[i], map->numbers[i] * (uint32_t)-3 + bias);
	OK(aclrtMemset(map->to, N * 4, 0, N * 4));
}

START_TEST(arguments_in_every_form)
{
	aclrtLaunchKernelAttr attr = { ACL_RT_LAUNCH_KERNEL_ATTR_TIMEOUT, .value.timeout = 30 };
	aclrtLaunchKernelCfg cfg = { &attr, 1 };
	aclrtPlaceHolderInfo holder = { 8, sizeof(struct map_args) };
	struct {
		struct map_args args;
		uint32_t numbers[N];
	} block;
	struct map map;
	void *device;

	map_begin(&map);
	device = api_malloc(sizeof(map.args));
	OK(aclrtMemcpy(device, sizeof(map.args), &map.args, sizeof(map.args), H2D));
	OK(aclrtLaunchKernel(map.kernel, 7, device, sizeof(map.args), NULL));
	map_check(&map, 6);
	OK(aclrtLaunchKernelV2(map.kernel, N + 1, device, sizeof(map.args), &cfg, NULL));
	map_check(&map, 6);
	map.args.step.b = 7;
	OK(aclrtLaunchKernelWithHostArgs(map.kernel, 1, NULL, NULL, &map.args, sizeof(map.args),
					 NULL, 0));
	map_check(&map, 8);
	/* the numbers travel with the arguments */
	block.args = map.args;
	block.args.from = 0;
	for (uint32_t i = 0; i < N; i++)
		block.numbers[i] = map.numbers[i] = i + 5;
	OK(aclrtLaunchKernelWithHostArgs(map.kernel, 3, NULL, &cfg, &block, sizeof(block), &holder,
					 1));
	memset(&block, 0xff, sizeof(block)); /* copied before the call returned */
	map_check(&map, 8);
	OK(aclrtLaunchKernelWithHostArgs(api_kernel(map.image, "empty"), 1, NULL, NULL, NULL, 0,
					 NULL, 0));
	OK(aclrtLaunchKernel(api_kernel(map.image, "empty"), 2, NULL, 0, NULL));
	OK(aclrtSynchronizeStream(NULL));
	api_end();
}
END_TEST

START_TEST(arguments_in_lists)
{
	aclrtParamHandle holder, n, step_param, other;
	struct step step = { 2, 9 };
	aclrtArgsHandle list;
	struct map map;
	int16_t scale = -3;
	uint32_t count = N, *numbers;
	void *buffer;

	map_begin(&map);
	OK(aclrtKernelArgsInit(map.kernel, &list));
	OK(aclrtKernelArgsAppend(list, &map.to, 8, &other));
	OK(aclrtKernelArgsAppendPlaceHolder(list, &holder));
	OK(aclrtKernelArgsAppend(list, &count, 4, &n));
	SAYS(RT_PARAM, "parameter 3", aclrtKernelArgsAppend(list, &scale, 4, &other));
	OK(aclrtKernelArgsAppend(list, &scale, 2, &other));
	OK(aclrtKernelArgsAppend(list, &step, sizeof(step), &step_param));
	OK(aclrtKernelArgsGetPlaceHolderBuffer(list, holder, N * 4, &buffer));
	numbers = buffer;
	memcpy(numbers, map.numbers, N * 4);
	CODE(RT_PARAM, aclrtLaunchKernelWithConfig(map.kernel, 4, NULL, NULL, list, NULL));
	OK(aclrtKernelArgsFinalize(list));
	for (unsigned i = 0; i < 3; i++) {
		numbers[0] = map.numbers[0] = i;
		OK(aclrtLaunchKernelWithConfig(map.kernel, 4, NULL, NULL, list, NULL));
		map_check(&map, 11 + i);
		step.b++;
		OK(aclrtKernelArgsParaUpdate(list, step_param, &step, sizeof(step)));
		OK(aclrtKernelArgsFinalize(list));
	}
	CODE(RT_PARAM, aclrtLaunchKernelWithConfig(api_kernel(map.image, "empty"), 4, NULL, NULL,
						   list, NULL));
	api_end();
}
END_TEST

START_TEST(launches_that_are_refused)
{
	aclrtPlaceHolderInfo holder = { 8, 0 };
	struct map map;
	void *device;
	char own[64];

	map_begin(&map);
	device = api_malloc(64);
	SAYS(RT_PARAM, "map",
	     aclrtLaunchKernelWithHostArgs(map.kernel, 1, NULL, NULL, &map.args, 32, NULL, 0));
	CODE(RT_PARAM,
	     aclrtLaunchKernelWithHostArgs(map.kernel, 1, NULL, NULL, &map.args, 0, NULL, 0));
	CODE(RT_PARAM, aclrtLaunchKernel(map.kernel, 1, device, 32, NULL));
	CODE(RT_PARAM, aclrtLaunchKernel(map.kernel, 1, own, sizeof(map.args), NULL));
	CODE(RT_PARAM,
	     aclrtLaunchKernel(map.kernel, 1, (char *)device + 1, sizeof(map.args), NULL));
	/* placeholders outside, or not aligned */
	for (unsigned i = 0; i < 4; i++) {
		static const aclrtPlaceHolderInfo wrong[] = {
			{ 4, 0 }, { 40, 0 }, { ~0u & ~7u, 0 }, { 8, sizeof(struct map_args) }
		};

		holder = wrong[i];
		CODE(RT_PARAM, aclrtLaunchKernelWithHostArgs(map.kernel, 1, NULL, NULL, &map.args,
							     sizeof(map.args), &holder, 1));
	}
	CODE(RT_HANDLE, aclrtLaunchKernel((void *)0x1234, 1, device, 8, NULL));
	CODE(RT_HANDLE, aclrtLaunchKernel(map.image, 1, device, 8, NULL));
	OK(aclrtSynchronizeStream(NULL)); /* nothing was queued */
	api_end();
}
END_TEST

START_TEST(a_launch_can_have_a_limit)
{
	aclrtLaunchKernelAttr attr = { ACL_RT_LAUNCH_KERNEL_ATTR_TIMEOUT_US,
				       .value.timeoutUs.timeoutLow = 100000 };
	aclrtLaunchKernelCfg cfg = { &attr, 1 };
	aclrtBinHandle image;
	uint64_t actual = 0, step = 0, address;
	struct api_gate gate;

	api_begin();
	image = api_image();
	OK(aclrtGetOpTimeOutInterval(&step));
	OK(aclrtSetOpExecuteTimeOutV2(step / 2 + 1, &actual));
	ck_assert_uint_eq(actual, step);
	OK(aclrtSetOpExecuteTimeOut(0));
	OK(aclrtSetOpWaitTimeout(0));
	api_gate_close(&gate, image, NULL);
	api_gate_open(&gate);
	OK(aclrtMemset(gate.gate, 8, 0, 8));
	address = (uintptr_t)gate.gate;
	/* the first one may still see the gate closed again: open it for good */
	api_gate_open(&gate);
	OK(aclrtSynchronizeStream(NULL));
	OK(aclrtMemset(gate.gate, 8, 0, 8));
	OK(aclrtLaunchKernelWithHostArgs(api_kernel(image, "hold"), 1, NULL, &cfg, &address, 8,
					 NULL, 0));
	SAYS(507014, "hold", aclrtSynchronizeStream(NULL));
	OK(aclrtSynchronizeStream(NULL));
	api_end();
}
END_TEST

/* ---- callbacks ---- */

static char order[16];

static void first(void *arg)
{
	(void)arg;
	strcat(order, "a");
}

static void second(void *arg)
{
	strcat(order, arg);
}

static void report_loop(void *arg)
{
	/* before it is subscribed, then what is due */
	(void)arg;
	CODE(ACL_ERROR_RT_THREAD_SUBSCRIBE, aclrtProcessReport(1));
	OK(aclrtSetDevice(0));
	OK(aclrtSubscribeReport((uint64_t)pthread_self(), NULL));
	CODE(ACL_ERROR_RT_STREAM_SUBSCRIBE, aclrtSubscribeReport((uint64_t)pthread_self(), NULL));
	SAYS(507012, "EE1002", aclrtProcessReport(1));
	OK(aclrtLaunchCallback(first, NULL, ACL_CALLBACK_NO_BLOCK, NULL));
	OK(aclrtLaunchCallback(second, "b", ACL_CALLBACK_BLOCK, NULL));
	while (strlen(order) < 2)
		OK(aclrtProcessReport(20000));
	OK(aclrtSynchronizeStream(NULL));
	OK(aclrtUnSubscribeReport((uint64_t)pthread_self(), NULL));
	CODE(ACL_ERROR_RT_THREAD_SUBSCRIBE, aclrtUnSubscribeReport((uint64_t)pthread_self(), NULL));
	OK(aclrtResetDevice(0));
}

START_TEST(callbacks_of_the_host)
{
	aclrtBinHandle image;
	struct api_gate gate;
	aclrtStream stream;

	api_begin();
	image = api_image();
	OK(aclrtCreateStream(&stream));
	CODE(ACL_ERROR_RT_STREAM_NO_CB_REG,
	     aclrtLaunchCallback(first, NULL, ACL_CALLBACK_BLOCK, stream));
	api_gate_close(&gate, image, stream);
	OK(aclrtLaunchHostFunc(stream, first, NULL));
	OK(aclrtLaunchHostFunc(stream, second, "b"));
	CODE(507046, aclrtSynchronizeStreamWithTimeout(stream, 5));
	ck_assert_str_eq(order, "");
	api_gate_open(&gate);
	OK(aclrtSynchronizeStream(stream));
	ck_assert_str_eq(order, "ab");
	order[0] = 0;
	api_on_thread(report_loop, NULL);
	ck_assert_str_eq(order, "ab");
	api_end();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("api_data");
	TCase *seen = tcase_create("host sees device memory");
	TCase *hidden = tcase_create("host does not see it");
	SRunner *runner;
	int failed;

	tcase_set_timeout(seen, 60);
	tcase_add_unchecked_fixture(seen, setup, teardown);
	tcase_add_test(seen, allocations);
	tcase_add_test(seen, addresses_that_are_none);
	tcase_add_test(seen, copies_in_every_direction);
	tcase_add_test(seen, rows_in_every_direction);
	tcase_add_test(seen, fills_and_ranges);
	tcase_add_test(seen, images_that_are_none);
	tcase_add_test(seen, handles_of_images_that_are_none);
	tcase_add_test(seen, arguments_in_every_form);
	tcase_add_test(seen, arguments_in_lists);
	tcase_add_test(seen, launches_that_are_refused);
	tcase_add_test(seen, a_launch_can_have_a_limit);
	tcase_add_test(seen, callbacks_of_the_host);
	suite_add_tcase(suite, seen);
	tcase_set_timeout(hidden, 60);
	tcase_add_unchecked_fixture(hidden, setup_hidden, teardown);
	tcase_add_test(hidden, allocations);
	tcase_add_test(hidden, copies_in_every_direction);
	tcase_add_test(hidden, rows_in_every_direction);
	tcase_add_test(hidden, fills_and_ranges);
	tcase_add_test(hidden, arguments_in_every_form);
	suite_add_tcase(suite, hidden);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
