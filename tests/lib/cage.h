/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NPU_TESTS_LIB_CAGE_H
#define NPU_TESTS_LIB_CAGE_H

/*
 * Helpers for tests that act as the board of caged engines. The test's process (Check forks one
 * each) is the board; a loop test with index 1 does the same as an ordinary user when it was
 * started as root.
 */

#include <check.h>
#include <errno.h>
#include <grp.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/nursery.h"

#define CAGE_ORDINARY_UID 65534
#define CAGE_DEADLINE_MS  10000

static inline void cage_take_identity(int ordinary)
{
	/* A root that may not do this is an ordinary user already. */
	if (!ordinary || geteuid() != 0 || setgroups(0, NULL) < 0)
		return;
	ck_assert_int_eq(setresgid(CAGE_ORDINARY_UID, CAGE_ORDINARY_UID, CAGE_ORDINARY_UID), 0);
	ck_assert_int_eq(setresuid(CAGE_ORDINARY_UID, CAGE_ORDINARY_UID, CAGE_ORDINARY_UID), 0);
}

static inline void cage_log(void *arg, int priority, const char *text)
{
	if (arg)
		++*(int *)arg;
	else
		printf("<%d>%s\n", priority, text);
}

/* Spawns an engine and returns the board's end of its control socket. */
static inline int cage_spawn(struct nursery *nursery, struct nursery_child *ret)
{
	int pair[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	ck_assert_int_eq(nursery_spawn(nursery, pair[1], ret), 0);
	close(pair[1]);
	return pair[0];
}

static inline void cage_receive(int control, void *data, size_t size)
{
	struct pollfd ready = { .fd = control, .events = POLLIN };

	ck_assert_int_eq(poll(&ready, 1, CAGE_DEADLINE_MS), 1);
	ck_assert_int_eq(recv(control, data, size, 0), (ssize_t)size);
}

static inline void cage_send(int control, const void *data, size_t size)
{
	ck_assert_int_eq(send(control, data, size, MSG_NOSIGNAL), (ssize_t)size);
}

/* Waits for the end of an engine, reaps it, and closes its pidfd. */
static inline siginfo_t cage_reap(const struct nursery_child *child)
{
	struct pollfd ended = { .fd = child->pidfd, .events = POLLIN };
	siginfo_t info = { 0 };

	ck_assert_int_eq(poll(&ended, 1, CAGE_DEADLINE_MS), 1);
	ck_assert_int_eq(waitid(P_PIDFD, (id_t)child->pidfd, &info, WEXITED), 0);
	ck_assert_int_eq(info.si_pid, child->pid);
	close(child->pidfd);
	return info;
}

static inline int cage_run_suite(Suite *suite)
{
	SRunner *runner = srunner_create(suite);
	int failed;

	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}

#endif
