/* SPDX-License-Identifier: Apache-2.0 */
/*
 * npu_call NODE COMMAND [ARGUMENT...]: one call on a device node, for the steps.
 *
 *   open                nothing but that
 *   query               prints health, boot id and sessions
 *   reset
 *   inject KIND [VALUE] by number of enum npu_inject_kind
 *   hold                a session with its slab mapped; says "ready", waits until the device is gone,
 *                       then checks what is left of it: calls give ENODEV, the mapping reads as zero
 *
 * Exit status 0: done; 1: refused, with the error's name on stdout; 2: wrong usage.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kdrv/uapi/npu.h"

#define HOLD_MS 30000

static int refused(const char *what)
{
	printf("%s: %s\n", what, strerrorname_np(errno));
	return 1;
}

static int call_query(int fd)
{
	struct npu_query query = { .head.size = sizeof(query) };

	if (ioctl(fd, NPU_IOCTL_QUERY, &query) < 0)
		return refused("query");
	printf("health %u boot %llx sessions %u engines %u firmware %s\n", query.health,
	       query.boot_id, query.sessions, query.engines, query.firmware);
	return 0;
}

static int call_reset(int fd)
{
	struct npu_reset reset = { .head.size = sizeof(reset) };

	return ioctl(fd, NPU_IOCTL_RESET, &reset) < 0 ? refused("reset") : 0;
}

static int call_inject(int fd, char **argv)
{
	struct npu_inject inject = { .head.size = sizeof(inject) };

	inject.kind = (__u32)strtoul(argv[0], NULL, 0);
	inject.value = argv[1] ? strtoull(argv[1], NULL, 0) : 0;
	return ioctl(fd, NPU_IOCTL_INJECT, &inject) < 0 ? refused("inject") : 0;
}

static int session_create(int fd, struct npu_session_create *create)
{
	*create = (struct npu_session_create){
		.head = { .size = sizeof(*create), .call = 1 },
		.uid = getuid(),
		.gid = getgid(),
		.pid = (__u32)getpid(),
		.pid_start = 1,
		.slab_address = NPU_WINDOW_BASE,
		.comm = "npu_call",
	};
	return ioctl(fd, NPU_IOCTL_SESSION_CREATE, create);
}

/* What is left of a device that was unplugged while it was in use. */
static int hold_after(int fd, const struct npu_session_create *create, const volatile char *slab)
{
	struct pollfd life = { .fd = create->fd_life, .events = POLLIN };
	unsigned long sum = 0;
	int failed = 0, tries = 0;

	if (poll(&life, 1, 5000) != 1 || !(life.revents & POLLHUP)) {
		printf("the life file says nothing\n");
		failed = 1;
	}
	if (call_query(fd) == 0 || errno != ENODEV) {
		printf("query did not give ENODEV\n");
		failed = 1;
	}
	/* those who wait are woken first, then mappings change */
	while (slab[0] && tries++ < 1000)
		poll(NULL, 0, 5);
	for (size_t at = 0; at < NPU_SLAB_SIZE; at += 4096)
		sum += (unsigned char)slab[at];
	if (sum) {
		printf("the mapping does not read as zero\n");
		failed = 1;
	}
	printf("%s\n", failed ? "wrong" : "gone as it should");
	return failed;
}

static int call_hold(int fd)
{
	struct npu_session_create create;
	struct pollfd node = { .fd = fd, .events = 0 };
	volatile char *slab;

	if (session_create(fd, &create) < 0)
		return refused("session");
	slab = mmap(NULL, NPU_SLAB_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, create.fd_slab, 0);
	if (slab == MAP_FAILED)
		return refused("mmap of the slab");
	/* some pages of it are faulted in, some are not */
	for (size_t at = 0; at < NPU_SLAB_SIZE / 4; at += 8192)
		(void)slab[at];
	printf("ready\n");
	fflush(stdout);
	if (poll(&node, 1, HOLD_MS) != 1 || !(node.revents & POLLHUP)) {
		printf("the device is still there\n");
		return 1;
	}
	return hold_after(fd, &create, slab);
}

int main(int argc, char **argv)
{
	const char *command = argc > 2 ? argv[2] : "";
	int fd;

	if (argc < 3) {
		fprintf(stderr, "usage: npu_call NODE open|query|reset|inject KIND|hold\n");
		return 2;
	}
	fd = open(argv[1], O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return refused(argv[1]);
	if (!strcmp(command, "open"))
		return 0;
	if (!strcmp(command, "query"))
		return call_query(fd);
	if (!strcmp(command, "reset"))
		return call_reset(fd);
	if (!strcmp(command, "inject") && argc > 3)
		return call_inject(fd, argv + 3);
	if (!strcmp(command, "hold"))
		return call_hold(fd);
	fprintf(stderr, "npu_call: unknown command %s\n", command);
	return 2;
}
