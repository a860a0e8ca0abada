/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One epoll instance. The turn's events lie in the loop so that a deleted source can be taken out
 * of those not yet delivered.
 */
#include "sim/board_loop.h"

#include "sim/sim_fd.h"

#define LOOP_BATCH 64

struct board_loop {
	int epoll_fd;
	int count, next;
	struct epoll_event events[LOOP_BATCH];
};

int board_loop_new(struct board_loop **ret_loop)
{
	struct board_loop *loop = calloc(1, sizeof(*loop));

	if (!loop)
		return -ENOMEM;
	loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (loop->epoll_fd < 0) {
		int r = -errno;

		free(loop);
		return r;
	}
	*ret_loop = loop;
	return 0;
}

void board_loop_free(struct board_loop *loop)
{
	if (!loop)
		return;
	close(loop->epoll_fd);
	free(loop);
}

static int loop_control(struct board_loop *loop, int op, struct board_source *source,
			uint32_t events)
{
	struct epoll_event event = { .events = events, .data.ptr = source };

	return epoll_ctl(loop->epoll_fd, op, source->fd, &event) < 0 ? -errno : 0;
}

int board_loop_add(struct board_loop *loop, struct board_source *source, uint32_t events)
{
	return loop_control(loop, EPOLL_CTL_ADD, source, events);
}

int board_loop_modify(struct board_loop *loop, struct board_source *source, uint32_t events)
{
	return loop_control(loop, EPOLL_CTL_MOD, source, events);
}

void board_loop_delete(struct board_loop *loop, struct board_source *source)
{
	if (source->fd >= 0)
		loop_control(loop, EPOLL_CTL_DEL, source, 0);
	for (int i = loop->next; i < loop->count; i++) {
		if (loop->events[i].data.ptr == source)
			loop->events[i].data.ptr = NULL;
	}
}

static int loop_timeout_ms(uint64_t deadline)
{
	uint64_t now, ms;

	if (deadline == UINT64_MAX)
		return -1;
	now = sim_now();
	if (deadline <= now)
		return 0;
	ms = (deadline - now + SIM_MS - 1) / SIM_MS;
	return ms > 3600000 ? 3600000 : (int)ms;
}

int board_loop_turn(struct board_loop *loop, uint64_t deadline)
{
	int n = epoll_wait(loop->epoll_fd, loop->events, LOOP_BATCH, loop_timeout_ms(deadline));

	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	loop->count = n;
	for (loop->next = 0; loop->next < loop->count;) {
		struct epoll_event *event = &loop->events[loop->next++];
		struct board_source *source = event->data.ptr;

		if (source)
			source->ready(source, event->events);
	}
	loop->count = 0;
	loop->next = 0;
	return 0;
}
