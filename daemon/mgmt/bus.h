/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NPU_MGMT_BUS_H
#define NPU_MGMT_BUS_H

#include <systemd/sd-bus.h>

#include "daemon/loop/loop.h"

/*
 * One connection to a message bus in the loop, which is made anew when it is lost. All of it is
 * asynchronous: nothing here or in the handlers waits for the bus. While there is no bus its socket
 * is watched for, which costs nothing. The loop's thread.
 */

struct bus;

struct bus_fns {
	/* For each new connection, before it is up: adds objects, queues first messages. */
	int (*start)(sd_bus *sd, void *arg);
	/* It ends: references to it and its messages must go. */
	void (*lost)(void *arg);
};

/*
 * where: "system", "session" or an address. 0 also when there is no such bus now; a negative errno
 * only without memory.
 */
int bus_new(struct loop *loop, const char *where, const struct bus_fns *fns, void *arg,
	    struct bus **ret_bus);
/* Calls lost() when there is a connection. */
void bus_free(struct bus *bus);

/*
 * The connection when it is up, else NULL: messages may be sent. Also NULL while the bus does not
 * take what has been sent; what is left out then is lost.
 */
sd_bus *bus_up(const struct bus *bus);
/* After messages were sent from outside of the bus's own handlers. */
void bus_kick(struct bus *bus);

#endif
