/* SPDX-License-Identifier: Apache-2.0 */
/* The engine against its contract: rings, launches, faults, aborts, replacement. Real processes. */
#include <check.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "sim/engine.h"
#include "tests/lib/engine_board.h"

#define MEMORY (NPU_WINDOW_BASE + (1ull << 30))
#define MEMORY_SIZE (1u << 20)
#define MODULE 7

enum { NOTHING, MARK, POKE, DIVIDE, SPIN, FAIL_BLOCK, ADD };

static struct engine_board b;
static int memory_fd;
static volatile uint64_t *memory;
static uint32_t func[7];

static void load(void)
{
	static const char *names[] = { "nothing", "mark", "poke", "divide", "spin", "fail_block", "add" };

	ck_assert_int_eq(engine_board_module(&b, MODULE, NPU_TEST_KERNELS), 0);
	for (unsigned i = 0; i < 7; i++) {
		func[i] = UINT32_MAX;
		for (unsigned j = 0; j < b.funcs.count; j++) {
			if (!strcmp(b.funcs.funcs[j].name, names[i]))
				func[i] = j;
		}
		ck_assert_uint_ne(func[i], UINT32_MAX);
	}
}

static void prepare(void)
{
	ck_assert_int_eq(engine_board_map(&b, MEMORY, memory_fd, MEMORY_SIZE), 0);
	load();
	for (uint32_t q = 0; q < 8; q++)
		ck_assert_int_eq(engine_board_queue(&b, q, NPU_FAIL_CONTINUE, 1), 0);
}

static void setup(void)
{
	engine_board_start(&b, 2);
	memory_fd = memfd_create("memory", MFD_CLOEXEC);
	ck_assert_int_ge(memory_fd, 0);
	ck_assert_int_eq(ftruncate(memory_fd, MEMORY_SIZE), 0);
	memory = mmap(NULL, MEMORY_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, memory_fd, 0);
	ck_assert_ptr_ne((void *)memory, MAP_FAILED);
	prepare();
	ck_assert_int_eq(engine_board_begin(&b, NULL), 0);
}

static void teardown(void)
{
	engine_board_stop(&b);
	munmap((void *)memory, MEMORY_SIZE);
	close(memory_fd);
}

static void launch(uint32_t q, unsigned which, uint32_t blocks, uint64_t a0, uint64_t a1)
{
	struct npu_ring_ctrl *ring = engine_board_ring(&b, q);
	uint64_t offset = (ring->tail % NPU_RING_ENTRIES) * 16;
	struct npu_entry e = {
		.op = NPU_OP_KERNEL, .epoch = 1, .map_gen = b.generation, .tag = 42,
		.kernel = { .module = MODULE, .func = func[which], .blocks = blocks,
			    .args_size = 16, .args = offset },
	};

	engine_board_room(&b, q); /* the argument slot belongs to the entry that is a ring's length back */
	memcpy(engine_board_args(&b, q) + offset, (uint64_t[]){ a0, a1 }, 16);
	engine_board_submit(&b, q, &e);
}

static void entry(uint32_t q, struct npu_entry e)
{
	e.epoch = 1;
	e.map_gen = b.generation;
	engine_board_submit(&b, q, &e);
}

/*
 * Holds a queue until open_gate(): for tests that need entries behind a fault in the ring before it
 * happens, since an engine may end as soon as it is idle after one.
 */
#define GATE 1000 /* word of the memory */

static void close_gate(uint32_t q)
{
	memory[GATE] = 0;
	entry(q, (struct npu_entry){ .op = NPU_OP_VALUE_WAIT,
		.value = { .address = MEMORY + 8 * GATE, .value = 1, .cond = NPU_COND_EQ, .width = 8 } });
}

static void open_gate(void)
{
	__atomic_store_n(&memory[GATE], 1, __ATOMIC_SEQ_CST);
}

static void expect_error(uint32_t q, uint64_t count, uint32_t kind)
{
	struct npu_ring_ctrl *ring = engine_board_ring(&b, q);

	engine_board_sync(&b, q);
	ck_assert_uint_eq(ring->error_count, count);
	ck_assert_uint_eq(ring->error.count, count);
	ck_assert_uint_eq(ring->error.begin, count);
	ck_assert_uint_eq(ring->error.kind, kind);
}

START_TEST(kernel_runs_every_block_once)
{
	launch(0, MARK, 1000, MEMORY, 0);
	engine_board_sync(&b, 0);
	for (uint32_t i = 0; i < 1000; i++)
		ck_assert_uint_eq(((volatile uint32_t *)memory)[i], i + 1);
	ck_assert_uint_eq(engine_board_ring(&b, 0)->error_count, 0);
}
END_TEST

START_TEST(one_queue_keeps_its_order)
{
	for (uint64_t i = 1; i <= 20000; i++)
		launch(0, ADD, 1, MEMORY, i);
	engine_board_sync(&b, 0);
	ck_assert_uint_eq(memory[0], 20000ull * 20001 / 2);
}
END_TEST

START_TEST(queues_run_beside_each_other)
{
	launch(0, SPIN, 1, MEMORY, 0);
	launch(1, POKE, 1, MEMORY + 8, 5);
	engine_board_sync(&b, 1);
	ck_assert_uint_eq(memory[1], 5);
	ck_assert_int_eq(engine_board_wait(&b, 0, 1, 20), -ETIMEDOUT);
	launch(1, POKE, 1, MEMORY, 1);
	engine_board_sync(&b, 1);
	engine_board_sync(&b, 0);
}
END_TEST

START_TEST(wake_ups_are_never_lost)
{
	/* Alternates between queues and between awake and asleep on both sides. */
	for (unsigned i = 0; i < 3000; i++) {
		launch(i % 8, ADD, 1, MEMORY + 8 * (i % 8), 1);
		engine_board_sync(&b, i % 8);
		if (i % 100 == 0)
			engine_board_wait(&b, 0, ~0ull - 1, 2); /* lets the engine fall asleep */
	}
	for (unsigned q = 0; q < 8; q++)
		ck_assert_uint_eq(memory[q], 375);
}
END_TEST

START_TEST(events_order_two_queues)
{
	struct npu_event_word *ev = (void *)(b.slab + NPU_SLAB_EVENTS);

	for (uint32_t i = 1; i <= 500; i++) {
		entry(1, (struct npu_entry){ .op = NPU_OP_EVENT_WAIT, .event = { .index = 3, .value = i } });
		launch(1, POKE, 1, MEMORY, 1000 + i);
		launch(0, POKE, 1, MEMORY, i);
		entry(0, (struct npu_entry){ .op = NPU_OP_EVENT_RECORD, .event = { .index = 3, .value = i } });
		engine_board_sync(&b, 1);
		ck_assert_uint_eq(memory[0], 1000 + i);
	}
	ck_assert_uint_eq(ev[3].done, 500);
	ck_assert_uint_eq(ev[3].error, 0);
	ck_assert_uint_ne(ev[3].time_ns, 0);
}
END_TEST

START_TEST(movers_move)
{
	volatile uint8_t *m = (volatile uint8_t *)memory;

	for (unsigned i = 0; i < 4096; i++)
		m[i] = i * 7;
	entry(0, (struct npu_entry){ .op = NPU_OP_COPY,
		.copy = { .dst = MEMORY + 8192, .src = MEMORY, .bytes = 4096 } });
	entry(0, (struct npu_entry){ .op = NPU_OP_COPY2D,
		.copy2d = { .dst = MEMORY + 16384, .src = MEMORY, .dst_pitch = 32, .src_pitch = 64,
			    .width = 16, .height = 10 } });
	entry(0, (struct npu_entry){ .op = NPU_OP_FILL,
		.fill = { .dst = MEMORY + 32768, .bytes = 100, .value = 0xab, .width = 1 } });
	entry(0, (struct npu_entry){ .op = NPU_OP_VALUE_WRITE,
		.value = { .address = MEMORY + 40000, .value = 0x1122334455667788, .width = 8 } });
	engine_board_sync(&b, 0);
	for (unsigned i = 0; i < 4096; i++)
		ck_assert_uint_eq(m[8192 + i], (uint8_t)(i * 7));
	for (unsigned y = 0; y < 10; y++)
		for (unsigned x = 0; x < 16; x++)
			ck_assert_uint_eq(m[16384 + y * 32 + x], (uint8_t)((y * 64 + x) * 7));
	ck_assert_uint_eq(m[32768 + 99], 0xab);
	ck_assert_uint_eq(m[32768 + 100], 0);
	ck_assert_uint_eq(*(volatile uint64_t *)(m + 40000), 0x1122334455667788);
	ck_assert_uint_eq(engine_board_ring(&b, 0)->error_count, 0);
}
END_TEST

START_TEST(value_wait_waits)
{
	entry(0, (struct npu_entry){ .op = NPU_OP_VALUE_WAIT,
		.value = { .address = MEMORY, .value = 5, .cond = NPU_COND_GEQ, .width = 8 } });
	ck_assert_int_eq(engine_board_wait(&b, 0, 1, 30), -ETIMEDOUT);
	memory[0] = 6; /* nobody tells the engine */
	engine_board_sync(&b, 0);
}
END_TEST

START_TEST(host_call_holds_the_queue)
{
	struct npu_ring_ctrl *ring = engine_board_ring(&b, 0);
	uint64_t one = 1;

	entry(0, (struct npu_entry){ .op = NPU_OP_HOST_CALL,
		.host = { .seq = 1, .fn = 11, .arg = 22, .blocking = 1 } });
	launch(0, POKE, 1, MEMORY, 9);
	ck_assert_int_eq(engine_board_wait(&b, 0, 1, 30), -ETIMEDOUT);
	ck_assert_uint_eq(ring->host_seq, 1);
	ck_assert_uint_eq(ring->host_fn, 11);
	ck_assert_uint_eq(ring->host_arg, 22);
	ck_assert_uint_eq(memory[0], 0);
	__atomic_store_n(&ring->host_reply, 1, __ATOMIC_SEQ_CST);
	__atomic_fetch_or(&b.header->pending[0], 1, __ATOMIC_SEQ_CST);
	if (__atomic_exchange_n(&b.header->device_sleeping, 0, __ATOMIC_SEQ_CST))
		ck_assert_int_eq(write(b.doorbell, &one, 8), 8);
	engine_board_sync(&b, 0);
	ck_assert_uint_eq(memory[0], 9);
}
END_TEST

START_TEST(indirect_runs_an_array)
{
	struct npu_entry *list = (void *)((char *)memory + 65536);

	list[0] = (struct npu_entry){ .op = NPU_OP_VALUE_WRITE,
		.value = { .address = MEMORY, .value = 3, .width = 8 } };
	list[1] = (struct npu_entry){ .op = NPU_OP_JUMP,
		.jump = { .address = MEMORY, .value = 3, .cond = NPU_COND_EQ, .target = 3 } };
	list[2] = (struct npu_entry){ .op = NPU_OP_VALUE_WRITE,
		.value = { .address = MEMORY + 8, .value = 99, .width = 8 } };
	list[3] = (struct npu_entry){ .op = NPU_OP_VALUE_WRITE,
		.value = { .address = MEMORY + 16, .value = 4, .width = 8 } };
	entry(0, (struct npu_entry){ .op = NPU_OP_INDIRECT,
		.indirect = { .address = MEMORY + 65536, .count = 4 } });
	engine_board_sync(&b, 0);
	ck_assert_uint_eq(memory[0], 3);
	ck_assert_uint_eq(memory[1], 0);
	ck_assert_uint_eq(memory[2], 4);
	ck_assert_uint_eq(engine_board_ring(&b, 0)->error_count, 0);
}
END_TEST

/* ---- faults -------------------------------------------------------------------------------- */

static void await_end(int status)
{
	int s;

	ck_assert_int_eq(waitpid(b.pid, &s, 0), b.pid);
	ck_assert_int_eq(s, status);
	b.pid = -1;
}

/* What the board does when an engine has ended. */
static void replace(const struct engine_start *start)
{
	close(b.control);
	engine_board_spawn(&b);
	prepare();
	ck_assert_int_eq(engine_board_begin(&b, start), 0);
}

START_TEST(fault_is_the_tasks_alone_and_the_engine_ends_clean)
{
	close_gate(0);
	launch(0, POKE, 1, 0x123450, 1);
	launch(0, POKE, 1, MEMORY, 8);
	open_gate();
	expect_error(0, 1, NPU_FAULT_ACCESS);
	ck_assert_uint_eq(engine_board_ring(&b, 0)->error.address, 0x123450);
	ck_assert_uint_eq(engine_board_ring(&b, 0)->error.tag, 42);
	ck_assert_uint_eq(engine_board_ring(&b, 0)->error.func, func[POKE]);
	ck_assert_uint_ne(engine_board_ring(&b, 0)->error.pc, 0);
	ck_assert_uint_eq(memory[0], 8);
	engine_board_await_fault(&b);
	ck_assert_uint_eq(b.fault.fault.kind, NPU_FAULT_ACCESS);
	ck_assert_uint_eq(b.fault.fault.queue, 1);
	ck_assert_uint_eq(b.fault.fault.address, 0x123450);
	/* Nothing to do: it makes room. The next one goes on where it stopped. */
	await_end(0);
	launch(0, POKE, 1, MEMORY, 9);
	replace(NULL);
	engine_board_sync(&b, 0);
	ck_assert_uint_eq(memory[0], 9);
	ck_assert_uint_eq(engine_board_ring(&b, 0)->error_count, 1);
}
END_TEST

START_TEST(kinds_of_faults)
{
	launch(0, DIVIDE, 1, MEMORY, 0);
	expect_error(0, 1, NPU_FAULT_ARITH);
	await_end(0);
	replace(NULL);
	entry(0, (struct npu_entry){ .op = NPU_OP_COPY,
		.copy = { .dst = MEMORY, .src = 0x7e9000000000, .bytes = 64 } });
	expect_error(0, 2, NPU_FAULT_DMA);
	ck_assert_uint_eq(engine_board_ring(&b, 0)->error.address, 0x7e9000000000);
	await_end(0);
	replace(NULL);
	launch(0, FAIL_BLOCK, 64, 33, 0);
	expect_error(0, 3, NPU_FAULT_ACCESS);
	ck_assert_uint_eq(engine_board_ring(&b, 0)->error.block, 33);
	await_end(0);
	replace(NULL);
	entry(0, (struct npu_entry){ .op = 200 });
	expect_error(0, 4, NPU_FAULT_ENTRY);
	entry(0, (struct npu_entry){ .op = NPU_OP_KERNEL, .kernel = { .module = 99, .blocks = 1 } });
	expect_error(0, 5, NPU_FAULT_FUNCTION);
	entry(0, (struct npu_entry){ .op = NPU_OP_KERNEL,
		.kernel = { .module = MODULE, .func = func[POKE], .blocks = 1, .args_size = 8 } });
	expect_error(0, 6, NPU_FAULT_FUNCTION);
	entry(0, (struct npu_entry){ .op = NPU_OP_KERNEL, .kernel = { .module = MODULE,
		.func = func[POKE], .blocks = 1, .args_size = 16, .args = NPU_RING_ARGS - 8 } });
	expect_error(0, 7, NPU_FAULT_ENTRY);
	entry(0, (struct npu_entry){ .op = NPU_OP_EVENT_RECORD, .event = { .index = NPU_MAX_EVENTS } });
	expect_error(0, 8, NPU_FAULT_ENTRY);
	entry(0, (struct npu_entry){ .op = NPU_OP_VALUE_WRITE,
		.value = { .address = MEMORY + 3, .value = 1, .width = 8 } });
	expect_error(0, 9, NPU_FAULT_ENTRY);
	/* None of these last ones touched anything: the engine is not suspect. */
	ck_assert_int_eq(waitpid(b.pid, NULL, WNOHANG), 0);
}
END_TEST

START_TEST(stop_mode_drops_what_follows)
{
	ck_assert_int_eq(engine_board_queue(&b, 0, NPU_FAIL_STOP, 1), 0);
	close_gate(0);
	launch(0, POKE, 1, 0x10, 1);
	launch(0, POKE, 1, MEMORY, 8);
	open_gate();
	engine_board_sync(&b, 0);
	ck_assert_uint_eq(memory[0], 0);
	ck_assert_uint_eq(b.header->context_error[1], NPU_FAULT_ACCESS);
}
END_TEST

START_TEST(abort_by_run_ends_an_endless_kernel)
{
	struct engine_abort a = { .kind = NPU_FAULT_TIMEOUT };

	launch(0, SPIN, 2, MEMORY, 0); /* on both cores */
	for (;;) {
		for (a.core = 0; a.core < 2; a.core++) {
			a.run = __atomic_load_n(&b.state->cores[a.core].run, __ATOMIC_ACQUIRE);
			if (a.run & 1)
				break;
		}
		if (a.core < 2)
			break;
	}
	/* A run that is over: nothing may happen. */
	a.run -= 2;
	ck_assert_int_eq(engine_board_call(&b, ENGINE_ABORT, &a, sizeof(a), -1, NULL), 0);
	ck_assert_int_eq(engine_board_wait(&b, 0, 1, 20), -ETIMEDOUT);
	a.run += 2;
	ck_assert_int_eq(engine_board_call(&b, ENGINE_ABORT, &a, sizeof(a), -1, NULL), 0);
	expect_error(0, 1, NPU_FAULT_TIMEOUT);
	launch(0, POKE, 1, MEMORY, 4);
	engine_board_sync(&b, 0);
	ck_assert_uint_eq(memory[0], 4);
}
END_TEST

START_TEST(new_epoch_drops_the_old)
{
	struct npu_event_word *ev = (void *)(b.slab + NPU_SLAB_EVENTS);
	struct npu_entry e = { .op = NPU_OP_VALUE_WRITE, .epoch = 2,
		.value = { .address = MEMORY + 8, .value = 3, .width = 8 } };

	launch(0, SPIN, 1, MEMORY, 0);
	entry(0, (struct npu_entry){ .op = NPU_OP_VALUE_WRITE,
		.value = { .address = MEMORY, .value = 1, .width = 8 } });
	entry(0, (struct npu_entry){ .op = NPU_OP_EVENT_RECORD, .event = { .index = 1, .value = 1 } });
	ck_assert_int_eq(engine_board_wait(&b, 0, 1, 20), -ETIMEDOUT);
	ck_assert_int_eq(engine_board_queue(&b, 0, NPU_FAIL_CONTINUE, 2), 0);
	engine_board_sync(&b, 0);
	ck_assert_uint_eq(memory[0], 0);
	ck_assert_uint_eq(engine_board_ring(&b, 0)->error.kind, NPU_FAULT_ABORTED);
	ck_assert_uint_eq(ev[1].done, 1);
	ck_assert_uint_eq(ev[1].error, NPU_FAULT_ABORTED);
	engine_board_submit(&b, 0, &e);
	engine_board_sync(&b, 0);
	ck_assert_uint_eq(memory[1], 3);
}
END_TEST

START_TEST(killed_engine_fails_what_ran_and_nothing_else)
{
	struct engine_start start = { .kind = NPU_FAULT_ENGINE };

	launch(0, ADD, 1, MEMORY + 8, 1);
	launch(0, SPIN, 1, MEMORY, 0);
	launch(0, ADD, 1, MEMORY + 8, 10);
	ck_assert_int_eq(engine_board_wait(&b, 0, 2, 20), -ETIMEDOUT);
	kill(b.pid, SIGKILL);
	await_end(SIGKILL);
	replace(&start);
	engine_board_sync(&b, 0);
	ck_assert_uint_eq(memory[1], 11);
	ck_assert_uint_eq(engine_board_ring(&b, 0)->error_count, 1);
	ck_assert_uint_eq(engine_board_ring(&b, 0)->error.kind, NPU_FAULT_ENGINE);
	ck_assert_uint_eq(engine_board_ring(&b, 0)->error.task, 1);
}
END_TEST

START_TEST(steps_of_an_array_do_not_run_twice)
{
	struct engine_start start = { .kind = NPU_FAULT_ENGINE };
	struct npu_entry *list = (void *)((char *)memory + 65536);

	list[0] = (struct npu_entry){ .op = NPU_OP_VALUE_WRITE,
		.value = { .address = MEMORY, .value = 3, .width = 8 } };
	list[1] = (struct npu_entry){ .op = NPU_OP_VALUE_WAIT,
		.value = { .address = MEMORY + 8, .value = 1, .cond = NPU_COND_EQ, .width = 8 } };
	entry(0, (struct npu_entry){ .op = NPU_OP_INDIRECT,
		.indirect = { .address = MEMORY + 65536, .count = 2 } });
	ck_assert_int_eq(engine_board_wait(&b, 0, 1, 30), -ETIMEDOUT);
	ck_assert_uint_eq(memory[0], 3);
	/* A fault elsewhere: the engine would end when idle, but not within an array. */
	launch(1, POKE, 1, 0x10, 1);
	expect_error(1, 1, NPU_FAULT_ACCESS);
	ck_assert_int_eq(engine_board_wait(&b, 0, 1, 50), -ETIMEDOUT);
	ck_assert_int_eq(waitpid(b.pid, NULL, WNOHANG), 0);
	memory[0] = 0;
	kill(b.pid, SIGKILL);
	await_end(SIGKILL);
	memory[1] = 1;
	replace(&start);
	expect_error(0, 1, NPU_FAULT_ENGINE);
	ck_assert_uint_eq(memory[0], 0);
}
END_TEST

START_TEST(a_replacement_wakes_the_client_once)
{
	struct pollfd p = { .fd = b.completion, .events = POLLIN };
	uint64_t count;

	kill(b.pid, SIGKILL);
	await_end(SIGKILL);
	(void)!read(b.completion, &count, sizeof(count));
	b.header->client_waiting = 1; /* as left behind by a kill right before the wake-up */
	replace(NULL);
	ck_assert_int_eq(poll(&p, 1, 5000), 1);
	ck_assert_uint_eq(b.header->client_waiting, 0);
}
END_TEST

START_TEST(exit_lets_the_running_task_end)
{
	struct engine_msg msg = { .magic = ENGINE_PROTO_MAGIC, .type = ENGINE_EXIT };

	launch(0, SPIN, 1, MEMORY, 0);
	launch(0, POKE, 1, MEMORY + 8, 5);
	ck_assert_int_eq(engine_board_wait(&b, 0, 1, 20), -ETIMEDOUT);
	ck_assert_int_eq(send(b.control, &msg, sizeof(msg), 0), sizeof(msg));
	ck_assert_int_eq(engine_board_wait(&b, 0, 1, 20), -ETIMEDOUT);
	memory[0] = 1;
	await_end(0);
	ck_assert_uint_eq(engine_board_ring(&b, 0)->done, 1);
	ck_assert_uint_eq(memory[1], 0);
	replace(NULL);
	engine_board_sync(&b, 0);
	ck_assert_uint_eq(memory[1], 5);
	ck_assert_uint_eq(engine_board_ring(&b, 0)->error_count, 0);
}
END_TEST

START_TEST(unmapped_memory_faults_and_mappings_are_awaited)
{
	struct npu_entry e = { .op = NPU_OP_VALUE_WRITE, .epoch = 1,
		.value = { .address = MEMORY, .value = 1, .width = 8 } };

	ck_assert_int_eq(engine_board_map(&b, MEMORY, -1, MEMORY_SIZE), 0);
	e.map_gen = b.generation + 1; /* the mapping that is still to come */
	engine_board_submit(&b, 0, &e);
	ck_assert_int_eq(engine_board_wait(&b, 0, 1, 30), -ETIMEDOUT);
	ck_assert_int_eq(engine_board_map(&b, MEMORY, memory_fd, MEMORY_SIZE), 0);
	engine_board_sync(&b, 0);
	ck_assert_uint_eq(memory[0], 1);
	/* The slab itself cannot be taken away. */
	ck_assert_int_eq(engine_board_map(&b, NPU_WINDOW_BASE, -1, 65536), -ERANGE);
	ck_assert_int_eq(engine_board_map(&b, MEMORY, -1, MEMORY_SIZE), 0);
	launch(0, POKE, 1, MEMORY, 2);
	expect_error(0, 1, NPU_FAULT_ACCESS);
}
END_TEST

START_TEST(broken_rings_hurt_nobody)
{
	struct npu_ring_ctrl *ring = engine_board_ring(&b, 2);

	__atomic_store_n(&ring->tail, 1ull << 40, __ATOMIC_SEQ_CST);
	__atomic_fetch_or(&b.header->pending[0], ~0ull, __ATOMIC_SEQ_CST);
	__atomic_fetch_or(&b.header->pending[9], ~0ull, __ATOMIC_SEQ_CST); /* no such queues */
	launch(0, POKE, 1, MEMORY, 1);
	engine_board_sync(&b, 0);
	ck_assert_uint_eq(memory[0], 1);
	engine_board_sync(&b, 2);
	ck_assert_uint_eq(ring->error.kind, NPU_FAULT_ENTRY);
}
END_TEST

START_TEST(destroyed_queue_ends_its_kernel_and_may_be_reused)
{
	struct engine_queue q = { .slot = 5, .queue = 6, .ctx = 1, .active = 0 };
	struct npu_ring_ctrl *ring = engine_board_ring(&b, 5);

	launch(5, SPIN, 1, MEMORY, 0);
	ck_assert_int_eq(engine_board_wait(&b, 5, 1, 20), -ETIMEDOUT);
	ck_assert_int_eq(engine_board_call(&b, ENGINE_QUEUE, &q, sizeof(q), -1, NULL), 0);
	memset(ring, 0, sizeof(*ring));
	ck_assert_int_eq(engine_board_queue(&b, 5, NPU_FAIL_CONTINUE, 1), 0);
	launch(5, POKE, 1, MEMORY + 8, 6);
	engine_board_sync(&b, 5);
	ck_assert_uint_eq(memory[1], 6);
	ck_assert_uint_eq(ring->error_count, 0);
}
END_TEST

START_TEST(idle_engine_sleeps)
{
	launch(0, NOTHING, 1, 0, 0);
	engine_board_sync(&b, 0);
	for (uint64_t limit = engine_now_ns() + 5000000000ull; engine_now_ns() < limit;) {
		if (!__atomic_load_n(&b.state->awake, __ATOMIC_ACQUIRE))
			break;
	}
	ck_assert_uint_eq(b.state->awake, 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("engine");
	TCase *t = tcase_create("engine");
	SRunner *r;
	int failed;

	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, kernel_runs_every_block_once);
	tcase_add_test(t, one_queue_keeps_its_order);
	tcase_add_test(t, queues_run_beside_each_other);
	tcase_add_test(t, wake_ups_are_never_lost);
	tcase_add_test(t, events_order_two_queues);
	tcase_add_test(t, movers_move);
	tcase_add_test(t, value_wait_waits);
	tcase_add_test(t, host_call_holds_the_queue);
	tcase_add_test(t, indirect_runs_an_array);
	tcase_add_test(t, fault_is_the_tasks_alone_and_the_engine_ends_clean);
	tcase_add_test(t, kinds_of_faults);
	tcase_add_test(t, stop_mode_drops_what_follows);
	tcase_add_test(t, abort_by_run_ends_an_endless_kernel);
	tcase_add_test(t, new_epoch_drops_the_old);
	tcase_add_test(t, killed_engine_fails_what_ran_and_nothing_else);
	tcase_add_test(t, steps_of_an_array_do_not_run_twice);
	tcase_add_test(t, a_replacement_wakes_the_client_once);
	tcase_add_test(t, exit_lets_the_running_task_end);
	tcase_add_test(t, unmapped_memory_faults_and_mappings_are_awaited);
	tcase_add_test(t, broken_rings_hurt_nobody);
	tcase_add_test(t, destroyed_queue_ends_its_kernel_and_may_be_reused);
	tcase_add_test(t, idle_engine_sleeps);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
