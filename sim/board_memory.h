/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NPU_SIM_BOARD_MEMORY_H
#define NPU_SIM_BOARD_MEMORY_H

#include <stdint.h>

#include "sim/board_release.h"

/*
 * board_memory - a piece of memory: one sealed memfd.
 *
 * The file can be neither shrunk nor grown by whoever gets its fd, and is never given to a second
 * owner: with the last reference the releaser punches and closes it, whatever was to be populated.
 * Loop thread.
 */

struct board_memory {
	struct board_job mark;
	struct board_release *release;
	struct board_job filling;
	struct board_release *fill; /* who populates it now; NULL: nobody */
	void (*retired)(void *arg);
	void *arg;
	int fd;
	uint64_t bytes;
	unsigned int refs;
};

/* bytes: whole pages. -ENOMEM, -EMFILE, -ENFILE and what the kernel says. */
int board_memory_new(struct board_release *release, const char *name, uint64_t bytes,
		     struct board_memory **ret_memory);
struct board_memory *board_memory_ref(struct board_memory *memory);
/* NULL is allowed. */
void board_memory_unref(struct board_memory *memory);
/* Backs it with pages, once; until it goes. */
void board_memory_populate(struct board_memory *memory, struct board_release *fill);
/* As unref by the maker; retired(arg) runs in the loop once the file has been given back. */
void board_memory_retire(struct board_memory *memory, void (*retired)(void *arg), void *arg);

/* The file alone: a sealed memfd of that size. */
int board_memory_file(const char *name, uint64_t bytes, int *ret_fd);

#endif
