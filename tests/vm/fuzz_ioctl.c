/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_ioctl COUNT [SEED]: COUNT random calls of each ioctl number on each device node, and as many
 * of numbers that do not exist; between them reads, mmaps, and files that are opened and closed.
 *
 * Of the structs of a call some are noise, some are right and name objects that exist, some are right
 * but for one field: those get further. What a call answers counts only so far: noise must not be
 * taken, and each call must be done now and then. The kernel's log is looked at by whoever starts
 * this.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
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
#define SESSIONS 24u /* in one of so many turns a session is left to the close of its file */

struct call {
	const char *name;
	unsigned long request;
	bool mutates; /* takes a call number */
	unsigned long good, bad;
	__u64 ns;
};

#define CALL(x) { #x, NPU_IOCTL_##x, false, 0, 0, 0 }
#define CALL_M(x) { #x, NPU_IOCTL_##x, true, 0, 0, 0 }
static struct call calls[] = {
	CALL(VERSION), CALL(DISCOVER), CALL(QUERY), CALL(RESET), CALL(COUNTERS), CALL(ERROR_QUERY),
	CALL(INJECT), CALL_M(SESSION_CREATE), CALL_M(SESSION_DESTROY), CALL(OBJ_ENUM), CALL(OBJ_FDS),
	CALL(OBJ_TAG), CALL_M(CTX_CREATE), CALL_M(CTX_SET), CALL_M(CTX_DESTROY), CALL_M(MEM_ALLOC),
	CALL_M(MEM_MAP), CALL_M(MEM_UNMAP), CALL_M(MEM_EXPORT), CALL_M(MEM_IMPORT),
	CALL_M(HOST_REGISTER), CALL_M(HOST_UNREGISTER), CALL(MEM_QUERY), CALL_M(QUEUE_CREATE),
	CALL_M(QUEUE_CTRL), CALL(SUBMIT), CALL(WAIT), CALL_M(QUEUE_DESTROY), CALL_M(MODULE_LOAD),
	CALL(FUNC_LOOKUP), CALL_M(MODULE_UNLOAD), CALL_M(MEM_FREE),
};
#define CALLS (sizeof(calls) / sizeof(calls[0]))

struct node {
	const char *path;
	int fd;
	__u64 creations;       /* SESSION_CREATE has call numbers of its own */
	__u64 session, number; /* a living session, and its last call number */
	__u32 ctx, queue, module; /* what it made last; may be gone */
	__u64 mem[4];          /* by kind */
	__u64 mapped, registered;
	__u64 token[2];
};

static struct node nodes[NODES] = {
	{ .path = "/dev/npu-ctl0", .fd = -1 }, { .path = "/dev/npu0", .fd = -1 },
	{ .path = "/dev/npu1", .fd = -1 },
};

static __u64 state;
static unsigned int resets, wrong;
static _Alignas(8) unsigned char bytes[65536];

static __u64 now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (__u64)ts.tv_sec * 1000000000ull + (__u64)ts.tv_nsec;
}

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

static __u64 address(void)
{
	return NPU_WINDOW_BASE + (64ull << 30) + ((__u64)below(256) << 21);
}

#define AS(type) struct type *c = (struct type *)bytes

static void right_memory(const struct node *node, unsigned long request)
{
	switch (request) {
	case NPU_IOCTL_MEM_ALLOC: {
		AS(npu_mem_alloc);
		c->kind = 1 + below(3);
		c->bytes = 1 + below(140000);
		c->head.flags = below(4) ? 0 : 1u << below(4);
		break;
	}
	case NPU_IOCTL_MEM_FREE: {
		AS(npu_mem_free);
		c->mem = node->mem[1 + below(3)];
		break;
	}
	case NPU_IOCTL_MEM_MAP: {
		AS(npu_mem_map);
		c->mem = node->mem[1 + below(2)];
		c->address = address();
		c->bytes = NPU_PAGE_SMALL;
		c->head.flags = below(4) ? 0 : NPU_MAP_READ_ONLY;
		break;
	}
	case NPU_IOCTL_MEM_UNMAP: {
		AS(npu_mem_unmap);
		c->address = node->mapped;
		c->bytes = NPU_PAGE_SMALL;
		break;
	}
	case NPU_IOCTL_MEM_EXPORT: {
		AS(npu_mem_export);
		c->mem = node->mem[1];
		break;
	}
	case NPU_IOCTL_MEM_IMPORT: {
		AS(npu_mem_import);
		memcpy(c->token, node->token, sizeof(c->token));
		break;
	}
	case NPU_IOCTL_HOST_REGISTER: {
		AS(npu_host_register);
		c->mem = node->mem[2];
		c->address = address();
		c->bytes = 65536;
		break;
	}
	case NPU_IOCTL_HOST_UNREGISTER: {
		AS(npu_host_unregister);
		c->address = node->registered;
		c->bytes = 65536;
		break;
	}
	case NPU_IOCTL_MEM_QUERY: {
		AS(npu_mem_query);
		c->mem = node->mem[1 + below(3)];
		break;
	}
	}
}

static void right_queue(const struct node *node, unsigned long request)
{
	switch (request) {
	case NPU_IOCTL_CTX_CREATE: {
		AS(npu_ctx_create);
		c->priority = below(8);
		c->weight = below(1001);
		break;
	}
	case NPU_IOCTL_CTX_DESTROY: {
		AS(npu_ctx_destroy);
		c->ctx = node->ctx;
		break;
	}
	case NPU_IOCTL_CTX_SET: {
		AS(npu_ctx_set);
		c->ctx = node->ctx;
		c->head.flags = NPU_CTX_WEIGHT;
		c->weight = 1 + below(1000);
		break;
	}
	case NPU_IOCTL_QUEUE_CREATE: {
		AS(npu_queue_create);
		c->ctx = node->ctx;
		c->priority = below(8);
		c->fail_mode = below(2);
		break;
	}
	case NPU_IOCTL_QUEUE_DESTROY: {
		AS(npu_queue_destroy);
		c->queue = node->queue;
		break;
	}
	case NPU_IOCTL_QUEUE_CTRL: {
		AS(npu_queue_ctrl);
		c->queue = node->queue;
		c->op = 1 + below(5);
		c->value = c->op >= NPU_QUEUE_SET_FAIL_MODE ? below(2) : 0;
		break;
	}
	case NPU_IOCTL_SUBMIT: {
		AS(npu_submit);
		c->queue = node->queue;
		c->count = 1 + below(NPU_SUBMIT_MAX);
		for (unsigned int i = 0; i < c->count; i++) {
			c->entries[i].op = (__u8)below(NPU_OP_MAX + 1);
			for (unsigned int k = 0; k < 6; k++)
				c->entries[i].raw[k] = number();
		}
		break;
	}
	case NPU_IOCTL_WAIT: {
		AS(npu_wait);
		c->queue = node->queue;
		c->head.flags = below(2);
		break;
	}
	case NPU_IOCTL_MODULE_LOAD: {
		AS(npu_module_load);
		c->mem = node->mem[NPU_MEM_IMAGE];
		c->bytes = 1 + below(4096);
		break;
	}
	case NPU_IOCTL_MODULE_UNLOAD: {
		AS(npu_module_unload);
		c->module = node->module;
		break;
	}
	case NPU_IOCTL_FUNC_LOOKUP: {
		AS(npu_func_lookup);
		c->module = node->module;
		break;
	}
	}
}

/* A call as npud would make it, with objects of the node's session. */
static void right(const struct node *node, const struct call *call)
{
	struct npu_head *head = (struct npu_head *)bytes;

	memset(bytes, 0, _IOC_SIZE(call->request));
	head->size = _IOC_SIZE(call->request);
	head->session = node->session;
	if (call->mutates)
		head->call = node->number + 1 + (below(32) == 0);
	switch (call->request) {
	case NPU_IOCTL_VERSION:
	case NPU_IOCTL_DISCOVER:
	case NPU_IOCTL_QUERY:
	case NPU_IOCTL_RESET:
		head->session = 0;
		((struct npu_version *)bytes)->major =
			call->request == NPU_IOCTL_VERSION ? NPU_UAPI_MAJOR : 0;
		break;
	case NPU_IOCTL_INJECT: {
		AS(npu_inject);
		c->kind = 1 + below(8);
		break;
	}
	case NPU_IOCTL_SESSION_CREATE: {
		AS(npu_session_create);
		head->session = 0;
		head->call = node->creations + 1;
		c->pid = (__u32)getpid();
		c->pid_start = 1;
		c->slab_address = NPU_WINDOW_BASE;
		break;
	}
	case NPU_IOCTL_OBJ_FDS: {
		AS(npu_obj_fds);
		c->type = below(2) ? NPU_OBJ_SESSION : NPU_OBJ_MEMORY;
		c->id = c->type == NPU_OBJ_SESSION ? node->session : node->mem[2];
		break;
	}
	case NPU_IOCTL_OBJ_TAG: {
		AS(npu_obj_tag);
		c->type = NPU_OBJ_SESSION;
		c->id = node->session;
		c->head.flags = below(2);
		c->bytes = c->head.flags ? below(NPU_TAG_MAX) : 0;
		break;
	}
	default:
		right_memory(node, call->request);
		right_queue(node, call->request);
	}
}

/* One field of it is something else. */
static void mutate(size_t size)
{
	size_t at = below((unsigned int)(below(2) && size > 64 ? 64 : size) / 4) * 4;
	__u64 value = number();

	/* a call number that is taken makes all smaller ones old */
	if (at / 8 == offsetof(struct npu_head, call) / 8 && below(64))
		at = 0;

	memcpy(bytes + at, &value, below(2) && at + 8 <= size ? 8 : 4);
}

/* Remembers what a call has made. */
static void made(struct node *node, const struct call *call)
{
	if (call->request == NPU_IOCTL_SESSION_CREATE) {
		return;
	}
	switch (call->request) {
	case NPU_IOCTL_SESSION_DESTROY:
		node->session = 0;
		break;
	case NPU_IOCTL_CTX_CREATE:
		node->ctx = ((struct npu_ctx_create *)bytes)->ctx;
		break;
	case NPU_IOCTL_QUEUE_CREATE:
		node->queue = ((struct npu_queue_create *)bytes)->queue;
		break;
	case NPU_IOCTL_MODULE_LOAD:
		node->module = ((struct npu_module_load *)bytes)->module;
		break;
	case NPU_IOCTL_MEM_ALLOC: {
		AS(npu_mem_alloc);
		node->mem[c->kind & 3] = c->mem;
		break;
	}
	case NPU_IOCTL_MEM_MAP:
		node->mapped = ((struct npu_mem_map *)bytes)->address;
		break;
	case NPU_IOCTL_HOST_REGISTER:
		node->registered = ((struct npu_host_register *)bytes)->address;
		break;
	case NPU_IOCTL_MEM_EXPORT:
		memcpy(node->token, ((struct npu_mem_export *)bytes)->token, sizeof(node->token));
		break;
	}
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
	close_range((unsigned int)first, ~0u, 0);
}

static void node_reopen(struct node *node)
{
	if (node->fd >= 0)
		close(node->fd);
	*node = (struct node){ .path = node->path };
	node->fd = open(node->path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
	if (node->fd < 0) {
		printf("%s: %s\n", node->path, strerror(errno));
		exit(1);
	}
}

static void session_new(struct node *node)
{
	struct npu_session_create create = {
		.head = { .size = sizeof(create), .call = ++node->creations },
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
		return below(500) == 0 && resets++ < RESETS;
	if (call->request == NPU_IOCTL_SESSION_DESTROY || call->request == NPU_IOCTL_SESSION_CREATE)
		return below(64) == 0;
	if (call->request == NPU_IOCTL_INJECT)
		return below(100) == 0 && inject->kind != NPU_INJECT_FIRMWARE_DEATH &&
			inject->kind != NPU_INJECT_LINK_LOSS && inject->kind != NPU_INJECT_SLOW;
	return true;
}

/* A number is used up whether the call was done or refused: the same one gives the same answer. */
static void numbered(struct node *node, const struct call *call, const struct npu_head *sent)
{
	bool create = call->request == NPU_IOCTL_SESSION_CREATE;
	__u64 *number = create ? &node->creations : &node->number;

	if (!call->mutates || sent->session != (create ? 0 : node->session) || sent->call <= *number)
		return;
	*number = sent->call;
}

static void call_once(struct node *node, struct call *call)
{
	struct npu_head sent;
	__u64 begin;
	unsigned long request = call->request;
	size_t size = _IOC_SIZE(request);
	bool broken = false;
	int r;

	switch (below(4)) {
	case 0: /* nothing is right, the size neither */
		size = below(4) ? below(NPU_CALL_MAX + 64) : size;
		request = _IOC(below(4), NPU_IOCTL_BASE, _IOC_NR(request), size & _IOC_SIZEMASK);
		noise(size < 1024 ? size : 1024);
		broken = true;
		break;
	case 1: /* a tail that an older device does not know */
		right(node, call);
		size += 8 * (1 + below(8));
		memset(bytes + _IOC_SIZE(request), below(2) ? 0xff : 0, 64);
		((struct npu_head *)bytes)->size = (__u32)size;
		request = _IOC(_IOC_READ | _IOC_WRITE, NPU_IOCTL_BASE, _IOC_NR(request),
			       size & _IOC_SIZEMASK);
		break;
	case 2:
		right(node, call);
		mutate(size);
		break;
	default:
		right(node, call);
		break;
	}
	if (((struct npu_head *)bytes)->size == size && !allowed(call))
		((struct npu_head *)bytes)->flags = 0x80000000u;
	memcpy(&sent, bytes, sizeof(sent));
	begin = now_ns();
	if (below(64) == 0)
		r = ioctl(node->fd, request, (void *)(below(2) ? 8ul : ~0xffful));
	else
		r = ioctl(node->fd, request, bytes);
	call->ns += now_ns() - begin;
	numbered(node, call, &sent);
	if (r < 0) {
		call->bad++;
		if (errno == ENODEV && node != &nodes[0]) /* it was reset */
			node_reopen(node);
		else if (errno == EIO)
			node->session = 0; /* lost: the next one is made soon */
		return;
	}
	call->good++;
	if (broken) {
		printf("%s: a struct of noise was taken\n", call->name);
		wrong++;
	}
	made(node, call);
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
		if (i % 8 == 0)
			for (unsigned int n = 1; n < NODES; n++)
				if (!nodes[n].session || nodes[n].number >> 32 || below(SESSIONS) == 0)
					session_new(&nodes[n]);
	}
	close_from(first);
	for (size_t c = 0; c < CALLS; c++) {
		printf("%-16s %8lu done %8lu refused %8.1f us\n", calls[c].name, calls[c].good,
		       calls[c].bad, (double)calls[c].ns / 1000 / count);
		/* no image that we load holds a function */
		if (count >= 10000 && !calls[c].good && calls[c].request != NPU_IOCTL_FUNC_LOOKUP) {
			printf("%s was never done: the fuzzer does not get there\n", calls[c].name);
			wrong++;
		}
	}
	if (open_fds() > before) {
		printf("%d files are left open\n", open_fds() - before);
		wrong++;
	}
	printf("%u wrong\n", wrong);
	return wrong ? 1 : 0;
}
