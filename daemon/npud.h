/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NPUD_H
#define NPUD_H

/*
 * The daemon as a whole: reads options and configuration, takes the runtime directory, runs till a
 * signal ends it. Returns the exit status: 0 after a clean stop (or --help, --version,
 * --print-config), 1 when it could not run, 2 for wrong options. What is wrong is on stderr, one
 * line.
 */
int npud_run(int argc, char **argv);

#endif
