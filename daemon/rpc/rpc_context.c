/* SPDX-License-Identifier: Apache-2.0 */
/* Context methods. */
#include "daemon/core/object.h"
#include "daemon/rpc/request.h"

static void create_finish(struct request *request)
{
	Npu__CtxCreateReply reply = NPU__CTX_CREATE_REPLY__INIT;

	reply.ctx = request->op.context.id;
	reply.slot = request->op.context.slot;
	request_reply(request, &reply.base);
}

void rpc_ctx_create(struct request *request, const Npu__CtxCreate *msg)
{
	const struct context_params params = {
		.priority = msg->priority,
		.weight = msg->weight,
		.cores = msg->cores,
	};
	struct op *op = request_op(request, create_finish);

	request_started(request,
			context_create(request->client->session, msg->device, &params, op));
}

void rpc_ctx_destroy(struct request *request, const Npu__CtxDestroy *msg)
{
	struct op *op = request_op(request, request_reply_empty);

	request_started(request, context_destroy(request->client->session, msg->ctx, op));
}

void rpc_ctx_set(struct request *request, const Npu__CtxSet *msg)
{
	const struct context_params params = {
		.priority = msg->priority,
		.weight = msg->weight,
		.cores = msg->cores,
	};
	struct op *op = request_op(request, request_reply_empty);

	request_started(request,
			context_set(request->client->session, msg->ctx, msg->fields, &params, op));
}
