/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control protocol against a real npud and npu-sim, without the library: every method does what
 * it says, wrong handles and values give a status.
 */
#include "tests/lib/frame_calls.h"
#include "tests/lib/npud_proc.h"
#include "tests/lib/runner.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kdrv/uapi/npu.h"

static struct npud_proc npud;
static struct frame_client client;

static void setup(void)
{
	npud_proc_start(&npud, "[limits]\nmemory = 64M\nmemory_per_user = 96M\ncontexts = 4\n"
			       "sessions_per_user = 3\n");
	fc_open(&client, npud.sock);
}

static void teardown(void)
{
	fc_close(&client);
	npud_proc_stop(&npud);
}

START_TEST(greets)
{
	Npu__Hello hello = NPU__HELLO__INIT;
	Npu__HelloReply *reply = NULL;
	struct frame_client other;

	ck_assert_int_eq(fc_connect(&other, npud.sock), 0);
	hello.major = NPU_PROTO_MAJOR;
	ck_assert_int_eq(fc_call(&other, NPU_METHOD_hello, &hello.base,
				 &npu__hello_reply__descriptor, &reply),
			 NPU_STATUS_OK);
	ck_assert_uint_eq(reply->major, NPU_PROTO_MAJOR);
	ck_assert_uint_ne(reply->session, 0);
	ck_assert_uint_eq(reply->window_base, NPU_WINDOW_BASE);
	ck_assert_uint_eq(reply->window_size, NPU_WINDOW_SIZE);
	ck_assert_uint_eq(reply->event_limit, 65536);
	ck_assert_uint_eq(reply->stream_limit, 1024);
	ck_assert(reply->is_admin); /* npud runs as our own user */
	npu__hello_reply__free_unpacked(reply, NULL);
	fc_close(&other);
}
END_TEST

START_TEST(opens_a_device)
{
	Npu__DeviceOpen msg = NPU__DEVICE_OPEN__INIT;
	Npu__DeviceOpenReply *reply = NULL;
	const struct npu_slab_header *slab;

	ck_assert_int_eq(fc_call(&client, NPU_METHOD_device_open, &msg.base,
				 &npu__device_open_reply__descriptor, &reply),
			 NPU_STATUS_OK);
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

	a = fc_alloc(&client, 100, NPU_MEM_DEVICE, &status);
	ck_assert_int_eq(status, NPU_STATUS_NOT_FOUND); /* the device is not open */
	ck_assert_int_eq(fc_open_device(&client, 0), NPU_STATUS_OK);
	a = fc_alloc(&client, 100, NPU_MEM_DEVICE, &status);
	ck_assert_int_eq(status, NPU_STATUS_OK);
	ck_assert_uint_eq(a->bytes, NPU_PAGE_SMALL);
	ck_assert(a->has_fd);
	ck_assert_uint_eq(client.nfds, 1);
	p = mmap(NULL, a->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, client.fds[0], 0);
	ck_assert_ptr_ne(p, MAP_FAILED);
	ck_assert_int_eq(p[0], 0);
	munmap(p, a->bytes);
	b = fc_alloc(&client, 3u << 20, NPU_MEM_DEVICE, &status);
	ck_assert_int_eq(status, NPU_STATUS_OK);
	ck_assert(b->address + b->bytes <= a->address || a->address + a->bytes <= b->address);
	ck_assert_uint_gt(b->generation, a->generation);
	ck_assert_int_eq(fc_mem_free(&client, a->mem), NPU_STATUS_OK);
	ck_assert_int_eq(fc_mem_free(&client, a->mem), NPU_STATUS_NOT_FOUND);
	ck_assert_int_eq(fc_mem_free(&client, 0), NPU_STATUS_NOT_FOUND);
	ck_assert_int_eq(fc_mem_free(&client, UINT64_MAX), NPU_STATUS_NOT_FOUND);
	npu__mem_alloc_reply__free_unpacked(a, NULL);
	npu__mem_alloc_reply__free_unpacked(b, NULL);
	/* host memory is mapped on both sides, an image is not */
	a = fc_alloc(&client, 4096, NPU_MEM_HOST, &status);
	ck_assert_int_eq(status, NPU_STATUS_OK);
	ck_assert_uint_ne(a->address, 0);
	ck_assert(a->has_fd);
	npu__mem_alloc_reply__free_unpacked(a, NULL);
	a = fc_alloc(&client, 4096, NPU_MEM_IMAGE, &status);
	ck_assert_int_eq(status, NPU_STATUS_OK);
	ck_assert_uint_eq(a->address, 0);
	npu__mem_alloc_reply__free_unpacked(a, NULL);
	fc_alloc(&client, 0, NPU_MEM_DEVICE, &status);
	ck_assert_int_eq(status, NPU_STATUS_INVALID);
	fc_alloc(&client, 4096, 0, &status);
	ck_assert_int_eq(status, NPU_STATUS_INVALID);
	fc_alloc(&client, 4096, 99, &status);
	ck_assert_int_eq(status, NPU_STATUS_INVALID);
	fc_alloc(&client, UINT64_MAX, NPU_MEM_DEVICE, &status);
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
	a = fc_alloc(&client, 60u << 20, NPU_MEM_DEVICE, &status);
	ck_assert_int_eq(status, NPU_STATUS_OK);
	/* of the session */
	fc_alloc(&client, 8u << 20, NPU_MEM_DEVICE, &status);
	ck_assert_int_eq(status, NPU_STATUS_QUOTA);
	error = npu__error__unpack(NULL, client.header.bytes, client.frame + sizeof(client.header));
	ck_assert_ptr_nonnull(error);
	ck_assert_uint_eq(error->limit, 64u << 20);
	ck_assert_uint_eq(error->wanted, 8u << 20);
	ck_assert_int_eq(error->sys_errno, EDQUOT);
	ck_assert_ptr_nonnull(strstr(error->text, "connection"));
	npu__error__free_unpacked(error, NULL);
	/* of the user */
	fc_open(&other, npud.sock);
	ck_assert_int_eq(fc_open_device(&other, 0), NPU_STATUS_OK);
	fc_alloc(&other, 50u << 20, NPU_MEM_DEVICE, &status);
	ck_assert_int_eq(status, NPU_STATUS_QUOTA);
	ck_assert_ptr_nonnull(strstr(fc_error(&other), "user"));
	/* given back when freed */
	ck_assert_int_eq(fc_mem_free(&client, a->mem), NPU_STATUS_OK);
	npu__mem_alloc_reply__free_unpacked(a, NULL);
	a = fc_alloc(&other, 50u << 20, NPU_MEM_DEVICE, &status);
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
	a = fc_alloc(&from, 200u << 20, NPU_MEM_DEVICE, &status);
	ck_assert_int_eq(status, NPU_STATUS_OK);
	fc_alloc(&from, 100u << 20, NPU_MEM_DEVICE, &status);
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
	ctx = fc_ctx_create(&client, &status);
	ck_assert_int_eq(status, NPU_STATUS_OK);
	queue = fc_queue_create(&client, ctx, &status);
	ck_assert_int_eq(status, NPU_STATUS_OK);
	other = fc_queue_create(&client, ctx, &status);
	ck_assert_int_eq(status, NPU_STATUS_OK);
	fc_queue_create(&client, 0, &status);
	ck_assert_int_eq(status, NPU_STATUS_NOT_FOUND);
	fc_queue_create(&client, queue, &status);
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
	ck_assert_int_eq(fc_queue_destroy(&client, queue), NPU_STATUS_OK);
	ck_assert_int_eq(fc_queue_destroy(&client, queue), NPU_STATUS_NOT_FOUND);
	/* takes the other queue with it */
	ck_assert_int_eq(fc_ctx_destroy(&client, ctx), NPU_STATUS_OK);
	ck_assert_int_eq(fc_queue_destroy(&client, other), NPU_STATUS_NOT_FOUND);
	ck_assert_int_eq(fc_ctx_destroy(&client, ctx), NPU_STATUS_NOT_FOUND);
	for (unsigned int i = 0; i < 4; i++) {
		fc_ctx_create(&client, &status);
		ck_assert_int_eq(status, NPU_STATUS_OK);
	}
	fc_ctx_create(&client, &status);
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
	a = fc_alloc(&client, 4096, NPU_MEM_DEVICE, &status);
	ctx = fc_ctx_create(&client, &status);
	ck_assert_int_eq(fc_mem_free(&other, a->mem), NPU_STATUS_NOT_FOUND);
	ck_assert_int_eq(fc_ctx_destroy(&other, ctx), NPU_STATUS_NOT_FOUND);
	ck_assert_int_eq(fc_mem_free(&client, a->mem), NPU_STATUS_OK);
	ck_assert_int_eq(fc_ctx_destroy(&client, ctx), NPU_STATUS_OK);
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
	image = fc_alloc(&client, 4096, NPU_MEM_IMAGE, &status);
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
	data = fc_alloc(&client, 4096, NPU_MEM_DEVICE, &status);
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
	npu__mem_alloc_reply__free_unpacked(fc_alloc(&client, 4096, NPU_MEM_DEVICE, &status), NULL);
	fc_open(&other, npud.sock);
	ck_assert_int_eq(
		fc_call(&client, NPU_METHOD_ps, &msg.base, &npu__ps_reply__descriptor, &ps),
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
				 &npu__memory_reply__descriptor, &memory),
			 NPU_STATUS_OK);
	ck_assert_uint_eq(memory->n_devices, 1);
	ck_assert_uint_eq(memory->devices[0]->used, NPU_PAGE_SMALL);
	ck_assert_uint_eq(memory->devices[0]->n_clients, 1);
	ck_assert_uint_eq(memory->devices[0]->clients[0]->objects, 1);
	npu__memory_reply__free_unpacked(memory, NULL);
	ck_assert_int_eq(fc_call(&client, NPU_METHOD_version, &empty.base,
				 &npu__version_reply__descriptor, &version),
			 NPU_STATUS_OK);
	ck_assert_uint_eq(version->major, NPU_PROTO_MAJOR);
	ck_assert_uint_eq(version->n_devices, 1);
	npu__version_reply__free_unpacked(version, NULL);
	st = fc_status(&client);
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
	st = fc_status(&tool);
	ck_assert_uint_eq(st->clients, 3);
	npu__status_reply__free_unpacked(st, NULL);
	fc_close(&third);
	fc_close(&fourth);
	fc_close(&tool);
	fc_close(&other);
}
END_TEST

/* Every row of methods.def, in each state of a connection. */
static const struct row {
	unsigned int id;
	const char *name, *state;
	unsigned int fds;
} rows[] = {
#define NPU_METHOD(id, name, Req, req, Rep, rep, plane, state, fds) { id, #name, #state, fds },
#include "proto/methods.def"
#undef NPU_METHOD
};

START_TEST(enforces_the_rows)
{
	const struct row *row = &rows[_i];
	Npu__Hello hello = NPU__HELLO__INIT;
	Npu__Empty empty = NPU__EMPTY__INIT;
	struct frame_client new, tool;
	int status;

	/* before hello; an empty Hello has major 0 */
	ck_assert_int_eq(fc_connect(&new, npud.sock), 0);
	status = fc_call(&new, row->id, &empty.base, NULL, NULL);
	ck_assert_int_eq(status,
			 strcmp(row->state, "NEW") == 0 ? NPU_STATUS_VERSION : NPU_STATUS_STATE);
	fc_close(&new);
	/* on a connection of an administrator's tool */
	ck_assert_int_eq(fc_connect(&tool, npud.sock), 0);
	hello.major = NPU_PROTO_MAJOR;
	hello.admin = true;
	ck_assert_int_eq(fc_call(&tool, NPU_METHOD_hello, &hello.base, NULL, NULL), NPU_STATUS_OK);
	status = fc_call(&tool, row->id, &empty.base, NULL, NULL);
	ck_assert_msg(strcmp(row->state, "READY") == 0 ? status == NPU_STATUS_OK :
							 status == NPU_STATUS_STATE,
		      "%s: %s", row->name, npu_status_name(status));
	fc_close(&tool);
	/*
	 * on one of a client, with an empty message: something sensible, and not more fds than said
	 */
	status = fc_call(&client, row->id, &empty.base, NULL, NULL);
	ck_assert_msg(status >= 0, "%s", row->name);
	ck_assert_uint_le(client.nfds, row->fds);
	ck_assert_int_ne(status, NPU_STATUS_INTERNAL);
	ck_assert_int_ne(status, NPU_STATUS_UNKNOWN_METHOD);
	if (status != NPU_STATUS_OK)
		ck_assert_uint_gt(strlen(fc_error(&client)), 10);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("control");
	TCase *tc = tcase_create("control");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, enforces_the_rows, 0, sizeof(rows) / sizeof(rows[0]));
	tcase_add_test(tc, greets);
	tcase_add_test(tc, opens_a_device);
	tcase_add_test(tc, allocates_and_frees);
	tcase_add_test(tc, keeps_quotas);
	tcase_add_test(tc, says_what_is_out_of_memory);
	tcase_add_test(tc, makes_contexts_and_queues);
	tcase_add_test(tc, handles_are_of_one_session);
	tcase_add_test(tc, refuses_a_bad_image);
	tcase_add_test(tc, shows_clients);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
