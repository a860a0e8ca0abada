/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work on an npu-sim without npud: kernels through raw rings, SUBMIT and WAIT, faults, engines that
 * die or hang.
 */
#include <check.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/lib/npud_fixture.h"
#include "tests/lib/sim_client.h"

#define MEM_ADDRESS NPU_WINDOW_BASE

static struct sim_board board;
static struct sim_client client;

static void start(void)
{
	sim_board_start(&board, NULL);
	sim_client_open(&client, &board);
}

static void start_with(const char *const more[])
{
	sim_board_start(&board, more);
	sim_client_open(&client, &board);
}

static void stop(void)
{
	sim_client_close(&client);
	ck_assert_int_eq(sim_board_stop(&board), 0);
}

/* ---- work ---------------------------------------------------------------------------------- */

struct work {
	uint32_t ctx, queue, slot, module;
	uint64_t mem;
	volatile uint64_t *words; /* device memory at MEM_ADDRESS */
	int fd;
};

static void work_begin(struct work *work)
{
	sim_client_session(&client);
	work->ctx = sim_client_context(&client);
	work->queue = sim_client_queue(&client, work->ctx, &work->slot);
	work->mem = sim_client_memory(&client, NPU_MEM_DEVICE, 1u << 20, &work->fd);
	sim_client_map(&client, work->mem, MEM_ADDRESS, 1u << 20);
	ck_assert_int_eq(sim_client_module(&client, NPU_TEST_KERNELS, &work->module), 0);
	work->words = mmap(NULL, 1u << 20, PROT_READ | PROT_WRITE, MAP_SHARED, work->fd, 0);
	ck_assert_ptr_ne((void *)work->words, MAP_FAILED);
}

static void work_end(struct work *work)
{
	munmap((void *)work->words, 1u << 20);
	close(work->fd);
	sim_client_session_end(&client);
}

static void launch(struct work *work, const char *name, uint64_t a, uint64_t b, uint32_t timeout_us)
{
	uint64_t args[2] = { a, b };
	struct npu_func_lookup lookup = {
		.head.session = client.session, .module = work->module,
		.func = sim_client_function(&client, work->module, name),
	};

	ck_assert_int_eq(SIM_CALL(&client, FUNC_LOOKUP, &lookup), 0);
	ck_assert_uint_le(lookup.args_size, sizeof(args));
	sim_client_launch(&client, work->slot, work->module, lookup.func, args, lookup.args_size,
			  timeout_us);
}

START_TEST(test_kernel_runs)
{
	struct work work;

	start();
	work_begin(&work);
	work.words[0] = 40;
	launch(&work, "add", MEM_ADDRESS, 2, 0);
	ck_assert(sim_client_sync(&client, work.slot, SIM_WAIT_MS));
	ck_assert_uint_eq(work.words[0], 42);
	ck_assert_uint_eq(sim_client_ring(&client, work.slot)->error_count, 0);
	ck_assert_uint_eq(sim_client_counter(&client, client.session, NPU_COUNTER_ENGINE_STARTS),
			  1);
	work_end(&work);
	stop();
}
END_TEST

START_TEST(test_bad_image_refused)
{
	uint32_t module;

	start();
	sim_client_session(&client);
	ck_assert_int_lt(sim_client_module(&client, NPU_BUILD_DIR "/npu-sim", &module), 0);
	stop();
}
END_TEST

START_TEST(test_submit_and_wait)
{
	struct npu_submit submit = { .count = 1 };
	struct npu_wait wait = { 0 };
	struct npu_event event;
	struct work work;

	start();
	work_begin(&work);
	submit.head.session = wait.head.session = client.session;
	submit.queue = wait.queue = work.queue;
	submit.entries[0] = (struct npu_entry){
		.op = NPU_OP_FILL,
		.epoch = (__u16)sim_client_ring(&client, work.slot)->epoch,
		.fill = { .dst = MEM_ADDRESS, .bytes = 64, .value = 0x1234, .width = 4 },
	};
	ck_assert_int_eq(SIM_CALL(&client, SUBMIT, &submit), 0);
	ck_assert_uint_eq(submit.count, 1);
	ck_assert(sim_client_sync(&client, work.slot, SIM_WAIT_MS));
	ck_assert_uint_eq(work.words[0], 0x123400001234);
	wait.done = submit.tail;
	ck_assert_int_eq(SIM_CALL(&client, WAIT, &wait), 0);
	ck_assert_uint_eq(wait.done, submit.tail);

	/* A wait that is armed before the work is there ends with an event. */
	wait.done = submit.tail + 1;
	wait.head.flags = NPU_WAIT_ARM;
	ck_assert_int_eq(SIM_CALL(&client, WAIT, &wait), -EAGAIN);
	submit.count = 1;
	ck_assert_int_eq(SIM_CALL(&client, SUBMIT, &submit), 0);
	event = sim_client_event(&client, NPU_EVENT_QUEUE);
	ck_assert_uint_eq(event.id, work.queue);
	work_end(&work);
	stop();
}
END_TEST

START_TEST(test_queue_again_at_once)
{
	struct npu_queue_destroy destroy = { 0 };
	struct work work;

	start();
	work_begin(&work);
	destroy.head.session = client.session;
	for (unsigned int i = 0; i < 200; i++) {
		work.words[0] = i;
		launch(&work, "add", MEM_ADDRESS, 1, 0);
		ck_assert(sim_client_sync(&client, work.slot, SIM_WAIT_MS));
		ck_assert_uint_eq(work.words[0], i + 1);
		destroy.queue = work.queue;
		destroy.head.call = 0;
		ck_assert_int_eq(SIM_CALL(&client, QUEUE_DESTROY, &destroy), 0);
		work.queue = sim_client_queue(&client, work.ctx, &work.slot);
		/* Nothing of the last queue shows in the ring. */
		ck_assert_uint_eq(sim_client_ring(&client, work.slot)->done, 0);
		ck_assert_uint_eq(sim_client_ring(&client, work.slot)->tail, 0);
		ck_assert_uint_eq(sim_client_ring(&client, work.slot)->want, UINT64_MAX);
	}
	work_end(&work);
	stop();
}
END_TEST

START_TEST(test_queue_with_hung_kernel_destroyed)
{
	struct npu_queue_destroy destroy = { 0 };
	struct work work;

	start();
	work_begin(&work);
	launch(&work, "spin", MEM_ADDRESS, 0, 0);
	destroy.head.session = client.session;
	destroy.queue = work.queue;
	ck_assert_int_eq(SIM_CALL(&client, QUEUE_DESTROY, &destroy), 0);
	work.queue = sim_client_queue(&client, work.ctx, &work.slot);
	work.words[1] = 5;
	launch(&work, "add", MEM_ADDRESS + 8, 1, 0);
	ck_assert(sim_client_sync(&client, work.slot, SIM_WAIT_MS));
	ck_assert_uint_eq(work.words[1], 6);
	work_end(&work);
	stop();
}
END_TEST

START_TEST(test_fault_is_told)
{
	struct npu_error_query query = { 0 };
	struct npu_event event;
	struct work work;

	start();
	work_begin(&work);
	launch(&work, "poke", 0x1000, 1, 0);
	ck_assert(sim_client_sync(&client, work.slot, SIM_WAIT_MS));
	ck_assert_uint_eq(sim_client_ring(&client, work.slot)->error.kind, NPU_FAULT_ACCESS);
	ck_assert_uint_eq(sim_client_ring(&client, work.slot)->error.address, 0x1000);
	event = sim_client_event(&client, NPU_EVENT_FAULT);
	ck_assert_uint_eq(event.fault.kind, NPU_FAULT_ACCESS);
	ck_assert_uint_eq(event.fault.session, client.session);
	ck_assert_uint_eq(event.fault.queue, work.queue);
	ck_assert_str_eq(event.fault.kernel, "poke");
	query.head.session = client.session;
	ck_assert_int_eq(SIM_CALL(&client, ERROR_QUERY, &query), 0);
	ck_assert_uint_eq(query.fault.kind, NPU_FAULT_ACCESS);
	/* The suspect engine makes room for another, which has all that this one had. */
	while (sim_client_event(&client, NPU_EVENT_ENGINE).status < 2)
		;
	launch(&work, "add", MEM_ADDRESS, 9, 0);
	ck_assert(sim_client_sync(&client, work.slot, SIM_WAIT_MS));
	ck_assert_uint_eq(work.words[0], 9);
	work_end(&work);
	stop();
}
END_TEST

static bool task_runs(void *arg)
{
	struct work *work = arg;

	return __atomic_load_n(&sim_client_ring(&client, work->slot)->head, __ATOMIC_ACQUIRE) > 0;
}

START_TEST(test_killed_engine_is_replaced)
{
	struct npu_ring_ctrl *ring;
	struct work work;
	pid_t engine;

	start();
	work_begin(&work);
	ring = sim_client_ring(&client, work.slot);
	engine = sim_client_engine(&client, 0);
	launch(&work, "spin", MEM_ADDRESS, 0, 0);
	launch(&work, "add", MEM_ADDRESS + 8, 7, 0);
	ck_assert(wait_until(task_runs, &work, SIM_WAIT_MS));
	ck_assert_int_eq(kill(engine, SIGKILL), 0);
	/* The running task failed; what waited behind it ran in the new engine. */
	ck_assert(sim_client_sync(&client, work.slot, SIM_WAIT_MS));
	ck_assert_uint_eq(ring->error_count, 1);
	ck_assert_uint_eq(ring->error.kind, NPU_FAULT_ENGINE);
	ck_assert_uint_eq(ring->error.task, 0);
	ck_assert_uint_eq(work.words[1], 7);
	ck_assert_int_ne(sim_client_engine(&client, engine), engine);
	ck_assert_uint_eq(sim_client_event(&client, NPU_EVENT_FAULT).fault.kind, NPU_FAULT_ENGINE);
	work_end(&work);
	stop();
}
END_TEST

START_TEST(test_hung_kernel_times_out)
{
	struct npu_ring_ctrl *ring;
	struct work work;

	start();
	work_begin(&work);
	ring = sim_client_ring(&client, work.slot);
	launch(&work, "spin", MEM_ADDRESS, 0, 30000);
	launch(&work, "add", MEM_ADDRESS + 8, 7, 0);
	ck_assert(sim_client_sync(&client, work.slot, SIM_WAIT_MS));
	ck_assert_uint_eq(ring->error_count, 1);
	ck_assert_uint_eq(ring->error.kind, NPU_FAULT_TIMEOUT);
	ck_assert_uint_eq(work.words[1], 7);
	work_end(&work);
	stop();
}
END_TEST

/* The device's own limit, for a kernel that names none. */
START_TEST(test_default_limit)
{
	static const char *const more[] = { "--kernel-timeout", "40", NULL };
	struct work work;

	start_with(more);
	work_begin(&work);
	launch(&work, "spin", MEM_ADDRESS, 0, 0);
	ck_assert(sim_client_sync(&client, work.slot, SIM_WAIT_MS));
	ck_assert_uint_eq(sim_client_ring(&client, work.slot)->error.kind, NPU_FAULT_TIMEOUT);
	work_end(&work);
	stop();
}
END_TEST

/* An engine that does not get to act is killed; its task still ends as timed out. */
START_TEST(test_stopped_engine_is_killed)
{
	struct npu_ring_ctrl *ring;
	struct work work;
	pid_t engine;

	start();
	work_begin(&work);
	ring = sim_client_ring(&client, work.slot);
	engine = sim_client_engine(&client, 0);
	launch(&work, "spin", MEM_ADDRESS, 0, 200000);
	ck_assert(wait_until(task_runs, &work, SIM_WAIT_MS));
	ck_assert_int_eq(kill(engine, SIGSTOP), 0);
	launch(&work, "add", MEM_ADDRESS + 8, 3, 0);
	ck_assert(sim_client_sync(&client, work.slot, SIM_WAIT_MS));
	ck_assert_uint_eq(ring->error.kind, NPU_FAULT_TIMEOUT);
	ck_assert_uint_eq(work.words[1], 3);
	ck_assert_int_ne(sim_client_engine(&client, engine), engine);
	work_end(&work);
	stop();
}
END_TEST

START_TEST(test_abort_drops_all)
{
	struct npu_queue_ctrl ctrl = { .op = NPU_QUEUE_ABORT };
	struct npu_ring_ctrl *ring;
	struct work work;

	start();
	work_begin(&work);
	ring = sim_client_ring(&client, work.slot);
	launch(&work, "spin", MEM_ADDRESS, 0, 0);
	launch(&work, "add", MEM_ADDRESS + 8, 1, 0);
	ck_assert(wait_until(task_runs, &work, SIM_WAIT_MS));
	ctrl.head.session = client.session;
	ctrl.queue = work.queue;
	ck_assert_int_eq(SIM_CALL(&client, QUEUE_CTRL, &ctrl), 0);
	ck_assert_uint_eq(ring->epoch, ctrl.epoch);
	ck_assert(sim_client_sync(&client, work.slot, SIM_WAIT_MS));
	ck_assert_uint_eq(ring->error.kind, NPU_FAULT_ABORTED);
	ck_assert_uint_eq(work.words[1], 0);
	launch(&work, "add", MEM_ADDRESS + 8, 4, 0);
	ck_assert(sim_client_sync(&client, work.slot, SIM_WAIT_MS));
	ck_assert_uint_eq(work.words[1], 4);
	work_end(&work);
	stop();
}
END_TEST

START_TEST(test_pause_holds_work)
{
	struct npu_queue_ctrl ctrl = { .op = NPU_QUEUE_PAUSE };
	struct work work, second;

	start();
	work_begin(&work);
	ctrl.head.session = client.session;
	ctrl.queue = work.queue;
	ck_assert_int_eq(SIM_CALL(&client, QUEUE_CTRL, &ctrl), 0);
	/* Another queue's work shows that the engine has heard of it, and that time goes on. */
	second = work;
	second.queue = sim_client_queue(&client, work.ctx, &second.slot);
	launch(&second, "add", MEM_ADDRESS + 8, 1, 0);
	ck_assert(sim_client_sync(&client, second.slot, SIM_WAIT_MS));
	launch(&work, "add", MEM_ADDRESS, 1, 0);
	launch(&second, "add", MEM_ADDRESS + 8, 1, 0);
	ck_assert(sim_client_sync(&client, second.slot, SIM_WAIT_MS));
	ck_assert_uint_eq(work.words[0], 0);
	ck_assert_uint_eq(work.words[1], 2);
	ctrl.op = NPU_QUEUE_RESUME;
	ctrl.head.call = 0;
	ck_assert_int_eq(SIM_CALL(&client, QUEUE_CTRL, &ctrl), 0);
	ck_assert(sim_client_sync(&client, work.slot, SIM_WAIT_MS));
	ck_assert_uint_eq(work.words[0], 1);
	work_end(&work);
	stop();
}
END_TEST

static uint32_t word_value;
static bool word_is(void *at)
{
	return __atomic_load_n((const uint32_t *)at, __ATOMIC_ACQUIRE) == word_value;
}

/* A context that stopped stays stopped in the engine that follows, until it is told otherwise. */
START_TEST(test_stop_outlives_engine)
{
	struct npu_queue_ctrl mode = { .op = NPU_QUEUE_SET_FAIL_MODE, .value = NPU_FAIL_STOP };
	struct npu_ctx_set clear = { .head.flags = NPU_CTX_CLEAR_ERROR };
	uint32_t *error;
	struct work work;

	start();
	work_begin(&work);
	mode.head.session = clear.head.session = client.session;
	mode.queue = work.queue;
	clear.ctx = work.ctx;
	ck_assert_int_eq(SIM_CALL(&client, QUEUE_CTRL, &mode), 0);
	word_value = NPU_FAIL_STOP; /* in force, not just asked for */
	ck_assert(wait_until(word_is, &sim_client_ring(&client, work.slot)->fail_mode, SIM_WAIT_MS));
	launch(&work, "poke", 0x1000, 1, 0);
	ck_assert(sim_client_sync(&client, work.slot, SIM_WAIT_MS));
	while (sim_client_event(&client, NPU_EVENT_ENGINE).status < 2)
		;
	launch(&work, "add", MEM_ADDRESS, 1, 0);
	ck_assert(sim_client_sync(&client, work.slot, SIM_WAIT_MS));
	ck_assert_uint_eq(work.words[0], 0);
	ck_assert_uint_eq(sim_client_ring(&client, work.slot)->error.kind, NPU_FAULT_ABORTED);
	error = &((struct npu_slab_header *)client.slab)->context_error[work.ctx];
	ck_assert_int_eq(SIM_CALL(&client, CTX_SET, &clear), 0);
	word_value = 0;
	ck_assert(wait_until(word_is, error, SIM_WAIT_MS));
	launch(&work, "add", MEM_ADDRESS, 1, 0);
	ck_assert(sim_client_sync(&client, work.slot, SIM_WAIT_MS));
	ck_assert_uint_eq(work.words[0], 1);
	work_end(&work);
	stop();
}
END_TEST

START_TEST(test_unmapped_address_faults)
{
	struct npu_mem_unmap unmap = { .address = MEM_ADDRESS, .bytes = 1u << 20 };
	struct work work;

	start();
	work_begin(&work);
	unmap.head.session = client.session;
	ck_assert_int_eq(SIM_CALL(&client, MEM_UNMAP, &unmap), 0);
	launch(&work, "spin", MEM_ADDRESS, 0, 1000000);
	ck_assert(sim_client_sync(&client, work.slot, SIM_WAIT_MS));
	ck_assert_uint_eq(sim_client_ring(&client, work.slot)->error.kind, NPU_FAULT_ACCESS);
	/* Not even with an engine that never saw the map. */
	while (sim_client_event(&client, NPU_EVENT_ENGINE).status < 2)
		;
	launch(&work, "poke", MEM_ADDRESS, 1, 0);
	ck_assert(sim_client_sync(&client, work.slot, SIM_WAIT_MS));
	ck_assert_uint_eq(sim_client_ring(&client, work.slot)->error_count, 2);
	work_end(&work);
	stop();
}
END_TEST

START_TEST(test_reset_loses_sessions)
{
	struct npu_reset reset = { 0 };
	struct npu_query query = { 0 };
	struct work work;

	start();
	work_begin(&work);
	ck_assert_int_eq(SIM_CALL(&client, RESET, &reset), 0);
	ck_assert_int_eq(poll(&(struct pollfd){ .fd = client.life }, 1, SIM_WAIT_MS), 1);
	work_end(&work);
	work_begin(&work);
	launch(&work, "add", MEM_ADDRESS, 1, 0);
	ck_assert(sim_client_sync(&client, work.slot, SIM_WAIT_MS));
	ck_assert_uint_eq(work.words[0], 1);
	work_end(&work);
	ck_assert_int_eq(SIM_CALL(&client, QUERY, &query), 0);
	ck_assert_uint_eq(query.health, NPU_HEALTH_OK);
	stop();
}
END_TEST

static bool life_over(void *arg)
{
	struct pollfd life = { .fd = client.life };
	pid_t engine;

	(void)arg;
	engine = (pid_t)sim_client_counter(&client, client.session, NPU_COUNTER_ENGINE_PID);
	if (engine)
		kill(engine, SIGKILL);
	return poll(&life, 1, 0) == 1;
}

/* Engines that die one after the other: the board stops trying, and says so. */
START_TEST(test_session_is_lost)
{
	struct npu_ctx_create ctx = { 0 };
	struct npu_event event;
	uint32_t slot;

	start();
	sim_client_session(&client);
	sim_client_queue(&client, sim_client_context(&client), &slot);
	ck_assert(wait_until(life_over, NULL, SIM_WAIT_MS));
	do {
		event = sim_client_event(&client, NPU_EVENT_FAULT);
	} while (event.fault.kind != NPU_FAULT_LOST);
	/* Others are served. */
	sim_client_session_end(&client);
	sim_client_session(&client);
	ctx.head.session = client.session;
	ck_assert_int_eq(SIM_CALL(&client, CTX_CREATE, &ctx), 0);
	stop();
}
END_TEST

static long board_wakes(void)
{
	char path[64], *text, *at;
	long wakes;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)board.pid);
	text = read_file(path);
	ck_assert_ptr_nonnull(text);
	at = strstr(text, "\nvoluntary_ctxt_switches:");
	ck_assert_ptr_nonnull(at);
	wakes = strtol(strchr(at, ':') + 1, NULL, 10);
	free(text);
	return wakes;
}

/* True after two seconds in which the board woke three times at most, engines sleeping. */
static bool board_rests(void *arg)
{
	long before = board_wakes();
	struct pollfd nothing = { .fd = client.life };

	(void)arg;
	ck_assert_int_eq(poll(&nothing, 1, 2000), 0);
	return board_wakes() - before <= 3;
}

START_TEST(test_idle_board_rests)
{
	struct work work;

	start();
	work_begin(&work);
	ck_assert(wait_until(board_rests, NULL, SIM_WAIT_MS));
	/* And it is there at once when work comes. */
	launch(&work, "spin", MEM_ADDRESS, 0, 20000);
	ck_assert(sim_client_sync(&client, work.slot, SIM_WAIT_MS));
	ck_assert_uint_eq(sim_client_ring(&client, work.slot)->error.kind, NPU_FAULT_TIMEOUT);
	work_end(&work);
	stop();
}
END_TEST

START_TEST(test_sessions_are_counted)
{
	struct npu_query query = { 0 };
	struct work work;

	start();
	work_begin(&work);
	launch(&work, "spin", MEM_ADDRESS, 0, 300000);
	ck_assert(sim_client_sync(&client, work.slot, SIM_WAIT_MS));
	ck_assert_int_eq(SIM_CALL(&client, QUERY, &query), 0);
	ck_assert_uint_eq(query.engines, 1);
	ck_assert_uint_ge(query.busy_ns, 5000000u);
	ck_assert_uint_gt(query.util_permille, 0);
	ck_assert_uint_ge(sim_client_counter(&client, client.session, NPU_COUNTER_CORE_NS),
			  5000000u);
	work_end(&work);
	/* What a session used stays with the device. */
	query = (struct npu_query){ 0 };
	ck_assert_int_eq(SIM_CALL(&client, QUERY, &query), 0);
	ck_assert_uint_ge(query.busy_ns, 5000000u);
	ck_assert_uint_eq(query.engines, 0);
	stop();
}
END_TEST

int main(void)
{
	SRunner *runner;
	TCase *work = tcase_create("work");
	Suite *suite = suite_create("board_work");
	int failed;

	tcase_set_timeout(work, 120);
	tcase_add_test(work, test_kernel_runs);
	tcase_add_test(work, test_bad_image_refused);
	tcase_add_test(work, test_submit_and_wait);
	tcase_add_test(work, test_queue_again_at_once);
	tcase_add_test(work, test_queue_with_hung_kernel_destroyed);
	tcase_add_test(work, test_fault_is_told);
	tcase_add_test(work, test_killed_engine_is_replaced);
	tcase_add_test(work, test_hung_kernel_times_out);
	tcase_add_test(work, test_default_limit);
	tcase_add_test(work, test_stopped_engine_is_killed);
	tcase_add_test(work, test_abort_drops_all);
	tcase_add_test(work, test_pause_holds_work);
	tcase_add_test(work, test_stop_outlives_engine);
	tcase_add_test(work, test_unmapped_address_faults);
	tcase_add_test(work, test_reset_loses_sessions);
	tcase_add_test(work, test_session_is_lost);
	tcase_add_test(work, test_idle_board_rests);
	tcase_add_test(work, test_sessions_are_counted);
	suite_add_tcase(suite, work);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
