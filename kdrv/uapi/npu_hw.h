/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * npu_hw.h - the reference NPU as its driver sees it: registers, admin queue, firmware, interrupts
 *
 * HARDWARE.md explains; this file has the numbers. Everything lies in BAR2, little endian. "ro" is
 * written by the device alone, "rw" by the driver. A read of ~0 from the magic means that the device
 * is gone. Orders between driver and device: the writer fences before it rings (release), the reader
 * after it looked at the index or status word (acquire).
 */
#ifndef NPU_UAPI_HW_H
#define NPU_UAPI_HW_H

#include <linux/types.h>
#include "npu.h"

#define NPU_HW_VENDOR 0x1af4 /* QEMU's ivshmem-doorbell carries the reference board */
#define NPU_HW_DEVICE 0x1110
#define NPU_HW_MAGIC 0x31305748554e5055ull /* "UPNUHW01" as bytes */
#define NPU_HW_MAJOR 1u
#define NPU_HW_MINOR 0u
#define NPU_HW_VECTORS 16u

/* BAR0, of ivshmem */
#define NPU_BAR0_DOORBELL 12u /* write (regs.peer << 16 | vector) */
/* Vectors that the driver rings */
#define NPU_HW_RING_ADMIN 0u /* admin submission queue or firmware mailbox */
#define NPU_HW_RING_QUEUES 1u /* regs.queue_bell has bits */
/* Vectors that the device raises */
#define NPU_HW_IRQ_ADMIN 0u
#define NPU_HW_IRQ_ERROR 1u
#define NPU_HW_IRQ_SPACE0 2u /* of slab slot s: 2 + s % 14 */

enum npu_hw_state {
	NPU_HW_OFF = 0,
	NPU_HW_WAIT_FW = 1, /* mailbox takes LOAD */
	NPU_HW_BOOTING = 2,
	NPU_HW_READY = 3,
	NPU_HW_FAILED = 4,  /* firmware refused: mailbox.status says why; takes LOAD again */
	NPU_HW_DEAD = 5,    /* heartbeat has stopped; takes RESET */
};

enum npu_hw_mailbox_cmd { NPU_HW_MB_NONE = 0, NPU_HW_MB_LOAD = 1, NPU_HW_MB_RESET = 2 };
enum npu_hw_mailbox_status {
	NPU_HW_MB_IDLE = 0, NPU_HW_MB_BUSY = 1, NPU_HW_MB_OK = 2,
	NPU_HW_MB_BAD_MAGIC = 3, NPU_HW_MB_BAD_CRC = 4, NPU_HW_MB_BAD_VERSION = 5,
	NPU_HW_MB_BAD_SIZE = 6, NPU_HW_MB_DMA_FAULT = 7, NPU_HW_MB_BAD_CMD = 8,
};

#define NPU_HW_SLOTS_MAX 1024u

struct npu_hw_regs { /* the first 64 KiB of BAR2 */
	/* ro, fixed */
	__u64 magic;
	__u32 major, minor;
	__u32 device; /* number of the card */
	__u32 peer;   /* board's peer id for BAR0 doorbells; may change after a restart of the board */
	__u64 bar_size;
	__u64 admin_sq, admin_cq;          /* offsets in BAR2 */
	__u32 admin_sq_entries, admin_cq_entries; /* powers of two */
	__u64 slab_offset, slab_stride;    /* slab of slot s: slab_offset + s * slab_stride */
	__u32 slab_slots;                  /* sessions that the card can hold, <= NPU_HW_SLOTS_MAX */
	__u32 cores;
	__u64 aperture_offset, aperture_size; /* host-visible device memory; size 0: none */
	__u64 memory_bytes;                /* device memory, NPU_PAGE_SMALL pages counted from 0 */
	__u64 caps;                        /* NPU_CAP_* */
	__u64 default_timeout_us;
	char name[64];
	char fw_version[32];               /* of the running firmware, else empty */

	/* ro, live */
	_Alignas(64) __u32 state;          /* enum npu_hw_state */
	__u32 util_permille;
	__u64 heartbeat;                   /* counts up every 100 ms while the firmware lives */
	__u64 boot_id;
	__u64 busy_ns;
	__u32 engines, sandbox_active, sandbox_missing, reserved0;

	/* firmware mailbox: rw command, ro status */
	_Alignas(64) struct {
		__u32 command; /* written last, then ring NPU_HW_RING_ADMIN */
		__u32 status;
		__u64 address; /* bus address of the image */
		__u64 bytes;
		__u32 version; /* ro after OK: major << 16 | minor */
		__u32 reserved;
	} mailbox;

	/* admin queue indices: free running, entry n at n & (entries - 1) */
	_Alignas(64) __u32 admin_sq_tail; /* rw */
	_Alignas(64) __u32 admin_sq_head; /* ro: consumed */
	_Alignas(64) __u32 admin_cq_tail; /* ro: written */
	_Alignas(64) __u32 admin_cq_head; /* rw: consumed */

	/* why an interrupt: the device sets bits, the driver takes them by exchange */
	_Alignas(64) __u64 error_cause; /* NPU_HW_CAUSE_* */
	__u64 error_address;
	__u64 error_info;
	_Alignas(64) __u64 space_cause[NPU_HW_SLOTS_MAX / 64]; /* bit s: completions of slot s */

	/* rung queues: the driver sets bits and rings NPU_HW_RING_QUEUES, the device takes them */
	_Alignas(64) __u64 queue_bell[NPU_HW_SLOTS_MAX / 64];
};

#define NPU_HW_CAUSE_ECC_CORRECTED (1ull << 0)
#define NPU_HW_CAUSE_ECC_UNCORRECTED (1ull << 1) /* error_address: page retired */
#define NPU_HW_CAUSE_FIRMWARE (1ull << 2)        /* firmware died: state is DEAD */
#define NPU_HW_CAUSE_DMA (1ull << 3)             /* error_address: not RAM */
#define NPU_HW_CAUSE_LINK (1ull << 4)

/* ---- firmware image ------------------------------------------------------------------------ */

#define NPU_FW_NAME "npu/npu-fw.bin"
#define NPU_FW_MAGIC 0x5746504eu /* "NPFW" */
#define NPU_FW_MAJOR 1u          /* must be equal on both sides */
#define NPU_FW_MAX (16u << 20)

struct npu_fw_header {
	__u32 magic;
	__u16 major, minor;
	__u32 header_bytes; /* sizeof(this) */
	__u32 body_bytes;
	__u32 body_crc; /* CRC-32 (IEEE, reflected, as zlib and the kernel's crc32_le(~0) ^ ~0) */
	__u32 reserved;
	char version[32];
};

/* ---- admin queue --------------------------------------------------------------------------- */

/* Operations are those of enum npu_admin_op (kdrv/core/npu_shim.h), same numbers, and: */
#define NPU_HW_OP_FUNC_READ 64u /* copy kernels of a module to host memory */

struct npu_hw_run { /* device memory pages, or host memory */
	__u64 start; /* page number, or bus address */
	__u64 count; /* pages, or bytes */
};

#define NPU_HW_CMD_CARD 0x1u /* COUNTERS: of the whole card */

struct npu_hw_cmd { /* 128 bytes; HARDWARE.md says which fields each op reads */
	__u16 op;
	__u16 flags; /* NPU_HW_CMD_* */
	__u32 cid;   /* comes back in the completion; 0: none is wanted */
	__u32 space; /* slab slot of the session */
	__u32 id;    /* mem, ctx, queue or module number of the driver's choice, unique on the card */
	__u64 session; /* the core's session id, for logs */
	union {
		struct { __u64 slab_address; __u32 uid, pid; char comm[16]; } space_create;
		struct {
			__u32 kind, flags;
			__u64 bytes;
			__u64 runs; /* bus address of struct npu_hw_run[nruns]; HOST and IMAGE: where */
			__u32 nruns, reserved;
		} mem;
		struct { __u64 address, bytes, offset, generation; __u32 mem, flags; } map;
		struct { __u32 created, clear_error, priority, weight, cores; } ctx;
		struct {
			__u32 slot, ctx, paused, priority, fail_mode, epoch, window, fresh;
		} queue;
		struct { __u32 mem, reserved; __u64 bytes; } module;
		struct { __u32 first, count; __u64 address; } func_read; /* engine_func layout below */
		struct { __u64 address; } counters; /* __u64[NPU_COUNTER_MAX] in host memory */
		struct { __u32 kind, queue; __u64 address, value; __u32 page, reserved; } inject;
		__u64 raw[13];
	};
};

struct npu_hw_func {
	char name[NPU_NAME_MAX];
	__u32 args_size;
	__u32 params;
	__u32 param_sizes[NPU_MAX_PARAMS];
};

enum npu_hw_cq_type {
	NPU_HW_CQ_DONE = 1,   /* of cid: status, value */
	NPU_HW_CQ_MODULE = 2, /* id: status, value = kernels, text */
	NPU_HW_CQ_FAULT = 3,  /* fault; space */
	NPU_HW_CQ_ENGINE = 4, /* space: value = starts */
	NPU_HW_CQ_SPACE_GONE = 5,
	NPU_HW_CQ_MEM_GONE = 6, /* id */
	NPU_HW_CQ_SPACE_LOST = 7, /* its engine cannot be replaced */
};

struct npu_hw_completion { /* 512 bytes */
	__u16 type;
	__u16 reserved;
	__u32 cid;
	__u32 space;
	__u32 id;
	__s32 status;
	__u32 value;
	union {
		char text[NPU_NAME_MAX];
		struct npu_fault_record fault; /* seq and session are filled in by the core */
		__u64 raw[61];
	};
};

#if defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
_Static_assert(sizeof(struct npu_hw_cmd) == 128, "npu_hw_cmd");
_Static_assert(sizeof(struct npu_hw_completion) == 512, "npu_hw_completion");
_Static_assert(sizeof(struct npu_hw_regs) <= 65536, "npu_hw_regs");
_Static_assert(sizeof(struct npu_fw_header) == 56, "npu_fw_header");
#endif

#endif
