/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sim/board.h"
#include "tests/lib/board_rig.h"

static _Alignas(16) char taken[ENGINE_MSG_MAX];
static struct engine_state *state;

/* Of SETUP: the last of its fds is the state page. */
static void take_state(struct msghdr *hdr)
{
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(hdr);
	void *map;
	int fd;

	if (!cmsg || cmsg->cmsg_len != CMSG_LEN(sizeof(int) * ENGINE_FDS_MAX))
		return;
	memcpy(&fd, CMSG_DATA(cmsg) + sizeof(int) * (ENGINE_FDS_MAX - 1), sizeof(fd));
	map = mmap(NULL, sizeof(*state), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map != MAP_FAILED)
		state = map;
}

ssize_t engine_take(int control, struct engine_msg *msg)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int) * ENGINE_FDS_MAX)];
	} cmsg;
	struct iovec iov = { .iov_base = taken, .iov_len = sizeof(taken) };
	struct msghdr hdr = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = &cmsg, .msg_controllen = sizeof(cmsg),
	};
	ssize_t n = recvmsg(control, &hdr, 0);

	if (n > 0)
		take_state(&hdr);
	memcpy(msg, taken, sizeof(*msg));
	return n;
}

const void *engine_payload(void)
{
	return taken + sizeof(struct engine_msg);
}

struct engine_state *engine_page(void)
{
	return state;
}

void engine_give(int control, uint16_t type, const void *payload, size_t bytes)
{
	struct engine_msg head = {
		.magic = ENGINE_PROTO_MAGIC, .type = type, .bytes = (uint32_t)bytes,
	};
	struct iovec iov[2] = {
		{ .iov_base = &head, .iov_len = sizeof(head) },
		{ .iov_base = (void *)payload, .iov_len = bytes },
	};
	struct msghdr hdr = { .msg_iov = iov, .msg_iovlen = 2 };

	if (sendmsg(control, &hdr, MSG_NOSIGNAL) < 0)
		_exit(3);
}

void engine_ack(int control, uint64_t seq)
{
	struct engine_ack ack = { .seq = seq };

	engine_give(control, ENGINE_ACK, &ack, sizeof(ack));
}

/* Answers as it should until the first message of `until`, which is left to the caller. */
uint64_t engine_serve(int control, uint16_t until)
{
	struct engine_ready ready = { .cores = 1 };
	struct engine_msg msg;

	while (engine_take(control, &msg) > 0) {
		if (msg.type == until)
			return msg.seq;
		if (msg.type == ENGINE_SETUP)
			engine_give(control, ENGINE_READY, &ready, sizeof(ready));
		else
			engine_ack(control, msg.seq);
	}
	_exit(0);
}

/* Answers all, loads images with one kernel whose name is no text. */
int engine_good(int control, void *arg)
{
	static struct engine_funcs funcs = { .count = 1, .total = 1 };
	struct engine_ready ready = { .cores = 1 };
	static char packet[ENGINE_MSG_MAX];

	(void)arg;
	for (;;) {
		struct iovec iov = { .iov_base = packet, .iov_len = sizeof(packet) };
		struct msghdr hdr = { .msg_iov = &iov, .msg_iovlen = 1 };
		const struct engine_msg *msg = (const struct engine_msg *)packet;
		struct engine_ack ack;

		if (recvmsg(control, &hdr, 0) <= 0)
			_exit(0);
		ack = (struct engine_ack){ .seq = msg->seq };
		if (msg->type == ENGINE_SETUP) {
			engine_give(control, ENGINE_READY, &ready, sizeof(ready));
			continue;
		}
		if (msg->type == ENGINE_MODULE) {
			funcs.module = ((const struct engine_module *)(msg + 1))->module;
			memset(funcs.funcs[0].name, 0x07, 8);
			engine_give(control, ENGINE_FUNCS, &funcs, sizeof(funcs));
			ack.value = 1;
		}
		engine_give(control, ENGINE_ACK, &ack, sizeof(ack));
	}
}

/* ---- the rig ------------------------------------------------------------------------------- */

static void board_child(struct sim_board *rig, int (*engine)(int control, void *arg), int ready)
{
	struct sim_options options = {
		.socket = rig->socket, .memory = 64u << 20, .cores = 2, .owner = geteuid(),
		.host_visible = true, .kernel_timeout_us = 1000000,
	};
	struct nursery_config config = { .engine_main = engine };
	struct nursery *nursery;
	struct board *board;
	pid_t holder;
	int fd, r;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sim_log_open(SIM_LOG_ERROR, 0);
	if (nursery_start(&config, &nursery) < 0)
		exit(70);
	if (board_socket_listen(rig->socket, SOCK_SEQPACKET, options.owner, &fd, &holder) < 0)
		exit(71);
	if (board_new(&options, nursery, fd, &board) < 0)
		exit(72);
	if (write(ready, "r", 1) != 1)
		exit(73);
	close(ready);
	r = board_run(board);
	board_free(board);
	unlink(rig->socket);
	exit(r < 0 ? 74 : 0);
}

void board_rig_start(struct sim_board *rig, struct sim_client *client,
		     int (*engine)(int control, void *arg))
{
	int ready[2];
	char word;

	strcpy(rig->dir, "/tmp/npu-test-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(rig->dir));
	snprintf(rig->socket, sizeof(rig->socket), "%s/sim.sock", rig->dir);
	snprintf(rig->log, sizeof(rig->log), "%s/sim.log", rig->dir);
	ck_assert_int_eq(pipe(ready), 0);
	fflush(NULL);
	rig->pid = fork();
	if (!rig->pid) {
		close(ready[0]);
		board_child(rig, engine, ready[1]);
	}
	close(ready[1]);
	ck_assert_msg(read(ready[0], &word, 1) == 1, "the board did not start");
	close(ready[0]);
	sim_client_open(client, rig);
	sim_client_session(client);
}

void board_rig_stop(struct sim_board *rig, struct sim_client *client)
{
	sim_client_close(client);
	ck_assert_int_eq(sim_board_stop(rig), 0);
}

uint32_t board_rig_want_engine(struct sim_client *client)
{
	uint32_t slot;

	return sim_client_queue(client, sim_client_context(client), &slot);
}

int board_rig_load(struct sim_board *rig, struct sim_client *client, uint32_t *ret_module)
{
	char path[128];
	FILE *file;
	int status;

	snprintf(path, sizeof(path), "%s/image", rig->dir);
	file = fopen(path, "w");
	ck_assert_ptr_nonnull(file);
	fputs("an image", file);
	fclose(file);
	status = sim_client_module(client, path, ret_module);
	unlink(path);
	return status;
}

