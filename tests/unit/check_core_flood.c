/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* What one session does in excess leaves the others alone; nobody waits for an engine. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kdrv/core/npu_core_int.h"
#include "tests/lib/core_rig.h"

static struct core_rig rig;

static void setup(void)
{
	ck_assert_int_eq(core_rig_init(&rig, 256ull << 20, CORE_RIG_CAPS, 5), 0);
}

static void teardown(void)
{
	core_rig_fini(&rig);
}

/* Faults of many sessions, each within its own limit, leave the only record of another. */
START_TEST(test_faults_of_many_sessions)
{
	struct npu_fault_record record = { .kind = NPU_FAULT_ACCESS };
	struct npu_error_query query = { 0 };
	uint64_t quiet, loud[16];

	ck_assert_int_eq(core_rig_session(&rig, &quiet), 0);
	npu_core_fault(rig.core, core_rig_find(&rig, quiet), NPU_SLOT_NONE, &record);
	for (uint32_t i = 0; i < 16; i++)
		ck_assert_int_eq(core_rig_session(&rig, &loud[i]), 0);
	for (uint32_t i = 0; i < 16 * NPU_CORE_FAULTS_SESSION; i++)
		npu_core_fault(rig.core, core_rig_find(&rig, loud[i % 16]), NPU_SLOT_NONE,
			       &record);
	query.head.session = quiet;
	ck_assert_int_eq(CORE_CALL(&rig, ERROR_QUERY, &query), 0);
	ck_assert_uint_eq(query.fault.seq, 1);
}
END_TEST

/* The end of a load is told whatever faults there are, before it and after it. */
START_TEST(test_faults_leave_module_event)
{
	struct npu_fault_record record = { .kind = NPU_FAULT_ACCESS };
	struct npu_event event;
	uint64_t quiet, loud, image;
	uint32_t module, seen = 0, faults = 0;

	ck_assert_int_eq(core_rig_session(&rig, &quiet), 0);
	ck_assert_int_eq(core_rig_mem(&rig, quiet, NPU_MEM_IMAGE, NPU_PAGE_SMALL, &image), 0);
	ck_assert_int_eq(core_rig_module(&rig, quiet, image, &module), 0);
	for (uint32_t i = 0; i < 40 * NPU_CORE_EVENTS_FAULTS; i++) {
		if (i % NPU_CORE_EVENTS_FAULTS == 0)
			ck_assert_int_eq(core_rig_session(&rig, &loud), 0);
		npu_core_fault(rig.core, core_rig_find(&rig, loud), NPU_SLOT_NONE, &record);
		if (i == NPU_CORE_EVENTS_FAULTS)
			npu_core_module_done(rig.core, core_rig_find(&rig, quiet), module, -EINVAL,
					     NULL, 0, "not an image");
	}
	while (npu_core_event_read(rig.core, rig.file, &event) == 0) {
		if (event.type == NPU_EVENT_FAULT) {
			faults++;
			continue;
		}
		ck_assert_uint_eq(event.type, NPU_EVENT_MODULE);
		ck_assert_uint_eq(event.id, module);
		seen++;
	}
	ck_assert_uint_eq(seen, 1);
	ck_assert_uint_eq(faults, NPU_CORE_EVENTS - 1);
}
END_TEST

static uint32_t slot_of(uint64_t session, uint32_t queue)
{
	return npu_queue_find(core_rig_find(&rig, session), queue)->slot;
}

/* Slots whose last ring is still in use are left out; only with none left a queue has to wait. */
START_TEST(test_busy_slots_are_left_out)
{
	struct npu_queue_destroy destroy = { 0 };
	uint64_t session;
	uint32_t ctx, queue, first;

	ck_assert_int_eq(core_rig_session(&rig, &session), 0);
	ck_assert_int_eq(core_rig_ctx(&rig, session, &ctx), 0);
	ck_assert_int_eq(core_rig_queue(&rig, session, ctx, &queue), 0);
	first = slot_of(session, queue);
	destroy.head.session = session;
	destroy.queue = queue;
	ck_assert_int_eq(CORE_CALL(&rig, QUEUE_DESTROY, &destroy), 0);
	ck_assert_int_eq(core_rig_queue(&rig, session, ctx, &queue), 0);
	ck_assert_uint_ne(slot_of(session, queue), first);
	rig.busy_below = 40;
	ck_assert_int_eq(core_rig_queue(&rig, session, ctx, &queue), 0);
	ck_assert_uint_ge(slot_of(session, queue), 40);
	rig.busy_below = UINT32_MAX;
	ck_assert_int_eq(core_rig_queue(&rig, session, ctx, &queue), -EBUSY);
	rig.busy_below = 0;
	ck_assert_int_eq(core_rig_queue(&rig, session, ctx, &queue), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("core_flood");
	TCase *tcase = tcase_create("all");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, test_faults_of_many_sessions);
	tcase_add_test(tcase, test_faults_leave_module_event);
	tcase_add_test(tcase, test_busy_slots_are_left_out);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
