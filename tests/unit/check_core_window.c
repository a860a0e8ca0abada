/* SPDX-License-Identifier: Apache-2.0 */
/* Call numbers: a call repeated is done once and answered again, with fresh fds. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kdrv/core/npu_core_int.h"
#include "tests/lib/core_rig.h"

static struct core_rig rig;
static uint64_t session;

static void setup(void)
{
	ck_assert_int_eq(core_rig_init(&rig, 256ull << 20, CORE_RIG_CAPS | NPU_CAP_PEER, 4), 0);
	ck_assert_int_eq(core_rig_session(&rig, &session), 0);
}

static void teardown(void)
{
	core_rig_fini(&rig);
}

static struct npu_mem_alloc alloc_call(uint64_t call)
{
	return (struct npu_mem_alloc){ .head = { .session = session, .call = call },
				       .kind = NPU_MEM_DEVICE, .bytes = NPU_PAGE_SMALL, .user = 5 };
}

START_TEST(test_repeat)
{
	struct npu_mem_alloc a = alloc_call(1000), b = alloc_call(1000), c = alloc_call(1001);
	size_t fds;

	ck_assert_int_eq(CORE_CALL(&rig, MEM_ALLOC, &a), 0);
	fds = rig.fds;
	ck_assert_int_eq(CORE_CALL(&rig, MEM_ALLOC, &b), 0);
	ck_assert_uint_eq(a.mem, b.mem);
	ck_assert_uint_eq(a.page, b.page);
	ck_assert_int_ne(a.fd, b.fd);
	ck_assert_uint_eq(rig.fds, fds + 1);
	ck_assert_uint_eq(rig.admin[NPU_ADMIN_MEM_CREATE], 1);
	ck_assert_int_eq(CORE_CALL(&rig, MEM_ALLOC, &c), 0);
	ck_assert_uint_ne(a.mem, c.mem);
	/* the fd fails: the call may be repeated once more */
	rig.fd_errno = -EMFILE;
	b = alloc_call(1000);
	ck_assert_int_eq(CORE_CALL(&rig, MEM_ALLOC, &b), -EMFILE);
	rig.fd_errno = 0;
	b = alloc_call(1000);
	ck_assert_int_eq(CORE_CALL(&rig, MEM_ALLOC, &b), 0);
	/* what was made is gone by now: the answer stands, without fd */
	ck_assert_int_eq(core_rig_mem_free(&rig, session, a.mem), 0);
	b = alloc_call(1000);
	ck_assert_int_eq(CORE_CALL(&rig, MEM_ALLOC, &b), 0);
	ck_assert_uint_eq(b.mem, a.mem);
	ck_assert_int_eq(b.fd, -1);
	/* a longer struct gets the same answer */
	{
		struct {
			struct npu_mem_alloc call;
			uint64_t tail[4];
		} d = { .call = alloc_call(1001) };

		d.call.head.size = sizeof(d);
		ck_assert_int_eq(core_rig_call(&rig, _IOC_NR(NPU_IOCTL_MEM_ALLOC), &d, sizeof(d)),
				 0);
		ck_assert_uint_eq(d.call.mem, c.mem);
		ck_assert_uint_eq(d.call.head.size, sizeof(d));
		ck_assert_uint_eq(d.tail[0], 0);
	}
}
END_TEST

START_TEST(test_other_input)
{
	struct npu_mem_alloc a = alloc_call(1000), b = alloc_call(1000);
	struct npu_ctx_create c = { .head = { .session = session, .call = 1000 } };

	ck_assert_int_eq(CORE_CALL(&rig, MEM_ALLOC, &a), 0);
	b.bytes++;
	ck_assert_int_eq(CORE_CALL(&rig, MEM_ALLOC, &b), -EINVAL);
	b = alloc_call(1000);
	b.head.flags = NPU_MEM_HUGE_FIRST;
	ck_assert_int_eq(CORE_CALL(&rig, MEM_ALLOC, &b), -EINVAL);
	ck_assert_int_eq(CORE_CALL(&rig, CTX_CREATE, &c), -EINVAL);
	ck_assert_uint_eq(rig.admin[NPU_ADMIN_CTX_SET], 0);
}
END_TEST

START_TEST(test_failures_are_kept)
{
	struct npu_mem_alloc a = alloc_call(1000), b = alloc_call(1000);

	rig.fail_op = NPU_ADMIN_MEM_CREATE;
	rig.fail_errno = -ENOMEM;
	ck_assert_int_eq(CORE_CALL(&rig, MEM_ALLOC, &a), -ENOMEM);
	ck_assert_int_eq(CORE_CALL(&rig, MEM_ALLOC, &b), -ENOMEM);
	b = alloc_call(1001);
	ck_assert_int_eq(CORE_CALL(&rig, MEM_ALLOC, &b), 0);
	/* refused before it was looked at: not kept */
	a = alloc_call(1002);
	a.reserved = 1;
	ck_assert_int_eq(CORE_CALL(&rig, MEM_ALLOC, &a), -EINVAL);
	a = alloc_call(1002);
	ck_assert_int_eq(CORE_CALL(&rig, MEM_ALLOC, &a), 0);
	/* output that goes with an error is kept, too */
	a = alloc_call(1003);
	a.bytes = 1ull << 40;
	ck_assert_int_eq(CORE_CALL(&rig, MEM_ALLOC, &a), -ENOSPC);
	b = alloc_call(1003);
	b.bytes = 1ull << 40;
	ck_assert_int_eq(CORE_CALL(&rig, MEM_ALLOC, &b), -ENOSPC);
	ck_assert_uint_eq(a.largest, (256ull << 20) - 2 * NPU_PAGE_SMALL);
	ck_assert_uint_eq(a.largest, b.largest);
}
END_TEST

START_TEST(test_stale)
{
	struct npu_mem_alloc a;
	uint64_t mems[NPU_CALL_WINDOW + 1], call;

	for (call = 0; call <= NPU_CALL_WINDOW; call++) {
		a = alloc_call(2000 + 2 * call);
		ck_assert_int_eq(CORE_CALL(&rig, MEM_ALLOC, &a), 0);
		mems[call] = a.mem;
	}
	/* number 2000 was forgotten, the others are kept */
	a = alloc_call(2000);
	ck_assert_int_eq(CORE_CALL(&rig, MEM_ALLOC, &a), -ESTALE);
	a = alloc_call(1);
	ck_assert_int_eq(CORE_CALL(&rig, MEM_ALLOC, &a), -ESTALE);
	for (call = 1; call <= NPU_CALL_WINDOW; call++) {
		a = alloc_call(2000 + 2 * call);
		ck_assert_int_eq(CORE_CALL(&rig, MEM_ALLOC, &a), 0);
		ck_assert_uint_eq(a.mem, mems[call]);
	}
	ck_assert_uint_eq(rig.admin[NPU_ADMIN_MEM_CREATE], NPU_CALL_WINDOW + 1);
	/* one that comes late, but within the window, is new */
	a = alloc_call(2051);
	ck_assert_int_eq(CORE_CALL(&rig, MEM_ALLOC, &a), 0);
	a = alloc_call(2002);
	ck_assert_int_eq(CORE_CALL(&rig, MEM_ALLOC, &a), -ESTALE);
	a = alloc_call(UINT64_MAX);
	ck_assert_int_eq(CORE_CALL(&rig, MEM_ALLOC, &a), 0);
}
END_TEST

START_TEST(test_session_calls)
{
	struct npu_session_create c = { .head.call = 500, .slab_address = CORE_RIG_SLAB }, d = c;
	struct npu_session_destroy e = { .head.call = 7 }, f;
	size_t spaces = rig.admin[NPU_ADMIN_SPACE_CREATE];
	struct npu_core_file *own = rig.file;

	ck_assert_int_eq(CORE_CALL(&rig, SESSION_CREATE, &c), 0);
	ck_assert_int_eq(CORE_CALL(&rig, SESSION_CREATE, &d), 0);
	ck_assert_uint_eq(c.session, d.session);
	ck_assert_int_eq(d.fd_slab, c.fd_slab + 4);
	ck_assert_int_eq(d.fd_life, c.fd_life + 4);
	ck_assert_uint_eq(rig.admin[NPU_ADMIN_SPACE_CREATE], spaces + 1);
	/* numbers of SESSION_CREATE count for a file */
	ck_assert_int_eq(npu_core_file_open(rig.core, &rig, &rig.file), 0);
	d = (struct npu_session_create){ .head.call = 500, .slab_address = CORE_RIG_SLAB };
	ck_assert_int_eq(CORE_CALL(&rig, SESSION_CREATE, &d), 0);
	ck_assert_uint_ne(c.session, d.session);
	npu_core_file_close(rig.core, rig.file, false);
	rig.file = own;
	/* destroyed, and told so again; by another number it is not there */
	e.head.session = c.session;
	f = e;
	ck_assert_int_eq(CORE_CALL(&rig, SESSION_DESTROY, &e), 0);
	ck_assert_int_eq(CORE_CALL(&rig, SESSION_DESTROY, &f), 0);
	f.head.call = 8;
	ck_assert_int_eq(CORE_CALL(&rig, SESSION_DESTROY, &f), -ENOENT);
	/* its creation repeated: the same answer, no fds of what is gone */
	d = (struct npu_session_create){ .head.call = 500, .slab_address = CORE_RIG_SLAB };
	ck_assert_int_eq(CORE_CALL(&rig, SESSION_CREATE, &d), 0);
	ck_assert_uint_eq(c.session, d.session);
	ck_assert_int_eq(d.fd_slab, -1);
	ck_assert_int_eq(d.fd_life, -1);
}
END_TEST

START_TEST(test_every_kind)
{
	struct npu_mem_export x, y;
	struct npu_mem_import i, j;
	struct npu_mem_map m, n;
	uint64_t mem;

	ck_assert_int_eq(core_rig_mem(&rig, session, NPU_MEM_DEVICE, NPU_PAGE_SMALL, &mem), 0);
	x = (struct npu_mem_export){ .head = { .session = session, .call = 900 }, .mem = mem };
	y = x;
	ck_assert_int_eq(CORE_CALL(&rig, MEM_EXPORT, &x), 0);
	ck_assert_int_eq(CORE_CALL(&rig, MEM_EXPORT, &y), 0);
	ck_assert_uint_eq(x.token[0], y.token[0]);
	ck_assert_int_ne(x.fd, y.fd);
	i = (struct npu_mem_import){ .head = { .session = session, .call = 901 },
				     .token = { x.token[0], x.token[1] } };
	j = i;
	ck_assert_int_eq(CORE_CALL(&rig, MEM_IMPORT, &i), 0);
	ck_assert_int_eq(CORE_CALL(&rig, MEM_IMPORT, &j), 0);
	ck_assert_uint_eq(i.mem, j.mem);
	ck_assert_int_ne(i.fd, j.fd);
	m = (struct npu_mem_map){ .head = { .session = session, .call = 902 }, .mem = mem,
				  .address = NPU_WINDOW_BASE, .bytes = NPU_PAGE_SMALL };
	n = m;
	ck_assert_int_eq(CORE_CALL(&rig, MEM_MAP, &m), 0);
	ck_assert_int_eq(CORE_CALL(&rig, MEM_MAP, &n), 0);
	ck_assert_uint_eq(m.generation, n.generation);
	ck_assert_uint_eq(rig.admin[NPU_ADMIN_MAP], 1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("core_window");
	TCase *tc = tcase_create("window");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, test_repeat);
	tcase_add_test(tc, test_other_input);
	tcase_add_test(tc, test_failures_are_kept);
	tcase_add_test(tc, test_stale);
	tcase_add_test(tc, test_session_calls);
	tcase_add_test(tc, test_every_kind);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
