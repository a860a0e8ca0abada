/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* Contexts: groups of queues with their own share and their own error state. */
#include "kdrv/core/npu_core_int.h"

#define NPU_PRIORITY_MAX 7u
#define NPU_WEIGHT_MAX 1000u
#define NPU_WEIGHT_DEFAULT 100u

struct npu_ctx *npu_ctx_find(struct npu_session *session, uint64_t id)
{
	return id && id <= NPU_CORE_MAX_CTX ? session->ctxs[id] : NULL;
}

static int npu_ctx_post(struct npu_ctx *ctx, bool created, bool clear_error)
{
	struct npu_admin_cmd cmd = { .op = NPU_ADMIN_CTX_SET, .session = ctx->session };

	cmd.ctx.ctx = ctx;
	cmd.ctx.created = created;
	cmd.ctx.clear_error = clear_error;
	return npu_admin(ctx->session->core, &cmd);
}

static int npu_ctx_check(const struct npu_core *core, uint32_t priority, uint32_t weight,
			 uint32_t cores)
{
	if (priority > NPU_PRIORITY_MAX || weight > NPU_WEIGHT_MAX || cores > core->config.cores)
		return -EINVAL;
	return 0;
}

/* A free id, in turn, so that one just destroyed does not come back at once. */
static uint32_t npu_ctx_pick(struct npu_session *session)
{
	uint32_t i, id = session->ctx_next;

	for (i = 0; i < NPU_CORE_MAX_CTX; i++) {
		id = id % NPU_CORE_MAX_CTX + 1;
		if (!session->ctxs[id])
			return id;
	}
	return 0;
}

int npu_call_ctx_create(struct npu_call *call, void *arg)
{
	struct npu_ctx_create *create = arg;
	struct npu_session *session = call->session;
	struct npu_ctx *ctx;
	uint32_t id;
	int r;

	r = npu_ctx_check(call->core, create->priority, create->weight, create->cores);
	if (r < 0)
		return r;
	id = npu_ctx_pick(session);
	if (!id)
		return -EDQUOT;
	ctx = npu_alloc(call->core, sizeof(*ctx));
	if (!ctx)
		return -ENOMEM;
	npu_obj_init(&ctx->obj, NPU_OBJ_CONTEXT, create->user);
	ctx->obj.id = id;
	ctx->session = session;
	ctx->priority = create->priority;
	ctx->weight = create->weight ? create->weight : NPU_WEIGHT_DEFAULT;
	ctx->cores = create->cores;
	r = npu_ctx_post(ctx, true, false);
	if (r < 0) {
		npu_free(call->core, ctx, sizeof(*ctx));
		return r;
	}
	session->ctxs[id] = ctx;
	session->ctx_next = id;
	session->ctx_count++;
	create->ctx = id;
	return 0;
}

void npu_ctx_drop(struct npu_ctx *ctx)
{
	struct npu_session *session = ctx->session;
	struct npu_admin_cmd cmd = { .op = NPU_ADMIN_CTX_DROP, .session = session };

	cmd.ctx.ctx = ctx;
	session->ctxs[ctx->obj.id] = NULL;
	session->ctx_count--;
	npu_admin(session->core, &cmd);
	npu_obj_fini(session->core, &ctx->obj);
	npu_free(session->core, ctx, sizeof(*ctx));
}

int npu_call_ctx_destroy(struct npu_call *call, void *arg)
{
	struct npu_ctx_destroy *destroy = arg;
	struct npu_ctx *ctx = npu_ctx_find(call->session, destroy->ctx);

	if (!ctx)
		return -ENOENT;
	if (ctx->queues)
		return -EBUSY;
	npu_ctx_drop(ctx);
	return 0;
}

int npu_call_ctx_set(struct npu_call *call, void *arg)
{
	struct npu_ctx_set *set = arg;
	uint32_t flags = set->head.flags, priority, weight, cores;
	struct npu_ctx *ctx = npu_ctx_find(call->session, set->ctx);
	int r;

	if (!ctx)
		return -ENOENT;
	r = npu_ctx_check(call->core, flags & NPU_CTX_PRIORITY ? set->priority : 0,
			  flags & NPU_CTX_WEIGHT ? set->weight : 0,
			  flags & NPU_CTX_CORES ? set->cores : 0);
	if (r < 0)
		return r;
	priority = ctx->priority;
	weight = ctx->weight;
	cores = ctx->cores;
	if (flags & NPU_CTX_PRIORITY)
		ctx->priority = set->priority;
	if (flags & NPU_CTX_WEIGHT)
		ctx->weight = set->weight ? set->weight : NPU_WEIGHT_DEFAULT;
	if (flags & NPU_CTX_CORES)
		ctx->cores = set->cores;
	r = npu_ctx_post(ctx, false, flags & NPU_CTX_CLEAR_ERROR);
	if (r < 0) {
		ctx->priority = priority;
		ctx->weight = weight;
		ctx->cores = cores;
	}
	return r;
}

struct npu_ctx *npu_session_ctx_next(struct npu_session *session, uint64_t *cursor)
{
	while (*cursor < NPU_CORE_MAX_CTX) {
		++*cursor;
		if (session->ctxs[*cursor])
			return session->ctxs[*cursor];
	}
	return NULL;
}
