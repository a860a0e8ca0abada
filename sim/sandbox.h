/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NPU_SIM_SANDBOX_H
#define NPU_SIM_SANDBOX_H

/*
 * sandbox: the cage of an engine process, in layers.
 *
 * A cage is built in three places, always in this order:
 *
 *   sandbox_isolate()  once, in the nursery: empty net, ipc, uts and mount namespaces, through a
 *                      user namespace when the caller is an ordinary user
 *   sandbox_enter()    stage 1, in a new engine before it has threads: fds, no_new_privs, rlimits,
 *                      own uid, own user namespace, no capability, landlock with no path,
 *                      parent-death signal
 *   sandbox_seal()     stage 2, in the engine after it has made all its threads: seccomp allow-list
 *                      over all of them
 *
 * sandbox_prepare() builds the seccomp program once in the nursery; engines inherit it through
 * fork.
 *
 * no_new_privs and seccomp are mandatory: without them enter and seal fail, and the engine must end
 * without looking at one byte of its client. Any other layer that the host refuses is missing from
 * the mask that is returned, and an engine may run without it; nothing is skipped in silence.
 *
 * All functions here are for single-threaded callers, sandbox_seal() and sandbox_layer_name()
 * excepted. Errors are negative errno.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Layers. A bit that is set stands. Bit numbers are stable: they travel to npuctl doctor. */
enum sandbox_layer {
	SANDBOX_NO_NEW_PRIVS = 1u << 0,
	SANDBOX_SECCOMP = 1u << 1,
	SANDBOX_USER_NS = 1u << 2,
	SANDBOX_PID_NS = 1u << 3,
	SANDBOX_NET_NS = 1u << 4,
	SANDBOX_IPC_NS = 1u << 5,
	SANDBOX_UTS_NS = 1u << 6,
	SANDBOX_MOUNT_NS = 1u << 7,
	SANDBOX_UID = 1u << 8,		   /* a uid and gid that are not the board's, no groups */
	SANDBOX_CAPABILITIES = 1u << 9,	   /* no capability, empty bounding set */
	SANDBOX_LANDLOCK = 1u << 10,	   /* no path, no ptrace out of the engine (ABI 1) */
	SANDBOX_LANDLOCK_NET = 1u << 11,   /* no TCP bind or connect (ABI 4) */
	SANDBOX_LANDLOCK_SCOPE = 1u << 12, /* no signal, no abstract socket out of it (ABI 6) */
	SANDBOX_RLIMITS = 1u << 13,	   /* no core file, bounded number of fds */
	SANDBOX_DATA_LIMIT = 1u << 14, /* RLIMIT_DATA; never in a sanitizer build (shadow memory) */
	SANDBOX_NOT_DUMPABLE = 1u << 15,
	SANDBOX_PARENT_DEATH = 1u << 16, /* the kernel kills the engine when the board ends */
};

#define SANDBOX_LAYER_COUNT 17
#define SANDBOX_ALL	    ((1u << SANDBOX_LAYER_COUNT) - 1)
#define SANDBOX_MANDATORY   (SANDBOX_NO_NEW_PRIVS | SANDBOX_SECCOMP)
/* The layers that sandbox_isolate() raises; an engine has them by birth. */
#define SANDBOX_BY_NURSERY (SANDBOX_NET_NS | SANDBOX_IPC_NS | SANDBOX_UTS_NS | SANDBOX_MOUNT_NS)

/* Exit status of an engine that could not raise a layer which it must have. */
#define SANDBOX_EXIT_STATUS 77

struct sandbox_limits {
	uint64_t data;	 /* bytes of private memory (RLIMIT_DATA: heap, thread and kernel stacks) */
	uint32_t nofile; /* fds */
	uid_t uid;	 /* taken if the process may change its uid */
	gid_t gid;
};

/* Name of the layer with that bit number (from 0), else NULL. Static storage. */
const char *sandbox_layer_name(unsigned int bit);

/*
 * Moves the calling process into empty namespaces. Returns the layers that now stand, a subset of
 * SANDBOX_BY_NURSERY. With the mount layer there is no path any more but an empty read-only root.
 */
uint32_t sandbox_isolate(void);

/* Builds the seccomp program. Called once before engines are forked. -ENOMEM, -EINVAL. */
int sandbox_prepare(void);

/*
 * Stage 1. Keeps 0, 1, 2 and keep_fd, which becomes fd 3, close-on-exec; closes the rest. Raises
 * every layer but those of the nursery, the pid namespace and seccomp. Returns 0 and the layers
 * that stand, SANDBOX_PID_NS included if the caller is the first process of a pid namespace.
 * -ESRCH: the board (the other end of keep_fd) is gone. -EPERM and others: no_new_privs refused.
 */
int sandbox_enter(int keep_fd, const struct sandbox_limits *limits, uint32_t *ret_layers);

/*
 * Stage 2. Puts the filter on every thread of the process. Each thread must have reached its own
 * start routine (let them meet at a barrier): before that glibc changes signal masks, which would
 * be fatal. From now on, in any thread:
 *   allowed  read write pread64 close mmap munmap mprotect madvise brk (no mapping both writable
 *            and executable) futex recvmsg sendmsg poll ppoll epoll_wait epoll_pwait sched_yield
 *            getcpu clock_gettime membarrier getpid gettid exit exit_group rt_sigreturn
 *            restart_syscall, tgkill to threads of the own process
 *   refused  everything else, by SIGSYS (a kernel that tries ends with a fault): among it new
 *            threads and the end of a thread (glibc blocks signals there), send() and recv() (use
 *            sendmsg, recvmsg), fstat, mremap, nanosleep, signal masks, handlers and alternate
 *            stacks, priorities.
 * A sanitizer build allows more; sandbox_filter.c lists it. Errors: -EPERM without no_new_privs,
 * -ESRCH if a thread could not be synchronised, what seccomp says.
 */
int sandbox_seal(void);

#endif
