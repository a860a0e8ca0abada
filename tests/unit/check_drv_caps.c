/* SPDX-License-Identifier: Apache-2.0 */
/* The client's copies of device interface numbers are those of the interface. */
#include <check.h>
#include <stdlib.h>

#include "client/drv/admin.h"
#include "client/drv/drv_caps.h"
#include "kdrv/uapi/npu.h"

static const struct {
	const char *name;
	uint64_t client, interface;
} rows[] = {
	{ "DRV_CAP_HOST_VISIBLE", DRV_CAP_HOST_VISIBLE, NPU_CAP_HOST_VISIBLE },
	{ "DRV_CAP_HOST_MAPPED", DRV_CAP_HOST_MAPPED, NPU_CAP_HOST_MAPPED },
	{ "DRV_CAP_PEER", DRV_CAP_PEER, NPU_CAP_PEER },
	{ "DRV_MEM_DEVICE", DRV_MEM_DEVICE, NPU_MEM_DEVICE },
	{ "DRV_MEM_HOST", DRV_MEM_HOST, NPU_MEM_HOST },
	{ "DRV_MEM_IMAGE", DRV_MEM_IMAGE, NPU_MEM_IMAGE },
	{ "DRV_MEM_HUGE_FIRST", DRV_MEM_HUGE_FIRST, NPU_MEM_HUGE_FIRST },
	{ "DRV_MEM_HUGE_ONLY", DRV_MEM_HUGE_ONLY, NPU_MEM_HUGE_ONLY },
	{ "DRV_MEM_POPULATE", DRV_MEM_POPULATE, NPU_MEM_POPULATE },
	{ "DRV_CTX_CLEAR_ERROR", DRV_CTX_CLEAR_ERROR, NPU_CTX_CLEAR_ERROR },
	{ "DRV_QUEUE_ABORT", DRV_QUEUE_ABORT, NPU_QUEUE_ABORT },
	{ "DRV_QUEUE_SET_FAIL_MODE", DRV_QUEUE_SET_FAIL_MODE, NPU_QUEUE_SET_FAIL_MODE },
	{ "DRV_QUEUE_SET_PRIORITY", DRV_QUEUE_SET_PRIORITY, NPU_QUEUE_SET_PRIORITY },
	{ "DRV_FAIL_CONTINUE", DRV_FAIL_CONTINUE, NPU_FAIL_CONTINUE },
	{ "DRV_FAIL_STOP", DRV_FAIL_STOP, NPU_FAIL_STOP },
	{ "DRV_HEALTH_OK", DRV_HEALTH_OK, NPU_HEALTH_OK },
	{ "DRV_HEALTH_DEGRADED", DRV_HEALTH_DEGRADED, NPU_HEALTH_DEGRADED },
	{ "DRV_HEALTH_LOST", DRV_HEALTH_LOST, NPU_HEALTH_LOST },
	{ "DRV_KIND_SIM", DRV_KIND_SIM, NPU_KIND_SIM },
};

START_TEST(numbers_are_the_same)
{
	ck_assert_msg(rows[_i].client == rows[_i].interface, "%s is not the interface's number",
		      rows[_i].name);
}
END_TEST

START_TEST(layers_have_their_names)
{
	static const struct {
		uint32_t layer;
		const char *name;
	} layers[] = {
		{ NPU_SANDBOX_NO_NEW_PRIVS, "no_new_privs" }, { NPU_SANDBOX_SECCOMP, "seccomp" },
		{ NPU_SANDBOX_USER_NS, "user_ns" }, { NPU_SANDBOX_PID_NS, "pid_ns" },
		{ NPU_SANDBOX_NET_NS, "net_ns" }, { NPU_SANDBOX_IPC_NS, "ipc_ns" },
		{ NPU_SANDBOX_UTS_NS, "uts_ns" }, { NPU_SANDBOX_MOUNT_NS, "mount_ns" },
		{ NPU_SANDBOX_UID, "own_uid" }, { NPU_SANDBOX_CAPABILITIES, "caps" },
		{ NPU_SANDBOX_LANDLOCK, "landlock" }, { NPU_SANDBOX_LANDLOCK_NET, "landlock_net" },
		{ NPU_SANDBOX_LANDLOCK_SCOPE, "landlock_scope" },
		{ NPU_SANDBOX_RLIMITS, "rlimits" }, { NPU_SANDBOX_DATA_LIMIT, "data_limit" },
		{ NPU_SANDBOX_NOT_DUMPABLE, "not_dumpable" },
		{ NPU_SANDBOX_PARENT_DEATH, "parent_death" },
	};

	for (size_t i = 0; i < sizeof(layers) / sizeof(layers[0]); i++)
		ck_assert_str_eq(npu_admin_sandbox_name(__builtin_ctz(layers[i].layer)),
				 layers[i].name);
	ck_assert_ptr_null(npu_admin_sandbox_name(NPU_SANDBOX_COUNT));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("drv_caps");
	TCase *t = tcase_create("drv_caps");
	SRunner *sr;
	int failed;

	tcase_add_loop_test(t, numbers_are_the_same, 0, sizeof(rows) / sizeof(rows[0]));
	tcase_add_test(t, layers_have_their_names);
	suite_add_tcase(s, t);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
