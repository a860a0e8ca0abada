// SPDX-License-Identifier: GPL-2.0
/*
 * The admin submission ring. Posting never waits and never fails: what finds no room, or comes
 * while the card is being reset, waits in the backlog, in order. Requests are commands whose
 * completion somebody wants, and own the DMA buffer that the card needs until then.
 */
#include <linux/slab.h>

#include "kdrv/npu_drv.h"
#include "kdrv/npu_trace.h"

#define NPU_CID_KICK 1u        /* wanted for the interrupt alone */

/* ---- submission ---------------------------------------------------------------------------- */

struct npu_node *npu_node_new(void)
{
	return kzalloc(sizeof(struct npu_node), GFP_KERNEL_ACCOUNT);
}

void npu_node_free(struct npu_node *node)
{
	kfree(node);
}

/* lock is held. */
static bool npu_admin_room(struct npu_device *ndev)
{
	struct npu_admin *admin = &ndev->admin;

	return admin->tail - readl(&ndev->regs->admin_sq_head) < admin->sq_entries;
}

/* lock is held; there is room. */
static void npu_admin_place(struct npu_device *ndev, struct npu_node *node, bool more)
{
	struct npu_admin *admin = &ndev->admin;
	u32 at = admin->tail & (admin->sq_entries - 1);

	/* somebody waits behind this one: be told when it was taken */
	if (more && !node->cmd.cid)
		node->cmd.cid = NPU_CID_KICK;
	memcpy_toio(admin->sq + at * sizeof(node->cmd), &node->cmd, sizeof(node->cmd));
	admin->tail++;
	wmb(); /* the command before the index */
	writel(admin->tail, &ndev->regs->admin_sq_tail);
}

void npu_admin_post(struct npu_device *ndev, struct npu_node *node)
{
	struct npu_admin *admin = &ndev->admin;
	bool placed = false;

	trace_npu_admin(ndev, &node->cmd);
	spin_lock(&admin->lock);
	admin->posted++;
	if (!admin->frozen && list_empty(&admin->backlog) && npu_admin_room(ndev)) {
		npu_admin_place(ndev, node, false);
		placed = true;
	} else {
		list_add_tail(&node->link, &admin->backlog);
		admin->nbacklog++;
	}
	spin_unlock(&admin->lock);
	if (placed) {
		npu_ring(ndev, NPU_HW_RING_ADMIN);
		npu_node_free(node);
	}
}

void npu_admin_drain(struct npu_device *ndev)
{
	struct npu_admin *admin = &ndev->admin;
	struct npu_node *node;
	LIST_HEAD(placed);

	spin_lock(&admin->lock);
	while (!admin->frozen && !list_empty(&admin->backlog) && npu_admin_room(ndev)) {
		node = list_first_entry(&admin->backlog, struct npu_node, link);
		list_move_tail(&node->link, &placed);
		admin->nbacklog--;
		npu_admin_place(ndev, node, admin->nbacklog);
	}
	spin_unlock(&admin->lock);
	if (list_empty(&placed))
		return;
	npu_ring(ndev, NPU_HW_RING_ADMIN);
	while (!list_empty(&placed)) {
		node = list_first_entry(&placed, struct npu_node, link);
		list_del(&node->link);
		npu_node_free(node);
	}
}

void npu_admin_freeze(struct npu_device *ndev, bool drop)
{
	struct npu_admin *admin = &ndev->admin;
	struct npu_node *node, *next;
	LIST_HEAD(dropped);

	spin_lock(&admin->lock);
	admin->frozen = true;
	if (drop) {
		/* what the card knew so far it will have forgotten */
		ndev->epoch++;
		list_splice_init(&admin->backlog, &dropped);
		admin->nbacklog = 0;
	}
	spin_unlock(&admin->lock);
	list_for_each_entry_safe(node, next, &dropped, link)
		npu_node_free(node);
}

void npu_admin_thaw(struct npu_device *ndev, bool reset, u32 epoch)
{
	struct npu_admin *admin = &ndev->admin;

	mutex_lock(&admin->cq_lock);
	spin_lock(&admin->lock);
	if (reset) {
		admin->tail = 0;
		admin->cq_head = 0;
	}
	if (ndev->epoch == epoch) /* else one more reset has begun */
		admin->frozen = false;
	admin->seen_head = readl(&ndev->regs->admin_sq_head);
	admin->seen_at = jiffies;
	spin_unlock(&admin->lock);
	mutex_unlock(&admin->cq_lock);
	npu_admin_drain(ndev);
}

bool npu_admin_stalled(struct npu_device *ndev, unsigned long ticks)
{
	struct npu_admin *admin = &ndev->admin;
	u32 head = readl(&ndev->regs->admin_sq_head);
	bool stalled = false;

	spin_lock(&admin->lock);
	if (admin->frozen || head != admin->seen_head || head == admin->tail) {
		admin->seen_head = head;
		admin->seen_at = jiffies;
	} else {
		stalled = time_after(jiffies, admin->seen_at + ticks);
	}
	spin_unlock(&admin->lock);
	return stalled;
}

void npu_admin_wait(struct npu_device *ndev, u32 cid, unsigned int ms)
{
	wait_event_killable_timeout(ndev->admin.wait,
				    READ_ONCE(ndev->gone) || !xa_load(&ndev->reqs, cid),
				    msecs_to_jiffies(ms));
}

int npu_admin_init(struct npu_device *ndev)
{
	struct npu_admin *admin = &ndev->admin;

	spin_lock_init(&admin->lock);
	mutex_init(&admin->cq_lock);
	INIT_LIST_HEAD(&admin->backlog);
	init_waitqueue_head(&admin->wait);
	admin->frozen = true;
	return 0;
}

void npu_admin_fini(struct npu_device *ndev)
{
	npu_admin_freeze(ndev, true);
	npu_req_drop(ndev, NULL, true);
	xa_destroy(&ndev->reqs);
	xa_destroy(&ndev->bo_ids);
}

/* ---- requests ------------------------------------------------------------------------------ */

struct npu_req *npu_req_new(struct npu_device *ndev, enum npu_req_type type, size_t bytes)
{
	struct npu_req *req = kzalloc(sizeof(*req), GFP_KERNEL_ACCOUNT);

	if (!req)
		return NULL;
	req->type = type;
	req->epoch = ndev->epoch;
	if (bytes) {
		req->buf = dma_alloc_coherent(&ndev->pdev->dev, bytes, &req->dma,
					      GFP_KERNEL | __GFP_NOWARN);
		if (!req->buf)
			goto free;
		req->bytes = bytes;
	}
	if (xa_alloc_cyclic(&ndev->reqs, &req->cid, req, XA_LIMIT(NPU_CID_KICK + 1, U32_MAX),
			    &ndev->req_next, GFP_KERNEL) < 0)
		goto free;
	return req;
free:
	npu_req_free(ndev, req);
	return NULL;
}

void npu_req_free(struct npu_device *ndev, struct npu_req *req)
{
	if (!req)
		return;
	if (req->cid)
		xa_erase(&ndev->reqs, req->cid);
	if (req->buf)
		dma_free_coherent(&ndev->pdev->dev, req->bytes, req->buf, req->dma);
	kfree(req);
}

void npu_req_drop(struct npu_device *ndev, const struct npu_space *space, bool all)
{
	struct npu_req *req;
	unsigned long cid;

	/* whoever takes one out of the array has it alone */
	xa_for_each(&ndev->reqs, cid, req) {
		if (space ? req->space != space : !all && req->epoch == ndev->epoch)
			continue;
		if (xa_erase(&ndev->reqs, cid) != req)
			continue;
		req->cid = 0;
		npu_req_free(ndev, req);
	}
	wake_up_all(&ndev->admin.wait);
}
