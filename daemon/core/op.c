/* SPDX-License-Identifier: Apache-2.0 */
/* Nothing but the bookkeeping of results. */
#include "daemon/core/op.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void op_init(struct op *op, void (*done)(struct op *op))
{
	memset(op, 0, sizeof(*op));
	op->done = done;
}

void op_release(struct op *op)
{
	for (unsigned int i = 0; i < op->nfds; i++) {
		if (op->fds[i] >= 0)
			close(op->fds[i]);
	}
	op->nfds = 0;
}

static void set_error(struct op *op, int error, const char *format, va_list args)
{
	op->error = error;
	vsnprintf(op->text, sizeof(op->text), format, args);
}

int op_error(struct op *op, int error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	set_error(op, error, format, args);
	va_end(args);
	return error;
}

void op_finish(struct op *op)
{
	if (op)
		op->done(op);
}

void op_fail(struct op *op, int error, const char *format, ...)
{
	va_list args;

	if (!op)
		return;
	va_start(args, format);
	set_error(op, error, format, args);
	va_end(args);
	op->done(op);
}
