/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NPU_UTIL_CLOSER_H
#define NPU_UTIL_CLOSER_H

#include <stddef.h>

/*
 * A thread that closes file descriptors for threads that must not wait: close() of a socket with
 * SO_LINGER takes as long as the sender of that fd likes, and the last reference of a big memory
 * file costs 110-150 ms a GiB. It owns what it is given. Since one bad fd can hold it for long, it
 * starts up to CLOSER_THREADS threads, on demand. A caller that sees more than CLOSER_QUEUE_MAX
 * pending stops reading from whom it gets them.
 */

#define CLOSER_THREADS	 4
#define CLOSER_QUEUE_MAX 4096

struct closer;

int closer_new(struct closer **ret_closer);
/*
 * Waits for nothing that a client can hold up: fds still queued are closed by the process's exit.
 */
void closer_free(struct closer *closer);

/* Gives an fd away (negative: ignored). Any thread. On lack of memory it is closed in place. */
void closer_close(struct closer *closer, int fd);
/* fds waiting or being closed right now. */
size_t closer_pending(struct closer *closer);

#endif
