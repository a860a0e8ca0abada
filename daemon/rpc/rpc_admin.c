/* SPDX-License-Identifier: Apache-2.0 */
/* What is asked about the daemon and its clients; others' clients only by administrators. */
#include "daemon/rpc/request.h"
#include "daemon/rpc/server_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PS_PAGE	       100  /* sessions a reply */
#define MEMORY_CLIENTS 400u /* a reply; the rest is counted as hidden */
#define NO_DEVICE      0xffffffffu

static void status_finish(struct request *request)
{
	const struct client *client = request->client;
	const struct server *server = client->server;
	Npu__StatusReply reply = NPU__STATUS_REPLY__INIT;

	reply.daemon = (char *)server->version;
	reply.pid = getpid();
	reply.uptime_ms = loop_now_ms() - server->started_ms;
	reply.clients = session_count(server->core);
	reply.devices = fill_devices(client, &reply.n_devices);
	reply.runtime_dir = (char *)server->runtime_dir;
	reply.faults = core_faults(server->core);
	request_reply(request, &reply.base);
	free(reply.devices);
}

void rpc_status(struct request *request, const Npu__Empty *msg)
{
	struct op *op = request_op(request, status_finish);

	(void)msg;
	request_started(request, core_refresh(request->client->server->core, true, NULL, 0, 0, op));
}

struct ps_row {
	Npu__Client msg;
	char comm[16];
};

static void ps_fill(struct ps_row *row, const struct session *session,
		    const struct session_usage *usage)
{
	const struct session_peer *peer = session_peer(session);
	Npu__Client *msg = &row->msg;

	npu__client__init(msg);
	memcpy(row->comm, peer->comm, sizeof(row->comm));
	msg->session = session_id(session);
	msg->pid = peer->pid;
	msg->uid = peer->uid;
	msg->comm = row->comm;
	msg->connected_ms = session_age_ms(session);
	msg->device = NO_DEVICE;
	if (!usage)
		return;
	msg->device = usage->device;
	msg->memory = usage->memory;
	msg->memory_peak = usage->memory_peak;
	msg->host_memory = usage->host_memory;
	msg->contexts = usage->contexts;
	msg->queues = usage->queues;
	msg->modules = usage->modules;
	msg->tasks_queued = usage->tasks_queued;
	msg->tasks_done = usage->tasks_done;
	msg->core_ns = usage->core_ns;
	msg->faults = usage->faults;
	msg->engine_pid = usage->engine_pid;
}

static void ps_finish(struct request *request)
{
	const struct client *client = request->client;
	struct core *core = client->server->core;
	size_t max = PS_PAGE + core_device_count(core), count = 0;
	struct ps_row *rows = calloc(max, sizeof(*rows));
	Npu__Client **list = calloc(max, sizeof(*list));
	Npu__PsReply reply = NPU__PS_REPLY__INIT;
	struct session *session = NULL;
	uint64_t after = request->cursor;

	if (!rows || !list) {
		request_fail(request, NPU_STATUS_HOST_MEMORY, "npud has no memory left");
		goto out;
	}
	for (session = session_next(core, after); session;
	     session = session_next(core, session_id(session))) {
		struct session_usage usage;
		unsigned int device = 0;
		bool any = false;

		if (!session_visible(session, &client->peer)) {
			reply.hidden++;
			continue;
		}
		/* a page ends before the session that might not fit */
		if (count + core_device_count(core) > max) {
			reply.cursor = after;
			break;
		}
		for (; session_usage(session, &device, &usage); device++, any = true)
			ps_fill(&rows[count++], session, &usage);
		if (!any)
			ps_fill(&rows[count++], session, NULL);
		after = session_id(session);
	}
	for (size_t i = 0; i < count; i++)
		list[i] = &rows[i].msg;
	reply.n_clients = count;
	reply.clients = list;
	request_reply(request, &reply.base);
out:
	free(rows);
	free(list);
}

void rpc_ps(struct request *request, const Npu__Ps *msg)
{
	struct client *client = request->client;
	struct op *op = request_op(request, ps_finish);

	request->cursor = msg->cursor;
	request_started(request, core_refresh(client->server->core, false, &client->peer,
					      msg->cursor, PS_PAGE, op));
}

struct memory_row {
	Npu__MemoryUse msg;
	char comm[16];
};

/* The clients of one device into rows from *count on; list points to them. */
static void memory_fill(const struct client *client, Npu__DeviceMemory *msg, unsigned int device,
			struct memory_row *rows, Npu__MemoryUse **list, size_t *count)
{
	struct core *core = client->server->core;
	struct session *session;

	msg->clients = &list[*count];
	for (session = session_next(core, 0); session;
	     session = session_next(core, session_id(session))) {
		const struct session_peer *peer = session_peer(session);
		struct session_usage usage;
		unsigned int found = device;
		struct memory_row *row;

		if (!session_usage(session, &found, &usage) || found != device)
			continue;
		if (!session_visible(session, &client->peer) || *count == MEMORY_CLIENTS) {
			msg->hidden++;
			continue;
		}
		row = &rows[*count];
		npu__memory_use__init(&row->msg);
		memcpy(row->comm, peer->comm, sizeof(row->comm));
		row->msg.session = session_id(session);
		row->msg.pid = peer->pid;
		row->msg.uid = peer->uid;
		row->msg.comm = row->comm;
		row->msg.used = usage.memory;
		row->msg.peak = usage.memory_peak;
		row->msg.host = usage.host_memory;
		row->msg.objects = usage.objects;
		list[(*count)++] = &row->msg;
		msg->n_clients++;
	}
}

static void memory_finish(struct request *request)
{
	const struct client *client = request->client;
	struct core *core = client->server->core;
	struct memory_row *rows = calloc(MEMORY_CLIENTS, sizeof(*rows));
	Npu__MemoryUse **list = calloc(MEMORY_CLIENTS + 1, sizeof(*list));
	Npu__DeviceMemory devices[CORE_DEVICES_MAX], *device_list[CORE_DEVICES_MAX];
	Npu__MemoryReply reply = NPU__MEMORY_REPLY__INIT;
	size_t count = 0;

	if (!rows || !list) {
		request_fail(request, NPU_STATUS_HOST_MEMORY, "npud has no memory left");
		goto out;
	}
	for (unsigned int i = 0; i < core_device_count(core); i++) {
		Npu__DeviceMemory *msg = &devices[i];
		struct core_device_info info;

		npu__device_memory__init(msg);
		core_device_info(core, i, &info);
		msg->device = i;
		msg->total = info.memory_total;
		msg->free = info.memory_free;
		msg->used = info.memory_total - info.memory_free;
		msg->bad = info.memory_bad;
		msg->largest_run = info.largest_run;
		memory_fill(client, msg, i, rows, list, &count);
		device_list[i] = msg;
	}
	reply.n_devices = core_device_count(core);
	reply.devices = device_list;
	request_reply(request, &reply.base);
out:
	free(rows);
	free(list);
}

void rpc_memory(struct request *request, const Npu__Empty *msg)
{
	struct op *op = request_op(request, memory_finish);

	(void)msg;
	request_started(request, core_refresh(request->client->server->core, true, NULL, 0, 0, op));
}

void rpc_version(struct request *request, const Npu__Empty *msg)
{
	const struct server *server = request->client->server;
	char lines[CORE_DEVICES_MAX][128], *list[CORE_DEVICES_MAX];
	Npu__VersionReply reply = NPU__VERSION_REPLY__INIT;

	(void)msg;
	for (unsigned int i = 0; i < core_device_count(server->core); i++) {
		struct core_device_info info;

		core_device_info(server->core, i, &info);
		if (info.driver[0])
			snprintf(lines[i], sizeof(lines[i]), "npu%u: %s, interface %u.%u", i,
				 info.driver, info.uapi_major, info.uapi_minor);
		else
			snprintf(lines[i], sizeof(lines[i]), "npu%u: not there", i);
		list[i] = lines[i];
	}
	reply.daemon = (char *)server->version;
	reply.major = NPU_PROTO_MAJOR;
	reply.minor = NPU_PROTO_MINOR;
	reply.n_devices = core_device_count(server->core);
	reply.devices = list;
	request_reply(request, &reply.base);
}
