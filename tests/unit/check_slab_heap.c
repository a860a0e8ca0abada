/* SPDX-License-Identifier: Apache-2.0 */
/* The heap over a source of plain numbers: no memory is touched, all bookkeeping is. */
#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "client/drv/heap.h"

#define BASE   0x10000000u
#define CHUNKS 64

static struct drv_heap heap;
static struct drv_chunk *chunks[CHUNKS]; /* by address */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned ngets, nputs, limit;

static int source_get(struct drv_heap *h, struct drv_chunk *chunk, uintptr_t *ret_address)
{
	int r = -ENOSPC;

	ck_assert_ptr_eq(h, &heap);
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < limit && r; i++) {
		if (!chunks[i]) {
			chunks[i] = chunk;
			*ret_address = BASE + (uintptr_t)i * DRV_HEAP_CHUNK;
			ngets++;
			r = 0;
		}
	}
	pthread_mutex_unlock(&lock);
	return r;
}

static void source_put(struct drv_heap *h, struct drv_chunk *chunk)
{
	(void)h;
	pthread_mutex_lock(&lock);
	chunks[(chunk->address - BASE) / DRV_HEAP_CHUNK] = NULL;
	nputs++;
	pthread_mutex_unlock(&lock);
	drv_chunk_free(chunk);
}

static struct drv_chunk *chunk_at(uintptr_t address)
{
	return chunks[(address - BASE) / DRV_HEAP_CHUNK];
}

static void setup(void)
{
	struct drv_heap_source source = { .get = source_get, .put = source_put };

	limit = CHUNKS;
	drv_heap_init(&heap, &source);
}

static void teardown(void)
{
	for (unsigned i = 0; i < CHUNKS; i++)
		if (chunks[i])
			drv_chunk_free(chunks[i]);
	drv_heap_fini(&heap);
}

START_TEST(every_size_is_aligned_and_fits)
{
	for (size_t bytes = 1; bytes < DRV_HEAP_MAX; bytes += bytes < 3000 ? 1 : 4093) {
		uintptr_t a, b;

		if (drv_heap_alloc(&heap, bytes, &a) || drv_heap_alloc(&heap, bytes, &b))
			ck_abort_msg("no memory for %zu bytes", bytes);
		if (a % 64 || b % 64 || (a < b ? b - a : a - b) < bytes)
			ck_abort_msg("%zu bytes at %lx and %lx", bytes, a, b);
		if (a - BASE - (a - BASE) / DRV_HEAP_CHUNK * DRV_HEAP_CHUNK + bytes >
		    DRV_HEAP_CHUNK)
			ck_abort_msg("%zu bytes leave their chunk", bytes);
		if (chunk_at(a)->size > 2 * bytes + 64 || chunk_at(a)->size < bytes)
			ck_abort_msg("%zu bytes in a class of %u", bytes, chunk_at(a)->size);
		if (drv_heap_free(chunk_at(a), a) || drv_heap_free(chunk_at(b), b))
			ck_abort_msg("cannot free %zu bytes", bytes);
	}
	ck_assert_uint_eq(heap.live, 0);
	/* Only the spare is left. */
	ck_assert_uint_eq(ngets - nputs, 1);
}
END_TEST

START_TEST(refuses_sizes_out_of_range)
{
	uintptr_t a = 1;

	ck_assert_int_eq(drv_heap_alloc(&heap, 0, &a), -EINVAL);
	ck_assert_int_eq(drv_heap_alloc(&heap, DRV_HEAP_MAX, &a), -EINVAL);
	ck_assert_uint_eq(a, 1);
	ck_assert_uint_eq(ngets, 0);
}
END_TEST

START_TEST(wrong_frees_change_nothing)
{
	uintptr_t a, b;

	ck_assert_int_eq(drv_heap_alloc(&heap, 100, &a), 0);
	ck_assert_int_eq(drv_heap_alloc(&heap, 100, &b), 0);
	ck_assert_int_eq(drv_heap_free(chunk_at(a), a + 64), -EINVAL);
	ck_assert_int_eq(drv_heap_free(chunk_at(a), a + 1), -EINVAL);
	ck_assert_int_eq(drv_heap_free(chunk_at(a), a), 0);
	ck_assert_int_eq(drv_heap_free(chunk_at(a), a), -EINVAL);
	ck_assert_int_eq(drv_heap_free(chunk_at(a), a + 128 * 1000), -EINVAL);
	ck_assert_uint_eq(heap.live, 1);
	ck_assert(drv_heap_holds(chunk_at(b), b, 100));
}
END_TEST

START_TEST(holds_exactly_what_was_asked)
{
	uintptr_t a;

	ck_assert_int_eq(drv_heap_alloc(&heap, 100, &a), 0);
	ck_assert(drv_heap_holds(chunk_at(a), a, 100));
	ck_assert(drv_heap_holds(chunk_at(a), a + 60, 40));
	ck_assert(!drv_heap_holds(chunk_at(a), a, 101));
	ck_assert(!drv_heap_holds(chunk_at(a), a + 60, 41));
	ck_assert(!drv_heap_holds(chunk_at(a), a + 128, 1));
	ck_assert(!drv_heap_holds(chunk_at(a), a + 64, SIZE_MAX));
	ck_assert_int_eq(drv_heap_free(chunk_at(a), a), 0);
	ck_assert(!drv_heap_holds(heap.spare, a, 1));
}
END_TEST

START_TEST(freed_objects_are_given_again)
{
	uintptr_t a, b;

	ck_assert_int_eq(drv_heap_alloc(&heap, 4096, &a), 0);
	for (unsigned i = 0; i < 10000; i++) {
		if (drv_heap_free(chunk_at(a), a) || drv_heap_alloc(&heap, 4096, &b) || a != b)
			ck_abort_msg("round %u", i);
	}
	ck_assert_uint_eq(ngets, 1);
	ck_assert_uint_eq(nputs, 0);
}
END_TEST

START_TEST(source_error_is_forwarded_and_leaves_the_heap_whole)
{
	uintptr_t a[64];
	unsigned n = 0;

	limit = 3;
	while (n < 64 && !drv_heap_alloc(&heap, 500000, &a[n]))
		n++;
	ck_assert_uint_eq(n, 12); /* 4 of 512 KiB in each chunk */
	ck_assert_int_eq(drv_heap_alloc(&heap, 500000, &a[n]), -ENOSPC);
	ck_assert_int_eq(drv_heap_alloc(&heap, 10, &a[n]), -ENOSPC);
	while (n--)
		ck_assert_int_eq(drv_heap_free(chunk_at(a[n]), a[n]), 0);
	ck_assert_int_eq(drv_heap_alloc(&heap, 10, &a[0]), 0);
}
END_TEST

static void *churn(void *arg)
{
	unsigned seed = (unsigned)(uintptr_t)arg;
	uintptr_t held[64] = { 0 };
	size_t sizes[64] = { 0 };

	for (unsigned i = 0; i < 60000; i++) {
		unsigned k = (seed = seed * 1103515245 + 12345) >> 16 & 63;

		if (held[k]) {
			if (!drv_heap_holds(chunk_at(held[k]), held[k], sizes[k]) ||
			    drv_heap_free(chunk_at(held[k]), held[k]))
				return (void *)1;
			held[k] = 0;
		} else {
			sizes[k] = 1 + (seed >> 8) % 20000;
			if (drv_heap_alloc(&heap, sizes[k], &held[k]))
				return (void *)2;
		}
	}
	for (unsigned k = 0; k < 64; k++)
		if (held[k] && drv_heap_free(chunk_at(held[k]), held[k]))
			return (void *)3;
	return NULL;
}

START_TEST(threads_share_it)
{
	pthread_t threads[4];
	void *result;

	for (uintptr_t i = 0; i < 4; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, churn, (void *)(i + 1)), 0);
	for (unsigned i = 0; i < 4; i++) {
		pthread_join(threads[i], &result);
		ck_assert_ptr_null(result);
	}
	ck_assert_uint_eq(heap.live, 0);
	ck_assert_uint_eq(ngets - nputs, 1);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("slab_heap");
	TCase *t = tcase_create("slab_heap");
	SRunner *sr;
	int failed;

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, every_size_is_aligned_and_fits);
	tcase_add_test(t, refuses_sizes_out_of_range);
	tcase_add_test(t, wrong_frees_change_nothing);
	tcase_add_test(t, holds_exactly_what_was_asked);
	tcase_add_test(t, freed_objects_are_given_again);
	tcase_add_test(t, source_error_is_forwarded_and_leaves_the_heap_whole);
	tcase_add_test(t, threads_share_it);
	suite_add_tcase(s, t);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
