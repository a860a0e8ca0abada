/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images, kernels, their arguments in every form, and callbacks with a device; and what is refused.
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
#include "tests/lib/runner.h"

#define H2D ACL_MEMCPY_HOST_TO_DEVICE
#define D2H ACL_MEMCPY_DEVICE_TO_HOST

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
	SAYS(RT_PARAM, path, aclrtBinaryLoadFromFile(file("int main;", 9), NULL, &image));
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
	SAYS(RT_PARAM, "parameter 3", aclrtKernelArgsAppend(list, &step, 8, &other));
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
	static const aclrtPlaceHolderInfo wrong[] = {
		{ 4, 0 },
		{ sizeof(struct map_args), 0 },
		{ ~0u & ~7u, 0 },
		{ 8, sizeof(struct map_args) },
	};
	struct map map;
	char *device, own[64];

	map_begin(&map);
	device = api_malloc(64);
	SAYS(RT_PARAM, "map",
	     aclrtLaunchKernelWithHostArgs(map.kernel, 1, NULL, NULL, &map.args, 32, NULL, 0));
	CODE(RT_PARAM,
	     aclrtLaunchKernelWithHostArgs(map.kernel, 1, NULL, NULL, &map.args, 0, NULL, 0));
	CODE(RT_PARAM, aclrtLaunchKernel(map.kernel, 1, device, 32, NULL));
	CODE(RT_PARAM, aclrtLaunchKernel(map.kernel, 1, own, sizeof(map.args), NULL));
	CODE(RT_PARAM, aclrtLaunchKernel(map.kernel, 1, device + 1, sizeof(map.args), NULL));
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		aclrtPlaceHolderInfo holder = wrong[i];

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
	uint64_t actual = 0, step = 0, *gate;
	aclrtFuncHandle hold;

	api_begin();
	OK(aclrtGetOpTimeOutInterval(&step));
	OK(aclrtSetOpExecuteTimeOutV2(step / 2 + 1, &actual));
	ck_assert_uint_eq(actual, step);
	OK(aclrtSetOpExecuteTimeOut(0));
	OK(aclrtSetOpWaitTimeout(0));
	hold = api_kernel(api_image(), "hold");
	gate = api_malloc(8);
	OK(aclrtMemset(gate, 8, 0, 8)); /* closed for good */
	OK(aclrtLaunchKernelWithHostArgs(hold, 1, NULL, &cfg, &gate, 8, NULL, 0));
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

/* Before it is subscribed, then what is due. */
static void report_loop(void *arg)
{
	uint64_t self = (uint64_t)pthread_self();

	(void)arg;
	CODE(ACL_ERROR_RT_THREAD_SUBSCRIBE, aclrtProcessReport(1));
	OK(aclrtSetDevice(0));
	OK(aclrtSubscribeReport(self, NULL));
	CODE(ACL_ERROR_RT_STREAM_SUBSCRIBE, aclrtSubscribeReport(self, NULL));
	SAYS(507012, "EE1002", aclrtProcessReport(1));
	OK(aclrtLaunchCallback(first, NULL, ACL_CALLBACK_NO_BLOCK, NULL));
	OK(aclrtLaunchCallback(second, "b", ACL_CALLBACK_BLOCK, NULL));
	while (strlen(order) < 2)
		OK(aclrtProcessReport(20000));
	OK(aclrtSynchronizeStream(NULL));
	OK(aclrtUnSubscribeReport(self, NULL));
	CODE(ACL_ERROR_RT_THREAD_SUBSCRIBE, aclrtUnSubscribeReport(self, NULL));
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
	Suite *suite = suite_create("api_kernels");
	TCase *seen = tcase_create("host sees device memory");
	TCase *hidden = tcase_create("host does not see it");

	tcase_set_timeout(seen, 60);
	tcase_add_unchecked_fixture(seen, setup, teardown);
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
	tcase_add_test(hidden, images_that_are_none);
	tcase_add_test(hidden, arguments_in_every_form);
	tcase_add_test(hidden, arguments_in_lists);
	tcase_add_test(hidden, a_launch_can_have_a_limit);
	tcase_add_test(hidden, callbacks_of_the_host);
	suite_add_tcase(suite, hidden);
	return run_suite(suite);
}
