/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Birth of an engine. It comes from the nursery with stage 1 of its sandbox, reserves the device window,
 * takes ENGINE_SETUP, makes its threads, seals the sandbox and says READY. Nothing that a client wrote
 * has been looked at until then.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include "sim/engine.h"
#include "sim/sandbox.h"

#define WORKER_STACK (256u << 10)

/* Receives ENGINE_SETUP and its four fds. */
static int take_setup(int control, struct engine_setup *ret_setup, int ret_fds[4])
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(4 * sizeof(int))];
	} cmsg;
	struct engine_msg msg;
	struct iovec iov[] = {
		{ .iov_base = &msg, .iov_len = sizeof(msg) },
		{ .iov_base = ret_setup, .iov_len = sizeof(*ret_setup) },
	};
	struct msghdr hdr = {
		.msg_iov = iov, .msg_iovlen = 2,
		.msg_control = &cmsg, .msg_controllen = sizeof(cmsg),
	};
	struct cmsghdr *c;
	ssize_t n;

	do
		n = recvmsg(control, &hdr, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n != (ssize_t)(sizeof(msg) + sizeof(*ret_setup)) || (hdr.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
		return -EBADMSG;
	if (msg.magic != ENGINE_PROTO_MAGIC || msg.type != ENGINE_SETUP)
		return -EBADMSG;
	c = CMSG_FIRSTHDR(&hdr);
	if (!c || c->cmsg_type != SCM_RIGHTS || c->cmsg_len != CMSG_LEN(4 * sizeof(int)))
		return -EBADMSG;
	memcpy(ret_fds, CMSG_DATA(c), 4 * sizeof(int));
	return 0;
}

static int map_shared(struct engine *e, const struct engine_setup *setup, int slab, int state)
{
	void *window, *at;

	window = mmap((void *)NPU_WINDOW_BASE, NPU_WINDOW_SIZE, PROT_NONE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
	if (window != (void *)NPU_WINDOW_BASE)
		return -ENOMEM;
	if (setup->slab_size != NPU_SLAB_SIZE || setup->slab_address < NPU_WINDOW_BASE ||
	    setup->slab_address > NPU_WINDOW_BASE + NPU_WINDOW_SIZE - NPU_SLAB_SIZE)
		return -ERANGE;
	at = mmap((void *)setup->slab_address, setup->slab_size, PROT_READ | PROT_WRITE,
		  MAP_SHARED | MAP_FIXED, slab, 0);
	if (at == MAP_FAILED)
		return -errno;
	e->slab_address = setup->slab_address;
	e->slab_size = setup->slab_size;
	e->header = at;
	e->rings_ctrl = (void *)((char *)at + NPU_SLAB_RINGS);
	e->events = (void *)((char *)at + NPU_SLAB_EVENTS);
	if (setup->state_size < sizeof(struct engine_state))
		return -ERANGE;
	e->state = mmap(NULL, setup->state_size, PROT_READ | PROT_WRITE, MAP_SHARED, state, 0);
	if (e->state == MAP_FAILED)
		return -errno;
	return 0;
}

static int watch(int epoll, int fd, uint32_t events, uint32_t which)
{
	struct epoll_event ev = { .events = events, .data.u32 = which };

	return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &ev) < 0 ? -errno : 0;
}

static int make_workers(struct engine *e, uint64_t stack_size)
{
	pthread_attr_t attr;
	pthread_t thread;
	int r = 0;

	e->workers = aligned_alloc(64, e->cores * sizeof(*e->workers));
	e->help = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (!e->workers || e->help < 0)
		return -ENOMEM;
	memset(e->workers, 0, e->cores * sizeof(*e->workers));
	if (pthread_attr_init(&attr))
		return -ENOMEM;
	pthread_attr_setstacksize(&attr, WORKER_STACK);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	for (uint32_t i = 0; i < e->cores && r >= 0; i++) {
		struct engine_worker *w = &e->workers[i];

		w->engine = e;
		w->index = i;
		w->state = &e->state->cores[i];
		w->core.stack_size = stack_size;
		w->epoll = epoll_create1(EPOLL_CLOEXEC);
		if (w->epoll < 0)
			r = -errno;
		if (r >= 0)
			r = watch(w->epoll, e->doorbell, EPOLLIN | EPOLLEXCLUSIVE, 0);
		if (r >= 0)
			r = watch(w->epoll, e->help, EPOLLIN, 1);
		if (r >= 0)
			r = -pthread_create(&thread, &attr, engine_worker_main, w);
	}
	pthread_attr_destroy(&attr);
	/* Each worker counts itself into busy once its fault handling stands. */
	while (r >= 0 && atomic_load(&e->busy) < e->cores)
		sched_yield();
	return r;
}

int engine_main(int control_fd, void *arg)
{
	struct engine_ready ready = { 0 };
	struct engine_setup setup;
	struct engine *e;
	int fds[4], r;

	(void)arg;
	r = take_setup(control_fd, &setup, fds);
	if (r < 0)
		return 1;
	if (!setup.cores || setup.cores > ENGINE_CORES_MAX)
		return 1;
	e = mmap(NULL, sizeof(*e), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (e == MAP_FAILED)
		return 1;
	e->control = control_fd;
	e->doorbell = fds[1];
	e->completion = fds[2];
	e->cores = setup.cores;
	e->spin_us = setup.spin_us;
	e->default_timeout_us = setup.default_timeout_us;
	r = map_shared(e, &setup, fds[0], fds[3]);
	if (r >= 0)
		r = make_workers(e, setup.stack_size);
	if (r >= 0)
		r = sandbox_seal();
	if (r < 0)
		return SANDBOX_EXIT_STATUS;
	close(fds[0]);
	close(fds[3]);
	__atomic_add_fetch(&e->header->device_epoch, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&e->header->device_sleeping, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&e->header->device_cpu, 0, __ATOMIC_RELAXED);
	ready.sandbox = SANDBOX_MANDATORY;
	ready.cores = e->cores;
	engine_send(e, ENGINE_READY, 0, &ready, sizeof(ready));
	return engine_control_run(e);
}
