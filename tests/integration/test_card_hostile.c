/* SPDX-License-Identifier: Apache-2.0 */
/*
 * npu-sim as a PCI card under a driver and clients that write anything anywhere: the board stays
 * up, says what is wrong where it can, and serves the others.
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/card_rig.h"
#include "tests/lib/npud_fixture.h"
#include "tests/lib/runner.h"

#define DEVICE NPU_WINDOW_BASE
#define HOST (NPU_WINDOW_BASE + (1ull << 30))
#define MIB (1ull << 20)

static struct card_rig rig;
static unsigned int seed = 12345;

static void start(void)
{
	card_rig_start(&rig, NULL);
	card_rig_boot(&rig);
}

/* A space with a ring, device and host memory at DEVICE and HOST. */
static void space_make(uint32_t slot, uint64_t page, uint64_t bus)
{
	const struct npu_hw_run run = { bus, MIB };

	card_rig_space(&rig, slot);
	card_rig_context(&rig, slot, 1);
	card_rig_queue(&rig, slot, 0, 1, NPU_FAIL_CONTINUE);
	card_rig_map(&rig, slot, card_rig_device_memory(&rig, page, MIB), DEVICE, MIB);
	card_rig_map(&rig, slot, card_rig_host_memory(&rig, NPU_MEM_HOST, &run, 1), HOST, MIB);
}

/* There and back by DMA through a space. */
static void assert_serves(uint32_t slot, uint64_t bus)
{
	char *ram = card_rig_at(&rig, bus);

	memset(ram, 0, 128);
	strcpy(ram, "through the device and back");
	card_rig_copy(&rig, slot, 0, DEVICE + 100, HOST, 64);
	card_rig_copy(&rig, slot, 0, HOST + 64, DEVICE + 100, 64);
	ck_assert(card_rig_sync(&rig, slot, 0, CARD_RIG_WAIT_MS));
	ck_assert_str_eq(ram + 64, "through the device and back");
}

static void assert_alive(void)
{
	ck_assert_int_eq(waitpid(rig.pid, NULL, WNOHANG), 0);
}

static uint32_t any32(void)
{
	return (uint32_t)rand_r(&seed) << 16 ^ (uint32_t)rand_r(&seed);
}

static uint64_t any64(void)
{
	return (uint64_t)any32() << 32 | any32();
}

/* ---- commands ------------------------------------------------------------------------------ */

static int command(uint16_t op, uint32_t space, uint32_t id)
{
	struct npu_hw_cmd cmd = { .op = op, .space = space, .id = id };

	return card_rig_command(&rig, &cmd);
}

START_TEST(test_wrong_commands)
{
	struct npu_hw_cmd cmd = { 0 };

	start();
	space_make(0, 0, 16 * MIB);
	ck_assert_int_eq(command(0, 0, 0), -EOPNOTSUPP);
	ck_assert_int_eq(command(NPU_ADMIN_SUBMIT, 0, 0), -EOPNOTSUPP);
	ck_assert_int_eq(command(65, 0, 0), -EOPNOTSUPP);
	ck_assert_int_eq(command(65535, 0, 0), -EOPNOTSUPP);
	cmd = (struct npu_hw_cmd){ .op = NPU_ADMIN_MAP, .flags = 0x8000 };
	ck_assert_int_eq(card_rig_command(&rig, &cmd), -EINVAL);
	for (uint16_t op = NPU_ADMIN_SPACE_STOP; op <= NPU_ADMIN_SPACE_DESTROY; op++) {
		ck_assert_int_eq(command(op, 1, 0), -ENOENT);
		ck_assert_int_eq(command(op, 5000, 0), -ENOENT);
		ck_assert_int_eq(command(op, UINT32_MAX, 0), -ENOENT);
	}
	cmd = (struct npu_hw_cmd){ .op = NPU_ADMIN_SPACE_CREATE };
	cmd.space_create.slab_address = CARD_RIG_SLAB;
	ck_assert_int_eq(card_rig_command(&rig, &cmd), -EEXIST);
	cmd.space = UINT32_MAX;
	ck_assert_int_eq(card_rig_command(&rig, &cmd), -ERANGE);
	cmd.space = 1;
	cmd.space_create.slab_address = 4096;
	ck_assert_int_eq(card_rig_command(&rig, &cmd), -ERANGE);
	cmd.space_create.slab_address = NPU_WINDOW_BASE + NPU_WINDOW_SIZE - NPU_PAGE_LARGE;
	ck_assert_int_eq(card_rig_command(&rig, &cmd), -ERANGE);
	ck_assert_int_eq(command(NPU_ADMIN_MEM_DESTROY, 0, 9999), -ENOENT);
	ck_assert_int_eq(command(NPU_ADMIN_QUEUE_DROP, 0, 9999), -ENOENT);
	ck_assert_int_eq(command(NPU_ADMIN_QUEUE_SET, 0, 9999), -ENOENT);
	ck_assert_int_eq(command(NPU_ADMIN_CTX_SET, 0, 0), -ENOENT);
	ck_assert_int_eq(command(NPU_ADMIN_CTX_SET, 0, 1024), -ENOENT);
	ck_assert_int_eq(command(NPU_ADMIN_CTX_SET, 0, UINT32_MAX), -ENOENT);
	ck_assert_int_eq(command(NPU_ADMIN_CTX_DROP, 0, 1), -EBUSY);
	ck_assert_int_eq(command(NPU_ADMIN_CTX_DROP, 0, 2), -ENOENT);
	ck_assert_int_eq(command(NPU_ADMIN_MODULE_DROP, 0, 1), -ENOENT);
	ck_assert_int_eq(command(NPU_ADMIN_MODULE_LOAD, 0, 1), -ENOENT);
	ck_assert_int_eq(command(NPU_HW_OP_FUNC_READ, 0, 1), -ENOENT);
	ck_assert_int_eq(command(NPU_ADMIN_UNMAP, 0, 0), -ENOENT);
	ck_assert_int_eq(command(NPU_ADMIN_INJECT, 0, 0), -EOPNOTSUPP);
	cmd = (struct npu_hw_cmd){ .op = NPU_ADMIN_COUNTERS };
	cmd.counters.address = UINT64_MAX - 100;
	ck_assert_int_eq(card_rig_command(&rig, &cmd), -EFAULT);
	cmd = (struct npu_hw_cmd){ .op = NPU_ADMIN_QUEUE_SET, .id = 9999 };
	cmd.queue.ctx = 1;
	cmd.queue.fresh = 1;
	cmd.queue.slot = NPU_MAX_QUEUES;
	ck_assert_int_eq(card_rig_command(&rig, &cmd), -EINVAL);
	cmd.queue.slot = 0;
	ck_assert_int_eq(card_rig_command(&rig, &cmd), -EEXIST);
	assert_serves(0, 16 * MIB);
	card_rig_stop(&rig);
}
END_TEST

static int mem_create(uint32_t id, uint32_t kind, uint64_t bytes, uint64_t runs, uint32_t nruns)
{
	struct npu_hw_cmd cmd = { .op = NPU_ADMIN_MEM_CREATE, .id = id };

	cmd.mem.kind = kind;
	cmd.mem.bytes = bytes;
	cmd.mem.runs = runs;
	cmd.mem.nruns = nruns;
	return card_rig_command(&rig, &cmd);
}

static int map(uint32_t mem, uint64_t address, uint64_t bytes, uint64_t offset)
{
	struct npu_hw_cmd cmd = { .op = NPU_ADMIN_MAP };

	cmd.map.mem = mem;
	cmd.map.address = address;
	cmd.map.bytes = bytes;
	cmd.map.offset = offset;
	cmd.map.generation = rig.generation;
	return card_rig_command(&rig, &cmd);
}

START_TEST(test_wrong_memory)
{
	uint64_t list;
	struct npu_hw_run *runs;
	uint32_t mem;

	start();
	space_make(0, 0, 16 * MIB);
	list = card_rig_pages(&rig, 4096);
	runs = card_rig_at(&rig, list);
	runs[0] = (struct npu_hw_run){ 100, 1 };
	ck_assert_int_eq(mem_create(0, NPU_MEM_DEVICE, NPU_PAGE_SMALL, list, 1), -EINVAL);
	ck_assert_int_eq(mem_create(50, 0, NPU_PAGE_SMALL, list, 1), -EINVAL);
	ck_assert_int_eq(mem_create(50, 4, NPU_PAGE_SMALL, list, 1), -EINVAL);
	ck_assert_int_eq(mem_create(50, NPU_MEM_DEVICE, 0, list, 1), -EINVAL);
	ck_assert_int_eq(mem_create(50, NPU_MEM_DEVICE, 4096, list, 1), -EINVAL);
	ck_assert_int_eq(mem_create(50, NPU_MEM_DEVICE, NPU_PAGE_SMALL, list, 0), -EINVAL);
	ck_assert_int_eq(mem_create(50, NPU_MEM_DEVICE, 2 * NPU_PAGE_SMALL, list, 1), -EINVAL);
	ck_assert_int_eq(mem_create(50, NPU_MEM_DEVICE, NPU_PAGE_SMALL, list, UINT32_MAX), -ENOMEM);
	ck_assert_int_eq(mem_create(50, NPU_MEM_DEVICE, NPU_PAGE_SMALL, CARD_RIG_BELOW, 1),
			 -EFAULT);
	ck_assert_int_eq(mem_create(50, NPU_MEM_DEVICE, NPU_PAGE_SMALL, UINT64_MAX - 7, 1),
			 -EFAULT);
	runs[0] = (struct npu_hw_run){ UINT64_MAX, 1 };
	ck_assert_int_eq(mem_create(50, NPU_MEM_DEVICE, NPU_PAGE_SMALL, list, 1), -EINVAL);
	runs[0] = (struct npu_hw_run){ 1, UINT64_MAX };
	ck_assert_int_eq(mem_create(50, NPU_MEM_DEVICE, NPU_PAGE_SMALL, list, 1), -EINVAL);
	runs[0] = (struct npu_hw_run){ 0, 1024 };
	ck_assert_int_eq(mem_create(50, NPU_MEM_DEVICE, 64 * MIB, list, 1), -ENOSPC);
	runs[0] = (struct npu_hw_run){ 17, 4096 };
	ck_assert_int_eq(mem_create(50, NPU_MEM_HOST, 4096, list, 1), -EINVAL);
	runs[0] = (struct npu_hw_run){ UINT64_MAX & ~4095ull, 8192 };
	ck_assert_int_eq(mem_create(50, NPU_MEM_HOST, 8192, list, 1), -EINVAL);
	runs[0] = (struct npu_hw_run){ 100, 1 };
	mem = 50;
	ck_assert_int_eq(mem_create(mem, NPU_MEM_DEVICE, NPU_PAGE_SMALL, list, 1), 0);
	ck_assert_int_eq(mem_create(mem, NPU_MEM_DEVICE, NPU_PAGE_SMALL, list, 1), -EEXIST);
	ck_assert_int_eq(map(999, DEVICE, NPU_PAGE_SMALL, 0), -ENOENT);
	ck_assert_int_eq(map(mem, DEVICE + 4096, NPU_PAGE_SMALL, 0), -EINVAL);
	ck_assert_int_eq(map(mem, DEVICE, NPU_PAGE_SMALL, 0), -EEXIST);
	ck_assert_int_eq(map(mem, 0, NPU_PAGE_SMALL, 0), -ERANGE);
	ck_assert_int_eq(map(mem, DEVICE + 2 * MIB, 2 * NPU_PAGE_SMALL, 0), -ERANGE);
	ck_assert_int_eq(map(mem, DEVICE + 2 * MIB, NPU_PAGE_SMALL, NPU_PAGE_SMALL), -ERANGE);
	ck_assert_int_eq(map(mem, CARD_RIG_SLAB + MIB, NPU_PAGE_SMALL, 0), -ERANGE);
	ck_assert_int_eq(map(mem, UINT64_MAX & ~65535ull, NPU_PAGE_SMALL, 0), -ERANGE);
	ck_assert_int_eq(map(mem, DEVICE + 2 * MIB, NPU_PAGE_SMALL, 0), 0);
	/* Named no more, still mapped: goes with the map. */
	ck_assert_int_eq(command(NPU_ADMIN_MEM_DESTROY, 0, mem), 0);
	ck_assert_int_eq(command(NPU_ADMIN_MEM_DESTROY, 0, mem), -ENOENT);
	assert_serves(0, 16 * MIB);
	card_rig_space_end(&rig, 0);
	ck_assert_uint_eq(card_rig_event(&rig, NPU_HW_CQ_MEM_GONE).id, mem);
	card_rig_stop(&rig);
}
END_TEST

/* Something that gets past the first checks now and then. */
static void random_command(struct npu_hw_cmd *cmd)
{
	for (unsigned int i = 0; i < 13; i++)
		cmd->raw[i] = rand_r(&seed) % 3 ? (uint64_t)rand_r(&seed) % 200 : any64();
	cmd->op = (uint16_t)(rand_r(&seed) % 20);
	if (rand_r(&seed) % 20 == 0)
		cmd->op = NPU_HW_OP_FUNC_READ;
	cmd->flags = rand_r(&seed) % 10 ? 0 : (uint16_t)rand_r(&seed);
	cmd->cid = 1;
	cmd->space = rand_r(&seed) % 4 ? 1 + (uint32_t)rand_r(&seed) % 3 : any32();
	cmd->id = (uint32_t)rand_r(&seed) % 30;
	if (cmd->op == NPU_ADMIN_SPACE_CREATE && rand_r(&seed) % 4)
		cmd->space_create.slab_address = CARD_RIG_SLAB;
	if (cmd->op == NPU_ADMIN_MEM_CREATE && rand_r(&seed) % 2) {
		cmd->mem.kind = 1 + (uint32_t)rand_r(&seed) % 3;
		cmd->mem.bytes = NPU_PAGE_SMALL * (1 + (uint64_t)rand_r(&seed) % 4);
		cmd->mem.runs = MIB + (uint64_t)rand_r(&seed) % 4096 * 8;
		cmd->mem.nruns = 1 + (uint32_t)rand_r(&seed) % 4;
	}
	if (cmd->op == NPU_ADMIN_MAP && rand_r(&seed) % 2) {
		cmd->map.address = DEVICE + NPU_PAGE_SMALL * ((uint64_t)rand_r(&seed) % 64);
		cmd->map.bytes = NPU_PAGE_SMALL * (1 + (uint64_t)rand_r(&seed) % 2);
		cmd->map.offset = 0;
		cmd->map.flags = (uint32_t)rand_r(&seed) % 2;
		cmd->map.mem = (uint32_t)rand_r(&seed) % 30;
	}
	/* Not those that end what the test itself stands on. */
	if (cmd->op == NPU_ADMIN_RESET ||
	    (cmd->op == NPU_ADMIN_INJECT && cmd->inject.kind != NPU_INJECT_ECC_CORRECTABLE))
		cmd->op = 0;
}

START_TEST(test_random_commands)
{
	struct npu_hw_cmd cmd = { 0 };
	uint64_t *ram;

	start();
	space_make(0, 900, 16 * MIB);
	ram = card_rig_at(&rig, MIB);
	for (unsigned int i = 0; i < 20000; i++) {
		for (unsigned int j = 0; j < 16; j++)
			ram[rand_r(&seed) % 4096] = (uint64_t)rand_r(&seed) % 4 ?
				(uint64_t)rand_r(&seed) % 8 * 4096 : (uint64_t)rand_r(&seed) % 5;
		random_command(&cmd);
		if (i % 64) {
			cmd.cid = 0;
			card_rig_post(&rig, &cmd);
		} else {
			card_rig_command(&rig, &cmd);
		}
		rig.nevents = 0; /* of no interest */
	}
	assert_alive();
	assert_serves(0, 16 * MIB);
	ck_assert_uint_eq(card_rig_mailbox(&rig, NPU_HW_MB_RESET, 0, 0), NPU_HW_MB_OK);
	card_rig_stop(&rig);
}
END_TEST

/* ---- queues -------------------------------------------------------------------------------- */

START_TEST(test_full_completion_queue)
{
	struct npu_hw_cmd cmd = { .op = NPU_ADMIN_MEM_DESTROY, .id = 4711, .cid = 1 };
	uint32_t first;

	start();
	first = rig.cid;
	for (unsigned int i = 0; i < 900; i++) {
		cmd.cid = 1;
		card_rig_post(&rig, &cmd);
	}
	/* None is lost, and they come in order. */
	for (unsigned int i = 0; i < 900; i++) {
		struct npu_hw_completion done = card_rig_event(&rig, NPU_HW_CQ_DONE);

		ck_assert_uint_eq(done.cid, ++first);
		ck_assert_int_eq(done.status, -ENOENT);
	}
	card_rig_stop(&rig);
}
END_TEST

START_TEST(test_wrong_indices)
{
	start();
	space_make(0, 0, 16 * MIB);
	/* More commands than there can be: none is taken; the right number again: goes on. */
	__atomic_store_n(&rig.regs->admin_sq_tail, rig.sq_tail + 100000, __ATOMIC_SEQ_CST);
	card_rig_ring(&rig, NPU_HW_RING_ADMIN);
	__atomic_store_n(&rig.regs->admin_sq_tail, rig.sq_tail - 1, __ATOMIC_SEQ_CST);
	card_rig_ring(&rig, NPU_HW_RING_ADMIN);
	__atomic_store_n(&rig.regs->admin_sq_tail, rig.sq_tail, __ATOMIC_SEQ_CST);
	ck_assert_int_eq(command(NPU_ADMIN_MEM_DESTROY, 0, 4711), -ENOENT);
	assert_serves(0, 16 * MIB);
	/* Whatever is written over the whole register page, a reset makes it good. */
	for (size_t i = 0; i < sizeof(*rig.regs) / 4; i++)
		((uint32_t *)(void *)rig.regs)[i] = any32();
	for (unsigned int vector = 0; vector < NPU_HW_VECTORS; vector++)
		card_rig_ring(&rig, vector);
	ck_assert_uint_eq(card_rig_mailbox(&rig, NPU_HW_MB_RESET, 0, 0), NPU_HW_MB_OK);
	ck_assert_uint_eq(rig.regs->magic, NPU_HW_MAGIC);
	ck_assert_uint_eq(rig.regs->state, NPU_HW_WAIT_FW);
	rig.ram_next = MIB;
	rig.generation = 0;
	card_rig_boot(&rig);
	space_make(0, 0, 16 * MIB);
	assert_serves(0, 16 * MIB);
	card_rig_stop(&rig);
}
END_TEST

START_TEST(test_bell_storm)
{
	start();
	space_make(0, 0, 16 * MIB);
	for (unsigned int i = 0; i < 20000; i++) {
		memset(rig.regs->queue_bell, 0xff, sizeof(rig.regs->queue_bell));
		card_rig_ring(&rig, (unsigned int)rand_r(&seed) % NPU_HW_VECTORS);
	}
	assert_serves(0, 16 * MIB);
	card_rig_stop(&rig);
}
END_TEST

/* ---- slabs --------------------------------------------------------------------------------- */

START_TEST(test_broken_tail)
{
	struct npu_ring_ctrl *ctrl;

	start();
	space_make(0, 0, 16 * MIB);
	ctrl = card_rig_ctrl(&rig, 0, 0);
	for (unsigned int i = 0; i < 3; i++) {
		__atomic_store_n(&ctrl->tail, i ? ctrl->tail - 1 : 1000000, __ATOMIC_SEQ_CST);
		__atomic_store_n(&ctrl->armed, 0, __ATOMIC_SEQ_CST);
		card_rig_kick(&rig, 0, 0);
		ck_assert(card_rig_sync(&rig, 0, 0, CARD_RIG_WAIT_MS));
		ck_assert_uint_eq(card_rig_event(&rig, NPU_HW_CQ_FAULT).fault.kind,
				  NPU_FAULT_ENTRY);
		assert_serves(0, 16 * MIB);
	}
	card_rig_stop(&rig);
}
END_TEST

/* One client writes over its whole slab all the time; the other one never notices. */
START_TEST(test_scribbled_slab)
{
	uint32_t *words;

	start();
	space_make(0, 0, 16 * MIB);
	space_make(1, 100, 20 * MIB);
	for (uint32_t ring = 1; ring < 16; ring++)
		card_rig_queue(&rig, 0, ring, 1, ring % 2);
	for (unsigned int round = 0; round < 300; round++) {
		words = (uint32_t *)(void *)card_rig_slab(&rig, 0);
		for (unsigned int i = 0; i < 600; i++)
			words[(unsigned int)rand_r(&seed) % (NPU_SLAB_RINGS / 4)] = any32();
		words = (uint32_t *)(void *)card_rig_ctrl(&rig, 0, 0);
		for (unsigned int i = 0; i < 200; i++)
			words[(unsigned int)rand_r(&seed) % (16 * 128)] = rand_r(&seed) % 2 ?
				any32() : (uint32_t)rand_r(&seed) % 2000;
		for (unsigned int i = 0; i < 200; i++) {
			struct npu_entry *entry =
				card_rig_entry(&rig, 0, (uint32_t)rand_r(&seed) % 16, any32());

			for (unsigned int j = 0; j < 8; j++)
				((uint64_t *)(void *)entry)[j] = rand_r(&seed) % 2 ? any64() :
					(rand_r(&seed) % 2 ? DEVICE : HOST) +
						(uint64_t)rand_r(&seed) % (2 * MIB);
			entry->op = (uint8_t)(rand_r(&seed) % 20);
			entry->map_gen = 0;
			entry->epoch = 0;
			if (entry->op == NPU_OP_COPY || entry->op == NPU_OP_FILL)
				entry->copy.bytes = (uint64_t)rand_r(&seed) % 100000;
		}
		rig.regs->queue_bell[0] = 1;
		card_rig_ring(&rig, NPU_HW_RING_QUEUES);
		if (round % 10 == 0) {
			rig.nevents = 0;
			assert_serves(1, 20 * MIB);
			assert_alive();
		}
		rig.cq_head = __atomic_load_n(&rig.regs->admin_cq_tail, __ATOMIC_ACQUIRE);
		__atomic_store_n(&rig.regs->admin_cq_head, rig.cq_head, __ATOMIC_RELEASE);
	}
	assert_serves(1, 20 * MIB);
	rig.nevents = 0;
	card_rig_space_end(&rig, 0);
	assert_serves(1, 20 * MIB);
	card_rig_stop(&rig);
}
END_TEST

/* A copy that would take for ever ends with its space, and lets others through meanwhile. */
START_TEST(test_endless_copy)
{
	struct npu_entry entry = { .op = NPU_OP_COPY2D };

	start();
	space_make(0, 0, 16 * MIB);
	space_make(1, 100, 20 * MIB);
	entry.copy2d.dst = DEVICE;
	entry.copy2d.src = HOST;
	entry.copy2d.width = MIB;
	entry.copy2d.height = UINT64_MAX;
	card_rig_submit(&rig, 0, 0, &entry);
	for (unsigned int i = 0; i < 100; i++)
		assert_serves(1, 20 * MIB);
	ck_assert_uint_eq(card_rig_ctrl(&rig, 0, 0)->done, 0);
	card_rig_space_end(&rig, 0);
	assert_serves(1, 20 * MIB);
	card_rig_stop(&rig);
}
END_TEST

/* ---- the machine --------------------------------------------------------------------------- */

START_TEST(test_no_ram)
{
	card_rig_start(&rig, NULL);
	ck_assert_int_eq(unlink(rig.ram_file), 0);
	ck_assert_uint_eq(card_rig_mailbox(&rig, NPU_HW_MB_LOAD, 0, 4096), NPU_HW_MB_DMA_FAULT);
	assert_alive();
	/* QEMU makes the file when it starts. */
	close(open(rig.ram_file, O_CREAT | O_RDWR | O_CLOEXEC, 0600));
	ck_assert_uint_eq(card_rig_mailbox(&rig, NPU_HW_MB_LOAD, 0, 4096), NPU_HW_MB_DMA_FAULT);
	ck_assert_int_eq(truncate(rig.ram_file, CARD_RIG_RAM), 0);
	ck_assert_uint_eq(card_rig_mailbox(&rig, NPU_HW_MB_LOAD, 0, 4096), NPU_HW_MB_BAD_MAGIC);
	card_rig_stop(&rig);
}
END_TEST

/* A second machine waits until the first has let go, and never sees a handshake before. */
START_TEST(test_second_machine)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct pollfd pfd = { .events = POLLIN };
	char word[8];

	start();
	strcpy(address.sun_path, rig.socket);
	pfd.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(connect(pfd.fd, (struct sockaddr *)&address, sizeof(address)), 0);
	space_make(0, 0, 16 * MIB);
	assert_serves(0, 16 * MIB);
	ck_assert_int_eq(poll(&pfd, 1, 0), 0);
	card_rig_hang_up(&rig);
	ck_assert_int_eq(poll(&pfd, 1, CARD_RIG_WAIT_MS), 1);
	ck_assert_int_eq(recv(pfd.fd, word, sizeof(word), 0), 8);
	close(pfd.fd);
	card_rig_connect(&rig);
	card_rig_stop(&rig);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("card_hostile");
	TCase *tcase = tcase_create("card_hostile");

	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, test_wrong_commands);
	tcase_add_test(tcase, test_wrong_memory);
	tcase_add_test(tcase, test_random_commands);
	tcase_add_test(tcase, test_full_completion_queue);
	tcase_add_test(tcase, test_wrong_indices);
	tcase_add_test(tcase, test_bell_storm);
	tcase_add_test(tcase, test_broken_tail);
	tcase_add_test(tcase, test_scribbled_slab);
	tcase_add_test(tcase, test_endless_copy);
	tcase_add_test(tcase, test_no_ram);
	tcase_add_test(tcase, test_second_machine);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}
