/* SPDX-License-Identifier: Apache-2.0 */
/* Module methods: what they answer about an image are its client's own claims. */
#include "daemon/core/object.h"
#include "daemon/rpc/request.h"

static void load_finish(struct request *request)
{
	const struct op *op = &request->op;
	Npu__ModuleLoadReply reply = NPU__MODULE_LOAD_REPLY__INIT;

	reply.module = op->module.id;
	reply.device_module = op->module.device_id;
	reply.funcs = op->module.funcs;
	request_reply(request, &reply.base);
}

void rpc_module_load(struct request *request, const Npu__ModuleLoad *msg)
{
	struct op *op = request_op(request, load_finish);

	request_started(request, module_load(request->client->session, msg->mem, msg->bytes, op));
}

void rpc_module_unload(struct request *request, const Npu__ModuleUnload *msg)
{
	struct op *op = request_op(request, request_reply_empty);

	request_started(request, module_unload(request->client->session, msg->module, op));
}

static void lookup_finish(struct request *request)
{
	struct op *op = &request->op;
	Npu__FuncLookupReply reply = NPU__FUNC_LOOKUP_REPLY__INIT;

	reply.func = op->func.func;
	reply.name = op->func.name;
	reply.args_size = op->func.args_size;
	reply.n_param_sizes = op->func.params;
	reply.param_sizes = op->func.param_sizes;
	request_reply(request, &reply.base);
}

void rpc_func_lookup(struct request *request, const Npu__FuncLookup *msg)
{
	struct op *op = request_op(request, lookup_finish);

	request_started(request, module_lookup(request->client->session, msg->module, msg->name,
					       msg->func, op));
}
