/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fetch unit: device of the slabs in BAR2 and client of the engines' own, by the rules of
 * npu_queue.h on both sides. An entry is copied once; indices on both sides run together, so an
 * entry that the card carries out itself becomes a no-op for the engine, and one that it could not
 * carry out becomes a store to the address that failed, which the engine cannot reach either:
 * errors, failure modes and epochs stay the engine's business.
 *
 * A slab is read in each turn of the loop while something happens and for a short time after it;
 * then the unit sleeps, woken by the machine's doorbell or by the engine's completion eventfd.
 * That eventfd is watched edge-triggered and never read.
 */
#include "sim/card.h"

#include <sched.h>
#include <string.h>
#include <sys/eventfd.h>

#include "sim/sim_fd.h"

#define MASK (NPU_RING_ENTRIES - 1)
#define ENTRY_BUDGET 128u        /* of a ring, a turn */
#define COPY_BUDGET (2ull << 20) /* bytes of a space, a turn */
#define RING_BUDGET (1ull << 20) /* of these, for one ring */
#define SPIN_NS 50000u
#define SPIN_SHORT_NS 5000u /* when waits were longer of late */
#define WAIT_MOST_NS 1000000u
#define MAP_WAIT_NS 5000000000ull /* for a mapping that an entry names */

#define OP_BAD UINT8_MAX

static struct npu_slab_header *below_header(struct card_space *space)
{
	return board_space_header(space->session.backend);
}

static struct npu_ring_ctrl *below_ring(struct card_space *space, uint32_t slot)
{
	return board_space_ring(space->session.backend, slot);
}

static uint64_t ring_data(uint32_t slot)
{
	return NPU_SLAB_DATA + (uint64_t)slot * NPU_RING_BYTES;
}

/* ---- forward ------------------------------------------------------------------------------- */

/* Tells the engine that a ring has something, if it does not look at it by itself. */
static void fetch_tell(struct card_space *space, uint32_t slot, bool always)
{
	struct board_space *below = space->session.backend;
	struct npu_slab_header *header = below_header(space);
	struct npu_ring_ctrl *ring = below_ring(space, slot);

	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (!always && !__atomic_load_n(&ring->armed, __ATOMIC_RELAXED))
		return;
	__atomic_store_n(&ring->armed, 0, __ATOMIC_SEQ_CST);
	__atomic_fetch_or(&header->pending[slot / 64], 1ull << slot % 64, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&header->device_sleeping, __ATOMIC_SEQ_CST) &&
	    __atomic_exchange_n(&header->device_sleeping, 0, __ATOMIC_SEQ_CST))
		eventfd_write(below->doorbell_fd, 1);
}

static void fetch_push(struct card_space *space, struct card_queue *queue,
		       const struct npu_entry *entry)
{
	struct board_space *below = space->session.backend;
	struct npu_entry *entries =
		(struct npu_entry *)(void *)(below->map + ring_data(queue->queue.slot));

	memcpy(&entries[queue->fetched & MASK], entry, sizeof(*entry));
	queue->fetched++;
	__atomic_store_n(&below_ring(space, queue->queue.slot)->tail, queue->fetched,
			 __ATOMIC_RELEASE);
}

/* The arguments of a launch. Where they do not lie in the ring the engine refuses the entry. */
static void fetch_args(struct card_space *space, struct card_queue *queue,
		       const struct npu_entry *entry)
{
	struct board_space *below = space->session.backend;
	uint64_t offset = ring_data(queue->queue.slot) + NPU_RING_ENTRIES * NPU_ENTRY_SIZE;
	uint32_t bytes = entry->kernel.args_total > entry->kernel.args_size ?
		entry->kernel.args_total : entry->kernel.args_size;

	if ((entry->flags & NPU_ENTRY_ARGS_DEVICE) || entry->kernel.args > NPU_RING_ARGS ||
	    bytes > NPU_RING_ARGS - entry->kernel.args)
		return;
	offset += entry->kernel.args;
	memcpy(below->map + offset, space->slab + offset, bytes);
}

static bool map_missing(struct card_space *space, const struct npu_entry *entry)
{
	return (int32_t)((uint32_t)space->session.map_generation - entry->map_gen) < 0;
}

/* The engine will drop the entry. */
static bool entry_dropped(struct card_space *space, struct card_queue *queue,
			  const struct npu_entry *entry)
{
	uint32_t ctx = (uint32_t)queue->queue.ctx->obj.id;

	return entry->epoch != (uint16_t)queue->queue.epoch ||
	       __atomic_load_n(&below_header(space)->context_error[ctx], __ATOMIC_ACQUIRE);
}

enum fetch_step { FETCH_DONE, FETCH_COPY, FETCH_WAIT };

/*
 * An entry that may be the card's own. FETCH_DONE: the engine gets *entry, which may have become a
 * no-op; FETCH_COPY: queue->copy is to be run first; FETCH_WAIT: not now.
 */
static enum fetch_step fetch_data(struct card_space *space, struct card_queue *queue,
				  struct npu_entry *entry)
{
	struct card_copy copy = { 0 };

	if (map_missing(space, entry)) {
		uint64_t now = sim_now();

		if (!queue->map_wait_ns)
			queue->map_wait_ns = now;
		if (now - queue->map_wait_ns < MAP_WAIT_NS) {
			if (queue->map_wait_ns + MAP_WAIT_NS < space->map_look_ns)
				space->map_look_ns = queue->map_wait_ns + MAP_WAIT_NS;
			return FETCH_WAIT;
		}
	} else if (!card_copy_wanted(space, entry, &copy)) {
		queue->map_wait_ns = 0;
		return FETCH_DONE;
	}
	if (queue->done != queue->fetched || queue->queue.paused)
		return FETCH_WAIT; /* in order */
	if (!map_missing(space, entry) && !entry_dropped(space, queue, entry)) {
		queue->map_wait_ns = 0;
		queue->copy = copy;
		queue->copy_entry = *entry;
		return FETCH_COPY;
	}
	/* Dropped, or its mapping does not come: the engine says so. */
	queue->map_wait_ns = 0;
	entry->op = NPU_OP_NOP;
	return FETCH_DONE;
}

/* Goes on with a copy. True: it has ended, and the engine has its entry. */
static bool fetch_copy(struct card_space *space, struct card_queue *queue, uint64_t *budget)
{
	struct npu_entry entry = queue->copy_entry;
	uint64_t address = 0;
	int r = 0;

	/* What was aborted meanwhile ends here, as a kernel does. */
	if (!entry_dropped(space, queue, &entry))
		r = card_copy_run(space, &queue->copy, budget, &address);
	if (r > 0)
		return false;
	queue->copy.active = false;
	if (r == 0) {
		entry.op = NPU_OP_NOP;
	} else {
		entry.op = NPU_OP_FILL;
		memset(entry.raw, 0, sizeof(entry.raw));
		/* Outside of the window an engine might reach it: then in the first page. */
		entry.fill.dst = address - NPU_WINDOW_BASE < NPU_WINDOW_SIZE ? address :
			(address & 0xff8) | 8;
		entry.fill.bytes = 1;
		entry.fill.width = 1;
	}
	fetch_push(space, queue, &entry);
	return true;
}

/* A tail that cannot be: one malformed entry stands for all that it announces. */
static void fetch_broken(struct card_space *space, struct card_queue *queue, uint64_t tail)
{
	struct npu_entry entry = { .op = OP_BAD, .epoch = (uint16_t)queue->queue.epoch };

	fetch_push(space, queue, &entry);
	queue->delta = tail - queue->fetched;
}

/* Gives the engine what is there. True: something was done. */
static bool fetch_forward(struct card_space *space, struct card_queue *queue, uint64_t *budget)
{
	const struct npu_entry *entries =
		(const struct npu_entry *)(void *)(space->slab + ring_data(queue->queue.slot));
	struct npu_ring_ctrl *ring = card_ring(space, queue->queue.slot);
	uint64_t before = queue->fetched, copied = *budget;

	for (unsigned int i = 0; i < ENTRY_BUDGET; i++) {
		uint64_t tail = __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE);
		uint64_t waiting = tail - (queue->fetched + queue->delta);
		struct npu_entry entry;

		queue->tail_seen = tail;
		if (queue->copy.active) {
			if (!*budget || !fetch_copy(space, queue, budget))
				break;
			continue;
		}
		if (!waiting || queue->fetched - queue->done >= NPU_RING_ENTRIES)
			break;
		if (waiting > NPU_RING_ENTRIES) {
			if (queue->done != queue->fetched)
				break;
			fetch_broken(space, queue, tail);
			continue;
		}
		memcpy(&entry, &entries[(queue->fetched + queue->delta) & MASK], sizeof(entry));
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (entry.op >= NPU_OP_COPY && entry.op <= NPU_OP_FILL) {
			enum fetch_step step = fetch_data(space, queue, &entry);

			if (step == FETCH_WAIT)
				break;
			if (step == FETCH_COPY)
				continue;
		} else if (entry.op == NPU_OP_KERNEL) {
			fetch_args(space, queue, &entry);
		}
		fetch_push(space, queue, &entry);
	}
	if (queue->fetched != before)
		fetch_tell(space, queue->queue.slot, false);
	return queue->fetched != before || *budget != copied;
}

/* The client's answer to a host call. */
static bool fetch_reply(struct card_space *space, struct card_queue *queue)
{
	struct npu_ring_ctrl *ring = card_ring(space, queue->queue.slot);
	uint64_t reply = __atomic_load_n(&ring->host_reply, __ATOMIC_ACQUIRE);

	if (reply <= queue->host_reply)
		return false;
	queue->host_reply = reply;
	__atomic_store_n(&below_ring(space, queue->queue.slot)->host_reply, reply,
			 __ATOMIC_SEQ_CST);
	fetch_tell(space, queue->queue.slot, true);
	return true;
}

/* ---- a slab -------------------------------------------------------------------------------- */

static bool ring_empty(struct card_space *space, struct card_queue *queue)
{
	uint64_t tail = __atomic_load_n(&card_ring(space, queue->queue.slot)->tail,
					__ATOMIC_SEQ_CST);

	return !queue->copy.active && tail == queue->fetched + queue->delta;
}

static bool fetch_ring(struct card_space *space, uint32_t slot, uint64_t *budget)
{
	struct card_queue *queue = space->queues[slot];
	uint64_t share = *budget < RING_BUDGET ? *budget : RING_BUDGET, left = share;
	uint64_t bit = 1ull << slot % 64;
	bool progress;

	if (!queue || !queue->open || queue->hung) {
		space->live[slot / 64] &= ~bit;
		return false;
	}
	progress = card_mirror_ring(space, queue);
	progress |= fetch_reply(space, queue);
	progress |= fetch_forward(space, queue, &left);
	*budget -= share - left;
	if (queue->done != queue->fetched || !ring_empty(space, queue))
		return progress;
	/* Nothing is left: whoever has something says so. */
	__atomic_store_n(&card_ring(space, slot)->armed, 1, __ATOMIC_SEQ_CST);
	if (ring_empty(space, queue))
		space->live[slot / 64] &= ~bit;
	return progress;
}

static bool fetch_pending(struct card_space *space)
{
	struct npu_slab_header *header = card_header(space);
	bool any = false;

	for (uint32_t i = 0; i < CARD_WORDS; i++) {
		if (!__atomic_load_n(&header->pending[i], __ATOMIC_SEQ_CST))
			continue;
		space->live[i] |= __atomic_exchange_n(&header->pending[i], 0, __ATOMIC_SEQ_CST);
		any = true;
	}
	return any;
}

#define for_each_live(space, slot, word, bits)                                      \
	for (uint32_t word = 0; word < CARD_WORDS; word++)                          \
		for (uint64_t bits = (space)->live[word], slot;                     \
		     bits && (slot = word * 64 + (uint32_t)__builtin_ctzll(bits), true); \
		     bits &= bits - 1)

static bool fetch_space(struct card_space *space)
{
	uint64_t budget = COPY_BUDGET;
	bool progress = fetch_pending(space) | card_mirror_space(space);

	for_each_live(space, slot, word, bits)
		progress |= fetch_ring(space, (uint32_t)slot, &budget);
	return progress;
}

static void fetch_wake(struct card_space *space)
{
	uint64_t now = sim_now();

	if (!space->awake) {
		space->awake = true;
		__atomic_store_n(&card_header(space)->device_sleeping, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&below_header(space)->client_cpu, (uint32_t)sched_getcpu() + 1,
				 __ATOMIC_RELAXED);
	}
	if (space->rest_ns < now + SPIN_SHORT_NS)
		space->rest_ns = now + SPIN_SHORT_NS;
}

/* Sleeps, unless something has come meanwhile: both sides are told first, then looked at again. */
static void fetch_sleep(struct card_space *space)
{
	struct npu_slab_header *header = card_header(space), *below = below_header(space);
	bool more = false;

	for_each_live(space, slot, word, bits) {
		struct card_queue *queue = space->queues[slot];

		if (queue && queue->done != queue->fetched)
			__atomic_store_n(&below_ring(space, (uint32_t)slot)->want, queue->done + 1,
					 __ATOMIC_RELAXED);
		if (queue && ring_empty(space, queue))
			__atomic_store_n(&card_ring(space, (uint32_t)slot)->armed, 1,
					 __ATOMIC_SEQ_CST);
	}
	__atomic_store_n(&below->client_cpu, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&below->host_calls_waiting, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&below->client_waiting, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&header->device_sleeping, 1, __ATOMIC_SEQ_CST);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	for_each_live(space, slot, word, bits) {
		struct card_queue *queue = space->queues[slot];
		struct npu_ring_ctrl *ring = below_ring(space, (uint32_t)slot);
		uint64_t done;

		/* A ring that is not empty but waits was looked at in this turn. */
		if (!queue)
			continue;
		done = __atomic_load_n(&ring->done, __ATOMIC_SEQ_CST) - queue->done;
		more |= done && done <= queue->fetched - queue->done;
		more |= __atomic_load_n(&ring->host_seq, __ATOMIC_SEQ_CST) != queue->host_seq;
		more |= queue->tail_seen != __atomic_load_n(&card_ring(space, (uint32_t)slot)->tail,
							    __ATOMIC_SEQ_CST);
	}
	space->awake = false;
	if (fetch_pending(space) || more)
		fetch_wake(space);
}

static bool shares_cpu(struct card_space *space)
{
	uint32_t cpu = __atomic_load_n(&below_header(space)->device_cpu, __ATOMIC_RELAXED);

	return cpu && cpu == (uint32_t)sched_getcpu() + 1;
}

/* Progress or not: how long to look on. */
static void fetch_pace(struct card_space *space, bool progress, uint64_t now)
{
	if (progress) {
		uint64_t wait = now - space->since_ns;

		if (wait > WAIT_MOST_NS)
			wait = WAIT_MOST_NS;
		space->wait_ns += ((int64_t)wait - (int64_t)space->wait_ns) / 8;
		space->since_ns = now;
		space->rest_ns = now + (space->wait_ns > SPIN_NS ? SPIN_SHORT_NS : SPIN_NS);
	} else if (now >= space->rest_ns || shares_cpu(space)) {
		fetch_sleep(space);
	}
}

void card_fetch_run(struct card *card, uint64_t now)
{
	for (uint32_t slot = 0; slot < card->slots; slot++) {
		struct card_space *space = card->spaces[slot];

		if (space && space->attached && now >= space->map_look_ns) {
			space->map_look_ns = UINT64_MAX;
			fetch_wake(space);
		}
		if (space && space->attached && space->awake)
			fetch_pace(space, fetch_space(space), sim_now());
	}
}

uint64_t card_fetch_next(struct card *card)
{
	uint64_t next = UINT64_MAX;

	for (uint32_t slot = 0; slot < card->slots; slot++) {
		struct card_space *space = card->spaces[slot];

		if (!space || !space->attached)
			continue;
		if (space->awake)
			return 0;
		if (space->map_look_ns < next)
			next = space->map_look_ns;
	}
	return next;
}

/* ---- from outside -------------------------------------------------------------------------- */

void card_fetch_bell(struct card *card)
{
	for (uint32_t i = 0; i < NPU_HW_SLOTS_MAX / 64; i++) {
		uint64_t bits = __atomic_exchange_n(&card->regs->queue_bell[i], 0,
						    __ATOMIC_SEQ_CST);

		for (; bits; bits &= bits - 1) {
			uint32_t slot = i * 64 + (uint32_t)__builtin_ctzll(bits);

			if (slot < card->slots && card->spaces[slot] &&
			    card->spaces[slot]->attached)
				fetch_wake(card->spaces[slot]);
		}
	}
}

static void fetch_completion(struct board_source *source, uint32_t events)
{
	struct card_space *space = sim_container(source, struct card_space, completion);

	(void)events;
	fetch_wake(space);
}

int card_fetch_attach(struct card_space *space)
{
	struct card *card = space->card;
	struct board_space *below = space->session.backend;
	struct npu_slab_header *header;
	int r;

	space->slab = card->bar + card->slab_offset + space->slot * card->slab_stride;
	space->completion.ready = fetch_completion;
	space->completion.fd = below->completion_fd;
	r = board_loop_add(card->board->loop, &space->completion, EPOLLIN | EPOLLET);
	if (r < 0) {
		space->completion.fd = -1;
		return r;
	}
	header = card_header(space);
	header->magic = NPU_QUEUE_MAGIC;
	header->major = NPU_QUEUE_MAJOR;
	header->max_queues = NPU_MAX_QUEUES;
	header->ring_entries = NPU_RING_ENTRIES;
	header->slab_address = space->session.slab_address;
	__atomic_store_n(&header->device_sleeping, 1, __ATOMIC_SEQ_CST);
	space->map_look_ns = UINT64_MAX;
	space->attached = true;
	return 0;
}

void card_fetch_detach(struct card_space *space)
{
	space->attached = false;
	space->awake = false;
	if (space->completion.fd >= 0)
		board_loop_delete(space->card->board->loop, &space->completion);
	space->completion.fd = -1;
}

void card_fetch_fresh(struct card_space *space, struct card_queue *queue)
{
	uint32_t slot = queue->queue.slot;
	struct npu_ring_ctrl *ring = card_ring(space, slot);

	memset(ring, 0, sizeof(*ring));
	ring->want = UINT64_MAX;
	__atomic_fetch_and(&card_header(space)->pending[slot / 64], ~(1ull << slot % 64),
			   __ATOMIC_SEQ_CST);
	card_mirror_state(space, queue);
	__atomic_store_n(&ring->armed, 1, __ATOMIC_RELEASE);
}

void card_fetch_open(struct card_space *space, struct card_queue *queue)
{
	queue->open = true;
	card_fetch_look(space, queue->queue.slot);
}

void card_fetch_look(struct card_space *space, uint32_t ring)
{
	space->live[ring / 64] |= 1ull << ring % 64;
	if (space->attached)
		fetch_wake(space);
}

void card_fetch_maps(struct card_space *space)
{
	if (space->attached)
		fetch_wake(space);
}
