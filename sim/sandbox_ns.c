/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the nursery does to itself: empty namespaces, once for all engines, since making them costs
 * far more than an engine does. A caller without the right to make them takes a user namespace
 * first, in which it has; its own uid and gid are mapped to themselves, for the kernel lets nobody
 * who is unmapped make the engines' user namespaces.
 */

#include "config.h"
#include "sim/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t n;
	int r = 0;

	if (fd < 0)
		return -errno;
	n = write(fd, text, strlen(text));
	if (n != (ssize_t)strlen(text))
		r = n < 0 ? -errno : -EIO;
	close(fd);
	return r;
}

/* Where the maps cannot be written, engines go without a user namespace of their own. */
static int isolate_user(void)
{
	unsigned int uid = geteuid(), gid = getegid();
	char text[64];

	/* Files below /proc/self belong to root while the process is not dumpable. */
	prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	if (unshare(CLONE_NEWUSER) < 0)
		return -errno;
	write_text("/proc/self/setgroups", "deny");
	snprintf(text, sizeof(text), "%u %u 1", gid, gid);
	write_text("/proc/self/gid_map", text);
	snprintf(text, sizeof(text), "%u %u 1", uid, uid);
	write_text("/proc/self/uid_map", text);
	return 0;
}

/* Makes an empty read-only file system the root, and lets go of everything else. */
static int isolate_root(void)
{
	static const char *const places[] = { "/proc", "/tmp", "/dev", "/run" };
	const unsigned long flags = MS_NOSUID | MS_NODEV | MS_NOEXEC;
	const char *place = NULL;

	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return -errno;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]) && !place; i++)
		if (mount("none", places[i], "tmpfs", flags, "size=4096,nr_inodes=2,mode=0555") ==
		    0)
			place = places[i];
	if (!place || chdir(place) < 0)
		return -errno;
	if (mount(NULL, ".", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | flags, NULL) < 0)
		return -errno;
	/* The old root lands on top of the new one, and is then taken away. */
	if (syscall(SYS_pivot_root, ".", ".") < 0)
		return -errno;
	if (umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
		return -errno;
	return 0;
}

static bool root_is_empty(void)
{
	struct stat status;

	return stat("/proc", &status) < 0 && errno == ENOENT && stat("/usr", &status) < 0 &&
	       errno == ENOENT;
}

uint32_t sandbox_isolate(void)
{
	static const struct {
		int flag;
		uint32_t layer;
	} simple[] = {
		{ CLONE_NEWNET, SANDBOX_NET_NS },
		{ CLONE_NEWIPC, SANDBOX_IPC_NS },
		{ CLONE_NEWUTS, SANDBOX_UTS_NS },
	};
	uint32_t layers = 0;
	bool mounts;

	mounts = unshare(CLONE_NEWNS) == 0;
	if (!mounts && errno == EPERM && isolate_user() == 0)
		mounts = unshare(CLONE_NEWNS) == 0;
	for (size_t i = 0; i < sizeof(simple) / sizeof(simple[0]); i++)
		if (unshare(simple[i].flag) == 0)
			layers |= simple[i].layer;
	/* The name of the machine is nobody's business. */
	if ((layers & SANDBOX_UTS_NS) && sethostname("npu", 3) < 0)
		layers &= ~(uint32_t)SANDBOX_UTS_NS;
	if (mounts && isolate_root() == 0 && root_is_empty())
		layers |= SANDBOX_MOUNT_NS;
	return layers;
}
