/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What goes wrong around npud: clients that are killed, devices that hang or die, npud itself
 * killed. Nothing is left behind, nobody else notices, and what can come back does.
 */
#include "tests/lib/frame_calls.h"
#include "tests/lib/npud_proc.h"
#include "tests/lib/runner.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kdrv/uapi/npu.h"

static struct npud_proc npud;
static struct frame_client client;

static void setup(void)
{
	npud_proc_start(&npud, "[daemon]\nrpc_timeout_ms = 300\n");
	fc_open(&client, npud.sock);
}

static void teardown(void)
{
	fc_close(&client);
	npud_proc_stop(&npud);
}

START_TEST(killed_client_leaves_nothing)
{
	int before, sim_before, status;
	pid_t sim = npud_proc_sim(&npud, 0);

	ck_assert_int_gt(sim, 0);
	/* a first session: what stays for later ones is there after it */
	ck_assert_int_eq(fc_open_device(&client, 0), NPU_STATUS_OK);
	fc_close(&client);
	fc_open(&client, npud.sock);
	ck_assert(wait_for(fc_all_gone, &client, 5000));
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
			ctx = fc_ctx_create(&child, &status);
			for (unsigned int i = 0; i < 20; i++) {
				Npu__MemAllocReply *a =
					fc_alloc(&child, 100000, NPU_MEM_DEVICE, &status);

				npu__mem_alloc_reply__free_unpacked(a, NULL);
				fc_queue_create(&child, ctx, &status);
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
		ck_assert(wait_for(fc_all_gone, &client, 5000));
	}
	ck_assert(fds_settle(npud.pid, before, 5000));
	ck_assert(fds_settle(sim, sim_before, 5000));
}
END_TEST

static bool memory_back(void *arg)
{
	Npu__StatusReply *reply = fc_status(arg);
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
	fc_alloc(&client, 4096, NPU_MEM_DEVICE, &status);
	ck_assert_int_eq(status, NPU_STATUS_TIMEOUT);
	/* npud itself goes on, also with new clients */
	ck_assert_int_eq(fc_call(&client, NPU_METHOD_ping, &empty.base, NULL, NULL), NPU_STATUS_OK);
	fc_open(&other, npud.sock);
	fc_alloc(&client, 4096, NPU_MEM_DEVICE, &status);
	ck_assert_int_eq(status, NPU_STATUS_TIMEOUT);
	ck_assert_int_eq(fc_open_device(&other, 0), NPU_STATUS_TIMEOUT);
	fc_close(&other);
	kill(sim, SIGCONT);
	/* healed; the allocation that came late was taken back */
	do {
		Npu__MemAllocReply *a = fc_alloc(&client, 4096, NPU_MEM_DEVICE, &status);

		if (a) {
			ck_assert_int_eq(fc_mem_free(&client, a->mem), NPU_STATUS_OK);
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
	npu__mem_alloc_reply__free_unpacked(fc_alloc(&client, 4096, NPU_MEM_DEVICE, &status), NULL);
	kill(npud_proc_sim(&npud, 0), SIGKILL);
	do {
		fc_alloc(&client, 4096, NPU_MEM_DEVICE, &status);
	} while (status == NPU_STATUS_OK);
	ck_assert_int_eq(status, NPU_STATUS_DEVICE_LOST);
	ck_assert_int_eq(fc_call(&client, NPU_METHOD_device_close, &closing.base, NULL, NULL),
			 NPU_STATUS_OK);
	ck_assert(wait_for(opens_again, &client, 10000));
	npu__mem_alloc_reply__free_unpacked(fc_alloc(&client, 4096, NPU_MEM_DEVICE, &status), NULL);
	ck_assert_int_eq(status, NPU_STATUS_OK);
}
END_TEST

START_TEST(reattaches_after_a_crash)
{
	pid_t sim = npud_proc_sim(&npud, 0);
	int status;

	ck_assert_int_eq(fc_open_device(&client, 0), NPU_STATUS_OK);
	npu__mem_alloc_reply__free_unpacked(fc_alloc(&client, 4096, NPU_MEM_DEVICE, &status), NULL);
	npud_proc_kill(&npud, SIGKILL);
	ck_assert_int_eq(kill(sim, 0), 0);
	fc_close(&client);
	npud_proc_start_in(&npud, NULL);
	ck_assert_int_eq(npud_proc_sim(&npud, 0), sim);
	fc_open(&client, npud.sock);
	ck_assert(wait_for(fc_all_gone, &client, 5000));
	ck_assert_int_eq(fc_open_device(&client, 0), NPU_STATUS_OK);
}
END_TEST

START_TEST(starts_beside_a_hung_device)
{
	pid_t sim = npud_proc_sim(&npud, 0);

	fc_close(&client);
	npud_proc_kill(&npud, SIGKILL);
	kill(sim, SIGSTOP);
	/* it is ready without the device, and takes it when it answers */
	npud_proc_start_in(&npud, "[daemon]\nrpc_timeout_ms = 50\n");
	fc_open(&client, npud.sock);
	ck_assert_int_eq(fc_open_device(&client, 0), NPU_STATUS_DEVICE_LOST);
	kill(sim, SIGCONT);
	ck_assert(wait_for(opens_again, &client, 10000));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("recovery");
	TCase *tc = tcase_create("recovery");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, killed_client_leaves_nothing);
	tcase_add_test(tc, survives_a_hung_device);
	tcase_add_test(tc, survives_a_dead_board);
	tcase_add_test(tc, reattaches_after_a_crash);
	tcase_add_test(tc, starts_beside_a_hung_device);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
