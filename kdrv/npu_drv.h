/* SPDX-License-Identifier: GPL-2.0 */
/*
 * npu_drv.h - npu.ko: the Linux side of the device interface
 *
 * The rules of the interface are kdrv/core's (npu_core.h); its admin commands become commands of
 * the hardware (npu_hw.h) here, and completions become upcalls of the core.
 *
 * Objects and who owns them
 *   npu_device  one card. Referenced by struct device: bound driver, open files, spaces, bos.
 *               Everything but the struct itself ends with npu_pci_remove().
 *   npu_file    one open /dev/npuN; its core file ends at close or at removal, what is first.
 *   npu_space   a session's address space: slab slot, queue files, life files. Kref: the core's
 *               session (till SPACE_GONE) and each file.
 *   npu_bo      host memory with an fd (kinds HOST and IMAGE), or the card's record of device
 *               memory. Kref: the core's object (till MEM_GONE) and its dma-buf.
 *
 * Removal: "gone" is set first. Whoever comes from user space stands inside npu_device_enter()
 * .. npu_device_exit() (SRCU), so after synchronize_srcu() nobody is in the core or at the
 * registers. Every wait inside tests "gone". Mappings are taken away and show a blank page.
 *
 * Lock order (outermost first)
 *   npu_device.srcu
 *   npu_device.reset_lock   one hardware reset, suspend or firmware load at a time
 *   npu_admin.cq_lock       one reader of the completion ring
 *   npu_device.core_lock    the core's mutex: everything the core knows
 *   npu_device.obj_lock     lists and states of spaces, bos and requests
 *   npu_view.sem            (write) mappings are being taken away; (read) below mmap_lock: faults
 *   npu_admin.lock          spinlock: submission ring and backlog
 *   npu_space.lock, npu_device.calls_lock   spinlocks, innermost
 * Page faults take mmap_lock > npu_view.sem and nothing else. User memory is copied with none of
 * these held but SRCU.
 */
#ifndef NPU_DRV_H
#define NPU_DRV_H

#include <linux/bitmap.h>
#include <linux/cdev.h>
#include <linux/device.h>
#include <linux/dma-mapping.h>
#include <linux/io.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/ratelimit.h>
#include <linux/rwsem.h>
#include <linux/scatterlist.h>
#include <linux/spinlock.h>
#include <linux/srcu.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "kdrv/core/npu_core.h"
#include "kdrv/uapi/npu_hw.h"
#include "kdrv/npu_compat.h"

#define NPU_DRV_NAME "npu"
#ifndef NPU_DRV_VERSION
#define NPU_DRV_VERSION "1.0"
#endif

/* What this driver can make of a card's capabilities: no aperture, no peer window. */
#define NPU_CAPS_CARD (NPU_CAP_HOST_MAPPED | NPU_CAP_INJECT | NPU_CAP_ISOLATED)
#define NPU_CAUSE_WORDS (NPU_HW_SLOTS_MAX / 64)
#define NPU_BAD_PAGES 256u

struct npu_device;

/* ---- what user space has mapped: npu_view.c ------------------------------------------------ */

/*
 * The mappings of one object. Live: faults give its memory. Once blank, all mappings are gone and
 * faults give one zeroed page of the object's own, which nobody else ever sees.
 */
struct npu_view {
	struct rw_semaphore sem;
	bool blank;
	struct page *page;
};

void npu_view_init(struct npu_view *view);
void npu_view_fini(struct npu_view *view);
/* Takes away every mapping of mapping (may be NULL: there was none). May sleep; idempotent. */
void npu_view_blank(struct npu_view *view, struct address_space *mapping);
/* The blank page into a vma, VM_PFNMAP or VM_MIXEDMAP; sem is held for reading. */
vm_fault_t npu_view_fault_blank(struct npu_view *view, struct vm_fault *vmf);

int npu_fs_init(void);
void npu_fs_exit(void);
struct inode *npu_fs_inode(void);
/* A file over inode, which it references; pins the module. */
struct file *npu_fs_file(struct inode *inode, const char *name, const struct file_operations *fops,
			 void *private);

/* ---- admin queue: npu_admin.c -------------------------------------------------------------- */

/* A command that waits for room. Objects carry the one of their own drop, which so cannot fail. */
struct npu_node {
	struct list_head link;
	struct npu_hw_cmd cmd;
};

struct npu_admin {
	spinlock_t lock; /* the ring and all below but cq_* */
	bool frozen; /* the card is being reset: everything goes to the backlog */
	void __iomem *sq;
	void __iomem *cq;
	u64 sq_offset, cq_offset;
	u32 sq_entries, cq_entries;
	u32 tail;    /* of the submission ring, since the last reset */
	u32 cq_head;
	u64 posted;  /* commands since probe */
	struct list_head backlog;
	u32 nbacklog;
	u32 seen_head;         /* where the card was, and since when: does it take anything? */
	unsigned long seen_at;
	struct mutex cq_lock; /* cq_head, cq_copy */
	struct npu_hw_completion cq_copy; /* under cq_lock */
	wait_queue_head_t wait; /* requests answered */
};

enum npu_req_type { NPU_REQ_MEM = 1, NPU_REQ_FUNCS = 2, NPU_REQ_COUNTERS = 3, NPU_REQ_SYNC = 4 };

/* A command whose completion is wanted, with the DMA buffer that it needs until then. */
struct npu_req {
	enum npu_req_type type;
	u32 cid, epoch;
	struct npu_space *space; /* or NULL */
	u32 id;                  /* module, or bo */
	u32 count;
	void *buf;
	dma_addr_t dma;
	size_t bytes;
};

/* ---- interrupts: npu_irq.c ----------------------------------------------------------------- */

struct npu_vector {
	struct npu_device *ndev;
	unsigned int index;
	int irq;
	bool requested;
	u64 mask[NPU_CAUSE_WORDS]; /* slots that this vector stands for */
	unsigned long window;      /* jiffies at which counting began */
	unsigned int count;
	bool masked;
	struct delayed_work calm;
	atomic64_t hits, runs, storms;
	char name[32];
};

/* ---- a card -------------------------------------------------------------------------------- */

struct npu_stats {
	atomic64_t ioctls, doorbells, completions, faults, ecc_corrected, ecc_uncorrected;
	atomic64_t dma_errors, resets, wakes;
};

struct npu_device {
	struct device dev; /* /dev/npuN */
	struct cdev cdev;
	struct pci_dev *pdev;
	int id;
	bool added; /* device and cdev */

	struct srcu_struct srcu;
	bool gone;

	void __iomem *bar0;
	struct npu_hw_regs __iomem *regs; /* uncached */
	void __iomem *slabs;              /* write-combined, as the queues (npu_admin.sq, .cq) */
	resource_size_t bar2;             /* where it lies */
	u64 bar2_bytes;
	/* fixed registers, checked once */
	u64 slab_offset, slab_stride;
	u32 slab_slots;
	u32 cores;
	u64 memory_bytes, caps, default_timeout_us;
	char name[64];
	char fw_version[32];

	struct mutex core_lock; /* all that the core knows */
	struct npu_core *core;
	struct npu_core_file *own; /* of the driver, for resets that it begins itself */

	spinlock_t calls_lock; /* the list below */
	struct list_head calls; /* struct npu_call_ctx */

	struct mutex obj_lock; /* the lists, arrays and counters below, states of their members */
	struct list_head spaces, bos, files;
	struct npu_space *slots[NPU_HW_SLOTS_MAX];
	DECLARE_BITMAP(slots_used, NPU_HW_SLOTS_MAX);
	struct xarray bo_ids;
	u32 bo_next;
	struct xarray reqs;
	u32 req_next;
	u32 epoch; /* counts resets: objects of an older one are unknown to the card */
	u64 counters[NPU_COUNTER_MAX];
	bool counters_busy;
	u32 bad_pages[NPU_BAD_PAGES];
	u32 nbad;

	struct npu_admin admin;
	struct npu_vector vectors[NPU_HW_VECTORS];
	struct workqueue_struct *wq; /* ends of objects, resets */

	/* npu_watch.c */
	struct mutex reset_lock; /* one reset or firmware load at a time */
	struct delayed_work watch;
	struct work_struct recover;
	struct work_struct reset;
	unsigned long recovering; /* bit 0: a recovery is under way */
	u64 heartbeat;
	unsigned long heartbeat_at;
	u64 boot_id;
	unsigned int attempts;
	unsigned long reset_at; /* jiffies */
	bool watching;
	bool down; /* the last reset failed */
	struct ratelimit_state fault_limit;
	char why[96];

	struct npu_stats stats;
	struct dentry *debugfs;
};

#define to_npu_device(d) container_of(d, struct npu_device, dev)

static inline bool npu_device_enter(struct npu_device *ndev, int *ret_idx)
{
	*ret_idx = srcu_read_lock(&ndev->srcu);
	if (READ_ONCE(ndev->gone)) {
		srcu_read_unlock(&ndev->srcu, *ret_idx);
		return false;
	}
	return true;
}

static inline void npu_device_exit(struct npu_device *ndev, int idx)
{
	srcu_read_unlock(&ndev->srcu, idx);
}

/* Rings a vector of the board. Fences before it: what the card is to see is visible. */
void npu_ring(struct npu_device *ndev, u32 vector);
/* False: reads all ones, the card has been unplugged or fell off. */
bool npu_present(struct npu_device *ndev);

/* npu_shim.c, npu_command.c */
extern const struct npu_shim npu_device_shim;
int npu_command_run(void *dev, struct npu_admin_cmd *cmd);

/* ---- npu_admin.c, npu_admin_cq.c ----------------------------------------------------------- */

int npu_admin_init(struct npu_device *ndev);
void npu_admin_fini(struct npu_device *ndev);

struct npu_node *npu_node_new(void);
void npu_node_free(struct npu_node *node);
/* Posts node->cmd and takes the node. Never fails, never blocks. */
void npu_admin_post(struct npu_device *ndev, struct npu_node *node);
/* Moves what fits from the backlog into the ring. */
void npu_admin_drain(struct npu_device *ndev);
/* Waits until the request is answered or dropped, at most ms; without locks. */
void npu_admin_wait(struct npu_device *ndev, u32 cid, unsigned int ms);
/* True when there are commands and the card has taken none for so long. */
bool npu_admin_stalled(struct npu_device *ndev, unsigned long ticks);
/*
 * From now on nothing reaches the card. drop: it is going to be reset: what waits for room is
 * dropped, and a new epoch begins.
 */
void npu_admin_freeze(struct npu_device *ndev, bool drop);
/* The card starts with empty rings (reset) or where it was; nothing when epoch is an older one. */
void npu_admin_thaw(struct npu_device *ndev, bool reset, u32 epoch);
/* A request with a DMA buffer of bytes (0: none). NULL: no memory. */
struct npu_req *npu_req_new(struct npu_device *ndev, enum npu_req_type type, size_t bytes);
void npu_req_free(struct npu_device *ndev, struct npu_req *req);
/*
 * Frees open requests that the card no longer answers: those of a space, else all of older epochs,
 * else all.
 */
void npu_req_drop(struct npu_device *ndev, const struct npu_space *space, bool all);
/* Reads the completion ring: the threaded half of vector 0. */
void npu_admin_completions(struct npu_device *ndev);

/* ---- calls: npu_ioctl.c, npu_file.c -------------------------------------------------------- */

#define NPU_REPLY_FDS 4

/* One call from user space; found by the shim's functions through npu_call_current(). */
struct npu_call_ctx {
	struct list_head link;
	struct task_struct *task;
	struct file *files[NPU_REPLY_FDS];
	int fds[NPU_REPLY_FDS];
	unsigned int nfds;
	struct npu_bo *bo; /* host memory made before the core was locked */
	u32 cid;           /* request to be answered before the call is, 0: none */
	bool again;        /* the call asks; with that answer it is worth a second look */
};

struct npu_file {
	struct list_head link; /* in npu_device.files, under obj_lock */
	struct npu_device *ndev;
	struct npu_core_file *core_file;
	wait_queue_head_t wait;
	bool ready; /* there may be event records */
	u64 client;
};

int npu_ioctl_fd_add(struct npu_call_ctx *ctx, struct file *file, s32 *ret_slot);
struct npu_call_ctx *npu_call_current(struct npu_device *ndev);
/* ndev is NULL on the control node. */
long npu_ioctl_run(struct npu_device *ndev, struct npu_core *core, struct npu_core_file *file,
		   unsigned int cmd, unsigned long arg);

int npu_chardev_init(void);
void npu_chardev_exit(void);
int npu_chardev_id_get(struct npu_device *ndev);
void npu_chardev_id_put(struct npu_device *ndev);
int npu_chardev_add(struct npu_device *ndev);
void npu_chardev_del(struct npu_device *ndev);
/* Numbers of the cards that are there, ascending. */
unsigned int npu_registry_list(u32 ids[NPU_MAX_DEVICES]);
/* DISCOVER on the control node: what is there instead of what its own core says. */
void npu_control_discover(struct npu_discover *discover);

/* ---- npu_space.c, npu_slab.c -------------------------------------------------------------- */

struct npu_wait_entry {
	struct list_head link;
	u32 queue; /* handle */
	u32 slot;
	u64 want;
};

struct npu_space {
	struct kref ref;
	struct list_head link; /* in npu_device.spaces, under obj_lock */
	struct npu_device *ndev;
	struct npu_session *session; /* valid until gone */
	u64 session_id;
	u32 slot;
	u32 epoch;
	bool ended;    /* SPACE_DESTROY was posted */
	bool finishing; /* SPACE_GONE came, the end is at work */
	struct npu_node *stop, *destroy;
	struct work_struct end;
	struct work_struct look; /* at the waits of npud */

	struct inode *inode;
	struct npu_view view;
	bool dead; /* stopped, lost or unplugged: HUP */
	wait_queue_head_t wait;
	spinlock_t lock; /* count */
	u64 count; /* completions nobody has read */
	struct list_head waits; /* struct npu_wait_entry, under core_lock */
	bool waiting;           /* there are some */

	u64 counters[NPU_COUNTER_MAX];
	bool counters_busy;
	DECLARE_BITMAP(rings_open, NPU_MAX_QUEUES);
};

int npu_space_cache_init(void);
void npu_space_cache_exit(void);
int npu_space_create(struct npu_device *ndev, struct npu_session *session);
void npu_space_put(struct npu_space *space);
/* No engine any more: files give HUP, mappings go blank. */
void npu_space_kill(struct npu_space *space, bool blank);
/* The card is through with it, or forgot it: tells the core, gives up the slot. */
void npu_space_finish(struct npu_space *space);
/* At removal: what core and card held of it. obj_lock is held. */
void npu_space_abandon(struct npu_space *space);
/* A file for a slot of SESSION_CREATE. */
struct file *npu_space_file(struct npu_space *space, enum npu_fd_kind kind);
/* The card has completed something for it: wakes. From the irq thread. */
void npu_space_completed(struct npu_space *space);
void npu_space_bell(struct npu_space *space);

void __iomem *npu_space_slab(struct npu_space *space);
struct npu_ring_ctrl __iomem *npu_space_ring(struct npu_space *space, u32 slot);
void npu_space_submit(struct npu_space *space, u32 slot, const struct npu_entry *entries,
		      u32 count, u32 *ret_taken, u64 *ret_tail);
u64 npu_space_done(struct npu_space *space, u32 slot);
int npu_space_wait_arm(struct npu_space *space, struct npu_queue *queue, u64 want);
void npu_space_wait_drop(struct npu_space *space, u32 queue);
void npu_space_waits_check(struct npu_space *space);
/* Makes the header. The card has erased the slab: after a reset, and before SPACE_GONE. */
void npu_slab_prepare(struct npu_space *space, u64 address);

/* ---- npu_mem.c ----------------------------------------------------------------------------- */

enum npu_bo_state { NPU_BO_LIVE, NPU_BO_ENDED, NPU_BO_FINISHING };

struct npu_bo {
	struct kref ref;
	struct list_head link; /* in npu_device.bos, under obj_lock */
	struct npu_device *ndev;
	struct npu_mem *mem; /* valid until gone */
	struct npu_core_file *owner; /* whose session made it: to compare, never to follow */
	u64 session_id;
	u32 id;
	u32 epoch;
	u32 kind;
	u64 bytes;
	enum npu_bo_state state;
	struct npu_node *destroy;
	struct work_struct end;

	/* kinds HOST and IMAGE */
	struct npu_view view;
	struct page **pages;
	unsigned long npages;
	struct sg_table sgt;
	bool mapped; /* sgt, for the card */
	struct dma_buf *dmabuf;
};

int npu_bo_cache_init(void);
void npu_bo_cache_exit(void);
/* Host memory of bytes with pages, mapped for the card; not yet known to anybody. */
int npu_bo_new_host(struct npu_device *ndev, u64 bytes, struct npu_bo **ret_bo);
int npu_bo_new_device(struct npu_device *ndev, u64 bytes, struct npu_bo **ret_bo);
void npu_bo_put(struct npu_bo *bo);
/* Ends one that was not given to the core. */
void npu_bo_discard(struct npu_bo *bo);
/* Takes an id, posts MEM_CREATE. */
int npu_bo_create(struct npu_bo *bo, struct npu_mem *mem, struct npu_session *session);
/* 0: is gone; NPU_ADMIN_PENDING. */
int npu_bo_destroy(struct npu_bo *bo);
void npu_bo_finish(struct npu_bo *bo);
void npu_bo_abandon(struct npu_bo *bo);
struct file *npu_bo_file(struct npu_bo *bo);

/* ---- npu_fw.c ------------------------------------------------------------------------------ */

/* RESET through the mailbox, waits till the card takes firmware again. */
int npu_fw_reset(struct npu_device *ndev);
/* Loads, boots, shakes hands. One line in the log names the step that failed. */
int npu_fw_load(struct npu_device *ndev);

/* ---- npu_irq.c ----------------------------------------------------------------------------- */

int npu_irq_init(struct npu_device *ndev);
void npu_irq_fini(struct npu_device *ndev);
/* Looks at every status word, interrupt or not. */
void npu_irq_poll(struct npu_device *ndev);

/* ---- npu_watch.c --------------------------------------------------------------------------- */

void npu_watch_init(struct npu_device *ndev);
void npu_watch_start(struct npu_device *ndev);
void npu_watch_stop(struct npu_device *ndev);
/* The card has died or must be taken for dead: every session is lost, then it is reset. */
void npu_watch_recover(struct npu_device *ndev, const char *why);
/* From the shim: the core was reset, the hardware follows. core_lock is held. */
void npu_watch_reset_begin(struct npu_device *ndev);
int npu_watch_suspend(struct npu_device *ndev);
int npu_watch_resume(struct npu_device *ndev, bool reset);
/* An entry under /sys/class/devcoredump with the state of the device. */
void npu_watch_dump(struct npu_device *ndev, const char *why,
		    const struct npu_fault_record *fault);
/* A task failed: once a second at most a dump and a uevent. */
void npu_watch_fault(struct npu_device *ndev, const struct npu_fault_record *fault);
void npu_watch_uevent(struct npu_device *ndev, const char *text);

/* ---- npu_debugfs.c ------------------------------------------------------------------------- */

struct seq_file;
void npu_debugfs_init(void);
void npu_debugfs_exit(void);
void npu_debugfs_add(struct npu_device *ndev);
void npu_debugfs_del(struct npu_device *ndev);
void npu_fdinfo(struct seq_file *m, struct npu_file *nfile);

#endif
