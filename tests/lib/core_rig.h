/* SPDX-License-Identifier: Apache-2.0 */
/*
 * core_rig - a kdrv/core device on a bench: counting allocator that fails on order, a clock that is
 * set by hand, random bytes from a seed, and a backend that checks the order of admin commands.
 *
 * A broken rule (a drop without its create, memory given back with the wrong size, a leak at the
 * end) ends the process with a line on stderr. One thread.
 */
#ifndef TESTS_LIB_CORE_RIG_H
#define TESTS_LIB_CORE_RIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kdrv/core/npu_core.h"

#define CORE_RIG_PENDING 4096u
#define CORE_RIG_CAPS \
	(NPU_CAP_HOST_VISIBLE | NPU_CAP_HOST_MAPPED | NPU_CAP_INJECT | NPU_CAP_ISOLATED)

struct core_rig {
	struct npu_core *core;
	struct npu_core_file *file; /* the one core_rig_call() uses */
	struct npu_core_config config;

	size_t live;      /* allocations */
	size_t live_bytes;
	size_t allocs;    /* ever made or refused */
	size_t fail_at;   /* the n-th from now on is refused, once; 0: none */

	size_t objects; /* that the backend holds */
	size_t admin[32]; /* commands by enum npu_admin_op */
	int fail_op;      /* this command fails, once */
	int fail_errno;
	bool fail_each;   /* each time, not once */
	bool space_pending;
	bool mem_pending;
	struct npu_session *sessions[CORE_RIG_PENDING];
	size_t nsessions;
	struct npu_mem *mems[CORE_RIG_PENDING];
	size_t nmems;
	struct npu_admin_cmd last; /* the last command */
	uint32_t busy_below; /* slots below are refused to new queues with -EBUSY */
	uint64_t done;  /* what QUEUE_DONE answers */
	uint32_t taken; /* what SUBMIT takes at most */

	size_t fds;    /* given out */
	int fd_errno;  /* fd_get fails with it */
	size_t ready;  /* event_ready calls */
	bool locked;
	uint64_t now;
	uint64_t random;
	uint64_t call; /* last call number used */
};

/* memory_bytes of device memory, cap bits as given. Negative errno: what the core said. */
int core_rig_init(struct core_rig *rig, uint64_t memory_bytes, uint64_t caps, uint64_t seed);
int core_rig_start(struct core_rig *rig);
/* Frees the core and checks that nothing is left. */
void core_rig_fini(struct core_rig *rig);
void core_rig_check(bool ok, const char *what);

/* Runs a call on rig->file. head.size is set when 0, head.call too for calls that mutate. */
int core_rig_call(struct core_rig *rig, unsigned int nr, void *arg, uint32_t size);
#define CORE_CALL(rig, request, arg) \
	core_rig_call(rig, _IOC_NR(NPU_IOCTL_##request), arg, sizeof(*(arg)))

/* Short forms of the common calls; outputs only on success. */
int core_rig_session(struct core_rig *rig, uint64_t *ret_session);
int core_rig_destroy(struct core_rig *rig, uint64_t session);
int core_rig_ctx(struct core_rig *rig, uint64_t session, uint32_t *ret_ctx);
int core_rig_queue(struct core_rig *rig, uint64_t session, uint32_t ctx, uint32_t *ret_queue);
int core_rig_mem(struct core_rig *rig, uint64_t session, uint32_t kind, uint64_t bytes,
		 uint64_t *ret_mem);
int core_rig_mem_free(struct core_rig *rig, uint64_t session, uint64_t mem);
int core_rig_map(struct core_rig *rig, uint64_t session, uint64_t mem, uint64_t address,
		 uint64_t bytes);
int core_rig_unmap(struct core_rig *rig, uint64_t session, uint64_t address, uint64_t bytes);
int core_rig_module(struct core_rig *rig, uint64_t session, uint64_t mem, uint32_t *ret_module);
int core_rig_query(struct core_rig *rig, struct npu_query *ret_query);
int core_rig_counter(struct core_rig *rig, uint64_t session, enum npu_counter counter,
		     uint64_t *ret_value);

/* The session of an id, or NULL; as a backend knows it. */
struct npu_session *core_rig_find(struct core_rig *rig, uint64_t session);

/* Ends everything pending. */
void core_rig_settle(struct core_rig *rig);

#define CORE_RIG_SLAB (NPU_WINDOW_BASE + (256ull << 30))

#endif
