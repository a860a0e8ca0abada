/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control protocol against a real npud and npu-sim, without the library: every method does what it
 * says, wrong handles and values give a status, and a client that goes takes everything with it.
 */
#include "tests/lib/frame_client.h"
#include "tests/lib/npud_proc.h"
#include "tests/lib/runner.h"

#include <check.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kdrv/uapi/npu.h"

static struct npud_proc npud;
static struct frame_client client;

static void setup(void)
{
	npud_proc_start(&npud, "[limits]\nmemory = 64M\nmemory_per_user = 96M\ncontexts = 4\n"
			"sessions_per_user = 3\n[daemon]\nrpc_timeout_ms = 300\n");
	fc_open(&client, npud.sock);
}

static void teardown(void)
{
	fc_close(&client);
	npud_proc_stop(&npud);
}

static Npu__MemAllocReply *alloc(struct frame_client *from, uint64_t bytes, uint32_t kind, int *status)
{
	Npu__MemAlloc msg = NPU__MEM_ALLOC__INIT;
	Npu__MemAllocReply *reply = NULL;

	msg.bytes = bytes;
	msg.kind = kind;
	*status = fc_call(from, NPU_METHOD_mem_alloc, &msg.base, &npu__mem_alloc_reply__descriptor,
			  &reply);
	return reply;
}

static int mem_free(struct frame_client *from, uint64_t mem)
{
	Npu__MemFree msg = NPU__MEM_FREE__INIT;

	msg.mem = mem;
	return fc_call(from, NPU_METHOD_mem_free, &msg.base, NULL, NULL);
}

static uint32_t ctx_create(struct frame_client *from, int *status)
{
	Npu__CtxCreate msg = NPU__CTX_CREATE__INIT;
	Npu__CtxCreateReply *reply = NULL;
	uint32_t ctx = 0;

	*status = fc_call(from, NPU_METHOD_ctx_create, &msg.base, &npu__ctx_create_reply__descriptor,
			  &reply);
	if (reply) {
		ctx = reply->ctx;
		npu__ctx_create_reply__free_unpacked(reply, NULL);
	}
	return ctx;
}

static int ctx_destroy(struct frame_client *from, uint32_t ctx)
{
	Npu__CtxDestroy msg = NPU__CTX_DESTROY__INIT;

	msg.ctx = ctx;
	return fc_call(from, NPU_METHOD_ctx_destroy, &msg.base, NULL, NULL);
}

static uint32_t queue_create(struct frame_client *from, uint32_t ctx, int *status)
{
	Npu__QueueCreate msg = NPU__QUEUE_CREATE__INIT;
	Npu__QueueCreateReply *reply = NULL;
	uint32_t queue = 0;

	msg.ctx = ctx;
	*status = fc_call(from, NPU_METHOD_queue_create, &msg.base,
			  &npu__queue_create_reply__descriptor, &reply);
	if (reply) {
		queue = reply->queue;
		npu__queue_create_reply__free_unpacked(reply, NULL);
	}
	return queue;
}

static int queue_destroy(struct frame_client *from, uint32_t queue)
{
	Npu__QueueDestroy msg = NPU__QUEUE_DESTROY__INIT;

	msg.queue = queue;
	return fc_call(from, NPU_METHOD_queue_destroy, &msg.base, NULL, NULL);
}

static Npu__StatusReply *status_of(struct frame_client *from)
{
	Npu__Empty msg = NPU__EMPTY__INIT;
	Npu__StatusReply *reply = NULL;

	ck_assert_int_eq(fc_call(from, NPU_METHOD_status, &msg.base, &npu__status_reply__descriptor,
				 &reply), NPU_STATUS_OK);
	return reply;
}

/* Nothing is left of other sessions: device memory, sessions, engines. */
static bool all_gone(void *arg)
{
	struct frame_client *from = arg;
	Npu__StatusReply *reply = status_of(from);
	const Npu__Device *device = reply->devices[0];
	bool gone = device->memory_free == device->memory_total && device->sessions == 0 &&
		    device->engines == 0;

	npu__status_reply__free_unpacked(reply, NULL);
	return gone;
}

START_TEST(opens_a_device)
{
	Npu__DeviceOpen msg = NPU__DEVICE_OPEN__INIT;
	Npu__DeviceOpenReply *reply = NULL;
	const struct npu_slab_header *slab;

	ck_assert_int_eq(fc_call(&client, NPU_METHOD_device_open, &msg.base,
				 &npu__device_open_reply__descriptor, &reply), NPU_STATUS_OK);
	ck_assert_uint_eq(client.nfds, 4);
	ck_assert_uint_eq(reply->slab_size, NPU_SLAB_SIZE);
	ck_assert_uint_ge(reply->slab_address, NPU_WINDOW_BASE);
	ck_assert_uint_eq(reply->device->memory_total, 256u << 20);
	ck_assert_uint_eq(reply->device->quota_limit, 64u << 20);
	ck_assert_str_eq(reply->device->transport, "sim");
	slab = mmap(NULL, NPU_SLAB_RINGS, PROT_READ, MAP_SHARED, client.fds[0], 0);
	ck_assert_ptr_ne(slab, MAP_FAILED);
	ck_assert_uint_eq(slab->magic, NPU_QUEUE_MAGIC);
	ck_assert_uint_eq(slab->slab_address, reply->slab_address);
	npu__device_open_reply__free_unpacked(reply, NULL);
	/* a second time it is refused, and after closing it opens again */
	ck_assert_int_eq(fc_open_device(&client, 0), NPU_STATUS_BUSY);
	Npu__DeviceClose closing = NPU__DEVICE_CLOSE__INIT;

	ck_assert_int_eq(fc_call(&client, NPU_METHOD_device_close, &closing.base, NULL, NULL),
			 NPU_STATUS_OK);
	ck_assert_int_eq(fc_call(&client, NPU_METHOD_device_close, &closing.base, NULL, NULL),
			 NPU_STATUS_NOT_FOUND);
	ck_assert_int_eq(fc_open_device(&client, 0), NPU_STATUS_OK);
	ck_assert_int_eq(fc_open_device(&client, 1), NPU_STATUS_NO_DEVICE);
	ck_assert_int_eq(fc_open_device(&client, 0xffffffffu), NPU_STATUS_NO_DEVICE);
}
END_TEST

START_TEST(allocates_and_frees)
{
	Npu__MemAllocReply *a, *b;
	int status;
	char *p;

	a = alloc(&client, 100, NPU_MEM_DEVICE, &status);
	ck_assert_int_eq(status, NPU_STATUS_NOT_FOUND); /* the device is not open */
	ck_assert_int_eq(fc_open_device(&client, 0), NPU_STATUS_OK);
	a = alloc(&client, 100, NPU_MEM_DEVICE, &status);
	ck_assert_int_eq(status, NPU_STATUS_OK);
	ck_assert_uint_eq(a->bytes, NPU_PAGE_SMALL);
	ck_assert(a->has_fd);
	ck_assert_uint_eq(client.nfds, 1);
	p = mmap(NULL, a->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, client.fds[0], 0);
	ck_assert_ptr_ne(p, MAP_FAILED);
	ck_assert_int_eq(p[0], 0);
	munmap(p, a->bytes);
	b = alloc(&client, 3u << 20, NPU_MEM_DEVICE, &status);
	ck_assert_int_eq(status, NPU_STATUS_OK);
	ck_assert(b->address + b->bytes <= a->address || a->address + a->bytes <= b->address);
	ck_assert_uint_gt(b->generation, a->generation);
	ck_assert_int_eq(mem_free(&client, a->mem), NPU_STATUS_OK);
	ck_assert_int_eq(mem_free(&client, a->mem), NPU_STATUS_NOT_FOUND);
	ck_assert_int_eq(mem_free(&client, 0), NPU_STATUS_NOT_FOUND);
	ck_assert_int_eq(mem_free(&client, UINT64_MAX), NPU_STATUS_NOT_FOUND);
	npu__mem_alloc_reply__free_unpacked(a, NULL);
	npu__mem_alloc_reply__free_unpacked(b, NULL);
	/* host memory is mapped on both sides, an image is not */
	a = alloc(&client, 4096, NPU_MEM_HOST, &status);
	ck_assert_int_eq(status, NPU_STATUS_OK);
	ck_assert_uint_ne(a->address, 0);
	ck_assert(a->has_fd);
	npu__mem_alloc_reply__free_unpacked(a, NULL);
	a = alloc(&client, 4096, NPU_MEM_IMAGE, &status);
	ck_assert_int_eq(status, NPU_STATUS_OK);
	ck_assert_uint_eq(a->address, 0);
	npu__mem_alloc_reply__free_unpacked(a, NULL);
	alloc(&client, 0, NPU_MEM_DEVICE, &status);
	ck_assert_int_eq(status, NPU_STATUS_INVALID);
	alloc(&client, 4096, 0, &status);
	ck_assert_int_eq(status, NPU_STATUS_INVALID);
	alloc(&client, 4096, 99, &status);
	ck_assert_int_eq(status, NPU_STATUS_INVALID);
	alloc(&client, UINT64_MAX, NPU_MEM_DEVICE, &status);
	ck_assert_int_eq(status, NPU_STATUS_INVALID);
}
END_TEST

START_TEST(keeps_quotas)
{
	struct frame_client other;
	Npu__MemAllocReply *a;
	Npu__Error *error;
	int status;

	ck_assert_int_eq(fc_open_device(&client, 0), NPU_STATUS_OK);
	a = alloc(&client, 60u << 20, NPU_MEM_DEVICE, &status);
	ck_assert_int_eq(status, NPU_STATUS_OK);
	/* of the session */
	alloc(&client, 8u << 20, NPU_MEM_DEVICE, &status);
	ck_assert_int_eq(status, NPU_STATUS_QUOTA);
	error = npu__error__unpack(NULL, client.header.bytes,
				   client.frame + sizeof(client.header));
	ck_assert_ptr_nonnull(error);
	ck_assert_uint_eq(error->limit, 64u << 20);
	ck_assert_uint_eq(error->wanted, 8u << 20);
	ck_assert_int_eq(error->sys_errno, EDQUOT);
	ck_assert_ptr_nonnull(strstr(error->text, "connection"));
	npu__error__free_unpacked(error, NULL);
	/* of the user */
	fc_open(&other, npud.sock);
	ck_assert_int_eq(fc_open_device(&other, 0), NPU_STATUS_OK);
	alloc(&other, 50u << 20, NPU_MEM_DEVICE, &status);
	ck_assert_int_eq(status, NPU_STATUS_QUOTA);
	ck_assert_ptr_nonnull(strstr(fc_error(&other), "user"));
	/* given back when freed */
	ck_assert_int_eq(mem_free(&client, a->mem), NPU_STATUS_OK);
	npu__mem_alloc_reply__free_unpacked(a, NULL);
	a = alloc(&other, 50u << 20, NPU_MEM_DEVICE, &status);
	ck_assert_int_eq(status, NPU_STATUS_OK);
	npu__mem_alloc_reply__free_unpacked(a, NULL);
	fc_close(&other);
}
END_TEST

START_TEST(says_what_is_out_of_memory)
{
	struct npud_proc big;
	struct frame_client from;
	Npu__MemAllocReply *a;
	Npu__Error *error;
	int status;

	npud_proc_start(&big, NULL);
	fc_open(&from, big.sock);
	ck_assert_int_eq(fc_open_device(&from, 0), NPU_STATUS_OK);
	a = alloc(&from, 200u << 20, NPU_MEM_DEVICE, &status);
	ck_assert_int_eq(status, NPU_STATUS_OK);
	alloc(&from, 100u << 20, NPU_MEM_DEVICE, &status);
	ck_assert_int_eq(status, NPU_STATUS_DEVICE_MEMORY);
	error = npu__error__unpack(NULL, from.header.bytes, from.frame + sizeof(from.header));
	ck_assert_ptr_nonnull(error);
	ck_assert_uint_eq(error->limit, 56u << 20);
	ck_assert_uint_eq(error->wanted, 100u << 20);
	ck_assert_int_eq(error->sys_errno, ENOSPC);
	npu__error__free_unpacked(error, NULL);
	npu__mem_alloc_reply__free_unpacked(a, NULL);
	fc_close(&from);
	npud_proc_stop(&big);
}
END_TEST

START_TEST(makes_contexts_and_queues)
{
	Npu__QueueCtrl ctrl = NPU__QUEUE_CTRL__INIT;
	Npu__CtxSet set = NPU__CTX_SET__INIT;
	uint32_t ctx, queue, other;
	int status;

	ck_assert_int_eq(fc_open_device(&client, 0), NPU_STATUS_OK);
	ctx = ctx_create(&client, &status);
	ck_assert_int_eq(status, NPU_STATUS_OK);
	queue = queue_create(&client, ctx, &status);
	ck_assert_int_eq(status, NPU_STATUS_OK);
	other = queue_create(&client, ctx, &status);
	ck_assert_int_eq(status, NPU_STATUS_OK);
	queue_create(&client, 0, &status);
	ck_assert_int_eq(status, NPU_STATUS_NOT_FOUND);
	queue_create(&client, queue, &status);
	ck_assert_int_eq(queue == ctx ? NPU_STATUS_NOT_FOUND : status, NPU_STATUS_NOT_FOUND);
	ctrl.queue = queue;
	ctrl.op = NPU_QUEUE_PAUSE;
	ck_assert_int_eq(fc_call(&client, NPU_METHOD_queue_ctrl, &ctrl.base, NULL, NULL),
			 NPU_STATUS_OK);
	ctrl.op = NPU_QUEUE_RESUME;
	ck_assert_int_eq(fc_call(&client, NPU_METHOD_queue_ctrl, &ctrl.base, NULL, NULL),
			 NPU_STATUS_OK);
	ctrl.op = NPU_QUEUE_ABORT;
	ck_assert_int_eq(fc_call(&client, NPU_METHOD_queue_ctrl, &ctrl.base, NULL, NULL),
			 NPU_STATUS_OK);
	ctrl.op = 77;
	ck_assert_int_eq(fc_call(&client, NPU_METHOD_queue_ctrl, &ctrl.base, NULL, NULL),
			 NPU_STATUS_INVALID);
	set.ctx = ctx;
	set.fields = NPU_CTX_PRIORITY;
	set.priority = 3;
	ck_assert_int_eq(fc_call(&client, NPU_METHOD_ctx_set, &set.base, NULL, NULL),
			 NPU_STATUS_OK);
	set.priority = 8;
	ck_assert_int_eq(fc_call(&client, NPU_METHOD_ctx_set, &set.base, NULL, NULL),
			 NPU_STATUS_INVALID);
	ck_assert_int_eq(queue_destroy(&client, queue), NPU_STATUS_OK);
	ck_assert_int_eq(queue_destroy(&client, queue), NPU_STATUS_NOT_FOUND);
	/* takes the other queue with it */
	ck_assert_int_eq(ctx_destroy(&client, ctx), NPU_STATUS_OK);
	ck_assert_int_eq(queue_destroy(&client, other), NPU_STATUS_NOT_FOUND);
	ck_assert_int_eq(ctx_destroy(&client, ctx), NPU_STATUS_NOT_FOUND);
	for (unsigned int i = 0; i < 4; i++) {
		ctx_create(&client, &status);
		ck_assert_int_eq(status, NPU_STATUS_OK);
	}
	ctx_create(&client, &status);
	ck_assert_int_eq(status, NPU_STATUS_LIMIT);
	ck_assert_ptr_nonnull(strstr(fc_error(&client), "[limits] contexts"));
}
END_TEST

START_TEST(handles_are_of_one_session)
{
	struct frame_client other;
	Npu__MemAllocReply *a;
	uint32_t ctx;
	int status;

	ck_assert_int_eq(fc_open_device(&client, 0), NPU_STATUS_OK);
	fc_open(&other, npud.sock);
	ck_assert_int_eq(fc_open_device(&other, 0), NPU_STATUS_OK);
	a = alloc(&client, 4096, NPU_MEM_DEVICE, &status);
	ctx = ctx_create(&client, &status);
	ck_assert_int_eq(mem_free(&other, a->mem), NPU_STATUS_NOT_FOUND);
	ck_assert_int_eq(ctx_destroy(&other, ctx), NPU_STATUS_NOT_FOUND);
	ck_assert_int_eq(mem_free(&client, a->mem), NPU_STATUS_OK);
	ck_assert_int_eq(ctx_destroy(&client, ctx), NPU_STATUS_OK);
	npu__mem_alloc_reply__free_unpacked(a, NULL);
	fc_close(&other);
}
END_TEST

START_TEST(refuses_a_bad_image)
{
	Npu__ModuleLoad msg = NPU__MODULE_LOAD__INIT;
	Npu__MemAllocReply *image, *data;
	int status;
	char *p;

	ck_assert_int_eq(fc_open_device(&client, 0), NPU_STATUS_OK);
	image = alloc(&client, 4096, NPU_MEM_IMAGE, &status);
	ck_assert_int_eq(status, NPU_STATUS_OK);
	p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, client.fds[0], 0);
	ck_assert_ptr_ne(p, MAP_FAILED);
	strcpy(p, "this is no kernel image");
	msg.mem = image->mem;
	msg.bytes = 4096;
	ck_assert_int_eq(fc_call(&client, NPU_METHOD_module_load, &msg.base, NULL, NULL),
			 NPU_STATUS_IMAGE);
	ck_assert_ptr_nonnull(strstr(fc_error(&client), "refused"));
	msg.bytes = image->bytes + 1;
	ck_assert_int_eq(fc_call(&client, NPU_METHOD_module_load, &msg.base, NULL, NULL),
			 NPU_STATUS_INVALID);
	data = alloc(&client, 4096, NPU_MEM_DEVICE, &status);
	msg.mem = data->mem;
	msg.bytes = 4096;
	ck_assert_int_eq(fc_call(&client, NPU_METHOD_module_load, &msg.base, NULL, NULL),
			 NPU_STATUS_INVALID);
	npu__mem_alloc_reply__free_unpacked(image, NULL);
	npu__mem_alloc_reply__free_unpacked(data, NULL);
}
END_TEST

START_TEST(shows_clients)
{
	Npu__Empty empty = NPU__EMPTY__INIT;
	Npu__Ps msg = NPU__PS__INIT;
	Npu__PsReply *ps = NULL;
	Npu__MemoryReply *memory = NULL;
	Npu__VersionReply *version = NULL;
	Npu__StatusReply *st;
	struct frame_client other;
	int status;

	ck_assert_int_eq(fc_open_device(&client, 0), NPU_STATUS_OK);
	npu__mem_alloc_reply__free_unpacked(alloc(&client, 4096, NPU_MEM_DEVICE, &status), NULL);
	fc_open(&other, npud.sock);
	ck_assert_int_eq(fc_call(&client, NPU_METHOD_ps, &msg.base, &npu__ps_reply__descriptor, &ps),
			 NPU_STATUS_OK);
	ck_assert_uint_eq(ps->n_clients, 2);
	ck_assert_int_eq(ps->clients[0]->pid, getpid());
	ck_assert_uint_eq(ps->clients[0]->uid, getuid());
	ck_assert_uint_eq(ps->clients[0]->memory, NPU_PAGE_SMALL);
	ck_assert_uint_eq(ps->clients[0]->device, 0);
	ck_assert_uint_eq(ps->clients[1]->device, 0xffffffffu);
	ck_assert_uint_eq(ps->cursor, 0);
	npu__ps_reply__free_unpacked(ps, NULL);
	ck_assert_int_eq(fc_call(&client, NPU_METHOD_memory, &empty.base,
				 &npu__memory_reply__descriptor, &memory), NPU_STATUS_OK);
	ck_assert_uint_eq(memory->n_devices, 1);
	ck_assert_uint_eq(memory->devices[0]->used, NPU_PAGE_SMALL);
	ck_assert_uint_eq(memory->devices[0]->n_clients, 1);
	ck_assert_uint_eq(memory->devices[0]->clients[0]->objects, 1);
	npu__memory_reply__free_unpacked(memory, NULL);
	ck_assert_int_eq(fc_call(&client, NPU_METHOD_version, &empty.base,
				 &npu__version_reply__descriptor, &version), NPU_STATUS_OK);
	ck_assert_uint_eq(version->major, NPU_PROTO_MAJOR);
	ck_assert_uint_eq(version->n_devices, 1);
	npu__version_reply__free_unpacked(version, NULL);
	st = status_of(&client);
	ck_assert_int_eq(st->pid, npud.pid);
	ck_assert_uint_eq(st->clients, 2);
	npu__status_reply__free_unpacked(st, NULL);
	/* no more connections than are allowed to a user */
	Npu__Hello hello = NPU__HELLO__INIT;
	struct frame_client third, fourth, tool;

	fc_open(&third, npud.sock);
	ck_assert_int_eq(fc_connect(&fourth, npud.sock), 0);
	hello.major = NPU_PROTO_MAJOR;
	ck_assert_int_eq(fc_call(&fourth, NPU_METHOD_hello, &hello.base, NULL, NULL),
			 NPU_STATUS_LIMIT);
	/* npuctl always gets in, but gets no devices */
	ck_assert_int_eq(fc_connect(&tool, npud.sock), 0);
	hello.admin = true;
	ck_assert_int_eq(fc_call(&tool, NPU_METHOD_hello, &hello.base, NULL, NULL), NPU_STATUS_OK);
	ck_assert_int_eq(fc_open_device(&tool, 0), NPU_STATUS_STATE);
	st = status_of(&tool);
	ck_assert_uint_eq(st->clients, 3);
	npu__status_reply__free_unpacked(st, NULL);
	fc_close(&third);
	fc_close(&fourth);
	fc_close(&tool);
	fc_close(&other);
}
END_TEST

START_TEST(killed_client_leaves_nothing)
{
	int before, sim_before, status;
	pid_t sim = npud_proc_sim(&npud, 0);

	ck_assert_int_gt(sim, 0);
	/* a first session: what stays for later ones is there after it */
	ck_assert_int_eq(fc_open_device(&client, 0), NPU_STATUS_OK);
	fc_close(&client);
	fc_open(&client, npud.sock);
	ck_assert(wait_for(all_gone, &client, 5000));
	before = fds_of(npud.pid);
	sim_before = fds_of(sim);
	for (unsigned int round = 0; round < 3; round++) {
		int ready[2];
		pid_t pid;
		char byte;

		ck_assert_int_eq(pipe(ready), 0);
		pid = fork();
		if (pid == 0) {
			struct frame_client child;
			uint32_t ctx;

			fc_open(&child, npud.sock);
			fc_open_device(&child, 0);
			ctx = ctx_create(&child, &status);
			for (unsigned int i = 0; i < 20; i++) {
				Npu__MemAllocReply *a = alloc(&child, 100000, NPU_MEM_DEVICE,
							      &status);

				npu__mem_alloc_reply__free_unpacked(a, NULL);
				queue_create(&child, ctx, &status);
			}
			if (status != NPU_STATUS_OK || write(ready[1], "x", 1) != 1)
				_exit(1);
			pause();
		}
		ck_assert_int_eq(read(ready[0], &byte, 1), 1);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		close(ready[0]);
		close(ready[1]);
		ck_assert(wait_for(all_gone, &client, 5000));
	}
	ck_assert(fds_settle(npud.pid, before, 5000));
	ck_assert(fds_settle(sim, sim_before, 5000));
}
END_TEST

static bool memory_back(void *arg)
{
	Npu__StatusReply *reply = status_of(arg);
	bool back = reply->devices[0]->memory_free == reply->devices[0]->memory_total;

	npu__status_reply__free_unpacked(reply, NULL);
	return back;
}

START_TEST(survives_a_hung_device)
{
	Npu__Empty empty = NPU__EMPTY__INIT;
	pid_t sim = npud_proc_sim(&npud, 0);
	struct frame_client other;
	int status;

	ck_assert_int_eq(fc_open_device(&client, 0), NPU_STATUS_OK);
	kill(sim, SIGSTOP);
	alloc(&client, 4096, NPU_MEM_DEVICE, &status);
	ck_assert_int_eq(status, NPU_STATUS_TIMEOUT);
	/* npud itself goes on, also with new clients */
	ck_assert_int_eq(fc_call(&client, NPU_METHOD_ping, &empty.base, NULL, NULL), NPU_STATUS_OK);
	fc_open(&other, npud.sock);
	alloc(&client, 4096, NPU_MEM_DEVICE, &status);
	ck_assert_int_eq(status, NPU_STATUS_TIMEOUT);
	ck_assert_int_eq(fc_open_device(&other, 0), NPU_STATUS_TIMEOUT);
	fc_close(&other);
	kill(sim, SIGCONT);
	/* healed; the allocation that came late was taken back */
	do {
		Npu__MemAllocReply *a = alloc(&client, 4096, NPU_MEM_DEVICE, &status);

		if (a) {
			ck_assert_int_eq(mem_free(&client, a->mem), NPU_STATUS_OK);
			npu__mem_alloc_reply__free_unpacked(a, NULL);
		}
	} while (status == NPU_STATUS_TIMEOUT);
	ck_assert_int_eq(status, NPU_STATUS_OK);
	ck_assert(wait_for(memory_back, &client, 5000));
	ck_assert(npud_proc_logged(&npud, "has not answered"));
	ck_assert(npud_proc_logged(&npud, "answers again"));
}
END_TEST

/* A device that is there again after its board died. */
static bool opens_again(void *arg)
{
	struct frame_client *from = arg;

	return fc_open_device(from, 0) == NPU_STATUS_OK;
}

START_TEST(survives_a_dead_board)
{
	Npu__DeviceClose closing = NPU__DEVICE_CLOSE__INIT;
	int status;

	ck_assert_int_eq(fc_open_device(&client, 0), NPU_STATUS_OK);
	npu__mem_alloc_reply__free_unpacked(alloc(&client, 4096, NPU_MEM_DEVICE, &status), NULL);
	kill(npud_proc_sim(&npud, 0), SIGKILL);
	do {
		alloc(&client, 4096, NPU_MEM_DEVICE, &status);
	} while (status == NPU_STATUS_OK);
	ck_assert_int_eq(status, NPU_STATUS_DEVICE_LOST);
	ck_assert_int_eq(fc_call(&client, NPU_METHOD_device_close, &closing.base, NULL, NULL),
			 NPU_STATUS_OK);
	ck_assert(wait_for(opens_again, &client, 10000));
	npu__mem_alloc_reply__free_unpacked(alloc(&client, 4096, NPU_MEM_DEVICE, &status), NULL);
	ck_assert_int_eq(status, NPU_STATUS_OK);
}
END_TEST

START_TEST(reattaches_after_a_crash)
{
	pid_t sim = npud_proc_sim(&npud, 0);
	int status;

	ck_assert_int_eq(fc_open_device(&client, 0), NPU_STATUS_OK);
	npu__mem_alloc_reply__free_unpacked(alloc(&client, 4096, NPU_MEM_DEVICE, &status), NULL);
	npud_proc_kill(&npud, SIGKILL);
	ck_assert_int_eq(kill(sim, 0), 0);
	fc_close(&client);
	npud_proc_start_in(&npud, NULL);
	ck_assert_int_eq(npud_proc_sim(&npud, 0), sim);
	fc_open(&client, npud.sock);
	ck_assert(wait_for(all_gone, &client, 5000));
	ck_assert_int_eq(fc_open_device(&client, 0), NPU_STATUS_OK);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("control");
	TCase *tc = tcase_create("control");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, opens_a_device);
	tcase_add_test(tc, allocates_and_frees);
	tcase_add_test(tc, keeps_quotas);
	tcase_add_test(tc, says_what_is_out_of_memory);
	tcase_add_test(tc, makes_contexts_and_queues);
	tcase_add_test(tc, handles_are_of_one_session);
	tcase_add_test(tc, refuses_a_bad_image);
	tcase_add_test(tc, shows_clients);
	tcase_add_test(tc, killed_client_leaves_nothing);
	tcase_add_test(tc, survives_a_hung_device);
	tcase_add_test(tc, survives_a_dead_board);
	tcase_add_test(tc, reattaches_after_a_crash);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
