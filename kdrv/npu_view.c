// SPDX-License-Identifier: GPL-2.0
/*
 * What user space has mapped of an object, and how it is taken away: the object goes blank under a
 * semaphore that every fault holds, then the page tables are emptied; from there on faults give one
 * zeroed page of the object's own. So a program that stores in a loop lives through an unplug, and
 * no page is ever shown to two owners.
 *
 * Files of spaces lie on a pseudo file system of the driver, one inode an object: only such a
 * mapping can be zapped without touching those of others. The file system has no owner, else it
 * would pin the module for ever; its files do that while they are open.
 */
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/fs_context.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mount.h>
#include <linux/pseudo_fs.h>

#include "kdrv/npu_drv.h"

#define NPU_FS_MAGIC 0x4e505546 /* "NPUF" */

static struct vfsmount *npu_mount;

void npu_view_init(struct npu_view *view)
{
	init_rwsem(&view->sem);
	view->blank = false;
	view->page = NULL;
}

void npu_view_fini(struct npu_view *view)
{
	if (view->page)
		__free_page(view->page);
	view->page = NULL;
}

void npu_view_blank(struct npu_view *view, struct address_space *mapping)
{
	down_write(&view->sem);
	view->blank = true;
	up_write(&view->sem);
	if (mapping)
		unmap_mapping_range(mapping, 0, 0, 1);
}

static struct page *npu_view_page(struct npu_view *view)
{
	struct page *page = READ_ONCE(view->page), *other;

	if (page)
		return page;
	page = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);
	if (!page)
		return NULL;
	other = cmpxchg(&view->page, NULL, page);
	if (other) {
		__free_page(page);
		page = other;
	}
	return page;
}

vm_fault_t npu_view_fault_blank(struct npu_view *view, struct vm_fault *vmf)
{
	struct page *page = npu_view_page(view);

	if (!page)
		return VM_FAULT_OOM;
	if (vmf->vma->vm_flags & VM_PFNMAP)
		return vmf_insert_pfn(vmf->vma, vmf->address, page_to_pfn(page));
	return vmf_insert_page(vmf->vma, vmf->address, page);
}

struct inode *npu_fs_inode(void)
{
	return alloc_anon_inode(npu_mount->mnt_sb);
}

struct file *npu_fs_file(struct inode *inode, const char *name, const struct file_operations *fops,
			 void *private)
{
	struct file *file;

	/* a file made this way holds no module by itself, but gives one back at its end */
	if (!fops_get(fops))
		return ERR_PTR(-ENODEV);
	ihold(inode);
	file = alloc_file_pseudo(inode, npu_mount, name, O_RDWR | O_NONBLOCK, fops);
	if (IS_ERR(file)) {
		iput(inode);
		fops_put(fops);
		return file;
	}
	stream_open(inode, file);
	file->private_data = private;
	return file;
}

static int npu_fs_init_context(struct fs_context *fc)
{
	return init_pseudo(fc, NPU_FS_MAGIC) ? 0 : -ENOMEM;
}

static struct file_system_type npu_fs_type = {
	.name = "npu",
	.init_fs_context = npu_fs_init_context,
	.kill_sb = kill_anon_super,
};

int npu_fs_init(void)
{
	npu_mount = kern_mount(&npu_fs_type);
	return PTR_ERR_OR_ZERO(npu_mount);
}

void npu_fs_exit(void)
{
	kern_unmount(npu_mount);
}
