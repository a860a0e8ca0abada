/* SPDX-License-Identifier: Apache-2.0 */
/* daemon/core/charge: limits of sessions and users, and that everything comes back. */
#include "daemon/core/charge.h"
#include "tests/lib/runner.h"

#include <errno.h>

static struct charge_table table;

static void setup(void)
{
	static const struct charge_limits limits = {
		.session = { [CHARGE_MEMORY] = 100 },
		.user = { [CHARGE_SESSION] = 2, [CHARGE_MEMORY] = 150 },
	};

	charge_table_init(&table, &limits);
}

static void teardown(void)
{
	charge_table_fini(&table);
}

START_TEST(keeps_the_limit_of_a_session)
{
	struct charge_refusal refusal;
	struct charge a;

	ck_assert_int_eq(charge_open(&table, 1, &a), 0);
	ck_assert_int_eq(charge_take(&a, CHARGE_MEMORY, 60, NULL), 0);
	ck_assert_int_eq(charge_take(&a, CHARGE_MEMORY, 41, &refusal), -EDQUOT);
	ck_assert(!refusal.of_user);
	ck_assert_uint_eq(refusal.used, 60);
	ck_assert_uint_eq(refusal.limit, 100);
	ck_assert_int_eq(charge_take(&a, CHARGE_MEMORY, 40, &refusal), 0);
	charge_give(&a, CHARGE_MEMORY, 50);
	ck_assert_uint_eq(a.used[CHARGE_MEMORY], 50);
	ck_assert_uint_eq(a.peak[CHARGE_MEMORY], 100);
	ck_assert_int_eq(charge_take(&a, CHARGE_MEMORY, UINT64_MAX, &refusal), -EDQUOT);
	ck_assert_int_eq(charge_take(&a, CHARGE_MEMORY, UINT64_MAX - 49, &refusal), -EDQUOT);
	charge_close(&a);
	charge_close(&a); /* twice does nothing */
}
END_TEST

START_TEST(keeps_the_limit_of_a_user)
{
	struct charge_refusal refusal;
	struct charge a, b, c;

	ck_assert_int_eq(charge_open(&table, 1, &a), 0);
	ck_assert_int_eq(charge_open(&table, 1, &b), 0);
	ck_assert_int_eq(charge_open(&table, 2, &c), 0);
	ck_assert_int_eq(charge_take(&a, CHARGE_MEMORY, 100, NULL), 0);
	ck_assert_int_eq(charge_take(&b, CHARGE_MEMORY, 51, &refusal), -EDQUOT);
	ck_assert(refusal.of_user);
	ck_assert_uint_eq(refusal.used, 100);
	ck_assert_uint_eq(refusal.limit, 150);
	ck_assert_int_eq(charge_take(&b, CHARGE_MEMORY, 50, NULL), 0);
	/* another user does not feel it */
	ck_assert_int_eq(charge_take(&c, CHARGE_MEMORY, 100, NULL), 0);
	ck_assert_uint_eq(charge_user_used(&b, CHARGE_MEMORY), 150);
	/* what an account still has comes back with its end */
	charge_close(&a);
	ck_assert_uint_eq(charge_user_used(&b, CHARGE_MEMORY), 50);
	charge_close(&b);
	charge_close(&c);
}
END_TEST

START_TEST(tells_the_nearer_quota)
{
	uint64_t used, limit;
	struct charge a, b;

	ck_assert_int_eq(charge_open(&table, 1, &a), 0);
	ck_assert_int_eq(charge_open(&table, 1, &b), 0);
	ck_assert_int_eq(charge_take(&a, CHARGE_MEMORY, 10, NULL), 0);
	charge_quota(&a, CHARGE_MEMORY, &used, &limit);
	ck_assert_uint_eq(used, 10);
	ck_assert_uint_eq(limit, 100);
	ck_assert_int_eq(charge_take(&b, CHARGE_MEMORY, 90, NULL), 0);
	charge_quota(&a, CHARGE_MEMORY, &used, &limit);
	ck_assert_uint_eq(used, 100);
	ck_assert_uint_eq(limit, 150);
	charge_quota(&a, CHARGE_HOST, &used, &limit);
	ck_assert_uint_eq(limit, 0);
	charge_close(&a);
	charge_close(&b);
}
END_TEST

START_TEST(counts_sessions)
{
	struct charge a, b, c;

	ck_assert_int_eq(charge_open(&table, 1, &a), 0);
	ck_assert_int_eq(charge_open(&table, 1, &b), 0);
	ck_assert_int_eq(charge_open(&table, 1, &c), 0);
	ck_assert_int_eq(charge_take(&a, CHARGE_SESSION, 1, NULL), 0);
	ck_assert_int_eq(charge_take(&b, CHARGE_SESSION, 1, NULL), 0);
	ck_assert_int_eq(charge_take(&c, CHARGE_SESSION, 1, NULL), -EDQUOT);
	charge_close(&a);
	ck_assert_int_eq(charge_take(&c, CHARGE_SESSION, 1, NULL), 0);
	charge_close(&b);
	charge_close(&c);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("charge");
	TCase *tc = tcase_create("charge");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, keeps_the_limit_of_a_session);
	tcase_add_test(tc, keeps_the_limit_of_a_user);
	tcase_add_test(tc, tells_the_nearer_quota);
	tcase_add_test(tc, counts_sessions);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
