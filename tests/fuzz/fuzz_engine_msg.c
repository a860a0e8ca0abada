/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an engine does to the board: messages, its state page, and the slab. The board is real,
 * with one session that has two modules that load, two queues and a map. The engine is the input:
 * a row of steps, each an answer, a message, bytes of the state page or of the slab, or something
 * that the client asks meanwhile. The board may end the engine; nothing else may happen.
 */
#include "tests/fuzz/fuzz.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "kdrv/core/npu_core.h"
#include "sim/board_engine_msg.h"
#include "sim/board_watch.h"
#include "sim/sim_fd.h"

#define STEPS 256u
#define CORES 4u
#define IMAGE 4096u

struct fuzz {
	const uint8_t *data;
	size_t size;
	struct board *board;
	struct npu_core_file *file;
	bool ready; /* event records wait */
	struct board_space *space;
	int peer; /* the engine's end */
	uint64_t session, call, mem;
	uint32_t ctx, modules[2], queues[2];
};

static _Alignas(8) uint8_t buffer[NPU_CALL_MAX];

static uint8_t byte(struct fuzz *fuzz)
{
	if (!fuzz->size)
		return 0;
	fuzz->size--;
	return *fuzz->data++;
}

static void take(struct fuzz *fuzz, void *to, size_t size)
{
	size_t n = size < fuzz->size ? size : fuzz->size;

	memcpy(to, fuzz->data, n);
	fuzz->data += n;
	fuzz->size -= n;
}

/* ---- the client ---------------------------------------------------------------------------- */

static int call(struct fuzz *fuzz, unsigned int nr, bool mutates, void *arg, uint32_t size)
{
	struct board_reply_fds fds = { 0 };
	struct npu_head *head = arg;
	int r;

	head->size = size;
	head->session = fuzz->session;
	head->call = mutates ? ++fuzz->call : 0;
	memcpy(buffer, arg, size);
	r = npu_core_call(fuzz->board->core, fuzz->file, nr, buffer, size, &fds);
	memcpy(arg, buffer, size);
	return r;
}
#define CALL(fuzz, request, arg) \
	call(fuzz, _IOC_NR(NPU_IOCTL_##request), true, arg, sizeof(*(arg)))
#define ASK(fuzz, request, arg) \
	call(fuzz, _IOC_NR(NPU_IOCTL_##request), false, arg, sizeof(*(arg)))

static void load(struct fuzz *fuzz, unsigned int which)
{
	struct npu_module_load load = { .mem = fuzz->mem, .bytes = IMAGE };

	if (CALL(fuzz, MODULE_LOAD, &load) == 0)
		fuzz->modules[which] = load.module;
}

static void queue(struct fuzz *fuzz, unsigned int which)
{
	struct npu_queue_create create = { .ctx = fuzz->ctx };

	if (CALL(fuzz, QUEUE_CREATE, &create) == 0)
		fuzz->queues[which] = create.queue;
}

static void step_client(struct fuzz *fuzz, uint8_t kind)
{
	unsigned int which = kind >> 7;
	struct npu_module_unload unload = { .module = fuzz->modules[which] };
	struct npu_queue_destroy destroy = { .queue = fuzz->queues[which] };
	struct npu_queue_ctrl ctrl = { .queue = fuzz->queues[which], .op = byte(fuzz) % 6 };
	struct npu_wait wait = { .queue = fuzz->queues[which], .done = byte(fuzz) };
	struct npu_func_lookup lookup = { .module = fuzz->modules[which] };
	struct npu_query query = { 0 };

	switch (kind & 7) {
	case 0:
		CALL(fuzz, MODULE_UNLOAD, &unload);
		break;
	case 1:
		load(fuzz, which);
		break;
	case 2:
		CALL(fuzz, QUEUE_DESTROY, &destroy);
		break;
	case 3:
		queue(fuzz, which);
		break;
	case 4:
		CALL(fuzz, QUEUE_CTRL, &ctrl);
		break;
	case 5:
		ASK(fuzz, WAIT, &wait);
		break;
	case 6:
		ASK(fuzz, FUNC_LOOKUP, &lookup);
		break;
	default:
		ASK(fuzz, QUERY, &query);
		break;
	}
}

/* ---- the engine ---------------------------------------------------------------------------- */

static void say(struct fuzz *fuzz, uint16_t type, const void *payload, size_t size)
{
	struct engine_msg msg = { .magic = ENGINE_PROTO_MAGIC, .type = type, .bytes = size };
	struct iovec iov[] = { { &msg, sizeof(msg) }, { (void *)payload, size } };
	struct msghdr hdr = { .msg_iov = iov, .msg_iovlen = 2 };

	(void)!sendmsg(fuzz->peer, &hdr, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void say_ack(struct fuzz *fuzz, uint8_t kind)
{
	struct engine_ack ack = { .seq = fuzz->space->engine->channel.answered + 1 };

	if (kind & 1)
		ack.status = -(int32_t)byte(fuzz);
	if (kind & 2)
		take(fuzz, &ack.value, sizeof(ack.value));
	else
		ack.value = byte(fuzz);
	if (kind & 4)
		take(fuzz, ack.text, byte(fuzz) % (sizeof(ack.text) + 1));
	if (kind & 8)
		take(fuzz, &ack.seq, sizeof(ack.seq));
	say(fuzz, ENGINE_ACK, &ack, sizeof(ack));
}

static void say_funcs(struct fuzz *fuzz, uint8_t kind)
{
	static struct engine_funcs funcs;
	struct board_expect *expect = fuzz->space->engine->expects;

	memset(&funcs, 0, sizeof(funcs));
	funcs.module = expect ? expect->id : 0;
	funcs.first = expect ? expect->count : 0;
	funcs.count = 1 + byte(fuzz) % 14;
	funcs.total = kind & 1 ? funcs.first + funcs.count : byte(fuzz);
	for (uint32_t i = 0; i < funcs.count && i < ENGINE_FUNCS_MAX; i++) {
		memset(funcs.funcs[i].name, 'a' + i, 1 + byte(fuzz) % NPU_NAME_MAX);
		funcs.funcs[i].params = kind & 2 ? byte(fuzz) : i;
		funcs.funcs[i].args_size = 8 * byte(fuzz);
	}
	if (kind & 4)
		take(fuzz, &funcs, 16);
	if (kind & 8)
		take(fuzz, &funcs.funcs[byte(fuzz) % ENGINE_FUNCS_MAX], sizeof(funcs.funcs[0]));
	say(fuzz, ENGINE_FUNCS, &funcs, sizeof(funcs));
}

static void say_fault(struct fuzz *fuzz, uint8_t kind)
{
	struct engine_fault_msg fault = { .slot = byte(fuzz) % 4 };

	fault.fault.kind = byte(fuzz) % 20;
	fault.fault.module = fuzz->modules[kind & 1];
	fault.fault.func = byte(fuzz);
	if (kind & 2)
		take(fuzz, &fault.fault, sizeof(fault.fault));
	if (kind & 4)
		take(fuzz, &fault.slot, sizeof(fault.slot));
	say(fuzz, ENGINE_FAULT, &fault, sizeof(fault));
}

static void say_raw(struct fuzz *fuzz, uint8_t kind)
{
	static uint8_t raw[ENGINE_MSG_MAX + 256];
	size_t size = byte(fuzz) | (size_t)byte(fuzz) << 8;
	struct engine_msg head = { .magic = ENGINE_PROTO_MAGIC, .type = 32 + kind % 4 };

	size %= sizeof(raw);
	memset(raw, 0, sizeof(raw));
	if ((kind & 0x10) && size >= sizeof(head)) {
		head.bytes = (uint32_t)(size - sizeof(head));
		memcpy(raw, &head, sizeof(head));
		take(fuzz, raw + sizeof(head), size - sizeof(head));
	} else {
		take(fuzz, raw, size);
	}
	(void)!send(fuzz->peer, raw, size, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void say_with_fds(struct fuzz *fuzz)
{
	struct engine_ready ready = { 0 };
	struct engine_msg msg = {
		.magic = ENGINE_PROTO_MAGIC, .type = ENGINE_READY, .bytes = sizeof(ready),
	};
	struct iovec iov[] = { { &msg, sizeof(msg) }, { &ready, sizeof(ready) } };
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int) * 20)];
	} control = { 0 };
	size_t n = 1 + byte(fuzz) % 20;
	struct msghdr hdr = {
		.msg_iov = iov, .msg_iovlen = 2,
		.msg_control = &control, .msg_controllen = CMSG_SPACE(sizeof(int) * n),
	};

	control.align.cmsg_level = SOL_SOCKET;
	control.align.cmsg_type = SCM_RIGHTS;
	control.align.cmsg_len = CMSG_LEN(sizeof(int) * n);
	for (size_t i = 0; i < n; i++)
		memcpy(CMSG_DATA(&control.align) + i * sizeof(int), &fuzz->peer, sizeof(int));
	(void)!sendmsg(fuzz->peer, &hdr, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void write_state(struct fuzz *fuzz, uint8_t kind)
{
	struct engine_state *state = fuzz->space->engine->state;
	struct engine_core_state *core = &state->cores[kind % ENGINE_CORES_MAX];
	size_t at;

	if (kind & 0x80) {
		core->run = byte(fuzz);
		core->slot = byte(fuzz) % 4;
		core->head = byte(fuzz);
		core->timeout_us = byte(fuzz);
	} else {
		at = (byte(fuzz) | (size_t)byte(fuzz) << 8) % (sizeof(*state) - 8) & ~7ul;
		take(fuzz, (uint8_t *)state + at, 8);
	}
}

static void write_slab(struct fuzz *fuzz, uint8_t kind)
{
	size_t at = byte(fuzz) | (size_t)byte(fuzz) << 8;

	/* The header, or the first rings. */
	at += kind & 1 ? NPU_SLAB_HEADER : NPU_SLAB_RINGS;
	take(fuzz, fuzz->space->map + at, 1 + byte(fuzz) % 64);
}

/* ---- one turn ------------------------------------------------------------------------------ */

static void turn(struct fuzz *fuzz)
{
	struct npu_event event;

	/* What waits for the engine is taken, or it counts as one that does not read. */
	while (recv(fuzz->peer, buffer, sizeof(buffer), MSG_DONTWAIT) > 0)
		;
	fuzz_check(board_loop_turn(fuzz->board->loop, 0) == 0, "the loop");
	board_watch_run(fuzz->board);
	while (npu_core_event_read(fuzz->board->core, fuzz->file, &event) == 0)
		fuzz_check(event.size == sizeof(event), "size of an event");
}

static void step(struct fuzz *fuzz)
{
	uint8_t op = byte(fuzz), kind = byte(fuzz);
	struct engine_ready ready = { .cores = CORES };

	switch (op % 16) {
	case 0:
		say(fuzz, ENGINE_READY, &ready, sizeof(ready));
		break;
	case 1:
	case 2:
	case 3:
		say_ack(fuzz, kind);
		break;
	case 4:
	case 5:
		say_funcs(fuzz, kind);
		break;
	case 6:
	case 7:
		say_fault(fuzz, kind);
		break;
	case 8:
		say_raw(fuzz, kind);
		break;
	case 9:
		if (kind > 0xf0)
			say_with_fds(fuzz);
		break;
	case 10:
	case 11:
		write_state(fuzz, kind);
		break;
	case 12:
		write_slab(fuzz, kind);
		break;
	default:
		step_client(fuzz, kind);
		break;
	}
	if (kind & 0x20)
		board_engine_look(fuzz->space->engine);
	if (!(op & 0x80))
		turn(fuzz);
}

/* ---- begin and end ------------------------------------------------------------------------- */

/* A board that listens where nobody connects. */
static void start_board(struct fuzz *fuzz)
{
	struct sim_options options = {
		.memory = 64u << 20, .cores = CORES, .host_visible = true,
		.kernel_timeout_us = 1000, .log_level = SIM_LOG_ERROR,
	};
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	fuzz_check(fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof(sa_family_t)) == 0 &&
		   listen(fd, 1) == 0, "no socket");
	fuzz_check(board_new(&options, NULL, fd, &fuzz->board) == 0, "no board");
	fuzz_check(npu_core_file_open(fuzz->board->core, &fuzz->ready, &fuzz->file) == 0, "no file");
}

static void start_session(struct fuzz *fuzz)
{
	struct npu_session_create session = { .slab_address = NPU_WINDOW_BASE };
	struct npu_ctx_create ctx = { 0 };
	struct npu_mem_alloc alloc = { .kind = NPU_MEM_IMAGE, .bytes = NPU_PAGE_SMALL };
	struct npu_mem_map map = {
		.address = NPU_WINDOW_BASE + (1ull << 30), .bytes = NPU_PAGE_SMALL,
	};

	fuzz_check(CALL(fuzz, SESSION_CREATE, &session) == 0, "no session");
	fuzz->session = session.session;
	fuzz_check(CALL(fuzz, CTX_CREATE, &ctx) == 0, "no context");
	fuzz->ctx = ctx.ctx;
	fuzz_check(CALL(fuzz, MEM_ALLOC, &alloc) == 0, "no memory for an image");
	fuzz->mem = alloc.mem;
	alloc = (struct npu_mem_alloc){ .kind = NPU_MEM_DEVICE, .bytes = NPU_PAGE_SMALL };
	fuzz_check(CALL(fuzz, MEM_ALLOC, &alloc) == 0, "no device memory");
	map.mem = alloc.mem;
	fuzz_check(CALL(fuzz, MEM_MAP, &map) == 0, "no map");
	for (unsigned int i = 0; i < 2; i++) {
		load(fuzz, i);
		queue(fuzz, i);
	}
	fuzz->space = fuzz->board->spaces;
	fuzz_check(fuzz->space && fuzz->modules[1] && fuzz->queues[1], "no space");
}

/* As board_engine_start(), but without a process. */
static void start_engine(struct fuzz *fuzz)
{
	struct board_engine *engine = calloc(1, sizeof(*engine));
	int pair[2];

	fuzz_check(engine && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0,
		   "no engine");
	engine->space = fuzz->space;
	engine->exit.fd = engine->doorbell.fd = -1;
	engine->expects_last = &engine->expects;
	engine->exit_ns = UINT64_MAX;
	engine->kill_kind = NPU_FAULT_ENGINE;
	engine->clock = CLOCK_PROCESS_CPUTIME_ID;
	engine->state = mmap(NULL, sizeof(*engine->state), PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	fuzz_check(engine->state != MAP_FAILED, "no state page");
	fuzz_check(board_channel_open(&engine->channel, fuzz->board->loop, fuzz->board->release,
				      pair[0], &board_engine_channel_ops) == 0, "no channel");
	fuzz->peer = pair[1];
	fuzz->space->engine = engine;
	board_engine_say(engine, ENGINE_SETUP, &(struct engine_setup){ 0 },
			 sizeof(struct engine_setup));
	board_engine_replay(engine);
	npu_core_engine_started(fuzz->board->core, fuzz->space->session);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz fuzz = { .data = data, .size = size };

	sim_log_open(SIM_LOG_ERROR, 0);
	start_board(&fuzz);
	start_session(&fuzz);
	start_engine(&fuzz);
	for (unsigned int i = 0; i < STEPS && fuzz.size && !fuzz.space->engine->killed; i++)
		step(&fuzz);
	turn(&fuzz);
	close(fuzz.peer);
	turn(&fuzz);
	board_free(fuzz.board);
	return 0;
}
