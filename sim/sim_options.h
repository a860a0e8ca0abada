/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NPU_SIM_OPTIONS_H
#define NPU_SIM_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "sim/sim_log.h"

/* sim_options - npu-sim's command line. Strings point into argv. */

struct sim_options {
	const char *socket;
	bool card;            /* serve QEMU there, as a PCI card, not npud */
	const char *ram;      /* of the card's machine */
	uint64_t ram_below_4g; /* bytes, 0: as QEMU's q35 has it */
	uint64_t bar;         /* bytes of the card's BAR2, a power of two */
	const char *pid_file; /* NULL: none */
	unsigned int device;
	uint64_t memory;      /* bytes, whole large pages */
	unsigned int cores;
	uid_t owner;
	bool host_visible;
	uint64_t kernel_timeout_us;
	uint64_t orphan_grace_ms;
	bool detach;
	enum sim_log_level log_level;
};

/*
 * 0: run. 1: --help or --version was printed. -EINVAL: a wrong option, and a line on stderr that
 * says which and why.
 */
int sim_options_parse(int argc, char **argv, struct sim_options *ret_options);

#endif
