/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NPU_SIM_LOG_H
#define NPU_SIM_LOG_H

#include <stdbool.h>
#include <stdint.h>

/*
 * sim_log - npu-sim's log: one line a fact, one write a line, to stderr.
 *
 * In front of a line stands the device ("npu-sim 0: "), and the time unless stderr goes to the
 * journal, which gets a priority prefix instead. Control characters are printed as '?', longer
 * lines are cut. Any thread; errno is left alone.
 */

#define SIM_LOG_LINE_MAX 1024

enum sim_log_level {
	SIM_LOG_ERROR,
	SIM_LOG_WARNING,
	SIM_LOG_NOTICE,
	SIM_LOG_INFO,
	SIM_LOG_DEBUG,
};

/* A budget of 10 lines a second for what a client can trigger. Zero-initialised, not locked. */
struct sim_log_limit {
	uint64_t window_ns;
	uint32_t used;
	uint32_t dropped;
};

/* Before other threads exist. */
void sim_log_open(enum sim_log_level level, unsigned int device);
/* "error" ... "debug"; -EINVAL for another word. */
int sim_log_level_parse(const char *word, enum sim_log_level *ret_level);

void sim_log(enum sim_log_level level, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* True when the caller may log now; says, once, how many lines were dropped before. */
bool sim_log_limit_ok(struct sim_log_limit *limit);

#endif
