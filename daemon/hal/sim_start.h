/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NPU_HAL_SIM_START_H
#define NPU_HAL_SIM_START_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Starts an npu-sim as a process of its own session, which outlives npud. Blocking; belongs to a
 * device's thread. An npu-sim of number N listens at DIR/npu-sim-N.sock, keeps its pid in
 * DIR/npu-sim-N.pid and writes what it has to say to DIR/npu-sim-N.log.
 */

struct sim_start {
	const char *runtime_dir;
	unsigned int number;
	uint64_t memory;
	unsigned int cores; /* 0: online cpus */
	bool host_visible;
};

#define SIM_START_WAIT_MS 5000
#define SIM_TEXT_MAX	  512

/*
 * The path of the npu-sim program: $NPU_SIM_PATH, beside our own executable, the libexec directory.
 */
int sim_find_program(char *path, size_t len);

/*
 * Starts it. 0 and its pid (a child: reap it when it has ended), or a negative errno and one line
 * in text (SIM_TEXT_MAX).
 */
int sim_start(const struct sim_start *start, pid_t *ret_pid, char *text);

#endif
