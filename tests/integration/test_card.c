/* SPDX-License-Identifier: Apache-2.0 */
/*
 * npu-sim as a PCI card, without a virtual machine: identity, firmware, heartbeat, reset, unplug,
 * memory that comes back, idling.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/card_rig.h"
#include "tests/lib/npud_fixture.h"
#include "tests/lib/runner.h"

#define DEVICE NPU_WINDOW_BASE
#define HOST (NPU_WINDOW_BASE + (1ull << 30))
#define MIB (1ull << 20)
#define RING 3u
#define CTX 5u

static struct card_rig rig;
static uint32_t module;

/* A card with a space 0, a ring, a MiB of device memory and one of host memory. */
static void start(void)
{
	const struct npu_hw_run run = { 20 * MIB, MIB };

	card_rig_start(&rig, NULL);
	card_rig_boot(&rig);
	card_rig_space(&rig, 0);
	card_rig_context(&rig, 0, CTX);
	card_rig_queue(&rig, 0, RING, CTX, NPU_FAIL_CONTINUE);
	card_rig_map(&rig, 0, card_rig_device_memory(&rig, 100, MIB), DEVICE, MIB);
	card_rig_map(&rig, 0, card_rig_host_memory(&rig, NPU_MEM_HOST, &run, 1), HOST, MIB);
}

static void load(void)
{
	ck_assert_int_eq(card_rig_module(&rig, 0, NPU_TEST_KERNELS, &module), 0);
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

/* ---- firmware ------------------------------------------------------------------------------ */

START_TEST(test_identity)
{
	static const char *const more[] = { "--bar", "512M", "--device", "3", NULL };
	const struct npu_hw_regs *regs;

	card_rig_start(&rig, more);
	regs = rig.regs;
	ck_assert_uint_eq(rig.bar_bytes, 512u << 20);
	ck_assert_uint_eq(regs->magic, NPU_HW_MAGIC);
	ck_assert_uint_eq(regs->major, NPU_HW_MAJOR);
	ck_assert_uint_eq(regs->device, 3);
	ck_assert_uint_eq(regs->bar_size, rig.bar_bytes);
	ck_assert_uint_eq(regs->cores, 2);
	ck_assert_uint_eq(regs->memory_bytes, 64 * MIB);
	ck_assert_uint_eq(regs->slab_slots, 3);
	ck_assert_uint_ge(regs->slab_stride, NPU_SLAB_SIZE);
	ck_assert_uint_le(regs->slab_offset + 3 * regs->slab_stride, rig.bar_bytes);
	ck_assert_uint_eq(regs->caps & (NPU_CAP_HOST_VISIBLE | NPU_CAP_HOST_MAPPED), 0);
	ck_assert_uint_eq(regs->state, NPU_HW_WAIT_FW);
	ck_assert_uint_ne(regs->boot_id, 0);
	card_rig_stop(&rig);
}
END_TEST

struct bad_firmware {
	const char *kind;
	uint32_t status;
};

START_TEST(test_bad_firmware)
{
	static const struct bad_firmware bad[] = {
		{ "magic", NPU_HW_MB_BAD_MAGIC }, { "crc", NPU_HW_MB_BAD_CRC },
		{ "major", NPU_HW_MB_BAD_VERSION }, { "truncated", NPU_HW_MB_BAD_SIZE },
		{ "huge", NPU_HW_MB_BAD_SIZE },
	};
	struct npu_hw_cmd cmd = { .op = NPU_ADMIN_SPACE_CREATE };

	card_rig_start(&rig, NULL);
	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char line[512], path[128];

		snprintf(path, sizeof(path), "%s/fw.bin", rig.dir);
		snprintf(line, sizeof(line), "%s/mkfw %s 1.0 %s", NPU_BUILD_DIR, path, bad[i].kind);
		ck_assert_int_eq(system(line), 0);
		ck_assert_uint_eq(card_rig_firmware(&rig, path), bad[i].status);
		ck_assert_uint_eq(rig.regs->state, NPU_HW_FAILED);
		unlink(path);
	}
	/* Where there is no RAM, at a wrong size, and a command that is none. */
	ck_assert_uint_eq(card_rig_mailbox(&rig, NPU_HW_MB_LOAD, CARD_RIG_BELOW, 4096),
			  NPU_HW_MB_DMA_FAULT);
	ck_assert_uint_eq(rig.regs->error_cause & NPU_HW_CAUSE_DMA, NPU_HW_CAUSE_DMA);
	ck_assert_uint_eq(rig.regs->error_address, CARD_RIG_BELOW);
	ck_assert(card_rig_interrupted(&rig, NPU_HW_IRQ_ERROR, CARD_RIG_WAIT_MS));
	ck_assert_uint_eq(card_rig_mailbox(&rig, NPU_HW_MB_LOAD, 0, 8), NPU_HW_MB_BAD_SIZE);
	ck_assert_uint_eq(card_rig_mailbox(&rig, NPU_HW_MB_LOAD, 0, UINT64_MAX),
			  NPU_HW_MB_BAD_SIZE);
	ck_assert_uint_eq(card_rig_mailbox(&rig, 77, 0, 0), NPU_HW_MB_BAD_CMD);
	/* Commands are not read without firmware; a good one makes them. */
	cmd.space_create.slab_address = CARD_RIG_SLAB;
	cmd.cid = 1;
	card_rig_post(&rig, &cmd);
	ck_assert_uint_eq(rig.regs->admin_sq_head, 0);
	card_rig_boot(&rig);
	ck_assert_int_eq(card_rig_event(&rig, NPU_HW_CQ_DONE).status, 0);
	ck_assert_uint_eq(card_rig_mailbox(&rig, NPU_HW_MB_LOAD, 0, 4096), NPU_HW_MB_BAD_CMD);
	card_rig_stop(&rig);
}
END_TEST

static bool beats_on(void *arg)
{
	return __atomic_load_n(&rig.regs->heartbeat, __ATOMIC_ACQUIRE) > *(uint64_t *)arg;
}

START_TEST(test_heartbeat)
{
	uint64_t beat;

	card_rig_start(&rig, NULL);
	card_rig_boot(&rig);
	beat = rig.regs->heartbeat + 2;
	ck_assert(wait_until(beats_on, &beat, CARD_RIG_WAIT_MS));
	ck_assert_uint_ne(rig.regs->sandbox_active, 0);
	card_rig_stop(&rig);
}
END_TEST

/* ---- coming and going ---------------------------------------------------------------------- */

START_TEST(test_reset)
{
	struct { uint64_t until; } spin = { DEVICE + 64 };
	uint64_t boot_id;

	start();
	load();
	card_rig_launch(&rig, 0, RING, module, card_rig_function(&rig, 0, module, "spin"), &spin,
			sizeof(spin));
	ck_assert(!card_rig_sync(&rig, 0, RING, 50));
	boot_id = rig.regs->boot_id;
	ck_assert_uint_eq(card_rig_mailbox(&rig, NPU_HW_MB_RESET, 0, 0), NPU_HW_MB_OK);
	ck_assert_uint_eq(rig.regs->state, NPU_HW_WAIT_FW);
	ck_assert_uint_ne(rig.regs->boot_id, boot_id);
	ck_assert_uint_eq(rig.regs->admin_sq_head, 0);
	ck_assert_uint_eq(rig.regs->admin_cq_tail, 0);
	ck_assert_uint_eq(card_rig_header(&rig, 0)->magic, 0); /* erased */
	ck_assert_uint_eq(ctrl()->tail, 0);
	ck_assert_int_eq(process_children(rig.pid), 1); /* the nursery */
	rig.generation = 0;
	rig.ram_next = MIB;
	card_rig_boot(&rig);
	card_rig_space(&rig, 0);
	card_rig_space_end(&rig, 0);
	card_rig_stop(&rig);
}
END_TEST

static bool waits_for_firmware(void *arg)
{
	(void)arg;
	return __atomic_load_n(&rig.regs->state, __ATOMIC_ACQUIRE) == NPU_HW_WAIT_FW;
}

START_TEST(test_unplug_and_plug)
{
	int64_t id;

	start();
	id = rig.id;
	for (unsigned int i = 0; i < 3; i++) {
		card_rig_hang_up(&rig);
		card_rig_connect(&rig);
		ck_assert_int_ne(rig.id, id);
		id = rig.id;
		ck_assert(wait_until(waits_for_firmware, NULL, CARD_RIG_WAIT_MS));
		rig.ram_next = MIB;
		card_rig_boot(&rig);
		card_rig_space(&rig, 0);
	}
	card_rig_stop(&rig);
}
END_TEST

START_TEST(test_firmware_death)
{
	struct npu_hw_cmd cmd = { .op = NPU_ADMIN_INJECT };

	card_rig_start(&rig, NULL);
	card_rig_boot(&rig);
	cmd.inject.kind = NPU_INJECT_FIRMWARE_DEATH;
	card_rig_post(&rig, &cmd);
	ck_assert(card_rig_interrupted(&rig, NPU_HW_IRQ_ERROR, CARD_RIG_WAIT_MS));
	ck_assert_uint_eq(rig.regs->error_cause, NPU_HW_CAUSE_FIRMWARE);
	ck_assert_uint_eq(rig.regs->state, NPU_HW_DEAD);
	ck_assert_uint_eq(card_rig_mailbox(&rig, NPU_HW_MB_RESET, 0, 0), NPU_HW_MB_OK);
	card_rig_boot(&rig);
	card_rig_stop(&rig);
}
END_TEST

START_TEST(test_memory_goes)
{
	struct npu_hw_cmd cmd = { .op = NPU_ADMIN_MEM_DESTROY };

	card_rig_start(&rig, NULL);
	card_rig_boot(&rig);
	/* All of the device's memory, again and again: it is there once MEM_GONE has come. */
	for (unsigned int i = 0; i < 20; i++) {
		cmd.id = card_rig_device_memory(&rig, 0, 64 * MIB);
		ck_assert_int_eq(card_rig_command(&rig, &cmd), 0);
		ck_assert_uint_eq(card_rig_event(&rig, NPU_HW_CQ_MEM_GONE).id, cmd.id);
	}
	card_rig_stop(&rig);
}
END_TEST

/* An idle card beats, and does nothing else. */
START_TEST(test_idle)
{
	uint64_t beat, before;

	start();
	card_rig_copy(&rig, 0, RING, DEVICE, HOST, 64);
	sync_ring();
	beat = rig.regs->heartbeat + 15; /* the board looks at its engine for a second */
	ck_assert(wait_until(beats_on, &beat, CARD_RIG_WAIT_MS));
	ck_assert_uint_eq(card_rig_header(&rig, 0)->device_sleeping, 1);
	before = process_cpu_ns(rig.pid, true);
	beat = rig.regs->heartbeat + 20;
	ck_assert(wait_until(beats_on, &beat, CARD_RIG_WAIT_MS));
	ck_assert_uint_le(process_cpu_ns(rig.pid, true) - before, 40000000u); /* 2 % of 2 s */
	card_rig_stop(&rig);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("card");
	TCase *tcase = tcase_create("card");

	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, test_identity);
	tcase_add_test(tcase, test_bad_firmware);
	tcase_add_test(tcase, test_heartbeat);
	tcase_add_test(tcase, test_reset);
	tcase_add_test(tcase, test_unplug_and_plug);
	tcase_add_test(tcase, test_firmware_death);
	tcase_add_test(tcase, test_memory_goes);
	tcase_add_test(tcase, test_idle);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}
