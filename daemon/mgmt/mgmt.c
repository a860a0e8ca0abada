/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between the core and the bus: what the core tells becomes signals, at once or, for figures, after
 * the devices have been asked, at most once a second.
 */
#include "daemon/core/session.h"
#include "daemon/mgmt/mgmt_int.h"
#include "daemon/util/log.h"

#include <errno.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>

#define GATHER_MS     50   /* changes that come together are shown together */
#define FRESH_MS      1000 /* figures are not older when they are read */
#define FOLLOW_MS     2000
#define FOLLOW_MAX_MS 64000

static void arm(struct mgmt *mgmt, uint64_t when_ms)
{
	uint64_t now = loop_now_ms();

	if (mgmt->due_ms && mgmt->due_ms <= when_ms)
		return;
	if (loop_timer_set(mgmt->timer, when_ms > now ? when_ms - now : 0) == 0)
		mgmt->due_ms = when_ms;
}

void mgmt_touch(struct mgmt *mgmt)
{
	if (bus_up(mgmt->bus))
		arm(mgmt, loop_now_ms() + GATHER_MS);
}

void mgmt_read(struct mgmt *mgmt)
{
	if (loop_now_ms() >= mgmt->refreshed_ms + FRESH_MS)
		mgmt_touch(mgmt);
}

/* Nothing tells when a device begins to work or rests: one that was seen at work is looked at. */
static void follow(struct mgmt *mgmt)
{
	bool works = false, rose = false;

	for (unsigned int i = 0; i < mgmt->device_count; i++) {
		struct core_device_info info;

		core_device_info(mgmt->core, i, &info);
		works = works || info.util_permille;
		rose = rose || info.util_permille > mgmt->devices[i].shown.util_permille;
	}
	if (!works)
		mgmt->follow_ms = 0;
	else if (rose || !mgmt->follow_ms)
		mgmt->follow_ms = FOLLOW_MS;
	else if (mgmt->follow_ms < FOLLOW_MAX_MS)
		mgmt->follow_ms *= 2;
	if (works)
		arm(mgmt, loop_now_ms() + mgmt->follow_ms);
}

static void on_refreshed(struct op *op)
{
	struct mgmt *mgmt = (struct mgmt *)((char *)op - offsetof(struct mgmt, refresh));

	mgmt->refreshing = false;
	mgmt->refreshed_ms = loop_now_ms();
	if (!bus_up(mgmt->bus))
		return;
	follow(mgmt);
	objects_show(mgmt);
}

static void on_timer(void *arg)
{
	struct mgmt *mgmt = arg;
	uint64_t now = loop_now_ms();

	mgmt->due_ms = 0;
	if (!bus_up(mgmt->bus))
		return;
	/* what the core knows by itself does not wait for devices */
	objects_show(mgmt);
	if (mgmt->refreshing || now < mgmt->refreshed_ms + FRESH_MS) {
		arm(mgmt, now + FRESH_MS);
		return;
	}
	op_init(&mgmt->refresh, on_refreshed);
	mgmt->refreshing = core_refresh(mgmt->core, true, NULL, 0, 0, &mgmt->refresh) == 0;
}

static void on_changed(unsigned int device, void *arg)
{
	(void)device;
	mgmt_touch(arg);
}

static void on_fault(const struct core_fault_report *report, void *arg)
{
	objects_fault(arg, report);
}

static void on_reset(unsigned int device, void *arg)
{
	objects_reset(arg, device);
}

static const struct core_watch watch = {
	.changed = on_changed,
	.fault = on_fault,
	.reset = on_reset,
};

static int on_name(sd_bus_message *reply, void *userdata, sd_bus_error *ret_error)
{
	struct mgmt *mgmt = userdata;
	const sd_bus_error *error = sd_bus_message_get_error(reply);
	uint32_t result = 0;

	(void)ret_error;
	objects_settle(mgmt);
	if (error) {
		log_warning("mgmt", "the bus does not give npud the name %s: %s", MGMT_NAME,
			    error->message ? error->message : error->name);
		return 0;
	}
	sd_bus_message_read(reply, "u", &result);
	if (result == 1)
		log_info("mgmt", "npud is on the bus as %s", MGMT_NAME);
	else
		log_warning("mgmt", "another has the name %s on the bus; npud waits for it",
			    MGMT_NAME);
	return 0;
}

static int on_start(sd_bus *sd, void *arg)
{
	struct mgmt *mgmt = arg;
	int r = objects_add(mgmt, sd);

	return r < 0 ? r : sd_bus_request_name_async(sd, NULL, MGMT_NAME, 0, on_name, mgmt);
}

static void on_lost(void *arg)
{
	admin_lose(arg);
}

static const struct bus_fns bus_fns = {
	.start = on_start,
	.lost = on_lost,
};

int mgmt_new(struct loop *loop, struct core *core, const struct conf *conf, const char *version,
	     struct mgmt **ret_mgmt)
{
	struct group *group;
	struct mgmt *mgmt;
	int r;

	*ret_mgmt = NULL;
	if (strcmp(conf->bus, "off") == 0)
		return 0;
	mgmt = calloc(1, sizeof(*mgmt));
	if (!mgmt)
		return -ENOMEM;
	group = getgrnam(conf->admin_group);
	TAILQ_INIT(&mgmt->calls);
	mgmt->loop = loop;
	mgmt->core = core;
	mgmt->conf = conf;
	mgmt->version = version;
	mgmt->admin_gid = group ? group->gr_gid : (gid_t)-1;
	mgmt->device_count = core_device_count(core);
	for (unsigned int i = 0; i < mgmt->device_count; i++)
		mgmt->devices[i] = (struct mgmt_device){ .mgmt = mgmt, .id = i };
	r = loop_timer_new(loop, on_timer, mgmt, &mgmt->timer);
	if (r == 0)
		r = bus_new(loop, conf->bus, &bus_fns, mgmt, &mgmt->bus);
	if (r < 0) {
		log_error("mgmt", "cannot go to the bus: %s", strerror(-r));
		mgmt_free(mgmt);
		return r;
	}
	core_set_watch(core, &watch, mgmt);
	*ret_mgmt = mgmt;
	return 0;
}

void mgmt_stop(struct mgmt *mgmt)
{
	if (!mgmt || !mgmt->bus)
		return;
	core_set_watch(mgmt->core, NULL, NULL);
	bus_free(mgmt->bus);
	mgmt->bus = NULL;
	loop_timer_stop(mgmt->timer);
}

void mgmt_free(struct mgmt *mgmt)
{
	if (!mgmt)
		return;
	loop_timer_free(mgmt->timer);
	free(mgmt);
}
