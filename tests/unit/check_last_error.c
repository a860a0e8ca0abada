/* SPDX-License-Identifier: Apache-2.0 */
/* Last error and texts of failures: of the thread, newest first, taken by reading, bounded. */
#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/rt/internal.h"

START_TEST(starts_empty)
{
	ck_assert_int_eq(rt_last_error_peek(), 0);
	ck_assert_int_eq(rt_last_error_get(), 0);
	ck_assert_ptr_null(rt_error_recent());
}
END_TEST

START_TEST(last_error_is_taken_by_get_only)
{
	ck_assert_int_eq(rt_error(107002, "EE1001", "a"), 107002);
	ck_assert_int_eq(rt_error(107003, "EE1001", "b"), 107003);
	ck_assert_int_eq(rt_last_error_peek(), 107003);
	ck_assert_int_eq(rt_last_error_get(), 107003);
	ck_assert_int_eq(rt_last_error_get(), 0);
	/* Checks of the layer above leave a text but no last error. */
	rt_error_text("EH0001", "argument %s", "x");
	ck_assert_int_eq(rt_last_error_peek(), 0);
}
END_TEST

START_TEST(texts_come_newest_first_and_once)
{
	const char *text;

	rt_error(107002, "EE1001", "first %d", 1);
	rt_error_text("EH0001", "second");
	text = rt_error_recent();
	ck_assert_str_eq(text, "EH0001: second\nEE1001: first 1");
	ck_assert_ptr_null(rt_error_recent());
}
END_TEST

START_TEST(old_texts_give_way_and_long_ones_are_cut)
{
	char big[2000];
	const char *text;

	memset(big, 'x', sizeof(big) - 1);
	big[sizeof(big) - 1] = 0;
	for (int i = 0; i < 1000; i++)
		rt_error(107000, "EE1001", "number %d", i);
	rt_error(107000, "EE1001", "%s", big);
	text = rt_error_recent();
	ck_assert(!strncmp(text, "EE1001: xxx", 11));
	ck_assert_ptr_nonnull(strstr(text, "number 999\n"));
	ck_assert_ptr_null(strstr(text, "number 900\n"));
	ck_assert_uint_lt(strlen(text), 10000);
}
END_TEST

static void *other_thread(void *arg)
{
	*(const char **)arg = rt_error_recent();
	ck_assert_int_eq(rt_last_error_peek(), 0);
	rt_error(507000, "EE9999", "of the other");
	return NULL;
}

START_TEST(threads_are_apart_unless_shared)
{
	const char *seen = "";
	pthread_t thread;

	rt_error(107002, "EE1001", "mine");
	pthread_create(&thread, NULL, other_thread, &seen);
	pthread_join(thread, NULL);
	ck_assert_ptr_null(seen);
	ck_assert_int_eq(rt_last_error_peek(), 107002);
	ck_assert_str_eq(rt_error_recent(), "EE1001: mine");

	rt_error_share(true);
	pthread_create(&thread, NULL, other_thread, &seen);
	pthread_join(thread, NULL);
	ck_assert_str_eq(rt_error_recent(), "EE9999: of the other");
	/* The last error stays the thread's. */
	ck_assert_int_eq(rt_last_error_peek(), 107002);
}
END_TEST

START_TEST(drv_errors_become_codes_with_their_text)
{
	drv_fail(-ENOTCONN, "npud went away");
	ck_assert_int_eq(rt_error_drv(-ENOTCONN, "cannot do it"), ACL_ERROR_RT_LOST_HEARTBEAT);
	ck_assert_str_eq(rt_error_recent(), "EL0003: cannot do it: npud went away");
	drv_fail(-ENOSPC, "used up");
	ck_assert_int_eq(rt_error_drv(-ENOSPC, "memory"), ACL_ERROR_RT_MEMORY_ALLOCATION);
	ck_assert_str_eq(rt_error_recent(), "EL0004: memory: used up");
	drv_fail(-ECONNREFUSED, "not running");
	ck_assert_int_eq(rt_error_drv(-ECONNREFUSED, "x"), ACL_ERROR_RT_DEV_SETUP_ERROR);
	drv_fail(-EDQUOT, "limit");
	ck_assert_int_eq(rt_error_drv(-EDQUOT, "x"), ACL_ERROR_RT_MEMORY_ALLOCATION);
	drv_fail(-EIO, "gone");
	ck_assert_int_eq(rt_error_drv(-EIO, "x"), ACL_ERROR_RT_SOCKET_CLOSE);
	ck_assert_int_eq(rt_last_error_peek(), ACL_ERROR_RT_SOCKET_CLOSE);
}
END_TEST

START_TEST(faults_have_their_codes)
{
	static const struct {
		uint32_t kind, op;
		int code;
	} rows[] = {
		{ NPU_FAULT_NONE, NPU_OP_KERNEL, 0 },
		{ NPU_FAULT_ACCESS, NPU_OP_KERNEL, 507015 },
		{ NPU_FAULT_BUS, NPU_OP_KERNEL, 507015 },
		{ NPU_FAULT_ILLEGAL, NPU_OP_KERNEL, 507015 },
		{ NPU_FAULT_ARITH, NPU_OP_KERNEL, 507015 },
		{ NPU_FAULT_STACK, NPU_OP_KERNEL, 507015 },
		{ NPU_FAULT_FORBIDDEN, NPU_OP_KERNEL, 507015 },
		{ NPU_FAULT_TRAP, NPU_OP_KERNEL, 507016 },
		{ NPU_FAULT_TIMEOUT, NPU_OP_KERNEL, 507014 },
		{ NPU_FAULT_TIMEOUT, NPU_OP_EVENT_WAIT, 107020 },
		{ NPU_FAULT_ABORTED, NPU_OP_KERNEL, 107023 },
		{ NPU_FAULT_ENGINE, NPU_OP_KERNEL, 507015 },
		{ NPU_FAULT_DMA, NPU_OP_COPY, 507013 },
		{ NPU_FAULT_LOST, NPU_OP_KERNEL, 507901 },
		{ 4711, NPU_OP_KERNEL, 507015 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		ck_assert_int_eq(rt_fault_code(rows[i].kind, rows[i].op), rows[i].code);
	for (uint32_t kind = 0; kind < 40; kind++)
		ck_assert_ptr_nonnull(rt_fault_name(kind));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("last_error");
	TCase *t = tcase_create("last_error");
	SRunner *sr;
	int failed;

	tcase_add_test(t, starts_empty);
	tcase_add_test(t, last_error_is_taken_by_get_only);
	tcase_add_test(t, texts_come_newest_first_and_once);
	tcase_add_test(t, old_texts_give_way_and_long_ones_are_cut);
	tcase_add_test(t, threads_are_apart_unless_shared);
	tcase_add_test(t, drv_errors_become_codes_with_their_text);
	tcase_add_test(t, faults_have_their_codes);
	suite_add_tcase(s, t);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
