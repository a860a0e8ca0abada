/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NPU_TESTS_NPUD_PROC_H
#define NPU_TESTS_NPUD_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * An npud with a software NPU in a runtime directory of its own, for integration tests. Programs
 * are found in the directory of the build ($NPUD_PATH and $NPU_SIM_PATH go first). All functions
 * abort the test with a line on stderr when something is not as it must be.
 */

struct npud_proc {
	pid_t pid;
	char dir[64];  /* removed by npud_proc_stop() */
	char sock[96]; /* its control socket */
	char log[96];
};

/* conf: text of the configuration behind [device] sim_memory, sim_stop_with_daemon; NULL: none. */
void npud_proc_start(struct npud_proc *proc, const char *conf);
/* The same with a directory that exists: for a second npud, or a restart. */
void npud_proc_start_in(struct npud_proc *proc, const char *conf);
/* SIGTERM, waits for the end, checks that it was clean, removes the directory. */
void npud_proc_stop(struct npud_proc *proc);
/* Ends it with a signal; the directory stays. */
void npud_proc_kill(struct npud_proc *proc, int signo);
bool npud_proc_alive(const struct npud_proc *proc);
/* Its log contains the words. */
bool npud_proc_logged(const struct npud_proc *proc, const char *words);
/* The pid of its npu-sim number n. */
pid_t npud_proc_sim(const struct npud_proc *proc, unsigned int n);

/* Open fds of a process. */
int fds_of(pid_t pid);
/* Waits till the process has at most count open fds; false after timeout_ms. */
bool fds_settle(pid_t pid, int count, int timeout_ms);
/* Waits till the condition holds; false after timeout_ms. */
bool wait_for(bool (*condition)(void *arg), void *arg, int timeout_ms);

#endif
