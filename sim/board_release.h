/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NPU_SIM_BOARD_RELEASE_H
#define NPU_SIM_BOARD_RELEASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/board_loop.h"

/*
 * board_release - the releaser: a thread that gives memory back, fills it, and closes fds.
 *
 * Punching a hole costs more than 0.1 s a GiB, populating 0.5 s, unmapping a slab some ms, and
 * closing an fd that came from somebody else may block, so none of it happens in the loop. Jobs are
 * done in the order given, but populating goes on in pieces, each file in turn. Jobs are given by
 * the loop's thread.
 */

struct board_release;

/*
 * What was given to the releaser. Where reached() is asked for it is embedded in its owner, who
 * keeps it till then.
 */
struct board_job {
	struct board_job *next, **at; /* at: what points here */
	unsigned int kind;
	bool queued, cancelled;
	int fd;
	uint64_t offset, bytes;
	void (*reached)(struct board_job *mark);
};

/* Starts the thread. */
int board_release_new(struct board_loop *loop, struct board_release **ret_release);
/*
 * Does what is queued, but populates no more, runs the marks that are left, ends the thread. NULL
 * is allowed.
 */
void board_release_free(struct board_release *release);

/* Takes the fd over: closes it. */
void board_release_close(struct board_release *release, int fd);
/* Takes the memfd over: punches [0, bytes), closes it; then runs reached(job) in the loop. */
void board_release_file(struct board_release *release, struct board_job *job, int fd,
			uint64_t bytes, void (*reached)(struct board_job *job));
/* Bytes that were given by board_release_file() or _populate() and are not yet dealt with. */
uint64_t board_release_backlog(struct board_release *release);
/* Punches a part. The fd is lent, and duplicated. */
void board_release_range(struct board_release *release, int fd, uint64_t offset, uint64_t bytes);
/* Unmaps a range of ours. */
void board_release_unmap(struct board_release *release, void *map, size_t bytes);
/*
 * Backs [0, bytes) with memory, or as much as there is. The fd is lent until reached(job) was
 * called in the loop, or the job was cancelled.
 */
void board_release_populate(struct board_release *release, struct board_job *job, int fd,
			    uint64_t bytes, void (*reached)(struct board_job *job));
/* True: it does nothing any more, reached() is not called. False: that will happen soon. */
bool board_release_cancel(struct board_release *release, struct board_job *job);
/* Runs reached(mark) in the loop when everything given before is done. */
void board_release_mark(struct board_release *release, struct board_job *mark,
			void (*reached)(struct board_job *mark));

#endif
