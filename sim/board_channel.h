/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NPU_SIM_BOARD_CHANNEL_H
#define NPU_SIM_BOARD_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/board_loop.h"
#include "sim/board_memory.h"
#include "sim/engine_proto.h"

/*
 * board_channel - the board's end of the socket to one engine.
 *
 * Sends never block: what the socket does not take waits in a list, with a reference to the memory
 * whose fd it carries. What arrives is checked for form here (magic, type, length, no fds, answers
 * in the order of the messages) and handed on; a peer that breaks the form, or lets the list grow
 * over its limit, leaves `broken` set, one that hangs up `closed`; the owner looks at both after
 * each turn of the loop. A peer that floods is read at a bounded rate. Embedded in its owner; loop
 * thread.
 */

#define BOARD_CHANNEL_QUEUE 65536u /* messages that may wait */
#define BOARD_CHANNEL_AGE 30000000000ull /* an answer may come this much later, ns, at most */

struct board_channel;
struct board_channel_packet;

/* A message without an answer. */
struct board_channel_open {
	uint64_t sent_ns;
	uint64_t due_ns; /* by then a peer that is never late is through with it */
};

struct board_channel_ops {
	/* An answer: to messages in turn, each once. ENGINE_READY is that to the first one. */
	void (*answer)(struct board_channel *channel, const struct engine_ack *ack);
	void (*funcs)(struct board_channel *channel, const struct engine_funcs *funcs);
	void (*fault)(struct board_channel *channel, const struct engine_fault_msg *fault);
};

struct board_channel {
	struct board_source source;
	struct board_loop *loop;
	struct board_release *release;
	const struct board_channel_ops *ops;
	struct board_channel_packet *first, **last;
	unsigned int queued;
	uint64_t sent;        /* seq of the newest message */
	uint64_t answered;    /* seq of the newest answer */
	uint64_t progress_ns; /* when the oldest unanswered message began to wait */
	struct board_channel_open *opens; /* unanswered ones, by seq % room */
	uint32_t room;        /* a power of two */
	uint64_t due_ns;      /* of the newest message */
	uint64_t window_ns;   /* reading: begin of the window of the budget */
	unsigned int used;
	bool throttled;
	bool closed;        /* the peer hung up, as it does when it ends */
	const char *broken; /* why, or NULL */
};

/* Takes the socket over. */
int board_channel_open(struct board_channel *channel, struct board_loop *loop,
		       struct board_release *release, int fd, const struct board_channel_ops *ops);
/* Reads the last words of a peer that has ended, within the budget of one window. */
void board_channel_drain(struct board_channel *channel);
/* Drops what waits. May be called twice. */
void board_channel_close(struct board_channel *channel);

/* One message. fds are lent, and sent at once if possible. Returns its seq. */
uint64_t board_channel_send(struct board_channel *channel, enum engine_msg_type type,
			    const void *payload, size_t bytes, const int *fds, unsigned int nfds);
/* One message with the fd of memory (NULL: none). */
uint64_t board_channel_send_memory(struct board_channel *channel, enum engine_msg_type type,
				   const void *payload, size_t bytes, struct board_memory *memory);

/*
 * When the peer must have answered at the latest, or ~0: within limit_ns of its last answer, of
 * when it would be through with the message if each took as long as its kind may take, and of an
 * age of the message of BOARD_CHANNEL_AGE. So a peer cannot win time by answering late each time.
 */
uint64_t board_channel_deadline(const struct board_channel *channel, uint64_t limit_ns);

/* When a throttled channel is to be read again, or ~0; and doing so. */
uint64_t board_channel_resume_ns(const struct board_channel *channel);
void board_channel_resume(struct board_channel *channel);

#endif
