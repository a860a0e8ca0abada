/* SPDX-License-Identifier: Apache-2.0 */
/* daemon/core/vaspace: no overlap, alignment, guards, late reuse, and that nothing is lost. */
#include "daemon/core/vaspace.h"
#include "tests/lib/runner.h"

#include <errno.h>
#include <string.h>

#define PAGE 65536ull
#define BASE 0x7e8000000000ull

static struct vaspace space;

static void setup(void)
{
	ck_assert_int_eq(vaspace_init(&space, BASE, 64 * PAGE, PAGE), 0);
}

static void teardown(void)
{
	vaspace_fini(&space);
}

START_TEST(hands_out_and_takes_back)
{
	uint64_t a, b, c;

	ck_assert_int_eq(vaspace_alloc(&space, PAGE, PAGE, &a), 0);
	ck_assert_uint_eq(a, BASE);
	ck_assert_int_eq(vaspace_alloc(&space, 2 * PAGE, PAGE, &b), 0);
	ck_assert_uint_eq(b, BASE + 2 * PAGE); /* a guard in between */
	ck_assert_int_eq(vaspace_free(&space, a, PAGE), 0);
	ck_assert_int_eq(vaspace_free(&space, a, PAGE), -EINVAL);
	/* a freed address does not come back at once */
	ck_assert_int_eq(vaspace_alloc(&space, PAGE, PAGE, &c), 0);
	ck_assert_uint_ne(c, a);
	ck_assert_int_eq(vaspace_free(&space, b, 2 * PAGE), 0);
	ck_assert_int_eq(vaspace_free(&space, c, PAGE), 0);
	ck_assert_uint_eq(vaspace_left(&space), 64 * PAGE);
	ck_assert_uint_eq(space.count, 1);
	ck_assert_int_eq(vaspace_free(&space, BASE, PAGE), -EINVAL);
}
END_TEST

START_TEST(keeps_alignment)
{
	uint64_t a, b;

	ck_assert_int_eq(vaspace_alloc(&space, PAGE, PAGE, &a), 0);
	ck_assert_int_eq(vaspace_alloc(&space, 4 * PAGE, 8 * PAGE, &b), 0);
	ck_assert_uint_eq(b % (8 * PAGE), 0);
	ck_assert_int_eq(vaspace_free(&space, a, PAGE), 0);
	ck_assert_int_eq(vaspace_free(&space, b, 4 * PAGE), 0);
	ck_assert_uint_eq(space.count, 1);
}
END_TEST

START_TEST(uses_all_and_says_when_it_is_full)
{
	uint64_t address[32], more;

	for (unsigned int i = 0; i < 32; i++)
		ck_assert_int_eq(vaspace_alloc(&space, PAGE, PAGE, &address[i]), 0);
	ck_assert_uint_eq(vaspace_left(&space), 0);
	ck_assert_int_eq(vaspace_alloc(&space, PAGE, PAGE, &more), -ERANGE);
	ck_assert_int_eq(vaspace_free(&space, address[5], PAGE), 0);
	ck_assert_int_eq(vaspace_alloc(&space, PAGE, PAGE, &more), 0);
	ck_assert_uint_eq(more, address[5]);
	ck_assert_int_eq(vaspace_alloc(&space, UINT64_MAX, PAGE, &more), -ERANGE);
	ck_assert_int_eq(vaspace_alloc(&space, 0, PAGE, &more), -ERANGE);
	for (unsigned int i = 0; i < 32; i += 2)
		ck_assert_int_eq(vaspace_free(&space, address[i], PAGE), 0);
	/* half is free, but not in one piece */
	ck_assert_int_eq(vaspace_alloc(&space, 2 * PAGE, PAGE, &more), -ERANGE);
	for (unsigned int i = 1; i < 32; i += 2)
		ck_assert_int_eq(vaspace_free(&space, address[i], PAGE), 0);
	ck_assert_uint_eq(space.count, 1);
	ck_assert_int_eq(vaspace_alloc(&space, 63 * PAGE, PAGE, &more), 0);
}
END_TEST

/* Against a plain map of pages. */
START_TEST(agrees_with_a_model)
{
	unsigned char taken[1024] = { 0 };
	struct {
		uint64_t address, bytes;
	} live[200];
	unsigned int count = 0, seed = 4711;
	struct vaspace big;

	ck_assert_int_eq(vaspace_init(&big, BASE, 1024 * PAGE, PAGE), 0);
	for (unsigned int round = 0; round < 20000; round++) {
		if (count < 200 && rand_r(&seed) % 2) {
			uint64_t bytes = (1 + rand_r(&seed) % 12) * PAGE, address;
			uint64_t align = PAGE << rand_r(&seed) % 4;

			if (vaspace_alloc(&big, bytes, align, &address) < 0)
				continue;
			ck_assert_uint_eq(address % align, 0);
			for (uint64_t p = (address - BASE) / PAGE;
			     p <= (address - BASE + bytes) / PAGE; p++) {
				ck_assert_uint_lt(p, 1024);
				ck_assert_int_eq(taken[p], 0);
				taken[p] = 1;
			}
			live[count].address = address;
			live[count++].bytes = bytes;
		} else if (count) {
			unsigned int i = rand_r(&seed) % count;
			uint64_t first = (live[i].address - BASE) / PAGE;

			ck_assert_int_eq(vaspace_free(&big, live[i].address, live[i].bytes), 0);
			memset(&taken[first], 0, live[i].bytes / PAGE + 1);
			live[i] = live[--count];
		}
	}
	while (count) {
		count--;
		ck_assert_int_eq(vaspace_free(&big, live[count].address, live[count].bytes), 0);
	}
	ck_assert_uint_eq(vaspace_left(&big), 1024 * PAGE);
	ck_assert_uint_eq(big.count, 1);
	vaspace_fini(&big);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("vaspace");
	TCase *tc = tcase_create("vaspace");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 30);
	tcase_add_test(tc, hands_out_and_takes_back);
	tcase_add_test(tc, keeps_alignment);
	tcase_add_test(tc, uses_all_and_says_when_it_is_full);
	tcase_add_test(tc, agrees_with_a_model);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
