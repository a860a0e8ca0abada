/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NPU_SIM_NURSERY_H
#define NPU_SIM_NURSERY_H

/*
 * nursery: the process that engines are forked from.
 *
 * The board forks it before it has threads. It places itself in empty namespaces, and then forks an
 * engine for each request, 0.5 ms apiece, whatever the board has grown to. An engine is a child of
 * the board (waitid(P_PIDFD) works), has a pid and a user namespace of its own, and runs
 * engine_main(3, arg) inside stage 1 of the sandbox (sandbox.h). It must call sandbox_seal() when
 * its threads are made, before it touches a byte that comes from a client.
 *
 * fds of an engine: 0, 1, 2 are /dev/null (2 is the board's in a sanitizer build), 3 is the control
 * socket, nothing else.
 *
 * Lifetime: nursery and engines are killed by the kernel when the thread that called
 * nursery_start() ends (so call it from the board's main thread); the nursery also ends when its
 * socket closes. An engine sees POLLHUP on its control socket, and should end by _exit().
 *
 * All functions are called from the board's loop thread. The board must not ignore SIGCHLD, and
 * must reap each engine. Errors are negative errno; the log callback has the line that explains
 * them.
 */

#include <stdint.h>
#include <sys/types.h>

struct nursery;

#define NURSERY_UID_DEFAULT	   65534u
#define NURSERY_DATA_LIMIT_DEFAULT (1024ull << 20)
#define NURSERY_NOFILE_DEFAULT	   64u
#define NURSERY_TIMEOUT_MS_DEFAULT 5000

struct nursery_config {
	/* Runs in the engine. Its return value becomes the exit status. */
	int (*engine_main)(int control_fd, void *arg);
	void *arg;	     /* as it is when nursery_start() forks; later changes are not seen */
	uint64_t data_limit; /* bytes of private memory an engine may have; 0: the default, 1 GiB */
	uint32_t nofile;     /* fds an engine may have; 0: the default, 64 */
	uid_t uid;	     /* for a board that may change uids; 0: the default, 65534 */
	uint32_t uid_count;  /* > 1: each live engine has its own of uid .. uid + uid_count - 1 */
	gid_t gid;	     /* 0: the default, 65534 */
	int timeout_ms;	     /* for an answer of the nursery; 0: the default, 5000 */
	/* One line, with a syslog priority. May be NULL. */
	void (*log)(void *log_arg, int priority, const char *text);
	void *log_arg;
};

struct nursery_child {
	pid_t pid; /* as the board sees it */
	int pidfd; /* close-on-exec, owned by the caller */
	uid_t uid; /* asked for; it holds if SANDBOX_UID stands */
};

/*
 * Forks the nursery, builds one engine on trial, and returns when that has shown which layers of
 * the sandbox stand on this host. Missing layers are logged, a line each.
 * -EPERM or what the kernel
 * said: a mandatory layer (SANDBOX_MANDATORY) cannot be raised here, so no kernel code may run.
 * -EINVAL: no engine_main. -ETIMEDOUT: no answer in time.
 */
int nursery_start(const struct nursery_config *config, struct nursery **ret);

/*
 * Forks one engine. control_fd is one end of a SOCK_SEQPACKET pair; it is lent: the caller closes
 * its own copy afterwards, and keeps the other end. The engine may still be entering its sandbox on
 * return; if that fails it exits with SANDBOX_EXIT_STATUS.
 * -EAGAIN, -ENOMEM, -ENOBUFS: the kernel refused a process, or to pass the request on; try again
 * later. -EPIPE: the nursery is dead, now or earlier; engines go on, but there can be no new one.
 * -ETIMEDOUT: it did not answer, and was killed. -EUSERS: all of uid_count uids are taken by live
 * engines. -EMFILE: no fd for the pidfd.
 */
int nursery_spawn(struct nursery *nursery, int control_fd, struct nursery_child *ret);

/* The layers (enum sandbox_layer) that stand in every engine of this nursery. */
uint32_t nursery_layers(const struct nursery *nursery);

/* Process id of the nursery, for log lines and status. */
pid_t nursery_pid(const struct nursery *nursery);

/* Ends the nursery and reaps it. Engines go on: they are the board's to end. NULL is allowed. */
void nursery_stop(struct nursery *nursery);

#endif
