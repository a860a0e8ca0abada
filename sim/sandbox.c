/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stage 1: each step gives up one thing and never needs an earlier one back. The order is forced:
 * the uid changes while there are capabilities, the user namespace comes next because it brings a
 * full set of its own, the bounding set and all capabilities go after that, and "not dumpable" and
 * the parent-death signal come last, because the kernel resets both when credentials change.
 *
 * The new user namespace gets no uid map: nothing in an engine creates or names a file.
 */

#include "config.h"
#include "sim/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <malloc.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CONTROL_FD 3

#ifdef NPU_SANITIZERS
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

/*
 * linux/landlock.h of Debian 12 ends at ABI 2; the kernel takes any length of this struct whose
 * unknown tail is zero, so the whole of it is written down here.
 */
struct landlock_ruleset {
	uint64_t handled_access_fs;
	uint64_t handled_access_net;
	uint64_t scoped;
};

#define LANDLOCK_CREATE_VERSION 1u
#define LANDLOCK_FS_ABI1	((1ull << 13) - 1)
#define LANDLOCK_FS_REFER	(1ull << 13) /* ABI 2 */
#define LANDLOCK_FS_TRUNCATE	(1ull << 14) /* ABI 3 */
#define LANDLOCK_FS_IOCTL_DEV	(1ull << 15) /* ABI 5 */
#define LANDLOCK_NET_TCP	3ull	     /* ABI 4: bind, connect */
#define LANDLOCK_SCOPE_ALL	3ull	     /* ABI 6: abstract sockets, signals */

#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_restrict_self  446
#endif

static const char *const layer_names[SANDBOX_LAYER_COUNT] = {
	"no-new-privs",	 "seccomp",	  "user-namespace",  "pid-namespace", "net-namespace",
	"ipc-namespace", "uts-namespace", "mount-namespace", "own-uid",	      "capabilities",
	"landlock",	 "landlock-net",  "landlock-scope",  "rlimits",	      "data-limit",
	"not-dumpable",	 "parent-death",
};

const char *sandbox_layer_name(unsigned int bit)
{
	return bit < SANDBOX_LAYER_COUNT ? layer_names[bit] : NULL;
}

static int enter_fds(int keep_fd)
{
	if (keep_fd != CONTROL_FD && dup3(keep_fd, CONTROL_FD, O_CLOEXEC) < 0)
		return -errno;
	if (syscall(SYS_close_range, CONTROL_FD + 1, ~0u, 0) < 0)
		return -errno;
	return 0;
}

static int enter_no_new_privs(uint32_t *layers)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
		return -EPERM;
	*layers |= SANDBOX_NO_NEW_PRIVS;
	return 0;
}

static bool limit_set(int resource, uint64_t value)
{
	struct rlimit limit;

	if (getrlimit(resource, &limit) < 0)
		return false;
	if (limit.rlim_max > value)
		limit.rlim_max = value;
	limit.rlim_cur = limit.rlim_max;
	return setrlimit(resource, &limit) == 0;
}

static void enter_limits(const struct sandbox_limits *limits, uint32_t *layers)
{
	/* Not RLIMIT_FSIZE: 0 would kill at a write to shared memory. */
	if (limit_set(RLIMIT_CORE, 0) && limit_set(RLIMIT_NOFILE, limits->nofile))
		*layers |= SANDBOX_RLIMITS;
	if (!SANITIZED && limit_set(RLIMIT_DATA, limits->data))
		*layers |= SANDBOX_DATA_LIMIT;
}

static void caps_write(uint32_t low, uint32_t high, bool effective_only, bool *ret_done)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { 0 };

	if (effective_only) {
		if (syscall(SYS_capget, &header, data) < 0)
			return;
		data[0].effective = data[0].permitted;
		data[1].effective = data[1].permitted;
	} else {
		data[0].effective = data[0].permitted = low;
		data[1].effective = data[1].permitted = high;
	}
	*ret_done = syscall(SYS_capset, &header, data) == 0;
}

static void enter_uid(const struct sandbox_limits *limits, uint32_t *layers)
{
	bool done = false;

	/* Kept over the change of uid because some hosts let nobody else make a namespace. */
	prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0);
	if (setgroups(0, NULL) == 0 && setresgid(limits->gid, limits->gid, limits->gid) == 0 &&
	    setresuid(limits->uid, limits->uid, limits->uid) == 0)
		*layers |= SANDBOX_UID;
	caps_write(0, 0, true, &done);
	if (unshare(CLONE_NEWUSER) == 0)
		*layers |= SANDBOX_USER_NS;
	prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0);
}

static void enter_capabilities(uint32_t *layers)
{
	bool empty = true, done = false;
	int r;

	for (int cap = 0; (r = prctl(PR_CAPBSET_READ, cap, 0, 0, 0)) >= 0; cap++)
		if (r == 1 && prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
			empty = false;
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	caps_write(0, 0, false, &done);
	if (done && empty)
		*layers |= SANDBOX_CAPABILITIES;
}

static void enter_landlock(uint32_t *layers)
{
	struct landlock_ruleset ruleset = { .handled_access_fs = LANDLOCK_FS_ABI1 };
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_VERSION);
	uint32_t gained = SANDBOX_LANDLOCK;
	size_t size = offsetof(struct landlock_ruleset, handled_access_net);
	int fd;

	if (abi < 1)
		return;
	if (abi >= 2)
		ruleset.handled_access_fs |= LANDLOCK_FS_REFER;
	if (abi >= 3)
		ruleset.handled_access_fs |= LANDLOCK_FS_TRUNCATE;
	if (abi >= 4) {
		ruleset.handled_access_net = LANDLOCK_NET_TCP;
		gained |= SANDBOX_LANDLOCK_NET;
		size = offsetof(struct landlock_ruleset, scoped);
	}
	if (abi >= 5)
		ruleset.handled_access_fs |= LANDLOCK_FS_IOCTL_DEV;
	if (abi >= 6) {
		ruleset.scoped = LANDLOCK_SCOPE_ALL;
		gained |= SANDBOX_LANDLOCK_SCOPE;
		size = sizeof(ruleset);
	}
	fd = (int)syscall(SYS_landlock_create_ruleset, &ruleset, size, 0);
	if (fd < 0)
		return;
	if (syscall(SYS_landlock_restrict_self, fd, 0) == 0)
		*layers |= gained;
	close(fd);
}

static int enter_ties(uint32_t *layers)
{
	struct pollfd peer = { .fd = CONTROL_FD };

	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0)
		*layers |= SANDBOX_NOT_DUMPABLE;
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0)
		*layers |= SANDBOX_PARENT_DEATH;
	/* The board may have died before the line above. */
	if (poll(&peer, 1, 0) > 0 && (peer.revents & (POLLHUP | POLLERR)))
		return -ESRCH;
	return 0;
}

int sandbox_enter(int keep_fd, const struct sandbox_limits *limits, uint32_t *ret_layers)
{
	uint32_t layers = 0;
	int r;

	r = enter_fds(keep_fd);
	if (r < 0)
		return r;
	r = enter_no_new_privs(&layers);
	if (r < 0)
		return r;
	enter_limits(limits, &layers);
	enter_uid(limits, &layers);
	enter_capabilities(&layers);
	enter_landlock(&layers);
	if (getpid() == 1)
		layers |= SANDBOX_PID_NS;
	r = enter_ties(&layers);
	if (r < 0)
		return r;
	/*
	 * glibc must not meet the filter: a second arena asks for the number of processors, and
	 * realloc() of a block with a mapping of its own calls mremap().
	 */
	mallopt(M_ARENA_MAX, 1);
	mallopt(M_MMAP_MAX, 0);
	*ret_layers = layers;
	return 0;
}
