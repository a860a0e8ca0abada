// SPDX-License-Identifier: GPL-2.0
/*
 * One call from user space: its bytes are copied once, the core decides, the bytes go back. Sizes,
 * flags and reserved fields are the core's to check, by the number of the call; what is Linux's own
 * is here: files in the reply, memory that is made before the core is locked, and the two calls
 * whose answer waits for the card (after the core is unlocked).
 */
#include <linux/compat.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "kdrv/npu_drv.h"
#include "kdrv/npu_trace.h"

#define NPU_STACK_BYTES 512u
#define NPU_SYNC_WAIT_MS 2000u
#define NPU_COUNTERS_WAIT_MS 50u

/* The shim's functions run in the caller's context, with no way to hand them more than the core
 * knows: the call in progress is found by its task.
 */
struct npu_call_ctx *npu_call_current(struct npu_device *ndev)
{
	struct npu_call_ctx *ctx, *found = NULL;

	spin_lock(&ndev->calls_lock);
	list_for_each_entry(ctx, &ndev->calls, link) {
		if (ctx->task == current) {
			found = ctx;
			break;
		}
	}
	spin_unlock(&ndev->calls_lock);
	return found;
}

int npu_ioctl_fd_add(struct npu_call_ctx *ctx, struct file *file, s32 *ret_slot)
{
	int fd;

	if (!ctx || ctx->nfds == NPU_REPLY_FDS) {
		fput(file);
		return -EMFILE;
	}
	fd = get_unused_fd_flags(O_CLOEXEC);
	if (fd < 0) {
		fput(file);
		return fd;
	}
	ctx->fds[ctx->nfds] = fd;
	ctx->files[ctx->nfds++] = file;
	*ret_slot = fd;
	return 0;
}

static void npu_ioctl_fds(struct npu_call_ctx *ctx, bool install)
{
	unsigned int i;

	for (i = 0; i < ctx->nfds; i++) {
		if (install) {
			fd_install(ctx->fds[i], ctx->files[i]);
		} else {
			put_unused_fd(ctx->fds[i]);
			fput(ctx->files[i]);
		}
	}
	ctx->nfds = 0;
}

/* Pages are zeroed and mapped while nobody waits for the core, which judges the call later. */
static void npu_ioctl_prepare(struct npu_device *ndev, struct npu_call_ctx *ctx, unsigned int nr,
			      const void *buf, unsigned int size)
{
	const struct npu_mem_alloc *alloc = buf;
	u64 limit = ((u64)totalram_pages() << PAGE_SHIFT) / 2;

	if (nr != _IOC_NR(NPU_IOCTL_MEM_ALLOC) || size < sizeof(*alloc) || !alloc->bytes ||
	    alloc->bytes > limit || !alloc->head.session)
		return;
	if (alloc->kind == NPU_MEM_HOST || alloc->kind == NPU_MEM_IMAGE)
		npu_bo_new_host(ndev, ALIGN(alloc->bytes, NPU_PAGE_SMALL), &ctx->bo);
}

static int npu_ioctl_call(struct npu_device *ndev, struct npu_core *core,
			  struct npu_core_file *file, struct npu_call_ctx *ctx, unsigned int nr,
			  void *buf, unsigned int size)
{
	int r;

	if (ndev) {
		npu_ioctl_prepare(ndev, ctx, nr, buf, size);
		spin_lock(&ndev->calls_lock);
		list_add(&ctx->link, &ndev->calls);
		spin_unlock(&ndev->calls_lock);
	}
	r = npu_core_call(core, file, nr, buf, size, ctx);
	if (ctx->cid) {
		npu_admin_wait(ndev, ctx->cid,
			       ctx->again ? NPU_COUNTERS_WAIT_MS : NPU_SYNC_WAIT_MS);
		if (ctx->again)
			r = npu_core_call(core, file, nr, buf, size, ctx);
	}
	if (ndev) {
		spin_lock(&ndev->calls_lock);
		list_del(&ctx->link);
		spin_unlock(&ndev->calls_lock);
		if (ctx->bo)
			npu_bo_discard(ctx->bo);
		atomic64_inc(&ndev->stats.ioctls);
	} else if (r == 0 && nr == _IOC_NR(NPU_IOCTL_DISCOVER)) {
		npu_control_discover(buf);
	}
	return r;
}

long npu_ioctl_run(struct npu_device *ndev, struct npu_core *core, struct npu_core_file *file,
		   unsigned int cmd, unsigned long arg)
{
	struct npu_call_ctx ctx = { .task = current };
	unsigned int nr = _IOC_NR(cmd), size = _IOC_SIZE(cmd);
	void __user *user = (void __user *)arg;
	u64 stack[NPU_STACK_BYTES / sizeof(u64)];
	void *buf = stack;
	int device = ndev ? ndev->id : -1;
	int r;

	if (_IOC_TYPE(cmd) != NPU_IOCTL_BASE || _IOC_DIR(cmd) != (_IOC_READ | _IOC_WRITE))
		return -ENOTTY;
	if (size < sizeof(struct npu_head))
		return -EINVAL;
	if (size > sizeof(stack)) {
		buf = kmalloc(size, GFP_KERNEL_ACCOUNT);
		if (!buf)
			return -ENOMEM;
	}
	r = -EFAULT;
	if (copy_from_user(buf, user, size))
		goto free;
	trace_npu_ioctl_enter(device, nr, size, buf);
	r = npu_ioctl_call(ndev, core, file, &ctx, nr, buf, size);
	trace_npu_ioctl_exit(device, nr, r);
	/* some errors have outputs, too */
	if (copy_to_user(user, buf, size))
		r = -EFAULT;
	npu_ioctl_fds(&ctx, r >= 0);
free:
	if (buf != stack)
		kfree(buf);
	return r;
}
