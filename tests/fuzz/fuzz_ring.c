/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a client writes into its rings, read by a real engine in its cage. The input is a row of
 * records, one ring entry each, with addresses that are mapped, not mapped, odd, or no addresses at
 * all; some write the control words of a ring instead. The engine may fail every entry and may end,
 * but it must act on its messages: let go of each ring when the board says so, and then run another
 * entry, or be gone. An engine that does neither within the board's own limit counts as a hang.
 *
 * Entries never name the engine's own memory, which they could destroy: that costs their own
 * session its engine, and would end it in ways that say nothing.
 */
#include "config.h"

#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/engine.h"
#include "tests/lib/engine_board.h"

#define MEMORY (NPU_WINDOW_BASE + (1ull << 30))
#define MEMORY_SIZE (1u << 20)
#define MODULE 7u
#define FUNCS 7u
#define RINGS 4u
#define RECORDS 256u
#define RECORD 72u /* 8 bytes of how, 64 of an entry */
#define REST_MS 20 /* what takes longer is ended */
#ifdef NPU_SANITIZERS
#define LIMIT_MS 20000
#else
#define LIMIT_MS 5000
#endif

struct fuzz {
	struct engine_board board;
	int memory_fd;
	uint64_t seq;
	uint32_t submitted[RINGS];
	bool gone; /* the engine has ended */
};

static const char *kernels_path(void)
{
	const char *path = getenv("NPU_FUZZ_KERNELS");

	return path ? path : NPU_TEST_KERNELS;
}

/* ---- entries ------------------------------------------------------------------------------- */

/* kind says what becomes of a raw address. */
static uint64_t address(uint8_t kind, uint64_t raw)
{
	switch (kind & 15) {
	case 0:
	case 1:
	case 2:
	case 3:
	case 4:
		return MEMORY + (raw % MEMORY_SIZE & ~7ull);
	case 5:
	case 6:
		return MEMORY + raw % MEMORY_SIZE;
	case 7: /* over the end of what is mapped */
		return MEMORY + MEMORY_SIZE - raw % 256;
	case 8:
		return NPU_WINDOW_BASE + (2ull << 30) + raw % (1ull << 36);
	case 9:
		return NPU_WINDOW_BASE + NPU_WINDOW_SIZE - raw % 4096;
	case 10:
		return raw % 4096;
	case 11: /* the slab: events, then rings that nobody uses */
		return NPU_WINDOW_BASE + NPU_SLAB_EVENTS + raw % (1u << 20);
	case 12: /* the rings that are read right now */
		return NPU_WINDOW_BASE + NPU_SLAB_RINGS + raw % (RINGS * sizeof(struct npu_ring_ctrl));
	case 13:
		return NPU_WINDOW_BASE + NPU_SLAB_DATA + raw % (RINGS * NPU_RING_BYTES);
	case 14:
		return 0xffffffffffffffffull - raw % 4096;
	default: /* no address of this machine */
		return 0x8000000000000000ull | raw;
	}
}

static uint64_t amount(uint8_t kind, uint64_t raw)
{
	switch (kind & 7) {
	case 0:
	case 1:
		return raw % 64;
	case 2:
	case 3:
		return raw % 4096;
	case 4:
		return raw % (2 * MEMORY_SIZE);
	case 5:
		return raw % 8;
	case 6:
		return 0 - raw % 64;
	default:
		return raw;
	}
}

/* Makes the entry of a record one that gets somewhere. */
static void steer(struct npu_entry *entry, const uint8_t *how, struct engine_board *b)
{
	uint8_t a0 = how[2] & 15, a1 = how[2] >> 4;

	if (how[1] & 1)
		entry->op %= NPU_OP_MAX + 1;
	if (how[1] & 14)
		entry->epoch = 1;
	if (how[1] & 0x70)
		entry->map_gen = (uint32_t)b->generation;
	if (!(how[1] & 0x80))
		return;
	switch (entry->op) {
	case NPU_OP_KERNEL:
		entry->kernel.module = MODULE;
		entry->kernel.func %= FUNCS + 1;
		entry->kernel.blocks = (uint32_t)amount(how[3] & 1, entry->kernel.blocks);
		entry->kernel.args_size = 16;
		if (how[3] & 0x10)
			entry->kernel.args = entry->kernel.args % NPU_RING_ARGS & ~7ull;
		else
			entry->kernel.args = address(a0, entry->kernel.args);
		break;
	case NPU_OP_COPY:
		entry->copy.dst = address(a0, entry->copy.dst);
		entry->copy.src = address(a1, entry->copy.src);
		entry->copy.bytes = amount(how[3], entry->copy.bytes);
		break;
	case NPU_OP_COPY2D:
		entry->copy2d.dst = address(a0, entry->copy2d.dst);
		entry->copy2d.src = address(a1, entry->copy2d.src);
		entry->copy2d.dst_pitch = amount(how[3] & 3, entry->copy2d.dst_pitch);
		entry->copy2d.src_pitch = amount(how[3] & 3, entry->copy2d.src_pitch);
		entry->copy2d.width = amount(how[3] >> 3 & 3, entry->copy2d.width);
		entry->copy2d.height = amount(how[4], entry->copy2d.height);
		break;
	case NPU_OP_FILL:
		entry->fill.dst = address(a0, entry->fill.dst);
		entry->fill.bytes = amount(how[3], entry->fill.bytes);
		break;
	case NPU_OP_REDUCE:
		entry->reduce.dst = address(a0, entry->reduce.dst);
		entry->reduce.src = address(a1, entry->reduce.src);
		entry->reduce.count = amount(how[3], entry->reduce.count);
		entry->reduce.kind %= 4;
		entry->reduce.type %= 13;
		break;
	case NPU_OP_INDIRECT:
		entry->indirect.address = address(a0, entry->indirect.address);
		entry->indirect.count = (uint32_t)amount(how[3] & 5, entry->indirect.count);
		break;
	case NPU_OP_EVENT_RECORD:
	case NPU_OP_EVENT_WAIT:
		entry->event.index %= 8;
		entry->event.value %= 8;
		entry->event.timeout_ms %= 8;
		break;
	default: /* those with one address, which is the first field */
		entry->raw[0] = address(a0, entry->raw[0]);
		break;
	}
}

/* Addresses that were not steered: nothing from the page of NULL to the window, nor above it. */
static uint64_t harmless(uint64_t raw)
{
	if (raw < 65536 || raw >> 47 || raw - NPU_WINDOW_BASE < NPU_WINDOW_SIZE)
		return raw;
	return raw | 0x8000000000000000ull;
}

static void disarm(struct npu_entry *entry)
{
	if (entry->op == NPU_OP_KERNEL) {
		if (entry->flags & NPU_ENTRY_ARGS_DEVICE)
			entry->kernel.args = harmless(entry->kernel.args);
		return;
	}
	entry->raw[0] = harmless(entry->raw[0]);
	if (entry->op == NPU_OP_COPY2D || entry->op == NPU_OP_COPY || entry->op == NPU_OP_REDUCE)
		entry->raw[1] = harmless(entry->raw[1]);
	/* A stride or an end that wraps around may land anywhere. */
	if (entry->op == NPU_OP_COPY2D) {
		entry->copy2d.dst_pitch &= 0xffffff;
		entry->copy2d.src_pitch &= 0xffffff;
		if (entry->copy2d.dst_pitch > 4096 || entry->copy2d.src_pitch > 4096)
			entry->copy2d.height &= 0x3fff;
	}
}

/* The words of a ring that its client writes. */
static void scribble(struct engine_board *b, const uint8_t *how, const struct npu_entry *raw)
{
	struct npu_ring_ctrl *ring = engine_board_ring(b, how[0] % RINGS);

	switch (how[3] % 6) {
	case 0:
		ring->tail += amount(how[2], raw->raw[0]);
		break;
	case 1:
		ring->done = raw->raw[0];
		break;
	case 2:
		ring->head = raw->raw[0];
		break;
	case 3:
		ring->want = raw->raw[0];
		break;
	case 4:
		ring->host_reply = raw->raw[0];
		break;
	default:
		b->header->pending[how[2] % (NPU_MAX_QUEUES / 64)] = raw->raw[0];
		break;
	}
}

static void put(struct fuzz *fuzz, const uint8_t *record)
{
	struct engine_board *b = &fuzz->board;
	uint32_t slot = record[0] % RINGS, at;
	struct npu_entry entry;
	uint64_t *args;

	memcpy(&entry, record + 8, sizeof(entry));
	if (record[0] >= 0xf8) {
		scribble(b, record, &entry);
		return;
	}
	steer(&entry, record, b);
	disarm(&entry);
	/* Entries with wild sizes in both directions move backwards through what lies above them. */
	if (entry.op == NPU_OP_COPY && entry.copy.bytes >> 40)
		entry.copy.bytes &= 0xffffffffff;
	at = fuzz->submitted[slot]++;
	if (entry.op == NPU_OP_KERNEL && !(entry.flags & NPU_ENTRY_ARGS_DEVICE)) {
		args = (uint64_t *)engine_board_args(b, slot) + entry.kernel.args % NPU_RING_ARGS / 8;
		if (entry.kernel.args % NPU_RING_ARGS <= NPU_RING_ARGS - 16) {
			args[0] = address(record[5] & 15, entry.tag);
			args[1] = entry.kernel.reserved[0];
		}
	}
	memcpy(b->slab + NPU_SLAB_DATA + (size_t)slot * NPU_RING_BYTES +
	       at % NPU_RING_ENTRIES * sizeof(entry), &entry, sizeof(entry));
	engine_board_ring(b, slot)->tail++;
}

/* ---- the board ----------------------------------------------------------------------------- */

static int left_ms(uint64_t end)
{
	uint64_t now = engine_now_ns();

	return now >= end ? 0 : (int)((end - now + 999999) / 1000000);
}

/*
 * One message from the engine, with time to wait: its type, 0 at the time's end. At the engine's
 * end gone is set.
 */
static uint16_t hear(struct fuzz *fuzz, uint64_t end, struct engine_ack *ret_ack)
{
	static _Alignas(8) char buffer[ENGINE_MSG_MAX];
	struct pollfd pfd = { .fd = fuzz->board.control, .events = POLLIN };
	struct engine_msg *msg = (struct engine_msg *)buffer;
	ssize_t n;

	if (poll(&pfd, 1, left_ms(end)) != 1)
		return 0;
	n = recv(fuzz->board.control, buffer, sizeof(buffer), MSG_DONTWAIT);
	if (n <= 0) {
		fuzz->gone = true;
		return 0;
	}
	fuzz_check(n >= (ssize_t)sizeof(*msg) && msg->magic == ENGINE_PROTO_MAGIC &&
		   msg->bytes == n - sizeof(*msg), "the engine sends a malformed message");
	if (msg->type == ENGINE_ACK)
		memcpy(ret_ack, msg + 1, sizeof(*ret_ack));
	return msg->type;
}

/* Sends a message and waits for the answer. Gives its status. */
static int tell(struct fuzz *fuzz, uint16_t type, const void *payload, size_t size)
{
	struct engine_msg msg = {
		.magic = ENGINE_PROTO_MAGIC, .type = type, .seq = ++fuzz->board.seq, .bytes = size,
	};
	struct iovec iov[] = { { &msg, sizeof(msg) }, { (void *)payload, size } };
	struct msghdr hdr = { .msg_iov = iov, .msg_iovlen = 2 };
	uint64_t end = engine_now_ns() + LIMIT_MS * 1000000ull;
	struct engine_ack ack = { 0 };

	if (fuzz->gone || sendmsg(fuzz->board.control, &hdr, MSG_NOSIGNAL) < 0) {
		fuzz->gone = true;
		return -EPIPE;
	}
	for (;;) {
		uint16_t heard = hear(fuzz, end, &ack);

		if (fuzz->gone)
			return -EPIPE;
		if (heard == ENGINE_ACK && ack.seq == msg.seq)
			return ack.status;
		fuzz_check(heard, "the engine does not act on a message");
	}
}

/* Waits until a ring is empty by its own account, which it may have lost. */
static bool drained(struct fuzz *fuzz, uint32_t slot, unsigned int ms)
{
	struct npu_ring_ctrl *ring = engine_board_ring(&fuzz->board, slot);
	uint64_t end = engine_now_ns() + ms * 1000000ull;
	struct engine_ack ack;

	while (__atomic_load_n(&ring->done, __ATOMIC_ACQUIRE) <
	       __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE)) {
		/* Faults come meanwhile; each ms is a look. */
		uint64_t look = engine_now_ns() + 1000000;

		hear(fuzz, look < end ? look : end, &ack);
		if (fuzz->gone || engine_now_ns() >= end)
			return fuzz->gone;
	}
	return true;
}

static void start(struct fuzz *fuzz, uint32_t cores)
{
	struct engine_board *b = &fuzz->board;

	engine_board_start(b, cores);
	fuzz->memory_fd = memfd_create("memory", MFD_CLOEXEC);
	fuzz_check(fuzz->memory_fd >= 0 && ftruncate(fuzz->memory_fd, MEMORY_SIZE) == 0, "memory");
	fuzz_check(engine_board_map(b, MEMORY, fuzz->memory_fd, MEMORY_SIZE) == 0, "map");
	fuzz_check(engine_board_module(b, MODULE, kernels_path()) == 0, "kernels");
	for (uint32_t slot = 0; slot < RINGS; slot++)
		fuzz_check(engine_board_queue(b, slot, slot & 1, 1) == 0, "queue");
}

/* What runs is aborted, each ring is taken away. */
static void end_all(struct fuzz *fuzz)
{
	for (uint32_t core = 0; core < fuzz->board.cores; core++) {
		struct engine_abort abort = {
			.core = core, .kind = NPU_FAULT_TIMEOUT,
			.run = __atomic_load_n(&fuzz->board.state->cores[core].run, __ATOMIC_ACQUIRE),
		};

		if (abort.run & 1)
			tell(fuzz, ENGINE_ABORT, &abort, sizeof(abort));
	}
	for (uint32_t slot = 0; slot < RINGS; slot++) {
		struct engine_queue queue = { .slot = slot, .queue = slot + 1, .ctx = 1 };

		/* One that cannot end what runs there is killed by the board. */
		if (tell(fuzz, ENGINE_QUEUE, &queue, sizeof(queue)) < 0)
			fuzz->gone = true;
	}
}

/* A new queue in a slot that had the hostile ones, with an entry that is in order. */
static void again(struct fuzz *fuzz, uint32_t slot)
{
	struct npu_ring_ctrl *ring = engine_board_ring(&fuzz->board, slot);
	struct engine_queue queue = {
		.slot = slot, .queue = 100 + slot, .ctx = 2, .active = 1, .epoch = 1, .window = 8,
	};
	struct npu_entry *entries = (struct npu_entry *)(fuzz->board.slab + NPU_SLAB_DATA +
							 (size_t)slot * NPU_RING_BYTES);

	if (fuzz->gone)
		return;
	memset(ring, 0, sizeof(*ring));
	ring->want = UINT64_MAX;
	entries[0] = (struct npu_entry){ .op = NPU_OP_NOP, .epoch = 1 };
	ring->tail = 1;
	if (tell(fuzz, ENGINE_QUEUE, &queue, sizeof(queue)) < 0) {
		fuzz_check(fuzz->gone, "the engine refuses a queue");
		return;
	}
	fuzz_check(drained(fuzz, slot, LIMIT_MS), "the engine does not run what comes next");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct engine_start none = { 0 };
	struct fuzz fuzz = { 0 };

	if (!size)
		return 0;
	start(&fuzz, 1 + (data[0] & 1));
	data++;
	size--;
	for (unsigned int i = 0; i < RECORDS && size >= RECORD; i++) {
		put(&fuzz, data);
		data += RECORD;
		size -= RECORD;
	}
	tell(&fuzz, ENGINE_START, &none, sizeof(none));
	for (uint32_t slot = 0; slot < RINGS; slot++)
		drained(&fuzz, slot, REST_MS);
	end_all(&fuzz);
	for (uint32_t slot = 0; slot < RINGS; slot++)
		again(&fuzz, slot);
	engine_board_stop(&fuzz.board);
	close(fuzz.memory_fd);
	return 0;
}
