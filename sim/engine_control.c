/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control thread of an engine: acts on the board's messages in order and answers each. It never
 * waits for kernel code but in one place, the end of a queue, and there for a bounded time.
 */
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#include "sim/engine.h"

#define LET_GO_NS 20000000ull /* how long a ring may stay claimed after its abort */

void engine_send(struct engine *e, enum engine_msg_type type, uint64_t seq, const void *payload,
		 size_t size)
{
	struct engine_msg msg = {
		.magic = ENGINE_PROTO_MAGIC, .type = type, .seq = seq, .bytes = size,
	};
	struct iovec iov[] = {
		{ .iov_base = &msg, .iov_len = sizeof(msg) },
		{ .iov_base = (void *)payload, .iov_len = size },
	};
	struct msghdr hdr = { .msg_iov = iov, .msg_iovlen = 2 };
	struct pollfd pfd = { .fd = e->control, .events = POLLOUT };

	/* Faults may be dropped when the board is behind: the ring has them. Answers may not. */
	while (sendmsg(e->control, &hdr, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
		if (errno == EINTR)
			continue;
		if ((errno != EAGAIN && errno != EWOULDBLOCK) || type == ENGINE_FAULT)
			return;
		poll(&pfd, 1, -1);
	}
}

static void ack(struct engine *e, uint64_t seq, int status, uint32_t value, const char *text)
{
	struct engine_ack a = { .seq = seq, .status = status, .value = value };

	snprintf(a.text, sizeof(a.text), "%s", text);
	engine_send(e, ENGINE_ACK, seq, &a, sizeof(a));
}

static int do_map(struct engine *e, const struct engine_map *m, int fd, bool map)
{
	int prot = map ? PROT_READ | PROT_WRITE : PROT_NONE;
	int flags = MAP_SHARED | MAP_FIXED;

	if (m->address < NPU_WINDOW_BASE || m->bytes > NPU_WINDOW_SIZE ||
	    m->address - NPU_WINDOW_BASE > NPU_WINDOW_SIZE - m->bytes)
		return -ERANGE;
	/* The slab must stay: without it the engine would fault outside of kernel code. */
	if (m->address < e->slab_address + e->slab_size && m->address + m->bytes > e->slab_address)
		return -ERANGE;
	if (map && (m->flags & ENGINE_MAP_READ_ONLY))
		prot = PROT_READ;
	if (!map) {
		flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
		fd = -1;
	}
	if (mmap((void *)m->address, m->bytes, prot, flags, fd, map ? (off_t)m->offset : 0) == MAP_FAILED)
		return -errno;
	atomic_store(&e->map_generation, m->generation);
	__atomic_store_n(&e->state->generation, m->generation, __ATOMIC_RELEASE);
	engine_ring_unblock(e);
	return 0;
}

static int do_module(struct engine *e, const struct engine_module *m, int fd, char *text, size_t size)
{
	const struct engine_image *image = NULL;
	struct engine_funcs out = { .module = m->module };
	int r;

	r = engine_module_load(e, m->module, fd, m->bytes, text, size, &image);
	if (r < 0)
		return r;
	out.total = engine_image_n_funcs(image);
	for (uint32_t i = 0; i < out.total; i += out.count) {
		out.first = i;
		for (out.count = 0; out.count < ENGINE_FUNCS_MAX && i + out.count < out.total; out.count++) {
			const struct engine_func *f = engine_image_func(image, i + out.count);
			struct engine_func_desc *d = &out.funcs[out.count];

			memset(d, 0, sizeof(*d));
			snprintf(d->name, sizeof(d->name), "%s", f->name);
			d->args_size = f->args_size;
			d->params = f->n_params < NPU_MAX_PARAMS ? f->n_params : NPU_MAX_PARAMS;
			memcpy(d->param_sizes, f->param_sizes, d->params * sizeof(uint32_t));
		}
		engine_send(e, ENGINE_FUNCS, 0, &out, sizeof(out));
	}
	return out.total;
}

/* Ends what runs for a ring, then takes the ring away from the workers. */
static int claim(struct engine *e, struct engine_ring *ring, uint32_t kind)
{
	uint64_t limit = engine_now_ns() + LET_GO_NS;
	uint32_t expected;

	for (;;) {
		expected = 0;
		if (atomic_compare_exchange_strong(&ring->claimed, &expected, ENGINE_CLAIM_CONTROL))
			return 0;
		atomic_store(&ring->again, 1); /* a worker that polls its tail lets go */
		if (expected - 1 < e->cores && kind) {
			struct engine_worker *w = &e->workers[expected - 1];
			uint64_t run = __atomic_load_n(&w->state->run, __ATOMIC_ACQUIRE);

			if ((run & 1) && __atomic_load_n(&w->state->slot, __ATOMIC_RELAXED) == ring->slot)
				engine_exec_abort(e, w->index, run, kind);
		}
		if (engine_now_ns() > limit)
			return -EBUSY;
		sched_yield();
	}
}

static int do_queue(struct engine *e, const struct engine_queue *q)
{
	struct engine_ring *ring;
	uint32_t epoch;
	int r;

	if (q->slot >= NPU_MAX_QUEUES || q->ctx >= 1024)
		return -EINVAL;
	ring = &e->rings[q->slot];
	if (!atomic_load(&ring->active) || !q->active) {
		/* Begin or end: with the ring in our own hands. */
		epoch = atomic_load(&ring->epoch);
		atomic_store(&ring->paused, 1);
		if (atomic_load(&ring->active))
			atomic_store(&ring->epoch, epoch + 1);
		r = claim(e, ring, atomic_load(&ring->active) ? NPU_FAULT_ABORTED : 0);
		if (r < 0)
			return r;
		atomic_store(&ring->active, 0);
		engine_ring_leave_blocked(e, ring);
		if (q->active) {
			engine_ring_attach(e, ring, q->slot);
			ring->queue = q->queue;
			ring->ctx = q->ctx;
			atomic_store(&ring->epoch, q->epoch);
		}
		atomic_store(&ring->active, q->active);
		atomic_store(&ring->claimed, 0);
	}
	atomic_store(&ring->priority, q->priority);
	atomic_store(&ring->fail_mode, q->fail_mode);
	atomic_store(&ring->paused, q->paused);
	if (!q->active)
		return 0;
	epoch = atomic_exchange(&ring->epoch, q->epoch);
	__atomic_store_n(&ring->ctrl->epoch, q->epoch, __ATOMIC_RELEASE);
	__atomic_store_n(&ring->ctrl->fail_mode, q->fail_mode, __ATOMIC_RELEASE);
	if (epoch != q->epoch) {
		uint32_t owner = atomic_load(&ring->claimed);

		if (owner - 1 < e->cores) {
			struct engine_worker *w = &e->workers[owner - 1];
			uint64_t run = __atomic_load_n(&w->state->run, __ATOMIC_ACQUIRE);

			if ((run & 1) && __atomic_load_n(&w->state->slot, __ATOMIC_RELAXED) == ring->slot)
				engine_exec_abort(e, w->index, run, NPU_FAULT_ABORTED);
		}
	}
	engine_ring_mark(e, q->slot);
	return 0;
}

/*
 * Priority, weight and cores are for whoever schedules engines. An error was cleared in the slab by the
 * board already: to do it here, later, could hide a new one.
 */
static int do_context(const struct engine_context *c)
{
	return c->ctx < 1024 ? 0 : -EINVAL;
}

static int do_start(struct engine *e, const struct engine_start *s)
{
	uint64_t one = 1;

	if (s->count > ENGINE_CORES_MAX)
		return -EINVAL;
	for (uint32_t i = 0; i < NPU_MAX_QUEUES; i++) {
		struct engine_ring *ring = &e->rings[i];
		uint32_t kind = s->kind ? s->kind : NPU_FAULT_ENGINE;

		if (!atomic_load(&ring->active))
			continue;
		for (uint32_t j = 0; j < s->count; j++) {
			if (s->failed[j].slot == i && s->failed[j].kind)
				kind = s->failed[j].kind;
		}
		engine_ring_fail_running(e, ring, kind);
		engine_ring_mark(e, i);
	}
	/*
	 * The last engine may have been killed between a completion and the wake-up for it: wake the
	 * client once, whatever it waits for.
	 */
	__atomic_store_n(&e->header->client_waiting, 0, __ATOMIC_SEQ_CST);
	__atomic_store_n(&e->header->host_calls_waiting, 0, __ATOMIC_SEQ_CST);
	(void)!write(e->completion, &one, sizeof(one));
	atomic_store(&e->started, 1);
	syscall(SYS_futex, &e->started, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
	engine_wake(e, true);
	return 0;
}

/* One message. Returns what to acknowledge. */
static int act(struct engine *e, const struct engine_msg *msg, const void *payload, int fd,
	       char *text, size_t text_size, uint32_t *ret_value)
{
#define PAYLOAD(type) (msg->bytes == sizeof(struct type) ? (const struct type *)payload : NULL)
	int r;

	switch (msg->type) {
	case ENGINE_MAP:
		return PAYLOAD(engine_map) && fd >= 0 ? do_map(e, payload, fd, true) : -EINVAL;
	case ENGINE_UNMAP:
		return PAYLOAD(engine_map) ? do_map(e, payload, -1, false) : -EINVAL;
	case ENGINE_MODULE:
		if (!PAYLOAD(engine_module) || fd < 0)
			return -EINVAL;
		r = do_module(e, payload, fd, text, text_size);
		if (r > 0) {
			*ret_value = r;
			r = 0;
		}
		return r;
	case ENGINE_MODULE_DROP:
		return PAYLOAD(engine_module) ?
			       engine_module_drop(e, PAYLOAD(engine_module)->module) : -EINVAL;
	case ENGINE_QUEUE:
		return PAYLOAD(engine_queue) ? do_queue(e, payload) : -EINVAL;
	case ENGINE_ABORT:
		if (!PAYLOAD(engine_abort))
			return -EINVAL;
		engine_exec_abort(e, PAYLOAD(engine_abort)->core, PAYLOAD(engine_abort)->run,
				  PAYLOAD(engine_abort)->kind);
		return 0;
	case ENGINE_CONTEXT:
		return PAYLOAD(engine_context) ? do_context(payload) : -EINVAL;
	case ENGINE_START:
		return PAYLOAD(engine_start) ? do_start(e, payload) : -EINVAL;
	default:
		return -EOPNOTSUPP;
	}
#undef PAYLOAD
}

/* ENGINE_EXIT: no task is begun any more, the running ones may end. The board kills us if they don't. */
static _Noreturn void leave(struct engine *e)
{
	atomic_store(&e->leaving, 1);
	while (atomic_load(&e->busy))
		sched_yield();
	_exit(0);
}

int engine_control_run(struct engine *e)
{
	static _Alignas(8) char payload[ENGINE_MSG_MAX];

	for (;;) {
		union {
			struct cmsghdr align;
			char space[CMSG_SPACE(ENGINE_FDS_MAX * sizeof(int))];
		} cmsg;
		struct engine_msg msg;
		struct iovec iov[] = {
			{ .iov_base = &msg, .iov_len = sizeof(msg) },
			{ .iov_base = payload, .iov_len = sizeof(payload) },
		};
		struct msghdr hdr = {
			.msg_iov = iov, .msg_iovlen = 2,
			.msg_control = &cmsg, .msg_controllen = sizeof(cmsg),
		};
		int fds[ENGINE_FDS_MAX] = { -1, -1, -1, -1 };
		char text[NPU_NAME_MAX] = "";
		struct cmsghdr *c;
		uint32_t value = 0;
		ssize_t n;
		int r;

		n = recvmsg(e->control, &hdr, MSG_CMSG_CLOEXEC);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
			struct pollfd pfd = { .fd = e->control, .events = POLLIN };

			poll(&pfd, 1, -1);
			continue;
		}
		if (n <= 0)
			_exit(0); /* the board is gone */
		c = CMSG_FIRSTHDR(&hdr);
		if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
			memcpy(fds, CMSG_DATA(c), c->cmsg_len - CMSG_LEN(0));
		if (n < (ssize_t)sizeof(msg) || msg.magic != ENGINE_PROTO_MAGIC ||
		    msg.bytes != n - sizeof(msg))
			_exit(1); /* the board never does that */
		if (msg.type == ENGINE_EXIT)
			leave(e);
		engine_busy_begin(e);
		r = act(e, &msg, payload, fds[0], text, sizeof(text), &value);
		for (unsigned i = 0; i < ENGINE_FDS_MAX; i++) {
			if (fds[i] >= 0)
				close(fds[i]);
		}
		ack(e, msg.seq, r, value, text);
		engine_busy_end(e);
	}
}
