/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory and copies with a device: results byte by byte, and the codes for what is wrong.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/lib/api.h"
#include "tests/lib/npud_fixture.h"
#include "tests/lib/runner.h"

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

int main(void)
{
	Suite *suite = suite_create("api_memory");
	TCase *seen = tcase_create("host sees device memory");
	TCase *hidden = tcase_create("host does not see it");

	tcase_set_timeout(seen, 60);
	tcase_add_unchecked_fixture(seen, setup, teardown);
	tcase_add_test(seen, allocations);
	tcase_add_test(seen, addresses_that_are_none);
	tcase_add_test(seen, copies_in_every_direction);
	tcase_add_test(seen, rows_in_every_direction);
	tcase_add_test(seen, fills_and_ranges);
	suite_add_tcase(suite, seen);
	tcase_set_timeout(hidden, 60);
	tcase_add_unchecked_fixture(hidden, setup_hidden, teardown);
	tcase_add_test(hidden, allocations);
	tcase_add_test(hidden, copies_in_every_direction);
	tcase_add_test(hidden, rows_in_every_direction);
	tcase_add_test(hidden, fills_and_ranges);
	suite_add_tcase(suite, hidden);
	return run_suite(suite);
}
