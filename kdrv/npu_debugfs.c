// SPDX-License-Identifier: GPL-2.0
/*
 * Seeing in: debugfs npu/N/ and fdinfo. None of it takes the core's lock, so it answers while a
 * call hangs; it shows what driver and card know, not what the core knows.
 */
#include <linux/debugfs.h>
#include <linux/seq_file.h>

#include "kdrv/npu_drv.h"

static struct dentry *npu_debugfs_root;

static int state_show(struct seq_file *m, void *unused)
{
	static const char *const names[] = {
		[NPU_HW_OFF] = "off", [NPU_HW_WAIT_FW] = "waits for firmware",
		[NPU_HW_BOOTING] = "boots", [NPU_HW_READY] = "ready", [NPU_HW_FAILED] = "failed",
		[NPU_HW_DEAD] = "dead",
	};
	struct npu_device *ndev = m->private;
	struct npu_hw_regs __iomem *regs = ndev->regs;
	u32 state = readl(&regs->state);

	seq_printf(m, "pci: %s\nname: %s\ncard: %u\n", pci_name(ndev->pdev), ndev->name,
		   readl(&regs->device));
	seq_printf(m, "state: %s (%u)\n", state < ARRAY_SIZE(names) ? names[state] : "unknown",
		   state);
	seq_printf(m, "frozen: %d\ndown: %d\nepoch: %u\n", READ_ONCE(ndev->admin.frozen),
		   READ_ONCE(ndev->down), READ_ONCE(ndev->epoch));
	seq_printf(m, "heartbeat: %llu\nboot_id: 0x%llx\npeer: %u\n", readq(&regs->heartbeat),
		   readq(&regs->boot_id), readl(&regs->peer));
	seq_printf(m, "caps: 0x%llx\ncores: %u\nslots: %u\nutil_permille: %u\nengines: %u\n",
		   ndev->caps, ndev->cores, ndev->slab_slots, readl(&regs->util_permille),
		   readl(&regs->engines));
	seq_printf(m, "admin: posted %llu tail %u head %u backlog %u cq_head %u cq_tail %u\n",
		   ndev->admin.posted, ndev->admin.tail, readl(&regs->admin_sq_head),
		   ndev->admin.nbacklog, ndev->admin.cq_head, readl(&regs->admin_cq_tail));
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(state);

static int firmware_show(struct seq_file *m, void *unused)
{
	struct npu_device *ndev = m->private;
	u32 version = readl(&ndev->regs->mailbox.version);

	seq_printf(m, "file: %s\nversion: %s\ninterface: %u.%u\nmailbox status: %u\nresets: %lld\nlast reset: %s\n",
		   NPU_FW_NAME, ndev->fw_version, version >> 16, version & 0xffff,
		   readl(&ndev->regs->mailbox.status), atomic64_read(&ndev->stats.resets),
		   ndev->why[0] ? ndev->why : "-");
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(firmware);

static int memory_show(struct seq_file *m, void *unused)
{
	static const char *const kinds[] = {
		[NPU_MEM_DEVICE] = "device", [NPU_MEM_HOST] = "host", [NPU_MEM_IMAGE] = "image",
	};
	static const char *const states[] = {
		[NPU_BO_LIVE] = "live", [NPU_BO_ENDED] = "ended", [NPU_BO_FINISHING] = "finishing",
	};
	struct npu_device *ndev = m->private;
	u64 sums[ARRAY_SIZE(kinds)] = { 0 };
	struct npu_bo *bo;

	seq_puts(m, "id session kind bytes pieces state\n");
	mutex_lock(&ndev->obj_lock);
	list_for_each_entry(bo, &ndev->bos, link) {
		seq_printf(m, "%u %llu %s %llu %u %s%s\n", bo->id, bo->session_id,
			   kinds[bo->kind], bo->bytes, bo->mapped ? bo->sgt.nents : 0,
			   states[bo->state], bo->epoch == ndev->epoch ? "" : " forgotten");
		sums[bo->kind] += bo->bytes;
	}
	mutex_unlock(&ndev->obj_lock);
	seq_printf(m, "total: device %llu of %llu, host %llu, image %llu\n", sums[NPU_MEM_DEVICE],
		   ndev->memory_bytes, sums[NPU_MEM_HOST], sums[NPU_MEM_IMAGE]);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(memory);

static int queues_show(struct seq_file *m, void *unused)
{
	struct npu_device *ndev = m->private;
	struct npu_space *space;
	unsigned long slot;

	mutex_lock(&ndev->obj_lock);
	list_for_each_entry(space, &ndev->spaces, link) {
		seq_printf(m, "session %llu: slot %u%s%s%s\n", space->session_id, space->slot,
			   space->dead ? " dead" : "", space->ended ? " ended" : "",
			   space->epoch == ndev->epoch ? "" : " forgotten");
		for_each_set_bit(slot, space->rings_open, NPU_MAX_QUEUES) {
			struct npu_ring_ctrl __iomem *ring = npu_space_ring(space, slot);

			seq_printf(m, "  ring %lu: tail %llu head %llu done %llu epoch %u state %u errors %llu\n",
				   slot, readq(&ring->tail), readq(&ring->head),
				   readq(&ring->done), readl(&ring->epoch), readl(&ring->state),
				   readq(&ring->error_count));
		}
	}
	mutex_unlock(&ndev->obj_lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(queues);

static int counters_show(struct seq_file *m, void *unused)
{
	struct npu_device *ndev = m->private;
	struct npu_stats *stats = &ndev->stats;
	unsigned int i;

	seq_printf(m, "ioctls: %lld\ndoorbells: %lld\nwakes: %lld\ncompletions: %lld\n",
		   atomic64_read(&stats->ioctls), atomic64_read(&stats->doorbells),
		   atomic64_read(&stats->wakes), atomic64_read(&stats->completions));
	seq_printf(m, "faults: %lld\necc_corrected: %lld\necc_uncorrected: %lld\ndma_errors: %lld\nresets: %lld\n",
		   atomic64_read(&stats->faults), atomic64_read(&stats->ecc_corrected),
		   atomic64_read(&stats->ecc_uncorrected), atomic64_read(&stats->dma_errors),
		   atomic64_read(&stats->resets));
	for (i = 0; i < NPU_HW_VECTORS; i++)
		seq_printf(m, "vector %u: hits %lld runs %lld storms %lld\n", i,
			   atomic64_read(&ndev->vectors[i].hits),
			   atomic64_read(&ndev->vectors[i].runs),
			   atomic64_read(&ndev->vectors[i].storms));
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(counters);

static int bad_pages_show(struct seq_file *m, void *unused)
{
	struct npu_device *ndev = m->private;
	unsigned int i;

	mutex_lock(&ndev->obj_lock);
	for (i = 0; i < ndev->nbad; i++)
		seq_printf(m, "0x%x\n", ndev->bad_pages[i]);
	mutex_unlock(&ndev->obj_lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(bad_pages);

/* ---- fdinfo: keys as the DRM drivers name them --------------------------------------------- */

void npu_fdinfo(struct seq_file *m, struct npu_file *nfile)
{
	struct npu_device *ndev = nfile->ndev;
	u64 device = 0, system = 0;
	struct npu_bo *bo;

	seq_printf(m, "drm-driver:\t%s\ndrm-client-id:\t%llu\n", NPU_DRV_NAME, nfile->client);
	if (READ_ONCE(ndev->gone))
		return;
	seq_printf(m, "drm-pdev:\t%s\n", pci_name(ndev->pdev));
	mutex_lock(&ndev->obj_lock);
	list_for_each_entry(bo, &ndev->bos, link) {
		if (bo->owner != nfile->core_file || bo->state != NPU_BO_LIVE)
			continue;
		if (bo->kind == NPU_MEM_DEVICE)
			device += bo->bytes;
		else
			system += bo->bytes;
	}
	mutex_unlock(&ndev->obj_lock);
	seq_printf(m, "drm-total-vram0:\t%llu KiB\ndrm-resident-vram0:\t%llu KiB\n", device >> 10,
		   device >> 10);
	seq_printf(m, "drm-total-system:\t%llu KiB\ndrm-resident-system:\t%llu KiB\n", system >> 10,
		   system >> 10);
}

/* ---- set up -------------------------------------------------------------------------------- */

void npu_debugfs_add(struct npu_device *ndev)
{
	static const struct {
		const char *name;
		const struct file_operations *fops;
	} files[] = {
		{ "state", &state_fops },       { "firmware", &firmware_fops },
		{ "memory", &memory_fops },     { "queues", &queues_fops },
		{ "counters", &counters_fops }, { "bad_pages", &bad_pages_fops },
	};
	char name[16];
	unsigned int i;

	snprintf(name, sizeof(name), "%d", ndev->id);
	ndev->debugfs = debugfs_create_dir(name, npu_debugfs_root);
	for (i = 0; i < ARRAY_SIZE(files); i++)
		debugfs_create_file(files[i].name, 0400, ndev->debugfs, ndev, files[i].fops);
}

void npu_debugfs_del(struct npu_device *ndev)
{
	debugfs_remove_recursive(ndev->debugfs);
}

void npu_debugfs_init(void)
{
	npu_debugfs_root = debugfs_create_dir(NPU_DRV_NAME, NULL);
}

void npu_debugfs_exit(void)
{
	debugfs_remove_recursive(npu_debugfs_root);
}
