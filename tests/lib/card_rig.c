/* SPDX-License-Identifier: Apache-2.0 */
/* A machine and a driver for npu-sim --card: see card_rig.h. */
#include "tests/lib/card_rig.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/npud_fixture.h"

#define ARGS 32

/* ---- the process --------------------------------------------------------------------------- */

static void rig_exec(struct card_rig *rig, const char *const more[])
{
	const char *argv[ARGS] = {
		"npu-sim", "--card", rig->socket, "--ram", rig->ram_file, "--ram-below-4g", "32M",
		"--memory", "64M", "--cores", "2", "--log-level", "info",
	};
	int argc = 13, log = open(rig->log, O_WRONLY | O_CREAT | O_APPEND, 0600);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (more && *more && argc < ARGS - 1)
		argv[argc++] = *more++;
	dup2(log, STDERR_FILENO);
	execv(NPU_BUILD_DIR "/npu-sim", (char *const *)argv);
	perror(NPU_BUILD_DIR "/npu-sim");
	_exit(127);
}

static bool rig_connects(void *arg)
{
	struct card_rig *rig = arg;
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	ck_assert_msg(waitpid(rig->pid, NULL, WNOHANG) == 0, "npu-sim ended; see %s", rig->log);
	strcpy(address.sun_path, rig->socket);
	rig->peer = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (connect(rig->peer, (struct sockaddr *)&address, sizeof(address)) == 0)
		return true;
	close(rig->peer);
	rig->peer = -1;
	return false;
}

/* One message of the handshake, with or without an fd, as QEMU reads it. */
static int64_t rig_message(struct card_rig *rig, int *ret_fd)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int))];
	} control;
	int64_t value;
	struct iovec iov = { .iov_base = &value, .iov_len = sizeof(value) };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = &control, .msg_controllen = sizeof(control),
	};
	struct pollfd pfd = { .fd = rig->peer, .events = POLLIN };
	struct cmsghdr *cmsg;

	ck_assert_int_eq(poll(&pfd, 1, CARD_RIG_WAIT_MS), 1);
	ck_assert_int_eq(recvmsg(rig->peer, &msg, MSG_CMSG_CLOEXEC), (ssize_t)sizeof(value));
	cmsg = CMSG_FIRSTHDR(&msg);
	*ret_fd = -1;
	if (cmsg)
		memcpy(ret_fd, CMSG_DATA(cmsg), sizeof(int));
	return value;
}

void card_rig_connect(struct card_rig *rig)
{
	struct stat st;
	int fd;

	ck_assert(wait_until(rig_connects, rig, CARD_RIG_WAIT_MS));
	ck_assert_int_eq(rig_message(rig, &fd), 0);
	ck_assert_int_eq(fd, -1);
	rig->id = rig_message(rig, &fd);
	ck_assert_int_eq(fd, -1);
	ck_assert_int_eq(rig_message(rig, &rig->shm), -1);
	ck_assert_int_ge(rig->shm, 0);
	for (unsigned int i = 0; i < NPU_HW_VECTORS; i++) {
		int64_t peer = rig_message(rig, &rig->bells[i]);

		ck_assert_int_ne(peer, rig->id);
		ck_assert_int_ge(rig->bells[i], 0);
	}
	for (unsigned int i = 0; i < NPU_HW_VECTORS; i++) {
		ck_assert_int_eq(rig_message(rig, &rig->irqs[i]), rig->id);
		ck_assert_int_ge(rig->irqs[i], 0);
		fcntl(rig->irqs[i], F_SETFL, O_NONBLOCK); /* as QEMU does */
		fcntl(rig->bells[i], F_SETFL, O_NONBLOCK);
	}
	ck_assert_int_eq(fstat(rig->shm, &st), 0);
	rig->bar_bytes = (uint64_t)st.st_size;
	ck_assert_uint_eq(rig->bar_bytes & (rig->bar_bytes - 1), 0);
	rig->bar = mmap(NULL, rig->bar_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, rig->shm, 0);
	ck_assert_ptr_ne(rig->bar, MAP_FAILED);
	rig->regs = (struct npu_hw_regs *)(void *)rig->bar;
	rig->sq_tail = rig->cq_head = 0;
	rig->nevents = 0;
	rig->generation = 0;
}

void card_rig_hang_up(struct card_rig *rig)
{
	close(rig->peer);
	close(rig->shm);
	for (unsigned int i = 0; i < NPU_HW_VECTORS; i++) {
		close(rig->bells[i]);
		close(rig->irqs[i]);
	}
	munmap(rig->bar, rig->bar_bytes);
	rig->peer = -1;
}

void card_rig_start(struct card_rig *rig, const char *const more[])
{
	int fd;

	memset(rig, 0, sizeof(*rig));
	strcpy(rig->dir, "/tmp/npu-test-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(rig->dir));
	snprintf(rig->socket, sizeof(rig->socket), "%s/card.sock", rig->dir);
	snprintf(rig->log, sizeof(rig->log), "%s/sim.log", rig->dir);
	snprintf(rig->ram_file, sizeof(rig->ram_file), "%s/ram", rig->dir);
	fd = open(rig->ram_file, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	ck_assert_int_eq(ftruncate(fd, CARD_RIG_RAM), 0);
	rig->ram = mmap(NULL, CARD_RIG_RAM, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ck_assert_ptr_ne(rig->ram, MAP_FAILED);
	close(fd);
	rig->ram_next = 1u << 20;
	rig->id_next = 100;
	fflush(NULL);
	rig->pid = fork();
	if (!rig->pid)
		rig_exec(rig, more);
	ck_assert_int_gt(rig->pid, 0);
	card_rig_connect(rig);
}

void card_rig_stop(struct card_rig *rig)
{
	char *log;
	int status;

	if (rig->peer >= 0)
		card_rig_hang_up(rig);
	munmap(rig->ram, CARD_RIG_RAM);
	kill(rig->pid, SIGTERM);
	status = wait_for(rig->pid, CARD_RIG_WAIT_MS);
	log = read_file(rig->log);
	if (status && log)
		fputs(log, stderr);
	free(log);
	unlink(rig->log);
	unlink(rig->ram_file);
	ck_assert_msg(rmdir(rig->dir) == 0, "%s: %s", rig->dir, strerror(errno));
	ck_assert_int_eq(status, 0);
}

/* ---- the machine --------------------------------------------------------------------------- */

void *card_rig_at(struct card_rig *rig, uint64_t address)
{
	if (address >= CARD_RIG_HIGH)
		address = address - CARD_RIG_HIGH + CARD_RIG_BELOW;
	ck_assert_uint_lt(address, CARD_RIG_RAM);
	return rig->ram + address;
}

uint64_t card_rig_pages(struct card_rig *rig, uint64_t bytes)
{
	uint64_t at = rig->ram_next;

	rig->ram_next += (bytes + 4095) & ~4095ull;
	ck_assert_uint_le(rig->ram_next, CARD_RIG_BELOW);
	return at;
}

void card_rig_ring(struct card_rig *rig, unsigned int vector)
{
	ck_assert_int_eq(eventfd_write(rig->bells[vector], 1), 0);
}

bool card_rig_interrupted(struct card_rig *rig, unsigned int vector, unsigned int ms)
{
	struct pollfd pfd = { .fd = rig->irqs[vector], .events = POLLIN };
	eventfd_t value;

	if (poll(&pfd, 1, (int)ms) != 1)
		return false;
	eventfd_read(rig->irqs[vector], &value);
	return true;
}

/* ---- mailbox ------------------------------------------------------------------------------- */

static bool mailbox_done(void *arg)
{
	struct card_rig *rig = arg;
	uint32_t status = __atomic_load_n(&rig->regs->mailbox.status, __ATOMIC_ACQUIRE);

	return status != NPU_HW_MB_IDLE && status != NPU_HW_MB_BUSY;
}

uint32_t card_rig_mailbox(struct card_rig *rig, uint32_t command, uint64_t address, uint64_t bytes)
{
	__atomic_store_n(&rig->regs->mailbox.status, NPU_HW_MB_IDLE, __ATOMIC_RELAXED);
	rig->regs->mailbox.address = address;
	rig->regs->mailbox.bytes = bytes;
	__atomic_store_n(&rig->regs->mailbox.command, command, __ATOMIC_RELEASE);
	card_rig_ring(rig, NPU_HW_RING_ADMIN);
	ck_assert(wait_until(mailbox_done, rig, CARD_RIG_WAIT_MS));
	if (command == NPU_HW_MB_RESET)
		rig->sq_tail = rig->cq_head = rig->nevents = 0;
	return __atomic_load_n(&rig->regs->mailbox.status, __ATOMIC_ACQUIRE);
}

/* Copies a file into RAM. */
static uint64_t rig_file(struct card_rig *rig, const char *path, uint64_t *ret_bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint64_t at;
	struct stat st;

	ck_assert_msg(fd >= 0 && fstat(fd, &st) == 0, "%s: %s", path, strerror(errno));
	at = card_rig_pages(rig, (uint64_t)st.st_size);
	ck_assert_int_eq(read(fd, card_rig_at(rig, at), (size_t)st.st_size), st.st_size);
	close(fd);
	*ret_bytes = (uint64_t)st.st_size;
	return at;
}

uint32_t card_rig_firmware(struct card_rig *rig, const char *path)
{
	uint64_t bytes, at = rig_file(rig, path, &bytes);

	return card_rig_mailbox(rig, NPU_HW_MB_LOAD, at, bytes);
}

void card_rig_boot(struct card_rig *rig)
{
	ck_assert_uint_eq(card_rig_firmware(rig, NPU_BUILD_DIR "/sim/npu-fw.bin"), NPU_HW_MB_OK);
	ck_assert_uint_eq(rig->regs->state, NPU_HW_READY);
}

/* ---- admin queue --------------------------------------------------------------------------- */

static bool sq_room(void *arg)
{
	struct card_rig *rig = arg;

	return rig->sq_tail - __atomic_load_n(&rig->regs->admin_sq_head, __ATOMIC_ACQUIRE) <
	       rig->regs->admin_sq_entries;
}

void card_rig_post(struct card_rig *rig, struct npu_hw_cmd *cmd)
{
	struct npu_hw_cmd *sq = (struct npu_hw_cmd *)(void *)(rig->bar + rig->regs->admin_sq);

	ck_assert(wait_until(sq_room, rig, CARD_RIG_WAIT_MS));
	if (cmd->cid)
		cmd->cid = ++rig->cid;
	sq[rig->sq_tail & (rig->regs->admin_sq_entries - 1)] = *cmd;
	__atomic_store_n(&rig->regs->admin_sq_tail, ++rig->sq_tail, __ATOMIC_SEQ_CST);
	card_rig_ring(rig, NPU_HW_RING_ADMIN);
}

static bool cq_take(struct card_rig *rig, struct npu_hw_completion *ret)
{
	struct npu_hw_completion *cq =
		(struct npu_hw_completion *)(void *)(rig->bar + rig->regs->admin_cq);

	if (__atomic_load_n(&rig->regs->admin_cq_tail, __ATOMIC_ACQUIRE) == rig->cq_head)
		return false;
	*ret = cq[rig->cq_head & (rig->regs->admin_cq_entries - 1)];
	__atomic_store_n(&rig->regs->admin_cq_head, ++rig->cq_head, __ATOMIC_RELEASE);
	return true;
}

struct cq_wait {
	struct card_rig *rig;
	uint16_t type;
	uint32_t cid;
	struct npu_hw_completion found;
};

static bool cq_match(const struct cq_wait *wait, const struct npu_hw_completion *completion)
{
	return completion->type == wait->type &&
	       (!wait->cid || completion->cid == wait->cid);
}

static bool cq_search(void *arg)
{
	struct cq_wait *wait = arg;
	struct card_rig *rig = wait->rig;

	for (unsigned int i = 0; i < rig->nevents; i++) {
		if (!cq_match(wait, &rig->events[i]))
			continue;
		wait->found = rig->events[i];
		memmove(&rig->events[i], &rig->events[i + 1],
			(--rig->nevents - i) * sizeof(rig->events[0]));
		return true;
	}
	while (cq_take(rig, &wait->found)) {
		if (cq_match(wait, &wait->found))
			return true;
		ck_assert_uint_lt(rig->nevents, CARD_RIG_EVENTS);
		rig->events[rig->nevents++] = wait->found;
	}
	/* Room for completions that wait: the card looks when it is rung. */
	card_rig_ring(rig, NPU_HW_RING_ADMIN);
	return false;
}

int card_rig_command(struct card_rig *rig, struct npu_hw_cmd *cmd)
{
	struct cq_wait wait = { .rig = rig, .type = NPU_HW_CQ_DONE };

	cmd->cid = 1;
	card_rig_post(rig, cmd);
	wait.cid = cmd->cid;
	ck_assert_msg(wait_until(cq_search, &wait, CARD_RIG_WAIT_MS), "no end of command %u",
		      cmd->op);
	return wait.found.status;
}

struct npu_hw_completion card_rig_event(struct card_rig *rig, uint16_t type)
{
	struct cq_wait wait = { .rig = rig, .type = type };

	ck_assert_msg(wait_until(cq_search, &wait, CARD_RIG_WAIT_MS), "no completion %u", type);
	return wait.found;
}

/* ---- objects ------------------------------------------------------------------------------- */

void card_rig_space(struct card_rig *rig, uint32_t slot)
{
	struct npu_hw_cmd cmd = { .op = NPU_ADMIN_SPACE_CREATE, .space = slot, .session = 7 };

	cmd.space_create.slab_address = CARD_RIG_SLAB;
	ck_assert_int_eq(card_rig_command(rig, &cmd), 0);
}

void card_rig_space_end(struct card_rig *rig, uint32_t slot)
{
	struct npu_hw_cmd cmd = { .op = NPU_ADMIN_SPACE_DESTROY, .space = slot };

	ck_assert_int_eq(card_rig_command(rig, &cmd), 0);
	ck_assert_uint_eq(card_rig_event(rig, NPU_HW_CQ_SPACE_GONE).space, slot);
}

void card_rig_context(struct card_rig *rig, uint32_t space, uint32_t ctx)
{
	struct npu_hw_cmd cmd = { .op = NPU_ADMIN_CTX_SET, .space = space, .id = ctx };

	cmd.ctx.created = 1;
	ck_assert_int_eq(card_rig_command(rig, &cmd), 0);
}

uint32_t card_rig_queue(struct card_rig *rig, uint32_t space, uint32_t ring, uint32_t ctx,
			uint32_t fail_mode)
{
	struct npu_hw_cmd cmd = { .op = NPU_ADMIN_QUEUE_SET, .space = space, .id = ++rig->id_next };

	cmd.queue.slot = ring;
	cmd.queue.ctx = ctx;
	cmd.queue.fail_mode = fail_mode;
	cmd.queue.window = 8;
	cmd.queue.fresh = 1;
	ck_assert_int_eq(card_rig_command(rig, &cmd), 0);
	return cmd.id;
}

static uint32_t rig_memory(struct card_rig *rig, uint32_t kind, const struct npu_hw_run *runs,
			   uint32_t nruns, uint64_t bytes)
{
	struct npu_hw_cmd cmd = { .op = NPU_ADMIN_MEM_CREATE, .id = ++rig->id_next };
	uint64_t list = card_rig_pages(rig, nruns * sizeof(*runs));

	memcpy(card_rig_at(rig, list), runs, nruns * sizeof(*runs));
	cmd.mem.kind = kind;
	cmd.mem.bytes = bytes;
	cmd.mem.runs = list;
	cmd.mem.nruns = nruns;
	ck_assert_int_eq(card_rig_command(rig, &cmd), 0);
	return cmd.id;
}

uint32_t card_rig_device_memory(struct card_rig *rig, uint64_t first_page, uint64_t bytes)
{
	struct npu_hw_run run = { .start = first_page, .count = bytes / NPU_PAGE_SMALL };

	return rig_memory(rig, NPU_MEM_DEVICE, &run, 1, bytes);
}

uint32_t card_rig_host_memory(struct card_rig *rig, uint32_t kind, const struct npu_hw_run *runs,
			      uint32_t nruns)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < nruns; i++)
		sum += runs[i].count;
	return rig_memory(rig, kind, runs, nruns, sum);
}

void card_rig_map(struct card_rig *rig, uint32_t space, uint32_t mem, uint64_t address,
		  uint64_t bytes)
{
	struct npu_hw_cmd cmd = { .op = NPU_ADMIN_MAP, .space = space };

	cmd.map.mem = mem;
	cmd.map.address = address;
	cmd.map.bytes = bytes;
	cmd.map.generation = ++rig->generation;
	ck_assert_int_eq(card_rig_command(rig, &cmd), 0);
}

int card_rig_module(struct card_rig *rig, uint32_t space, const char *path, uint32_t *ret_module)
{
	struct npu_hw_cmd cmd = {
		.op = NPU_ADMIN_MODULE_LOAD, .space = space, .id = ++rig->id_next,
	};
	uint64_t bytes, at = rig_file(rig, path, &bytes), whole = (bytes + 4095) & ~4095ull;
	/* In two pieces, the second one first in RAM. */
	uint64_t copy = card_rig_pages(rig, 4096);
	struct npu_hw_run runs[] = { { copy, 4096 }, { at + 4096, whole - 4096 } };
	struct npu_hw_completion end;

	memcpy(card_rig_at(rig, copy), card_rig_at(rig, at), 4096);
	memset(card_rig_at(rig, at), 0xee, 4096);
	cmd.module.mem = card_rig_host_memory(rig, NPU_MEM_IMAGE, runs, 2);
	cmd.module.bytes = bytes;
	ck_assert_int_eq(card_rig_command(rig, &cmd), 0);
	end = card_rig_event(rig, NPU_HW_CQ_MODULE);
	ck_assert_uint_eq(end.id, cmd.id);
	*ret_module = cmd.id;
	return end.status;
}

uint32_t card_rig_function(struct card_rig *rig, uint32_t space, uint32_t module, const char *name)
{
	struct npu_hw_cmd cmd = { .op = NPU_HW_OP_FUNC_READ, .space = space, .id = module };
	uint64_t at = card_rig_pages(rig, sizeof(struct npu_hw_func));
	const struct npu_hw_func *func = card_rig_at(rig, at);

	cmd.func_read.count = 1;
	cmd.func_read.address = at;
	for (;; cmd.func_read.first++) {
		ck_assert_msg(card_rig_command(rig, &cmd) == 0, "no kernel %s", name);
		if (strcmp(func->name, name) == 0)
			return cmd.func_read.first;
	}
}

/* ---- the client ---------------------------------------------------------------------------- */

char *card_rig_slab(struct card_rig *rig, uint32_t space)
{
	return rig->bar + rig->regs->slab_offset + space * rig->regs->slab_stride;
}

struct npu_slab_header *card_rig_header(struct card_rig *rig, uint32_t space)
{
	return (struct npu_slab_header *)(void *)card_rig_slab(rig, space);
}

struct npu_ring_ctrl *card_rig_ctrl(struct card_rig *rig, uint32_t space, uint32_t ring)
{
	char *rings = card_rig_slab(rig, space) + NPU_SLAB_RINGS;

	return (struct npu_ring_ctrl *)(void *)rings + ring;
}

static char *rig_data(struct card_rig *rig, uint32_t space, uint32_t ring)
{
	return card_rig_slab(rig, space) + NPU_SLAB_DATA + (size_t)ring * NPU_RING_BYTES;
}

struct npu_entry *card_rig_entry(struct card_rig *rig, uint32_t space, uint32_t ring,
				 uint64_t index)
{
	struct npu_entry *entries = (struct npu_entry *)(void *)rig_data(rig, space, ring);

	return &entries[index & (NPU_RING_ENTRIES - 1)];
}

void card_rig_kick(struct card_rig *rig, uint32_t space, uint32_t ring)
{
	struct npu_slab_header *header = card_rig_header(rig, space);

	__atomic_fetch_or(&header->pending[ring / 64], 1ull << ring % 64, __ATOMIC_SEQ_CST);
	if (!__atomic_exchange_n(&header->device_sleeping, 0, __ATOMIC_SEQ_CST))
		return;
	__atomic_fetch_or(&rig->regs->queue_bell[space / 64], 1ull << space % 64,
			  __ATOMIC_SEQ_CST);
	card_rig_ring(rig, NPU_HW_RING_QUEUES);
}

void card_rig_submit(struct card_rig *rig, uint32_t space, uint32_t ring,
		     const struct npu_entry *entry)
{
	struct npu_ring_ctrl *ctrl = card_rig_ctrl(rig, space, ring);

	*card_rig_entry(rig, space, ring, ctrl->tail) = *entry;
	__atomic_store_n(&ctrl->tail, ctrl->tail + 1, __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (__atomic_load_n(&ctrl->armed, __ATOMIC_SEQ_CST)) {
		__atomic_store_n(&ctrl->armed, 0, __ATOMIC_SEQ_CST);
		card_rig_kick(rig, space, ring);
	}
}

void card_rig_launch(struct card_rig *rig, uint32_t space, uint32_t ring, uint32_t module,
		     uint32_t func, const void *args, uint32_t bytes)
{
	struct npu_ring_ctrl *ctrl = card_rig_ctrl(rig, space, ring);
	uint64_t at = ctrl->tail % 64 * 1024;
	struct npu_entry entry = {
		.op = NPU_OP_KERNEL, .map_gen = (uint32_t)rig->generation,
		.kernel = {
			.module = module, .func = func, .blocks = 1, .args = at,
			.args_size = bytes, .args_total = bytes,
		},
	};

	memcpy(rig_data(rig, space, ring) + NPU_RING_ENTRIES * NPU_ENTRY_SIZE + at, args, bytes);
	card_rig_submit(rig, space, ring, &entry);
}

void card_rig_copy(struct card_rig *rig, uint32_t space, uint32_t ring, uint64_t dst, uint64_t src,
		   uint64_t bytes)
{
	struct npu_entry entry = {
		.op = NPU_OP_COPY, .map_gen = (uint32_t)rig->generation,
		.copy = { .dst = dst, .src = src, .bytes = bytes },
	};

	card_rig_submit(rig, space, ring, &entry);
}

bool card_rig_sync(struct card_rig *rig, uint32_t space, uint32_t ring, unsigned int ms)
{
	struct npu_ring_ctrl *ctrl = card_rig_ctrl(rig, space, ring);
	uint64_t target = ctrl->tail;

	for (;;) {
		__atomic_store_n(&ctrl->want, target, __ATOMIC_RELAXED);
		__atomic_store_n(&card_rig_header(rig, space)->client_waiting, 1, __ATOMIC_SEQ_CST);
		if (__atomic_load_n(&ctrl->done, __ATOMIC_SEQ_CST) >= target)
			return true;
		if (!card_rig_interrupted(rig, NPU_HW_IRQ_SPACE0 + space % 14, ms))
			return __atomic_load_n(&ctrl->done, __ATOMIC_SEQ_CST) >= target;
		__atomic_fetch_and(&rig->regs->space_cause[space / 64], ~(1ull << space % 64),
				   __ATOMIC_SEQ_CST);
	}
}
