/* SPDX-License-Identifier: Apache-2.0 */
/* Each function is one call. */
#include "tests/lib/frame_calls.h"

#include <stdlib.h>

Npu__MemAllocReply *fc_alloc(struct frame_client *from, uint64_t bytes, uint32_t kind, int *status)
{
	Npu__MemAlloc msg = NPU__MEM_ALLOC__INIT;
	Npu__MemAllocReply *reply = NULL;

	msg.bytes = bytes;
	msg.kind = kind;
	*status = fc_call(from, NPU_METHOD_mem_alloc, &msg.base, &npu__mem_alloc_reply__descriptor,
			  &reply);
	return reply;
}

int fc_mem_free(struct frame_client *from, uint64_t mem)
{
	Npu__MemFree msg = NPU__MEM_FREE__INIT;

	msg.mem = mem;
	return fc_call(from, NPU_METHOD_mem_free, &msg.base, NULL, NULL);
}

uint32_t fc_ctx_create(struct frame_client *from, int *status)
{
	Npu__CtxCreate msg = NPU__CTX_CREATE__INIT;
	Npu__CtxCreateReply *reply = NULL;
	uint32_t ctx = 0;

	*status = fc_call(from, NPU_METHOD_ctx_create, &msg.base,
			  &npu__ctx_create_reply__descriptor, &reply);
	if (reply) {
		ctx = reply->ctx;
		npu__ctx_create_reply__free_unpacked(reply, NULL);
	}
	return ctx;
}

int fc_ctx_destroy(struct frame_client *from, uint32_t ctx)
{
	Npu__CtxDestroy msg = NPU__CTX_DESTROY__INIT;

	msg.ctx = ctx;
	return fc_call(from, NPU_METHOD_ctx_destroy, &msg.base, NULL, NULL);
}

uint32_t fc_queue_create(struct frame_client *from, uint32_t ctx, int *status)
{
	Npu__QueueCreate msg = NPU__QUEUE_CREATE__INIT;
	Npu__QueueCreateReply *reply = NULL;
	uint32_t queue = 0;

	msg.ctx = ctx;
	*status = fc_call(from, NPU_METHOD_queue_create, &msg.base,
			  &npu__queue_create_reply__descriptor, &reply);
	if (reply) {
		queue = reply->queue;
		npu__queue_create_reply__free_unpacked(reply, NULL);
	}
	return queue;
}

int fc_queue_destroy(struct frame_client *from, uint32_t queue)
{
	Npu__QueueDestroy msg = NPU__QUEUE_DESTROY__INIT;

	msg.queue = queue;
	return fc_call(from, NPU_METHOD_queue_destroy, &msg.base, NULL, NULL);
}

Npu__StatusReply *fc_status(struct frame_client *from)
{
	Npu__Empty msg = NPU__EMPTY__INIT;
	Npu__StatusReply *reply = NULL;

	if (fc_call(from, NPU_METHOD_status, &msg.base, &npu__status_reply__descriptor, &reply) !=
	    NPU_STATUS_OK)
		abort();
	return reply;
}

/* Nothing is left of other sessions: device memory, sessions, engines. */
bool fc_all_gone(void *arg)
{
	struct frame_client *from = arg;
	Npu__StatusReply *reply = fc_status(from);
	const Npu__Device *device = reply->devices[0];
	bool gone = device->memory_free == device->memory_total && device->sessions == 0 &&
		    device->engines == 0;

	npu__status_reply__free_unpacked(reply, NULL);
	return gone;
}
