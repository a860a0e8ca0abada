/* SPDX-License-Identifier: Apache-2.0 */
/*
 * npu-sim as a PCI card, without a virtual machine: kernels through rings in BAR2, DMA, completion
 * interrupts, faults.
 */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/card_rig.h"
#include "tests/lib/npud_fixture.h"
#include "tests/lib/runner.h"

#define DEVICE NPU_WINDOW_BASE
#define HOST (NPU_WINDOW_BASE + (1ull << 30))
#define MIB (1ull << 20)
#define RING 3u
#define CTX 5u

static struct card_rig rig;
static uint32_t module, queue;

/* A card with a space 0, a ring, 4 MiB of device memory in two pieces, 4 MiB of host memory. */
static void start(uint32_t fail_mode)
{
	const struct npu_hw_run scattered[] = {
		{ CARD_RIG_HIGH + 8 * MIB, MIB },     /* above 4 GiB */
		{ 20 * MIB, MIB },
		{ CARD_RIG_BELOW - MIB, MIB },        /* the last below */
		{ CARD_RIG_HIGH + 2 * MIB, MIB },
	};
	uint32_t first, second, host;

	card_rig_start(&rig, NULL);
	card_rig_boot(&rig);
	card_rig_space(&rig, 0);
	card_rig_context(&rig, 0, CTX);
	queue = card_rig_queue(&rig, 0, RING, CTX, fail_mode);
	first = card_rig_device_memory(&rig, 100, 2 * MIB);
	second = card_rig_device_memory(&rig, 10, 2 * MIB);
	card_rig_map(&rig, 0, first, DEVICE, 2 * MIB);
	card_rig_map(&rig, 0, second, DEVICE + 2 * MIB, 2 * MIB);
	host = card_rig_host_memory(&rig, NPU_MEM_HOST, scattered, 4);
	card_rig_map(&rig, 0, host, HOST, 4 * MIB);
}

static void load(void)
{
	ck_assert_int_eq(card_rig_module(&rig, 0, NPU_TEST_KERNELS, &module), 0);
}

/* Where offset of the host memory lies. */
static unsigned char *host_at(uint64_t offset)
{
	static const uint64_t at[] = {
		CARD_RIG_BELOW + 8 * MIB, 20 * MIB, CARD_RIG_BELOW - MIB, CARD_RIG_BELOW + 2 * MIB,
	};

	return (unsigned char *)rig.ram + at[offset / MIB] + offset % MIB;
}

static unsigned char pattern(uint64_t offset)
{
	return (unsigned char)(offset * 131 + (offset >> 12) * 7 + 1);
}

static void host_fill(void)
{
	for (uint64_t i = 0; i < 4 * MIB; i++)
		*host_at(i) = pattern(i);
}

/* The host memory at offset holds the pattern from `from` on. */
static void assert_pattern(uint64_t offset, uint64_t from, uint64_t bytes)
{
	uint64_t i = 0;

	while (i < bytes && *host_at(offset + i) == pattern(from + i))
		i++;
	ck_assert_msg(i == bytes, "byte %llu of those at %llu is wrong", (unsigned long long)i,
		      (unsigned long long)offset);
}

static struct npu_ring_ctrl *ctrl(void)
{
	return card_rig_ctrl(&rig, 0, RING);
}

static void sync_ring(void)
{
	ck_assert_msg(card_rig_sync(&rig, 0, RING, CARD_RIG_WAIT_MS),
		      "done %llu of %llu", (unsigned long long)ctrl()->done,
		      (unsigned long long)ctrl()->tail);
}

/* ---- work ---------------------------------------------------------------------------------- */

START_TEST(test_kernels)
{
	struct { uint64_t counter, value; } args = { DEVICE, 3 };
	uint32_t func;

	start(NPU_FAIL_CONTINUE);
	load();
	func = card_rig_function(&rig, 0, module, "add");
	card_rig_copy(&rig, 0, RING, DEVICE, HOST, 4096);
	for (unsigned int i = 0; i < 500; i++)
		card_rig_launch(&rig, 0, RING, module, func, &args, sizeof(args));
	card_rig_copy(&rig, 0, RING, HOST + 4096, DEVICE, 8);
	sync_ring();
	ck_assert_uint_eq(*(uint64_t *)host_at(4096), 1500);
	ck_assert_uint_eq(ctrl()->error_count, 0);
	/* Again and again, with sleeps of both sides in between. */
	for (unsigned int i = 0; i < 50; i++) {
		card_rig_launch(&rig, 0, RING, module, func, &args, sizeof(args));
		sync_ring();
	}
	card_rig_copy(&rig, 0, RING, HOST + 4096, DEVICE, 8);
	sync_ring();
	ck_assert_uint_eq(*(uint64_t *)host_at(4096), 1650);
	card_rig_space_end(&rig, 0);
	card_rig_stop(&rig);
}
END_TEST

/* More entries than a ring holds, and arguments that are written over. */
START_TEST(test_long_stream)
{
	struct { uint64_t counter, value; } args = { DEVICE, 1 };
	uint32_t func;

	start(NPU_FAIL_CONTINUE);
	load();
	func = card_rig_function(&rig, 0, module, "add");
	for (unsigned int i = 0; i < 100; i++) {
		args.value = i;
		for (unsigned int j = 0; j < 60; j++)
			card_rig_launch(&rig, 0, RING, module, func, &args, sizeof(args));
		sync_ring();
	}
	card_rig_copy(&rig, 0, RING, HOST, DEVICE, 8);
	sync_ring();
	ck_assert_uint_eq(*(uint64_t *)host_at(0), 60 * 99 * 100 / 2);
	card_rig_stop(&rig);
}
END_TEST

START_TEST(test_copies)
{
	struct npu_entry entry = { .op = NPU_OP_COPY2D };

	start(NPU_FAIL_CONTINUE);
	host_fill();
	/* There and back, over pieces on both sides, odd addresses. */
	card_rig_copy(&rig, 0, RING, DEVICE + 17, HOST, 4 * MIB - 17);
	card_rig_copy(&rig, 0, RING, DEVICE + MIB, DEVICE + 3 * MIB, 1000); /* the engine's */
	card_rig_copy(&rig, 0, RING, HOST + 5, DEVICE + 17 + 100, 3 * MIB);
	sync_ring();
	assert_pattern(5, 100, MIB - 117);
	assert_pattern(5 + MIB - 117, 3 * MIB - 17, 1000);
	assert_pattern(5 + MIB - 117 + 1000, MIB - 17 + 1000, 2 * MIB - 883);
	/* Overlapping, both ways, across pieces. */
	host_fill();
	card_rig_copy(&rig, 0, RING, HOST + 300, HOST, 2 * MIB);
	sync_ring();
	assert_pattern(300, 0, 2 * MIB);
	host_fill();
	card_rig_copy(&rig, 0, RING, HOST, HOST + 300, 2 * MIB);
	sync_ring();
	assert_pattern(0, 300, 2 * MIB);
	/* Rows. */
	host_fill();
	entry.copy2d.dst = DEVICE;
	entry.copy2d.src = HOST;
	entry.copy2d.dst_pitch = 100;
	entry.copy2d.src_pitch = 7000;
	entry.copy2d.width = 99;
	entry.copy2d.height = 500;
	entry.map_gen = (uint32_t)rig.generation;
	card_rig_submit(&rig, 0, RING, &entry);
	card_rig_copy(&rig, 0, RING, HOST + 2 * MIB, DEVICE, 50000);
	sync_ring();
	for (uint64_t y = 0; y < 500; y++)
		assert_pattern(2 * MIB + y * 100, y * 7000, 99);
	ck_assert_uint_eq(ctrl()->error_count, 0);
	card_rig_stop(&rig);
}
END_TEST

START_TEST(test_fill)
{
	struct npu_entry entry = { .op = NPU_OP_FILL };

	start(NPU_FAIL_CONTINUE);
	entry.fill.dst = HOST + MIB - 2; /* a value across two pieces */
	entry.fill.bytes = 4096;
	entry.fill.value = 0x04030201;
	entry.fill.width = 4;
	entry.map_gen = (uint32_t)rig.generation;
	card_rig_submit(&rig, 0, RING, &entry);
	sync_ring();
	for (uint64_t i = 0; i < 4096; i++)
		ck_assert_uint_eq(*host_at(MIB - 2 + i), i % 4 + 1);
	ck_assert_uint_eq(*host_at(MIB - 2 + 4096), 0);
	card_rig_stop(&rig);
}
END_TEST

START_TEST(test_events)
{
	struct npu_event_word *words;
	struct npu_entry entry = { .op = NPU_OP_EVENT_RECORD };

	start(NPU_FAIL_CONTINUE);
	words = (struct npu_event_word *)(void *)(card_rig_slab(&rig, 0) + NPU_SLAB_EVENTS);
	words[40000].issued = 9;
	entry.event.index = 40000;
	entry.event.value = 9;
	card_rig_submit(&rig, 0, RING, &entry);
	entry.op = NPU_OP_EVENT_WAIT;
	card_rig_submit(&rig, 0, RING, &entry);
	sync_ring();
	ck_assert_uint_eq(words[40000].done, 9);
	ck_assert_uint_eq(words[40000].error, 0);
	ck_assert_uint_ne(words[40000].time_ns, 0);
	card_rig_stop(&rig);
}
END_TEST

static bool host_called(void *arg)
{
	(void)arg;
	return __atomic_load_n(&ctrl()->host_seq, __ATOMIC_ACQUIRE) == 1;
}

START_TEST(test_host_call)
{
	struct npu_entry entry = {
		.op = NPU_OP_HOST_CALL,
		.host = { .seq = 1, .fn = 0x11, .arg = 0x22, .blocking = 1 },
	};

	start(NPU_FAIL_CONTINUE);
	card_rig_header(&rig, 0)->host_calls_waiting = 1;
	card_rig_submit(&rig, 0, RING, &entry);
	ck_assert(card_rig_interrupted(&rig, NPU_HW_IRQ_SPACE0, CARD_RIG_WAIT_MS));
	ck_assert(wait_until(host_called, NULL, CARD_RIG_WAIT_MS));
	ck_assert_uint_eq(ctrl()->host_fn, 0x11);
	ck_assert_uint_eq(ctrl()->host_arg, 0x22);
	ck_assert_uint_eq(ctrl()->done, 0);
	__atomic_store_n(&ctrl()->host_reply, 1, __ATOMIC_SEQ_CST);
	card_rig_kick(&rig, 0, RING);
	sync_ring();
	card_rig_stop(&rig);
}
END_TEST

/* ---- faults -------------------------------------------------------------------------------- */

START_TEST(test_dma_fault)
{
	const struct npu_hw_run hole[] = { { 16 * MIB, 65536 }, { 1ull << 40, 65536 } };
	struct npu_hw_completion fault;
	uint32_t mem;

	start(NPU_FAIL_CONTINUE);
	mem = card_rig_host_memory(&rig, NPU_MEM_HOST, hole, 2);
	card_rig_map(&rig, 0, mem, HOST + 16 * MIB, 131072);
	card_rig_copy(&rig, 0, RING, DEVICE, HOST + 16 * MIB, 131072);
	card_rig_copy(&rig, 0, RING, DEVICE + 1, HOST + 5, 8);
	sync_ring();
	fault = card_rig_event(&rig, NPU_HW_CQ_FAULT);
	ck_assert_uint_eq(fault.fault.kind, NPU_FAULT_DMA);
	ck_assert_uint_eq(fault.fault.address, HOST + 16 * MIB + 65536);
	ck_assert_uint_eq(fault.fault.task, 0);
	ck_assert_uint_eq(fault.id, queue);
	ck_assert_uint_eq(fault.fault.context, CTX);
	ck_assert_uint_eq(rig.regs->error_cause & NPU_HW_CAUSE_DMA, NPU_HW_CAUSE_DMA);
	ck_assert_uint_eq(rig.regs->error_address, 1ull << 40);
	ck_assert(card_rig_interrupted(&rig, NPU_HW_IRQ_ERROR, CARD_RIG_WAIT_MS));
	ck_assert_uint_eq(ctrl()->error_count, 1);
	ck_assert_uint_eq(ctrl()->error.kind, NPU_FAULT_DMA);
	ck_assert_uint_eq(ctrl()->error.op, NPU_OP_COPY);
	ck_assert_uint_eq(ctrl()->error.count, ctrl()->error.begin);
	/* A device address that is not mapped. */
	card_rig_copy(&rig, 0, RING, DEVICE + 8 * MIB, HOST, 16);
	sync_ring();
	fault = card_rig_event(&rig, NPU_HW_CQ_FAULT);
	ck_assert_uint_eq(fault.fault.kind, NPU_FAULT_DMA);
	ck_assert_uint_eq(fault.fault.address, DEVICE + 8 * MIB);
	ck_assert_uint_eq(fault.fault.task, 2);
	card_rig_stop(&rig);
}
END_TEST

START_TEST(test_stop_after_fault)
{
	struct npu_hw_cmd cmd = { .op = NPU_ADMIN_CTX_SET, .id = CTX };

	start(NPU_FAIL_STOP);
	card_rig_copy(&rig, 0, RING, 0x1010, HOST, 16);
	card_rig_copy(&rig, 0, RING, HOST + 64, HOST, 16); /* dropped */
	*host_at(0) = 0x55;
	sync_ring();
	ck_assert_uint_eq(*host_at(64), 0);
	ck_assert_uint_eq(ctrl()->error_count, 2);
	ck_assert_uint_eq(card_rig_header(&rig, 0)->context_error[CTX], NPU_FAULT_DMA);
	cmd.ctx.clear_error = 1;
	ck_assert_int_eq(card_rig_command(&rig, &cmd), 0);
	ck_assert_uint_eq(card_rig_header(&rig, 0)->context_error[CTX], 0);
	card_rig_copy(&rig, 0, RING, HOST + 64, HOST, 16);
	sync_ring();
	ck_assert_uint_eq(*host_at(64), 0x55);
	card_rig_stop(&rig);
}
END_TEST

START_TEST(test_engine_killed)
{
	struct npu_hw_cmd cmd = { .op = NPU_ADMIN_INJECT };
	struct { uint64_t counter, value; } args = { DEVICE, 3 };
	struct { uint64_t until; } spin = { DEVICE + 64 };
	struct npu_hw_completion started;
	uint32_t func;

	start(NPU_FAIL_CONTINUE);
	load();
	started = card_rig_event(&rig, NPU_HW_CQ_ENGINE);
	ck_assert_uint_eq(started.value, 1);
	func = card_rig_function(&rig, 0, module, "add");
	card_rig_launch(&rig, 0, RING, module, card_rig_function(&rig, 0, module, "spin"), &spin,
			sizeof(spin));
	card_rig_launch(&rig, 0, RING, module, func, &args, sizeof(args));
	card_rig_copy(&rig, 0, RING, HOST, DEVICE, 8);
	ck_assert(!card_rig_sync(&rig, 0, RING, 100));
	cmd.inject.kind = NPU_INJECT_ENGINE_KILL;
	ck_assert_int_eq(card_rig_command(&rig, &cmd), -EINVAL); /* of no session */
	cmd.session = 7;
	ck_assert_int_eq(card_rig_command(&rig, &cmd), 0);
	sync_ring();
	started = card_rig_event(&rig, NPU_HW_CQ_ENGINE);
	ck_assert_uint_eq(started.value, 2);
	ck_assert_uint_eq(ctrl()->error_count, 1);
	ck_assert_uint_eq(ctrl()->error.kind, NPU_FAULT_ENGINE);
	ck_assert_uint_eq(*(uint64_t *)host_at(0), 3); /* the next one ran, by the new engine */
	card_rig_stop(&rig);
}
END_TEST

/* An abort drops what waits, the card's own copies too; a queue's slot can be used again. */
START_TEST(test_abort_and_reuse)
{
	struct npu_hw_cmd cmd = { .op = NPU_ADMIN_QUEUE_SET };
	struct { uint64_t until; } spin = { DEVICE + 64 };

	start(NPU_FAIL_CONTINUE);
	load();
	card_rig_launch(&rig, 0, RING, module, card_rig_function(&rig, 0, module, "spin"), &spin,
			sizeof(spin));
	card_rig_copy(&rig, 0, RING, HOST + 64, HOST, 16);
	*host_at(0) = 0x55;
	ck_assert(!card_rig_sync(&rig, 0, RING, 50));
	cmd.id = queue;
	cmd.queue.slot = RING;
	cmd.queue.ctx = CTX;
	cmd.queue.window = 8;
	cmd.queue.epoch = 1;
	ck_assert_int_eq(card_rig_command(&rig, &cmd), 0);
	ck_assert_uint_eq(ctrl()->epoch, 1);
	sync_ring();
	ck_assert_uint_eq(*host_at(64), 0);
	ck_assert_uint_eq(ctrl()->error_count, 2);
	ck_assert_uint_eq(ctrl()->error.kind, NPU_FAULT_ABORTED);
	for (unsigned int i = 0; i < 20; i++) {
		struct npu_hw_cmd drop = { .op = NPU_ADMIN_QUEUE_DROP, .id = queue };

		ck_assert_int_eq(card_rig_command(&rig, &drop), 0);
		queue = card_rig_queue(&rig, 0, RING, CTX, NPU_FAIL_CONTINUE);
		ck_assert_uint_eq(ctrl()->tail, 0);
		ck_assert_uint_eq(ctrl()->done, 0);
		card_rig_copy(&rig, 0, RING, HOST + 64 + i, HOST, 1);
		sync_ring();
		ck_assert_uint_eq(*host_at(64 + i), 0x55);
		ck_assert_uint_eq(ctrl()->error_count, 0);
	}
	card_rig_stop(&rig);
}
END_TEST

/* An entry that names a mapping waits for it. */
START_TEST(test_map_generation)
{
	const struct npu_hw_run run = { 16 * MIB, 65536 };
	uint32_t mem;

	start(NPU_FAIL_CONTINUE);
	mem = card_rig_host_memory(&rig, NPU_MEM_HOST, &run, 1);
	rig.generation++;
	card_rig_copy(&rig, 0, RING, HOST, HOST + 32 * MIB, 8);
	rig.generation--;
	memcpy(card_rig_at(&rig, run.start), "waiting", 8);
	ck_assert(!card_rig_sync(&rig, 0, RING, 100));
	card_rig_map(&rig, 0, mem, HOST + 32 * MIB, 65536);
	sync_ring();
	ck_assert_str_eq((char *)host_at(0), "waiting");
	card_rig_stop(&rig);
}
END_TEST

/* ---- counters ------------------------------------------------------------------------------ */

START_TEST(test_counters)
{
	struct npu_hw_cmd cmd = { .op = NPU_ADMIN_COUNTERS };
	const uint64_t *values;

	start(NPU_FAIL_CONTINUE);
	for (unsigned int i = 0; i < 10; i++)
		card_rig_copy(&rig, 0, RING, DEVICE, DEVICE + 64, 8);
	sync_ring();
	cmd.counters.address = card_rig_pages(&rig, 4096);
	values = card_rig_at(&rig, cmd.counters.address);
	ck_assert_int_eq(card_rig_command(&rig, &cmd), 0);
	ck_assert_uint_ge(values[NPU_COUNTER_TASKS_DONE], 10);
	ck_assert_uint_ne(values[NPU_COUNTER_ENGINE_PID], 0);
	card_rig_stop(&rig);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("card_work");
	TCase *tcase = tcase_create("card_work");

	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, test_kernels);
	tcase_add_test(tcase, test_long_stream);
	tcase_add_test(tcase, test_copies);
	tcase_add_test(tcase, test_fill);
	tcase_add_test(tcase, test_events);
	tcase_add_test(tcase, test_host_call);
	tcase_add_test(tcase, test_dma_fault);
	tcase_add_test(tcase, test_stop_after_fault);
	tcase_add_test(tcase, test_engine_killed);
	tcase_add_test(tcase, test_abort_and_reuse);
	tcase_add_test(tcase, test_map_generation);
	tcase_add_test(tcase, test_counters);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}
