/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NPU_MGMT_H
#define NPU_MGMT_H

#include "daemon/conf/conf.h"
#include "daemon/core/core.h"
#include "daemon/loop/loop.h"

/*
 * npud on the message bus: org.npud.Manager1 at /org/npud and org.npud.Device1 at
 * /org/npud/device/N; npud-dbus(7) says what they offer. It is the core's watcher. Everybody may
 * look; Reset and Drain are for administrators. The loop's thread.
 *
 * It asks devices for nothing while nothing happens: figures are fetched anew after the core has
 * told of a change, when somebody reads old ones, and, ever more rarely, after a device was seen at
 * work.
 */

struct mgmt;

/*
 * *ret_mgmt is NULL when the configuration wants no bus. An error is logged. Strings and conf must
 * outlive it.
 */
int mgmt_new(struct loop *loop, struct core *core, const struct conf *conf, const char *version,
	     struct mgmt **ret_mgmt);
/* Leaves the bus. Its operations end with the core. */
void mgmt_stop(struct mgmt *mgmt);
/* After mgmt_stop(), when the core has no operation left. */
void mgmt_free(struct mgmt *mgmt);

#endif
