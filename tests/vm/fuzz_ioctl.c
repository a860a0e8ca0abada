/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_ioctl COUNT [SEED]: COUNT random calls of each ioctl number on each device node, and as many
 * of numbers that do not exist; between them reads, mmaps, and files that are opened and closed.
 *
 * Of the structs of a call some are noise, some are right but for one field: those get further. What
 * a call answers counts only so far: it must not be a success that a broken header cannot have, and
 * no fd may be left open. The kernel's log is looked at by whoever starts this.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "kdrv/uapi/npu.h"

#define NODES 3u
#define RESETS 2u    /* of so many resets the struct is right: each ends every session */
#define SESSIONS 24u /* living ones that we make; then they are left to the close of their file */

struct call {
	const char *name;
	unsigned long request;
	unsigned long good, bad;
};

#define CALL(x) { #x, NPU_IOCTL_##x, 0, 0 }
static struct call calls[] = {
	CALL(VERSION), CALL(DISCOVER), CALL(QUERY), CALL(RESET), CALL(COUNTERS), CALL(ERROR_QUERY),
	CALL(INJECT), CALL(SESSION_CREATE), CALL(SESSION_DESTROY), CALL(OBJ_ENUM), CALL(OBJ_FDS),
	CALL(OBJ_TAG), CALL(CTX_CREATE), CALL(CTX_DESTROY), CALL(CTX_SET), CALL(MEM_ALLOC),
	CALL(MEM_FREE), CALL(MEM_MAP), CALL(MEM_UNMAP), CALL(MEM_EXPORT), CALL(MEM_IMPORT),
	CALL(HOST_REGISTER), CALL(HOST_UNREGISTER), CALL(MEM_QUERY), CALL(QUEUE_CREATE),
	CALL(QUEUE_DESTROY), CALL(QUEUE_CTRL), CALL(SUBMIT), CALL(WAIT), CALL(MODULE_LOAD),
	CALL(MODULE_UNLOAD), CALL(FUNC_LOOKUP),
};
#define CALLS (sizeof(calls) / sizeof(calls[0]))

struct node {
	const char *path;
	int fd;
	__u64 session, number; /* a living session, and its last call number */
};

static struct node nodes[NODES] = {
	{ "/dev/npu-ctl0", -1, 0, 0 }, { "/dev/npu0", -1, 0, 0 }, { "/dev/npu1", -1, 0, 0 },
};

static __u64 state;
static unsigned int resets, wrong;
static _Alignas(8) unsigned char bytes[65536];

static __u64 next(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state * 0x2545f4914f6cdd1dull;
}

static unsigned int below(unsigned int n)
{
	return (unsigned int)(next() >> 33) % n;
}

/* Numbers as a caller that means it would give them, or as one that looks for the edge. */
static __u64 number(void)
{
	switch (below(8)) {
	case 0: return 0;
	case 1: return next();
	case 2: return ~0ull >> below(64);
	case 3: return 1ull << below(64);
	case 4: return NPU_WINDOW_BASE + ((__u64)below(4096) << 16);
	case 5: return (__u64)(below(64) + 1) << 16;
	default: return below(16);
	}
}

static void noise(size_t size)
{
	for (size_t i = 0; i + 8 <= size; i += 8) {
		__u64 value = next();

		memcpy(bytes + i, &value, 8);
	}
}

/* A header that gets through, and small numbers behind it. */
static void sensible(const struct node *node, const struct call *call, size_t size)
{
	struct npu_head head = { .size = (__u32)size };
	bool create = call->request == NPU_IOCTL_SESSION_CREATE;

	memset(bytes, 0, size);
	head.session = create ? 0 : node->session;
	head.call = node->number + 1;
	for (size_t at = sizeof(head); at + 8 <= size && at < 256; at += 8) {
		__u64 value = below(3) ? below(4) : number();

		memcpy(bytes + at, &value, 8);
	}
	if (below(4) == 0)
		head.flags = (__u32)number();
	memcpy(bytes, &head, sizeof(head));
}

static int open_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int count = 0;

	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

static void close_from(int first)
{
	for (int fd = first; fd < first + 64; fd++)
		close(fd);
}

static void node_reopen(struct node *node)
{
	if (node->fd >= 0)
		close(node->fd);
	node->fd = open(node->path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
	node->session = node->number = 0;
	if (node->fd < 0) {
		printf("%s: %s\n", node->path, strerror(errno));
		exit(1);
	}
}

static void session_new(struct node *node)
{
	struct npu_session_create create = {
		.head = { .size = sizeof(create), .call = ++node->number },
		.pid = (__u32)getpid(),
		.pid_start = 1,
		.slab_address = NPU_WINDOW_BASE,
		.comm = "fuzz",
	};

	if (node == &nodes[0] || ioctl(node->fd, NPU_IOCTL_SESSION_CREATE, &create) < 0)
		return;
	node->session = create.session;
	node->number = 0;
	close(create.fd_slab);
	close(create.fd_doorbell);
	close(create.fd_completion);
	close(create.fd_life);
}

/* A struct that is right would really do these. */
static bool allowed(const struct call *call)
{
	struct npu_inject *inject = (struct npu_inject *)bytes;

	if (call->request == NPU_IOCTL_RESET)
		return below(2000) == 0 && resets++ < RESETS;
	if (call->request == NPU_IOCTL_INJECT)
		return inject->kind != NPU_INJECT_FIRMWARE_DEATH &&
			inject->kind != NPU_INJECT_LINK_LOSS && inject->kind != NPU_INJECT_SLOW;
	return true;
}

static void call_once(struct node *node, struct call *call)
{
	unsigned long request = call->request;
	size_t size = _IOC_SIZE(request);
	bool broken = false;
	int r;

	switch (below(4)) {
	case 0: /* nothing is right, the size neither */
		size = below(4) ? below(NPU_CALL_MAX + 64) : size;
		request = _IOC(below(4), NPU_IOCTL_BASE, _IOC_NR(request), size & _IOC_SIZEMASK);
		noise(sizeof(bytes) / 16);
		broken = true;
		break;
	case 1: /* a tail that an older device does not know */
		sensible(node, call, size);
		size += 8 * (1 + below(8));
		memset(bytes + _IOC_SIZE(request), below(2) ? 0xff : 0, 64);
		((struct npu_head *)bytes)->size = (__u32)size;
		request = _IOC(_IOC_READ | _IOC_WRITE, NPU_IOCTL_BASE, _IOC_NR(request),
			       size & _IOC_SIZEMASK);
		break;
	default:
		sensible(node, call, size);
		break;
	}
	if (((struct npu_head *)bytes)->size == size && !allowed(call))
		((struct npu_head *)bytes)->flags = 0x80000000u;
	if (below(64) == 0)
		r = ioctl(node->fd, request, (void *)(below(2) ? 8ul : ~0xffful));
	else
		r = ioctl(node->fd, request, bytes);
	if (r == 0) {
		call->good++;
		if (broken && ((struct npu_head *)bytes)->size != _IOC_SIZE(request)) {
			printf("%s: a struct of noise was taken\n", call->name);
			wrong++;
		}
		if (((struct npu_head *)bytes)->session == node->session)
			node->number++;
		if (call->request == NPU_IOCTL_SESSION_DESTROY)
			node->session = 0;
	} else {
		call->bad++;
		if (errno == ENODEV && node != &nodes[0]) /* it was reset */
			node_reopen(node);
	}
}

static void around(struct node *node)
{
	void *map;

	switch (below(6)) {
	case 0: /* a number that no call has */
		if (ioctl(node->fd, _IOC(below(4), below(256), 0x80 + below(128), below(16384)),
			  bytes) == 0) {
			printf("a call that does not exist succeeded\n");
			wrong++;
		}
		break;
	case 1:
		if (read(node->fd, bytes, below(sizeof(bytes))) < 0 && errno == EFAULT)
			wrong++;
		break;
	case 2:
		if (write(node->fd, bytes, below(64)) > 0)
			wrong++;
		break;
	case 3:
		map = mmap(NULL, 4096, PROT_READ, MAP_SHARED, node->fd, (off_t)below(1024) << 12);
		if (map != MAP_FAILED)
			munmap(map, 4096);
		break;
	case 4:
		node_reopen(node);
		break;
	default:
		session_new(node);
		break;
	}
}

int main(int argc, char **argv)
{
	unsigned int count = argc > 1 ? (unsigned int)strtoul(argv[1], NULL, 0) : 10000;
	int first, before;

	state = argc > 2 ? strtoull(argv[2], NULL, 0) : (__u64)time(NULL);
	state |= 1;
	printf("seed %llu, %u calls of each of %zu\n", state, count, CALLS);
	for (unsigned int i = 0; i < NODES; i++)
		node_reopen(&nodes[i]);
	first = nodes[NODES - 1].fd + 1;
	before = open_fds();
	for (unsigned int i = 0; i < count; i++) {
		for (size_t c = 0; c < CALLS; c++) {
			/* the control node knows two calls; it sees the others now and then */
			struct node *node = c < 2 || below(16) == 0 ? &nodes[0] : &nodes[1 + below(2)];

			call_once(node, &calls[c]);
		}
		close_from(first);
		if (below(8) == 0)
			around(&nodes[below(NODES)]);
		if (i % SESSIONS == 0)
			for (unsigned int n = 1; n < NODES; n++)
				if (!nodes[n].session || below(2))
					session_new(&nodes[n]);
	}
	close_from(first);
	for (size_t c = 0; c < CALLS; c++)
		printf("%-16s %8lu done %8lu refused\n", calls[c].name, calls[c].good, calls[c].bad);
	if (open_fds() > before) {
		printf("%d files are left open\n", open_fds() - before);
		wrong++;
	}
	printf("%u wrong\n", wrong);
	return wrong ? 1 : 0;
}
