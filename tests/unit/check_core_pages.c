/* SPDX-License-Identifier: Apache-2.0 */
/* The page allocator against a plain model: one byte a page. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kdrv/core/npu_pages.h"

#define LARGES 300u
#define PAGES (LARGES * NPU_PAGES_LARGE)
#define HELD 512u

enum { FREE, USED, BAD, USED_BAD };

static struct npu_pages pages;
static unsigned char model[PAGES];
static struct {
	struct npu_page_run *runs;
	uint32_t nruns;
} held[HELD];
static size_t live;

static void *test_alloc(void *dev, size_t bytes)
{
	(void)dev;
	live++;
	return calloc(1, bytes);
}

static void test_free(void *dev, void *ptr, size_t bytes)
{
	(void)dev;
	(void)bytes;
	live -= ptr != NULL;
	free(ptr);
}

static const struct npu_shim shim = { .alloc = test_alloc, .free = test_free };
static uint64_t state = 88172645463325252ull;

static uint32_t rnd(uint32_t below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 16) % below;
}

static uint32_t model_free(void)
{
	uint32_t i, n = 0;

	for (i = 0; i < PAGES; i++)
		n += model[i] == FREE;
	return n;
}

static uint32_t model_largest(void)
{
	uint32_t i, run = 0, best = 0;

	for (i = 0; i < PAGES; i++) {
		run = model[i] == FREE ? run + 1 : 0;
		if (run > best)
			best = run;
	}
	return best;
}

static uint32_t model_whole(void)
{
	uint32_t i, j, n = 0;

	for (i = 0; i < LARGES; i++) {
		for (j = 0; j < NPU_PAGES_LARGE && model[i * NPU_PAGES_LARGE + j] == FREE; j++)
			continue;
		n += j == NPU_PAGES_LARGE;
	}
	return n;
}

static void take(const struct npu_page_run *runs, uint32_t nruns, uint32_t count)
{
	uint32_t i, j, sum = 0;

	for (i = 0; i < nruns; i++) {
		for (j = 0; j < runs[i].count; j++) {
			ck_assert_uint_lt(runs[i].first + j, PAGES);
			ck_assert_uint_eq(model[runs[i].first + j], FREE);
			model[runs[i].first + j] = USED;
		}
		sum += runs[i].count;
	}
	ck_assert_uint_eq(sum, count);
}

static void give_back(uint32_t slot)
{
	uint32_t i, j;

	for (i = 0; i < held[slot].nruns; i++) {
		for (j = 0; j < held[slot].runs[i].count; j++) {
			unsigned char *page = &model[held[slot].runs[i].first + j];

			*page = *page == USED_BAD ? BAD : FREE;
		}
	}
	npu_pages_free(&pages, held[slot].runs, held[slot].nruns);
	held[slot].runs = NULL;
	held[slot].nruns = 0;
}

static int try_alloc(uint32_t slot, uint32_t count, uint32_t flags)
{
	struct npu_page_run *runs;
	uint32_t nruns, page, i;
	int r = npu_pages_alloc(&pages, count, flags, &runs, &nruns, &page);

	if (r < 0)
		return r;
	take(runs, nruns, count);
	held[slot].runs = runs;
	held[slot].nruns = nruns;
	if (flags & NPU_MEM_CONTIGUOUS)
		ck_assert_uint_eq(nruns, 1);
	if (page == NPU_PAGE_LARGE) {
		ck_assert_uint_ne(flags & (NPU_MEM_HUGE_FIRST | NPU_MEM_HUGE_ONLY), 0);
		for (i = 0; i < nruns; i++) {
			ck_assert_uint_eq(runs[i].first % NPU_PAGES_LARGE, 0);
			ck_assert_uint_eq(runs[i].count % NPU_PAGES_LARGE, 0);
		}
	}
	return 0;
}

static void setup(void)
{
	ck_assert_int_eq(npu_pages_init(&pages, &shim, LARGES * NPU_PAGE_LARGE + 4096), 0);
	memset(model, FREE, sizeof(model));
}

static void teardown(void)
{
	uint32_t i;

	for (i = 0; i < HELD; i++)
		give_back(i);
	ck_assert_uint_eq(pages.nfree + pages.nbad, PAGES);
	ck_assert_uint_eq(pages.nfree, model_free());
	npu_pages_fini(&pages);
	ck_assert_uint_eq(live, 0);
}

static void step(void)
{
	static const uint32_t kinds[] = { 0, NPU_MEM_HUGE_FIRST, NPU_MEM_HUGE_ONLY,
					  NPU_MEM_CONTIGUOUS,
					  NPU_MEM_CONTIGUOUS | NPU_MEM_HUGE_ONLY };
	uint32_t slot = rnd(HELD), flags = kinds[rnd(5)], page;
	uint32_t count = rnd(4) ? 1 + rnd(40) : 1 + rnd(900);
	int r;

	if (held[slot].nruns) {
		give_back(slot);
		return;
	}
	if (rnd(200) == 0) {
		page = rnd(PAGES);
		r = npu_pages_retire(&pages, page);
		if (model[page] == BAD || model[page] == USED_BAD)
			ck_assert_int_eq(r, -EEXIST);
		else
			ck_assert_int_eq(r, model[page] == USED);
		model[page] = model[page] == USED || model[page] == USED_BAD ? USED_BAD : BAD;
		return;
	}
	if (flags & NPU_MEM_HUGE_ONLY)
		count = (count + NPU_PAGES_LARGE - 1) & ~(NPU_PAGES_LARGE - 1);
	r = try_alloc(slot, count, flags);
	if (r == 0)
		return;
	ck_assert_int_eq(r, -ENOSPC);
	if (flags == NPU_MEM_HUGE_ONLY)
		ck_assert_uint_lt(model_whole() * NPU_PAGES_LARGE, count);
	else if (flags == NPU_MEM_CONTIGUOUS)
		ck_assert_uint_lt(model_largest(), count);
	else if (!(flags & NPU_MEM_CONTIGUOUS))
		ck_assert_uint_lt(model_free(), count);
}

START_TEST(test_random)
{
	uint32_t i;

	for (i = 0; i < 60000; i++) {
		step();
		if (i % 64 == 0) {
			ck_assert_uint_eq(pages.nfree, model_free());
			ck_assert_uint_eq(npu_pages_largest(&pages), model_largest());
		}
	}
	ck_assert_uint_gt(pages.nbad, 10);
}
END_TEST

/* Every other page in use: nothing is contiguous, yet all that is free can be had. */
START_TEST(test_fragmented)
{
	struct npu_page_run *runs[PAGES], *all;
	uint32_t nruns, page, i;

	for (i = 0; i < PAGES; i++)
		ck_assert_int_eq(npu_pages_alloc(&pages, 1, 0, &runs[i], &nruns, &page), 0);
	ck_assert_int_eq(npu_pages_alloc(&pages, 1, 0, &all, &nruns, &page), -ENOSPC);
	for (i = 0; i < PAGES; i++) {
		if (runs[i]->first % 2)
			continue;
		npu_pages_free(&pages, runs[i], 1);
		runs[i] = NULL;
	}
	ck_assert_uint_eq(npu_pages_largest(&pages), 1);
	ck_assert_int_eq(npu_pages_alloc(&pages, 2, NPU_MEM_CONTIGUOUS, &all, &nruns, &page),
			 -ENOSPC);
	ck_assert_int_eq(npu_pages_alloc(&pages, 32, NPU_MEM_HUGE_ONLY, &all, &nruns, &page),
			 -ENOSPC);
	ck_assert_int_eq(npu_pages_alloc(&pages, PAGES / 2 + 1, 0, &all, &nruns, &page), -ENOSPC);
	ck_assert_int_eq(npu_pages_alloc(&pages, PAGES / 2, NPU_MEM_HUGE_FIRST, &all, &nruns,
					 &page), 0);
	ck_assert_uint_eq(nruns, PAGES / 2);
	ck_assert_uint_eq(page, NPU_PAGE_SMALL);
	npu_pages_free(&pages, all, nruns);
	for (i = 0; i < PAGES; i++) {
		if (runs[i])
			npu_pages_free(&pages, runs[i], 1);
	}
	ck_assert_uint_eq(npu_pages_largest(&pages), PAGES);
}
END_TEST

START_TEST(test_edges)
{
	struct npu_pages none;
	struct npu_page_run *runs;
	uint32_t nruns, page;

	ck_assert_int_eq(npu_pages_alloc(&pages, 0, 0, &runs, &nruns, &page), -EINVAL);
	ck_assert_int_eq(npu_pages_retire(&pages, PAGES), -ERANGE);
	ck_assert_int_eq(npu_pages_retire(&pages, UINT32_MAX), -ERANGE);
	ck_assert_int_eq(npu_pages_alloc(&pages, PAGES, NPU_MEM_CONTIGUOUS | NPU_MEM_HUGE_ONLY,
					 &runs, &nruns, &page), 0);
	ck_assert_uint_eq(nruns, 1);
	ck_assert_uint_eq(page, NPU_PAGE_LARGE);
	/* a page that fails in use stays out when it comes back */
	ck_assert_int_eq(npu_pages_retire(&pages, 77), 1);
	npu_pages_free(&pages, runs, nruns);
	model[77] = BAD;
	ck_assert_uint_eq(pages.nfree, PAGES - 1);
	ck_assert_int_eq(npu_pages_init(&none, &shim, 0), 0);
	ck_assert_uint_eq(npu_pages_largest(&none), 0);
	ck_assert_int_eq(npu_pages_alloc(&none, 1, 0, &runs, &nruns, &page), -ENOSPC);
	npu_pages_fini(&none);
	ck_assert_int_eq(npu_pages_init(&none, &shim, UINT64_MAX), -EINVAL);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("core_pages");
	TCase *tc = tcase_create("pages");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, test_random);
	tcase_add_test(tc, test_fragmented);
	tcase_add_test(tc, test_edges);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
