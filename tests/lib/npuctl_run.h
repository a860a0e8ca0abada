/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NPU_TESTS_NPUCTL_RUN_H
#define NPU_TESTS_NPUCTL_RUN_H

#include <stdint.h>
#include <sys/types.h>

/* Runs the npuctl of the top build directory, which is the current one, as make check has it. */

struct npuctl_run {
	int code; /* exit code, or 128 + signal */
	uint64_t ms;
	char out[16384], err[4096];
};

/* Exit codes of npuctl(1). */
enum {
	NPUCTL_OK,
	NPUCTL_FAILED,
	NPUCTL_USAGE,
	NPUCTL_NOT_RUNNING,
	NPUCTL_DENIED,
	NPUCTL_NO_ANSWER,
};

/*
 * npuctl WORD..., until NULL; as `uid` when that is not 0; its output goes to out_path, or is caught
 * when that is NULL. Fails the test when it cannot run at all. The result is overwritten by the next
 * call.
 */
const struct npuctl_run *npuctl_as(uid_t uid, const char *out_path, const char *const *words);

#define npuctl(...) npuctl_as(0, NULL, (const char *const[]){ __VA_ARGS__, NULL })

/* It ended with this code, nothing on stdout, and one line that has `part` on stderr. */
void npuctl_says(const struct npuctl_run *run, int code, const char *part);

#endif
