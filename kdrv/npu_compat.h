/* SPDX-License-Identifier: GPL-2.0 */
/*
 * npu_compat.h - what changed between the kernels that npu.ko builds for: 6.1 to 6.12
 *
 * The driver is written for the newest; here an older kernel gets the same words.
 */
#ifndef NPU_COMPAT_H
#define NPU_COMPAT_H

#include <linux/device/class.h>
#include <linux/mm.h>
#include <linux/version.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
static inline void vm_flags_set(struct vm_area_struct *vma, unsigned long flags)
{
	vma->vm_flags |= flags;
}

static inline void vm_flags_clear(struct vm_area_struct *vma, unsigned long flags)
{
	vma->vm_flags &= ~flags;
}
#endif

/* 6.2: the device of a devnode callback is const */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 2, 0)
#define NPU_DEVNODE_DEVICE struct device
#else
#define NPU_DEVNODE_DEVICE const struct device
#endif

/* 6.4: no owner any more */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 4, 0)
#define npu_class_create(name) class_create(THIS_MODULE, name)
#else
#define npu_class_create(name) class_create(name)
#endif

/* 6.13: a string */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
#define NPU_IMPORT_DMA_BUF "DMA_BUF"
#else
#define NPU_IMPORT_DMA_BUF DMA_BUF
#endif

#endif
