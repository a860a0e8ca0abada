// SPDX-License-Identifier: GPL-2.0
/*
 * The card on its bus: probe and remove, reset, suspend, and the module itself.
 *
 * The reference board travels as an ivshmem device, of which there may be others: what is behind
 * BAR2 decides, by magic and major. A board that is not known is refused by name.
 */
#include <linux/delay.h>
#include <linux/module.h>

#include "kdrv/npu_drv.h"

#define NPU_BAR_REGS 0
#define NPU_BAR_DATA 2
#define NPU_REGS_BYTES 65536u

/* Each card that this driver serves. */
static const struct pci_device_id npu_pci_ids[] = {
	{ PCI_DEVICE(NPU_HW_VENDOR, NPU_HW_DEVICE) },
	{ }
};
MODULE_DEVICE_TABLE(pci, npu_pci_ids);

/* For tests of what a failed probe leaves behind. */
static unsigned int fail_probe;
module_param(fail_probe, uint, 0600);
MODULE_PARM_DESC(fail_probe, "number of the step at which probe fails, counted from 1; 0: none");

static int npu_probe_at(unsigned int step)
{
	return step == fail_probe ? -EIO : 0;
}

void npu_ring(struct npu_device *ndev, u32 vector)
{
	/* the peer changes when the board was restarted behind a running machine */
	u32 peer = readl(&ndev->regs->peer);

	wmb(); /* write-combined memory first, then the bell */
	writel(peer << 16 | vector, ndev->bar0 + NPU_BAR0_DOORBELL);
}

bool npu_present(struct npu_device *ndev)
{
	return readq(&ndev->regs->magic) == NPU_HW_MAGIC;
}

static int npu_pci_check_identity(struct npu_device *ndev)
{
	struct device *dev = &ndev->pdev->dev;
	u64 magic = readq(&ndev->regs->magic);
	u32 major;

	if (magic != NPU_HW_MAGIC) {
		dev_notice(dev, "not an NPU: magic 0x%016llx, wanted 0x%016llx: left alone\n",
			   magic, NPU_HW_MAGIC);
		return -ENODEV;
	}
	memcpy_fromio(ndev->name, ndev->regs->name, sizeof(ndev->name));
	ndev->name[sizeof(ndev->name) - 1] = '\0';
	major = readl(&ndev->regs->major);
	if (major != NPU_HW_MAJOR) {
		dev_err(dev, "board \"%s\" has hardware interface %u, this driver knows %u: refused\n",
			ndev->name, major, NPU_HW_MAJOR);
		return -ENODEV;
	}
	return 0;
}

/* True when [start, start + bytes) lies in BAR2 behind the register page. */
static bool npu_pci_inside(struct npu_device *ndev, u64 start, u64 bytes)
{
	u64 end;

	return !check_add_overflow(start, bytes, &end) && start >= NPU_REGS_BYTES &&
	       end <= ndev->bar2_bytes;
}

static int npu_pci_check_layout(struct npu_device *ndev)
{
	struct npu_hw_regs __iomem *regs = ndev->regs;
	struct npu_admin *admin = &ndev->admin;
	u64 sq = readq(&regs->admin_sq), cq = readq(&regs->admin_cq), slabs;

	admin->sq_entries = readl(&regs->admin_sq_entries);
	admin->cq_entries = readl(&regs->admin_cq_entries);
	ndev->slab_offset = readq(&regs->slab_offset);
	ndev->slab_stride = readq(&regs->slab_stride);
	ndev->slab_slots = readl(&regs->slab_slots);
	ndev->cores = readl(&regs->cores);
	ndev->caps = readq(&regs->caps);
	ndev->default_timeout_us = readq(&regs->default_timeout_us);
	ndev->memory_bytes = readq(&regs->memory_bytes);
	if (!is_power_of_2(admin->sq_entries) || !is_power_of_2(admin->cq_entries) ||
	    admin->sq_entries > 65536 || admin->cq_entries > 65536 ||
	    !npu_pci_inside(ndev, sq, (u64)admin->sq_entries * sizeof(struct npu_hw_cmd)) ||
	    !npu_pci_inside(ndev, cq, (u64)admin->cq_entries * sizeof(struct npu_hw_completion)))
		goto refuse;
	if (!ndev->slab_slots || ndev->slab_slots > NPU_HW_SLOTS_MAX ||
	    ndev->slab_stride < NPU_SLAB_SIZE || !PAGE_ALIGNED(ndev->slab_stride) ||
	    !PAGE_ALIGNED(ndev->slab_offset) ||
	    check_mul_overflow(ndev->slab_stride, (u64)ndev->slab_slots, &slabs) ||
	    !npu_pci_inside(ndev, ndev->slab_offset, slabs) || !ndev->cores)
		goto refuse;
	admin->sq_offset = sq;
	admin->cq_offset = cq;
	return 0;
refuse:
	dev_err(&ndev->pdev->dev, "registers describe a layout that BAR2 (0x%llx bytes) cannot hold: refused\n",
		ndev->bar2_bytes);
	return -ENODEV;
}

static int npu_pci_map(struct npu_device *ndev)
{
	struct pci_dev *pdev = ndev->pdev;
	resource_size_t length = pci_resource_len(pdev, NPU_BAR_DATA);

	if (pci_resource_flags(pdev, NPU_BAR_DATA) & IORESOURCE_UNSET ||
	    !pci_resource_start(pdev, NPU_BAR_DATA) || length < 2 * NPU_REGS_BYTES ||
	    pci_resource_len(pdev, NPU_BAR_REGS) < NPU_BAR0_DOORBELL + 4) {
		dev_notice(&pdev->dev, "not an NPU: BAR2 has 0x%llx bytes or no address: left alone\n",
			   (u64)length);
		return -ENODEV;
	}
	ndev->bar2 = pci_resource_start(pdev, NPU_BAR_DATA);
	ndev->bar2_bytes = length;
	ndev->regs = ioremap(ndev->bar2, NPU_REGS_BYTES);
	if (!ndev->regs)
		return -ENOMEM;
	return 0;
}

static void npu_pci_unmap(struct npu_device *ndev)
{
	if (ndev->slabs)
		iounmap(ndev->slabs);
	if (ndev->admin.cq)
		iounmap(ndev->admin.cq);
	if (ndev->admin.sq)
		iounmap(ndev->admin.sq);
	if (ndev->bar0)
		iounmap(ndev->bar0);
	if (ndev->regs)
		iounmap(ndev->regs);
}

/* The slabs apart from the rest: their part of BAR2 is aligned to large pages. */
static int npu_pci_map_rest(struct npu_device *ndev)
{
	struct npu_admin *admin = &ndev->admin;

	ndev->bar0 = pci_ioremap_bar(ndev->pdev, NPU_BAR_REGS);
	admin->sq = ioremap_wc(ndev->bar2 + admin->sq_offset,
			       admin->sq_entries * sizeof(struct npu_hw_cmd));
	admin->cq = ioremap_wc(ndev->bar2 + admin->cq_offset,
			       admin->cq_entries * sizeof(struct npu_hw_completion));
	ndev->slabs = ioremap_wc(ndev->bar2 + ndev->slab_offset,
				 ndev->slab_stride * ndev->slab_slots);
	return ndev->bar0 && admin->sq && admin->cq && ndev->slabs ? 0 : -ENOMEM;
}

static int npu_pci_core_new(struct npu_device *ndev)
{
	struct npu_shim shim = npu_device_shim;
	struct npu_core_config config = {
		.kind = NPU_KIND_PCI,
		.device_id = ndev->id,
		.version = "npu.ko " NPU_DRV_VERSION,
		/* MAP takes host memory, which is what the core wants to know; clients are told
		 * what the card says (NPU_ADMIN_QUERY)
		 */
		.caps = (ndev->caps & NPU_CAPS_CARD) | NPU_CAP_HOST_MAPPED,
		.cores = ndev->cores,
		.max_sessions = ndev->slab_slots,
		.memory_bytes = ndev->memory_bytes,
		.host_bytes = ((u64)totalram_pages() << PAGE_SHIFT) / 2,
		.default_timeout_us = ndev->default_timeout_us,
	};
	int r;

	memcpy(config.name, ndev->name, sizeof(config.name));
	memcpy(config.firmware, ndev->fw_version, sizeof(config.firmware));
	shim.dev = ndev;
	r = npu_core_new(&shim, &config, &ndev->core);
	if (r < 0)
		return r;
	r = npu_core_file_open(ndev->core, NULL, &ndev->own);
	if (r < 0)
		npu_core_free(ndev->core);
	return r;
}

static void npu_device_release(struct device *dev)
{
	struct npu_device *ndev = to_npu_device(dev);

	pci_dev_put(ndev->pdev);
	cleanup_srcu_struct(&ndev->srcu);
	kfree(ndev);
}

static struct npu_device *npu_device_alloc(struct pci_dev *pdev)
{
	struct npu_device *ndev = kzalloc(sizeof(*ndev), GFP_KERNEL);

	if (!ndev)
		return NULL;
	if (init_srcu_struct(&ndev->srcu)) {
		kfree(ndev);
		return NULL;
	}
	device_initialize(&ndev->dev);
	ndev->dev.parent = &pdev->dev;
	ndev->dev.release = npu_device_release;
	ndev->pdev = pci_dev_get(pdev);
	ndev->id = -1;
	mutex_init(&ndev->core_lock);
	mutex_init(&ndev->obj_lock);
	mutex_init(&ndev->reset_lock);
	spin_lock_init(&ndev->calls_lock);
	INIT_LIST_HEAD(&ndev->calls);
	INIT_LIST_HEAD(&ndev->spaces);
	INIT_LIST_HEAD(&ndev->bos);
	INIT_LIST_HEAD(&ndev->files);
	xa_init_flags(&ndev->bo_ids, XA_FLAGS_ALLOC1);
	xa_init_flags(&ndev->reqs, XA_FLAGS_ALLOC1);
	npu_watch_init(ndev);
	return ndev;
}

static int npu_pci_start(struct npu_device *ndev)
{
	u32 state = readl(&ndev->regs->state);
	int r;

	/* Somebody was here before and did not tidy up. */
	if (state != NPU_HW_WAIT_FW) {
		r = npu_fw_reset(ndev);
		if (r < 0)
			return r;
	}
	r = npu_fw_load(ndev);
	if (r < 0)
		return r;
	npu_admin_thaw(ndev, true, ndev->epoch);
	return 0;
}

static int npu_pci_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct npu_device *ndev;
	int r;

	ndev = npu_device_alloc(pdev);
	if (!ndev)
		return -ENOMEM;
	pci_set_drvdata(pdev, ndev);
	r = npu_probe_at(1) ?: pci_enable_device_mem(pdev);
	if (r < 0)
		goto put;
	r = npu_probe_at(2) ?: pci_request_regions(pdev, NPU_DRV_NAME);
	if (r < 0)
		goto disable;
	r = npu_probe_at(3) ?: npu_pci_map(ndev);
	if (r < 0)
		goto release;
	r = npu_probe_at(4) ?: npu_pci_check_identity(ndev);
	if (r < 0)
		goto unmap;
	r = npu_probe_at(5) ?: npu_pci_check_layout(ndev);
	if (r < 0)
		goto unmap;
	r = npu_probe_at(6) ?: npu_pci_map_rest(ndev);
	if (r < 0)
		goto unmap;
	r = npu_probe_at(7) ?: dma_set_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(64));
	if (r < 0)
		goto unmap;
	dma_set_max_seg_size(&pdev->dev, SZ_1G);
	pci_set_master(pdev);
	ndev->wq = alloc_workqueue("npu-%s", WQ_UNBOUND, 0, pci_name(pdev));
	if (!ndev->wq) {
		r = -ENOMEM;
		goto master;
	}
	r = npu_probe_at(8) ?: npu_admin_init(ndev);
	if (r < 0)
		goto queue;
	r = npu_probe_at(9) ?: npu_pci_start(ndev);
	if (r < 0)
		goto admin;
	r = npu_probe_at(10) ?: npu_chardev_id_get(ndev);
	if (r < 0)
		goto quiet;
	r = npu_probe_at(11) ?: npu_pci_core_new(ndev);
	if (r < 0)
		goto free_id;
	r = npu_probe_at(12) ?: npu_irq_init(ndev);
	if (r < 0)
		goto core;
	npu_debugfs_add(ndev);
	npu_watch_start(ndev);
	r = npu_probe_at(13) ?: npu_chardev_add(ndev);
	if (r < 0)
		goto watch;
	dev_info(&pdev->dev, "npu%d: %s, firmware %s, %u cores, %llu MiB, %u sessions\n", ndev->id,
		 ndev->name, ndev->fw_version, ndev->cores, ndev->memory_bytes >> 20,
		 ndev->slab_slots);
	return 0;

watch:
	ndev->gone = true;
	npu_watch_stop(ndev);
	npu_debugfs_del(ndev);
	npu_irq_fini(ndev);
core:
	ndev->gone = true;
	npu_core_free(ndev->core);
free_id:
	npu_chardev_id_put(ndev);
quiet:
	npu_fw_reset(ndev);
admin:
	npu_admin_fini(ndev);
queue:
	destroy_workqueue(ndev->wq);
master:
	pci_clear_master(pdev);
unmap:
	npu_pci_unmap(ndev);
release:
	pci_release_regions(pdev);
disable:
	pci_disable_device(pdev);
put:
	pci_set_drvdata(pdev, NULL);
	put_device(&ndev->dev);
	return r;
}

/* Everything that is still there: the core has ended, the card does not answer any more. */
static void npu_pci_abandon(struct npu_device *ndev)
{
	struct npu_space *space, *next_space;
	struct npu_bo *bo, *next_bo;

	npu_req_drop(ndev, NULL, true);
	mutex_lock(&ndev->obj_lock);
	list_for_each_entry_safe(space, next_space, &ndev->spaces, link)
		npu_space_abandon(space);
	list_for_each_entry_safe(bo, next_bo, &ndev->bos, link)
		npu_bo_abandon(bo);
	mutex_unlock(&ndev->obj_lock);
}

/* Whoever sleeps sees that the device has gone. */
static void npu_pci_wake(struct npu_device *ndev)
{
	struct npu_space *space;
	struct npu_file *nfile;

	wake_up_all(&ndev->admin.wait);
	mutex_lock(&ndev->obj_lock);
	list_for_each_entry(nfile, &ndev->files, link)
		wake_up_all(&nfile->wait);
	list_for_each_entry(space, &ndev->spaces, link)
		npu_space_kill(space, false);
	mutex_unlock(&ndev->obj_lock);
}

static void npu_pci_remove(struct pci_dev *pdev)
{
	struct npu_device *ndev = pci_get_drvdata(pdev);

	/* from here on all calls fail; then everybody is woken and has left */
	WRITE_ONCE(ndev->gone, true);
	npu_chardev_del(ndev);
	npu_pci_wake(ndev);
	synchronize_srcu(&ndev->srcu);
	npu_watch_stop(ndev);
	npu_debugfs_del(ndev);
	npu_irq_fini(ndev);
	npu_admin_freeze(ndev, true);
	/* the card forgets every address in our memory before that is given up */
	if (npu_present(ndev))
		npu_fw_reset(ndev);
	flush_workqueue(ndev->wq);
	npu_core_free(ndev->core);
	npu_pci_abandon(ndev);
	npu_admin_fini(ndev);
	destroy_workqueue(ndev->wq);
	npu_chardev_id_put(ndev);
	pci_clear_master(pdev);
	npu_pci_unmap(ndev);
	pci_release_regions(pdev);
	pci_disable_device(pdev);
	pci_set_drvdata(pdev, NULL);
	put_device(&ndev->dev);
}

static void npu_pci_shutdown(struct pci_dev *pdev)
{
	struct npu_device *ndev = pci_get_drvdata(pdev);

	npu_watch_stop(ndev);
	npu_admin_freeze(ndev, true);
	if (npu_present(ndev))
		npu_fw_reset(ndev);
}

static void npu_pci_reset_prepare(struct pci_dev *pdev)
{
	npu_watch_suspend(pci_get_drvdata(pdev));
}

static void npu_pci_reset_done(struct pci_dev *pdev)
{
	npu_watch_resume(pci_get_drvdata(pdev), true);
}

static const struct pci_error_handlers npu_pci_errors = {
	.reset_prepare = npu_pci_reset_prepare,
	.reset_done = npu_pci_reset_done,
};

static int npu_pci_suspend(struct device *dev)
{
	return npu_watch_suspend(dev_get_drvdata(dev));
}

static int npu_pci_resume(struct device *dev)
{
	return npu_watch_resume(dev_get_drvdata(dev), false);
}

static DEFINE_SIMPLE_DEV_PM_OPS(npu_pci_pm, npu_pci_suspend, npu_pci_resume);

static struct pci_driver npu_pci_driver = {
	.name = NPU_DRV_NAME,
	.id_table = npu_pci_ids,
	.probe = npu_pci_probe,
	.remove = npu_pci_remove,
	.shutdown = npu_pci_shutdown,
	.err_handler = &npu_pci_errors,
	.driver.pm = pm_sleep_ptr(&npu_pci_pm),
};

static int __init npu_init(void)
{
	int r;

	r = npu_fs_init();
	if (r < 0)
		return r;
	r = npu_space_cache_init();
	if (r < 0)
		goto fs;
	r = npu_bo_cache_init();
	if (r < 0)
		goto space;
	r = npu_chardev_init();
	if (r < 0)
		goto bo;
	npu_debugfs_init();
	r = pci_register_driver(&npu_pci_driver);
	if (r < 0)
		goto debugfs;
	return 0;
debugfs:
	npu_debugfs_exit();
	npu_chardev_exit();
bo:
	npu_bo_cache_exit();
space:
	npu_space_cache_exit();
fs:
	npu_fs_exit();
	return r;
}

static void __exit npu_exit(void)
{
	pci_unregister_driver(&npu_pci_driver);
	npu_debugfs_exit();
	npu_chardev_exit();
	npu_bo_cache_exit();
	npu_space_cache_exit();
	npu_fs_exit();
}

module_init(npu_init);
module_exit(npu_exit);

MODULE_DESCRIPTION("NPU driver");
MODULE_AUTHOR("The npud authors");
MODULE_LICENSE("GPL");
MODULE_VERSION(NPU_DRV_VERSION);
MODULE_FIRMWARE(NPU_FW_NAME);
MODULE_IMPORT_NS(NPU_IMPORT_DMA_BUF);
