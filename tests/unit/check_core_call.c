/* SPDX-License-Identifier: Apache-2.0 */
/* The rules every call obeys, tried on every row of the table, and wrong handles of each kind. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kdrv/core/npu_core_int.h"
#include "tests/lib/core_rig.h"

static struct core_rig rig;
static _Alignas(8) unsigned char buffer[NPU_CALL_MAX + 8];

static void setup(void)
{
	ck_assert_int_eq(core_rig_init(&rig, 64ull << 20, CORE_RIG_CAPS, 1), 0);
}

static void teardown(void)
{
	core_rig_fini(&rig);
}

/* A call with nothing in it but a right head; the session exists when the row asks for one. */
static struct npu_head *prepare(const struct npu_row *row, uint64_t session)
{
	struct npu_head *head = (struct npu_head *)buffer;

	memset(buffer, 0, sizeof(buffer));
	head->size = row->size;
	if (row->props & NPU_ROW_SESSION)
		head->session = session;
	if (row->props & NPU_ROW_MUTATES)
		head->call = ++rig.call;
	return head;
}

static int run(const struct npu_row *row, uint32_t size)
{
	return npu_core_call(rig.core, rig.file, row->nr, buffer, size, &rig);
}

START_TEST(test_numbers)
{
	static const unsigned int known[] = { 0, 1, 0x10, 0x11, 0x12, 0x13, 0x14, 0x20, 0x21, 0x28,
					      0x29, 0x2a, 0x30, 0x31, 0x32, 0x40, 0x41, 0x42, 0x43,
					      0x44, 0x45, 0x46, 0x47, 0x48, 0x50, 0x51, 0x52, 0x53,
					      0x54, 0x60, 0x61, 0x62 };
	unsigned int nr, i, found;

	ck_assert_uint_eq(npu_rows_count, sizeof(known) / sizeof(known[0]));
	for (nr = 0; nr < 0x200; nr++) {
		for (i = 0, found = 0; i < npu_rows_count; i++)
			found += known[i] == nr;
		ck_assert_uint_eq(found, npu_row_find(nr) != NULL);
		if (!found)
			ck_assert_int_eq(npu_core_call(rig.core, rig.file, nr, buffer, 64, &rig),
					 -EOPNOTSUPP);
	}
	/* the size in each ioctl number is that of the table */
	ck_assert_uint_eq(npu_row_find(_IOC_NR(NPU_IOCTL_MEM_ALLOC))->size,
			  _IOC_SIZE(NPU_IOCTL_MEM_ALLOC));
	ck_assert_uint_eq(npu_row_find(_IOC_NR(NPU_IOCTL_OBJ_TAG))->size,
			  _IOC_SIZE(NPU_IOCTL_OBJ_TAG));
}
END_TEST

START_TEST(test_sizes)
{
	const struct npu_row *row = &npu_rows[_i];
	struct npu_head *head;
	uint64_t session = 0;
	uint32_t size;

	ck_assert_int_eq(core_rig_session(&rig, &session), 0);
	for (size = 0; size < row->size; size++) {
		head = prepare(row, session);
		head->size = size;
		ck_assert_int_eq(run(row, size), -EINVAL);
	}
	/* head.size is not the size that came */
	head = prepare(row, session);
	head->size = row->size + 8;
	ck_assert_int_eq(run(row, row->size), -EINVAL);
	head = prepare(row, session);
	ck_assert_int_eq(run(row, row->size + 8), -EINVAL);
	head = prepare(row, session);
	head->size = NPU_CALL_MAX + 8;
	ck_assert_int_eq(run(row, NPU_CALL_MAX + 8), -E2BIG);
	/* a longer struct: each byte of the tail counts */
	for (size = row->size + 1; size <= NPU_CALL_MAX; size = size * 2 + 3) {
		head = prepare(row, session);
		head->size = size;
		buffer[size - 1] = 1;
		ck_assert_int_eq(run(row, size), -E2BIG);
		buffer[size - 1] = 0;
		buffer[row->size] = 0x80;
		ck_assert_int_eq(run(row, size), -E2BIG);
	}
	/* one with a zero tail gets as far as the short one */
	if (row->size < NPU_CALL_MAX && row->handler != npu_call_session_destroy) {
		int shorter, longer;

		prepare(row, session);
		shorter = run(row, row->size);
		head = prepare(row, session);
		head->size = NPU_CALL_MAX;
		longer = run(row, NPU_CALL_MAX);
		ck_assert_int_eq(shorter, longer);
		ck_assert_int_ne(longer, -E2BIG);
		for (size = row->size; size < NPU_CALL_MAX; size++)
			ck_assert_uint_eq(buffer[size], 0);
	}
}
END_TEST

START_TEST(test_flags_and_reserved)
{
	const struct npu_row *row = &npu_rows[_i];
	struct npu_head *head;
	uint64_t session = 0;
	size_t objects, i;
	int bit, z;

	ck_assert_int_eq(core_rig_session(&rig, &session), 0);
	objects = rig.objects;
	for (bit = 0; bit < 32; bit++) {
		if (row->flags_mask & 1u << bit)
			continue;
		head = prepare(row, session);
		head->flags = 1u << bit;
		ck_assert_int_eq(run(row, row->size), -EINVAL);
	}
	for (z = 0; z < 3 && row->zero[z].bytes; z++) {
		for (i = 0; i < row->zero[z].bytes; i++) {
			prepare(row, session);
			buffer[row->zero[z].offset + i] = 1;
			ck_assert_int_eq(run(row, row->size), -EINVAL);
		}
	}
	ck_assert_uint_eq(objects, rig.objects);
}
END_TEST

START_TEST(test_session_and_number)
{
	const struct npu_row *row = &npu_rows[_i];
	struct npu_head *head;
	uint64_t session = 0;

	ck_assert_int_eq(core_rig_session(&rig, &session), 0);
	/* a call number exactly where one belongs */
	head = prepare(row, session);
	head->call = row->props & NPU_ROW_MUTATES ? 0 : 1;
	ck_assert_int_eq(run(row, row->size), -EINVAL);
	/* a session exactly where one belongs, and only one that exists */
	head = prepare(row, session);
	if (row->props & NPU_ROW_SESSION) {
		head->session = 0;
		ck_assert_int_eq(run(row, row->size), -ENOENT);
	} else if (!(row->props & NPU_ROW_SESSION_OPT)) {
		head->session = session;
		ck_assert_int_eq(run(row, row->size), -EINVAL);
	}
	if (row->props & (NPU_ROW_SESSION | NPU_ROW_SESSION_OPT)) {
		static const uint64_t off[] = { 1, 1ull << 32, 1ull << 63, 2ull << 32 };
		size_t i;

		for (i = 0; i < sizeof(off) / sizeof(off[0]); i++) {
			head = prepare(row, session);
			head->session = session ^ off[i];
			ck_assert_int_eq(run(row, row->size), -ENOENT);
		}
	}
	ck_assert_ptr_nonnull(core_rig_find(&rig, session));
}
END_TEST

START_TEST(test_lost)
{
	const struct npu_row *row = &npu_rows[_i];
	struct npu_reset reset = { 0 };
	uint64_t session = 0;

	ck_assert_int_eq(core_rig_session(&rig, &session), 0);
	ck_assert_int_eq(CORE_CALL(&rig, RESET, &reset), 0);
	prepare(row, session);
	if ((row->props & NPU_ROW_MAKES) && (row->props & NPU_ROW_SESSION))
		ck_assert_int_eq(run(row, row->size), -EIO);
	else
		ck_assert_int_ne(run(row, row->size), -EIO);
	npu_core_health(rig.core, NPU_HEALTH_LOST);
	prepare(row, session);
	if ((row->props & NPU_ROW_MAKES) && row->handler != npu_call_session_destroy)
		ck_assert_int_eq(run(row, row->size), -ENODEV);
}
END_TEST

/* Runs the calls that take a handle with one that is none of this session's. */
static void wrong_handles(uint64_t session, uint32_t ctx, uint64_t mem, uint32_t queue,
			  uint32_t module)
{
	struct npu_ctx_destroy cd = { .head.session = session, .ctx = ctx };
	struct npu_ctx_set cs = { .head.session = session, .ctx = ctx };
	struct npu_queue_create qc = { .head.session = session, .ctx = ctx };
	struct npu_queue_destroy qd = { .head.session = session, .queue = queue };
	struct npu_queue_ctrl qq = { .head.session = session, .queue = queue, .op = 1 };
	struct npu_submit *submit = calloc(1, sizeof(*submit));
	struct npu_wait wait = { .head.session = session, .queue = queue };
	struct npu_mem_query mq = { .head.session = session, .mem = mem };
	struct npu_mem_export me = { .head.session = session, .mem = mem };
	struct npu_host_register hr = { .head.session = session, .mem = mem,
					.bytes = NPU_PAGE_SMALL, .address = NPU_WINDOW_BASE };
	struct npu_module_load ml = { .head.session = session, .mem = mem, .bytes = 1 };
	struct npu_module_unload mu = { .head.session = session, .module = module };
	struct npu_func_lookup fl = { .head.session = session, .module = module };
	struct npu_obj_fds of = { .head.session = session, .type = NPU_OBJ_MEMORY, .id = mem };
	const uint64_t ids[] = { session ^ 1, ctx, mem, queue, module, NPU_WINDOW_BASE };
	uint32_t type;

	ck_assert_int_eq(CORE_CALL(&rig, CTX_DESTROY, &cd), -ENOENT);
	ck_assert_int_eq(CORE_CALL(&rig, CTX_SET, &cs), -ENOENT);
	ck_assert_int_eq(CORE_CALL(&rig, QUEUE_CREATE, &qc), -ENOENT);
	ck_assert_int_eq(CORE_CALL(&rig, QUEUE_DESTROY, &qd), -ENOENT);
	ck_assert_int_eq(CORE_CALL(&rig, QUEUE_CTRL, &qq), -ENOENT);
	submit->head.session = session;
	submit->queue = queue;
	submit->count = 1;
	ck_assert_int_eq(CORE_CALL(&rig, SUBMIT, submit), -ENOENT);
	free(submit);
	ck_assert_int_eq(CORE_CALL(&rig, WAIT, &wait), -ENOENT);
	ck_assert_int_eq(core_rig_mem_free(&rig, session, mem), -ENOENT);
	ck_assert_int_eq(core_rig_map(&rig, session, mem, NPU_WINDOW_BASE, NPU_PAGE_SMALL),
			 -ENOENT);
	ck_assert_int_eq(CORE_CALL(&rig, MEM_QUERY, &mq), -ENOENT);
	ck_assert_int_eq(CORE_CALL(&rig, MEM_EXPORT, &me), -ENOENT);
	ck_assert_int_eq(CORE_CALL(&rig, HOST_REGISTER, &hr), -ENOENT);
	ck_assert_int_eq(CORE_CALL(&rig, MODULE_LOAD, &ml), -ENOENT);
	ck_assert_int_eq(CORE_CALL(&rig, MODULE_UNLOAD, &mu), -ENOENT);
	ck_assert_int_eq(CORE_CALL(&rig, FUNC_LOOKUP, &fl), -ENOENT);
	ck_assert_int_eq(CORE_CALL(&rig, OBJ_FDS, &of), -ENOENT);
	for (type = NPU_OBJ_SESSION; type <= NPU_OBJ_MAP; type++) {
		struct npu_obj_tag tag = { .head.session = session, .type = type,
					   .id = ids[type - 1] };

		ck_assert_int_eq(CORE_CALL(&rig, OBJ_TAG, &tag), -ENOENT);
	}
}

struct objects {
	uint64_t session, mem, image;
	uint32_t ctx, queue, module;
};

static void make_objects(struct objects *o)
{
	ck_assert_int_eq(core_rig_session(&rig, &o->session), 0);
	ck_assert_int_eq(core_rig_ctx(&rig, o->session, &o->ctx), 0);
	ck_assert_int_eq(core_rig_queue(&rig, o->session, o->ctx, &o->queue), 0);
	ck_assert_int_eq(core_rig_mem(&rig, o->session, NPU_MEM_DEVICE, NPU_PAGE_SMALL, &o->mem),
			 0);
	ck_assert_int_eq(core_rig_mem(&rig, o->session, NPU_MEM_IMAGE, NPU_PAGE_SMALL, &o->image),
			 0);
	ck_assert_int_eq(core_rig_module(&rig, o->session, o->image, &o->module), 0);
}

START_TEST(test_wrong_handles)
{
	struct objects a = { 0 }, b = { 0 };
	struct npu_ctx_destroy cd;
	struct npu_queue_destroy qd;
	struct npu_module_unload mu;

	/* zero, garbage, then another session's (context ids are small numbers of their own) */
	make_objects(&a);
	ck_assert_int_eq(core_rig_session(&rig, &b.session), 0);
	wrong_handles(b.session, 0, 0, 0, 0);
	wrong_handles(b.session, UINT32_MAX, UINT64_MAX, UINT32_MAX, UINT32_MAX);
	wrong_handles(b.session, 1024, 1, 1, 1);
	wrong_handles(b.session, a.ctx, a.mem, a.queue, a.module);
	ck_assert_int_eq(core_rig_destroy(&rig, b.session), 0);
	make_objects(&b);
	wrong_handles(b.session, a.ctx + 1, a.mem, a.queue, a.module);
	/* gone */
	qd = (struct npu_queue_destroy){ .head.session = a.session, .queue = a.queue };
	ck_assert_int_eq(CORE_CALL(&rig, QUEUE_DESTROY, &qd), 0);
	cd = (struct npu_ctx_destroy){ .head.session = a.session, .ctx = a.ctx };
	ck_assert_int_eq(CORE_CALL(&rig, CTX_DESTROY, &cd), 0);
	mu = (struct npu_module_unload){ .head.session = a.session, .module = a.module };
	ck_assert_int_eq(CORE_CALL(&rig, MODULE_UNLOAD, &mu), 0);
	ck_assert_int_eq(core_rig_mem_free(&rig, a.session, a.mem), 0);
	wrong_handles(a.session, a.ctx, a.mem, a.queue, a.module);
	/* successors in the same slots do not answer to the old names */
	ck_assert_int_eq(core_rig_ctx(&rig, a.session, &b.ctx), 0);
	ck_assert_int_eq(core_rig_queue(&rig, a.session, b.ctx, &b.queue), 0);
	ck_assert_uint_ne(a.queue, b.queue);
	ck_assert_int_eq(core_rig_mem(&rig, a.session, NPU_MEM_DEVICE, 1, &b.mem), 0);
	wrong_handles(a.session, a.ctx, a.mem, a.queue, a.module);
	/* a session of another open file */
	{
		struct npu_core_file *own = rig.file, *other;

		ck_assert_int_eq(npu_core_file_open(rig.core, &rig, &other), 0);
		rig.file = other;
		ck_assert_int_eq(core_rig_ctx(&rig, a.session, &b.ctx), -EBUSY);
		rig.file = own;
		npu_core_file_close(rig.core, other, false);
	}
}
END_TEST

START_TEST(test_values)
{
	struct objects o = { 0 };
	struct npu_version v = { .major = NPU_UAPI_MAJOR + 1 };
	struct npu_discover d = { 0 };
	struct npu_inject inject = { .kind = 99 };
	struct npu_submit *submit = calloc(1, sizeof(*submit));
	struct npu_session_create sc = { .slab_address = NPU_WINDOW_BASE + NPU_PAGE_SMALL };
	struct npu_query q;
	struct npu_obj_enum *list = calloc(1, sizeof(*list));

	make_objects(&o);
	ck_assert_int_eq(CORE_CALL(&rig, VERSION, &v), -EPROTO);
	ck_assert_uint_eq(v.major, NPU_UAPI_MAJOR);
	ck_assert_str_eq(v.name, "core_rig 1");
	ck_assert_int_eq(CORE_CALL(&rig, VERSION, &v), 0);
	ck_assert_int_eq(CORE_CALL(&rig, DISCOVER, &d), 0);
	ck_assert_uint_eq(d.count, 1);
	ck_assert_uint_eq(d.ids[0], 3);
	ck_assert_int_eq(core_rig_query(&rig, &q), 0);
	ck_assert_uint_eq(q.memory_total, 64ull << 20);
	ck_assert_uint_eq(q.memory_free, (64ull << 20) - NPU_PAGE_SMALL);
	ck_assert_uint_eq(q.slab_size, NPU_SLAB_SIZE);
	ck_assert_str_eq(q.name, "NPU on a bench");

	ck_assert_int_eq(CORE_CALL(&rig, INJECT, &inject), -EINVAL);
	inject.kind = NPU_INJECT_HUNG_QUEUE;
	inject.queue = o.queue;
	ck_assert_int_eq(CORE_CALL(&rig, INJECT, &inject), -ENOENT);
	inject.head.session = o.session;
	ck_assert_int_eq(CORE_CALL(&rig, INJECT, &inject), 0);
	ck_assert_ptr_nonnull(rig.last.inject.queue);

	/* slab: aligned, whole, in the window */
	ck_assert_int_eq(CORE_CALL(&rig, SESSION_CREATE, &sc), -EINVAL);
	sc = (struct npu_session_create){ .slab_address = NPU_WINDOW_BASE - NPU_PAGE_LARGE };
	ck_assert_int_eq(CORE_CALL(&rig, SESSION_CREATE, &sc), -ERANGE);
	sc = (struct npu_session_create){ .slab_address = NPU_WINDOW_BASE + NPU_WINDOW_SIZE -
							  NPU_PAGE_LARGE };
	ck_assert_int_eq(CORE_CALL(&rig, SESSION_CREATE, &sc), -ERANGE);
	sc = (struct npu_session_create){ .slab_address = UINT64_MAX - NPU_PAGE_LARGE + 1 };
	ck_assert_int_eq(CORE_CALL(&rig, SESSION_CREATE, &sc), -ERANGE);

	submit->head.session = o.session;
	submit->queue = o.queue;
	ck_assert_int_eq(CORE_CALL(&rig, SUBMIT, submit), -EINVAL);
	submit->count = NPU_SUBMIT_MAX + 1;
	ck_assert_int_eq(CORE_CALL(&rig, SUBMIT, submit), -EINVAL);
	submit->count = 2;
	submit->entries[1].op = NPU_OP_MAX;
	ck_assert_int_eq(CORE_CALL(&rig, SUBMIT, submit), -EINVAL);
	submit->entries[1].op = NPU_OP_KERNEL;
	ck_assert_int_eq(CORE_CALL(&rig, SUBMIT, submit), -EINVAL);
	submit->entries[1].flags = NPU_ENTRY_ARGS_DEVICE;
	ck_assert_int_eq(CORE_CALL(&rig, SUBMIT, submit), 0);
	ck_assert_uint_eq(submit->count, 2);
	rig.taken = 0;
	ck_assert_int_eq(CORE_CALL(&rig, SUBMIT, submit), -EAGAIN);
	free(submit);

	list->cursor = 7ull << 56;
	ck_assert_int_eq(CORE_CALL(&rig, OBJ_ENUM, list), -EINVAL);
	list->cursor = 6ull << 56 | 0xffffffffffffull;
	ck_assert_int_eq(CORE_CALL(&rig, OBJ_ENUM, list), 0);
	ck_assert_uint_eq(list->count, 0);
	free(list);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("core_call");
	TCase *tc = tcase_create("rows");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, test_numbers);
	tcase_add_loop_test(tc, test_sizes, 0, (int)npu_rows_count);
	tcase_add_loop_test(tc, test_flags_and_reserved, 0, (int)npu_rows_count);
	tcase_add_loop_test(tc, test_session_and_number, 0, (int)npu_rows_count);
	tcase_add_loop_test(tc, test_lost, 0, (int)npu_rows_count);
	tcase_add_test(tc, test_wrong_handles);
	tcase_add_test(tc, test_values);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
