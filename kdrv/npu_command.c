// SPDX-License-Identifier: GPL-2.0
/*
 * The seam between the rules (kdrv/core) and the card: one function for each admin command of the
 * core. A command changes the driver's own objects, becomes a command of the hardware, and returns;
 * it never waits for the card.
 *
 * An object that the card does not know any more (space->epoch, bo->epoch: made before a reset) is
 * not mentioned to it again.
 */
#include <linux/slab.h>

#include "kdrv/npu_drv.h"
#include "kdrv/npu_trace.h"

#define NPU_BACKLOG_MAX 65536u /* of commands that may fail; drops always find room */

static bool npu_space_known(const struct npu_space *space)
{
	return space->epoch == space->ndev->epoch;
}

/* ---- nodes of commands --------------------------------------------------------------------- */

static void npu_node_fill(struct npu_node *node, u16 op, const struct npu_space *space, u32 id)
{
	node->cmd.op = op;
	node->cmd.id = id;
	if (space) {
		node->cmd.space = space->slot;
		node->cmd.session = space->session_id;
	}
}

/* For what may fail: -ENODEV, -ENOMEM, -EIO: the card is down, -EBUSY: it is far behind. */
static int npu_node_get(struct npu_device *ndev, struct npu_node **ret_node)
{
	struct npu_node *node;

	if (READ_ONCE(ndev->gone))
		return -ENODEV;
	if (READ_ONCE(ndev->down))
		return -EIO;
	if (READ_ONCE(ndev->admin.nbacklog) >= NPU_BACKLOG_MAX)
		return -EBUSY;
	node = npu_node_new();
	if (!node)
		return -ENOMEM;
	*ret_node = node;
	return 0;
}

/* One of the session's that still has an engine. */
static int npu_space_node(struct npu_space *space, struct npu_node **ret_node)
{
	if (!npu_space_known(space) || READ_ONCE(space->dead))
		return -EIO;
	return npu_node_get(space->ndev, ret_node);
}

/* A drop: with the node that the object carried. */
static void npu_space_drop(struct npu_space *space, void **backend, u16 op, u32 id)
{
	struct npu_node *node = *backend;

	*backend = NULL;
	if (!node)
		return;
	if (!npu_space_known(space) || space->ndev->gone || space->session->dying) {
		npu_node_free(node);
		return;
	}
	npu_node_fill(node, op, space, id);
	npu_admin_post(space->ndev, node);
}

/*
 * Posts a command that changes words of the slab: the card does so in its own time, so the call is
 * answered once it has (npu_call_ctx.cid). A new object gets the node of its drop.
 */
static int npu_space_post_sync(struct npu_space *space, struct npu_node *node, void **backend,
			       bool created)
{
	struct npu_device *ndev = space->ndev;
	struct npu_call_ctx *ctx = npu_call_current(ndev);
	struct npu_node *drop = created ? npu_node_new() : NULL;
	struct npu_req *req = npu_req_new(ndev, NPU_REQ_SYNC, 0);

	if (!req || (created && !drop)) {
		npu_req_free(ndev, req);
		npu_node_free(drop);
		npu_node_free(node);
		return -ENOMEM;
	}
	if (created)
		*backend = drop;
	req->space = space;
	req->id = node->cmd.id;
	node->cmd.cid = req->cid;
	if (ctx)
		ctx->cid = req->cid;
	npu_admin_post(ndev, node);
	return 0;
}

/* ---- spaces -------------------------------------------------------------------------------- */

static int npu_do_space_create(struct npu_device *ndev, struct npu_admin_cmd *cmd)
{
	struct npu_session *session = cmd->session;
	struct npu_space *space;
	struct npu_node *node;
	int r;

	r = npu_node_get(ndev, &node);
	if (r < 0)
		return r;
	r = npu_space_create(ndev, session);
	if (r < 0) {
		npu_node_free(node);
		return r;
	}
	space = session->backend;
	npu_node_fill(node, NPU_ADMIN_SPACE_CREATE, space, 0);
	node->cmd.space_create.slab_address = session->slab_address;
	node->cmd.space_create.uid = session->uid;
	node->cmd.space_create.pid = session->pid;
	memcpy(node->cmd.space_create.comm, session->comm, sizeof(session->comm));
	npu_admin_post(ndev, node);
	return 0;
}

static int npu_do_space_stop(struct npu_device *ndev, struct npu_admin_cmd *cmd)
{
	struct npu_space *space = cmd->session->backend;
	struct npu_node *node = space->stop;

	space->stop = NULL;
	npu_space_kill(space, true);
	if (npu_space_known(space) && !ndev->gone) {
		npu_node_fill(node, NPU_ADMIN_SPACE_STOP, space, 0);
		npu_admin_post(ndev, node);
	} else {
		npu_node_free(node);
	}
	return 0;
}

static int npu_do_space_destroy(struct npu_device *ndev, struct npu_admin_cmd *cmd)
{
	struct npu_space *space = cmd->session->backend;
	struct npu_node *node = space->destroy;
	bool known = npu_space_known(space);

	space->destroy = NULL;
	mutex_lock(&ndev->obj_lock);
	space->ended = true;
	mutex_unlock(&ndev->obj_lock);
	if (known && !ndev->gone) {
		npu_node_fill(node, NPU_ADMIN_SPACE_DESTROY, space, 0);
		npu_admin_post(ndev, node);
		return NPU_ADMIN_PENDING;
	}
	npu_node_free(node);
	/* unknown to the card: its slab is ours once no reset is under way, else the reset's end
	 * finishes it
	 */
	if (!ndev->gone && !READ_ONCE(ndev->admin.frozen))
		npu_space_finish(space);
	return NPU_ADMIN_PENDING;
}

/* ---- memory -------------------------------------------------------------------------------- */

static int npu_do_mem_create(struct npu_device *ndev, struct npu_admin_cmd *cmd)
{
	struct npu_call_ctx *ctx = npu_call_current(ndev);
	struct npu_space *space = cmd->session->backend;
	struct npu_mem *mem = cmd->mem;
	struct npu_bo *bo = NULL;
	int r;

	if (ndev->gone)
		return -ENODEV;
	if (!npu_space_known(space) || ndev->down)
		return -EIO;
	if (mem->kind == NPU_MEM_DEVICE) {
		r = npu_bo_new_device(ndev, mem->bytes, &bo);
	} else if (ctx && ctx->bo && ctx->bo->bytes == mem->bytes) {
		swap(bo, ctx->bo);
		r = 0;
	} else {
		r = npu_bo_new_host(ndev, mem->bytes, &bo);
	}
	if (r < 0)
		return r;
	r = npu_bo_create(bo, mem, cmd->session);
	if (r < 0) {
		npu_bo_discard(bo);
		return r;
	}
	mem->backend = bo;
	return 0;
}

static int npu_do_mem_destroy(struct npu_device *ndev, struct npu_admin_cmd *cmd)
{
	return npu_bo_destroy(cmd->mem->backend);
}

static int npu_do_map(struct npu_device *ndev, struct npu_admin_cmd *cmd)
{
	struct npu_space *space = cmd->session->backend;
	struct npu_map *map = cmd->map;
	struct npu_bo *bo = map->mem->backend;
	struct npu_node *node, *drop;
	int r;

	if (bo->epoch != ndev->epoch)
		return -EIO;
	r = npu_space_node(space, &node);
	if (r < 0)
		return r;
	drop = npu_node_new();
	if (!drop) {
		npu_node_free(node);
		return -ENOMEM;
	}
	map->backend = drop;
	npu_node_fill(node, NPU_ADMIN_MAP, space, bo->id);
	node->cmd.map.address = map->address;
	node->cmd.map.bytes = map->bytes;
	node->cmd.map.offset = map->offset;
	node->cmd.map.generation = map->generation;
	node->cmd.map.mem = bo->id;
	node->cmd.map.flags = map->flags;
	trace_npu_map(ndev, space->session_id, map->address, map->bytes, true);
	npu_admin_post(ndev, node);
	return 0;
}

static int npu_do_unmap(struct npu_device *ndev, struct npu_admin_cmd *cmd)
{
	struct npu_space *space = cmd->session->backend;
	struct npu_map *map = cmd->map;
	struct npu_bo *bo = map->mem->backend;
	struct npu_node *node = map->backend;

	trace_npu_map(ndev, space->session_id, map->address, map->bytes, false);
	if (node) {
		node->cmd.map.address = map->address;
		node->cmd.map.bytes = map->bytes;
		node->cmd.map.offset = map->offset;
		node->cmd.map.generation = map->generation;
		node->cmd.map.mem = bo->id;
		node->cmd.map.flags = map->flags;
	}
	npu_space_drop(space, &map->backend, NPU_ADMIN_UNMAP, bo->id);
	return 0;
}

/* ---- contexts and queues ------------------------------------------------------------------- */

static int npu_do_ctx_set(struct npu_device *ndev, struct npu_admin_cmd *cmd)
{
	struct npu_space *space = cmd->session->backend;
	struct npu_ctx *ctx = cmd->ctx.ctx;
	struct npu_node *node;
	int r;

	r = npu_space_node(space, &node);
	if (r < 0)
		return r;
	npu_node_fill(node, NPU_ADMIN_CTX_SET, space, ctx->obj.id);
	node->cmd.ctx.created = cmd->ctx.created;
	node->cmd.ctx.clear_error = cmd->ctx.clear_error;
	node->cmd.ctx.priority = ctx->priority;
	node->cmd.ctx.weight = ctx->weight;
	node->cmd.ctx.cores = ctx->cores;
	return npu_space_post_sync(space, node, &ctx->backend, cmd->ctx.created);
}

static int npu_do_ctx_drop(struct npu_device *ndev, struct npu_admin_cmd *cmd)
{
	struct npu_ctx *ctx = cmd->ctx.ctx;

	npu_space_drop(cmd->session->backend, &ctx->backend, NPU_ADMIN_CTX_DROP, ctx->obj.id);
	return 0;
}

static void npu_queue_fill(struct npu_node *node, struct npu_space *space,
			   const struct npu_queue *queue)
{
	npu_node_fill(node, NPU_ADMIN_QUEUE_SET, space, queue->obj.id);
	node->cmd.queue.slot = queue->slot;
	node->cmd.queue.ctx = queue->ctx->obj.id;
	node->cmd.queue.paused = queue->paused;
	node->cmd.queue.priority = queue->priority;
	node->cmd.queue.fail_mode = queue->fail_mode;
	node->cmd.queue.epoch = queue->epoch;
	node->cmd.queue.window = queue->window;
	node->cmd.queue.fresh = !queue->started;
}

static int npu_do_queue_set(struct npu_device *ndev, struct npu_admin_cmd *cmd)
{
	struct npu_space *space = cmd->session->backend;
	struct npu_queue *queue = cmd->queue;
	struct npu_node *node;
	int r;

	r = npu_space_node(space, &node);
	if (r < 0)
		return r;
	npu_queue_fill(node, space, queue);
	r = npu_space_post_sync(space, node, &queue->backend, !queue->started);
	if (r == 0 && !queue->started)
		set_bit(queue->slot, space->rings_open);
	return r;
}

static int npu_do_queue_drop(struct npu_device *ndev, struct npu_admin_cmd *cmd)
{
	struct npu_space *space = cmd->session->backend;
	struct npu_queue *queue = cmd->queue;

	npu_space_wait_drop(space, queue->obj.id);
	clear_bit(queue->slot, space->rings_open);
	npu_space_drop(space, &queue->backend, NPU_ADMIN_QUEUE_DROP, queue->obj.id);
	return 0;
}

static int npu_do_submit(struct npu_device *ndev, struct npu_admin_cmd *cmd)
{
	struct npu_space *space = cmd->session->backend;

	if (!npu_space_known(space) || READ_ONCE(space->dead))
		return -EIO;
	npu_space_submit(space, cmd->submit.queue->slot, cmd->submit.entries, cmd->submit.count,
			 &cmd->submit.taken, &cmd->submit.tail);
	if (cmd->submit.taken)
		npu_space_bell(space);
	return 0;
}

static int npu_do_queue_done(struct npu_device *ndev, struct npu_admin_cmd *cmd)
{
	struct npu_space *space = cmd->session->backend;
	struct npu_queue *queue = cmd->wait.queue;

	if (ndev->gone)
		return -ENODEV;
	cmd->wait.done = npu_space_done(space, queue->slot);
	if (cmd->wait.done >= cmd->wait.want || !cmd->wait.arm)
		return 0;
	if (!npu_space_known(space) || READ_ONCE(space->dead))
		return -EIO;
	return npu_space_wait_arm(space, queue, cmd->wait.want);
}

/* ---- modules ------------------------------------------------------------------------------- */

static int npu_do_module_load(struct npu_device *ndev, struct npu_admin_cmd *cmd)
{
	struct npu_space *space = cmd->session->backend;
	struct npu_module *module = cmd->load.module;
	struct npu_bo *bo = module->mem->backend;
	struct npu_node *node;
	int r;

	if (bo->epoch != ndev->epoch)
		return -EIO;
	r = npu_space_node(space, &node);
	if (r < 0)
		return r;
	module->backend = npu_node_new();
	if (!module->backend) {
		npu_node_free(node);
		return -ENOMEM;
	}
	npu_node_fill(node, NPU_ADMIN_MODULE_LOAD, space, module->obj.id);
	node->cmd.module.mem = bo->id;
	node->cmd.module.bytes = cmd->load.bytes;
	npu_admin_post(ndev, node);
	return 0;
}

static int npu_do_module_drop(struct npu_device *ndev, struct npu_admin_cmd *cmd)
{
	struct npu_module *module = cmd->module;

	npu_space_drop(cmd->session->backend, &module->backend, NPU_ADMIN_MODULE_DROP,
		       module->obj.id);
	return 0;
}

/* ---- the device ---------------------------------------------------------------------------- */

static int npu_do_reset(struct npu_device *ndev, struct npu_admin_cmd *cmd)
{
	if (ndev->gone)
		return -ENODEV;
	npu_watch_reset_begin(ndev);
	return 0;
}

static int npu_do_inject(struct npu_device *ndev, struct npu_admin_cmd *cmd)
{
	struct npu_space *space = cmd->session ? cmd->session->backend : NULL;
	struct npu_node *node;
	int r;

	r = space ? npu_space_node(space, &node) : npu_node_get(ndev, &node);
	if (r < 0)
		return r;
	npu_node_fill(node, NPU_ADMIN_INJECT, space, 0);
	node->cmd.inject.kind = cmd->inject.kind;
	node->cmd.inject.queue = cmd->inject.queue ? cmd->inject.queue->obj.id : 0;
	node->cmd.inject.address = cmd->inject.address;
	node->cmd.inject.value = cmd->inject.value;
	node->cmd.inject.page = cmd->inject.page;
	npu_admin_post(ndev, node);
	return 0;
}

/* What the card last said; it is asked anew, and the call looks again when it has answered. */
static int npu_do_counters(struct npu_device *ndev, struct npu_admin_cmd *cmd)
{
	static const unsigned int own[] = {
		NPU_COUNTER_TASKS_QUEUED, NPU_COUNTER_TASKS_DONE, NPU_COUNTER_CORE_NS,
		NPU_COUNTER_ENGINE_PID,
	};
	struct npu_space *space = cmd->session ? cmd->session->backend : NULL;
	u64 *counters = space ? space->counters : ndev->counters;
	bool *busy = space ? &space->counters_busy : &ndev->counters_busy;
	struct npu_call_ctx *ctx = npu_call_current(ndev);
	struct npu_node *node;
	struct npu_req *req;
	unsigned int i;
	int r;

	if (ndev->gone)
		return -ENODEV;
	mutex_lock(&ndev->obj_lock);
	for (i = 0; i < ARRAY_SIZE(own); i++)
		cmd->counters[own[i]] = counters[own[i]];
	mutex_unlock(&ndev->obj_lock);
	if (*busy || (ctx && ctx->again))
		return 0;
	r = space ? npu_space_node(space, &node) : npu_node_get(ndev, &node);
	if (r < 0)
		return 0;
	req = npu_req_new(ndev, NPU_REQ_COUNTERS, sizeof(ndev->counters));
	if (!req) {
		npu_node_free(node);
		return 0;
	}
	*busy = true;
	req->space = space;
	npu_node_fill(node, NPU_ADMIN_COUNTERS, space, 0);
	if (!space)
		node->cmd.flags = NPU_HW_CMD_CARD;
	node->cmd.cid = req->cid;
	node->cmd.counters.address = req->dma;
	if (ctx) {
		ctx->cid = req->cid;
		ctx->again = true;
	}
	npu_admin_post(ndev, node);
	return 0;
}

static int npu_do_query(struct npu_device *ndev, struct npu_admin_cmd *cmd)
{
	struct npu_query *query = cmd->query;

	if (ndev->gone)
		return -ENODEV;
	/* the core's word for the card: it maps host memory, but kernels cannot follow there */
	query->caps = ndev->caps & NPU_CAPS_CARD;
	query->util_permille = readl(&ndev->regs->util_permille);
	query->engines = readl(&ndev->regs->engines);
	query->sandbox_active = readl(&ndev->regs->sandbox_active);
	query->sandbox_missing = readl(&ndev->regs->sandbox_missing);
	query->busy_ns = readq(&ndev->regs->busy_ns);
	return 0;
}

/* ---- the table ----------------------------------------------------------------------------- */

typedef int (*npu_do_fn)(struct npu_device *ndev, struct npu_admin_cmd *cmd);

static const npu_do_fn npu_do_table[] = {
	[NPU_ADMIN_SPACE_CREATE] = npu_do_space_create,
	[NPU_ADMIN_SPACE_STOP] = npu_do_space_stop,
	[NPU_ADMIN_SPACE_DESTROY] = npu_do_space_destroy,
	[NPU_ADMIN_MEM_CREATE] = npu_do_mem_create,
	[NPU_ADMIN_MEM_DESTROY] = npu_do_mem_destroy,
	[NPU_ADMIN_MAP] = npu_do_map,
	[NPU_ADMIN_UNMAP] = npu_do_unmap,
	[NPU_ADMIN_CTX_SET] = npu_do_ctx_set,
	[NPU_ADMIN_CTX_DROP] = npu_do_ctx_drop,
	[NPU_ADMIN_QUEUE_SET] = npu_do_queue_set,
	[NPU_ADMIN_QUEUE_DROP] = npu_do_queue_drop,
	[NPU_ADMIN_SUBMIT] = npu_do_submit,
	[NPU_ADMIN_QUEUE_DONE] = npu_do_queue_done,
	[NPU_ADMIN_MODULE_LOAD] = npu_do_module_load,
	[NPU_ADMIN_MODULE_DROP] = npu_do_module_drop,
	[NPU_ADMIN_RESET] = npu_do_reset,
	[NPU_ADMIN_INJECT] = npu_do_inject,
	[NPU_ADMIN_COUNTERS] = npu_do_counters,
	[NPU_ADMIN_QUERY] = npu_do_query,
};

int npu_command_run(void *dev, struct npu_admin_cmd *cmd)
{
	if (cmd->op >= ARRAY_SIZE(npu_do_table) || !npu_do_table[cmd->op])
		return -EOPNOTSUPP;
	return npu_do_table[cmd->op](dev, cmd);
}
