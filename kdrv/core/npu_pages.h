/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * npu_pages.h - the page allocator of device memory
 *
 * Counts NPU_PAGE_SMALL pages, 32 of which make a NPU_PAGE_LARGE one: a free mask per large page,
 * and two bitmaps with summaries that find wholly free and partly free large pages at once. An
 * allocation gathers runs from anywhere, partly used large pages first, so it fails only when
 * fewer pages are free than it wants. Contiguous ones are searched. The caller locks.
 */
#ifndef NPU_PAGES_H
#define NPU_PAGES_H

#include "kdrv/core/npu_shim.h"

#define NPU_PAGES_LARGE 32u /* small pages of a large one */

struct npu_pages {
	const struct npu_shim *shim;
	uint32_t larges;
	uint32_t words;     /* of whole, part */
	uint32_t sum_words; /* of their summaries */
	uint32_t *free;     /* a mask a large page: 1 is free */
	uint32_t *bad;
	uint64_t *whole;
	uint64_t *part;
	uint64_t *whole_sum;
	uint64_t *part_sum;
	void *block; /* that all of these lie in */
	size_t block_bytes;
	uint32_t nfree;
	uint32_t nbad;
	uint32_t largest;
	bool largest_known;
};

/* -ENOMEM; -EINVAL for more than 8 TiB. shim must outlive pages. bytes may be 0. */
int npu_pages_init(struct npu_pages *pages, const struct npu_shim *shim, uint64_t bytes);
void npu_pages_fini(struct npu_pages *pages);

/*
 * Takes count > 0 small pages; flags: NPU_MEM_HUGE_FIRST, _HUGE_ONLY (count: whole large pages),
 * _CONTIGUOUS. ret_page: NPU_PAGE_LARGE when all of it is large pages that were asked for. -ENOSPC,
 * -ENOMEM for the array of runs, which the caller gives back through npu_pages_free().
 */
int npu_pages_alloc(struct npu_pages *pages, uint32_t count, uint32_t flags,
		    struct npu_page_run **ret_runs, uint32_t *ret_nruns, uint32_t *ret_page);

/* Gives back pages and array. Bad pages among them stay out. */
void npu_pages_free(struct npu_pages *pages, struct npu_page_run *runs, uint32_t nruns);

/* Never gives this page out again: 0; 1: it is in use now; -EEXIST, -ERANGE. */
int npu_pages_retire(struct npu_pages *pages, uint32_t page);

/* Small pages in the longest free run. */
uint32_t npu_pages_largest(struct npu_pages *pages);

#endif
