// SPDX-License-Identifier: GPL-2.0
/*
 * A session's slab in BAR2, as the driver touches it: its header, SUBMIT for callers without a
 * mapped ring, and waits of npud. Nothing here is the truth for anybody but the
 * session itself: its client may write every byte at any time, so a value is read once and is never
 * an index into anything of the driver's.
 */
#include <linux/slab.h>

#include "kdrv/npu_drv.h"
#include "kdrv/npu_trace.h"

void __iomem *npu_space_slab(struct npu_space *space)
{
	struct npu_device *ndev = space->ndev;

	return ndev->slabs + space->slot * ndev->slab_stride;
}

struct npu_ring_ctrl __iomem *npu_space_ring(struct npu_space *space, u32 slot)
{
	return npu_space_slab(space) + NPU_SLAB_RINGS + slot * sizeof(struct npu_ring_ctrl);
}

/* Atomics on words that card and client change, too. BAR2 is memory to the processor. */
static void npu_slab_set_bit(u64 __iomem *words, u32 bit)
{
	atomic64_t *word = (atomic64_t __force *)(words + bit / 64);

	atomic64_or(1ull << (bit % 64), word);
}

void npu_space_submit(struct npu_space *space, u32 slot, const struct npu_entry *entries,
		      u32 count, u32 *ret_taken, u64 *ret_tail)
{
	struct npu_slab_header __iomem *header = npu_space_slab(space);
	struct npu_ring_ctrl __iomem *ring = npu_space_ring(space, slot);
	void __iomem *data = npu_space_slab(space) + NPU_SLAB_DATA + (u64)slot * NPU_RING_BYTES;
	u64 tail = readq(&ring->tail), used = tail - readq(&ring->done);
	u32 room = used < NPU_RING_ENTRIES ? NPU_RING_ENTRIES - used : 0, i;

	count = min(count, room);
	for (i = 0; i < count; i++)
		memcpy_toio(data + ((tail + i) & (NPU_RING_ENTRIES - 1)) * sizeof(*entries),
			    &entries[i], sizeof(*entries));
	wmb(); /* entries before the tail: write-combined memory has no order of its own */
	writeq(tail + count, &ring->tail);
	writel(0, &ring->armed);
	npu_slab_set_bit(header->pending, slot);
	trace_npu_submit(space->ndev, space->session_id, slot, count, tail + count);
	*ret_taken = count;
	*ret_tail = tail + count;
}

u64 npu_space_done(struct npu_space *space, u32 slot)
{
	u64 done = readq(&npu_space_ring(space, slot)->done);

	rmb(); /* what the task has written is there */
	return done;
}

void npu_space_bell(struct npu_space *space)
{
	struct npu_device *ndev = space->ndev;

	atomic64_inc(&ndev->stats.doorbells);
	trace_npu_doorbell(ndev, space->session_id, space->slot);
	wmb(); /* the client's stores before the bit: it may have come here by another processor */
	npu_slab_set_bit(ndev->regs->queue_bell, space->slot);
	npu_ring(ndev, NPU_HW_RING_QUEUES);
}

/* ---- waits of npud ------------------------------------------------------------------------- */

/* Asks to be told: as the client does when it sleeps. want only goes down. */
static void npu_wait_publish(struct npu_space *space, const struct npu_wait_entry *wait)
{
	struct npu_slab_header __iomem *header = npu_space_slab(space);
	struct npu_ring_ctrl __iomem *ring = npu_space_ring(space, wait->slot);

	if (wait->want < readq(&ring->want))
		writeq(wait->want, &ring->want);
	writel(1, &header->client_waiting);
	mb(); /* and then look again: see the protocol in npu_queue.h */
}

int npu_space_wait_arm(struct npu_space *space, struct npu_queue *queue, u64 want)
{
	struct npu_wait_entry *wait;

	npu_space_wait_drop(space, queue->obj.id);
	wait = kzalloc(sizeof(*wait), GFP_KERNEL_ACCOUNT);
	if (!wait)
		return -ENOMEM;
	wait->queue = queue->obj.id;
	wait->slot = queue->slot;
	wait->want = want;
	list_add_tail(&wait->link, &space->waits);
	WRITE_ONCE(space->waiting, true);
	npu_wait_publish(space, wait);
	/* reached meanwhile: the handler that will look needs no interrupt of the card */
	if (npu_space_done(space, wait->slot) >= want)
		queue_work(space->ndev->wq, &space->look);
	return 0;
}

void npu_space_wait_drop(struct npu_space *space, u32 queue)
{
	struct npu_wait_entry *wait, *next;

	list_for_each_entry_safe(wait, next, &space->waits, link) {
		if (queue && wait->queue != queue)
			continue;
		list_del(&wait->link);
		kfree(wait);
	}
	WRITE_ONCE(space->waiting, !list_empty(&space->waits));
}

void npu_space_waits_check(struct npu_space *space)
{
	struct npu_device *ndev = space->ndev;
	struct npu_wait_entry *wait, *next;
	LIST_HEAD(reached);

	npu_core_lock(ndev->core);
	list_for_each_entry_safe(wait, next, &space->waits, link) {
		if (npu_space_done(space, wait->slot) >= wait->want)
			list_move_tail(&wait->link, &reached);
		else if (!READ_ONCE(space->dead)) /* else the card erases the slab */
			npu_wait_publish(space, wait);
	}
	WRITE_ONCE(space->waiting, !list_empty(&space->waits));
	npu_core_unlock(ndev->core);
	list_for_each_entry_safe(wait, next, &reached, link) {
		npu_core_queue_done(ndev->core, space->session, wait->queue, wait->want);
		kfree(wait);
	}
}

void npu_slab_prepare(struct npu_space *space, u64 address)
{
	struct npu_slab_header __iomem *header = npu_space_slab(space);

	writel(NPU_QUEUE_MAGIC, &header->magic);
	writel(NPU_QUEUE_MAJOR, &header->major);
	writel(NPU_MAX_QUEUES, &header->max_queues);
	writel(NPU_RING_ENTRIES, &header->ring_entries);
	writeq(address, &header->slab_address);
	writel(1, &header->device_sleeping);
	wmb(); /* before the card is told of it */
}
