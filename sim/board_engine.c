/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Life and death of an engine. A death is acted on when the pidfd says so, never before, so a dead
 * engine cannot write any more when its state page is read.
 */
#include "config.h"

#include "sim/board_engine.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "sim/board_engine_msg.h"
#include "sim/sim_fd.h"

#define ENGINE_LEAVE (200 * SIM_MS)
#ifdef NPU_SANITIZERS
#define ENGINE_LIMIT (10000 * SIM_MS)
#else
#define ENGINE_LIMIT (2000 * SIM_MS)
#endif

uint64_t board_engine_limit(void)
{
	return ENGINE_LIMIT;
}

static size_t state_bytes(void)
{
	size_t page = (size_t)sysconf(_SC_PAGE_SIZE);

	return (sizeof(struct engine_state) + page - 1) / page * page;
}

static void engine_free(struct board_engine *engine)
{
	struct board_loop *loop = engine->space->board->loop;

	if (engine->exit.fd >= 0) {
		board_loop_delete(loop, &engine->exit);
		close(engine->exit.fd);
	}
	if (engine->doorbell.fd >= 0)
		board_loop_delete(loop, &engine->doorbell);
	board_channel_close(&engine->channel);
	if (engine->state)
		munmap(engine->state, state_bytes());
	board_engine_forget(engine);
	engine->space->engine = NULL;
	free(engine);
}

/* ---- death --------------------------------------------------------------------------------- */

/* Which tasks were running, by its own account. Returns how many. */
static unsigned int engine_collect(struct board_engine *engine)
{
	struct board_space *space = engine->space;
	unsigned int running = 0;

	for (uint32_t i = 0; i < space->board->options.cores; i++) {
		const struct engine_core_state *core = &engine->state->cores[i];
		const struct board_core *seen = &engine->cores[i];
		uint32_t kind = engine->kill_kind;

		if (!(core->run & 1) || core->slot >= NPU_MAX_QUEUES)
			continue;
		if (seen->abort_run && seen->abort_run == core->run)
			kind = seen->abort_kind;
		board_space_failed(space, core->slot, core->head, kind);
		running++;
	}
	return running;
}

static void engine_ended(struct board_engine *engine, const siginfo_t *info,
			 const struct rusage *usage)
{
	struct board_space *space = engine->space;
	struct board *board = space->board;
	uint64_t cpu = ((uint64_t)usage->ru_utime.tv_sec + (uint64_t)usage->ru_stime.tv_sec) *
			       1000000000u +
		       ((uint64_t)usage->ru_utime.tv_usec + (uint64_t)usage->ru_stime.tv_usec) *
			       1000u;
	uint64_t tasks = __atomic_load_n(&engine->state->tasks_done, __ATOMIC_RELAXED);
	unsigned int running = engine_collect(engine);
	struct board_space_end end;
	bool orderly = info->si_code == CLD_EXITED && info->si_status == 0 && !running;

	space->core_ns += cpu;
	board->busy_ns += cpu;
	space->tasks_done += tasks;
	if (space->stopping || orderly || space->lost)
		sim_log(SIM_LOG_DEBUG, "session %llu: engine %d ended",
			(unsigned long long)space->id, (int)engine->pid);
	else if (sim_log_limit_ok(&space->limit))
		sim_log(SIM_LOG_WARNING, "session %llu: engine %d ended by %s %d with %u running "
			"tasks, which fail", (unsigned long long)space->id, (int)engine->pid,
			info->si_code == CLD_EXITED ? "status" : "signal", info->si_status,
			running);
	/* The next engine is told of all loads that have no end; what killed one is not among them. */
	if (!board->ending && !orderly)
		board_engine_fail_load(engine);
	end.fault = orderly && engine->faulted;
	end.progress = tasks > 0 || end.fault;
	end.life_ns = sim_now() - engine->start_ns;
	engine_free(engine);
	board_space_engine_ended(space, &end);
}

static void engine_exit_ready(struct board_source *source, uint32_t events)
{
	struct board_engine *engine = sim_container(source, struct board_engine, exit);
	struct rusage usage = { 0 };
	siginfo_t info = { 0 };

	(void)events;
	/* The library's waitid() has no place for usage. */
	if (syscall(SYS_waitid, P_PIDFD, source->fd, &info, WEXITED | WNOHANG, &usage) < 0) {
		if (errno == EINTR)
			return;
		info.si_code = CLD_KILLED; /* somebody reaped our child: take it as killed */
		info.si_status = SIGKILL;
	} else if (!info.si_pid) {
		return;
	}
	/* Its end may be seen before its last messages, the fault that made it leave among them. */
	board_channel_drain(&engine->channel);
	engine_ended(engine, &info, &usage);
}

void board_engine_kill(struct board_engine *engine, uint32_t kind, const char *why)
{
	struct board_space *space = engine->space;

	if (engine->killed)
		return;
	engine->killed = true;
	engine->kill_kind = kind;
	if (why && sim_log_limit_ok(&space->limit))
		sim_log(SIM_LOG_WARNING, "session %llu: engine %d %s: killed",
			(unsigned long long)space->id, (int)engine->pid, why);
	syscall(SYS_pidfd_send_signal, engine->exit.fd, SIGKILL, NULL, 0);
}

void board_engine_leave(struct board_engine *engine)
{
	if (engine->killed || engine->exit_ns != UINT64_MAX)
		return;
	engine->exit_ns = sim_now() + ENGINE_LEAVE;
	board_engine_say(engine, ENGINE_EXIT, NULL, 0);
}

/* Waits for the end of one that was killed: milliseconds, and only where nothing else can go on. */
static void engine_reap(struct board_engine *engine)
{
	siginfo_t info;

	while (waitid(P_PIDFD, (id_t)engine->exit.fd, &info, WEXITED) < 0 && errno == EINTR)
		;
}

void board_engine_abandon(struct board_engine *engine)
{
	board_engine_kill(engine, NPU_FAULT_LOST, NULL);
	engine_reap(engine);
	engine_free(engine);
}

uint64_t board_engine_cpu(struct board_engine *engine)
{
	struct timespec ts;

	if (clock_gettime(engine->clock, &ts) < 0)
		return 0;
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* ---- birth --------------------------------------------------------------------------------- */

static int engine_state_new(struct board_engine *engine, int *ret_fd)
{
	cleanup(sim_fd_close) int fd = -1;
	void *map;
	int r;

	r = board_memory_file("npu-state", state_bytes(), &fd);
	if (r < 0)
		return r;
	map = mmap(NULL, state_bytes(), PROT_READ, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	engine->state = map;
	*ret_fd = sim_fd_steal(&fd);
	return 0;
}

/* The process. Its end of the socket is closed here whatever happens. */
static int engine_spawn(struct board_engine *engine)
{
	struct board *board = engine->space->board;
	cleanup(sim_fd_close) int theirs = -1;
	struct nursery_child child;
	int pair[2], r;

	if (!board->nursery)
		return -ENODEV;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	theirs = pair[1];
	r = board_channel_open(&engine->channel, board->loop, board->release, pair[0],
			       &board_engine_channel_ops);
	if (r < 0)
		return r;
	r = nursery_spawn(board->nursery, theirs, &child);
	if (r == -EPIPE)
		board->nursery_dead = true;
	if (r < 0)
		return r;
	engine->pid = child.pid;
	engine->exit.fd = child.pidfd;
	engine->exit.ready = engine_exit_ready;
	if (clock_getcpuclockid(child.pid, &engine->clock))
		engine->clock = CLOCK_PROCESS_CPUTIME_ID;
	r = board_loop_add(board->loop, &engine->exit, EPOLLIN);
	if (r < 0) {
		board_engine_kill(engine, NPU_FAULT_ENGINE, "cannot be watched");
		engine_reap(engine);
	}
	return r;
}

static void engine_setup(struct board_engine *engine, int state_fd)
{
	struct board_space *space = engine->space;
	struct engine_setup setup = {
		.slab_address = space->session->slab_address,
		.slab_size = NPU_SLAB_SIZE,
		.state_size = state_bytes(),
		.cores = space->board->options.cores,
		.replaced = space->starts,
		.stack_size = ENGINE_STACK_SIZE,
		.default_timeout_us = space->board->options.kernel_timeout_us,
		.spin_us = ENGINE_SPIN_US,
	};
	int fds[] = { space->slab->fd, space->doorbell_fd, space->completion_fd, state_fd };

	board_channel_send(&engine->channel, ENGINE_SETUP, &setup, sizeof(setup), fds, 4);
}

int board_engine_start(struct board_space *space)
{
	struct board_engine *engine = calloc(1, sizeof(*engine));
	cleanup(sim_fd_close) int state_fd = -1;
	int r;

	if (!engine)
		return -ENOMEM;
	engine->space = space;
	engine->channel.source.fd = engine->exit.fd = engine->doorbell.fd = -1;
	engine->expects_last = &engine->expects;
	engine->exit_ns = UINT64_MAX;
	engine->start_ns = sim_now();
	engine->kill_kind = NPU_FAULT_ENGINE;
	space->engine = engine;
	r = engine_state_new(engine, &state_fd);
	if (r == 0)
		r = engine_spawn(engine);
	if (r < 0) {
		if (sim_log_limit_ok(&space->limit))
			sim_log(SIM_LOG_ERROR, "session %llu: cannot start an engine: %s; tries "
				"again", (unsigned long long)space->id, strerror(-r));
		engine_free(engine);
		return r;
	}
	engine_setup(engine, state_fd);
	board_engine_replay(engine);
	board_engine_look(engine);
	sim_log(SIM_LOG_INFO, "session %llu: engine %d started, number %u",
		(unsigned long long)space->id, (int)engine->pid, space->starts + 1);
	space->starts++;
	space->board->upper->engine_started(space->board, space->session);
	return 0;
}
