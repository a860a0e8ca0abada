/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call goes through: credentials of the caller (asked of the bus, which alone knows), perhaps
 * polkit, the core's operation, the answer. Each is asynchronous; a call waits in mgmt->calls from
 * the first to the last.
 */
#include "daemon/mgmt/mgmt_int.h"
#include "daemon/util/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define POLKIT_WAIT_US (120 * 1000000ull) /* somebody may have to type a password */

struct admin_action {
	const char *name, *id; /* id: polkit's name of it */
	int (*run)(struct admin_call *call);
};

struct admin_call {
	struct mgmt *mgmt;
	const struct admin_action *action;
	uint32_t device;
	int on;
	sd_bus_message *msg; /* NULL: nobody waits for an answer */
	sd_bus_slot *slot;   /* what it waits for, unless that is op */
	uid_t uid;	     /* of the caller, when the bus has told */
	bool known, in_group, running;
	struct op op;
	TAILQ_ENTRY(admin_call) entry;
};

static void call_free(struct admin_call *call)
{
	TAILQ_REMOVE(&call->mgmt->calls, call, entry);
	sd_bus_slot_unref(call->slot);
	sd_bus_message_unref(call->msg);
	op_release(&call->op);
	free(call);
}

static void call_end(struct admin_call *call, int error, const char *text)
{
	struct mgmt *mgmt = call->mgmt;
	const char *name;

	switch (error) {
	case 0:
		name = NULL;
		break;
	case -EACCES:
		name = SD_BUS_ERROR_ACCESS_DENIED;
		break;
	case -ENOKEY:
		name = SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED;
		break;
	case -EUSERS:
		name = SD_BUS_ERROR_LIMITS_EXCEEDED;
		break;
	case -ENXIO:
		name = "org.npud.Error.NoDevice";
		break;
	case -ENODEV:
		name = "org.npud.Error.DeviceLost";
		break;
	case -EBUSY:
		name = "org.npud.Error.Busy";
		break;
	case -ETIMEDOUT:
		name = "org.npud.Error.Timeout";
		break;
	default:
		name = SD_BUS_ERROR_FAILED;
		break;
	}
	if (call->msg && name)
		sd_bus_reply_method_errorf(call->msg, name, "%s", text);
	else if (call->msg)
		sd_bus_reply_method_return(call->msg, "");
	call_free(call);
	if (mgmt->bus)
		bus_kick(mgmt->bus);
}

static void call_refuse(struct admin_call *call, int error, const char *why)
{
	static struct log_limit limit;

	if (log_limit_ok(&limit, "mgmt"))
		log_warning("mgmt", "device %u: %s refused to user %u: %s", call->device,
			    call->action->name, (unsigned int)call->uid, why);
	call_end(call, error, why);
}

static void call_done(struct op *op)
{
	struct admin_call *call =
		(struct admin_call *)((char *)op - offsetof(struct admin_call, op));

	call_end(call, op->error, op->text);
}

static int run_reset(struct admin_call *call)
{
	return core_reset(call->mgmt->core, call->device, &call->op);
}

static int run_drain(struct admin_call *call)
{
	int r = core_drain(call->mgmt->core, call->device, call->on);

	return r < 0 ? op_error(&call->op, r, "device %u: there is none", call->device) : 1;
}

static const struct admin_action reset_action = { "Reset", "org.npud.reset", run_reset };
static const struct admin_action drain_action = { "Drain", "org.npud.drain", run_drain };

/* The caller may. */
static void call_run(struct admin_call *call)
{
	int r;

	log_notice("mgmt", "device %u: %s%s asked for by user %u", call->device, call->action->name,
		   call->action != &drain_action ? "" :
		   call->on			 ? " on" :
						   " off",
		   (unsigned int)call->uid);
	call->running = true;
	r = call->action->run(call); /* 0: call_done() follows */
	if (r != 0)
		call_end(call, r < 0 ? r : 0, call->op.text);
}

/* Errors of a bus that has no polkit, and no service that would start it. */
static bool no_polkit(const sd_bus_error *error)
{
	return sd_bus_error_has_name(error, SD_BUS_ERROR_SERVICE_UNKNOWN) ||
	       sd_bus_error_has_name(error, SD_BUS_ERROR_NAME_HAS_NO_OWNER) ||
	       sd_bus_error_has_name(error, "org.freedesktop.systemd1.NoSuchUnit") ||
	       sd_bus_error_has_name(error, "org.freedesktop.systemd1.UnitMasked");
}

static int on_polkit(sd_bus_message *reply, void *userdata, sd_bus_error *ret_error)
{
	struct admin_call *call = userdata;
	const sd_bus_error *error = sd_bus_message_get_error(reply);
	int allowed = 0, challenge = 0;

	(void)ret_error;
	call->slot = sd_bus_slot_unref(call->slot);
	if (error && no_polkit(error)) {
		if (call->in_group)
			call_run(call);
		else
			call_refuse(call, -EACCES,
				    "only root and members of the admin group may do this; see "
				    "[daemon] admin_group");
	} else if (error) {
		call_refuse(call, -EACCES,
			    sd_bus_error_has_name(error, SD_BUS_ERROR_NO_REPLY) ?
				    "polkit has not answered in time" :
				    "polkit could not decide on it");
	} else if (sd_bus_message_enter_container(reply, 'r', "bba{ss}") < 0 ||
		   sd_bus_message_read(reply, "bb", &allowed, &challenge) < 0) {
		call_refuse(call, -EACCES, "polkit's answer is malformed");
	} else if (allowed) {
		call_run(call);
	} else {
		call_refuse(call, challenge ? -ENOKEY : -EACCES,
			    challenge ? "polkit wants the caller to authenticate" :
					"polkit does not allow it");
	}
	return 0;
}

static int ask_polkit(struct admin_call *call, sd_bus *sd)
{
	uint32_t flags = sd_bus_message_get_allow_interactive_authorization(call->msg) > 0;
	sd_bus_message *msg = NULL;
	int r;

	r = sd_bus_message_new_method_call(
		sd, &msg, "org.freedesktop.PolicyKit1", "/org/freedesktop/PolicyKit1/Authority",
		"org.freedesktop.PolicyKit1.Authority", "CheckAuthorization");
	if (r >= 0)
		r = sd_bus_message_append(msg, "(sa{sv})sa{ss}us", "system-bus-name", 1, "name",
					  "s", sd_bus_message_get_sender(call->msg),
					  call->action->id, 0, flags, "");
	if (r >= 0)
		r = sd_bus_call_async(sd, &call->slot, msg, on_polkit, call, POLKIT_WAIT_US);
	sd_bus_message_unref(msg);
	return r;
}

/* The bus's a{sv} about the caller: what of it matters here. 0 when it names the user. */
static int read_credentials(struct admin_call *call, sd_bus_message *reply)
{
	const uint32_t *groups;
	const char *key;
	size_t bytes;
	uint32_t uid;
	int r;

	r = sd_bus_message_enter_container(reply, 'a', "{sv}");
	while (r >= 0 && (r = sd_bus_message_enter_container(reply, 'e', "sv")) > 0) {
		r = sd_bus_message_read(reply, "s", &key);
		if (r < 0)
			break;
		if (strcmp(key, "UnixUserID") == 0) {
			r = sd_bus_message_read(reply, "v", "u", &uid);
			call->known = r >= 0;
			call->uid = r >= 0 ? uid : (uid_t)-1;
		} else if (strcmp(key, "UnixGroupIDs") == 0) {
			r = sd_bus_message_enter_container(reply, 'v', "au");
			if (r >= 0)
				r = sd_bus_message_read_array(reply, 'u', (const void **)&groups,
							      &bytes);
			for (size_t i = 0; r >= 0 && i < bytes / sizeof(*groups); i++) {
				if (groups[i] == call->mgmt->admin_gid &&
				    call->mgmt->admin_gid != (gid_t)-1)
					call->in_group = true;
			}
			if (r >= 0)
				r = sd_bus_message_exit_container(reply);
		} else {
			r = sd_bus_message_skip(reply, "v");
		}
		if (r >= 0)
			r = sd_bus_message_exit_container(reply);
	}
	return r < 0 ? r : call->known ? 0 : -ENODATA;
}

static unsigned int calls_of(const struct mgmt *mgmt, uid_t uid)
{
	const struct admin_call *call;
	unsigned int count = 0;

	TAILQ_FOREACH(call, &mgmt->calls, entry)
		count += call->known && call->uid == uid;
	return count;
}

static int on_credentials(sd_bus_message *reply, void *userdata, sd_bus_error *ret_error)
{
	struct admin_call *call = userdata;

	(void)ret_error;
	call->slot = sd_bus_slot_unref(call->slot);
	if (sd_bus_message_get_error(reply) || read_credentials(call, reply) < 0)
		call_refuse(call, -EACCES, "the bus does not say who asks");
	else if (calls_of(call->mgmt, call->uid) > ADMIN_CALLS_PER_USER)
		call_end(call, -EUSERS, "too many calls of this user are waiting");
	else if (call->uid == 0 || call->uid == geteuid())
		call_run(call);
	else if (ask_polkit(call, sd_bus_message_get_bus(reply)) < 0)
		call_refuse(call, -EACCES, "polkit cannot be asked");
	return 0;
}

/* A new call; its arguments have been read. */
static int call_start(struct mgmt *mgmt, sd_bus_message *msg, const struct admin_action *action,
		      uint32_t device, int on, sd_bus_error *error)
{
	const char *sender = sd_bus_message_get_sender(msg);
	struct admin_call *call, *other;
	unsigned int count = 0;
	int r;

	if (device >= mgmt->device_count)
		return sd_bus_error_setf(error, "org.npud.Error.NoDevice",
					 "device %u: there is none, devices are 0 to %d", device,
					 (int)mgmt->device_count - 1);
	TAILQ_FOREACH(other, &mgmt->calls, entry)
		count++;
	if (count >= ADMIN_CALLS)
		return sd_bus_error_set(error, SD_BUS_ERROR_LIMITS_EXCEEDED,
					"too many calls are waiting");
	call = sender ? calloc(1, sizeof(*call)) : NULL;
	if (!call)
		return sender ? -ENOMEM : -EINVAL;
	op_init(&call->op, call_done);
	call->mgmt = mgmt;
	call->action = action;
	call->device = device;
	call->on = on;
	call->uid = (uid_t)-1;
	call->msg = sd_bus_message_ref(msg);
	TAILQ_INSERT_TAIL(&mgmt->calls, call, entry);
	r = sd_bus_call_method_async(sd_bus_message_get_bus(msg), &call->slot,
				     "org.freedesktop.DBus", "/org/freedesktop/DBus",
				     "org.freedesktop.DBus", "GetConnectionCredentials",
				     on_credentials, call, "s", sender);
	if (r < 0) {
		call_free(call);
		return r;
	}
	return 1;
}

int admin_reset(sd_bus_message *msg, void *userdata, sd_bus_error *error)
{
	uint32_t device;
	int r = sd_bus_message_read(msg, "u", &device);

	return r < 0 ? r : call_start(userdata, msg, &reset_action, device, 0, error);
}

int admin_drain(sd_bus_message *msg, void *userdata, sd_bus_error *error)
{
	uint32_t device;
	int on, r = sd_bus_message_read(msg, "ub", &device, &on);

	return r < 0 ? r : call_start(userdata, msg, &drain_action, device, on, error);
}

void admin_lose(struct mgmt *mgmt)
{
	struct admin_call *call = TAILQ_FIRST(&mgmt->calls), *next;

	for (; call; call = next) {
		next = TAILQ_NEXT(call, entry);
		if (!call->running) {
			call_free(call);
			continue;
		}
		call->slot = sd_bus_slot_unref(call->slot);
		call->msg = sd_bus_message_unref(call->msg);
	}
}
