/* SPDX-License-Identifier: Apache-2.0 */
/* Queue methods. */
#include "daemon/core/object.h"
#include "daemon/rpc/request.h"

static void create_finish(struct request *request)
{
	Npu__QueueCreateReply reply = NPU__QUEUE_CREATE_REPLY__INIT;

	reply.queue = request->op.queue.id;
	reply.slot = request->op.queue.slot;
	request_reply(request, &reply.base);
}

void rpc_queue_create(struct request *request, const Npu__QueueCreate *msg)
{
	const struct queue_params params = {
		.priority = msg->priority,
		.fail_mode = msg->fail_mode,
		.window = msg->window,
	};
	struct op *op = request_op(request, create_finish);

	request_started(request, queue_create(request->client->session, msg->ctx, &params, op));
}

void rpc_queue_destroy(struct request *request, const Npu__QueueDestroy *msg)
{
	struct op *op = request_op(request, request_reply_empty);

	request_started(request, queue_destroy(request->client->session, msg->queue, op));
}

static void ctrl_finish(struct request *request)
{
	Npu__QueueCtrlReply reply = NPU__QUEUE_CTRL_REPLY__INIT;

	reply.epoch = request->op.queue.epoch;
	request_reply(request, &reply.base);
}

void rpc_queue_ctrl(struct request *request, const Npu__QueueCtrl *msg)
{
	struct op *op = request_op(request, ctrl_finish);

	request_started(request,
			queue_ctrl(request->client->session, msg->queue, msg->op, msg->value, op));
}
