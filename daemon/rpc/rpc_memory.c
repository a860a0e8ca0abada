/* SPDX-License-Identifier: Apache-2.0 */
/* Memory methods. */
#include "daemon/core/object.h"
#include "daemon/rpc/request.h"
#include "daemon/rpc/server_int.h"

static void alloc_finish(struct request *request)
{
	const struct op *op = &request->op;
	Npu__MemAllocReply reply = NPU__MEM_ALLOC_REPLY__INIT;

	reply.mem = op->memory.id;
	reply.bytes = op->memory.bytes;
	reply.page = op->memory.page;
	reply.address = op->memory.address;
	reply.generation = op->memory.generation;
	reply.has_fd = op->nfds > 0;
	request_reply(request, &reply.base);
}

void rpc_mem_alloc(struct request *request, const Npu__MemAlloc *msg)
{
	struct op *op = request_op(request, alloc_finish);

	request_started(request, memory_alloc(request->client->session, msg->device, msg->bytes,
					      msg->kind, msg->flags, op));
}

static void free_finish(struct request *request)
{
	Npu__MemFreeReply reply = NPU__MEM_FREE_REPLY__INIT;

	reply.generation = request->op.memory.generation;
	request_reply(request, &reply.base);
}

void rpc_mem_free(struct request *request, const Npu__MemFree *msg)
{
	struct op *op = request_op(request, free_finish);

	request_started(request, memory_free(request->client->session, msg->mem, op));
}

static void info_finish(struct request *request)
{
	const struct client *client = request->client;
	Npu__MemInfoReply reply = NPU__MEM_INFO_REPLY__INIT;
	struct core_device_info info;

	core_device_info(client->server->core, request->device, &info);
	reply.total = info.memory_total;
	reply.free = info.memory_free;
	reply.largest_run = info.largest_run;
	if (client->session) {
		uint64_t used, limit;

		session_quota(client->session, &used, &limit);
		reply.quota_used = used;
		reply.quota_limit = limit;
	}
	request_reply(request, &reply.base);
}

void rpc_mem_info(struct request *request, const Npu__MemInfo *msg)
{
	struct core *core = request->client->server->core;
	struct core_device_info info;
	struct op *op;

	if (core_device_info(core, msg->device, &info) < 0) {
		request_fail(request, NPU_STATUS_NO_DEVICE,
			     "device %u: there is none, devices are 0 "
			     "to %d",
			     msg->device, (int)core_device_count(core) - 1);
		return;
	}
	request->device = msg->device;
	op = request_op(request, info_finish);
	request_started(request, core_refresh(core, true, NULL, 0, 0, op));
}
