/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The space outlives its session's last command: the engine must be reaped, then the releaser must
 * be through with the slab, and only then the rules hear that everything is gone.
 */
#include "sim/board_space.h"

#include <fcntl.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

#include "sim/board_engine.h"
#include "sim/sim_fd.h"

#define DEATHS_SPAN (3000 * SIM_MS)
#define HASTY_LIFE (1000 * SIM_MS)
#define PAUSE_FIRST (10 * SIM_MS)
#define PAUSE_MOST (1000 * SIM_MS)

static void ring_reopen(struct board_space *space, uint32_t slot);

static void space_close(struct board_space *space)
{
	if (space->map)
		board_release_unmap(space->board->release, space->map, NPU_SLAB_SIZE);
	space->map = NULL;
	sim_fd_close(&space->doorbell_fd);
	sim_fd_close(&space->completion_fd);
	sim_fd_close(&space->life_read);
	sim_fd_close(&space->life_write);
}

static void space_header_init(struct board_space *space)
{
	struct npu_slab_header *header = board_space_header(space);

	header->magic = NPU_QUEUE_MAGIC;
	header->major = NPU_QUEUE_MAJOR;
	header->max_queues = NPU_MAX_QUEUES;
	header->ring_entries = NPU_RING_ENTRIES;
	header->slab_address = space->session->slab_address;
}

static int space_open(struct board_space *space)
{
	int life[2], r;
	void *map;

	space->doorbell_fd = space->completion_fd = space->life_read = space->life_write = -1;
	r = board_memory_new(space->board->release, "npu-slab", NPU_SLAB_SIZE, &space->slab);
	if (r < 0)
		return r;
	map = mmap(NULL, NPU_SLAB_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, space->slab->fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	space->map = map;
	space->doorbell_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	space->completion_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (space->doorbell_fd < 0 || space->completion_fd < 0 ||
	    pipe2(life, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	space->life_read = life[0];
	space->life_write = life[1];
	return 0;
}

int board_space_new(struct board *board, struct npu_session *session,
		    struct board_space **ret_space)
{
	struct board_space *space = calloc(1, sizeof(*space));
	int r;

	if (!space)
		return -ENOMEM;
	space->board = board;
	space->session = session;
	space->id = session->obj.id;
	r = space_open(space);
	if (r < 0) {
		space_close(space);
		board_memory_unref(space->slab);
		free(space);
		return r;
	}
	space_header_init(space);
	space->next = board->spaces;
	board->spaces = space;
	*ret_space = space;
	return 0;
}

static void space_retired(void *arg)
{
	struct board_space *space = arg;

	if (!space->board->ending)
		space->board->upper->space_gone(space->board, space->session);
	free(space);
}

static void space_finish(struct board_space *space)
{
	struct board_space **at = &space->board->spaces;

	while (*at != space)
		at = &(*at)->next;
	*at = space->next;
	while (space->reopens)
		ring_reopen(space, space->reopens->slot);
	while (space->waits) {
		struct board_wait *wait = space->waits;

		space->waits = wait->next;
		free(wait);
	}
	space_close(space);
	board_memory_retire(space->slab, space_retired, space);
}

void board_space_stop(struct board_space *space)
{
	space->stopping = true;
	if (space->engine)
		board_engine_kill(space->engine, NPU_FAULT_ABORTED, NULL);
}

void board_space_end(struct board_space *space)
{
	space->ended = true;
	if (!space->engine)
		space_finish(space);
}

void board_space_lose(struct board_space *space, const char *why)
{
	if (space->lost)
		return;
	space->lost = true;
	space->tell_lost = true;
	sim_fd_close(&space->life_write);
	if (why)
		sim_log(SIM_LOG_ERROR, "session %llu lost: %s", (unsigned long long)space->id, why);
	if (space->engine)
		board_engine_kill(space->engine, NPU_FAULT_LOST, NULL);
}

/* 10 ms, 20 ms ... 1 s. */
static uint64_t space_pause(unsigned int nth)
{
	uint64_t pause = PAUSE_FIRST << (nth < 7 ? nth : 7);

	return pause < PAUSE_MOST ? pause : PAUSE_MOST;
}

/* True when the last deaths came too fast. */
static bool space_dies_again(struct board_space *space)
{
	uint64_t now = sim_now(), oldest;

	space->deaths[space->death_next++ % SPACE_DEATHS] = now;
	oldest = space->deaths[space->death_next % SPACE_DEATHS];
	return oldest && now - oldest < DEATHS_SPAN;
}

void board_space_engine_ended(struct board_space *space, const struct board_space_end *end)
{
	if (space->ended) {
		space_finish(space);
		return;
	}
	for (uint32_t slot = 0; slot < NPU_MAX_QUEUES; slot++) {
		if (board_space_ring_busy(space, slot))
			board_space_ring_closed(space, slot);
	}
	/* That it did something is its claim: what costs the board is paced whatever it says. */
	if (end->life_ns >= HASTY_LIFE)
		space->hasty = 0;
	else if (!end->fault && space->hasty++)
		space->respawn_ns = sim_now() + space_pause(space->hasty - 2);
	if (end->progress)
		memset(space->deaths, 0, sizeof(space->deaths));
	if (!end->progress && !space->stopping && !space->lost && space_dies_again(space))
		board_space_lose(space, "its engines die as fast as they are started");
}

void board_space_engine_refused(struct board_space *space)
{
	space->respawn_ns = sim_now() + space_pause(2 + space->refused++);
}

bool board_space_wants_engine(const struct board_space *space)
{
	return !space->engine && space->wanted && !space->lost && !space->stopping;
}

void board_space_failed(struct board_space *space, uint32_t slot, uint64_t head, uint32_t kind)
{
	struct engine_start *failed = &space->failed;

	for (uint32_t i = 0; i < failed->count; i++) {
		if (failed->failed[i].slot == slot)
			return;
	}
	if (failed->count == ENGINE_CORES_MAX)
		return;
	failed->failed[failed->count].slot = slot;
	failed->failed[failed->count].kind = kind;
	failed->failed[failed->count++].head = head;
}

struct npu_slab_header *board_space_header(struct board_space *space)
{
	return (struct npu_slab_header *)(space->map + NPU_SLAB_HEADER);
}

struct npu_ring_ctrl *board_space_ring(struct board_space *space, uint32_t slot)
{
	return (struct npu_ring_ctrl *)(space->map + NPU_SLAB_RINGS) + slot;
}

static uint64_t ring_data(uint32_t slot)
{
	return NPU_SLAB_DATA + (uint64_t)slot * NPU_RING_BYTES;
}

static void ring_init(struct board_space *space, const struct npu_queue *queue)
{
	struct npu_ring_ctrl *ring = board_space_ring(space, queue->slot);
	uint64_t bit = 1ull << queue->slot % 64;

	memset(ring, 0, sizeof(*ring));
	ring->want = UINT64_MAX;
	ring->epoch = queue->epoch;
	ring->state = queue->paused ? NPU_RING_PAUSED : NPU_RING_ACTIVE;
	__atomic_fetch_and(&board_space_header(space)->pending[queue->slot / 64], ~bit,
			   __ATOMIC_SEQ_CST);
	__atomic_store_n(&ring->armed, 1, __ATOMIC_RELEASE);
}

bool board_space_ring_busy(const struct board_space *space, uint32_t slot)
{
	return space->stopping_slots[slot / 64] >> slot % 64 & 1;
}

bool board_space_ring_awaited(struct board_space *space, uint32_t slot)
{
	for (struct board_reopen *reopen = space->reopens; reopen; reopen = reopen->next) {
		if (reopen->slot == slot)
			return true;
	}
	return false;
}

int board_space_ring_open(struct board_space *space, const struct npu_queue *queue)
{
	struct board_reopen *reopen;

	if (!board_space_ring_busy(space, queue->slot)) {
		ring_init(space, queue);
		return 0;
	}
	reopen = calloc(1, sizeof(*reopen));
	if (!reopen)
		return -ENOMEM;
	reopen->slot = queue->slot;
	reopen->ticket = ++space->board->ticket;
	reopen->next = space->reopens;
	space->reopens = reopen;
	return BOARD_CALL_HELD;
}

void board_space_ring_close(struct board_space *space, uint32_t slot)
{
	if (space->engine)
		space->stopping_slots[slot / 64] |= 1ull << slot % 64;
	else
		board_space_ring_closed(space, slot);
}

/* The slot is free: for the queue that waits for it, unless that has gone meanwhile, too. */
static void ring_reopen(struct board_space *space, uint32_t slot)
{
	const struct board_upper *upper = space->board->upper;
	struct board_reopen **at = &space->reopens;
	struct npu_queue *queue;

	while (*at) {
		struct board_reopen *reopen = *at;

		if (reopen->slot != slot) {
			at = &reopen->next;
			continue;
		}
		*at = reopen->next;
		queue = space->stopping ? NULL : upper->queue_at(space->session, slot);
		if (queue) {
			ring_init(space, queue);
			if (space->engine)
				board_engine_queue(space->engine, queue);
		}
		if (!space->board->ending)
			upper->ring_opened(space->board, space->session, slot);
		free(reopen);
	}
}

void board_space_ring_closed(struct board_space *space, uint32_t slot)
{
	struct npu_ring_ctrl *ring = board_space_ring(space, slot);

	space->stopping_slots[slot / 64] &= ~(1ull << slot % 64);
	if (space->stopping) {
		ring_reopen(space, slot);
		return; /* the slab goes */
	}
	memset(ring, 0, sizeof(*ring));
	ring->state = NPU_RING_FREE;
	/* 128 KiB, so at once; the releaser might come to it when the next queue is there. */
	if (fallocate(space->slab->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		      (off_t)ring_data(slot), NPU_RING_BYTES) < 0)
		sim_log(SIM_LOG_DEBUG, "session %llu: ring %u keeps its memory: %m",
			(unsigned long long)space->id, slot);
	ring_reopen(space, slot);
}

void board_space_submit(struct board_space *space, uint32_t slot, const struct npu_entry *entries,
			uint32_t count, uint32_t *ret_taken, uint64_t *ret_tail)
{
	struct npu_ring_ctrl *ring = board_space_ring(space, slot);
	struct npu_entry *data = (struct npu_entry *)(space->map + ring_data(slot));
	uint64_t tail = __atomic_load_n(&ring->tail, __ATOMIC_RELAXED);
	uint64_t used = tail - __atomic_load_n(&ring->done, __ATOMIC_ACQUIRE);
	uint32_t room = used < NPU_RING_ENTRIES ? NPU_RING_ENTRIES - (uint32_t)used : 0;

	if (count > room)
		count = room;
	for (uint32_t i = 0; i < count; i++)
		data[(tail + i) & (NPU_RING_ENTRIES - 1)] = entries[i];
	__atomic_store_n(&ring->tail, tail + count, __ATOMIC_RELEASE);
	__atomic_store_n(&ring->armed, 0, __ATOMIC_SEQ_CST);
	__atomic_fetch_or(&board_space_header(space)->pending[slot / 64], 1ull << slot % 64,
			  __ATOMIC_SEQ_CST);
	*ret_taken = count;
	*ret_tail = tail + count;
}

uint64_t board_space_queued(struct board_space *space)
{
	struct npu_queue *queue;
	uint64_t cursor = 0, sum = 0;

	while ((queue = space->board->upper->queue_next(space->session, &cursor))) {
		struct npu_ring_ctrl *ring = board_space_ring(space, queue->slot);
		uint64_t n = __atomic_load_n(&ring->tail, __ATOMIC_RELAXED) -
			     __atomic_load_n(&ring->done, __ATOMIC_RELAXED);

		sum += n > NPU_RING_ENTRIES ? NPU_RING_ENTRIES : n;
	}
	return sum;
}

int board_space_wait(struct board_space *space, const struct npu_queue *queue, uint64_t want,
		     bool arm)
{
	struct board_wait **at = &space->waits, *wait;

	while (*at && (*at)->queue != (uint32_t)queue->obj.id)
		at = &(*at)->next;
	wait = *at;
	if (!arm) {
		if (wait) {
			*at = wait->next;
			free(wait);
		}
		return 0;
	}
	if (!wait) {
		wait = calloc(1, sizeof(*wait));
		if (!wait)
			return -ENOMEM;
		*at = wait;
	}
	wait->queue = (uint32_t)queue->obj.id;
	wait->slot = queue->slot;
	wait->want = want;
	if (space->engine)
		board_engine_look(space->engine);
	return 0;
}

void board_space_waits_check(struct board_space *space)
{
	struct board_wait **at = &space->waits;

	while (*at) {
		struct board_wait *wait = *at;
		uint64_t done = __atomic_load_n(&board_space_ring(space, wait->slot)->done,
						__ATOMIC_ACQUIRE);

		if (done < wait->want) {
			at = &wait->next;
			continue;
		}
		*at = wait->next;
		npu_core_queue_done(space->board->core, space->session, wait->queue, done);
		free(wait);
	}
}
