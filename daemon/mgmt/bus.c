/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sd-bus tells which fd, which events and which time it waits for, and all three may be others
 * after each step of it; so the loop's source is made anew around every step.
 */
#include "daemon/mgmt/bus.h"
#include "daemon/util/log.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SYSTEM_BUS   "unix:path=/run/dbus/system_bus_socket"
#define STEPS_MAX    32	 /* then the rest of npud has its turn */
#define QUEUED_MAX   512 /* messages */
#define RETRY_MS     1000
#define RETRY_MAX_MS 60000

struct bus {
	struct loop *loop;
	char *address;
	const struct bus_fns *fns;
	void *arg;
	sd_bus *sd;
	struct loop_fd *source;
	struct loop_timer *timer; /* of sd; without it: of the next attempt */
	uint64_t retry_ms;
	bool was_up;
	bool stepping;
};

static void bus_arm(struct bus *bus);
static void bus_end(struct bus *bus, int error);

static void bus_step(struct bus *bus)
{
	int r = 1;

	loop_fd_free(bus->source);
	bus->source = NULL;
	bus->stepping = true;
	for (unsigned int i = 0; i < STEPS_MAX && r > 0; i++)
		r = sd_bus_process(bus->sd, NULL);
	bus->stepping = false;
	if (sd_bus_is_ready(bus->sd) > 0) {
		bus->was_up = true;
		bus->retry_ms = RETRY_MS;
	}
	if (r < 0)
		bus_end(bus, r);
	else
		bus_arm(bus);
}

static void on_fd(int fd, unsigned int events, void *arg)
{
	(void)fd;
	(void)events;
	bus_step(arg);
}

static void bus_arm(struct bus *bus)
{
	int fd = sd_bus_get_fd(bus->sd), events = sd_bus_get_events(bus->sd), r;
	uint64_t until, now = loop_now_ms();

	if (fd < 0 || events < 0) {
		bus_end(bus, fd < 0 ? fd : events);
		return;
	}
	loop_fd_free(bus->source);
	bus->source = NULL;
	r = loop_fd_new(bus->loop, fd,
			(events & POLLIN ? LOOP_READ : 0u) | (events & POLLOUT ? LOOP_WRITE : 0u),
			on_fd, bus, &bus->source);
	if (r == 0)
		r = sd_bus_get_timeout(bus->sd, &until);
	if (r < 0) {
		bus_end(bus, r);
		return;
	}
	if (until == UINT64_MAX)
		loop_timer_stop(bus->timer);
	else
		loop_timer_set(bus->timer, until / 1000 < now ? 0 : (until + 999) / 1000 - now);
}

static void bus_drop(struct bus *bus)
{
	if (!bus->sd)
		return;
	bus->fns->lost(bus->arg);
	loop_fd_free(bus->source);
	bus->source = NULL;
	loop_timer_stop(bus->timer);
	bus->sd = sd_bus_close_unref(bus->sd);
}

static void bus_end(struct bus *bus, int error)
{
	bus_drop(bus);
	if (bus->was_up)
		log_notice("mgmt", "%s: the bus went away (%s); npud goes on without it",
			   bus->address, strerror(-error));
	bus->was_up = false;
	loop_timer_set(bus->timer, bus->retry_ms);
	bus->retry_ms = bus->retry_ms * 2 < RETRY_MAX_MS ? bus->retry_ms * 2 : RETRY_MAX_MS;
}

/* watch: waits for the socket when it is not there. */
static int bus_start(struct bus *bus, bool watch)
{
	int r = sd_bus_new(&bus->sd);

	if (r < 0)
		return r;
	r = sd_bus_set_address(bus->sd, bus->address);
	if (r >= 0)
		r = sd_bus_set_bus_client(bus->sd, true);
	if (r >= 0)
		r = sd_bus_set_watch_bind(bus->sd, watch);
	if (r >= 0)
		r = sd_bus_start(bus->sd);
	if (r >= 0)
		r = bus->fns->start(bus->sd, bus->arg);
	if (r < 0) {
		bus_drop(bus);
		return r;
	}
	bus_arm(bus);
	return 0;
}

static void on_timer(void *arg)
{
	struct bus *bus = arg;
	int r;

	if (bus->sd) {
		bus_step(bus);
		return;
	}
	r = bus_start(bus, true);
	if (r < 0)
		bus_end(bus, r);
}

/* The address that a word stands for; NULL without memory. */
static char *bus_address(const char *where)
{
	const char *address = where, *dir = getenv("XDG_RUNTIME_DIR");
	char *made;

	if (strcmp(where, "system") == 0) {
		address = getenv("DBUS_SYSTEM_BUS_ADDRESS");
		if (!address)
			address = SYSTEM_BUS;
	} else if (strcmp(where, "session") == 0) {
		address = getenv("DBUS_SESSION_BUS_ADDRESS");
		if (!address)
			return asprintf(&made, "unix:path=%s/bus", dir ? dir : "") < 0 ? NULL :
											 made;
	}
	return strdup(address);
}

int bus_new(struct loop *loop, const char *where, const struct bus_fns *fns, void *arg,
	    struct bus **ret_bus)
{
	struct bus *bus = calloc(1, sizeof(*bus));
	int r;

	if (!bus)
		return -ENOMEM;
	bus->loop = loop;
	bus->fns = fns;
	bus->arg = arg;
	bus->retry_ms = RETRY_MS;
	bus->address = bus_address(where);
	r = bus->address ? loop_timer_new(loop, on_timer, bus, &bus->timer) : -ENOMEM;
	if (r < 0) {
		bus_free(bus);
		return r;
	}
	r = bus_start(bus, false);
	if (r < 0) {
		log_info("mgmt", "%s: no message bus (%s): npud runs without; see [management] bus",
			 bus->address, strerror(-r));
		/* an address that can't be watched for stays without */
		bus_start(bus, true);
	}
	*ret_bus = bus;
	return 0;
}

void bus_free(struct bus *bus)
{
	if (!bus)
		return;
	bus_drop(bus);
	loop_timer_free(bus->timer);
	free(bus->address);
	free(bus);
}

sd_bus *bus_up(const struct bus *bus)
{
	uint64_t queued;

	if (!bus || !bus->sd || sd_bus_is_ready(bus->sd) <= 0 ||
	    sd_bus_get_n_queued_write(bus->sd, &queued) < 0 || queued > QUEUED_MAX)
		return NULL;
	return bus->sd;
}

void bus_kick(struct bus *bus)
{
	/* what a step leaves is armed for at its end */
	if (bus->sd && !bus->stepping)
		bus_arm(bus);
}
