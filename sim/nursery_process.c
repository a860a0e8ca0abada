/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A single-threaded server of one request. It stays small because each engine starts as a copy of
 * it, and touches nothing that a client made.
 *
 * Engines are made with clone3() itself: fork() has no CLONE_PARENT, and vfork or exec would cost
 * more than the copy of these few page tables. Being a copy without threads, the child may go on
 * using glibc; the one thing that fork() would have repaired is the thread id that glibc keeps, so
 * the kernel is asked to write the new one there.
 */

#include "config.h"
#include "sim/nursery_process.h"
#include "sim/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SOCKET_FD     3
#define FIRST_FREE_FD 10

#ifndef PR_GET_TID_ADDRESS
#define PR_GET_TID_ADDRESS 40
#endif

struct nursery_process {
	const struct nursery_config *config;
	uint32_t layers; /* what the engine on trial had */
	uint64_t clone_flags;
	uint64_t tid_address;
};

struct trial_result {
	int32_t error;
	uint32_t layers;
	char step[32];
};

int nursery_send(int socket, const void *data, size_t size, int fd, int flags)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	struct iovec part = { .iov_base = (void *)(uintptr_t)data, .iov_len = size };
	struct msghdr msg = { .msg_iov = &part, .msg_iovlen = 1 };
	ssize_t n;

	if (fd >= 0) {
		struct cmsghdr *header = &control.align;

		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(header), &fd, sizeof(fd));
		msg.msg_control = control.bytes;
		msg.msg_controllen = sizeof(control.bytes);
	}
	do
		n = sendmsg(socket, &msg, flags | MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == ECONNRESET ? -EPIPE : -errno;
	return (size_t)n == size ? 0 : -EPROTO;
}

int nursery_receive(int socket, void *data, size_t size, int flags, int *ret_fd)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	struct iovec part = { .iov_base = data, .iov_len = size };
	struct msghdr msg = { .msg_iov = &part,
			      .msg_iovlen = 1,
			      .msg_control = control.bytes,
			      .msg_controllen = sizeof(control.bytes) };
	struct cmsghdr *header;
	int fd = -1;
	ssize_t n;

	do
		n = recvmsg(socket, &msg, flags | MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == ECONNRESET ? -EPIPE : -errno;
	header = CMSG_FIRSTHDR(&msg);
	if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
	    header->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(&fd, CMSG_DATA(header), sizeof(fd));
	if ((size_t)n != size || (msg.msg_flags & (MSG_CTRUNC | MSG_TRUNC))) {
		if (fd >= 0)
			close(fd);
		if (n == 0)
			return -EPIPE;
		return (size_t)n == size && (msg.msg_flags & MSG_CTRUNC) ? -EMFILE : -EPROTO;
	}
	*ret_fd = fd;
	return 0;
}

/* 0, 1 and 2 are taken, so that no fd that arrives later can be mistaken for a standard stream. */
static int process_take_fds(int socket)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int high;

	if (null < 0)
		return -errno;
	high = fcntl(socket, F_DUPFD_CLOEXEC, FIRST_FREE_FD);
	if (high < 0)
		return -errno;
	for (int fd = 0; fd <= 2; fd++) {
#ifdef NPU_SANITIZERS
		if (fd == 2 && fcntl(fd, F_GETFD) >= 0)
			continue; /* reports go where the board's do */
#endif
		if (fd != null && dup3(null, fd, O_CLOEXEC) < 0)
			return -errno;
	}
	if (dup3(high, SOCKET_FD, O_CLOEXEC) < 0)
		return -errno;
	if (syscall(SYS_close_range, SOCKET_FD + 1, ~0u, 0) < 0)
		return -errno;
	return 0;
}

/* Whatever the board had arranged is not for engines. What a terminal or a service manager sends to
 * everybody is the board's to act on; nursery and engines end with it. */
static void process_take_signals(void)
{
	static const int ignored[] = { SIGPIPE, SIGINT, SIGQUIT, SIGHUP, SIGTERM };
	struct sigaction action = { .sa_handler = SIG_DFL };
	sigset_t none;

#ifndef NPU_SANITIZERS
	for (int sig = 1; sig < NSIG; sig++)
		sigaction(sig, &action, NULL);
#endif
	action.sa_handler = SIG_IGN;
	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		sigaction(ignored[i], &action, NULL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Where glibc keeps the thread id of this thread, or 0 when the kernel does not tell. */
static uint64_t process_tid_address(void)
{
	int *address = NULL;

	if (prctl(PR_GET_TID_ADDRESS, &address, 0, 0, 0) < 0 || !address ||
	    *address != (int)syscall(SYS_gettid))
		return 0;
	return (uint64_t)(uintptr_t)address;
}

static long process_clone(const struct nursery_process *process, int *ret_pidfd)
{
	struct clone_args args = { .flags = process->clone_flags,
				   .pidfd = (uint64_t)(uintptr_t)ret_pidfd };

	if (process->tid_address) {
		args.flags |= CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID;
		args.child_tid = process->tid_address;
	}
	return syscall(SYS_clone3, &args, sizeof(args));
}

static void process_limits(const struct nursery_process *process, uid_t uid, gid_t gid,
			   struct sandbox_limits *ret)
{
	*ret = (struct sandbox_limits){ .data = process->config->data_limit,
					.nofile = process->config->nofile,
					.uid = uid,
					.gid = gid };
}

static _Noreturn void engine_run(const struct nursery_process *process, int control,
				 const struct nursery_request *request)
{
	const struct nursery_config *config = process->config;
	uint32_t expected = process->layers & ~(SANDBOX_BY_NURSERY | SANDBOX_SECCOMP);
	struct sandbox_limits limits;
	uint32_t layers = 0;

	prctl(PR_SET_NAME, "npu-engine", 0, 0, 0);
	process_limits(process, request->uid, request->gid, &limits);
	/* What the trial had, every engine must have. */
	if (sandbox_enter(control, &limits, &layers) < 0 || (layers & expected) != expected)
		_exit(SANDBOX_EXIT_STATUS);
	_exit(config->engine_main(SOCKET_FD, config->arg));
}

static _Noreturn void trial_run(const struct nursery_process *process, int control)
{
	struct trial_result result = { 0 };
	struct sandbox_limits limits;

	process_limits(process, process->config->uid, process->config->gid, &limits);
	result.error = sandbox_enter(control, &limits, &result.layers);
	if (result.error < 0) {
		snprintf(result.step, sizeof(result.step), "no-new-privs");
	} else {
		result.error = sandbox_seal();
		if (result.error < 0)
			snprintf(result.step, sizeof(result.step), "seccomp");
		else
			result.layers |= SANDBOX_SECCOMP;
	}
	nursery_send(SOCKET_FD, &result, sizeof(result), -1, 0);
	_exit(0);
}

static int trial_wait(int socket, int timeout_ms, struct trial_result *ret)
{
	struct pollfd ready = { .fd = socket, .events = POLLIN };
	int fd = -1;
	int r = poll(&ready, 1, timeout_ms);

	if (r < 0)
		return -errno;
	if (r == 0)
		return -ETIMEDOUT;
	r = nursery_receive(socket, ret, sizeof(*ret), 0, &fd);
	if (fd >= 0)
		close(fd);
	return r;
}

/* Builds one engine that runs nothing, and learns from it what this host permits. */
static void process_trial(struct nursery_process *process, uint32_t own_layers,
			  struct nursery_reply *reply, int *ret_pidfd)
{
	struct trial_result result = { 0 };
	int pair[2];
	long pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
		reply->error = -errno;
		snprintf(reply->text, sizeof(reply->text), "socketpair: %s", strerror(errno));
		return;
	}
	pid = process_clone(process, ret_pidfd);
	if (pid < 0 && errno != EAGAIN && errno != ENOMEM) {
		process->clone_flags &= ~(uint64_t)CLONE_NEWPID;
		pid = process_clone(process, ret_pidfd);
	}
	if (pid == 0)
		trial_run(process, pair[1]);
	if (pid < 0) {
		reply->error = -errno;
		snprintf(reply->text, sizeof(reply->text), "clone3 of an engine: %s",
			 strerror(errno));
	}
	close(pair[1]);
	if (pid > 0) {
		reply->pid = (int32_t)pid;
		reply->error = trial_wait(pair[0], process->config->timeout_ms, &result);
		if (reply->error < 0) {
			snprintf(reply->text, sizeof(reply->text),
				 "engine on trial ended without an answer: %s",
				 strerror(-reply->error));
		} else if (result.error < 0) {
			reply->error = result.error;
			snprintf(reply->text, sizeof(reply->text), "mandatory layer %.31s: %s",
				 result.step, strerror(-result.error));
		}
		process->layers = own_layers | result.layers;
		reply->layers = process->layers;
	}
	close(pair[0]);
}

static void process_serve(struct nursery_process *process)
{
	for (;;) {
		struct nursery_request request;
		struct nursery_reply reply = { 0 };
		int control = -1, pidfd = -1;
		long pid;
		int r = nursery_receive(SOCKET_FD, &request, sizeof(request), 0, &control);

		if (r < 0)
			_exit(r == -EPIPE ? 0 : 1);
		if (control < 0)
			_exit(1);
		pid = process_clone(process, &pidfd);
		if (pid == 0)
			engine_run(process, control, &request);
		if (pid < 0) {
			reply.error = -errno;
			pidfd = -1;
			snprintf(reply.text, sizeof(reply.text), "clone3 of an engine: %s",
				 strerror(errno));
		} else {
			reply.pid = (int32_t)pid;
			reply.layers = process->layers;
		}
		close(control);
		r = nursery_send(SOCKET_FD, &reply, sizeof(reply), pidfd, 0);
		if (pidfd >= 0)
			close(pidfd);
		if (r < 0)
			_exit(r == -EPIPE ? 0 : 1);
	}
}

_Noreturn void nursery_process_run(const struct nursery_config *config, int socket, pid_t board)
{
	struct nursery_process process = { .config = config,
					   .clone_flags =
						   CLONE_PARENT | CLONE_PIDFD | CLONE_NEWPID };
	struct nursery_reply reply = { 0 };
	uint32_t layers = 0;
	int pidfd = -1;

	process_take_signals();
	prctl(PR_SET_NAME, "npu-nursery", 0, 0, 0);
	reply.error = process_take_fds(socket);
	if (reply.error < 0) {
		snprintf(reply.text, sizeof(reply.text), "/dev/null and fds: %s",
			 strerror(-reply.error));
		nursery_send(socket, &reply, sizeof(reply), -1, 0);
		_exit(1);
	}
	process.tid_address = process_tid_address();
	reply.error = sandbox_prepare();
	if (reply.error < 0) {
		snprintf(reply.text, sizeof(reply.text), "seccomp program: %s",
			 strerror(-reply.error));
	} else {
		layers = sandbox_isolate();
		/* Credentials are settled; the kernel ends this process with the board now. */
		prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
		prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		if (getppid() != board)
			_exit(0);
		process_trial(&process, layers, &reply, &pidfd);
	}
	if (nursery_send(SOCKET_FD, &reply, sizeof(reply), pidfd, 0) < 0 || reply.error < 0)
		_exit(1);
	if (pidfd >= 0)
		close(pidfd);
	process_serve(&process);
	_exit(0);
}
