/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NPU_CORE_VASPACE_H
#define NPU_CORE_VASPACE_H

#include <stddef.h>
#include <stdint.h>

/*
 * The addresses of one session's window. Ranges are handed out next-fit, with an unused page behind
 * each, so that an access past the end of an object faults and a freed address comes back late. The
 * loop's thread.
 */

struct vaspace_range;

struct vaspace {
	struct vaspace_range *free; /* sorted by address, neighbours merged */
	size_t count, size;
	size_t taken;	 /* ranges handed out */
	uint64_t guard;	 /* bytes left unused behind each range */
	uint64_t cursor; /* where the next search begins */
};

/* base, bytes and guard are multiples of the smallest alignment that will be asked for. */
int vaspace_init(struct vaspace *space, uint64_t base, uint64_t bytes, uint64_t guard);
void vaspace_fini(struct vaspace *space);

/* align: a power of two. 0; -ERANGE: no room; -ENOMEM. */
int vaspace_alloc(struct vaspace *space, uint64_t bytes, uint64_t align, uint64_t *ret_address);
/* Exactly what vaspace_alloc() gave. 0, or -EINVAL for a range that is (partly) free. */
int vaspace_free(struct vaspace *space, uint64_t address, uint64_t bytes);
/* Free bytes, guards not counted out. */
uint64_t vaspace_left(const struct vaspace *space);

#endif
