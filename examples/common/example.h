/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EXAMPLES_COMMON_EXAMPLE_H
#define EXAMPLES_COMMON_EXAMPLE_H
/*
 * What the example programs share: one way to fail, one way to find the kernel image, one
 * progress bar. Single-threaded, nothing here is kept beyond the process.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <acl/acl.h>

/* Exit codes of all examples. */
enum example_exit {
	EXAMPLE_OK = 0,
	EXAMPLE_FAILED = 1,	/* the device, a file or a result was not as it should be */
	EXAMPLE_USAGE = 2,
};

/*
 * Runs a call of the library; on an error prints the call, its code and what
 * aclGetRecentErrMsg() knows, one line, and exits with EXAMPLE_FAILED. The session ends with the
 * process, so nothing is left behind on the device.
 */
#define CHECK(call) example_check((call), #call)

void example_check(aclError code, const char *call);

/* "NAME: text" and a newline on stderr; NAME is the program's. */
void example_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * A whole number from the command line. Exits with EXAMPLE_USAGE when text is not a number from
 * min to max; what names the option.
 */
uint32_t example_number(const char *what, const char *text, uint32_t min, uint32_t max);

/*
 * Loads a kernel image onto the current device: the file that the user named (path not NULL), else
 * NAME.npuk in the directories of $NPU_KERNEL_PATH (separated by ":"), beside the program, or where
 * the package installs it. Exits with EXAMPLE_FAILED and a line that names the places.
 */
aclrtBinHandle example_load(const char *path, const char *name);

/* The kernel of that name; exits with EXAMPLE_FAILED when the image has none. */
aclrtFuncHandle example_kernel(aclrtBinHandle image, const char *name);

/* Cores of the current device, at least 1: a good number of blocks is a multiple. */
uint32_t example_cores(void);

/* Seconds of a clock that only goes forward. */
double example_seconds(void);

/*
 * A progress bar on stderr when that is a terminal; else a line at every quarter. Quiet prints
 * nothing.
 */
struct progress {
	const char *what;
	uint32_t total, shown;
	bool terminal, quiet;
};

void progress_init(struct progress *progress, const char *what, uint32_t total, bool quiet);
void progress_step(struct progress *progress, uint32_t done);
void progress_fini(struct progress *progress);

#endif
