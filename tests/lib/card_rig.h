/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NPU_TESTS_LIB_CARD_RIG_H
#define NPU_TESTS_LIB_CARD_RIG_H

/*
 * card_rig - an npu-sim --card of a test's own; the test plays QEMU's ivshmem-doorbell, the
 * machine's RAM and the driver.
 *
 * For Check tests, one thread: whatever a test does not expect to fail ends it with a message. RAM
 * is CARD_RIG_RAM bytes, the first CARD_RIG_BELOW of them below 4 GiB; addresses here are bus
 * addresses.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "kdrv/core/npu_shim.h"
#include "kdrv/uapi/npu_hw.h"

#define CARD_RIG_WAIT_MS 20000
#define CARD_RIG_RAM (64u << 20)
#define CARD_RIG_BELOW (32u << 20)
#define CARD_RIG_HIGH (4ull << 30) /* address of the RAM behind */
#define CARD_RIG_EVENTS 64u
#define CARD_RIG_SLAB (NPU_WINDOW_BASE + (256ull << 30))

struct card_rig {
	pid_t pid;
	char dir[64], socket[96], ram_file[96], log[96];
	char *ram;
	uint64_t ram_next;  /* offset of what is not given out */

	/* the connection */
	int peer, shm;
	int64_t id;
	uint32_t vectors;
	int bells[NPU_HW_VECTORS]; /* to the board */
	int irqs[NPU_HW_VECTORS];  /* ours */
	char *bar;
	uint64_t bar_bytes;
	struct npu_hw_regs *regs;

	/* the driver */
	uint32_t cid;
	uint32_t sq_tail, cq_head;
	struct npu_hw_completion events[CARD_RIG_EVENTS]; /* not yet taken */
	unsigned int nevents;
	uint64_t generation;
	uint32_t id_next;
};

/* Starts npu-sim and connects. more: options, NULL at the end, or NULL. */
void card_rig_start(struct card_rig *rig, const char *const more[]);
/* Hangs up; ends npu-sim by SIGTERM, which must give 0; removes the directory. */
void card_rig_stop(struct card_rig *rig);
/* The machine comes and goes. */
void card_rig_connect(struct card_rig *rig);
void card_rig_hang_up(struct card_rig *rig);

/* ---- the machine --------------------------------------------------------------------------- */

/* Memory at this address. */
void *card_rig_at(struct card_rig *rig, uint64_t address);
/* Pages below 4 GiB. */
uint64_t card_rig_pages(struct card_rig *rig, uint64_t bytes);
void card_rig_ring(struct card_rig *rig, unsigned int vector);
/* Waits for an interrupt. False: not within ms. */
bool card_rig_interrupted(struct card_rig *rig, unsigned int vector, unsigned int ms);

/* ---- the driver ---------------------------------------------------------------------------- */

/* One mailbox command; waits for its status. */
uint32_t card_rig_mailbox(struct card_rig *rig, uint32_t command, uint64_t address, uint64_t bytes);
/* Loads a file: the mailbox's status. */
uint32_t card_rig_firmware(struct card_rig *rig, const char *path);
/* The good one, to READY. */
void card_rig_boot(struct card_rig *rig);

/* Posts one command; with cid != 0 it is given a fresh one. */
void card_rig_post(struct card_rig *rig, struct npu_hw_cmd *cmd);
/* Posts, waits for the end, gives the status. */
int card_rig_command(struct card_rig *rig, struct npu_hw_cmd *cmd);
/* The next completion of a type; others before it are kept. */
struct npu_hw_completion card_rig_event(struct card_rig *rig, uint16_t type);

/* What must succeed. Numbers are fresh ones where they are results. */
void card_rig_space(struct card_rig *rig, uint32_t slot);
void card_rig_space_end(struct card_rig *rig, uint32_t slot);
void card_rig_context(struct card_rig *rig, uint32_t space, uint32_t ctx);
uint32_t card_rig_queue(struct card_rig *rig, uint32_t space, uint32_t ring, uint32_t ctx,
			uint32_t fail_mode);
uint32_t card_rig_device_memory(struct card_rig *rig, uint64_t first_page, uint64_t bytes);
uint32_t card_rig_host_memory(struct card_rig *rig, uint32_t kind, const struct npu_hw_run *runs,
			      uint32_t nruns);
void card_rig_map(struct card_rig *rig, uint32_t space, uint32_t mem, uint64_t address,
		  uint64_t bytes);
int card_rig_module(struct card_rig *rig, uint32_t space, const char *path, uint32_t *ret_module);
uint32_t card_rig_function(struct card_rig *rig, uint32_t space, uint32_t module, const char *name);

/* ---- the client ---------------------------------------------------------------------------- */

char *card_rig_slab(struct card_rig *rig, uint32_t space);
struct npu_slab_header *card_rig_header(struct card_rig *rig, uint32_t space);
struct npu_ring_ctrl *card_rig_ctrl(struct card_rig *rig, uint32_t space, uint32_t ring);
struct npu_entry *card_rig_entry(struct card_rig *rig, uint32_t space, uint32_t ring,
				 uint64_t index);
/* Rings for a space if the fetch unit sleeps. */
void card_rig_kick(struct card_rig *rig, uint32_t space, uint32_t ring);
void card_rig_submit(struct card_rig *rig, uint32_t space, uint32_t ring,
		     const struct npu_entry *entry);
void card_rig_launch(struct card_rig *rig, uint32_t space, uint32_t ring, uint32_t module,
		     uint32_t func, const void *args, uint32_t bytes);
void card_rig_copy(struct card_rig *rig, uint32_t space, uint32_t ring, uint64_t dst, uint64_t src,
		   uint64_t bytes);
/* Waits, by interrupt, until all that was submitted is done. False: not within ms. */
bool card_rig_sync(struct card_rig *rig, uint32_t space, uint32_t ring, unsigned int ms);

#endif
