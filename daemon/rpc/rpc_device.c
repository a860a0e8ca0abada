/* SPDX-License-Identifier: Apache-2.0 */
/* Greeting, devices, faults. */
#include "daemon/rpc/request.h"
#include "daemon/rpc/server_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void rpc_hello(struct request *request, const Npu__Hello *msg)
{
	struct client *client = request->client;
	const struct server *server = client->server;
	Npu__HelloReply reply = NPU__HELLO_REPLY__INIT;
	struct op *op = request_op(request, request_reply_empty);

	if (msg->major != NPU_PROTO_MAJOR) {
		request_fail(request, NPU_STATUS_VERSION,
			     "%s speaks protocol %u.%u, %.100s %u.%u: install matching versions",
			     server->version, NPU_PROTO_MAJOR, NPU_PROTO_MINOR,
			     *msg->library ? msg->library : "the client", msg->major, msg->minor);
		return;
	}
	if (msg->token.len) {
		request_fail(request, NPU_STATUS_NOT_FOUND,
			     "no session has this token: connect "
			     "without one");
		return;
	}
	if (client_start(client, msg->admin, op) < 0) {
		request_started(request, op->error);
		return;
	}
	reply.major = NPU_PROTO_MAJOR;
	reply.minor = NPU_PROTO_MINOR;
	reply.daemon = (char *)server->version;
	reply.session = client->session ? session_id(client->session) : 0;
	reply.is_admin = client->peer.admin;
	/* npud answers by then, if only that the device did not; some more for the way */
	reply.rpc_timeout_ms = (uint32_t)server->conf->rpc_timeout_ms * 2 + 1000;
	core_window(&reply.window_base, &reply.window_size);
	reply.event_limit = (uint32_t)server->conf->events;
	reply.stream_limit = (uint32_t)server->conf->streams;
	request_reply(request, &reply.base);
}

void rpc_ping(struct request *request, const Npu__Empty *msg)
{
	(void)msg;
	request_reply_empty(request);
}

void fill_device(Npu__Device *msg, struct core_device_info *info, const struct client *client)
{
	npu__device__init(msg);
	msg->id = info->id;
	msg->name = info->name;
	msg->firmware = info->firmware;
	msg->caps = info->caps;
	msg->health = info->health;
	msg->cores = info->cores;
	msg->memory_total = info->memory_total;
	msg->memory_free = info->memory_free;
	msg->memory_bad = info->memory_bad;
	msg->largest_run = info->largest_run;
	msg->util_permille = info->util_permille;
	msg->sessions = info->sessions;
	msg->engines = info->engines;
	msg->max_queues = info->max_queues;
	msg->slab_size = info->slab_size;
	msg->busy_ns = info->busy_ns;
	msg->sandbox_active = info->sandbox_active;
	msg->sandbox_missing = info->sandbox_missing;
	msg->default_timeout_us = info->default_timeout_us;
	msg->kind = info->kind;
	msg->transport = info->transport;
	if (client->session) {
		uint64_t used, limit;

		session_quota(client->session, &used, &limit);
		msg->quota_used = used;
		msg->quota_limit = limit;
	}
}

Npu__Device **fill_devices(const struct client *client, size_t *ret_count)
{
	struct row {
		Npu__Device msg;
		struct core_device_info info;
	} * rows;
	struct core *core = client->server->core;
	size_t count = core_device_count(core);
	Npu__Device **list;

	*ret_count = 0;
	list = malloc(count * (sizeof(*list) + sizeof(*rows)) + _Alignof(struct row));
	if (!list)
		return NULL;
	rows = (struct row *)(((uintptr_t)(list + count) + _Alignof(struct row) - 1) &
			      ~(uintptr_t)(_Alignof(struct row) - 1));
	for (size_t i = 0; i < count; i++) {
		core_device_info(core, (unsigned int)i, &rows[i].info);
		fill_device(&rows[i].msg, &rows[i].info, client);
		list[i] = &rows[i].msg;
	}
	*ret_count = count;
	return list;
}

static void devices_finish(struct request *request)
{
	Npu__DevicesReply reply = NPU__DEVICES_REPLY__INIT;

	reply.devices = fill_devices(request->client, &reply.n_devices);
	request_reply(request, &reply.base);
	free(reply.devices);
}

void rpc_devices(struct request *request, const Npu__Empty *msg)
{
	struct op *op = request_op(request, devices_finish);

	(void)msg;
	request_started(request, core_refresh(request->client->server->core, true, NULL, 0, 0, op));
}

static void open_finish(struct request *request)
{
	Npu__DeviceOpenReply reply = NPU__DEVICE_OPEN_REPLY__INIT;
	Npu__Device device = NPU__DEVICE__INIT;
	struct core_device_info info;

	core_device_info(request->client->server->core, request->device, &info);
	fill_device(&device, &info, request->client);
	reply.slab_size = request->op.space.slab_size;
	reply.slab_address = request->op.space.slab_address;
	reply.device = &device;
	request_reply(request, &reply.base);
}

void rpc_device_open(struct request *request, const Npu__DeviceOpen *msg)
{
	struct op *op = request_op(request, open_finish);

	request->device = msg->device;
	request_started(request, session_open_device(request->client->session, msg->device, op));
}

void rpc_device_close(struct request *request, const Npu__DeviceClose *msg)
{
	struct op *op = request_op(request, request_reply_empty);
	int r = session_close_device(request->client->session, msg->device, op);

	request_started(request, r);
}

static void fault_query_finish(struct request *request)
{
	const struct session_peer *peer = &request->client->peer;
	const struct op *op = &request->op;
	Npu__Fault faults[OP_FAULTS_MAX], *list[OP_FAULTS_MAX];
	Npu__FaultQueryReply reply = NPU__FAULT_QUERY_REPLY__INIT;

	for (unsigned int i = 0; i < op->faults.count; i++) {
		const struct core_fault *fault = &op->faults.fault[i];

		npu__fault__init(&faults[i]);
		faults[i].seq = fault->seq;
		faults[i].device = fault->device;
		faults[i].time_ns = fault->time_ns;
		faults[i].kind = fault->kind;
		faults[i].flags = fault->flags;
		faults[i].ctx = fault->ctx;
		faults[i].queue = fault->queue;
		faults[i].task = fault->task;
		faults[i].block = fault->block;
		faults[i].core = fault->core;
		faults[i].address = fault->address;
		faults[i].pc = fault->pc;
		faults[i].kernel = (char *)fault->kernel;
		faults[i].pid = peer->pid;
		faults[i].uid = peer->uid;
		faults[i].comm = (char *)peer->comm;
		list[i] = &faults[i];
	}
	reply.n_faults = op->faults.count;
	reply.faults = list;
	request_reply(request, &reply.base);
}

void rpc_fault_query(struct request *request, const Npu__FaultQuery *msg)
{
	struct op *op = request_op(request, fault_query_finish);
	int r = session_faults(request->client->session, msg->device, msg->after, op);

	request_started(request, r);
}
