/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NPU_TESTS_CLIENT_PROCESS_H
#define NPU_TESTS_CLIENT_PROCESS_H

/*
 * client_process: programs that use the public API, as children of a test. A client that meets
 * something unexpected prints it and exits with status 10 or 11. The parent talks with it over two
 * pipes, one byte a word. The fixture is client_npud.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>
#include <unistd.h>
#include <acl/acl.h>
#include "tests/lib/npud_fixture.h"

#define MIB (1u << 20)

extern struct npud_fixture client_npud;

/* In a client: the call must succeed. */
#define OK(call) do {                                                                    \
	int code_ = (call);                                                              \
	if (code_) {                                                                     \
		const char *text_ = aclGetRecentErrMsg();                                \
		fprintf(stderr, "%d: %s:%d: %s: %d: %s\n", getpid(), __FILE__, __LINE__, \
			#call, code_, text_ ? text_ : "");                               \
		_exit(10);                                                               \
	}                                                                                \
} while (0)
#define THAT(condition) do {                                                              \
	if (!(condition)) {                                                              \
		fprintf(stderr, "%d: %s:%d: not so: %s\n", getpid(), __FILE__, __LINE__,  \
			#condition);                                                     \
		_exit(11);                                                               \
	}                                                                                \
} while (0)

struct client {
	aclrtStream stream;
	aclrtBinHandle image;
	uint64_t *device; /* MIB bytes */
};

/* ---- in a client ---------------------------------------------------------------------------- */

void client_begin(struct client *c);
void client_end(struct client *c);
void client_launch(struct client *c, const char *name, uint32_t blocks, uint64_t a0, uint64_t a1,
		   unsigned nargs);
/* Checked work: sums whose result is known. */
void client_work(struct client *c, unsigned rounds);

/* Works, then ends. */
void client_worker(int in, int out);
/* Finds that no device memory is in use. */
void client_memory(int in, int out);

/* ---- on both sides -------------------------------------------------------------------------- */

void client_say(int fd);
bool client_hear(int fd); /* false when the other side is gone, or after 20 s */

/* ---- in the test ---------------------------------------------------------------------------- */

pid_t client_start(void (*main)(int in, int out), int *ret_in, int *ret_out);
void client_assert_ok(pid_t pid); /* within 60 s, status 0 */
bool client_no_engine(void *arg); /* for wait_until(): npu-sim runs no engine */

/* What npud and npu-sim hold: remembered, and for wait_until() whether it is the same again. */
void client_level_remember(void);
bool client_level_is_back(void *arg);
void client_level_print(FILE *out);

#endif
