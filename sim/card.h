/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NPU_SIM_CARD_H
#define NPU_SIM_CARD_H

#include <stdbool.h>
#include <stdint.h>

#include "kdrv/uapi/npu_hw.h"
#include "sim/board.h"
#include "sim/board_space.h"

/*
 * card - the board as a PCI card: the hardware of kdrv/HARDWARE.md for a virtual machine.
 *
 * Parts, all in the loop's thread:
 *   card.c          the card put together; what happens in the engines becomes completions
 *   card_ivshmem.c  QEMU's ivshmem-doorbell device: handshake, doorbells, interrupts
 *   card_regs.c     BAR2, state machine, firmware mailbox, heartbeat, error causes
 *   card_admin.c    admin queue: takes commands, writes completions
 *   card_command.c  what the commands do; card_object.c: the objects that they name
 *   card_dma.c      the machine's RAM: translation, copies
 *   card_copy.c     ring entries that the card copies by itself
 *   card_fetch.c    rings in BAR2 <-> the engines' own slabs; card_mirror.c: what comes back
 *
 * Everything in BAR2 and in the machine's RAM is written by somebody else, at any time: a command,
 * an entry or an index is read once, and then checked. The engines' own slabs are written by
 * client code, too, and count for their session only.
 */

#define CARD_PEER 0u /* our id among ivshmem peers; machines have others */
#define CARD_SQ_ENTRIES 1024u
#define CARD_CQ_ENTRIES 256u
#define CARD_MAPS_MAX 65536u    /* of a space */
#define CARD_MODULES_MAX 4096u  /* of a space */
#define CARD_RUNS_MAX (4u << 20) /* of all host memory together */
#define CARD_IMAGE_MAX (256ull << 20)
#define CARD_MEM_BUCKETS 4096u
#define CARD_WORDS (NPU_MAX_QUEUES / 64)

struct card_run {
	uint64_t offset; /* in its memory */
	uint64_t bus, bytes;
};

struct card_mem {
	struct card_mem *next; /* in its bucket, or among those that are going */
	struct card *card;
	struct npu_mem mem; /* backend: of device memory alone */
	uint32_t id;
	unsigned int refs;  /* the number, maps, modules */
	bool named;         /* found by its number */
	uint32_t nruns;     /* kinds HOST and IMAGE */
	struct card_run *runs;
	char *map;          /* device memory, mapped for DMA; NULL: not yet */
};

struct card_ctx {
	struct npu_ctx ctx;
};

/* An entry that the card itself carries out: rows, with dst or src in host memory. */
struct card_copy {
	bool active, fill;
	uint64_t dst, src; /* of the row at y */
	uint64_t dst_pitch, src_pitch;
	uint64_t width, rows; /* rows left */
	uint64_t x;        /* bytes of this row that are done */
	uint32_t value, value_width;
};

/* A queue and its ring: indices count as the engine's ring does; + delta gives those in BAR2. */
struct card_queue {
	struct npu_queue queue;
	bool open;       /* the engine's ring is fresh, too: both are mirrored */
	bool hung;       /* by injection: not read any more */
	uint64_t fetched; /* entries given to the engine */
	uint64_t done;    /* as written to BAR2 */
	uint64_t delta;
	uint64_t errors;  /* as written to BAR2 */
	uint64_t host_seq, host_reply;
	uint64_t tail_seen; /* of BAR2, at the last look */
	uint64_t map_wait_ns; /* since when an entry waits for a mapping; 0: none does */
	struct card_copy copy;
	struct npu_entry copy_entry; /* the entry that copy carries out */
};

struct card_module {
	struct card_module *next;
	struct npu_module module;
	struct npu_mem image; /* the gathered bytes */
	uint32_t count;
	struct npu_core_func *funcs;
};

struct card_map {
	struct card_mem *mem;
	struct npu_map map; /* last: ends with an array */
};

struct card_space {
	struct card *card;
	uint32_t slot;
	struct npu_session session; /* what the board reads of it; backend: the board_space */
	bool attached; /* the slab in BAR2 is ours */
	bool stopping, dropped;
	bool gone;     /* but for the slab in BAR2: backend is no more */
	char *slab;    /* in BAR2 */

	struct card_map **maps; /* by address */
	uint32_t nmaps, maps_room;
	struct card_ctx *ctxs[NPU_CORE_MAX_CTX + 1];
	struct card_queue *queues[NPU_MAX_QUEUES]; /* by ring slot */
	struct card_module *modules;
	uint32_t nmodules;

	/* fetch unit */
	struct board_source completion; /* of the engines; fd -1: not watched */
	uint64_t live[CARD_WORDS];      /* rings that are looked at in each turn */
	bool awake;                     /* header.device_sleeping is 0 */
	uint64_t rest_ns;               /* until when it stays awake without progress */
	uint64_t since_ns, wait_ns;     /* last progress; how long it took of late to the next */
	uint64_t map_look_ns;           /* when waiting for a mapping ends; ~0: nobody waits */
	uint64_t epoch;                 /* device_epoch as written to BAR2 */

	struct board_job erased; /* mark behind the erasing of its slab */
};

/* A completion that waits for room in the queue. */
struct card_late {
	struct card_late *next;
	struct npu_hw_completion completion;
};

struct card_bell {
	struct board_source source; /* an eventfd that the machine writes; fd -1: none */
	struct card *card;
	unsigned int vector;
};

struct card_ivshmem {
	struct board_source listen, peer; /* fd -1: none */
	struct card_bell bells[NPU_HW_VECTORS];
	int irqs[NPU_HW_VECTORS];         /* the guest's; -1: none */
	uint64_t guests;                  /* ids given out so far */
};

struct card_ram {
	char *map; /* NULL: not mapped yet */
	uint64_t bytes, below4g;
};

struct card {
	struct board *board;
	struct card_ivshmem ivshmem;
	struct card_ram ram;

	/* BAR2 */
	int bar_fd;
	char *bar;
	uint64_t bar_bytes;
	struct npu_hw_regs *regs;
	uint32_t slots;
	uint64_t slab_offset, slab_stride;
	uint32_t state;      /* ours; regs.state is a copy */
	uint64_t heartbeat_ns; /* next; ~0: none */
	uint64_t beats;
	bool resetting;

	/* admin queue; the indices in BAR2 are copies of these */
	struct npu_hw_cmd *sq;
	struct npu_hw_completion *cq;
	uint32_t sq_head, cq_tail;
	bool cq_written; /* since the last interrupt */
	struct card_late *late, **late_last;
	unsigned int nlate;

	struct card_mem *mems[CARD_MEM_BUCKETS];
	struct card_mem *going;   /* MEM_GONE is still to come */
	uint64_t device_bytes;    /* of all device memory */
	uint64_t image_bytes;
	uint64_t runs;
	struct card_space *spaces[NPU_HW_SLOTS_MAX];
	uint32_t lost_irqs; /* by injection: so many completion interrupts are swallowed */
	struct sim_log_limit limit;
};

/* ---- card.c -------------------------------------------------------------------------------- */

/* On a listening socket (taken over) for QEMU. Negative errno, logged. */
int card_new(struct board *board, int listen_fd, struct card **ret_card);
/* Work that is due; after each turn of the loop. */
void card_run(struct card *card);
/* When the next is due, CLOCK_MONOTONIC ns; ~0: never. */
uint64_t card_next(struct card *card);
/* The board ends: takes its hands off spaces and BAR2; then, with the releasers gone, frees all. */
void card_stop(struct card *card);
void card_free(struct card *card);
extern const struct board_upper card_upper;

/* ---- card_ivshmem.c ------------------------------------------------------------------------ */

/* Serves QEMU on a SOCK_STREAM socket (taken over on success). */
int card_ivshmem_new(struct card *card, int listen_fd);
void card_ivshmem_free(struct card *card);
/* Raises an interrupt in the machine, if there is one. */
void card_interrupt(struct card *card, unsigned int vector);

/* ---- card_regs.c --------------------------------------------------------------------------- */

/* Makes BAR2 and its register page. */
int card_regs_new(struct card *card);
void card_regs_free(struct card *card);
/* The mailbox or the admin queue was rung. */
void card_regs_mailbox(struct card *card);
/* Begins a reset; it ends when everything is gone. */
void card_regs_reset(struct card *card);
void card_regs_run(struct card *card, uint64_t now);
/* Sets bits of error_cause and raises the error interrupt. */
void card_regs_error(struct card *card, uint64_t cause, uint64_t address, uint64_t info);
void card_regs_die(struct card *card);

/* ---- card_admin.c -------------------------------------------------------------------------- */

/* Takes what is in the submission queue, as long as completions find room. */
void card_admin_run(struct card *card);
/* There are commands to take. */
bool card_admin_waits(struct card *card);
/* Empties both queues and forgets what waits. */
void card_admin_reset(struct card *card);
/* Writes a completion, or lets it wait. */
void card_admin_complete(struct card *card, const struct npu_hw_completion *completion);
/* NPU_HW_CQ_DONE of a command; nothing when cid is 0. */
void card_admin_done(struct card *card, uint32_t cid, uint32_t space, uint32_t id, int status,
		     uint32_t value);

/* ---- card_command.c ------------------------------------------------------------------------ */

/* Carries out a command (our copy): 0 or a negative errno. */
int card_command(struct card *card, struct npu_hw_cmd *cmd);

/* ---- card_object.c ------------------------------------------------------------------------- */

struct card_mem *card_mem_find(struct card *card, uint32_t id);
int card_mem_create(struct card *card, const struct npu_hw_cmd *cmd);
/* Takes the name away; MEM_GONE once nobody holds it. */
void card_mem_drop(struct card_mem *mem);
void card_mem_unref(struct card_mem *mem);
/* The board is through with device memory. */
void card_mem_gone(struct card *card, struct npu_mem *mem);
/* Drops every name. */
void card_mem_drop_all(struct card *card);

/* The map that holds the address, or NULL. */
struct card_map *card_map_find(struct card_space *space, uint64_t address);
int card_map_add(struct card_space *space, const struct npu_hw_cmd *cmd);
int card_map_remove(struct card_space *space, uint64_t address, uint64_t generation);

struct card_module *card_module_find(struct card_space *space, uint32_t id);
int card_module_load(struct card_space *space, const struct npu_hw_cmd *cmd);
int card_module_drop(struct card_space *space, uint32_t id);

/* Frees what the space's driver has not dropped. */
void card_space_clear(struct card_space *space);
/* Ends the space: engine, objects, slab. */
void card_space_drop(struct card_space *space);

/* ---- card_dma.c ---------------------------------------------------------------------------- */

/* At each new connection the machine's RAM is looked up afresh. */
void card_dma_forget(struct card *card);
/* A bus address. NULL: not RAM. *ret_bytes: how much lies there in one piece, at most `bytes`. */
char *card_dma_at(struct card *card, uint64_t bus, uint64_t bytes, uint64_t *ret_bytes);
/* Whole ranges: 0, or -EFAULT (with the error cause set). */
int card_dma_read(struct card *card, uint64_t bus, void *buffer, uint64_t bytes);
int card_dma_write(struct card *card, uint64_t bus, const void *buffer, uint64_t bytes);

/* An offset below the size of memory that has runs. NULL: *ret_bus is not RAM. */
char *card_dma_memory(struct card_mem *mem, uint64_t offset, uint64_t bytes, uint64_t *ret_bytes,
		      uint64_t *ret_bus);

/*
 * A device address in a space. NULL: not mapped, or not for writing; *ret_bus is then the bus
 * address that is not RAM, or ~0. *ret_bytes as above.
 */
char *card_dma_device(struct card_space *space, uint64_t address, uint64_t bytes, bool write,
		      uint64_t *ret_bytes, uint64_t *ret_bus);

/* ---- card_copy.c --------------------------------------------------------------------------- */

/* True when an entry touches host memory, so that the card has to carry it out. */
bool card_copy_wanted(struct card_space *space, const struct npu_entry *entry,
		      struct card_copy *ret_copy);
/*
 * Goes on with a copy, for at most *budget bytes, which it lowers. 0: done, 1: not yet, -EFAULT:
 * *ret_address is the device address that failed.
 */
int card_copy_run(struct card_space *space, struct card_copy *copy, uint64_t *budget,
		  uint64_t *ret_address);

/* ---- card_fetch.c -------------------------------------------------------------------------- */

/* queue_bell was rung. */
void card_fetch_bell(struct card *card);
/* Starts or stops reading the slab of a space. */
int card_fetch_attach(struct card_space *space);
void card_fetch_detach(struct card_space *space);
/* Makes a ring's control in BAR2 fresh; the ring is read once the queue is open. */
void card_fetch_fresh(struct card_space *space, struct card_queue *queue);
void card_fetch_open(struct card_space *space, struct card_queue *queue);
/* Something about a ring has changed: look at it. */
void card_fetch_look(struct card_space *space, uint32_t ring);
void card_fetch_maps(struct card_space *space);
void card_fetch_run(struct card *card, uint64_t now);
/* 0: wants to run at once. */
uint64_t card_fetch_next(struct card *card);

/* ---- card_mirror.c ------------------------------------------------------------------------- */

struct npu_slab_header *card_header(struct card_space *space);
struct npu_ring_ctrl *card_ring(struct card_space *space, uint32_t ring);
/* Takes over what the engine has done in a ring. True: something has changed. */
bool card_mirror_ring(struct card_space *space, struct card_queue *queue);
/* The same for what belongs to the whole slab. */
bool card_mirror_space(struct card_space *space);
/* Writes epoch and state of a ring as its queue has them. */
void card_mirror_state(struct card_space *space, struct card_queue *queue);
/* Tells the driver that a space has something to look at. */
void card_mirror_raise(struct card_space *space);

#endif
