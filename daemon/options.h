/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NPUD_OPTIONS_H
#define NPUD_OPTIONS_H

#include <stdbool.h>

#include "daemon/conf/conf.h"

/* The command line, and the configuration with what the command line changes in it. */

#define NPUD_RUNTIME_DIR "/run/npud"

struct options {
	const char *config; /* NULL: the default file, which may be missing */
	const char *runtime_dir;
	const char *device;
	const char *log_level;
	bool foreground;
	bool print_config;
};

/* -1: run; else the exit status. Strings point into argv. */
int options_parse(int argc, char **argv, struct options *ret_options);
/* Fills conf: 0, or the exit status after a line on stderr. */
int options_load(const struct options *options, struct conf *ret_conf);

#endif
