/* SPDX-License-Identifier: Apache-2.0 */
/* Handle tables: wrong, stale and foreign handles are never taken for an object. */
#include <check.h>
#include <pthread.h>
#include <stdlib.h>

#include "client/drv/handle.h"

struct thing {
	struct drv_object object;
	uint64_t value;
};

static struct drv_handles things = DRV_HANDLES_INIT(3, 1000, struct thing);
static struct drv_handles others = DRV_HANDLES_INIT(4, 1000, struct thing);

static struct thing *make(struct drv_handles *table, void **ret_handle)
{
	struct thing *thing = drv_handle_new(table);

	if (thing)
		*ret_handle = drv_handle_publish(table, thing);
	return thing;
}

START_TEST(lives_and_dies)
{
	void *handle = NULL, *again = NULL;
	struct thing *thing = make(&things, &handle), *second;

	ck_assert_ptr_nonnull(thing);
	ck_assert_ptr_nonnull(handle);
	ck_assert_ptr_eq(drv_handle_get(&things, handle), thing);
	ck_assert_ptr_eq(drv_handle_of(&things, thing), handle);
	ck_assert(drv_handle_live(thing, handle));
	ck_assert(drv_handle_retire(&things, thing, handle));
	ck_assert(!drv_handle_retire(&things, thing, handle));
	ck_assert_ptr_null(drv_handle_get(&things, handle));
	drv_handle_free(&things, thing);
	second = make(&things, &again);
	ck_assert_ptr_eq(second, thing); /* the slot serves again */
	ck_assert_ptr_ne(again, handle);
	ck_assert_ptr_null(drv_handle_get(&things, handle));
	ck_assert(!drv_handle_live(thing, handle));
	ck_assert(!drv_handle_retire(&things, thing, handle));
}
END_TEST

START_TEST(unpublished_is_not_found)
{
	struct thing *thing = drv_handle_new(&things);
	uint32_t cursor = 0;

	ck_assert_ptr_null(drv_handle_get(&things, drv_handle_of(&things, thing)));
	ck_assert_ptr_null(drv_handle_next(&things, &cursor));
	drv_handle_free(&things, thing);
	ck_assert_uint_eq(drv_handle_count(&things), 0);
}
END_TEST

START_TEST(foreign_and_random_values_are_refused)
{
	uint64_t seed = 88172645463325252u;
	struct thing on_stack;
	void *a = NULL, *b = NULL;

	make(&things, &a);
	make(&others, &b);
	ck_assert_ptr_null(drv_handle_get(&things, b));
	ck_assert_ptr_null(drv_handle_get(&others, a));
	ck_assert_ptr_null(drv_handle_get(&things, NULL));
	ck_assert_ptr_null(drv_handle_get(&things, &on_stack));
	ck_assert_ptr_null(drv_handle_get(&things, (void *)-1));
	for (unsigned bit = 0; bit < 64; bit++)
		if (drv_handle_get(&things, (void *)((uintptr_t)a ^ 1ull << bit)))
			ck_abort_msg("bit %u is not looked at", bit);
	for (unsigned i = 0; i < 1000000; i++) {
		seed ^= seed << 13;
		seed ^= seed >> 7;
		seed ^= seed << 17;
		if ((void *)seed != a && drv_handle_get(&things, (void *)seed))
			ck_abort_msg("%lx was taken", seed);
	}
}
END_TEST

START_TEST(full_table_gives_null)
{
	void *handles[1000], *more;

	for (unsigned i = 0; i < 1000; i++)
		ck_assert_ptr_nonnull(make(&things, &handles[i]));
	ck_assert_ptr_null(make(&things, &more));
	ck_assert_uint_eq(drv_handle_count(&things), 1000);
	for (unsigned i = 0; i < 1000; i++) {
		struct thing *thing = drv_handle_get(&things, handles[i]);

		ck_assert_ptr_nonnull(thing);
		drv_handle_retire(&things, thing, handles[i]);
		drv_handle_free(&things, thing);
	}
	ck_assert_uint_eq(drv_handle_count(&things), 0);
	ck_assert_ptr_nonnull(make(&things, &more));
}
END_TEST

START_TEST(walk_sees_the_live_ones)
{
	void *handles[200];
	uint32_t cursor = 0;
	unsigned n = 0;
	struct thing *thing;

	for (unsigned i = 0; i < 200; i++)
		make(&things, &handles[i])->value = i;
	for (unsigned i = 0; i < 200; i += 2) {
		thing = drv_handle_get(&things, handles[i]);
		drv_handle_retire(&things, thing, handles[i]);
		drv_handle_free(&things, thing);
	}
	while ((thing = drv_handle_next(&things, &cursor))) {
		ck_assert_uint_eq(thing->value % 2, 1);
		n++;
	}
	ck_assert_uint_eq(n, 100);
}
END_TEST

static _Atomic unsigned retired;
static void *shared_handle;

static void *racer(void *arg)
{
	struct thing *thing = arg;

	if (drv_handle_retire(&things, thing, shared_handle))
		retired++;
	return NULL;
}

START_TEST(one_of_many_retires)
{
	for (unsigned round = 0; round < 100; round++) {
		pthread_t threads[4];
		struct thing *thing = make(&things, &shared_handle);

		retired = 0;
		for (unsigned i = 0; i < 4; i++)
			ck_assert_int_eq(pthread_create(&threads[i], NULL, racer, thing), 0);
		for (unsigned i = 0; i < 4; i++)
			pthread_join(threads[i], NULL);
		ck_assert_uint_eq(retired, 1);
		drv_handle_free(&things, thing);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("handles");
	TCase *t = tcase_create("handles");
	SRunner *sr;
	int failed;

	tcase_set_timeout(t, 60);
	tcase_add_test(t, lives_and_dies);
	tcase_add_test(t, unpublished_is_not_found);
	tcase_add_test(t, foreign_and_random_values_are_refused);
	tcase_add_test(t, full_table_gives_null);
	tcase_add_test(t, walk_sees_the_live_ones);
	tcase_add_test(t, one_of_many_retires);
	suite_add_tcase(s, t);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
