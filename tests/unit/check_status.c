/* SPDX-License-Identifier: Apache-2.0 */
/* proto/status: every number has a name, every errno of the device interface a status. */
#include "proto/status.h"
#include "tests/lib/runner.h"

#include <errno.h>
#include <string.h>

START_TEST(numbers_have_names)
{
	for (int status = NPU_STATUS_OK; status <= NPU_STATUS_SHUTDOWN; status++) {
		ck_assert_str_ne(npu_status_name(status), "unknown status");
		for (int other = NPU_STATUS_OK; other < status; other++)
			ck_assert_str_ne(npu_status_name(status), npu_status_name(other));
	}
	ck_assert_str_eq(npu_status_name(-1), "unknown status");
	ck_assert_str_eq(npu_status_name(NPU_STATUS_SHUTDOWN + 1), "unknown status");
	ck_assert_str_eq(npu_status_name(1 << 30), "unknown status");
}
END_TEST

START_TEST(errnos_have_statuses)
{
	static const struct {
		int error, status;
	} rows[] = {
		{ 0, NPU_STATUS_OK },
		{ -EINVAL, NPU_STATUS_INVALID },
		{ -ENOENT, NPU_STATUS_NOT_FOUND },
		{ -ENOSPC, NPU_STATUS_DEVICE_MEMORY },
		{ -EDQUOT, NPU_STATUS_QUOTA },
		{ -ENOMEM, NPU_STATUS_HOST_MEMORY },
		{ -EBUSY, NPU_STATUS_BUSY },
		{ -EPERM, NPU_STATUS_DENIED },
		{ -ENODEV, NPU_STATUS_DEVICE_LOST },
		{ -EIO, NPU_STATUS_DEVICE_LOST },
		{ -ENXIO, NPU_STATUS_NO_DEVICE },
		{ -EOPNOTSUPP, NPU_STATUS_UNSUPPORTED },
		{ -ERANGE, NPU_STATUS_INVALID },
		{ -EPROTO, NPU_STATUS_VERSION },
		{ -ETIMEDOUT, NPU_STATUS_TIMEOUT },
		{ -EXDEV, NPU_STATUS_INTERNAL },
		{ EINVAL, NPU_STATUS_INTERNAL },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		ck_assert_int_eq(npu_status_from_errno(rows[i].error), rows[i].status);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("status");
	TCase *tc = tcase_create("status");

	tcase_add_test(tc, numbers_have_names);
	tcase_add_test(tc, errnos_have_statuses);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
