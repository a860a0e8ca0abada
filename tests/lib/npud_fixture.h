/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NPU_TESTS_NPUD_FIXTURE_H
#define NPU_TESTS_NPUD_FIXTURE_H

/*
 * npud_fixture: an npud and its npu-sim of a test's own, in a private runtime directory, and what
 * tests ask about processes. Programs are taken from the build tree (NPU_BUILD_DIR). All functions
 * are for one thread; those without a result print why and abort when they fail.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct npud_fixture {
	char dir[64];     /* runtime directory */
	char socket[96];  /* npud's socket; also in $NPUD_SOCKET */
	char log[96];     /* what npud writes to stderr */
	pid_t npud;
	pid_t sim;        /* device 0 */
};

/*
 * Makes the directory, writes config (INI text, NULL: empty) and starts npud, which starts npu-sim.
 * Returns when both serve. NPUD_SOCKET and NPU_SIM_PATH are set in this process.
 */
void npud_start(struct npud_fixture *f, const char *config);

/* Starts npud (again) on the same directory and waits until it serves. */
void npud_launch(struct npud_fixture *f);

/* Ends npud by signal and reaps it; npu-sim goes on. Returns the wait status. */
int npud_end(struct npud_fixture *f, int signal);

/* Ends both and removes the directory. */
void npud_stop(struct npud_fixture *f);

/* ---- processes ------------------------------------------------------------------------------ */

/* Open file descriptors of a process, -1 when it is gone. */
int process_fds(pid_t pid);
/* Living descendants: all processes whose ancestor it is, itself not counted. */
int process_children(pid_t pid);
/* CPU time of all threads of a process and, with tree, of its living descendants, in ns. */
uint64_t process_cpu_ns(pid_t pid, bool tree);

/* Polls until condition(arg) or the limit; returns whether it came true. */
bool wait_until(bool (*condition)(void *arg), void *arg, unsigned limit_ms);

/* Waits for a child, at most limit_ms, then kills it. Returns the wait status. */
int wait_for(pid_t pid, unsigned limit_ms);

/* The whole file as a string (free it), or NULL. */
char *read_file(const char *path);

#endif
