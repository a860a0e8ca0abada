/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The progress bar. It is drawn again only when it would look different, so a step costs nothing
 * next to the work it counts.
 */
#include "examples/common/example.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#define BAR_CELLS 40u
#define PLAIN_LINES 4u

static uint32_t progress_cells(const struct progress *progress, uint32_t done)
{
	uint32_t cells = progress->terminal ? BAR_CELLS : PLAIN_LINES;

	return (uint32_t)((uint64_t)done * cells / progress->total);
}

void progress_init(struct progress *progress, const char *what, uint32_t total, bool quiet)
{
	*progress = (struct progress){
		.what = what,
		.total = total ? total : 1,
		.terminal = isatty(STDERR_FILENO),
		.quiet = quiet,
	};
	if (progress->terminal)
		progress_step(progress, 0);
}

void progress_step(struct progress *progress, uint32_t done)
{
	uint32_t cells = progress_cells(progress, done), i;

	if (progress->quiet || (done && cells == progress->shown))
		return;
	progress->shown = cells;
	if (!progress->terminal) {
		fprintf(stderr, "%s: %u of %u %s\n", program_invocation_short_name, done,
			progress->total, progress->what);
		return;
	}
	fprintf(stderr, "\r%s [", program_invocation_short_name);
	for (i = 0; i < BAR_CELLS; i++)
		fputc(i < cells ? '#' : '.', stderr);
	fprintf(stderr, "] %u/%u %s", done, progress->total, progress->what);
	fflush(stderr);
}

/* The bar's line is closed; a line that follows starts at the left. */
void progress_fini(struct progress *progress)
{
	if (progress->terminal && !progress->quiet)
		fputc('\n', stderr);
}
