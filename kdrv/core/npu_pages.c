/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * An allocation runs twice over the same search: once to count its runs, then, with the array at
 * hand, to note them; only then pages are taken, so nothing is to be undone.
 */
#include "kdrv/core/npu_pages.h"

#define NPU_PAGES_MAX (1u << 27)
#define NPU_PAGES_END UINT32_MAX
#define NPU_PAGES_FULL UINT32_MAX

struct npu_gather {
	struct npu_page_run *runs; /* NULL: count only */
	struct npu_page_run last;
	uint32_t nruns;
	uint32_t need;
	bool all_large;
};

static uint32_t npu_sum_words(uint32_t words)
{
	return (words + 63) / 64;
}

int npu_pages_init(struct npu_pages *pages, const struct npu_shim *shim, uint64_t bytes)
{
	uint64_t larges = bytes / NPU_PAGE_LARGE;
	uint64_t *p;
	uint32_t i;

	if (larges > NPU_PAGES_MAX / NPU_PAGES_LARGE)
		return -EINVAL;
	memset(pages, 0, sizeof(*pages));
	pages->shim = shim;
	pages->larges = (uint32_t)larges;
	pages->words = (pages->larges + 63) / 64;
	pages->sum_words = npu_sum_words(pages->words);
	/* 64-bit arrays first, then the masks */
	pages->block_bytes = (size_t)(pages->words + pages->sum_words) * 2 * sizeof(uint64_t) +
			     (size_t)pages->larges * 2 * sizeof(uint32_t) + sizeof(uint64_t);
	pages->block = shim->alloc(shim->dev, pages->block_bytes);
	if (!pages->block)
		return -ENOMEM;
	p = pages->block;
	pages->whole = p;
	pages->part = pages->whole + pages->words;
	pages->whole_sum = pages->part + pages->words;
	pages->part_sum = pages->whole_sum + pages->sum_words;
	pages->free = (uint32_t *)(pages->part_sum + pages->sum_words);
	pages->bad = pages->free + pages->larges;
	for (i = 0; i < pages->larges; i++) {
		pages->free[i] = NPU_PAGES_FULL;
		pages->whole[i / 64] |= 1ull << (i % 64);
	}
	for (i = 0; i < pages->words; i++)
		pages->whole_sum[i / 64] |= 1ull << (i % 64);
	pages->nfree = pages->larges * NPU_PAGES_LARGE;
	return 0;
}

void npu_pages_fini(struct npu_pages *pages)
{
	if (pages->block)
		pages->shim->free(pages->shim->dev, pages->block, pages->block_bytes);
	memset(pages, 0, sizeof(*pages));
}

static void npu_bits_put(uint64_t *map, uint64_t *sum, uint32_t bit, bool on)
{
	uint32_t word = bit / 64;

	if (on)
		map[word] |= 1ull << (bit % 64);
	else
		map[word] &= ~(1ull << (bit % 64));
	if (map[word])
		sum[word / 64] |= 1ull << (word % 64);
	else
		sum[word / 64] &= ~(1ull << (word % 64));
}

/* The first set bit at or after from, or NPU_PAGES_END. */
static uint32_t npu_bits_next(const struct npu_pages *pages, const uint64_t *map,
			      const uint64_t *sum, uint32_t from)
{
	uint32_t word = from / 64, s;
	uint64_t bits;

	if (from >= pages->larges)
		return NPU_PAGES_END;
	bits = map[word] & (~0ull << (from % 64));
	if (bits)
		return word * 64 + npu_ctz64(bits);
	word++;
	for (s = word / 64; s < pages->sum_words; s++) {
		bits = sum[s];
		if (s == word / 64)
			bits &= ~0ull << (word % 64);
		if (bits) {
			word = s * 64 + npu_ctz64(bits);
			return word * 64 + npu_ctz64(map[word]);
		}
	}
	return NPU_PAGES_END;
}

static void npu_pages_update(struct npu_pages *pages, uint32_t large)
{
	uint32_t mask = pages->free[large];

	npu_bits_put(pages->whole, pages->whole_sum, large, mask == NPU_PAGES_FULL);
	npu_bits_put(pages->part, pages->part_sum, large, mask && mask != NPU_PAGES_FULL);
	pages->largest_known = false;
}

/* Mask of count pages from first on that lie in one large page; *ret_count: how many these are. */
static uint32_t npu_pages_mask(uint32_t first, uint32_t count, uint32_t *ret_count)
{
	uint32_t bit = first % NPU_PAGES_LARGE, n = NPU_PAGES_LARGE - bit;

	if (n > count)
		n = count;
	*ret_count = n;
	if (n == NPU_PAGES_LARGE)
		return NPU_PAGES_FULL;
	return ((1u << n) - 1) << bit;
}

static void npu_pages_set(struct npu_pages *pages, struct npu_page_run run, bool free)
{
	uint32_t n, mask, large;

	for (; run.count; run.first += n, run.count -= n) {
		large = run.first / NPU_PAGES_LARGE;
		mask = npu_pages_mask(run.first, run.count, &n);
		if (free) {
			mask &= ~pages->bad[large];
			pages->free[large] |= mask;
			pages->nfree += npu_popcount32(mask);
		} else {
			pages->free[large] &= ~mask;
			pages->nfree -= npu_popcount32(mask);
		}
		npu_pages_update(pages, large);
	}
}

static void npu_gather_add(struct npu_gather *gather, uint32_t first, uint32_t count)
{
	gather->need -= count;
	if (gather->nruns && gather->last.first + gather->last.count == first) {
		gather->last.count += count;
	} else {
		gather->last.first = first;
		gather->last.count = count;
		gather->nruns++;
	}
	if (gather->runs)
		gather->runs[gather->nruns - 1] = gather->last;
}

static void npu_gather_mask(struct npu_gather *gather, uint32_t large, uint32_t mask)
{
	uint32_t bit, n;

	while (mask && gather->need) {
		bit = npu_ctz32(mask);
		mask >>= bit;
		n = mask == NPU_PAGES_FULL ? NPU_PAGES_LARGE : npu_ctz32(~mask);
		mask = n == NPU_PAGES_LARGE ? 0 : mask & ~((1u << n) - 1);
		mask <<= bit;
		if (n > gather->need)
			n = gather->need;
		npu_gather_add(gather, large * NPU_PAGES_LARGE + bit, n);
	}
}

/* Changes nothing, so it gives the same each time. */
static void npu_pages_gather(const struct npu_pages *pages, struct npu_gather *gather,
			     uint32_t flags)
{
	uint32_t whole = npu_bits_next(pages, pages->whole, pages->whole_sum, 0), part;

	if (flags & (NPU_MEM_HUGE_FIRST | NPU_MEM_HUGE_ONLY)) {
		while (whole != NPU_PAGES_END && gather->need >= NPU_PAGES_LARGE) {
			npu_gather_add(gather, whole * NPU_PAGES_LARGE, NPU_PAGES_LARGE);
			whole = npu_bits_next(pages, pages->whole, pages->whole_sum, whole + 1);
		}
		gather->all_large = !gather->need;
	}
	if (!gather->need || flags & NPU_MEM_HUGE_ONLY)
		return;
	part = npu_bits_next(pages, pages->part, pages->part_sum, 0);
	while (part != NPU_PAGES_END && gather->need) {
		npu_gather_mask(gather, part, pages->free[part]);
		part = npu_bits_next(pages, pages->part, pages->part_sum, part + 1);
	}
	while (whole != NPU_PAGES_END && gather->need) {
		npu_gather_mask(gather, whole, NPU_PAGES_FULL);
		whole = npu_bits_next(pages, pages->whole, pages->whole_sum, whole + 1);
	}
}

/*
 * Walks over the free runs; stops at the first of want pages, which begins with a large page when
 * large is set. The longest seen is the result, *ret_first the start of the wanted one.
 */
static uint32_t npu_pages_search(const struct npu_pages *pages, uint32_t want, bool large,
				 uint32_t *ret_first)
{
	uint32_t best = 0, run = 0, i, bit, mask;

	for (i = 0; i < pages->larges; i++) {
		mask = pages->free[i];
		if (large && mask != NPU_PAGES_FULL)
			mask = 0;
		if (!mask) {
			run = 0;
			continue;
		}
		for (bit = 0; bit < NPU_PAGES_LARGE; bit++) {
			if (mask == NPU_PAGES_FULL) {
				/* at once, when that is not beyond the wanted end */
				run += NPU_PAGES_LARGE;
				bit = NPU_PAGES_LARGE - 1;
			} else {
				run = mask >> bit & 1 ? run + 1 : 0;
			}
			if (run > best)
				best = run;
			if (run >= want) {
				*ret_first = i * NPU_PAGES_LARGE + bit + 1 - run;
				return best;
			}
		}
	}
	return best;
}

int npu_pages_alloc(struct npu_pages *pages, uint32_t count, uint32_t flags,
		    struct npu_page_run **ret_runs, uint32_t *ret_nruns, uint32_t *ret_page)
{
	struct npu_gather gather = { .need = count };
	struct npu_page_run *runs;
	uint32_t first = 0, i, nruns;

	if (!count || count > pages->nfree)
		return count ? -ENOSPC : -EINVAL;
	if (flags & NPU_MEM_CONTIGUOUS) {
		if (npu_pages_search(pages, count, flags & NPU_MEM_HUGE_ONLY, &first) < count)
			return -ENOSPC;
		gather.all_large = flags & NPU_MEM_HUGE_ONLY;
		npu_gather_add(&gather, first, count);
	} else {
		npu_pages_gather(pages, &gather, flags);
		if (gather.need)
			return -ENOSPC;
	}
	nruns = gather.nruns;
	runs = pages->shim->alloc(pages->shim->dev, (size_t)nruns * sizeof(*runs));
	if (!runs)
		return -ENOMEM;
	if (flags & NPU_MEM_CONTIGUOUS) {
		runs[0] = gather.last;
	} else {
		gather = (struct npu_gather){ .need = count, .runs = runs };
		npu_pages_gather(pages, &gather, flags);
	}
	for (i = 0; i < nruns; i++)
		npu_pages_set(pages, runs[i], false);
	*ret_runs = runs;
	*ret_nruns = nruns;
	*ret_page = gather.all_large ? NPU_PAGE_LARGE : NPU_PAGE_SMALL;
	return 0;
}

void npu_pages_free(struct npu_pages *pages, struct npu_page_run *runs, uint32_t nruns)
{
	uint32_t i;

	for (i = 0; i < nruns; i++)
		npu_pages_set(pages, runs[i], true);
	if (runs)
		pages->shim->free(pages->shim->dev, runs, (size_t)nruns * sizeof(*runs));
}

int npu_pages_retire(struct npu_pages *pages, uint32_t page)
{
	uint32_t large = page / NPU_PAGES_LARGE, bit = 1u << (page % NPU_PAGES_LARGE);

	if (large >= pages->larges)
		return -ERANGE;
	if (pages->bad[large] & bit)
		return -EEXIST;
	pages->bad[large] |= bit;
	pages->nbad++;
	if (!(pages->free[large] & bit))
		return 1;
	pages->free[large] &= ~bit;
	pages->nfree--;
	npu_pages_update(pages, large);
	return 0;
}

uint32_t npu_pages_largest(struct npu_pages *pages)
{
	uint32_t first;

	if (!pages->largest_known) {
		pages->largest = npu_pages_search(pages, UINT32_MAX, false, &first);
		pages->largest_known = true;
	}
	return pages->largest;
}
