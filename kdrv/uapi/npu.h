/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * npu.h - the device interface: what npud asks of an NPU
 *
 * npud is the only user. The same structs travel by ioctl(2) to npu.ko and by socket to npu-sim.
 *
 * Rules, kept by kdrv/core for both:
 * - every struct begins with struct npu_head. head.size is the caller's sizeof; a longer struct is
 *   accepted when its unknown tail is zero (else -E2BIG), a shorter one is refused (-EINVAL);
 *   head.flags and every reserved field must be zero unless a flag is defined (-EINVAL);
 * - no pointers; arrays lie inline; a call is at most NPU_CALL_MAX bytes;
 * - a call marked M mutates: it needs head.session (but SESSION_CREATE) and head.call, a number
 *   that grows with each mutating call of that session (per device file for SESSION_CREATE). A call
 *   number seen before gives the stored result, once more with its fds; one older than the window
 *   of NPU_CALL_WINDOW results gives -ESTALE;
 * - fd slots (__s32 fd_*) are outputs: a file descriptor number from ioctl, an index into the
 *   SCM_RIGHTS array from the socket, -1 when there is none;
 * - no call waits for an engine and none does work in proportion to size;
 * - errno: -EINVAL malformed, -ENOENT no such handle (also: of another session), -EEXIST, -ENOMEM
 *   host memory, -ENOSPC device memory, -EDQUOT session limit, -EBUSY still used, -EPERM,
 *   -ENODEV device gone, -EIO device failed, -ESTALE, -EOPNOTSUPP, -ERANGE address or offset,
 *   -EPROTO majors differ.
 *
 * Socket transport (npu-sim): SOCK_SEQPACKET. A request packet is struct npu_msg, then the struct
 * of the call; the reply has the same id, result and struct, with fds by SCM_RIGHTS. Replies may
 * come in any order. Event records come by themselves as NPU_MSG_EVENT.
 */
#ifndef NPU_UAPI_H
#define NPU_UAPI_H

#include <linux/ioctl.h>
#include <linux/types.h>
#include "npu_queue.h"

#define NPU_UAPI_MAJOR 1u
#define NPU_UAPI_MINOR 0u
#define NPU_CALL_MAX 16384u
#define NPU_CALL_WINDOW 64u
#define NPU_TAG_MAX 1024u
#define NPU_NAME_MAX 256u /* kernel names, NUL included */
#define NPU_MAX_DEVICES 64u
#define NPU_MAX_PARAMS 64u

/*
 * The window that device addresses come from: one a session, shared by its devices. Thread sanitizer
 * allows nothing below its base; with address randomisation the kernel places a program's own
 * mappings from somewhere between 0x7efc00000000 and 0x800000000000 downwards, so the end leaves
 * them 112 GiB at the worst.
 */
#define NPU_WINDOW_BASE 0x7e8000000000ull
#define NPU_WINDOW_SIZE (384ull << 30)
#define NPU_PAGE_SMALL 65536ull
#define NPU_PAGE_LARGE (2ull << 20)

struct npu_head {
	__u32 size;
	__u32 flags;
	__u64 session; /* 0 where none is needed */
	__u64 call;    /* call number of a mutating call, else 0 */
};

/* ---- control node -------------------------------------------------------------------------- */

struct npu_version {
	struct npu_head head;
	__u32 major; /* in: caller's, out: device's; different majors: -EPROTO, out still valid */
	__u32 minor;
	__u32 queue_major;
	__u32 kind; /* enum npu_device_kind */
	char name[64]; /* driver or simulator with its version */
};

enum npu_device_kind { NPU_KIND_PCI = 1, NPU_KIND_SIM = 2 };

struct npu_discover {
	struct npu_head head;
	__u32 count;
	__u32 reserved;
	__u32 ids[NPU_MAX_DEVICES];
};

/* ---- device -------------------------------------------------------------------------------- */

/* npu_query.caps */
#define NPU_CAP_HOST_VISIBLE (1ull << 0) /* MEM_ALLOC gives an fd that a client can map */
#define NPU_CAP_HOST_MAPPED (1ull << 1)  /* host memory is mapped into the address space */
#define NPU_CAP_PEER (1ull << 2)         /* MEM_IMPORT of another device's export */
#define NPU_CAP_INJECT (1ull << 3)
#define NPU_CAP_ISOLATED (1ull << 4) /* one engine process or hardware context a session */

enum npu_health { NPU_HEALTH_OK = 0, NPU_HEALTH_DEGRADED = 1, NPU_HEALTH_LOST = 2 };

struct npu_query {
	struct npu_head head;
	__u64 caps;
	char name[64];     /* product name, as aclrtGetSocName gives it */
	char firmware[32]; /* version of firmware or simulator */
	__u32 health;      /* enum npu_health */
	__u32 cores;
	__u64 memory_total; /* bytes, bad pages not counted */
	__u64 memory_free;
	__u64 memory_bad; /* bytes retired */
	__u64 largest_run;  /* bytes of the largest physically contiguous free run */
	__u32 util_permille; /* of all cores, over about the last second */
	__u32 sessions;
	__u32 engines;
	__u32 max_queues; /* a session */
	__u64 slab_size;
	__u64 boot_id; /* differs after each start or reset */
	__u32 sandbox_active;  /* NPU_KIND_SIM: layers that stand, NPU_SANDBOX_* */
	__u32 sandbox_missing; /* layers that the host refused */
	__u64 busy_ns; /* core time used since start */
	__u64 default_timeout_us; /* kernel time limit when the entry says 0 */
	__u64 reserved[8];
};

/* Layers of the cage of an engine (NPU_KIND_SIM). */
#define NPU_SANDBOX_NO_NEW_PRIVS (1u << 0)
#define NPU_SANDBOX_SECCOMP (1u << 1)
#define NPU_SANDBOX_USER_NS (1u << 2)
#define NPU_SANDBOX_PID_NS (1u << 3)
#define NPU_SANDBOX_NET_NS (1u << 4)
#define NPU_SANDBOX_IPC_NS (1u << 5)
#define NPU_SANDBOX_UTS_NS (1u << 6)
#define NPU_SANDBOX_MOUNT_NS (1u << 7)
#define NPU_SANDBOX_UID (1u << 8)
#define NPU_SANDBOX_CAPABILITIES (1u << 9)
#define NPU_SANDBOX_LANDLOCK (1u << 10)
#define NPU_SANDBOX_LANDLOCK_NET (1u << 11)
#define NPU_SANDBOX_LANDLOCK_SCOPE (1u << 12)
#define NPU_SANDBOX_RLIMITS (1u << 13)
#define NPU_SANDBOX_DATA_LIMIT (1u << 14)
#define NPU_SANDBOX_NOT_DUMPABLE (1u << 15)
#define NPU_SANDBOX_PARENT_DEATH (1u << 16)
#define NPU_SANDBOX_COUNT 17

struct npu_reset { /* fails every session with NPU_FAULT_LOST, then comes back with a new boot_id */
	struct npu_head head;
};

enum npu_counter {
	NPU_COUNTER_MEM_USED = 0,  /* bytes */
	NPU_COUNTER_MEM_PEAK = 1,
	NPU_COUNTER_HOST_MEM = 2,  /* bytes of pinned host memory */
	NPU_COUNTER_QUEUES = 3,
	NPU_COUNTER_CONTEXTS = 4,
	NPU_COUNTER_MODULES = 5,
	NPU_COUNTER_TASKS_QUEUED = 6, /* entries in rings that are not done: the client's claim */
	NPU_COUNTER_TASKS_DONE = 7,   /* the engine's claim */
	NPU_COUNTER_CORE_NS = 8,      /* core time, measured from outside */
	NPU_COUNTER_FAULTS = 9,
	NPU_COUNTER_ENGINE_STARTS = 10,
	NPU_COUNTER_ENGINE_PID = 11, /* 0: none runs */
	NPU_COUNTER_MAX = 32
};

struct npu_counters { /* of head.session, or of the device when that is 0 */
	struct npu_head head;
	__u64 values[NPU_COUNTER_MAX];
};

/* One fault, as it goes through every layer unchanged. */
struct npu_fault_record {
	__u64 seq; /* counts faults of this device from 1 */
	__u64 session;
	__u64 time_ns; /* CLOCK_MONOTONIC */
	__u32 kind;    /* enum npu_fault_kind */
	__u32 flags;   /* NPU_FAULT_ADDRESS_* */
	__u32 context; /* id of CTX_CREATE */
	__u32 queue;   /* id of QUEUE_CREATE */
	__u64 task;
	__u32 block;
	__u32 core;
	__u64 address;
	__u64 pc;
	__u32 module;
	__u32 func;
	char kernel[NPU_NAME_MAX]; /* the image's claim, printable, NUL terminated */
};

/* The record with the smallest seq > after, of head.session if it is not 0: -ENOENT when none. */
struct npu_error_query {
	struct npu_head head;
	__u64 after;
	struct npu_fault_record fault;
};

enum npu_inject_kind {
	NPU_INJECT_ECC_CORRECTABLE = 1, NPU_INJECT_ECC_UNCORRECTABLE = 2, NPU_INJECT_HUNG_QUEUE = 3,
	NPU_INJECT_LOST_INTERRUPT = 4, NPU_INJECT_FIRMWARE_DEATH = 5, NPU_INJECT_SLOW = 6,
	NPU_INJECT_LINK_LOSS = 7, NPU_INJECT_ENGINE_KILL = 8,
};

struct npu_inject {
	struct npu_head head;
	__u32 kind;
	__u32 queue;
	__u64 address;
	__u64 value;
};

enum npu_event_type {
	NPU_EVENT_MODULE = 1,  /* MODULE_LOAD came to its end: id = module, status, module */
	NPU_EVENT_FAULT = 2,   /* fault */
	NPU_EVENT_ENGINE = 3,  /* an engine was started or replaced: status = start count */
	NPU_EVENT_QUEUE = 4,   /* WAIT with NPU_WAIT_ARM reached: id = queue */
	NPU_EVENT_RESET = 5,   /* device was reset: id = boot id */
	NPU_EVENT_MEMORY = 6,  /* pages retired: id = handle, status = bytes */
	NPU_EVENT_HEALTH = 7,  /* status = enum npu_health */
	NPU_EVENT_SESSION = 8, /* SESSION_DESTROY came to its end: everything is freed */
};

struct npu_event {
	__u32 type;
	__u32 size; /* of this record */
	__u64 session;
	__u64 id;
	__u64 user; /* the user value given at the creation of the object */
	__u64 time_ns;
	__s32 status; /* 0 or a negative errno, or as the type says */
	__u32 lost;   /* records dropped before this one because nobody read them */
	union {
		struct {
			__u32 funcs; /* kernels in it */
			__u32 reserved;
			char error[NPU_NAME_MAX]; /* why it was refused, printable, NUL terminated */
		} module;
		struct npu_fault_record fault;
	};
};

/* ---- session ------------------------------------------------------------------------------- */

struct npu_session_create { /* M; head.session is 0 */
	struct npu_head head;
	__u32 uid;
	__u32 gid;
	__u32 pid;
	__u32 reserved0;
	__u64 pid_start;       /* start time, field 22 of /proc/PID/stat */
	__u8 token_hash[32];
	__u64 memory_limit;    /* bytes of device memory, 0: the device */
	__u64 host_limit;      /* bytes of pinned host memory, 0: no limit of its own */
	__u32 queue_limit;     /* 0: max_queues */
	__u32 module_limit;    /* 0: 256 */
	__u64 slab_address;    /* in the window, NPU_PAGE_LARGE aligned: where the device maps the slab */
	__u64 user;            /* comes back in event records */
	char comm[16];
	/* out */
	__u64 session;
	__s32 fd_slab;
	__s32 fd_doorbell;   /* write 8 bytes */
	__s32 fd_completion; /* poll, read 8 bytes */
	__s32 fd_life;       /* read end of a pipe: hang-up when the device is gone */
};

struct npu_session_destroy { /* M; unreachable and uncharged on return, freed behind */
	struct npu_head head;
};

/* ---- restart ------------------------------------------------------------------------------- */

enum npu_object_type {
	NPU_OBJ_SESSION = 1, NPU_OBJ_CONTEXT = 2, NPU_OBJ_MEMORY = 3, NPU_OBJ_QUEUE = 4,
	NPU_OBJ_MODULE = 5, NPU_OBJ_MAP = 6,
};

struct npu_object {
	__u32 type;
	__u32 parent; /* context of a queue, memory handle of a map */
	__u64 session;
	__u64 id; /* address for a map */
	__u64 bytes; /* of a session: its largest call number so far */
	__u64 user;
	__u64 arg; /* session: pid << 32 | uid; memory: kind; map: generation; queue: slot */
};

#define NPU_ENUM_MAX 128u
struct npu_obj_enum { /* in (type, session, id) order; head.session 0: of all sessions */
	struct npu_head head;
	__u64 cursor; /* in: 0 to begin, out: 0 at the end */
	__u32 count;
	__u32 reserved;
	struct npu_object objects[NPU_ENUM_MAX];
};

struct npu_obj_fds { /* the fds once more: of a session its four, of memory its one */
	struct npu_head head;
	__u32 type;
	__u32 reserved;
	__u64 id;
	__s32 fds[4];
};

#define NPU_TAG_SET 0x1u /* head.flags: store, else read */
struct npu_obj_tag {
	struct npu_head head;
	__u32 type;
	__u32 bytes; /* of tag; out when read */
	__u64 id;
	__u8 tag[NPU_TAG_MAX];
};

/* ---- context ------------------------------------------------------------------------------- */

struct npu_ctx_create { /* M */
	struct npu_head head;
	__u32 priority; /* 0 highest .. 7 */
	__u32 weight;   /* 1..1000, 0: 100 */
	__u32 cores;    /* limit, 0: all */
	__u32 reserved;
	__u64 user;
	__u32 ctx; /* out, 1..1023: also its index in npu_slab_header.context_error */
	__u32 reserved1;
};

struct npu_ctx_destroy { /* M; -EBUSY while queues live in it */
	struct npu_head head;
	__u32 ctx;
	__u32 reserved;
};

#define NPU_CTX_PRIORITY 0x1u /* head.flags: which fields to set */
#define NPU_CTX_WEIGHT 0x2u
#define NPU_CTX_CORES 0x4u
#define NPU_CTX_CLEAR_ERROR 0x8u /* leave failure mode "stop" after a fault */
struct npu_ctx_set { /* M */
	struct npu_head head;
	__u32 ctx;
	__u32 priority;
	__u32 weight;
	__u32 cores;
};

/* ---- memory -------------------------------------------------------------------------------- */

enum npu_mem_kind {
	NPU_MEM_DEVICE = 1, /* device memory */
	NPU_MEM_HOST = 2,   /* pinned host memory made by the device, mapped on both sides */
	NPU_MEM_IMAGE = 3,  /* staging for MODULE_LOAD; cannot be mapped into the address space */
};

/* head.flags of MEM_ALLOC */
#define NPU_MEM_HUGE_FIRST 0x1u /* 2 MiB pages where it pays */
#define NPU_MEM_HUGE_ONLY 0x2u
#define NPU_MEM_CONTIGUOUS 0x4u /* physically contiguous */
#define NPU_MEM_POPULATE 0x8u   /* back it with memory at once, off the caller's path */

struct npu_mem_alloc { /* M */
	struct npu_head head;
	__u32 kind;
	__u32 reserved;
	__u64 bytes; /* in: > 0; out: rounded up to whole pages */
	__u64 user;
	__u64 mem; /* out: handle, > 0 */
	__u64 page; /* out: page size used */
	__u64 largest; /* out with -ENOSPC: largest contiguous run, bytes */
	__s32 fd; /* out: file to map, or -1 when it is not host visible */
	__s32 reserved1;
};

struct npu_mem_free { /* M; maps of it go too */
	struct npu_head head;
	__u64 mem;
};

#define NPU_MAP_READ_ONLY 0x1u
struct npu_mem_map { /* M; whole object or a page aligned part; -EEXIST when the range is taken */
	struct npu_head head;
	__u64 mem;
	__u64 address; /* in the window, page aligned; the caller owns the window */
	__u64 offset;
	__u64 bytes;
	__u64 generation; /* out: ring entries that use it name this */
};

struct npu_mem_unmap { /* M; exactly a range that was mapped */
	struct npu_head head;
	__u64 address;
	__u64 bytes;
	__u64 generation; /* out */
};

struct npu_mem_export { /* M; makes the object known to other sessions by token */
	struct npu_head head;
	__u64 mem;
	__u64 token[2]; /* out: random */
	__s32 fd; /* out: for MEM_IMPORT at another device, else -1 */
	__s32 reserved;
};

struct npu_mem_import { /* M; the object is charged to its exporter */
	struct npu_head head;
	__u64 token[2];
	__u64 user;
	__u64 mem; /* out */
	__u64 bytes; /* out */
	__s32 fd; /* out, as MEM_ALLOC */
	__s32 reserved;
};

struct npu_host_register { /* M; memory of kind HOST, offset and size: pins and maps */
	struct npu_head head;
	__u64 mem;
	__u64 offset;
	__u64 bytes;
	__u64 address; /* in the window */
	__u64 generation; /* out */
};

struct npu_host_unregister { /* M */
	struct npu_head head;
	__u64 address;
	__u64 bytes;
	__u64 generation; /* out */
};

struct npu_mem_query {
	struct npu_head head;
	__u64 mem;
	__u32 kind; /* out, all below */
	__u32 maps;
	__u64 bytes;
	__u64 page;
	__u64 imports; /* other sessions that hold it */
};

/* ---- queue --------------------------------------------------------------------------------- */

enum npu_fail_mode { NPU_FAIL_CONTINUE = 0, NPU_FAIL_STOP = 1 };

struct npu_queue_create { /* M; -EBUSY while rings of old queues are still in use: try again */
	struct npu_head head;
	__u32 ctx;
	__u32 priority;  /* 0 highest .. 7 */
	__u32 fail_mode; /* enum npu_fail_mode */
	__u32 window;    /* tasks the device takes ahead, 0: 8 */
	__u64 user;
	__u32 queue; /* out: handle, > 0 */
	__u32 slot;  /* out: index of its ring in the slab */
};

struct npu_queue_destroy { /* M; work not yet begun is dropped */
	struct npu_head head;
	__u32 queue;
	__u32 reserved;
};

enum npu_queue_op {
	NPU_QUEUE_PAUSE = 1, NPU_QUEUE_RESUME = 2, NPU_QUEUE_ABORT = 3, /* drops all, raises epoch */
	NPU_QUEUE_SET_FAIL_MODE = 4, NPU_QUEUE_SET_PRIORITY = 5,
};

struct npu_queue_ctrl { /* M */
	struct npu_head head;
	__u32 queue;
	__u32 op;
	__u32 value; /* of the SET ops */
	__u32 epoch; /* out */
};

#define NPU_SUBMIT_MAX 128u
struct npu_submit { /* for callers without a mapped ring; arguments must lie in device memory */
	struct npu_head head;
	__u32 queue;
	__u32 count; /* in: entries, out: entries taken (ring full: fewer, 0 gives -EAGAIN) */
	__u64 tail;  /* out: value of done at which all are complete */
	struct npu_entry entries[NPU_SUBMIT_MAX];
};

#define NPU_WAIT_ARM 0x1u /* head.flags: send NPU_EVENT_QUEUE when reached */
struct npu_wait { /* returns at once: 0 reached, -EAGAIN not yet */
	struct npu_head head;
	__u32 queue;
	__u32 reserved;
	__u64 done; /* in: wanted, out: where it is */
};

/* ---- module -------------------------------------------------------------------------------- */

struct npu_module_load { /* M; ends with NPU_EVENT_MODULE */
	struct npu_head head;
	__u64 mem; /* kind IMAGE; may be freed after the event */
	__u64 bytes;
	__u64 user;
	__u32 module; /* out, > 0 */
	__u32 reserved;
};

struct npu_module_unload { /* M */
	struct npu_head head;
	__u32 module;
	__u32 reserved;
};

struct npu_func_lookup { /* by name, or by index when name is empty; answers the image's claims */
	struct npu_head head;
	__u32 module;
	__u32 func; /* in or out */
	__u32 args_size;
	__u32 params;
	char name[NPU_NAME_MAX];
	__u32 param_sizes[NPU_MAX_PARAMS];
};

/* ---- numbers ------------------------------------------------------------------------------- */

#define NPU_IOCTL_BASE 0xb7
#define NPU_IO(nr, type) _IOWR(NPU_IOCTL_BASE, nr, struct type)

#define NPU_IOCTL_VERSION NPU_IO(0x00, npu_version)
#define NPU_IOCTL_DISCOVER NPU_IO(0x01, npu_discover)
#define NPU_IOCTL_QUERY NPU_IO(0x10, npu_query)
#define NPU_IOCTL_RESET NPU_IO(0x11, npu_reset)
#define NPU_IOCTL_COUNTERS NPU_IO(0x12, npu_counters)
#define NPU_IOCTL_ERROR_QUERY NPU_IO(0x13, npu_error_query)
#define NPU_IOCTL_INJECT NPU_IO(0x14, npu_inject)
#define NPU_IOCTL_SESSION_CREATE NPU_IO(0x20, npu_session_create)
#define NPU_IOCTL_SESSION_DESTROY NPU_IO(0x21, npu_session_destroy)
#define NPU_IOCTL_OBJ_ENUM NPU_IO(0x28, npu_obj_enum)
#define NPU_IOCTL_OBJ_FDS NPU_IO(0x29, npu_obj_fds)
#define NPU_IOCTL_OBJ_TAG NPU_IO(0x2a, npu_obj_tag)
#define NPU_IOCTL_CTX_CREATE NPU_IO(0x30, npu_ctx_create)
#define NPU_IOCTL_CTX_DESTROY NPU_IO(0x31, npu_ctx_destroy)
#define NPU_IOCTL_CTX_SET NPU_IO(0x32, npu_ctx_set)
#define NPU_IOCTL_MEM_ALLOC NPU_IO(0x40, npu_mem_alloc)
#define NPU_IOCTL_MEM_FREE NPU_IO(0x41, npu_mem_free)
#define NPU_IOCTL_MEM_MAP NPU_IO(0x42, npu_mem_map)
#define NPU_IOCTL_MEM_UNMAP NPU_IO(0x43, npu_mem_unmap)
#define NPU_IOCTL_MEM_EXPORT NPU_IO(0x44, npu_mem_export)
#define NPU_IOCTL_MEM_IMPORT NPU_IO(0x45, npu_mem_import)
#define NPU_IOCTL_HOST_REGISTER NPU_IO(0x46, npu_host_register)
#define NPU_IOCTL_HOST_UNREGISTER NPU_IO(0x47, npu_host_unregister)
#define NPU_IOCTL_MEM_QUERY NPU_IO(0x48, npu_mem_query)
#define NPU_IOCTL_QUEUE_CREATE NPU_IO(0x50, npu_queue_create)
#define NPU_IOCTL_QUEUE_DESTROY NPU_IO(0x51, npu_queue_destroy)
#define NPU_IOCTL_QUEUE_CTRL NPU_IO(0x52, npu_queue_ctrl)
#define NPU_IOCTL_SUBMIT NPU_IO(0x53, npu_submit)
#define NPU_IOCTL_WAIT NPU_IO(0x54, npu_wait)
#define NPU_IOCTL_MODULE_LOAD NPU_IO(0x60, npu_module_load)
#define NPU_IOCTL_MODULE_UNLOAD NPU_IO(0x61, npu_module_unload)
#define NPU_IOCTL_FUNC_LOOKUP NPU_IO(0x62, npu_func_lookup)

/* ---- socket transport ---------------------------------------------------------------------- */

enum npu_msg_type { NPU_MSG_CALL = 1, NPU_MSG_REPLY = 2, NPU_MSG_EVENT = 3 };

struct npu_msg {
	__u32 magic; /* NPU_MSG_MAGIC */
	__u16 type;  /* enum npu_msg_type */
	__u16 nr;    /* _IOC_NR of the call */
	__u64 id;    /* of the request, repeated in the reply */
	__s32 result; /* reply: 0 or a negative errno */
	__u32 bytes; /* of the struct that follows */
};
#define NPU_MSG_MAGIC 0x534d504eu /* "NPMS" */
#define NPU_MSG_MAX (sizeof(struct npu_msg) + NPU_CALL_MAX)

#if defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
_Static_assert(sizeof(struct npu_head) == 24, "npu_head");
_Static_assert(sizeof(struct npu_obj_enum) <= NPU_CALL_MAX, "npu_obj_enum");
_Static_assert(sizeof(struct npu_submit) <= NPU_CALL_MAX, "npu_submit");
_Static_assert(sizeof(struct npu_msg) == 24, "npu_msg");
#endif

#endif
