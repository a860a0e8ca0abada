/* SPDX-License-Identifier: Apache-2.0 */
/*
 * BAR2 and what the register page does. What the card itself needs of it (state, indices, layout)
 * it keeps in struct card; the page holds copies, rewritten where a driver could have scribbled.
 *
 * Layout: register page, submission queue, completion queue, slabs from 2 MiB on.
 */
#include "config.h"

#include "sim/card.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

#include "sim/board_engine.h"
#include "sim/board_memory.h"
#include "sim/board_watch.h"
#include "sim/fw_crc.h"
#include "sim/sim_fd.h"

#define REGS_BYTES 65536u
#define SQ_OFFSET ((uint64_t)REGS_BYTES)
#define CQ_OFFSET (SQ_OFFSET + CARD_SQ_ENTRIES * sizeof(struct npu_hw_cmd))
#define SLAB_OFFSET (2ull << 20)
#define SLAB_STRIDE ((NPU_SLAB_SIZE + 65535) & ~65535ull)
#define BEAT (100 * SIM_MS)

_Static_assert(CQ_OFFSET + CARD_CQ_ENTRIES * sizeof(struct npu_hw_completion) <= SLAB_OFFSET,
	       "queues lie before the slabs");

static void regs_fixed(struct card *card)
{
	struct npu_hw_regs *regs = card->regs;
	const struct sim_options *options = &card->board->options;

	regs->major = NPU_HW_MAJOR;
	regs->minor = NPU_HW_MINOR;
	regs->device = options->device;
	regs->peer = CARD_PEER;
	regs->bar_size = card->bar_bytes;
	regs->admin_sq = SQ_OFFSET;
	regs->admin_cq = CQ_OFFSET;
	regs->admin_sq_entries = CARD_SQ_ENTRIES;
	regs->admin_cq_entries = CARD_CQ_ENTRIES;
	regs->slab_offset = SLAB_OFFSET;
	regs->slab_stride = SLAB_STRIDE;
	regs->slab_slots = card->slots;
	regs->cores = options->cores;
	regs->memory_bytes = options->memory;
	regs->caps = NPU_CAP_INJECT | NPU_CAP_ISOLATED;
	regs->default_timeout_us = options->kernel_timeout_us;
	snprintf(regs->name, sizeof(regs->name), "NPUsim");
	__atomic_store_n(&regs->magic, NPU_HW_MAGIC, __ATOMIC_RELEASE);
}

static void regs_state(struct card *card, uint32_t state)
{
	card->state = state;
	__atomic_store_n(&card->regs->state, state, __ATOMIC_RELEASE);
}

static void regs_boot_id(struct card *card)
{
	uint64_t id = 0;

	if (getrandom(&id, sizeof(id), 0) != sizeof(id) || !id)
		id = sim_now() | 1;
	__atomic_store_n(&card->regs->boot_id, id, __ATOMIC_RELAXED);
}

int card_regs_new(struct card *card)
{
	uint64_t slots;
	void *map;
	int r;

	card->bar_bytes = card->board->options.bar;
	slots = (card->bar_bytes - SLAB_OFFSET) / SLAB_STRIDE;
	card->slots = slots > NPU_HW_SLOTS_MAX ? NPU_HW_SLOTS_MAX : (uint32_t)slots;
	r = board_memory_file("npu-bar2", card->bar_bytes, &card->bar_fd);
	if (r < 0)
		return r;
	map = mmap(NULL, card->bar_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
		   card->bar_fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	card->bar = map;
	card->regs = map;
	card->slab_offset = SLAB_OFFSET;
	card->slab_stride = SLAB_STRIDE;
	card->sq = (void *)(card->bar + SQ_OFFSET);
	card->cq = (void *)(card->bar + CQ_OFFSET);
	card->heartbeat_ns = UINT64_MAX;
	regs_fixed(card);
	regs_boot_id(card);
	regs_state(card, NPU_HW_WAIT_FW);
	return 0;
}

void card_regs_free(struct card *card)
{
	if (card->bar) {
		/* A machine that still has it reads a card that is gone. */
		memset(card->regs, 0xff, sizeof(*card->regs));
		munmap(card->bar, card->bar_bytes);
	}
	card->bar = NULL;
	sim_fd_close(&card->bar_fd);
}

/* ---- errors -------------------------------------------------------------------------------- */

void card_regs_error(struct card *card, uint64_t cause, uint64_t address, uint64_t info)
{
	__atomic_store_n(&card->regs->error_address, address, __ATOMIC_RELAXED);
	__atomic_store_n(&card->regs->error_info, info, __ATOMIC_RELAXED);
	__atomic_fetch_or(&card->regs->error_cause, cause, __ATOMIC_SEQ_CST);
	card_interrupt(card, NPU_HW_IRQ_ERROR);
}

void card_regs_die(struct card *card)
{
	sim_log(SIM_LOG_ERROR, "the firmware has died");
	card->heartbeat_ns = UINT64_MAX;
	regs_state(card, NPU_HW_DEAD);
	card_regs_error(card, NPU_HW_CAUSE_FIRMWARE, 0, 0);
}

/* ---- firmware ------------------------------------------------------------------------------ */

static void mailbox_answer(struct card *card, uint32_t status)
{
	__atomic_store_n(&card->regs->mailbox.status, status, __ATOMIC_RELEASE);
	card_interrupt(card, NPU_HW_IRQ_ADMIN);
}

/* Checks an image of ours to look at. NPU_HW_MB_OK or why not. */
static uint32_t firmware_check(const char *image, uint64_t bytes)
{
	struct npu_fw_header header;

	memcpy(&header, image, sizeof(header));
	if (header.magic != NPU_FW_MAGIC)
		return NPU_HW_MB_BAD_MAGIC;
	if (header.header_bytes != sizeof(header) || header.body_bytes != bytes - sizeof(header))
		return NPU_HW_MB_BAD_SIZE;
	if (header.body_crc != fw_crc(image + sizeof(header), header.body_bytes))
		return NPU_HW_MB_BAD_CRC;
	if (header.major != NPU_FW_MAJOR)
		return NPU_HW_MB_BAD_VERSION;
	return NPU_HW_MB_OK;
}

static uint32_t firmware_load(struct card *card, struct npu_fw_header *ret_header)
{
	uint64_t address = __atomic_load_n(&card->regs->mailbox.address, __ATOMIC_RELAXED);
	uint64_t bytes = __atomic_load_n(&card->regs->mailbox.bytes, __ATOMIC_RELAXED);
	cleanup(sim_free) char *image = NULL;
	uint32_t status;

	if (bytes < sizeof(*ret_header) || bytes > NPU_FW_MAX)
		return NPU_HW_MB_BAD_SIZE;
	image = malloc(bytes);
	if (!image || card_dma_read(card, address, image, bytes) < 0)
		return NPU_HW_MB_DMA_FAULT;
	status = firmware_check(image, bytes);
	if (status == NPU_HW_MB_OK)
		memcpy(ret_header, image, sizeof(*ret_header));
	return status;
}

static void mailbox_load(struct card *card)
{
	static const char *const why[] = {
		[NPU_HW_MB_BAD_MAGIC] = "it is no firmware image",
		[NPU_HW_MB_BAD_CRC] = "its checksum is wrong",
		[NPU_HW_MB_BAD_VERSION] = "its major version is not ours",
		[NPU_HW_MB_BAD_SIZE] = "its size is not what it says",
		[NPU_HW_MB_DMA_FAULT] = "it does not lie in the machine's memory",
	};
	struct npu_fw_header header;
	uint32_t status;

	regs_state(card, NPU_HW_BOOTING);
	status = firmware_load(card, &header);
	if (status != NPU_HW_MB_OK) {
		if (sim_log_limit_ok(&card->limit))
			sim_log(SIM_LOG_WARNING, "firmware refused: %s", why[status]);
		regs_state(card, NPU_HW_FAILED);
		mailbox_answer(card, status);
		return;
	}
	header.version[sizeof(header.version) - 1] = '\0';
	memcpy(card->regs->fw_version, header.version, sizeof(header.version));
	card->regs->mailbox.version = (uint32_t)header.major << 16 | header.minor;
	card->heartbeat_ns = sim_now();
	regs_state(card, NPU_HW_READY);
	mailbox_answer(card, NPU_HW_MB_OK);
	sim_log(SIM_LOG_NOTICE, "firmware loaded, version %u.%u", header.major, header.minor);
}

void card_regs_mailbox(struct card *card)
{
	uint32_t command = __atomic_exchange_n(&card->regs->mailbox.command, NPU_HW_MB_NONE,
					       __ATOMIC_ACQUIRE);

	if (card->resetting)
		return; /* BUSY: what is written then is for nobody */
	if (command == NPU_HW_MB_LOAD &&
	    (card->state == NPU_HW_WAIT_FW || card->state == NPU_HW_FAILED))
		mailbox_load(card);
	else if (command == NPU_HW_MB_RESET)
		card_regs_reset(card);
	else if (command != NPU_HW_MB_NONE)
		mailbox_answer(card, NPU_HW_MB_BAD_CMD);
	card_admin_run(card);
}

/* ---- reset --------------------------------------------------------------------------------- */

void card_regs_reset(struct card *card)
{
	if (card->resetting)
		return;
	card->resetting = true;
	card->heartbeat_ns = UINT64_MAX;
	__atomic_store_n(&card->regs->mailbox.status, NPU_HW_MB_BUSY, __ATOMIC_RELEASE);
	regs_state(card, NPU_HW_BOOTING);
	for (uint32_t slot = 0; slot < card->slots; slot++) {
		if (card->spaces[slot])
			card_space_drop(card->spaces[slot]);
	}
	card_mem_drop_all(card);
}

/* True once nothing of the time before the reset is left. */
static bool regs_empty(struct card *card)
{
	if (card->going)
		return false;
	for (uint32_t slot = 0; slot < card->slots; slot++) {
		if (card->spaces[slot])
			return false;
	}
	return true;
}

static void regs_fresh(struct card *card)
{
	struct npu_hw_regs *regs = card->regs;

	card->resetting = false;
	card->beats = 0;
	card->lost_irqs = 0;
	card_admin_reset(card);
	memset(regs->fw_version, 0, sizeof(regs->fw_version));
	memset(regs->space_cause, 0, sizeof(regs->space_cause));
	memset(regs->queue_bell, 0, sizeof(regs->queue_bell));
	memset(&regs->mailbox, 0, sizeof(regs->mailbox));
	__atomic_store_n(&regs->error_cause, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&regs->heartbeat, 0, __ATOMIC_RELAXED);
	regs->error_address = regs->error_info = 0;
	regs_fixed(card);
	regs_boot_id(card);
	regs_state(card, NPU_HW_WAIT_FW);
	mailbox_answer(card, NPU_HW_MB_OK);
	sim_log(SIM_LOG_INFO, "reset");
}

/* ---- by the clock -------------------------------------------------------------------------- */

static void regs_beat(struct card *card)
{
	struct npu_hw_regs *regs = card->regs;
	struct npu_query query = { 0 };
	struct npu_admin_cmd cmd = { .op = NPU_ADMIN_QUERY, .query = &query };

	board_backend_shim.admin(card->board, &cmd);
	__atomic_store_n(&regs->util_permille, query.util_permille, __ATOMIC_RELAXED);
	__atomic_store_n(&regs->busy_ns, query.busy_ns, __ATOMIC_RELAXED);
	__atomic_store_n(&regs->engines, query.engines, __ATOMIC_RELAXED);
	__atomic_store_n(&regs->sandbox_active, query.sandbox_active, __ATOMIC_RELAXED);
	__atomic_store_n(&regs->sandbox_missing, query.sandbox_missing, __ATOMIC_RELAXED);
	__atomic_store_n(&regs->heartbeat, ++card->beats, __ATOMIC_RELEASE);
}

void card_regs_run(struct card *card, uint64_t now)
{
	if (card->resetting && regs_empty(card))
		regs_fresh(card);
	if (now < card->heartbeat_ns)
		return;
	regs_beat(card);
	card->heartbeat_ns += BEAT;
	if (card->heartbeat_ns <= now) /* we were stopped for a while */
		card->heartbeat_ns = now + BEAT;
}
