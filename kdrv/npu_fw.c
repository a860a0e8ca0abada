// SPDX-License-Identifier: GPL-2.0
/*
 * Firmware: fetched, checked, given to the card's mailbox, and shaken hands with. Each failure is
 * one line that names the step: request, header, checksum, version, memory, load, boot, handshake.
 */
#include <linux/crc32.h>
#include <linux/firmware.h>
#include <linux/iopoll.h>

#include "kdrv/npu_drv.h"

#define NPU_FW_BOOT_US 3000000 /* the card is READY within a second; simulated ones share a core */
#define NPU_FW_POLL_US 1000

static const char *npu_fw_status_text(u32 status)
{
	switch (status) {
	case NPU_HW_MB_IDLE:
	case NPU_HW_MB_BUSY:
		return "the card did not answer in time";
	case NPU_HW_MB_BAD_MAGIC:
		return "the card refuses its magic";
	case NPU_HW_MB_BAD_CRC:
		return "the card refuses its checksum";
	case NPU_HW_MB_BAD_VERSION:
		return "the card refuses its version";
	case NPU_HW_MB_BAD_SIZE:
		return "the card refuses its size";
	case NPU_HW_MB_DMA_FAULT:
		return "the card could not read it from memory";
	case NPU_HW_MB_BAD_CMD:
		return "the card refuses the command";
	default:
		return "the card answers nonsense";
	}
}

static int npu_fw_fail(struct npu_device *ndev, int error, const char *step, const char *text)
{
	dev_err(&ndev->pdev->dev, "firmware %s: %s: %s; the device stays unusable\n", NPU_FW_NAME,
		step, text);
	return error;
}

/* -ENODEV for everything that is wrong with it: the driver core then adds no line of its own. */
static int npu_fw_check(struct npu_device *ndev, const struct firmware *fw)
{
	const struct npu_fw_header *header = (const void *)fw->data;
	char text[96];
	u32 crc;

	if (fw->size < sizeof(*header) || fw->size > NPU_FW_MAX) {
		snprintf(text, sizeof(text), "%zu bytes, wanted %zu to %u", fw->size,
			 sizeof(*header), NPU_FW_MAX);
		return npu_fw_fail(ndev, -ENODEV, "header", text);
	}
	if (header->magic != NPU_FW_MAGIC) {
		snprintf(text, sizeof(text), "magic 0x%08x, wanted 0x%08x", header->magic,
			 NPU_FW_MAGIC);
		return npu_fw_fail(ndev, -ENODEV, "header", text);
	}
	if (header->header_bytes != sizeof(*header) ||
	    header->body_bytes != fw->size - sizeof(*header)) {
		snprintf(text, sizeof(text), "says %u + %u bytes, the file has %zu",
			 header->header_bytes, header->body_bytes, fw->size);
		return npu_fw_fail(ndev, -ENODEV, "header", text);
	}
	crc = crc32_le(~0, fw->data + sizeof(*header), header->body_bytes) ^ ~0;
	if (crc != header->body_crc) {
		snprintf(text, sizeof(text), "0x%08x, wanted 0x%08x", crc, header->body_crc);
		return npu_fw_fail(ndev, -ENODEV, "checksum", text);
	}
	if (header->major != NPU_FW_MAJOR) {
		snprintf(text, sizeof(text), "%u.%u, this driver wants %u.x", header->major,
			 header->minor, NPU_FW_MAJOR);
		return npu_fw_fail(ndev, -ENODEV, "version", text);
	}
	return 0;
}

static void npu_fw_command(struct npu_device *ndev, u32 command)
{
	wmb(); /* address and size before the command */
	writel(command, &ndev->regs->mailbox.command);
	npu_ring(ndev, NPU_HW_RING_ADMIN);
}

int npu_fw_reset(struct npu_device *ndev)
{
	u64 boot_id = readq(&ndev->regs->boot_id), now;
	u32 state;
	int r;

	npu_fw_command(ndev, NPU_HW_MB_RESET);
	/* it may have waited for firmware all along: the boot id alone tells this reset's end */
	r = read_poll_timeout(readq, now, now != boot_id, NPU_FW_POLL_US, NPU_FW_BOOT_US, false,
			      &ndev->regs->boot_id);
	if (r == 0)
		r = read_poll_timeout(readl, state, state == NPU_HW_WAIT_FW || state == ~0u,
				      NPU_FW_POLL_US, NPU_FW_BOOT_US, false, &ndev->regs->state);
	if (r < 0 || state != NPU_HW_WAIT_FW)
		return npu_fw_fail(ndev, -ENODEV, "reset",
				   npu_present(ndev) ? "the card does not answer" :
						       "the card is gone");
	writel(0, &ndev->regs->admin_sq_tail);
	writel(0, &ndev->regs->admin_cq_head);
	return 0;
}

/* The image is in DMA memory: load it, wait for the boot, compare versions. */
static int npu_fw_boot(struct npu_device *ndev, const struct npu_fw_header *header, dma_addr_t dma,
		       size_t bytes)
{
	struct npu_hw_regs __iomem *regs = ndev->regs;
	u32 state, status, version;
	char text[96];
	u64 beat, now;
	int r;

	writeq(dma, &regs->mailbox.address);
	writeq(bytes, &regs->mailbox.bytes);
	npu_fw_command(ndev, NPU_HW_MB_LOAD);
	r = read_poll_timeout(readl, state, state == NPU_HW_READY || state == NPU_HW_FAILED ||
			      state == NPU_HW_DEAD || state == ~0u, NPU_FW_POLL_US, NPU_FW_BOOT_US,
			      false, &regs->state);
	status = readl(&regs->mailbox.status);
	if (state == NPU_HW_FAILED)
		return npu_fw_fail(ndev, -ENODEV, "load", npu_fw_status_text(status));
	if (r < 0 || state != NPU_HW_READY) {
		snprintf(text, sizeof(text), "state %u, mailbox status %u after %u ms", state,
			 status, NPU_FW_BOOT_US / 1000);
		return npu_fw_fail(ndev, -ENODEV, "boot", text);
	}
	version = readl(&regs->mailbox.version);
	if (version != ((u32)header->major << 16 | header->minor)) {
		snprintf(text, sizeof(text), "the card runs %u.%u, loaded was %u.%u",
			 version >> 16, version & 0xffff, header->major, header->minor);
		return npu_fw_fail(ndev, -ENODEV, "handshake", text);
	}
	beat = readq(&regs->heartbeat);
	r = read_poll_timeout(readq, now, now != beat, NPU_FW_POLL_US, NPU_FW_BOOT_US, false,
			      &regs->heartbeat);
	if (r < 0)
		return npu_fw_fail(ndev, -ENODEV, "handshake", "no heartbeat");
	ndev->heartbeat = now;
	ndev->heartbeat_at = jiffies;
	ndev->boot_id = readq(&regs->boot_id);
	memcpy_fromio(ndev->fw_version, regs->fw_version, sizeof(ndev->fw_version));
	ndev->fw_version[sizeof(ndev->fw_version) - 1] = '\0';
	return 0;
}

int npu_fw_load(struct npu_device *ndev)
{
	struct device *dev = &ndev->pdev->dev;
	const struct firmware *fw;
	dma_addr_t dma;
	char text[64];
	void *image;
	int r;

	r = firmware_request_nowarn(&fw, NPU_FW_NAME, dev);
	if (r < 0) {
		snprintf(text, sizeof(text), "error %d", r);
		return npu_fw_fail(ndev, -ENODEV, "request",
				   r == -ENOENT ? "no such file under /lib/firmware" : text);
	}
	r = npu_fw_check(ndev, fw);
	if (r < 0)
		goto release;
	image = dma_alloc_coherent(dev, fw->size, &dma, GFP_KERNEL | __GFP_NOWARN);
	if (!image) {
		snprintf(text, sizeof(text), "no %zu bytes of DMA memory in one piece", fw->size);
		r = npu_fw_fail(ndev, -ENOMEM, "memory", text);
		goto release;
	}
	memcpy(image, fw->data, fw->size);
	r = npu_fw_boot(ndev, (const void *)fw->data, dma, fw->size);
	dma_free_coherent(dev, fw->size, image, dma);
release:
	release_firmware(fw);
	return r;
}
