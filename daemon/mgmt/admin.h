/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NPU_MGMT_ADMIN_H
#define NPU_MGMT_ADMIN_H

#include <systemd/sd-bus.h>

/*
 * Methods for administrators. The bus says who the caller is; root and npud's own user may, others
 * when polkit says so, or where polkit is not installed, the members of the admin group. At most
 * ADMIN_CALLS_PER_USER calls of a user wait for that.
 */

#define ADMIN_CALLS	     256
#define ADMIN_CALLS_PER_USER 8

struct mgmt;
struct admin_call;

/* Method handlers of org.npud.Manager1; userdata is the mgmt. */
int admin_reset(sd_bus_message *msg, void *userdata, sd_bus_error *error);
int admin_drain(sd_bus_message *msg, void *userdata, sd_bus_error *error);

/* The connection ends: nobody waits for an answer any more. What the core does already goes on. */
void admin_lose(struct mgmt *mgmt);

#endif
