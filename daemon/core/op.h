/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NPU_CORE_OP_H
#define NPU_CORE_OP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * One operation that somebody (a request, say) waits for. It lies in the asker's memory, from the
 * call that starts it till done(). A call that starts one returns 0 when done() will follow, or a
 * negative errno, also in op->error, when it failed at once; done() is then not called. After a
 * time-out the core carries on by itself and takes back what the late answer brought.
 */

#define OP_TEXT_MAX 384
#define OP_FDS_MAX  4

struct core_fault {
	uint64_t seq, time_ns, task, address, pc;
	unsigned int device;
	uint32_t kind, flags, ctx, queue, block, core;
	char kernel[256];
};

#define OP_FAULTS_MAX 16

struct op {
	void (*done)(struct op *op);

	int error;		/* 0 or a negative errno */
	bool contiguous;	/* -ENOSPC: only a contiguous run was missing */
	char text[OP_TEXT_MAX]; /* of an error: one line */
	uint64_t wanted, limit, largest;

	/* results; whoever takes one sets it to -1, op_release() closes the rest */
	int fds[OP_FDS_MAX];
	unsigned int nfds;
	union {
		struct {
			uint64_t slab_size, slab_address;
		} space;
		struct {
			uint32_t id, slot;
		} context;
		struct {
			uint32_t id;
			uint64_t bytes, page, address, generation;
		} memory;
		struct {
			uint32_t id, slot, epoch;
		} queue;
		struct {
			uint32_t id, device_id, funcs;
		} module;
		struct {
			uint32_t func, args_size, params;
			char name[256];
			uint32_t param_sizes[64];
		} func;
		struct {
			struct core_fault fault[OP_FAULTS_MAX];
			unsigned int count;
		} faults;
	};
};

void op_init(struct op *op, void (*done)(struct op *op));
/* Closes the fds that are still in it. */
void op_release(struct op *op);

/* Sets error and text; returns error. For calls that fail at once. */
int op_error(struct op *op, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Ends it well; op may be NULL (nobody waits any more). */
void op_finish(struct op *op);
/* Ends it with an error. */
void op_fail(struct op *op, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
