/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NPUCTL_COMMAND_H
#define NPUCTL_COMMAND_H

#include <stdio.h>

#include "client/drv/admin.h"

struct json_object;

/* What a query gave; the member is the command's own. */
union result {
	struct npu_admin_status status;
	struct npu_admin_ps ps;
	struct npu_admin_memory memory;
	struct npu_admin_version version;
};

/*
 * A command is a row: it asks npud, then the result is printed one way or the other. npuctl.c does
 * everything else for all of them: options, connection, time limit, messages, exit codes.
 */
struct command {
	const char *name;
	const char *help;    /* one line */
	const char *details; /* what the output means, for npuctl NAME --help */

	/* 0 or a negative errno as in client/drv/admin.h; a result is cleared by `clear`. */
	int (*query)(struct npu_admin *admin, union result *ret_result);
	void (*clear)(union result *result);
	/* 0 or -ENOMEM; what `out` does not take, ferror() tells */
	int (*print)(const union result *result, FILE *out);
	/* Fills an empty object; failures are kept by out_json. */
	void (*json)(const union result *result, struct json_object *object);
};

extern const struct command command_status;
extern const struct command command_ps;
extern const struct command command_mem;
extern const struct command command_version;

/* Says how many clients of other users a table leaves out, if any. */
void note_hidden(uint64_t hidden, FILE *out);

#endif
