// SPDX-License-Identifier: GPL-2.0
/*
 * Memory. Device memory is the core's page runs and an entry in the card's tables. Host memory
 * (kinds HOST and IMAGE) is zeroed pages of the machine, mapped for the card until MEM_GONE, and a
 * dma-buf as its fd: to be mapped by the client, or imported by another driver.
 *
 * At MEM_DESTROY every user mapping is taken away; at MEM_GONE the card's; the pages go when nobody
 * has the dma-buf attached any more. They go back to the kernel, never to the next session as they
 * are.
 *
 * Streaming mappings that last for the life of the memory: right on coherent machines, of which the
 * reference board knows no other.
 */
#include <linux/dma-buf.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "kdrv/npu_drv.h"
#include "kdrv/npu_trace.h"

#define NPU_FAULT_PAGES max(1ul, 65536ul / PAGE_SIZE)

static struct kmem_cache *npu_bo_cache;

/* ---- pages --------------------------------------------------------------------------------- */

static void npu_bo_pages_free(struct npu_bo *bo)
{
	unsigned long i;

	for (i = 0; i < bo->npages && bo->pages[i]; i++) {
		__free_page(bo->pages[i]);
		if (!(i % 1024))
			cond_resched();
	}
	kvfree(bo->pages);
	bo->pages = NULL;
	bo->npages = 0;
}

static int npu_bo_pages_alloc(struct npu_bo *bo)
{
	static const unsigned int orders[] = {
		ilog2(NPU_PAGE_LARGE) - PAGE_SHIFT, ilog2(NPU_PAGE_SMALL) - PAGE_SHIFT, 0,
	};
	unsigned int at = 0, order, i;
	unsigned long done = 0;
	struct page *page;
	gfp_t gfp;

	bo->npages = bo->bytes >> PAGE_SHIFT;
	bo->pages = kvcalloc(bo->npages, sizeof(*bo->pages), GFP_KERNEL_ACCOUNT);
	if (!bo->pages)
		return -ENOMEM;
	while (done < bo->npages) {
		order = orders[at];
		gfp = GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_NOWARN;
		if (order)
			gfp |= __GFP_NORETRY;
		page = (1ul << order) <= bo->npages - done ? alloc_pages(gfp, order) : NULL;
		if (!page) {
			if (++at == ARRAY_SIZE(orders))
				return -ENOMEM;
			continue;
		}
		/* single pages: user mappings and pins count each on its own */
		if (order)
			split_page(page, order);
		for (i = 0; i < 1u << order; i++)
			bo->pages[done++] = page + i;
		cond_resched();
		if (fatal_signal_pending(current))
			return -EINTR;
	}
	return 0;
}

/* The card has no way to the pages any more. */
static void npu_bo_unmap(struct npu_bo *bo)
{
	if (!bo->mapped)
		return;
	bo->mapped = false;
	dma_unmap_sgtable(&bo->ndev->pdev->dev, &bo->sgt, DMA_BIDIRECTIONAL, 0);
	sg_free_table(&bo->sgt);
}

static int npu_bo_map(struct npu_bo *bo)
{
	struct device *dev = &bo->ndev->pdev->dev;
	int r;

	r = sg_alloc_table_from_pages_segment(&bo->sgt, bo->pages, bo->npages, 0, bo->bytes,
					      dma_get_max_seg_size(dev), GFP_KERNEL_ACCOUNT);
	if (r < 0)
		return r;
	r = dma_map_sgtable(dev, &bo->sgt, DMA_BIDIRECTIONAL, 0);
	if (r < 0) {
		sg_free_table(&bo->sgt);
		return r;
	}
	bo->mapped = true;
	return 0;
}

/* ---- as a dma-buf -------------------------------------------------------------------------- */

static vm_fault_t npu_bo_fault(struct vm_fault *vmf)
{
	struct vm_area_struct *vma = vmf->vma;
	struct npu_bo *bo = vma->vm_private_data;
	unsigned long page, first, last;
	vm_fault_t ret;

	down_read(&bo->view.sem);
	if (bo->view.blank) {
		ret = npu_view_fault_blank(&bo->view, vmf);
		goto out;
	}
	if (vmf->pgoff >= bo->npages) {
		ret = VM_FAULT_SIGBUS;
		goto out;
	}
	ret = vmf_insert_page(vma, vmf->address, bo->pages[vmf->pgoff]);
	first = max(rounddown(vmf->pgoff, NPU_FAULT_PAGES), vma->vm_pgoff);
	last = min3(rounddown(vmf->pgoff, NPU_FAULT_PAGES) + NPU_FAULT_PAGES,
		    vma->vm_pgoff + vma_pages(vma), bo->npages);
	for (page = first; page < last && ret == VM_FAULT_NOPAGE; page++) {
		if (page != vmf->pgoff)
			ret = vmf_insert_page(vma, vma->vm_start +
					      ((page - vma->vm_pgoff) << PAGE_SHIFT),
					      bo->pages[page]);
	}
	/* a neighbour that failed is no fault of this address */
	if (page > first)
		ret = VM_FAULT_NOPAGE;
out:
	up_read(&bo->view.sem);
	return ret;
}

static const struct vm_operations_struct npu_bo_vm_ops = {
	.fault = npu_bo_fault,
};

/* dma-buf has checked offset and length. */
static int npu_dmabuf_mmap(struct dma_buf *dmabuf, struct vm_area_struct *vma)
{
	struct npu_bo *bo = dmabuf->priv;

	if (READ_ONCE(bo->view.blank))
		return -ENODEV;
	if (!(vma->vm_flags & VM_SHARED) || vma->vm_flags & VM_EXEC)
		return -EINVAL;
	vm_flags_clear(vma, VM_MAYEXEC);
	vm_flags_set(vma, VM_MIXEDMAP | VM_DONTEXPAND | VM_DONTDUMP);
	vma->vm_private_data = bo;
	vma->vm_ops = &npu_bo_vm_ops;
	return 0;
}

static int npu_dmabuf_attach(struct dma_buf *dmabuf, struct dma_buf_attachment *attach)
{
	struct npu_bo *bo = dmabuf->priv;

	return READ_ONCE(bo->view.blank) ? -ENODEV : 0;
}

static struct sg_table *npu_dmabuf_map(struct dma_buf_attachment *attach,
				       enum dma_data_direction direction)
{
	struct npu_bo *bo = attach->dmabuf->priv;
	struct sg_table *sgt = kzalloc(sizeof(*sgt), GFP_KERNEL);
	int r;

	if (!sgt)
		return ERR_PTR(-ENOMEM);
	r = sg_alloc_table_from_pages(sgt, bo->pages, bo->npages, 0, bo->bytes, GFP_KERNEL);
	if (r < 0)
		goto free;
	r = dma_map_sgtable(attach->dev, sgt, direction, 0);
	if (r < 0)
		goto table;
	return sgt;
table:
	sg_free_table(sgt);
free:
	kfree(sgt);
	return ERR_PTR(r);
}

static void npu_dmabuf_unmap(struct dma_buf_attachment *attach, struct sg_table *sgt,
			     enum dma_data_direction direction)
{
	dma_unmap_sgtable(attach->dev, sgt, direction, 0);
	sg_free_table(sgt);
	kfree(sgt);
}

static void npu_dmabuf_release(struct dma_buf *dmabuf)
{
	npu_bo_put(dmabuf->priv);
}

static const struct dma_buf_ops npu_dmabuf_ops = {
	.attach = npu_dmabuf_attach,
	.map_dma_buf = npu_dmabuf_map,
	.unmap_dma_buf = npu_dmabuf_unmap,
	.mmap = npu_dmabuf_mmap,
	.release = npu_dmabuf_release,
};

static int npu_bo_export(struct npu_bo *bo)
{
	DEFINE_DMA_BUF_EXPORT_INFO(info);
	struct dma_buf *dmabuf;

	info.ops = &npu_dmabuf_ops;
	info.size = bo->bytes;
	info.flags = O_RDWR;
	info.priv = bo;
	dmabuf = dma_buf_export(&info);
	if (IS_ERR(dmabuf))
		return PTR_ERR(dmabuf);
	kref_get(&bo->ref); /* the dma-buf's; it is our own reference to it that ends at destroy */
	bo->dmabuf = dmabuf;
	return 0;
}

struct file *npu_bo_file(struct npu_bo *bo)
{
	return bo->dmabuf ? get_file(bo->dmabuf->file) : NULL;
}

/* ---- life of a bo -------------------------------------------------------------------------- */

static void npu_bo_free(struct kref *ref)
{
	struct npu_bo *bo = container_of(ref, struct npu_bo, ref);

	npu_bo_unmap(bo);
	if (bo->pages)
		npu_bo_pages_free(bo);
	npu_view_fini(&bo->view);
	npu_node_free(bo->destroy);
	put_device(&bo->ndev->dev);
	kmem_cache_free(npu_bo_cache, bo);
}

void npu_bo_put(struct npu_bo *bo)
{
	kref_put(&bo->ref, npu_bo_free);
}

/* User space sees it no more. */
static void npu_bo_hide(struct npu_bo *bo)
{
	struct dma_buf *dmabuf = bo->dmabuf;

	if (!dmabuf)
		return;
	bo->dmabuf = NULL;
	npu_view_blank(&bo->view, dmabuf->file->f_mapping);
	dma_buf_put(dmabuf);
}

/* obj_lock is held. */
static void npu_bo_unlink(struct npu_bo *bo)
{
	list_del_init(&bo->link);
	if (bo->id)
		xa_erase(&bo->ndev->bo_ids, bo->id);
}

static void npu_bo_end(struct work_struct *work)
{
	struct npu_bo *bo = container_of(work, struct npu_bo, end);
	struct npu_device *ndev = bo->ndev;
	struct npu_mem *mem = bo->mem;

	trace_npu_alloc(ndev, bo->session_id, bo->id, bo->kind, bo->bytes, false);
	npu_bo_unmap(bo);
	mutex_lock(&ndev->obj_lock);
	npu_bo_unlink(bo);
	mutex_unlock(&ndev->obj_lock);
	npu_bo_put(bo);
	npu_core_mem_gone(ndev->core, mem);
}

static struct npu_bo *npu_bo_new(struct npu_device *ndev, u64 bytes)
{
	struct npu_bo *bo = kmem_cache_zalloc(npu_bo_cache, GFP_KERNEL_ACCOUNT);

	if (!bo)
		return NULL;
	bo->destroy = npu_node_new();
	if (!bo->destroy) {
		kmem_cache_free(npu_bo_cache, bo);
		return NULL;
	}
	kref_init(&bo->ref);
	INIT_LIST_HEAD(&bo->link);
	INIT_WORK(&bo->end, npu_bo_end);
	npu_view_init(&bo->view);
	get_device(&ndev->dev);
	bo->ndev = ndev;
	bo->bytes = bytes;
	return bo;
}

int npu_bo_new_device(struct npu_device *ndev, u64 bytes, struct npu_bo **ret_bo)
{
	*ret_bo = npu_bo_new(ndev, bytes);
	return *ret_bo ? 0 : -ENOMEM;
}

int npu_bo_new_host(struct npu_device *ndev, u64 bytes, struct npu_bo **ret_bo)
{
	struct npu_bo *bo = npu_bo_new(ndev, bytes);
	int r;

	if (!bo)
		return -ENOMEM;
	r = npu_bo_pages_alloc(bo);
	if (r == 0)
		r = npu_bo_map(bo);
	if (r == 0)
		r = npu_bo_export(bo);
	if (r < 0) {
		npu_bo_put(bo);
		return r;
	}
	*ret_bo = bo;
	return 0;
}

void npu_bo_discard(struct npu_bo *bo)
{
	npu_bo_hide(bo);
	npu_bo_put(bo);
}

/* Where it lies, for the card. */
static unsigned int npu_bo_runs(const struct npu_bo *bo, struct npu_hw_run *runs)
{
	struct scatterlist *sg;
	unsigned int i;

	if (bo->kind == NPU_MEM_DEVICE) {
		for (i = 0; runs && i < bo->mem->nruns; i++) {
			runs[i].start = bo->mem->runs[i].first;
			runs[i].count = bo->mem->runs[i].count;
		}
		return bo->mem->nruns;
	}
	if (runs) {
		for_each_sgtable_dma_sg(&bo->sgt, sg, i) {
			runs[i].start = sg_dma_address(sg);
			runs[i].count = sg_dma_len(sg);
		}
	}
	return bo->sgt.nents;
}

int npu_bo_create(struct npu_bo *bo, struct npu_mem *mem, struct npu_session *session)
{
	struct npu_device *ndev = bo->ndev;
	struct npu_space *space = session->backend;
	unsigned int nruns;
	struct npu_node *node;
	struct npu_req *req;
	int r;

	bo->mem = mem;
	bo->kind = mem->kind;
	bo->owner = session->file;
	bo->session_id = session->obj.id;
	bo->epoch = ndev->epoch;
	nruns = npu_bo_runs(bo, NULL);
	node = npu_node_new();
	req = npu_req_new(ndev, NPU_REQ_MEM, nruns * sizeof(struct npu_hw_run));
	if (!node || !req) {
		r = -ENOMEM;
		goto free;
	}
	npu_bo_runs(bo, req->buf);
	mutex_lock(&ndev->obj_lock);
	r = xa_alloc_cyclic(&ndev->bo_ids, &bo->id, bo, xa_limit_32b, &ndev->bo_next, GFP_KERNEL);
	if (r >= 0)
		list_add_tail(&bo->link, &ndev->bos);
	mutex_unlock(&ndev->obj_lock);
	if (r < 0)
		goto free;
	req->id = bo->id;
	node->cmd.op = NPU_ADMIN_MEM_CREATE;
	node->cmd.cid = req->cid;
	node->cmd.space = space->slot;
	node->cmd.session = bo->session_id;
	node->cmd.id = bo->id;
	node->cmd.mem.kind = mem->kind;
	node->cmd.mem.flags = mem->flags;
	node->cmd.mem.bytes = mem->bytes;
	node->cmd.mem.runs = req->dma;
	node->cmd.mem.nruns = nruns;
	trace_npu_alloc(ndev, bo->session_id, bo->id, bo->kind, bo->bytes, true);
	npu_admin_post(ndev, node);
	return 0;
free:
	npu_req_free(ndev, req);
	npu_node_free(node);
	return r;
}

void npu_bo_finish(struct npu_bo *bo)
{
	struct npu_device *ndev = bo->ndev;
	bool first;

	mutex_lock(&ndev->obj_lock);
	first = bo->state == NPU_BO_ENDED;
	if (first)
		bo->state = NPU_BO_FINISHING;
	mutex_unlock(&ndev->obj_lock);
	if (first)
		queue_work(ndev->wq, &bo->end);
}

int npu_bo_destroy(struct npu_bo *bo)
{
	struct npu_device *ndev = bo->ndev;
	struct npu_node *node = bo->destroy;

	bo->destroy = NULL;
	npu_bo_hide(bo);
	mutex_lock(&ndev->obj_lock);
	bo->state = NPU_BO_ENDED;
	mutex_unlock(&ndev->obj_lock);
	if (bo->epoch == ndev->epoch && !ndev->gone) {
		node->cmd.op = NPU_ADMIN_MEM_DESTROY;
		node->cmd.id = bo->id;
		npu_admin_post(ndev, node);
		return NPU_ADMIN_PENDING;
	}
	npu_node_free(node);
	/* unknown to the card; while it is being reset, the end of that finishes it */
	if (!ndev->gone && !READ_ONCE(ndev->admin.frozen))
		npu_bo_finish(bo);
	return NPU_ADMIN_PENDING;
}

void npu_bo_abandon(struct npu_bo *bo)
{
	npu_bo_hide(bo);
	npu_bo_unmap(bo);
	npu_bo_unlink(bo);
	npu_bo_put(bo);
}

int npu_bo_cache_init(void)
{
	npu_bo_cache = KMEM_CACHE(npu_bo, SLAB_ACCOUNT);
	return npu_bo_cache ? 0 : -ENOMEM;
}

void npu_bo_cache_exit(void)
{
	kmem_cache_destroy(npu_bo_cache);
}
