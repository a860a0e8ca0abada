/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Order matters: the fork of --detach comes first, so that locks, the socket's credentials and the
 * nursery's parent are all the process that stays; the log file comes before the nursery, which
 * keeps the stderr that it finds; the nursery comes before any thread.
 */
#include "config.h"

#include "sim/sim_start.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <systemd/sd-daemon.h>

#include "sim/board.h"
#include "sim/engine.h"
#include "sim/nursery.h"
#include "sim/sim_fd.h"
#include "sim/sim_lock.h"

struct sim_run {
	const struct sim_options *options;
	struct sim_lock socket_lock, pid_lock;
	int ready_fd; /* to the waiting parent of --detach; -1: none waits */
};

/* What the parent is told. */
#define WORD_LOG   'l' /* from now on errors go to the log file */
#define WORD_READY 'r'

static void start_nursery_log(void *arg, int priority, const char *text)
{
	(void)arg;
	sim_log(priority <= 3 ? SIM_LOG_ERROR : priority == 4 ? SIM_LOG_WARNING :
		priority == 5 ? SIM_LOG_NOTICE : SIM_LOG_INFO, "%s", text);
}

/* Each memory object, and six fds a session, are open files of ours. */
static void start_raise_files(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static int start_lock(struct sim_lock *lock, const char *path)
{
	pid_t holder = 0;
	int r = sim_lock_take(lock, path, &holder);

	if (r == -EBUSY)
		sim_log(SIM_LOG_ERROR, "%s is held by process %d: another npu-sim runs there; "
			"stop it or choose another path", path, (int)holder);
	else if (r < 0)
		sim_log(SIM_LOG_ERROR, "%s: cannot lock: %s", path, strerror(-r));
	return r;
}

static int start_locks(struct sim_run *run)
{
	cleanup(sim_free) char *path = NULL;
	int r;

	if (asprintf(&path, "%s.lock", run->options->socket) < 0)
		return -ENOMEM;
	r = start_lock(&run->socket_lock, path);
	if (r == 0 && run->options->pid_file)
		r = start_lock(&run->pid_lock, run->options->pid_file);
	return r;
}

static int start_listen(const struct sim_options *options, int *ret_fd)
{
	pid_t holder = 0;
	int r = board_socket_listen(options->socket, options->card ? SOCK_STREAM : SOCK_SEQPACKET,
				    options->owner, ret_fd, &holder);

	if (r == -EADDRINUSE)
		sim_log(SIM_LOG_ERROR, "%s is served by process %d; stop it or choose another path",
			options->socket, (int)holder);
	else if (r == -EEXIST)
		sim_log(SIM_LOG_ERROR, "%s exists and is no socket; choose another path",
			options->socket);
	else if (r < 0)
		sim_log(SIM_LOG_ERROR, "%s: cannot listen: %s", options->socket, strerror(-r));
	return r;
}

/* "npu-sim-N.log" beside the socket. NULL: no memory. */
static char *start_log_path(const struct sim_options *options)
{
	const char *slash = strrchr(options->socket, '/');
	char *path;

	if (asprintf(&path, "%.*snpu-sim-%u.log", slash ? (int)(slash + 1 - options->socket) : 0,
		     options->socket, options->device) < 0)
		return NULL;
	return path;
}

/* Stdio of a background process. */
static int start_background(struct sim_run *run)
{
	cleanup(sim_free) char *path = start_log_path(run->options);
	cleanup(sim_fd_close) int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	cleanup(sim_fd_close) int log = -1;
	char word = WORD_LOG;

	if (!path || null < 0)
		return -ENOMEM;
	log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0640);
	if (log < 0) {
		int r = -errno;

		sim_log(SIM_LOG_ERROR, "%s: cannot open the log: %s", path, strerror(-r));
		return r;
	}
	if (write(run->ready_fd, &word, 1) != 1)
		return -EPIPE;
	dup2(null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
	dup2(log, STDERR_FILENO);
	return 0;
}

static void start_ready(struct sim_run *run)
{
	char word = WORD_READY;

	sd_notify(0, "READY=1");
	if (run->ready_fd >= 0 && write(run->ready_fd, &word, 1) != 1)
		sim_log(SIM_LOG_NOTICE, "whoever started us has gone");
	sim_fd_close(&run->ready_fd);
	sim_log(SIM_LOG_NOTICE, "ready at %s: %llu MiB, %u cores", run->options->socket,
		(unsigned long long)(run->options->memory >> 20), run->options->cores);
}

static int start_nursery(struct nursery **ret_nursery)
{
	struct nursery_config config = {
		.engine_main = engine_main,
		.log = start_nursery_log,
	};
	int r = nursery_start(&config, ret_nursery);

	if (r < 0)
		sim_log(SIM_LOG_ERROR, "cannot cage engines on this host: %s; no kernel may run",
			strerror(-r));
	return r;
}

/* With the socket listening: everything else. Takes the fd over. */
static int start_board(struct sim_run *run, int listen_fd)
{
	struct nursery *nursery;
	struct board *board;
	int r = 0;

	if (run->ready_fd >= 0)
		r = start_background(run);
	if (r == 0)
		r = start_nursery(&nursery);
	if (r < 0) {
		close(listen_fd);
		return r;
	}
	r = board_new(run->options, nursery, listen_fd, &board);
	if (r < 0) {
		nursery_stop(nursery);
		return r;
	}
	start_ready(run);
	r = board_run(board);
	sd_notify(0, "STOPPING=1");
	board_free(board);
	return r;
}

static int start_run(const struct sim_options *options, int ready_fd)
{
	struct sim_run run = {
		.options = options,
		.socket_lock = SIM_LOCK_INIT,
		.pid_lock = SIM_LOCK_INIT,
		.ready_fd = ready_fd,
	};
	int fd, r;

	signal(SIGPIPE, SIG_IGN);
	signal(SIGCHLD, SIG_DFL);
	start_raise_files();
	r = start_locks(&run);
	if (r == 0)
		r = start_listen(options, &fd);
	if (r == 0) {
		r = start_board(&run, fd);
		unlink(options->socket);
	}
	sim_lock_drop(&run.pid_lock);
	sim_lock_drop(&run.socket_lock);
	sim_fd_close(&run.ready_fd);
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* The parent: waits for the word of the child, or for its end. */
static int start_await(const struct sim_options *options, int fd, pid_t child)
{
	cleanup(sim_free) char *path = start_log_path(options);
	bool logs = false;
	int status;
	char word;

	for (;;) {
		ssize_t n = read(fd, &word, 1);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		if (word == WORD_READY)
			return EXIT_SUCCESS;
		logs = true;
	}
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (logs)
		fprintf(stderr, "npu-sim: did not start; %s says why\n", path ? path : "its log");
	return EXIT_FAILURE;
}

int sim_start(const struct sim_options *options)
{
	int ready[2];
	pid_t child;

	sim_log_open(options->log_level, options->device);
	if (!options->detach)
		return start_run(options, -1);
	if (pipe2(ready, O_CLOEXEC) < 0) {
		sim_log(SIM_LOG_ERROR, "pipe: %m");
		return EXIT_FAILURE;
	}
	child = fork();
	if (child < 0) {
		sim_log(SIM_LOG_ERROR, "fork: %m");
		return EXIT_FAILURE;
	}
	if (child) {
		close(ready[1]);
		return start_await(options, ready[0], child);
	}
	close(ready[0]);
	setsid();
	return start_run(options, ready[1]);
}
