/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The board put together: loop, releasers, rules, front. One turn: wait until something comes or is
 * due, run what came, run what is due, deliver the event records that this produced.
 */
#include "config.h"

#include "sim/board.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>

#include "sim/board_space.h"
#include "sim/board_watch.h"
#include "sim/card.h"
#include "sim/sim_fd.h"

/* A connection and its side in the rules. */
struct board_file {
	bool ready; /* event records wait */
	struct board_file *next;
	uint64_t connection;
	struct npu_core_file *file;
};

static int board_opened(void *arg, uint64_t connection, void **ret_peer)
{
	struct board *board = arg;
	struct board_file *file = calloc(1, sizeof(*file));
	int r;

	if (!file)
		return -ENOMEM;
	file->connection = connection;
	r = npu_core_file_open(board->core, &file->ready, &file->file);
	if (r < 0) {
		free(file);
		return r;
	}
	file->next = board->files;
	board->files = file;
	*ret_peer = file;
	return 0;
}

static void board_closed(void *arg, void *peer)
{
	struct board *board = arg;
	struct board_file **at = &board->files, *file = peer;
	uint64_t grace_ns = board->options.orphan_grace_ms * SIM_MS;

	while (*at != file)
		at = &(*at)->next;
	*at = file->next;
	npu_core_file_close(board->core, file->file, grace_ns && !board->ending);
	free(file);
	if (grace_ns && sim_now() + grace_ns < board->orphans_ns)
		board->orphans_ns = sim_now() + grace_ns;
}

static int board_call(void *arg, void *peer, unsigned int nr, void *data, size_t bytes,
		      struct board_reply_fds *ret_fds)
{
	struct board *board = arg;
	struct board_file *file = peer;

	return npu_core_call(board->core, file->file, nr, data, (uint32_t)bytes, ret_fds);
}

static void board_events(struct board *board)
{
	struct npu_event event;

	for (struct board_file *file = board->files; file; file = file->next) {
		while (file->ready && board_socket_takes_events(board->socket, file->connection)) {
			file->ready = npu_core_event_read(board->core, file->file, &event) == 0;
			if (file->ready)
				board_socket_event(board->socket, file->connection, &event);
		}
	}
}

static void board_signal(struct board_source *source, uint32_t events)
{
	struct board *board = sim_container(source, struct board, signals);
	struct signalfd_siginfo info;

	(void)events;
	if (read(source->fd, &info, sizeof(info)) == sizeof(info)) {
		sim_log(SIM_LOG_NOTICE, "signal %u from process %u: ending", info.ssi_signo,
			info.ssi_pid);
		board->stop = true;
	}
}

static int board_signals_init(struct board *board)
{
	sigset_t mask;

	sigemptyset(&mask);
	sigaddset(&mask, SIGTERM);
	sigaddset(&mask, SIGINT);
	if (sigprocmask(SIG_BLOCK, &mask, NULL) < 0)
		return -errno;
	board->signals.ready = board_signal;
	board->signals.fd = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
	if (board->signals.fd < 0)
		return -errno;
	return board_loop_add(board->loop, &board->signals, EPOLLIN);
}

static int board_core_init(struct board *board)
{
	struct npu_shim shim = board_backend_shim;
	struct npu_core_config config = {
		.kind = NPU_KIND_SIM,
		.device_id = board->options.device,
		.version = "npu-sim " PACKAGE_VERSION,
		.name = "NPUsim",
		.firmware = PACKAGE_VERSION,
		.caps = NPU_CAP_HOST_MAPPED | NPU_CAP_INJECT | NPU_CAP_ISOLATED,
		.cores = board->options.cores,
		.memory_bytes = board->options.memory,
		.default_timeout_us = board->options.kernel_timeout_us,
	};

	if (board->options.host_visible)
		config.caps |= NPU_CAP_HOST_VISIBLE;
	shim.dev = board;
	board->upper = &board_upper_core;
	return npu_core_new(&shim, &config, &board->core);
}

/* The rules, on a socket for npud. Takes the fd over. */
static int board_front_init(struct board *board, int listen_fd)
{
	static const struct board_socket_ops ops = {
		.opened = board_opened,
		.call = board_call,
		.closed = board_closed,
	};
	int r = board_core_init(board);

	if (r == 0)
		r = board_socket_new(board->loop, board->release, listen_fd, board->options.owner,
				     &ops, board, &board->socket);
	if (r < 0)
		close(listen_fd);
	return r;
}

static int board_card_init(struct board *board, int listen_fd)
{
	board->upper = &card_upper;
	return card_new(board, listen_fd, &board->card);
}

static int board_init(struct board *board, int listen_fd)
{
	int r;

	r = board_loop_new(&board->loop);
	if (r == 0)
		r = board_signals_init(board);
	if (r == 0)
		r = board_release_new(board->loop, &board->release);
	if (r == 0)
		r = board_release_new(board->loop, &board->fill);
	if (r < 0) {
		close(listen_fd);
		return r;
	}
	return board->options.card ? board_card_init(board, listen_fd) :
				     board_front_init(board, listen_fd);
}

int board_new(const struct sim_options *options, struct nursery *nursery, int listen_fd,
	      struct board **ret_board)
{
	struct board *board = calloc(1, sizeof(*board));
	int r;

	if (!board) {
		close(listen_fd);
		return -ENOMEM;
	}
	board->options = *options;
	board->nursery = nursery;
	board->signals.fd = -1;
	board->orphans_ns = UINT64_MAX;
	board->samples[BOARD_SAMPLES - 1].time_ns = sim_now();
	r = board_init(board, listen_fd);
	if (r < 0) {
		sim_log(SIM_LOG_ERROR, "cannot set up the board: %s", strerror(-r));
		board->nursery = NULL; /* stays with the caller */
		board_free(board);
		return r;
	}
	*ret_board = board;
	return 0;
}

int board_run(struct board *board)
{
	int r = 0;

	while (!board->stop && r == 0) {
		uint64_t next = board_watch_next(board), card = UINT64_MAX;

		if (board->card)
			card = card_next(board->card);
		r = board_loop_turn(board->loop, card < next ? card : next);
		board_watch_run(board);
		if (board->card)
			card_run(board->card);
		board_events(board);
	}
	if (r < 0)
		sim_log(SIM_LOG_ERROR, "event loop: %s", strerror(-r));
	return r;
}

void board_free(struct board *board)
{
	if (!board)
		return;
	board->ending = true;
	if (board->socket)
		board_socket_free(board->socket);
	board->socket = NULL;
	if (board->core)
		npu_core_free(board->core);
	if (board->card)
		card_stop(board->card);
	board_release_free(board->fill);
	board_release_free(board->release);
	if (board->card)
		card_free(board->card);
	if (board->signals.fd >= 0) {
		board_loop_delete(board->loop, &board->signals);
		close(board->signals.fd);
	}
	if (board->nursery)
		nursery_stop(board->nursery);
	board_loop_free(board->loop);
	free(board);
}
