// SPDX-License-Identifier: GPL-2.0
/*
 * Address spaces and their files. One queue file serves as slab (mmap), doorbell (write 8 bytes)
 * and completion (poll, read 8 bytes); a life file only says by HUP that engine or card are gone.
 * None has an ioctl: a client that holds them can do nothing but that.
 *
 * Life of a space: made with its session; killed (SPACE_STOP, reset, unplug); ended (SPACE_DESTROY
 * posted); finished (SPACE_GONE came: the card has erased its slab, the slot is free again). Its
 * files may outlive all of that. Its mappings are taken away before the card erases the slab.
 */
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/poll.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "kdrv/npu_drv.h"
#include "kdrv/npu_trace.h"

#define NPU_FAULT_PAGES max(1ul, 65536ul / PAGE_SIZE)

static struct kmem_cache *npu_space_cache;

/* ---- mapping ------------------------------------------------------------------------------- */

static vm_fault_t npu_slab_fault(struct vm_fault *vmf)
{
	struct vm_area_struct *vma = vmf->vma;
	struct npu_space *space = vma->vm_private_data;
	struct npu_device *ndev = space->ndev;
	unsigned long pfn, page, first, last;
	vm_fault_t ret;

	down_read(&space->view.sem);
	if (space->view.blank) {
		ret = npu_view_fault_blank(&space->view, vmf);
		goto out;
	}
	pfn = (ndev->bar2 + ndev->slab_offset + space->slot * ndev->slab_stride) >> PAGE_SHIFT;
	ret = vmf_insert_pfn(vma, vmf->address, pfn + vmf->pgoff);
	/* its neighbours, for a sixteenth of the faults */
	first = rounddown(vmf->pgoff, NPU_FAULT_PAGES);
	last = min(first + NPU_FAULT_PAGES, vma->vm_pgoff + vma_pages(vma));
	first = max(first, vma->vm_pgoff);
	for (page = first; page < last && ret == VM_FAULT_NOPAGE; page++) {
		if (page != vmf->pgoff)
			ret = vmf_insert_pfn(vma, vma->vm_start +
					     ((page - vma->vm_pgoff) << PAGE_SHIFT), pfn + page);
	}
	/* a neighbour that failed is no fault of this address */
	if (page > first)
		ret = VM_FAULT_NOPAGE;
out:
	up_read(&space->view.sem);
	return ret;
}

static const struct vm_operations_struct npu_slab_vm_ops = {
	.fault = npu_slab_fault,
#ifdef CONFIG_HAVE_IOREMAP_PROT
	.access = generic_access_phys, /* debuggers */
#endif
};

static int npu_queue_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct npu_space *space = file->private_data;
	unsigned long pages = NPU_SLAB_SIZE >> PAGE_SHIFT;

	if (READ_ONCE(space->dead))
		return -ENODEV;
	if (!(vma->vm_flags & VM_SHARED) || vma->vm_flags & VM_EXEC ||
	    vma->vm_pgoff >= pages || vma_pages(vma) > pages - vma->vm_pgoff)
		return -EINVAL;
	vm_flags_clear(vma, VM_MAYEXEC);
	vm_flags_set(vma, VM_PFNMAP | VM_IO | VM_DONTEXPAND | VM_DONTDUMP);
	vma->vm_page_prot = pgprot_writecombine(vma->vm_page_prot);
	vma->vm_private_data = space;
	vma->vm_ops = &npu_slab_vm_ops;
	return 0;
}

/* ---- the queue file ------------------------------------------------------------------------ */

static ssize_t npu_queue_write(struct file *file, const char __user *buf, size_t bytes,
			       loff_t *offset)
{
	struct npu_space *space = file->private_data;
	ssize_t ret = sizeof(u64);
	u64 value;
	int idx;

	if (bytes < sizeof(value))
		return -EINVAL;
	if (copy_from_user(&value, buf, sizeof(value)))
		return -EFAULT;
	if (!npu_device_enter(space->ndev, &idx))
		return -ENODEV;
	if (READ_ONCE(space->dead))
		ret = -ENODEV;
	else
		npu_space_bell(space);
	npu_device_exit(space->ndev, idx);
	return ret;
}

static u64 npu_queue_take(struct npu_space *space)
{
	u64 count;

	spin_lock(&space->lock);
	count = space->count;
	space->count = 0;
	spin_unlock(&space->lock);
	return count;
}

static ssize_t npu_queue_read(struct file *file, char __user *buf, size_t bytes, loff_t *offset)
{
	struct npu_space *space = file->private_data;
	u64 count;

	if (bytes < sizeof(count))
		return -EINVAL;
	for (;;) {
		count = npu_queue_take(space);
		if (count)
			break;
		if (READ_ONCE(space->dead))
			return -ENODEV;
		if (file->f_flags & O_NONBLOCK)
			return -EAGAIN;
		if (wait_event_interruptible(space->wait,
					     READ_ONCE(space->count) || READ_ONCE(space->dead)))
			return -ERESTARTSYS;
	}
	return copy_to_user(buf, &count, sizeof(count)) ? -EFAULT : sizeof(count);
}

static __poll_t npu_queue_poll(struct file *file, poll_table *wait)
{
	struct npu_space *space = file->private_data;
	__poll_t mask = 0;

	poll_wait(file, &space->wait, wait);
	if (READ_ONCE(space->dead))
		return EPOLLIN | EPOLLRDNORM | EPOLLHUP | EPOLLERR;
	mask |= EPOLLOUT | EPOLLWRNORM;
	if (READ_ONCE(space->count))
		mask |= EPOLLIN | EPOLLRDNORM;
	return mask;
}

static int npu_space_release(struct inode *inode, struct file *file)
{
	npu_space_put(file->private_data);
	return 0;
}

static const struct file_operations npu_queue_fops = {
	.owner = THIS_MODULE,
	.mmap = npu_queue_mmap,
	.read = npu_queue_read,
	.write = npu_queue_write,
	.poll = npu_queue_poll,
	.release = npu_space_release,
};

/* ---- the life file ------------------------------------------------------------------------- */

static __poll_t npu_life_poll(struct file *file, poll_table *wait)
{
	struct npu_space *space = file->private_data;

	poll_wait(file, &space->wait, wait);
	return READ_ONCE(space->dead) ? EPOLLHUP : 0;
}

/* As the read end of a pipe to which nobody writes. */
static ssize_t npu_life_read(struct file *file, char __user *buf, size_t bytes, loff_t *offset)
{
	struct npu_space *space = file->private_data;

	if (READ_ONCE(space->dead))
		return 0;
	if (file->f_flags & O_NONBLOCK)
		return -EAGAIN;
	return wait_event_interruptible(space->wait, READ_ONCE(space->dead));
}

static const struct file_operations npu_life_fops = {
	.owner = THIS_MODULE,
	.read = npu_life_read,
	.poll = npu_life_poll,
	.release = npu_space_release,
};

struct file *npu_space_file(struct npu_space *space, enum npu_fd_kind kind)
{
	bool life = kind == NPU_FD_LIFE;
	struct file *file;

	kref_get(&space->ref);
	file = npu_fs_file(space->inode, life ? "npu-life" : "npu-queue",
			   life ? &npu_life_fops : &npu_queue_fops, space);
	if (IS_ERR(file))
		npu_space_put(space);
	return file;
}

/* ---- life of a space ----------------------------------------------------------------------- */

static void npu_space_free(struct kref *ref)
{
	struct npu_space *space = container_of(ref, struct npu_space, ref);

	iput(space->inode);
	npu_view_fini(&space->view);
	npu_node_free(space->stop);
	npu_node_free(space->destroy);
	put_device(&space->ndev->dev);
	kmem_cache_free(npu_space_cache, space);
}

void npu_space_put(struct npu_space *space)
{
	kref_put(&space->ref, npu_space_free);
}

/* Out of the device's reach: the slot is free. obj_lock is held. */
static void npu_space_unlink(struct npu_space *space)
{
	struct npu_device *ndev = space->ndev;

	list_del_init(&space->link);
	ndev->slots[space->slot] = NULL;
	clear_bit(space->slot, ndev->slots_used);
}

static void npu_space_end(struct work_struct *work)
{
	struct npu_space *space = container_of(work, struct npu_space, end);
	struct npu_device *ndev = space->ndev;
	struct npu_session *session = space->session;

	npu_req_drop(ndev, space, false);
	cancel_work_sync(&space->look);
	npu_core_lock(ndev->core);
	npu_space_wait_drop(space, 0);
	npu_core_unlock(ndev->core);
	mutex_lock(&ndev->obj_lock);
	npu_space_unlink(space);
	mutex_unlock(&ndev->obj_lock);
	npu_core_space_gone(ndev->core, session);
	npu_space_put(space);
}

static void npu_space_look(struct work_struct *work)
{
	npu_space_waits_check(container_of(work, struct npu_space, look));
}

void npu_space_finish(struct npu_space *space)
{
	struct npu_device *ndev = space->ndev;
	bool first;

	mutex_lock(&ndev->obj_lock);
	first = !space->finishing;
	space->finishing = true;
	mutex_unlock(&ndev->obj_lock);
	if (first)
		queue_work(ndev->wq, &space->end);
}

void npu_space_abandon(struct npu_space *space)
{
	npu_space_wait_drop(space, 0);
	npu_space_unlink(space);
	npu_space_put(space);
}

void npu_space_kill(struct npu_space *space, bool blank)
{
	WRITE_ONCE(space->dead, true);
	wake_up_poll(&space->wait, EPOLLIN | EPOLLHUP | EPOLLERR);
	wake_up_all(&space->wait);
	if (blank)
		npu_view_blank(&space->view, space->inode->i_mapping);
}

static int npu_space_slot(struct npu_space *space)
{
	struct npu_device *ndev = space->ndev;
	u32 slot;
	int r = -EBUSY;

	mutex_lock(&ndev->obj_lock);
	slot = find_first_zero_bit(ndev->slots_used, ndev->slab_slots);
	if (slot < ndev->slab_slots) {
		set_bit(slot, ndev->slots_used);
		space->slot = slot;
		ndev->slots[slot] = space;
		list_add_tail(&space->link, &ndev->spaces);
		r = 0;
	}
	mutex_unlock(&ndev->obj_lock);
	return r;
}

int npu_space_create(struct npu_device *ndev, struct npu_session *session)
{
	struct npu_space *space = kmem_cache_zalloc(npu_space_cache, GFP_KERNEL_ACCOUNT);
	int r = -ENOMEM;

	if (!space)
		return -ENOMEM;
	kref_init(&space->ref);
	space->ndev = ndev;
	space->session = session;
	space->session_id = session->obj.id;
	space->epoch = ndev->epoch;
	INIT_LIST_HEAD(&space->link);
	INIT_LIST_HEAD(&space->waits);
	INIT_WORK(&space->end, npu_space_end);
	INIT_WORK(&space->look, npu_space_look);
	init_waitqueue_head(&space->wait);
	spin_lock_init(&space->lock);
	npu_view_init(&space->view);
	space->stop = npu_node_new();
	space->destroy = npu_node_new();
	if (!space->stop || !space->destroy)
		goto nodes;
	space->inode = npu_fs_inode();
	if (IS_ERR(space->inode)) {
		r = PTR_ERR(space->inode);
		goto nodes;
	}
	r = npu_space_slot(space);
	if (r < 0)
		goto inode;
	get_device(&ndev->dev);
	npu_slab_prepare(space, session->slab_address);
	session->backend = space;
	return 0;
inode:
	iput(space->inode);
nodes:
	npu_node_free(space->stop);
	npu_node_free(space->destroy);
	kmem_cache_free(npu_space_cache, space);
	return r;
}

void npu_space_completed(struct npu_space *space)
{
	struct npu_device *ndev = space->ndev;

	atomic64_inc(&ndev->stats.wakes);
	trace_npu_wake(ndev, space->session_id, space->slot);
	spin_lock(&space->lock);
	space->count++;
	spin_unlock(&space->lock);
	wake_up_interruptible_poll(&space->wait, EPOLLIN | EPOLLRDNORM);
	if (READ_ONCE(space->waiting))
		npu_space_waits_check(space);
}

int npu_space_cache_init(void)
{
	npu_space_cache = KMEM_CACHE(npu_space, SLAB_ACCOUNT);
	return npu_space_cache ? 0 : -ENOMEM;
}

void npu_space_cache_exit(void)
{
	kmem_cache_destroy(npu_space_cache);
}
