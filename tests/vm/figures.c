/* SPDX-License-Identifier: Apache-2.0 */
/*
 * figures [NODE]: what the driver costs, measured on a session and a queue of its own. Prints lines
 * "figure NAME: VALUE"; exit status 1 when a batch of 32 entries by SUBMIT takes three times one.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "kdrv/uapi/npu.h"

#define ROUNDS 2000u
#define TRIPS 200u
#define LIMIT_NS 5000000000ull

struct rig {
	int fd;
	struct npu_session_create session;
	__u64 call;
	__u32 queue, slot;
	char *slab;
	struct npu_slab_header *header;
	struct npu_ring_ctrl *ring;
	struct npu_entry *entries;
	__u64 tail;
	unsigned long bells;
};

static __u64 now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (__u64)ts.tv_sec * 1000000000ull + (__u64)ts.tv_nsec;
}

static void die(const char *what)
{
	printf("figures: %s: %s\n", what, strerror(errno));
	exit(1);
}

static int by_value(const void *a, const void *b)
{
	const __u64 *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static double median_us(__u64 *ns, unsigned int count)
{
	qsort(ns, count, sizeof(*ns), by_value);
	return (double)ns[count / 2] / 1000;
}

static void rig_open(struct rig *rig, const char *node)
{
	struct npu_ctx_create ctx = { .head.size = sizeof(ctx) };
	struct npu_queue_create queue = { .head.size = sizeof(queue) };

	rig->fd = open(node, O_RDWR | O_CLOEXEC);
	if (rig->fd < 0)
		die(node);
	rig->session = (struct npu_session_create){
		.head = { .size = sizeof(rig->session), .call = 1 },
		.pid = (__u32)getpid(),
		.pid_start = 1,
		.slab_address = NPU_WINDOW_BASE,
		.comm = "figures",
	};
	if (ioctl(rig->fd, NPU_IOCTL_SESSION_CREATE, &rig->session) < 0)
		die("session");
	ctx.head.session = rig->session.session;
	ctx.head.call = ++rig->call;
	if (ioctl(rig->fd, NPU_IOCTL_CTX_CREATE, &ctx) < 0)
		die("context");
	queue.head.session = rig->session.session;
	queue.head.call = ++rig->call;
	queue.ctx = ctx.ctx;
	if (ioctl(rig->fd, NPU_IOCTL_QUEUE_CREATE, &queue) < 0)
		die("queue");
	rig->queue = queue.queue;
	rig->slot = queue.slot;
	rig->slab = mmap(NULL, NPU_SLAB_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED,
			 rig->session.fd_slab, 0);
	if (rig->slab == MAP_FAILED)
		die("mmap of the slab");
	rig->header = (struct npu_slab_header *)rig->slab;
	rig->ring = (struct npu_ring_ctrl *)(rig->slab + NPU_SLAB_RINGS) + rig->slot;
	rig->entries = (struct npu_entry *)(rig->slab + NPU_SLAB_DATA +
					    (__u64)rig->slot * NPU_RING_BYTES);
}

static __u64 ring_done(const struct rig *rig)
{
	return __atomic_load_n(&rig->ring->done, __ATOMIC_ACQUIRE);
}

/* As npu_queue.h says. */
static void ring_submit(struct rig *rig)
{
	struct npu_entry entry = { .op = NPU_OP_NOP, .epoch = (__u16)rig->ring->epoch };
	__u64 one = 1;

	rig->entries[rig->tail & (NPU_RING_ENTRIES - 1)] = entry;
	__atomic_store_n(&rig->ring->tail, ++rig->tail, __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (!__atomic_load_n(&rig->ring->armed, __ATOMIC_RELAXED))
		return;
	__atomic_store_n(&rig->ring->armed, 0, __ATOMIC_RELAXED);
	__atomic_fetch_or(&rig->header->pending[rig->slot / 64], 1ull << (rig->slot & 63),
			  __ATOMIC_SEQ_CST);
	if (!__atomic_load_n(&rig->header->device_sleeping, __ATOMIC_SEQ_CST) ||
	    !__atomic_exchange_n(&rig->header->device_sleeping, 0, __ATOMIC_SEQ_CST))
		return;
	rig->bells++;
	if (write(rig->session.fd_doorbell, &one, sizeof(one)) != sizeof(one))
		die("doorbell");
}

/* Sleeps on the completion file until done has come. */
static void ring_wait(struct rig *rig, __u64 done)
{
	struct pollfd pfd = { .fd = rig->session.fd_completion, .events = POLLIN };
	__u64 end = now_ns() + LIMIT_NS, count;

	while (ring_done(rig) < done) {
		__atomic_store_n(&rig->ring->want, done, __ATOMIC_RELAXED);
		__atomic_store_n(&rig->header->client_waiting, 1, __ATOMIC_SEQ_CST);
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		if (ring_done(rig) >= done)
			break;
		if (now_ns() > end) {
			errno = ETIMEDOUT;
			die("completion");
		}
		if (poll(&pfd, 1, 1000) == 1 &&
		    read(pfd.fd, &count, sizeof(count)) != sizeof(count) && errno != EAGAIN)
			die("completion file");
	}
}

static void figure_ioctl(struct rig *rig)
{
	struct npu_wait wait = { .head = { .size = sizeof(wait), .session = rig->session.session } };
	struct npu_version version = { .head.size = sizeof(version), .major = NPU_UAPI_MAJOR };
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int control = open("/dev/npu-ctl0", O_RDWR | O_CLOEXEC);
	static __u64 bare[ROUNDS], call[ROUNDS], big[ROUNDS];

	wait.queue = rig->queue;
	for (unsigned int i = 0; i < ROUNDS; i++) {
		__u64 t0 = now_ns(), t1, t2, t3;

		ioctl(null, NPU_IOCTL_WAIT, &wait);
		t1 = now_ns();
		wait.done = 0;
		if (ioctl(rig->fd, NPU_IOCTL_WAIT, &wait) < 0)
			die("WAIT");
		t2 = now_ns();
		if (ioctl(control, NPU_IOCTL_VERSION, &version) < 0)
			die("VERSION");
		t3 = now_ns();
		bare[i] = t1 - t0;
		call[i] = t2 - t1;
		big[i] = t3 - t2;
	}
	close(null);
	close(control);
	printf("figure ioctl of /dev/null: %.2f us\n", median_us(bare, ROUNDS));
	printf("figure ioctl WAIT: %.2f us, VERSION: %.2f us\n", median_us(call, ROUNDS),
	       median_us(big, ROUNDS));
}

static void figure_ring(struct rig *rig)
{
	static __u64 ns[ROUNDS];
	unsigned long bells = rig->bells;

	for (unsigned int i = 0; i < ROUNDS; i++) {
		__u64 t = now_ns();

		ring_submit(rig);
		ns[i] = now_ns() - t;
		if (i % 256 == 255)
			ring_wait(rig, rig->tail);
	}
	ring_wait(rig, rig->tail);
	printf("figure submit through the mapped ring: %.2f us, %lu doorbells for %u entries\n",
	       median_us(ns, ROUNDS), rig->bells - bells, ROUNDS);
}

static void figure_trip(struct rig *rig)
{
	static __u64 ns[TRIPS];
	unsigned long bells = rig->bells;

	for (unsigned int i = 0; i < TRIPS; i++) {
		__u64 end = now_ns() + LIMIT_NS, t;

		while (!__atomic_load_n(&rig->header->device_sleeping, __ATOMIC_ACQUIRE))
			if (now_ns() > end)
				errno = ETIMEDOUT, die("the device does not sleep");
		t = now_ns();
		ring_submit(rig);
		ring_wait(rig, rig->tail);
		ns[i] = now_ns() - t;
	}
	printf("figure doorbell, interrupt, waiter: %.1f us, %lu doorbells for %u trips\n",
	       median_us(ns, TRIPS), rig->bells - bells, TRIPS);
}

static double submit_us(struct rig *rig, unsigned int count)
{
	static struct npu_submit submit;
	static __u64 ns[TRIPS];

	for (unsigned int i = 0; i < TRIPS; i++) {
		__u64 t;

		memset(&submit, 0, sizeof(submit));
		submit.head.size = sizeof(submit);
		submit.head.session = rig->session.session;
		submit.queue = rig->queue;
		submit.count = count;
		for (unsigned int e = 0; e < count; e++)
			submit.entries[e] = (struct npu_entry){ .op = NPU_OP_NOP,
				.epoch = (__u16)rig->ring->epoch };
		t = now_ns();
		if (ioctl(rig->fd, NPU_IOCTL_SUBMIT, &submit) < 0 || submit.count != count)
			die("SUBMIT");
		ns[i] = now_ns() - t;
		rig->tail += count;
		ring_wait(rig, rig->tail);
	}
	return median_us(ns, TRIPS);
}

int main(int argc, char **argv)
{
	static struct rig rig;
	double one, batch;

	rig_open(&rig, argc > 1 ? argv[1] : "/dev/npu0");
	figure_ioctl(&rig);
	figure_ring(&rig);
	figure_trip(&rig);
	one = submit_us(&rig, 1);
	batch = submit_us(&rig, 32);
	printf("figure SUBMIT of 1: %.1f us, of 32: %.1f us\n", one, batch);
	return batch < 3 * one ? 0 : 1;
}
