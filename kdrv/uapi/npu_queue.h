/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * npu_queue.h - the data plane: what a client and the device share in memory
 *
 * One address space, that is one (session, device), has one slab: a file of NPU_SLAB_SIZE bytes,
 * made and sealed by the device, mapped by the client and by the device alone. It is sparse: a
 * queue or an event costs memory from its first use. Nothing in it is the truth for anybody but
 * the session itself: the client may write every byte at any time, so the device copies an entry
 * once, then checks it, and whatever the device writes here is for this client only.
 *
 * Layout (offsets in bytes):
 *
 *   NPU_SLAB_HEADER   struct npu_slab_header   one page: identity, wake flags, pending bitmap
 *   NPU_SLAB_RINGS    struct npu_ring_ctrl     NPU_MAX_QUEUES of them
 *   NPU_SLAB_EVENTS   struct npu_event_word    NPU_MAX_EVENTS of them
 *   NPU_SLAB_DATA     NPU_MAX_QUEUES times { NPU_RING_ENTRIES entries, NPU_RING_ARGS bytes }
 *
 * Counters (tail, head, done) are 64 bits wide, count entries since the queue was created and never
 * wrap; the slot of entry n is n & (NPU_RING_ENTRIES - 1).
 *
 * Producer (client; one thread a queue at a time, the library serialises):
 *   wait until tail - done < NPU_RING_ENTRIES; write the entry; store tail (release);
 *   seq_cst fence; if ring.armed: store 0, set the queue's pending bit (fetch_or), and then
 *   if header.device_sleeping: exchange it to 0 and, if it was 1, write 8 bytes to the doorbell.
 *   (While armed is 0 the device is draining that ring or polling its tail: nothing to tell.)
 *   After posting host_reply: set the pending bit and look at device_sleeping in any case.
 * Consumer (device):
 *   copy the entry, store head (relaxed) before it acts, act, store done (release), seq_cst fence;
 *   if header.client_waiting and done >= ring.want: exchange it to 0 and, if it was 1, write the
 *   completion fd. When a queue runs empty: store armed = 1, seq_cst fence, look at tail again.
 *   Before sleeping: store device_sleeping = 1, seq_cst fence, look at the bitmap again, block.
 * Waiter (client): set ring.want, store client_waiting = 1, seq_cst fence, look at done again,
 *   then poll {completion fd, life fd}.
 * A queue is created with armed = 1.
 */
#ifndef NPU_UAPI_QUEUE_H
#define NPU_UAPI_QUEUE_H

#include <linux/types.h>

#define NPU_QUEUE_MAGIC 0x5155504eu /* "NPUQ" */
#define NPU_QUEUE_MAJOR 1u

#define NPU_MAX_QUEUES 1024u   /* queues of one address space */
#define NPU_MAX_EVENTS 65536u  /* events of one address space */
#define NPU_RING_ENTRIES 1024u /* entries of one ring, a power of two */
#define NPU_RING_ARGS 65536u   /* bytes of one argument ring, a power of two */
#define NPU_ENTRY_SIZE 64u
#define NPU_MAX_ARGS 16384u /* bytes of arguments of one launch that may lie in the ring */

#define NPU_SLAB_HEADER 0u
#define NPU_SLAB_RINGS 65536u
#define NPU_SLAB_EVENTS (NPU_SLAB_RINGS + NPU_MAX_QUEUES * 512u)
#define NPU_SLAB_DATA (NPU_SLAB_EVENTS + NPU_MAX_EVENTS * 32u + 1507328u) /* = 4 MiB */
#define NPU_RING_BYTES (NPU_RING_ENTRIES * NPU_ENTRY_SIZE + NPU_RING_ARGS)
#define NPU_SLAB_SIZE ((__u64)NPU_SLAB_DATA + (__u64)NPU_MAX_QUEUES * NPU_RING_BYTES)

/* Written once by the device, then wake flags: each on a cache line of its own. */
struct npu_slab_header {
	__u32 magic; /* NPU_QUEUE_MAGIC */
	__u32 major; /* NPU_QUEUE_MAJOR */
	__u32 max_queues;
	__u32 ring_entries;
	__u64 slab_address; /* device address at which the device has mapped this slab */
	__u64 reserved0[5];

	__u32 device_sleeping; /* device sets 1: a free core sleeps and none polls; client takes it to 0 */
	__u32 device_cpu;      /* cpu of the device's polling thread + 1; 0: unknown or none polls */
	__u64 device_epoch;    /* counts engines: raised when an engine is replaced */
	__u64 reserved1[6];

	__u32 client_waiting; /* client sets 1, device takes it to 0 and writes the completion fd */
	__u32 reserved2[15];  /* the device reads this line after each task: nothing else lives here */

	__u32 client_cpu; /* cpu of the client's polling thread + 1; 0: none polls */
	/* Host calls: the client runs all of a queue's calls with a sequence <= its host_seq. */
	__u32 host_calls_waiting; /* client's callback thread sleeps: as client_waiting, same fd */
	__u64 reserved3[7];

	__u64 pending[NPU_MAX_QUEUES / 64]; /* bit q: queue q has entries nobody was told of */
	/* Errors of whole contexts, by context id: 0, or the npu_fault_kind that stopped it. */
	__u32 context_error[1024];
};

/* What went wrong with a task. The same numbers travel in npu.h's fault records. */
enum npu_fault_kind {
	NPU_FAULT_NONE = 0,
	NPU_FAULT_ACCESS = 1,     /* address not mapped, or not mapped that way */
	NPU_FAULT_BUS = 2,
	NPU_FAULT_ILLEGAL = 3,    /* illegal instruction */
	NPU_FAULT_ARITH = 4,      /* integer division, unmasked floating point exception */
	NPU_FAULT_STACK = 5,      /* kernel stack overflow */
	NPU_FAULT_FORBIDDEN = 6,  /* system call from kernel code; address holds its number */
	NPU_FAULT_TRAP = 7,       /* breakpoint, abort() */
	NPU_FAULT_TIMEOUT = 8,    /* ran longer than its limit */
	NPU_FAULT_ABORTED = 9,    /* dropped by an abort of queue or context */
	NPU_FAULT_ENGINE = 10,    /* the engine died under it (killed, or damaged by kernel code) */
	NPU_FAULT_ENTRY = 11,     /* malformed ring entry */
	NPU_FAULT_FUNCTION = 12,  /* no such module or function, or arguments of the wrong size */
	NPU_FAULT_DMA = 13,       /* copy or fill touched an address that is not mapped */
	NPU_FAULT_MAP = 14,       /* a mapping that the entry needs did not come in time */
	NPU_FAULT_LOST = 15,      /* device lost */
	NPU_FAULT_EVENT = 16,     /* waited for an event whose record was dropped or failed */
	NPU_FAULT_MEMORY = 17,    /* engine's private memory limit reached */
};

#define NPU_FAULT_ADDRESS_UNKNOWN 0x1u /* npu_ring_error.flags: the address is not known */

/* Last error of a queue. Read: count (acquire), copy, begin must equal count, else again. */
struct npu_ring_error {
	__u64 count;   /* errors so far; written last */
	__u64 begin;   /* written first */
	__u32 kind;    /* enum npu_fault_kind */
	__u32 flags;   /* NPU_FAULT_ADDRESS_* */
	__u64 task;    /* index of the entry in its queue, as tail counts */
	__u64 tag;     /* npu_entry.tag of it */
	__u32 module;  /* of a kernel, else 0 */
	__u32 func;
	__u32 block;   /* block index that failed */
	__u32 op;      /* enum npu_op */
	__u64 address; /* faulting address, or system call number */
	__u64 pc;      /* offset of the faulting instruction in the kernel image, or 0 */
	__u64 time_ns; /* CLOCK_MONOTONIC */
	__u64 reserved[6];
};

/* 512 bytes a queue. Lines are 64 bytes; no line is written by both sides but armed's. */
struct npu_ring_ctrl {
	/* client */
	__u64 tail;
	__u64 args_tail; /* bytes ever used of the argument ring; for the client's own use */
	__u64 reserved0[6];
	/* client, when it waits */
	__u64 want;       /* done value at which the waiter wants to be woken; ~0: nobody waits */
	__u64 host_reply; /* sequence of the last host call that has returned */
	__u64 reserved1[6];
	/* device, polled by the client */
	__u64 done;
	__u64 error_count; /* copy of error.count, beside done so that a sync reads one line */
	__u64 reserved2[6];
	/* device */
	__u64 head;     /* entries taken: [done, head) are running */
	__u64 host_seq; /* sequence of the host call that waits for host_reply */
	__u64 host_fn;  /* its cookies */
	__u64 host_arg;
	__u64 reserved3[4];
	/* both */
	__u32 armed; /* device sets 1, client takes it to 0 */
	__u32 epoch; /* raised by abort: entries of an older epoch are dropped (device writes) */
	__u32 state; /* enum npu_ring_state (device writes, for reading) */
	__u32 fail_mode; /* enum npu_fail_mode in force (device writes, for reading) */
	__u64 reserved5[6];
	/* device */
	struct npu_ring_error error;
	__u64 reserved6[8];
};

enum npu_ring_state {
	NPU_RING_FREE = 0,
	NPU_RING_ACTIVE = 1,
	NPU_RING_PAUSED = 2,
	NPU_RING_STOPPED = 3, /* failure mode "stop" after a fault: every entry is dropped */
};

/*
 * An event: the client raises issued and queues NPU_OP_EVENT_RECORD with that value; the device
 * stores time_ns, error, then done (release). Reached when (int32_t)(done - value) >= 0.
 */
struct npu_event_word {
	__u32 issued; /* client */
	__u32 done;   /* device */
	__u32 error;  /* enum npu_fault_kind of the record that raised done */
	__u32 reserved;
	__u64 time_ns; /* CLOCK_MONOTONIC when the record completed */
	__u64 reserved1;
};

enum npu_op {
	NPU_OP_NOP = 0,
	NPU_OP_KERNEL = 1,
	NPU_OP_COPY = 2,
	NPU_OP_COPY2D = 3,
	NPU_OP_FILL = 4,
	NPU_OP_EVENT_RECORD = 5,
	NPU_OP_EVENT_WAIT = 6,
	NPU_OP_NOTIFY_RECORD = 7, /* event word by device address: shared objects */
	NPU_OP_NOTIFY_WAIT = 8,
	NPU_OP_VALUE_WRITE = 9,
	NPU_OP_VALUE_WAIT = 10,
	NPU_OP_HOST_CALL = 11,
	NPU_OP_REDUCE = 12,
	NPU_OP_RANDOM = 13,
	NPU_OP_INDIRECT = 14, /* run an array of entries in device memory, as one entry */
	NPU_OP_LABEL = 15,
	NPU_OP_JUMP = 16, /* conditional, inside an INDIRECT array */
	NPU_OP_ACTIVATE = 17,
	NPU_OP_BARRIER = 18,
	NPU_OP_MAX
};

/* npu_entry.flags */
#define NPU_ENTRY_ARGS_DEVICE 0x01u /* kernel: args is a device address, not an offset */
#define NPU_ENTRY_NO_WAKE 0x02u     /* more entries follow at once: completion may be batched */
#define NPU_ENTRY_RESET 0x04u       /* event, notify wait: take done back to 0 after the wait */

/* npu_entry.value.cond: *address OP value, 64 bits, unsigned */
enum npu_cond {
	NPU_COND_GEQ = 0,
	NPU_COND_EQ = 1,
	NPU_COND_AND = 2,
	NPU_COND_NOR = 3,
	NPU_COND_ALWAYS = 4,
};

/* npu_entry.reduce.kind and .type */
enum npu_reduce_kind { NPU_REDUCE_SUM = 0, NPU_REDUCE_MIN = 1, NPU_REDUCE_MAX = 2 };
enum npu_scalar {
	NPU_SCALAR_F32 = 0, NPU_SCALAR_F16 = 1, NPU_SCALAR_BF16 = 2, NPU_SCALAR_I8 = 3,
	NPU_SCALAR_I16 = 4, NPU_SCALAR_I32 = 5, NPU_SCALAR_U8 = 6, NPU_SCALAR_U16 = 7,
	NPU_SCALAR_U32 = 8, NPU_SCALAR_F64 = 9, NPU_SCALAR_I64 = 10, NPU_SCALAR_U64 = 11,
};

struct npu_entry {
	__u8 op;    /* enum npu_op */
	__u8 flags; /* NPU_ENTRY_* */
	__u16 epoch; /* low 16 bits of the ring's epoch when it was written */
	__u32 map_gen; /* low 32 bits of the map generation that must stand before it runs */
	__u64 tag; /* the client's own; comes back in error records */
	union {
		struct {
			__u32 module;
			__u32 func;
			__u32 blocks;     /* > 0 */
			__u32 args_size;  /* bytes; must equal the function's */
			__u64 args;       /* offset in the queue's argument ring, 8 byte aligned */
			__u32 timeout_us; /* 0: the device's limit */
			__u32 args_total; /* bytes used there, data behind placeholders included */
			__u64 reserved[2];
		} kernel;
		struct { __u64 dst, src, bytes, reserved[3]; } copy;
		struct { __u64 dst, src, dst_pitch, src_pitch, width, height; } copy2d;
		struct { __u64 dst, bytes; __u32 value, width; __u64 reserved[3]; } fill; /* width 1,2,4 */
		struct { __u32 index, value; __u32 timeout_ms, pad; __u64 reserved[4]; } event;
		struct { __u64 address; __u32 value, timeout_ms; __u64 reserved[4]; } notify;
		struct { __u64 address, value; __u32 cond, width; __u64 reserved[3]; } value;
		struct { __u64 seq, fn, arg; __u32 blocking, pad; __u64 reserved[2]; } host;
		struct { __u64 dst, src, count; __u32 kind, type; __u64 reserved[2]; } reduce;
		struct { __u64 dst, count; __u32 kind, type; __u64 seed, a, b; } random;
		struct { __u64 address; __u32 count, pad; __u64 reserved[4]; } indirect;
		struct { __u64 address, value; __u32 cond, target; __u64 reserved[3]; } jump;
		struct { __u32 queue, pad; __u64 reserved[5]; } activate;
		__u64 raw[6];
	};
};

#if defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
_Static_assert(sizeof(struct npu_entry) == NPU_ENTRY_SIZE, "npu_entry is one cache line");
_Static_assert(sizeof(struct npu_event_word) == 32, "npu_event_word");
_Static_assert(sizeof(struct npu_ring_ctrl) == 512, "npu_ring_ctrl");
_Static_assert(sizeof(struct npu_ring_error) == 128, "npu_ring_error");
_Static_assert(sizeof(struct npu_slab_header) <= NPU_SLAB_RINGS, "npu_slab_header");
_Static_assert(NPU_SLAB_DATA == 4u << 20, "data begins at 4 MiB");
#endif

#endif
