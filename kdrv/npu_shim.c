// SPDX-License-Identifier: GPL-2.0
/*
 * What the rules (kdrv/core) need from the kernel: memory, a lock, time, random bytes, a log and
 * files.
 */
#include <linux/file.h>
#include <linux/ktime.h>
#include <linux/poll.h>
#include <linux/random.h>
#include <linux/slab.h>

#include "kdrv/npu_drv.h"

static int npu_shim_fd_get(void *dev, void *cookie, enum npu_fd_kind kind,
			   struct npu_session *session, struct npu_mem *mem, int32_t *ret_slot)
{
	struct file *file;

	if (session)
		file = npu_space_file(session->backend, kind);
	else if (kind == NPU_FD_MEM && mem->kind != NPU_MEM_DEVICE)
		file = npu_bo_file(mem->backend);
	else
		file = NULL;
	if (IS_ERR(file))
		return PTR_ERR(file);
	if (!file) {
		*ret_slot = -1;
		return 0;
	}
	return npu_ioctl_fd_add(cookie, file, ret_slot);
}

static void *npu_shim_alloc(void *dev, size_t bytes)
{
	return kvzalloc(bytes, GFP_KERNEL_ACCOUNT);
}

static void npu_shim_free(void *dev, void *ptr, size_t bytes)
{
	kvfree(ptr);
}

static void npu_shim_lock(void *dev)
{
	mutex_lock(&((struct npu_device *)dev)->core_lock);
}

static void npu_shim_unlock(void *dev)
{
	mutex_unlock(&((struct npu_device *)dev)->core_lock);
}

static uint64_t npu_shim_now(void *dev)
{
	return ktime_get_ns();
}

static int npu_shim_random(void *dev, void *ret_bytes, size_t bytes)
{
	get_random_bytes(ret_bytes, bytes);
	return 0;
}

static void npu_shim_log(void *dev, enum npu_log_level level, uint64_t session, const char *text)
{
	struct npu_device *ndev = dev;

	if (session)
		dev_dbg(&ndev->pdev->dev, "session %llu: %s\n", session, text);
	else if (level <= NPU_LOG_WARNING)
		dev_notice_ratelimited(&ndev->pdev->dev, "%s\n", text);
	else
		dev_dbg(&ndev->pdev->dev, "%s\n", text);
}

static void npu_shim_event_ready(void *dev, struct npu_core_file *file, void *file_cookie)
{
	struct npu_file *nfile = file_cookie;

	if (!nfile)
		return; /* the driver's own */
	WRITE_ONCE(nfile->ready, true);
	wake_up_interruptible_poll(&nfile->wait, EPOLLIN | EPOLLRDNORM);
}

const struct npu_shim npu_device_shim = {
	.alloc = npu_shim_alloc,
	.free = npu_shim_free,
	.lock = npu_shim_lock,
	.unlock = npu_shim_unlock,
	.now_ns = npu_shim_now,
	.random = npu_shim_random,
	.log = npu_shim_log,
	.admin = npu_command_run,
	.fd_get = npu_shim_fd_get,
	.event_ready = npu_shim_event_ready,
};
