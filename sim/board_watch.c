/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state page is written by the engine, so what is read there decides only over that engine: a
 * counter that stands still and is odd is a kernel that runs. Time limits count from when we first
 * saw the run, and are enforced by abort, then by kill.
 *
 * An engine that sleeps wakes by its doorbell. The board watches that eventfd, edge-triggered, and
 * reads it never: EPOLLIN is there for the wake-up, EPOLLOUT because an engine that drained it
 * before we looked must not hide the write. It is watched only after a second of rest, and one
 * more look follows 50 ms later, for what began while the watch was set up. When it was rung it is
 * not watched until the next look, so a client that rings all the time wakes us only so often.
 *
 * Starts of engines are work in the loop that a client can cause: a budget for all of them
 * together, which goes to the spaces in turn.
 */
#include "config.h"

#include "sim/board_watch.h"

#include "sim/sim_fd.h"

#define LOOK_ENDING (5 * SIM_MS)
#define LOOK_BUSY (10 * SIM_MS)
#define LOOK_AWAKE (50 * SIM_MS)
#define LOOK_ASLEEP (1000 * SIM_MS)
#define REST (1000 * SIM_MS)

#ifdef NPU_SANITIZERS
#define ABORT_WALL (100 * SIM_MS)
#else
#define ABORT_WALL (10 * SIM_MS)
#endif
#define ABORT_CPU (10 * SIM_MS)   /* the engine had this much time to act, too */
#define ABORT_MOST (200 * SIM_MS) /* or the machine is too busy to say */

#define SUSPECT_LOOKS 20u
#define SAMPLE_STEP (100 * SIM_MS)
#define SAMPLE_SPAN (1000 * SIM_MS)
#define ORPHAN_STEP (1000 * SIM_MS)

#define START_TOKENS 64u            /* starts in a burst */
#define START_TOKEN (20 * SIM_MS)   /* and one more each */
#define STARTS_A_TURN 4u            /* of the loop */

static void sooner(uint64_t *at, uint64_t when)
{
	if (when < *at)
		*at = when;
}

/* ---- use of the cores ---------------------------------------------------------------------- */

uint64_t board_watch_busy(struct board *board)
{
	uint64_t sum = board->busy_ns;

	for (struct board_space *space = board->spaces; space; space = space->next) {
		if (space->engine)
			sum += board_engine_cpu(space->engine);
	}
	return sum;
}

static void watch_sample(struct board *board, uint64_t now)
{
	unsigned int last = (board->sample_next + BOARD_SAMPLES - 1) % BOARD_SAMPLES;

	if (now - board->samples[last].time_ns < SAMPLE_STEP)
		return;
	board->samples[board->sample_next].time_ns = now;
	board->samples[board->sample_next].busy_ns = board_watch_busy(board);
	board->sample_next = (board->sample_next + 1) % BOARD_SAMPLES;
}

uint32_t board_watch_permille(struct board *board)
{
	uint64_t now = sim_now(), busy = board_watch_busy(board), span, used;
	uint64_t from = 0, from_busy = 0;

	/* The youngest sample that is a second old; the oldest one when none is. */
	for (unsigned int i = 0; i < BOARD_SAMPLES; i++) {
		unsigned int at = (board->sample_next + i) % BOARD_SAMPLES;

		if (!board->samples[at].time_ns)
			continue;
		if (from && now - board->samples[at].time_ns < SAMPLE_SPAN)
			break;
		from = board->samples[at].time_ns;
		from_busy = board->samples[at].busy_ns;
	}
	span = now - from;
	if (!from || span < SIM_MS || busy <= from_busy)
		return 0;
	used = (busy - from_busy) / (span / 1000) / board->options.cores;
	return used > 1000 ? 1000 : (uint32_t)used;
}

/* ---- one engine ---------------------------------------------------------------------------- */

void board_engine_look(struct board_engine *engine)
{
	engine->tick_ns = 0;
}

static void doorbell_unwatch(struct board_engine *engine)
{
	if (engine->doorbell.fd < 0)
		return;
	board_loop_delete(engine->space->board->loop, &engine->doorbell);
	engine->doorbell.fd = -1;
}

static void doorbell_ready(struct board_source *source, uint32_t events)
{
	struct board_engine *engine = sim_container(source, struct board_engine, doorbell);

	(void)events;
	sooner(&engine->tick_ns, sim_now() + LOOK_BUSY);
	/* Once for adding it, once for the doorbell; then not again before the look. */
	if (engine->doorbell_fresh)
		engine->doorbell_fresh = false;
	else
		doorbell_unwatch(engine);
}

static void doorbell_watch(struct board_engine *engine)
{
	if (engine->doorbell.fd >= 0)
		return;
	engine->doorbell.fd = engine->space->doorbell_fd;
	engine->doorbell.ready = doorbell_ready;
	engine->doorbell_fresh = true;
	if (board_loop_add(engine->space->board->loop, &engine->doorbell,
			   EPOLLIN | EPOLLOUT | EPOLLET) < 0)
		engine->doorbell.fd = -1;
}

void board_engine_expect_end(struct board_engine *engine, uint32_t slot)
{
	for (uint32_t i = 0; i < engine->space->board->options.cores; i++) {
		const struct engine_core_state *state = &engine->state->cores[i];
		struct board_core *core = &engine->cores[i];
		uint64_t run = __atomic_load_n(&state->run, __ATOMIC_ACQUIRE);

		if (!(run & 1) || state->slot != slot || core->abort_run == run)
			continue;
		core->abort_run = run;
		core->abort_kind = NPU_FAULT_ABORTED;
		core->abort_ns = sim_now();
		core->abort_cpu_ns = board_engine_cpu(engine);
		sooner(&engine->tick_ns, core->abort_ns + ABORT_WALL);
	}
}

/* A run that was told to end and has not. */
static void core_ending(struct board_engine *engine, struct board_core *core, uint64_t now,
			uint64_t *next)
{
	uint64_t wall = now - core->abort_ns;
	uint64_t cpu = board_engine_cpu(engine) - core->abort_cpu_ns;

	if (wall >= ABORT_MOST || (wall >= ABORT_WALL && cpu >= ABORT_CPU))
		board_engine_kill(engine, NPU_FAULT_ENGINE,
				  core->abort_kind == NPU_FAULT_TIMEOUT ?
					  "goes on with a kernel whose time is up" :
					  "goes on with a kernel that was aborted");
	sooner(next, now + LOOK_ENDING);
}

/* True when the core runs something. */
static bool core_look(struct board_engine *engine, uint32_t index, uint64_t now, uint64_t *next)
{
	const struct engine_core_state *state = &engine->state->cores[index];
	struct board_core *core = &engine->cores[index];
	uint64_t run = __atomic_load_n(&state->run, __ATOMIC_ACQUIRE);
	uint64_t timeout_us;

	if (!(run & 1))
		return false;
	sooner(next, now + LOOK_BUSY);
	timeout_us = __atomic_load_n(&state->timeout_us, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (__atomic_load_n(&state->run, __ATOMIC_RELAXED) != run)
		return true;
	if (core->run != run) {
		core->run = run;
		core->since_ns = now;
	}
	if (!timeout_us)
		timeout_us = engine->space->board->options.kernel_timeout_us;
	core->limit_ns = timeout_us > UINT64_MAX / 2000 ? UINT64_MAX : timeout_us * 1000;
	if (core->abort_run == run) {
		core_ending(engine, core, now, next);
	} else if (core->limit_ns != UINT64_MAX && now - core->since_ns >= core->limit_ns) {
		core->abort_run = run;
		core->abort_kind = NPU_FAULT_TIMEOUT;
		core->abort_ns = now;
		core->abort_cpu_ns = board_engine_cpu(engine);
		board_engine_abort(engine, index, run, NPU_FAULT_TIMEOUT);
		sooner(next, now + ABORT_WALL);
	} else if (core->limit_ns != UINT64_MAX) {
		/* Not more often than each millisecond, whatever the limit. */
		uint64_t end = core->since_ns + core->limit_ns;

		sooner(next, end > now + SIM_MS ? end : now + SIM_MS);
	}
	return true;
}

static uint64_t engine_runs(struct board_engine *engine)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < engine->space->board->options.cores; i++)
		sum += __atomic_load_n(&engine->state->cores[i].run, __ATOMIC_RELAXED);
	return sum;
}

/* Nothing runs: how long until the next look. */
static uint64_t engine_rest(struct board_engine *engine, uint64_t now)
{
	uint64_t runs = engine_runs(engine);

	if (__atomic_load_n(&engine->state->awake, __ATOMIC_RELAXED) || !engine->idle_ns ||
	    runs != engine->idle_runs) {
		engine->idle_ns = now;
		engine->idle_runs = runs;
		doorbell_unwatch(engine);
		return LOOK_AWAKE;
	}
	if (now - engine->idle_ns < REST)
		return LOOK_AWAKE;
	if (engine->doorbell.fd < 0) {
		doorbell_watch(engine);
		return LOOK_AWAKE;
	}
	return LOOK_ASLEEP;
}

static void engine_tick(struct board_engine *engine, uint64_t now)
{
	struct board_space *space = engine->space;
	uint64_t next = now + LOOK_ASLEEP;
	bool busy = false;

	for (uint32_t i = 0; i < space->board->options.cores && !engine->killed; i++)
		busy |= core_look(engine, i, now, &next);
	board_space_waits_check(space);
	if (space->waits)
		sooner(&next, now + LOOK_BUSY);
	if (busy) {
		engine->idle_ns = 0;
		doorbell_unwatch(engine);
	} else {
		sooner(&next, now + engine_rest(engine, now));
	}
	/* One that suspects itself leaves when it has nothing to do; if it forgets, it is told. */
	if (!busy && __atomic_load_n(&engine->state->suspect, __ATOMIC_RELAXED)) {
		if (++engine->suspect_looks >= SUSPECT_LOOKS)
			board_engine_leave(engine);
		sooner(&next, now + LOOK_AWAKE);
	} else {
		engine->suspect_looks = 0;
	}
	engine->tick_ns = next;
}

static void engine_watch(struct board_engine *engine, uint64_t now)
{
	struct board_channel *channel = &engine->channel;

	if (engine->killed)
		return;
	if (channel->closed)
		board_engine_leave(engine); /* it ends; its pidfd says when */
	if (channel->broken)
		board_engine_kill(engine, NPU_FAULT_ENGINE, channel->broken);
	else if (now >= engine->exit_ns)
		board_engine_kill(engine, NPU_FAULT_ENGINE, "does not leave");
	else if (now >= board_channel_deadline(channel, board_engine_limit()))
		board_engine_kill(engine, NPU_FAULT_ENGINE, "does not act on its messages");
	if (engine->killed)
		return;
	if (now >= board_channel_resume_ns(channel))
		board_channel_resume(channel);
	if (now >= engine->tick_ns)
		engine_tick(engine, now);
}

/* ---- all of them --------------------------------------------------------------------------- */

static void space_start(struct board_space *space)
{
	struct board *board = space->board;

	space->turn = ++board->start_turn;
	if (board_engine_start(space) == 0)
		space->refused = 0;
	else if (board->nursery_dead || !board->nursery)
		board_space_lose(space, "no engine can be started any more");
	else
		board_space_engine_refused(space);
}

/* Who waits since longest; NULL: nobody may start one now. */
static struct board_space *watch_next_start(struct board *board, uint64_t now)
{
	struct board_space *first = NULL;

	for (struct board_space *space = board->spaces; space; space = space->next) {
		if (board_space_wants_engine(space) && now >= space->respawn_ns &&
		    (!first || space->turn < first->turn))
			first = space;
	}
	return first;
}

static void watch_starts(struct board *board, uint64_t now)
{
	uint64_t more = (now - board->start_token_ns) / START_TOKEN;
	struct board_space *space;

	board->start_tokens = more > START_TOKENS - board->start_tokens ?
				      START_TOKENS : board->start_tokens + (uint32_t)more;
	board->start_token_ns += more * START_TOKEN;
	for (unsigned int i = 0; i < STARTS_A_TURN && board->start_tokens; i++) {
		space = watch_next_start(board, now);
		if (!space)
			break;
		board->start_tokens--;
		space_start(space);
	}
}

static uint64_t watch_start_ns(const struct board *board, const struct board_space *space)
{
	uint64_t next = board->start_tokens ? 0 : board->start_token_ns + START_TOKEN;

	return space->respawn_ns > next ? space->respawn_ns : next;
}

/* The rules hear of a lost space once: every load fails, and a fault says so. */
static void space_tell_lost(struct board_space *space)
{
	struct npu_fault_record fault = { .kind = NPU_FAULT_LOST, .time_ns = sim_now() };
	struct board *board = space->board;
	struct npu_module *module;
	uint64_t cursor = 0;

	space->tell_lost = false;
	if (space->stopping)
		return;
	for (;;) {
		uint32_t id = 0;

		board->upper->lock(board);
		while ((module = board->upper->module_next(space->session, &cursor))) {
			if (module->state == NPU_MODULE_LOADING) {
				id = (uint32_t)module->obj.id;
				break;
			}
		}
		board->upper->unlock(board);
		if (!id)
			break;
		board->upper->module_done(board, space->session, id, -EIO, NULL, 0,
					  "the session's engine is lost");
	}
	board->upper->fault(board, space->session, NPU_SLOT_NONE, &fault);
}

void board_watch_run(struct board *board)
{
	uint64_t now = sim_now();
	bool any = false;

	while (board->bad_count)
		board->upper->page_bad(board, board->bad_pages[--board->bad_count]);
	watch_starts(board, now);
	for (struct board_space *space = board->spaces, *next; space; space = next) {
		next = space->next;
		if (space->engine)
			engine_watch(space->engine, now);
		if (space->tell_lost)
			space_tell_lost(space);
		any |= space->engine != NULL;
	}
	if (any)
		watch_sample(board, now);
	if (board->nursery_dead && board->health == NPU_HEALTH_OK) {
		board->health = NPU_HEALTH_DEGRADED;
		sim_log(SIM_LOG_ERROR, "the nursery died: no new engine can be started; restart "
			"npu-sim");
		board->upper->health(board, board->health);
	}
	if (now >= board->orphans_ns) {
		uint64_t grace_ns = board->options.orphan_grace_ms * SIM_MS;

		board->orphans_ns = npu_core_orphans_expire(board->core, grace_ns) ?
			now + ORPHAN_STEP : UINT64_MAX;
	}
}

uint64_t board_watch_next(struct board *board)
{
	uint64_t next = board->orphans_ns;

	for (struct board_space *space = board->spaces; space; space = space->next) {
		struct board_engine *engine = space->engine;

		if (space->tell_lost)
			return 0;
		if (!engine) {
			if (board_space_wants_engine(space))
				sooner(&next, watch_start_ns(board, space));
			continue;
		}
		if (engine->killed)
			continue;
		if (engine->channel.broken ||
		    (engine->channel.closed && engine->exit_ns == UINT64_MAX))
			return 0;
		sooner(&next, engine->exit_ns);
		sooner(&next, board_channel_deadline(&engine->channel, board_engine_limit()));
		sooner(&next, board_channel_resume_ns(&engine->channel));
		sooner(&next, engine->tick_ns);
	}
	return next;
}
