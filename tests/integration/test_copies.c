/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of the library end to end: every direction of copy and fill, at once and in stream order,
 * on a device whose memory the host can map and on one where the device copies; bounds; reuse.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <acl/acl.h>
#include "tests/lib/npud_fixture.h"
#include "tests/lib/runner.h"

#define OK(call) ck_assert_int_eq(call, 0)
#define MAX	 ((size_t)5 << 20)

static struct npud_fixture npud;
static aclrtStream stream;
static unsigned char *host, *back;

/* One npud for each of the two kinds of device; each test is a client of its own. */
static void start_visible(void)
{
	npud_start(&npud, "[device]\nsim_host_visible = yes\n");
}

static void start_hidden(void)
{
	npud_start(&npud, "[device]\nsim_host_visible = no\n");
}

static void stop(void)
{
	npud_stop(&npud);
}

static void begin(void)
{
	OK(aclInit(NULL));
	OK(aclrtSetDevice(0));
	OK(aclrtCreateStream(&stream));
	host = malloc(MAX);
	back = malloc(MAX);
	for (size_t i = 0; i < MAX; i++)
		host[i] = (unsigned char)(i * 2654435761u >> 13);
}

static void end(void)
{
	OK(aclrtDestroyStream(stream));
	OK(aclrtResetDevice(0));
	OK(aclFinalize());
	free(host);
	free(back);
}

static const size_t sizes[] = { 1, 63, 4096, 65537, (1u << 20) - 1, 1u << 20, (1u << 20) + 1, MAX };

START_TEST(goes_there_and_back)
{
	size_t n = sizes[_i];
	void *a, *b, *pinned;

	OK(aclrtMalloc(&a, n, ACL_MEM_MALLOC_HUGE_FIRST));
	OK(aclrtMalloc(&b, n, ACL_MEM_MALLOC_NORMAL_ONLY));
	OK(aclrtMallocHost(&pinned, n));
	ck_assert_uint_eq((uintptr_t)a % 64, 0);

	/* at once: pageable, device, device, pinned, device, pageable */
	OK(aclrtMemcpy(a, n, host, n, ACL_MEMCPY_HOST_TO_DEVICE));
	OK(aclrtMemcpy(b, n, a, n, ACL_MEMCPY_DEVICE_TO_DEVICE));
	OK(aclrtMemcpy(pinned, n, b, n, ACL_MEMCPY_DEVICE_TO_HOST));
	ck_assert(!memcmp(pinned, host, n));
	OK(aclrtMemset(a, n, 0x5a, n));
	OK(aclrtMemcpy(back, n, a, n, ACL_MEMCPY_DEVICE_TO_HOST));
	for (size_t i = 0; i < n; i++)
		if (back[i] != 0x5a)
			ck_abort_msg("byte %zu is 0x%x", i, back[i]);
	OK(aclrtMemcpy(a, n, pinned, n, ACL_MEMCPY_HOST_TO_DEVICE));
	OK(aclrtMemcpy(back, n, a, n, ACL_MEMCPY_DEVICE_TO_HOST));
	ck_assert(!memcmp(back, host, n));

	/* in stream order; the source may be changed at once when it is pageable */
	memset(back, 0, n);
	OK(aclrtMemsetAsync(a, n, 0, n, stream));
	memcpy(back, host, n);
	OK(aclrtMemcpyAsync(a, n, back, n, ACL_MEMCPY_HOST_TO_DEVICE, stream));
	memset(back, 0xff, n);
	OK(aclrtMemcpyAsync(b, n, a, n, ACL_MEMCPY_DEVICE_TO_DEVICE, stream));
	OK(aclrtMemcpyAsync(back, n, b, n, ACL_MEMCPY_DEVICE_TO_HOST, stream));
	ck_assert(!memcmp(back, host, n)); /* pageable D2H is complete on return */
	memset(pinned, 0, n);
	OK(aclrtMemcpyAsync(pinned, n, b, n, ACL_MEMCPY_DEVICE_TO_HOST, stream));
	OK(aclrtSynchronizeStream(stream));
	ck_assert(!memcmp(pinned, host, n));

	OK(aclrtFree(a));
	OK(aclrtFree(b));
	OK(aclrtFreeHost(pinned));
}
END_TEST

START_TEST(rows_keep_their_pitch)
{
	const size_t width = 300, height = 200, pitch = 512;
	void *a, *b, *pinned;

	OK(aclrtMalloc(&a, pitch * height, ACL_MEM_MALLOC_HUGE_FIRST));
	OK(aclrtMalloc(&b, pitch * height, ACL_MEM_MALLOC_HUGE_FIRST));
	OK(aclrtMallocHost(&pinned, pitch * height));
	OK(aclrtMemset(a, pitch * height, 7, pitch * height));
	OK(aclrtMemcpy2d(a, pitch, host, width, width, height, ACL_MEMCPY_HOST_TO_DEVICE));
	OK(aclrtMemcpy2d(back, width, a, pitch, width, height, ACL_MEMCPY_DEVICE_TO_HOST));
	ck_assert(!memcmp(back, host, width * height));
	OK(aclrtMemcpy(back, pitch * height, a, pitch * height, ACL_MEMCPY_DEVICE_TO_HOST));
	for (size_t y = 0; y < height; y++)
		for (size_t x = width; x < pitch; x++)
			if (back[y * pitch + x] != 7)
				ck_abort_msg("gap %zu of row %zu was written", x, y);

	OK(aclrtMemsetAsync(b, pitch * height, 9, pitch * height, stream));
	OK(aclrtMemcpy2dAsync(b, pitch, host, width, width, height, ACL_MEMCPY_HOST_TO_DEVICE,
			      stream));
	OK(aclrtMemcpy2dAsync(pinned, width, b, pitch, width, height, ACL_MEMCPY_DEVICE_TO_HOST,
			      stream));
	OK(aclrtSynchronizeStream(stream));
	ck_assert(!memcmp(pinned, host, width * height));
	memset(back, 0, width * height);
	OK(aclrtMemcpy2dAsync(back, width, b, pitch, width, height, ACL_MEMCPY_DEVICE_TO_HOST,
			      stream));
	ck_assert(!memcmp(back, host, width * height));
	OK(aclrtFree(a));
	OK(aclrtFree(b));
	OK(aclrtFreeHost(pinned));
}
END_TEST

START_TEST(staging_never_mixes_up)
{
	enum { N = 300, BYTES = 100000 };
	void *dev[8];

	for (unsigned i = 0; i < 8; i++)
		OK(aclrtMalloc(&dev[i], BYTES, ACL_MEM_MALLOC_HUGE_FIRST));
	for (unsigned i = 0; i < N; i++) {
		memset(back, (int)i, BYTES);
		OK(aclrtMemcpyAsync(dev[i % 8], BYTES, back, BYTES, ACL_MEMCPY_HOST_TO_DEVICE,
				    stream));
	}
	for (unsigned i = 0; i < 8; i++) {
		unsigned last = (N - 1) - (N - 1 - i) % 8;

		OK(aclrtMemcpyAsync(back, BYTES, dev[i], BYTES, ACL_MEMCPY_DEVICE_TO_HOST, stream));
		for (unsigned k = 0; k < BYTES; k++)
			if (back[k] != (unsigned char)last)
				ck_abort_msg("buffer %u has %u instead of %u", i, back[k],
					     last & 255);
		OK(aclrtFree(dev[i]));
	}
}
END_TEST

START_TEST(bounds_are_kept)
{
	void *small, *large, *pinned;
	int on_stack;

	OK(aclrtMalloc(&small, 1000, ACL_MEM_MALLOC_HUGE_FIRST));
	OK(aclrtMalloc(&large, 3 << 20, ACL_MEM_MALLOC_HUGE_FIRST));
	OK(aclrtMallocHost(&pinned, 1000));
	/* aclrtMalloc gives up to 32 bytes more, rounded up to 32, and not a byte beyond. */
	OK(aclrtMemcpy(small, 1056, host, 1056, ACL_MEMCPY_HOST_TO_DEVICE));
	ck_assert_int_eq(aclrtMemcpy(small, 1057, host, 1057, ACL_MEMCPY_HOST_TO_DEVICE),
			 ACL_ERROR_RT_PARAM_INVALID);
	ck_assert_int_eq(aclrtMemcpy(small, MAX, host, 100000, ACL_MEMCPY_HOST_TO_DEVICE),
			 ACL_ERROR_RT_PARAM_INVALID);
	ck_assert_int_eq(
		aclrtMemcpyAsync(small, MAX, host, 100000, ACL_MEMCPY_HOST_TO_DEVICE, stream),
		ACL_ERROR_RT_PARAM_INVALID);
	ck_assert_int_eq(aclrtMemcpy(host, MAX, (char *)large + (2 << 20), 2 << 20,
				     ACL_MEMCPY_DEVICE_TO_HOST),
			 ACL_ERROR_RT_PARAM_INVALID);
	ck_assert_int_eq(aclrtMemcpy(small, 100, host, 101, ACL_MEMCPY_HOST_TO_DEVICE),
			 ACL_ERROR_RT_PARAM_INVALID);
	ck_assert_int_eq(aclrtMemset(small, 5000, 0, 5000), ACL_ERROR_RT_PARAM_INVALID);

	/* frees: of what is not ours, of the middle, of the wrong kind, twice */
	ck_assert_int_ne(aclrtFree(&on_stack), 0);
	ck_assert_int_ne(aclrtFree((char *)small + 64), 0);
	ck_assert_int_ne(aclrtFree((char *)large + 4096), 0);
	ck_assert_int_ne(aclrtFree(pinned), 0);
	ck_assert_int_ne(aclrtFreeHost(small), 0);
	ck_assert_int_ne(aclrtFree((void *)(uintptr_t)0x7e9000000000), 0);
	OK(aclrtFree(small));
	ck_assert_int_ne(aclrtFree(small), 0);
	OK(aclrtFree(large));
	ck_assert_int_ne(aclrtFree(large), 0);
	ck_assert_int_eq(aclrtMemcpy(large, MAX, host, 1, ACL_MEMCPY_HOST_TO_DEVICE),
			 ACL_ERROR_RT_PARAM_INVALID);
	OK(aclrtFreeHost(pinned));
	ck_assert_int_ne(aclrtFreeHost(pinned), 0);
}
END_TEST

START_TEST(addresses_tell_what_they_are)
{
	aclrtPtrAttributes attributes;
	void *dev, *pinned;

	OK(aclrtMalloc(&dev, 4096, ACL_MEM_MALLOC_HUGE_FIRST));
	OK(aclrtMallocHost(&pinned, 4096));
	OK(aclrtPointerGetAttributes(dev, &attributes));
	ck_assert_int_eq(attributes.location.type, ACL_MEM_LOCATION_TYPE_DEVICE);
	OK(aclrtPointerGetAttributes((char *)pinned + 100, &attributes));
	ck_assert_int_eq(attributes.location.type, ACL_MEM_LOCATION_TYPE_HOST);
	OK(aclrtPointerGetAttributes(host, &attributes));
	ck_assert_int_eq(attributes.location.type, ACL_MEM_LOCATION_TYPE_UNREGISTERED);
	OK(aclrtFree(dev));
	OK(aclrtFreeHost(pinned));
}
END_TEST

static bool free_is(void *arg)
{
	size_t now, total;

	OK(aclrtGetMemInfo(ACL_HBM_MEM, &now, &total));
	return now == *(size_t *)arg;
}

START_TEST(memory_is_counted_and_comes_back)
{
	size_t before, during, total;
	void *a;

	OK(aclrtGetMemInfo(ACL_HBM_MEM, &before, &total));
	ck_assert_uint_le(before, total);
	OK(aclrtMalloc(&a, 64u << 20, ACL_MEM_MALLOC_HUGE_FIRST));
	OK(aclrtGetMemInfo(ACL_HBM_MEM, &during, &total));
	ck_assert_uint_ge(before - during, 64u << 20);
	OK(aclrtFree(a));
	/* When the device has let go of it. */
	ck_assert(wait_until(free_is, &before, 5000));
	ck_assert_int_eq(aclrtMalloc(&a, total + (1u << 30), ACL_MEM_MALLOC_HUGE_FIRST),
			 ACL_ERROR_RT_MEMORY_ALLOCATION);
	ck_assert_ptr_nonnull(strstr(aclGetRecentErrMsg(), "EL0004"));
}
END_TEST

static TCase *copies(const char *name, SFun start)
{
	TCase *t = tcase_create(name);

	tcase_add_unchecked_fixture(t, start, stop);
	tcase_add_checked_fixture(t, begin, end);
	tcase_set_timeout(t, 120);
	tcase_add_loop_test(t, goes_there_and_back, 0, sizeof(sizes) / sizeof(sizes[0]));
	tcase_add_test(t, rows_keep_their_pitch);
	tcase_add_test(t, staging_never_mixes_up);
	tcase_add_test(t, bounds_are_kept);
	tcase_add_test(t, addresses_tell_what_they_are);
	tcase_add_test(t, memory_is_counted_and_comes_back);
	return t;
}

int main(void)
{
	Suite *s = suite_create("copies");

	suite_add_tcase(s, copies("visible", start_visible));
	suite_add_tcase(s, copies("hidden", start_hidden));
	return run_suite(s);
}
