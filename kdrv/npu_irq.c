// SPDX-License-Identifier: GPL-2.0
/*
 * Interrupts. A vector's top half reads its status word and no more; the threaded half takes the
 * bits by exchange and acts. Interrupts coalesce and get lost while masked, so they are never
 * counted on: each look takes all there is, and there is one more look after unmasking and at each
 * tick of the watchdog.
 *
 * A vector that is raised too often is masked for some milliseconds; its work is then done by the
 * look that ends the pause.
 *
 * The handlers use what struct npu_vector holds: pci_irq_vector() takes a mutex in some kernels.
 */
#include <linux/interrupt.h>

#include "kdrv/npu_drv.h"
#include "kdrv/npu_trace.h"

#define NPU_STORM_WINDOW msecs_to_jiffies(20)
#define NPU_STORM_HITS 4000u /* a window: 200,000 a second */
#define NPU_STORM_PAUSE msecs_to_jiffies(10)
#define NPU_SPACE_VECTORS (NPU_HW_VECTORS - NPU_HW_IRQ_SPACE0)

static atomic64_t *npu_reg_atomic(u64 __iomem *word)
{
	return (atomic64_t __force *)word; /* BAR2 is memory on both sides */
}

/* ---- what there is to do ------------------------------------------------------------------- */

static void npu_irq_spaces(struct npu_device *ndev, struct npu_vector *vector)
{
	unsigned int words = DIV_ROUND_UP(ndev->slab_slots, 64), w, bit;
	struct npu_space *space;
	u64 bits;

	for (w = 0; w < words; w++) {
		if (!(readq(&ndev->regs->space_cause[w]) & vector->mask[w]))
			continue;
		bits = atomic64_fetch_andnot(vector->mask[w],
					     npu_reg_atomic(&ndev->regs->space_cause[w]));
		bits &= vector->mask[w];
		trace_npu_irq(ndev, vector->index, bits);
		for (; bits; bits &= bits - 1) {
			bit = w * 64 + __ffs64(bits);
			mutex_lock(&ndev->obj_lock);
			space = ndev->slots[bit];
			if (space && !space->finishing)
				kref_get(&space->ref);
			else
				space = NULL;
			mutex_unlock(&ndev->obj_lock);
			if (!space)
				continue;
			npu_space_completed(space);
			npu_space_put(space);
		}
	}
}

static void npu_irq_ecc(struct npu_device *ndev, u64 address)
{
	struct device *dev = &ndev->pdev->dev;
	u64 page = div64_u64(address, NPU_PAGE_SMALL);
	int r = page < U32_MAX ? npu_core_page_bad(ndev->core, page) : -ERANGE;

	atomic64_inc(&ndev->stats.ecc_uncorrected);
	if (r == -EEXIST)
		return;
	dev_err_ratelimited(dev, "uncorrectable memory error in page 0x%llx: %s\n", page,
			    r < 0 ? "no such page" : "retired");
	mutex_lock(&ndev->obj_lock);
	if (r == 0 && ndev->nbad < NPU_BAD_PAGES)
		ndev->bad_pages[ndev->nbad++] = page;
	mutex_unlock(&ndev->obj_lock);
	npu_watch_dump(ndev, "uncorrectable memory error", NULL);
}

static void npu_irq_errors(struct npu_device *ndev, struct npu_vector *vector)
{
	struct npu_hw_regs __iomem *regs = ndev->regs;
	struct device *dev = &ndev->pdev->dev;
	u64 cause = atomic64_xchg(npu_reg_atomic(&regs->error_cause), 0);
	u64 address = readq(&regs->error_address), info = readq(&regs->error_info);

	if (!cause)
		return;
	trace_npu_irq(ndev, vector->index, cause);
	if (cause == ~0ull) {
		npu_watch_recover(ndev, "the card does not answer");
		return;
	}
	if (cause & NPU_HW_CAUSE_ECC_CORRECTED) {
		atomic64_inc(&ndev->stats.ecc_corrected);
		dev_notice_ratelimited(dev, "corrected memory error at 0x%llx\n", address);
	}
	if (cause & NPU_HW_CAUSE_ECC_UNCORRECTED)
		npu_irq_ecc(ndev, address);
	if (cause & NPU_HW_CAUSE_DMA) {
		atomic64_inc(&ndev->stats.dma_errors);
		dev_err_ratelimited(dev, "the card's DMA met 0x%llx, which is no memory (0x%llx)\n",
				    address, info);
	}
	if (cause & NPU_HW_CAUSE_LINK)
		npu_watch_recover(ndev, "link error");
	if (cause & NPU_HW_CAUSE_FIRMWARE)
		npu_watch_recover(ndev, "the firmware has died");
}

static void npu_irq_work(struct npu_vector *vector)
{
	struct npu_device *ndev = vector->ndev;

	if (READ_ONCE(ndev->gone))
		return;
	atomic64_inc(&vector->runs);
	if (vector->index == NPU_HW_IRQ_ADMIN)
		npu_admin_completions(ndev);
	else if (vector->index == NPU_HW_IRQ_ERROR)
		npu_irq_errors(ndev, vector);
	else
		npu_irq_spaces(ndev, vector);
}

/* ---- the two halves ------------------------------------------------------------------------ */

/* One status word: is it worth to wake the thread? */
static bool npu_irq_pending(struct npu_vector *vector)
{
	struct npu_device *ndev = vector->ndev;
	struct npu_hw_regs __iomem *regs = ndev->regs;

	switch (vector->index) {
	case NPU_HW_IRQ_ADMIN:
		return readl(&regs->admin_cq_tail) != READ_ONCE(ndev->admin.cq_head) ||
		       READ_ONCE(ndev->admin.nbacklog);
	case NPU_HW_IRQ_ERROR:
		return readq(&regs->error_cause);
	default:
		/* cards of up to 64 sessions, else the thread looks at all words */
		return ndev->slab_slots > 64 || readq(&regs->space_cause[0]) & vector->mask[0];
	}
}

static bool npu_irq_storm(struct npu_vector *vector)
{
	if (time_after(jiffies, vector->window + NPU_STORM_WINDOW)) {
		vector->window = jiffies;
		vector->count = 0;
	}
	return ++vector->count > NPU_STORM_HITS;
}

static irqreturn_t npu_irq_top(int irq, void *data)
{
	struct npu_vector *vector = data;

	atomic64_inc(&vector->hits);
	if (npu_irq_storm(vector) && !vector->masked) {
		vector->masked = true;
		atomic64_inc(&vector->storms);
		disable_irq_nosync(irq);
		schedule_delayed_work(&vector->calm, NPU_STORM_PAUSE);
		return IRQ_HANDLED;
	}
	return npu_irq_pending(vector) ? IRQ_WAKE_THREAD : IRQ_HANDLED;
}

static irqreturn_t npu_irq_thread(int irq, void *data)
{
	npu_irq_work(data);
	return IRQ_HANDLED;
}

static void npu_irq_calm(struct work_struct *work)
{
	struct npu_vector *vector = container_of(to_delayed_work(work), struct npu_vector, calm);

	dev_warn_ratelimited(&vector->ndev->pdev->dev, "vector %u: interrupt storm, paused for %u ms\n",
			     vector->index, jiffies_to_msecs(NPU_STORM_PAUSE));
	vector->count = 0;
	vector->window = jiffies;
	vector->masked = false;
	enable_irq(vector->irq);
	npu_irq_work(vector); /* what came while it was masked */
}

void npu_irq_poll(struct npu_device *ndev)
{
	unsigned int i;

	for (i = 0; i < NPU_HW_VECTORS; i++) {
		if (ndev->vectors[i].requested && npu_irq_pending(&ndev->vectors[i]))
			npu_irq_work(&ndev->vectors[i]);
	}
}

/* ---- set up -------------------------------------------------------------------------------- */

static void npu_vector_init(struct npu_device *ndev, unsigned int index)
{
	struct npu_vector *vector = &ndev->vectors[index];
	u32 slot;

	vector->ndev = ndev;
	vector->index = index;
	vector->irq = pci_irq_vector(ndev->pdev, index);
	vector->window = jiffies;
	INIT_DELAYED_WORK(&vector->calm, npu_irq_calm);
	snprintf(vector->name, sizeof(vector->name), "npu%d-%s", ndev->id,
		 index == NPU_HW_IRQ_ADMIN ? "admin" :
		 index == NPU_HW_IRQ_ERROR ? "error" : "space");
	if (index < NPU_HW_IRQ_SPACE0)
		return;
	for (slot = index - NPU_HW_IRQ_SPACE0; slot < ndev->slab_slots; slot += NPU_SPACE_VECTORS)
		vector->mask[slot / 64] |= 1ull << (slot % 64);
}

int npu_irq_init(struct npu_device *ndev)
{
	struct pci_dev *pdev = ndev->pdev;
	unsigned int i;
	int r;

	r = pci_alloc_irq_vectors(pdev, NPU_HW_VECTORS, NPU_HW_VECTORS, PCI_IRQ_MSIX);
	if (r < 0) {
		dev_err(&pdev->dev, "no %u MSI-X vectors: error %d\n", NPU_HW_VECTORS, r);
		return r;
	}
	for (i = 0; i < NPU_HW_VECTORS; i++) {
		npu_vector_init(ndev, i);
		r = request_threaded_irq(ndev->vectors[i].irq, npu_irq_top, npu_irq_thread, 0,
					 ndev->vectors[i].name, &ndev->vectors[i]);
		if (r < 0) {
			dev_err(&pdev->dev, "vector %u: error %d\n", i, r);
			npu_irq_fini(ndev);
			return r;
		}
		ndev->vectors[i].requested = true;
	}
	return 0;
}

void npu_irq_fini(struct npu_device *ndev)
{
	unsigned int i;

	for (i = 0; i < NPU_HW_VECTORS; i++) {
		struct npu_vector *vector = &ndev->vectors[i];

		if (!vector->requested)
			continue;
		vector->requested = false;
		/* the handler arms the work, the work enables the handler: off first */
		disable_irq(vector->irq);
		if (cancel_delayed_work_sync(&vector->calm))
			enable_irq(vector->irq);
		free_irq(vector->irq, vector);
	}
	pci_free_irq_vectors(ndev->pdev);
}
