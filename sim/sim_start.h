/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NPU_SIM_START_H
#define NPU_SIM_START_H

#include "sim/sim_options.h"

/*
 * sim_start - from options to a running board: locks, background, nursery, socket, loop, and back.
 *
 * Returns the exit status of npu-sim. With --detach the caller is the parent, and gets 0 only once
 * the child listens; what goes wrong before that is said on stderr by the child.
 */
int sim_start(const struct sim_options *options);

#endif
