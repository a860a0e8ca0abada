// SPDX-License-Identifier: GPL-2.0
/*
 * The admin completion ring: what the card says becomes upcalls of the core. Each completion is
 * copied once and then checked: the card is a device like any other, its numbers may be wrong.
 *
 * A space or bo found here stays valid, for only this reader and a reset (which excludes it) lead
 * to its end.
 */
#include <linux/mm.h>
#include <linux/slab.h>

#include "kdrv/npu_drv.h"
#include "kdrv/npu_trace.h"

#define NPU_CQ_BATCH 64u /* completions between two writes of the index */

static_assert(sizeof(struct npu_hw_func) == sizeof(struct npu_core_func));
static_assert(offsetof(struct npu_hw_func, param_sizes) ==
	      offsetof(struct npu_core_func, param_sizes));

/* The space of a completion, unless it is one that has ended or does not exist. */
static struct npu_space *npu_cq_space(struct npu_device *ndev, u32 slot, bool ended)
{
	struct npu_space *space;

	if (slot >= ndev->slab_slots)
		return NULL;
	mutex_lock(&ndev->obj_lock);
	space = ndev->slots[slot];
	if (space && (space->finishing || space->epoch != ndev->epoch ||
		      (space->ended && !ended)))
		space = NULL;
	mutex_unlock(&ndev->obj_lock);
	return space;
}

/* ---- modules ------------------------------------------------------------------------------- */

static void npu_cq_module(struct npu_device *ndev, const struct npu_hw_completion *cq)
{
	struct npu_space *space = npu_cq_space(ndev, cq->space, false);
	struct npu_node *node;
	struct npu_req *req;

	if (!space)
		return;
	if (cq->status || !cq->value || cq->value > NPU_CORE_MAX_FUNCS) {
		npu_core_module_done(ndev->core, space->session, cq->id,
				     cq->status < 0 ? cq->status : -EIO, NULL, 0, cq->text);
		return;
	}
	node = npu_node_new();
	req = npu_req_new(ndev, NPU_REQ_FUNCS, cq->value * sizeof(struct npu_hw_func));
	if (!node || !req) {
		npu_node_free(node);
		npu_req_free(ndev, req);
		npu_core_module_done(ndev->core, space->session, cq->id, -ENOMEM, NULL, 0,
				     "no memory for the image's list of kernels");
		return;
	}
	req->space = space;
	req->id = cq->id;
	req->count = cq->value;
	node->cmd.op = NPU_HW_OP_FUNC_READ;
	node->cmd.cid = req->cid;
	node->cmd.space = space->slot;
	node->cmd.session = space->session_id;
	node->cmd.id = cq->id;
	node->cmd.func_read.first = 0;
	node->cmd.func_read.count = req->count;
	node->cmd.func_read.address = req->dma;
	npu_admin_post(ndev, node);
}

/* The card could still write into the buffer: the rules see a copy. */
static void npu_cq_funcs(struct npu_device *ndev, struct npu_req *req, s32 status)
{
	size_t bytes = req->count * sizeof(struct npu_hw_func);
	struct npu_core_func *funcs = NULL;

	if (status >= 0) {
		funcs = kvmalloc(bytes, GFP_KERNEL);
		status = funcs ? 0 : -ENOMEM;
	}
	if (funcs)
		memcpy(funcs, req->buf, bytes);
	npu_core_module_done(ndev->core, req->space->session, req->id, status, funcs,
			     funcs ? req->count : 0, "the list of kernels could not be read");
	kvfree(funcs);
}

/* ---- answers to requests ------------------------------------------------------------------- */

static void npu_cq_counters(struct npu_device *ndev, struct npu_req *req, s32 status)
{
	u64 *counters = req->space ? req->space->counters : ndev->counters;

	mutex_lock(&ndev->obj_lock);
	if (status >= 0)
		memcpy(counters, req->buf, sizeof(ndev->counters));
	if (req->space)
		req->space->counters_busy = false;
	else
		ndev->counters_busy = false;
	mutex_unlock(&ndev->obj_lock);
}

static void npu_cq_done(struct npu_device *ndev, const struct npu_hw_completion *cq)
{
	struct npu_req *req = xa_load(&ndev->reqs, cq->cid);

	if (!req)
		return; /* a kick, or one that was dropped */
	if (cq->status < 0)
		dev_notice_ratelimited(&ndev->pdev->dev, "session in slot %u: request %u for object %u failed with error %d\n",
				       cq->space, req->type, req->id, cq->status);
	switch (req->type) {
	case NPU_REQ_FUNCS:
		npu_cq_funcs(ndev, req, cq->status);
		break;
	case NPU_REQ_COUNTERS:
		npu_cq_counters(ndev, req, cq->status);
		break;
	case NPU_REQ_MEM:
	case NPU_REQ_SYNC:
		break;
	}
	npu_req_free(ndev, req);
	wake_up_all(&ndev->admin.wait);
}

/* ---- what comes by itself ------------------------------------------------------------------ */

/* id is the ring slot or the number of the queue; numbers begin far above slots. */
static u32 npu_cq_fault_slot(struct npu_device *ndev, struct npu_space *space,
			     const struct npu_hw_completion *cq)
{
	struct npu_queue *queue;
	u32 slot = NPU_SLOT_NONE;
	u64 cursor = 0;

	if (cq->id < NPU_MAX_QUEUES && !cq->fault.queue)
		return cq->id;
	npu_core_lock(ndev->core);
	while (slot == NPU_SLOT_NONE &&
	       (queue = npu_session_queue_next(space->session, &cursor))) {
		if (queue->obj.id == cq->fault.queue || queue->obj.id == cq->id)
			slot = queue->slot;
	}
	npu_core_unlock(ndev->core);
	return slot;
}

static void npu_cq_fault(struct npu_device *ndev, struct npu_hw_completion *cq)
{
	struct npu_space *space = npu_cq_space(ndev, cq->space, false);
	u32 slot;

	if (!space)
		return;
	slot = npu_cq_fault_slot(ndev, space, cq);
	atomic64_inc(&ndev->stats.faults);
	trace_npu_fault(ndev, space->session_id, slot, &cq->fault);
	npu_core_fault(ndev->core, space->session, slot, &cq->fault);
	npu_watch_fault(ndev, &cq->fault);
}

static void npu_cq_space_gone(struct npu_device *ndev, const struct npu_hw_completion *cq)
{
	struct npu_space *space = npu_cq_space(ndev, cq->space, true);

	if (space && space->ended)
		npu_space_finish(space);
}

static void npu_cq_space_lost(struct npu_device *ndev, struct npu_hw_completion *cq)
{
	struct npu_space *space = npu_cq_space(ndev, cq->space, false);

	if (!space)
		return;
	dev_notice_ratelimited(&ndev->pdev->dev, "session %llu: its engine cannot be replaced\n",
			       space->session_id);
	npu_space_kill(space, false);
	cq->fault.kind = NPU_FAULT_LOST;
	npu_core_fault(ndev->core, space->session, NPU_SLOT_NONE, &cq->fault);
}

static void npu_cq_mem_gone(struct npu_device *ndev, const struct npu_hw_completion *cq)
{
	struct npu_bo *bo;

	mutex_lock(&ndev->obj_lock);
	bo = xa_load(&ndev->bo_ids, cq->id);
	if (bo && (bo->state != NPU_BO_ENDED || bo->epoch != ndev->epoch))
		bo = NULL;
	mutex_unlock(&ndev->obj_lock);
	if (bo)
		npu_bo_finish(bo);
}

static void npu_cq_one(struct npu_device *ndev, struct npu_hw_completion *cq)
{
	struct npu_space *space;

	atomic64_inc(&ndev->stats.completions);
	trace_npu_completion(ndev, cq);
	switch (cq->type) {
	case NPU_HW_CQ_DONE:
		npu_cq_done(ndev, cq);
		break;
	case NPU_HW_CQ_MODULE:
		npu_cq_module(ndev, cq);
		break;
	case NPU_HW_CQ_FAULT:
		npu_cq_fault(ndev, cq);
		break;
	case NPU_HW_CQ_ENGINE:
		space = npu_cq_space(ndev, cq->space, false);
		if (space)
			npu_core_engine_started(ndev->core, space->session);
		break;
	case NPU_HW_CQ_SPACE_GONE:
		npu_cq_space_gone(ndev, cq);
		break;
	case NPU_HW_CQ_SPACE_LOST:
		npu_cq_space_lost(ndev, cq);
		break;
	case NPU_HW_CQ_MEM_GONE:
		npu_cq_mem_gone(ndev, cq);
		break;
	default:
		dev_warn_ratelimited(&ndev->pdev->dev, "unknown completion %u\n", cq->type);
		break;
	}
}

/* False: the index cannot be. */
static bool npu_cq_run(struct npu_device *ndev)
{
	struct npu_admin *admin = &ndev->admin;
	struct npu_hw_completion *cq = &admin->cq_copy;
	u32 tail, n, written = admin->cq_head;

	for (;;) {
		tail = readl(&ndev->regs->admin_cq_tail);
		if (tail == admin->cq_head)
			return true;
		if (tail - admin->cq_head > admin->cq_entries)
			return false;
		rmb(); /* the index before what it stands for */
		for (n = 0; admin->cq_head != tail && n < NPU_CQ_BATCH; n++) {
			memcpy_fromio(cq, admin->cq + (admin->cq_head & (admin->cq_entries - 1)) *
						      sizeof(*cq), sizeof(*cq));
			admin->cq_head++;
			npu_cq_one(ndev, cq);
		}
		writel(admin->cq_head, &ndev->regs->admin_cq_head);
		/* a card that found the ring full waits to be told */
		if (readl(&ndev->regs->admin_cq_tail) - written >= admin->cq_entries)
			npu_ring(ndev, NPU_HW_RING_ADMIN);
		written = admin->cq_head;
		cond_resched();
	}
}

void npu_admin_completions(struct npu_device *ndev)
{
	struct npu_admin *admin = &ndev->admin;
	bool sane = true;

	mutex_lock(&admin->cq_lock);
	if (!READ_ONCE(admin->frozen))
		sane = npu_cq_run(ndev);
	mutex_unlock(&admin->cq_lock);
	if (!sane)
		npu_watch_recover(ndev, npu_present(ndev) ?
				  "the index of the completion ring makes no sense" :
				  "the card does not answer");
	npu_admin_drain(ndev);
}
