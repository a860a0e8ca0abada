/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The board's side: requests and replies, bounded in time. A nursery that breaks the rules or does
 * not answer is killed and stays dead for this object: the board has threads by then and cannot
 * fork another.
 */

#include "config.h"
#include "sim/nursery.h"
#include "sim/nursery_process.h"
#include "sim/sandbox.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

struct nursery {
	struct nursery_config config;
	pid_t pid;
	int socket; /* -1: dead */
	uint32_t layers;
	uint32_t next_uid;
	pid_t *holders; /* by uid - config.uid: who has or had it; NULL for uid_count 1 */
};

__attribute__((format(printf, 3, 4))) static void nursery_log(const struct nursery *nursery,
							      int priority, const char *format, ...)
{
	char text[256];
	va_list list;

	if (!nursery->config.log)
		return;
	va_start(list, format);
	vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	nursery->config.log(nursery->config.log_arg, priority, text);
}

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Waits until fd is readable. -ETIMEDOUT. */
static int wait_readable(int fd, int timeout_ms)
{
	int64_t deadline = now_ms() + timeout_ms;

	for (;;) {
		struct pollfd ready = { .fd = fd, .events = POLLIN };
		int64_t left = deadline - now_ms();
		int r = poll(&ready, 1, left > 0 ? (int)left : 0);

		if (r > 0)
			return 0;
		if (r == 0)
			return -ETIMEDOUT;
		if (errno != EINTR)
			return -errno;
	}
}

static void reap(pid_t pid)
{
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

static void nursery_kill(struct nursery *nursery)
{
	if (nursery->socket < 0)
		return;
	close(nursery->socket);
	nursery->socket = -1;
	kill(nursery->pid, SIGKILL); /* not reaped yet, so the number is still its own */
	reap(nursery->pid);
}

static int nursery_await(struct nursery *nursery, struct nursery_reply *ret, int *ret_pidfd)
{
	int r = wait_readable(nursery->socket, nursery->config.timeout_ms);

	if (r < 0)
		return r;
	r = nursery_receive(nursery->socket, ret, sizeof(*ret), MSG_DONTWAIT, ret_pidfd);
	if (r == 0)
		ret->text[sizeof(ret->text) - 1] = '\0';
	return r;
}

static void nursery_log_layers(const struct nursery *nursery)
{
	for (unsigned int bit = 0; bit < SANDBOX_LAYER_COUNT; bit++)
		if (!(nursery->layers & (1u << bit)))
			nursery_log(
				nursery, LOG_WARNING,
				"sandbox layer %s is missing: host or build does not permit it; "
				"engines run without it",
				sandbox_layer_name(bit));
}

/* Takes the first message: the result of the trial. */
static int nursery_greet(struct nursery *nursery)
{
	struct nursery_reply reply = { 0 };
	int pidfd = -1;
	int r = nursery_await(nursery, &reply, &pidfd);

	if (r < 0) {
		nursery_log(nursery, LOG_ERR, "nursery did not start: %s", strerror(-r));
		return r;
	}
	if (pidfd >= 0)
		close(pidfd);
	if (reply.pid > 0) {
		if (reply.error < 0)
			kill(reply.pid, SIGKILL);
		reap(reply.pid);
	}
	if (reply.error < 0) {
		nursery_log(nursery, LOG_ERR,
			    "nursery did not start: %s; no kernel code can run on this host",
			    reply.text);
		return reply.error;
	}
	if ((reply.layers & SANDBOX_MANDATORY) != SANDBOX_MANDATORY)
		return -EPERM;
	nursery->layers = reply.layers;
	nursery_log_layers(nursery);
	return 0;
}

static void config_set_defaults(struct nursery_config *config)
{
	if (!config->data_limit)
		config->data_limit = NURSERY_DATA_LIMIT_DEFAULT;
	if (!config->nofile)
		config->nofile = NURSERY_NOFILE_DEFAULT;
	if (!config->uid)
		config->uid = NURSERY_UID_DEFAULT;
	if (!config->uid_count)
		config->uid_count = 1;
	if (!config->gid)
		config->gid = NURSERY_UID_DEFAULT;
	if (config->timeout_ms <= 0)
		config->timeout_ms = NURSERY_TIMEOUT_MS_DEFAULT;
}

static void nursery_free(struct nursery *nursery)
{
	nursery_kill(nursery);
	free(nursery->holders);
	free(nursery);
}

int nursery_start(const struct nursery_config *config, struct nursery **ret)
{
	struct nursery *nursery;
	pid_t board = getpid();
	int pair[2];
	int r;

	if (!config->engine_main || config->uid_count > 1u << 20)
		return -EINVAL;
	nursery = calloc(1, sizeof(*nursery));
	if (!nursery)
		return -ENOMEM;
	nursery->config = *config;
	nursery->socket = -1;
	config_set_defaults(&nursery->config);
	if (nursery->config.uid_count > 1) {
		nursery->holders = calloc(nursery->config.uid_count, sizeof(pid_t));
		if (!nursery->holders) {
			nursery_free(nursery);
			return -ENOMEM;
		}
	}
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
		r = -errno;
		nursery_free(nursery);
		return r;
	}
	nursery->pid = fork();
	if (nursery->pid == 0)
		nursery_process_run(&nursery->config, pair[1], board);
	r = -errno;
	close(pair[1]);
	if (nursery->pid < 0) {
		close(pair[0]);
		nursery_free(nursery);
		return r;
	}
	nursery->socket = pair[0];
	r = nursery_greet(nursery);
	if (r < 0) {
		nursery_free(nursery);
		return r;
	}
	*ret = nursery;
	return 0;
}

static bool engine_lives(pid_t pid)
{
	siginfo_t info = { 0 };

	if (pid == 0)
		return false;
	return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
	       info.si_pid == 0;
}

/* The next uid that no live engine has, as an index. -EUSERS. */
static int nursery_pick_uid(struct nursery *nursery, uint32_t *ret_index)
{
	uint32_t count = nursery->config.uid_count;

	if (!nursery->holders) {
		*ret_index = 0;
		return 0;
	}
	for (uint32_t i = 0; i < count; i++) {
		uint32_t index = (nursery->next_uid + i) % count;

		if (!engine_lives(nursery->holders[index])) {
			nursery->next_uid = index + 1;
			*ret_index = index;
			return 0;
		}
	}
	return -EUSERS;
}

int nursery_spawn(struct nursery *nursery, int control_fd, struct nursery_child *ret)
{
	struct nursery_request request = { .gid = nursery->config.gid };
	struct nursery_reply reply = { 0 };
	uint32_t index = 0;
	int pidfd = -1;
	int r;

	if (nursery->socket < 0)
		return -EPIPE;
	if (control_fd < 0)
		return -EBADF;
	r = nursery_pick_uid(nursery, &index);
	if (r < 0) {
		nursery_log(nursery, LOG_ERR,
			    "no engine: all %u uids from %u on are in use; widen the range",
			    nursery->config.uid_count, nursery->config.uid);
		return r;
	}
	request.uid = nursery->config.uid + index;
	r = nursery_send(nursery->socket, &request, sizeof(request), control_fd, MSG_DONTWAIT);
	if (r == -EBADF || r == -ETOOMANYREFS || r == -ENOMEM || r == -ENOBUFS || r == -EAGAIN)
		return r; /* nothing was sent */
	if (r == 0)
		r = nursery_await(nursery, &reply, &pidfd);
	if (r == -EMFILE) {
		/* The reply is read but its pidfd had no place: the engine cannot be kept. */
		if (reply.pid > 0) {
			kill(reply.pid, SIGKILL);
			reap(reply.pid);
		}
		return r;
	}
	if (r < 0) {
		nursery_log(nursery, LOG_ERR,
			    "nursery %d is lost: %s; no new engines until a restart",
			    (int)nursery->pid, strerror(-r));
		nursery_kill(nursery);
		return r;
	}
	if (reply.error < 0) {
		nursery_log(nursery, LOG_ERR, "no engine: %.*s", NURSERY_TEXT_MAX, reply.text);
		return reply.error;
	}
	if (reply.pid <= 0 || pidfd < 0) {
		if (pidfd >= 0)
			close(pidfd);
		nursery_kill(nursery);
		return -EPROTO;
	}
	if (nursery->holders)
		nursery->holders[index] = reply.pid;
	*ret = (struct nursery_child){ .pid = reply.pid, .pidfd = pidfd, .uid = request.uid };
	return 0;
}

uint32_t nursery_layers(const struct nursery *nursery)
{
	return nursery->layers;
}

pid_t nursery_pid(const struct nursery *nursery)
{
	return nursery->pid;
}

void nursery_stop(struct nursery *nursery)
{
	if (nursery)
		nursery_free(nursery);
}
