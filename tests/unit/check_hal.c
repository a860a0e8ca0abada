/* SPDX-License-Identifier: Apache-2.0 */
/*
 * daemon/hal against a fake board: calls and fds, events, time limits and late answers, what a
 * board must not do, loss and return; and the ioctl transport's errors on files that are no device.
 */
#include "daemon/hal/transport.h"
#include "tests/lib/fake_board.h"
#include "tests/lib/npud_proc.h"
#include "tests/lib/runner.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/util/log.h"

static char dir[64];
static struct loop *loop;
static struct hal_device *device;
static struct loop_timer *guard;
static unsigned int ready, lost, events, done, timeouts;
static int lost_error, last_result;
static char lost_text[512];
static struct npu_event last_event;

/* What run_until() waits for. */
static unsigned int *counter, wanted;

static void check_wanted(void)
{
	if (counter && *counter >= wanted)
		loop_stop(loop);
}

static void on_ready(struct hal_device *from, void *arg)
{
	ck_assert_ptr_eq(arg, &loop);
	ck_assert_int_eq(hal_device_state(from), HAL_READY);
	ready++;
	check_wanted();
}

static void on_lost(struct hal_device *from, int error, const char *text, void *arg)
{
	(void)from;
	(void)arg;
	lost++;
	lost_error = error;
	strncpy(lost_text, text, sizeof(lost_text) - 1);
	check_wanted();
}

static void on_event(struct hal_device *from, const struct npu_event *event, void *arg)
{
	(void)from;
	(void)arg;
	events++;
	last_event = *event;
	check_wanted();
}

static void on_guard(void *arg)
{
	(void)arg;
	loop_stop(loop);
}

/* Runs the loop till the counter has the value; fails the test after 5 s. */
static void run_until(unsigned int *what, unsigned int value)
{
	counter = what;
	wanted = value;
	loop_timer_set(guard, 5000);
	if (*what < value)
		loop_run(loop);
	loop_timer_stop(guard);
	ck_assert_uint_ge(*what, value);
}

static void setup(void)
{
	log_open(LOG_LEVEL_ERROR);
	strcpy(dir, "/tmp/check_hal.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	ck_assert_int_eq(loop_new(&loop), 0);
	ck_assert_int_eq(loop_timer_new(loop, on_guard, NULL, &guard), 0);
}

static void teardown(void)
{
	char path[128];

	hal_device_free(device);
	loop_timer_free(guard);
	loop_free(loop);
	snprintf(path, sizeof(path), "%s/npu-sim-0.log", dir);
	unlink(path);
	rmdir(dir);
}

static void open_device(const char *path, uint64_t timeout_ms)
{
	static const struct hal_device_fns fns = { on_ready, on_lost, on_event };
	struct hal_sim_config sim = { .runtime_dir = dir, .memory = 1u << 30, .attach_only = true };

	ck_assert_int_eq(hal_device_new(loop, 0, path, &sim, timeout_ms, &fns, &loop, &device), 0);
}

static int got_fd = -1;

static void on_done(struct hal_job *job)
{
	done++;
	last_result = job->result;
	if (job->nr == HAL_CALL(MEM_ALLOC) && job->owner)
		got_fd = hal_take_fd(&((struct npu_mem_alloc *)job->arg)->fd);
	check_wanted();
}

static void on_timeout(struct hal_job *job)
{
	(void)job;
	timeouts++;
	check_wanted();
}

static int submit(unsigned int nr, unsigned int flags, void *owner)
{
	struct hal_job *job = hal_job_new(nr, on_done, owner);
	int r;

	ck_assert_ptr_nonnull(job);
	job->timeout = on_timeout;
	job->flags = flags;
	r = hal_submit(device, job);
	if (r < 0)
		hal_job_free(job);
	return r;
}

START_TEST(opens_and_cleans_up)
{
	struct fake_config config = { .major = NPU_UAPI_MAJOR, .orphans = 7 };
	struct fake_board *board = fake_board_start(dir, &config);

	open_device(NULL, 1000);
	ck_assert_int_eq(hal_device_state(device), HAL_OPENING);
	ck_assert_int_eq(submit(HAL_CALL(QUERY), 0, NULL), -ENODEV);
	run_until(&ready, 1);
	ck_assert_uint_eq(fake_board_orphans(board), 0);
	ck_assert_str_eq(hal_device_info(device)->name, "fake");
	ck_assert_uint_eq(hal_device_info(device)->cores, 3);
	ck_assert_str_eq(hal_device_version(device)->name, "fake board 1");
	ck_assert_uint_eq(hal_device_next_call(device), 1);
	ck_assert_uint_eq(hal_device_next_call(device), 2);
	fake_board_stop(board);
}
END_TEST

START_TEST(refuses_another_major)
{
	struct fake_config config = { .major = NPU_UAPI_MAJOR + 6 };
	struct fake_board *board = fake_board_start(dir, &config);

	open_device(NULL, 1000);
	run_until(&lost, 1);
	ck_assert_int_eq(lost_error, -EPROTO);
	ck_assert_ptr_nonnull(strstr(lost_text, "7.9"));
	ck_assert_ptr_nonnull(strstr(lost_text, "1.0"));
	ck_assert_ptr_nonnull(strstr(lost_text, "fake board 1"));
	ck_assert_int_eq(hal_device_state(device), HAL_LOST);
	fake_board_stop(board);
}
END_TEST

START_TEST(says_that_nobody_listens)
{
	open_device(NULL, 1000);
	run_until(&lost, 1);
	ck_assert_int_eq(lost_error, -ENOENT);
	ck_assert_ptr_nonnull(strstr(lost_text, "npu-sim@0.service"));
}
END_TEST

static int board_fd;

static void give_fd(struct fake_board *board, struct fake_call *call, void *arg)
{
	struct npu_mem_alloc *alloc = call->arg;

	(void)board;
	(void)arg;
	ck_assert_uint_eq(call->head->nr, HAL_CALL(MEM_ALLOC));
	ck_assert_uint_eq(alloc->head.size, sizeof(*alloc));
	ck_assert_int_eq(alloc->fd, -1);
	alloc->fd = 1; /* of two: the other is closed */
	call->fds[0] = 2;
	call->fds[1] = board_fd;
	call->nfds = 2;
}

START_TEST(turns_indexes_into_fds)
{
	struct fake_config config = { .major = NPU_UAPI_MAJOR, .call = give_fd };
	struct fake_board *board = fake_board_start(dir, &config);
	struct stat a, b;
	int fds[2], before;

	ck_assert_int_eq(pipe(fds), 0);
	board_fd = fds[0];
	open_device(NULL, 1000);
	run_until(&ready, 1);
	before = fds_of(getpid());
	ck_assert_int_eq(submit(HAL_CALL(MEM_ALLOC), 0, &loop), 0);
	run_until(&done, 1);
	ck_assert_int_eq(last_result, 0);
	ck_assert_int_eq(fstat(got_fd, &a), 0);
	ck_assert_int_eq(fstat(fds[0], &b), 0);
	ck_assert_uint_eq(a.st_ino, b.st_ino);
	ck_assert_int_eq(fcntl(got_fd, F_GETFD), FD_CLOEXEC);
	close(got_fd);
	/* what nobody takes is closed with the job */
	ck_assert_int_eq(submit(HAL_CALL(MEM_ALLOC), 0, NULL), 0);
	run_until(&done, 2);
	ck_assert_int_eq(fds_of(getpid()), before);
	fake_board_stop(board);
	close(fds[0]);
	close(fds[1]);
}
END_TEST

/* Ways in which a board breaks the rules of the transport: each costs it the connection. */
static unsigned int trick;

static void cheat(struct fake_board *board, struct fake_call *call, void *arg)
{
	struct npu_mem_alloc *alloc = call->arg;

	(void)board;
	(void)arg;
	call->reply = *call->head;
	call->reply.type = NPU_MSG_REPLY;
	switch (trick) {
	case 0:
		call->reply.magic ^= 1;
		break;
	case 1:
		call->reply.id++;
		break;
	case 2:
		call->reply.nr++;
		break;
	case 3:
		call->reply.type = 9;
		break;
	case 4:
		call->reply.bytes++;
		break;
	case 5:
		call->reply.result = 3;
		break;
	case 6:
		alloc->fd = 4; /* no such index */
		break;
	case 7: /* a good result without the struct that has the fd slot */
		call->cut = call->head->bytes;
		call->reply.bytes = 0;
		break;
	case 8:
		alloc->fd = INT32_MAX;
		call->fds[0] = 2;
		call->nfds = 1;
		break;
	}
}

START_TEST(drops_a_board_that_cheats)
{
	struct fake_config config = { .major = NPU_UAPI_MAJOR, .call = cheat };
	struct fake_board *board;
	int before;

	trick = (unsigned int)_i;
	board = fake_board_start(dir, &config);
	open_device(NULL, 1000);
	run_until(&ready, 1);
	before = fds_of(getpid());
	ck_assert_int_eq(submit(HAL_CALL(MEM_ALLOC), 0, NULL), 0);
	run_until(&done, 1);
	ck_assert_int_eq(last_result, -ENODEV);
	run_until(&lost, 1);
	/* it is opened again, with nothing leaked */
	run_until(&ready, 2);
	ck_assert_int_eq(fds_of(getpid()), before);
	fake_board_stop(board);
}
END_TEST

static void fail_call(struct fake_board *board, struct fake_call *call, void *arg)
{
	(void)board;
	(void)arg;
	call->result = -ENOSPC;
	call->cut = call->head->bytes;
	call->reply = *call->head;
	call->reply.type = NPU_MSG_REPLY;
	call->reply.result = -ENOSPC;
	call->reply.bytes = 0;
}

START_TEST(forwards_errors)
{
	struct fake_config config = { .major = NPU_UAPI_MAJOR, .call = fail_call };
	struct fake_board *board = fake_board_start(dir, &config);

	open_device(NULL, 1000);
	run_until(&ready, 1);
	ck_assert_int_eq(submit(HAL_CALL(MEM_ALLOC), 0, NULL), 0);
	run_until(&done, 1);
	ck_assert_int_eq(last_result, -ENOSPC);
	ck_assert_uint_eq(lost, 0);
	ck_assert_ptr_null(hal_job_new(0x7f, on_done, NULL));
	ck_assert_ptr_null(hal_job_new(0x7fffffff, on_done, NULL));
	fake_board_stop(board);
}
END_TEST

static const int answers[] = { -ENODEV, -ECANCELED, -EPIPE, -ENOENT };

static void answer_with(struct fake_board *board, struct fake_call *call, void *arg)
{
	(void)board;
	call->result = *(const int *)arg;
}

/* What a device says of one call is no word about the connection, whatever it says. */
START_TEST(keeps_a_device_that_refuses)
{
	struct fake_config config = { .major = NPU_UAPI_MAJOR,
				      .call = answer_with,
				      .arg = (void *)&answers[_i] };
	struct fake_board *board = fake_board_start(dir, &config);

	open_device(NULL, 1000);
	run_until(&ready, 1);
	for (unsigned int i = 1; i <= 3; i++) {
		ck_assert_int_eq(submit(HAL_CALL(COUNTERS), 0, NULL), 0);
		run_until(&done, i);
		ck_assert_int_eq(last_result, answers[_i]);
	}
	ck_assert_uint_eq(lost, 0);
	ck_assert_int_eq(hal_device_state(device), HAL_READY);
	ck_assert_uint_eq(fake_board_connections(board), 1);
	fake_board_stop(board);
}
END_TEST

static unsigned int events_at_done;

static void on_done_after_event(struct hal_job *job)
{
	events_at_done = events;
	on_done(job);
}

static void event_first(struct fake_board *board, struct fake_call *call, void *arg)
{
	struct npu_event event = { .type = NPU_EVENT_FAULT, .size = sizeof(event), .session = 5 };

	(void)call;
	(void)arg;
	memset(event.fault.kernel, 'k', sizeof(event.fault.kernel)); /* no end */
	fake_board_event(board, &event);
}

START_TEST(keeps_the_order_of_events)
{
	struct fake_config config = { .major = NPU_UAPI_MAJOR, .call = event_first };
	struct fake_board *board = fake_board_start(dir, &config);
	struct hal_job *job;

	open_device(NULL, 1000);
	run_until(&ready, 1);
	job = hal_job_new(HAL_CALL(COUNTERS), on_done_after_event, NULL);
	ck_assert_int_eq(hal_submit(device, job), 0);
	run_until(&done, 1);
	ck_assert_uint_eq(events_at_done, 1);
	ck_assert_uint_eq(last_event.session, 5);
	ck_assert_uint_eq(strlen(last_event.fault.kernel), NPU_NAME_MAX - 1);
	fake_board_stop(board);
}
END_TEST

static _Atomic bool hold;

static bool released(void *arg)
{
	(void)arg;
	return !atomic_load(&hold);
}

static void hold_call(struct fake_board *board, struct fake_call *call, void *arg)
{
	(void)board;
	(void)call;
	(void)arg;
	wait_for(released, NULL, 10000);
}

START_TEST(times_out_and_heals)
{
	struct fake_config config = { .major = NPU_UAPI_MAJOR, .call = hold_call };
	struct fake_board *board = fake_board_start(dir, &config);

	atomic_store(&hold, true);
	open_device(NULL, 100);
	run_until(&ready, 1);
	ck_assert_int_eq(submit(HAL_CALL(COUNTERS), 0, NULL), 0);
	ck_assert_int_eq(submit(HAL_CALL(COUNTERS), 0, NULL), 0);
	run_until(&timeouts, 2);
	ck_assert_uint_eq(done, 0);
	ck_assert(hal_device_unresponsive(device));
	ck_assert_int_eq(submit(HAL_CALL(COUNTERS), 0, NULL), -ETIMEDOUT);
	ck_assert_int_eq(submit(HAL_CALL(COUNTERS), HAL_JOB_ALWAYS, NULL), 0);
	atomic_store(&hold, false);
	run_until(&done, 3);
	ck_assert(!hal_device_unresponsive(device));
	ck_assert_uint_eq(timeouts, 2);
	ck_assert_uint_eq(lost, 0);
	ck_assert_int_eq(submit(HAL_CALL(COUNTERS), 0, NULL), 0);
	run_until(&done, 4);
	fake_board_stop(board);
}
END_TEST

static void never(struct fake_board *board, struct fake_call *call, void *arg)
{
	(void)board;
	(void)arg;
	call->silent = true;
}

START_TEST(ends_jobs_when_it_is_freed)
{
	struct fake_config config = { .major = NPU_UAPI_MAJOR, .call = never };
	struct fake_board *board = fake_board_start(dir, &config);
	uint64_t begin;

	open_device(NULL, 10000);
	run_until(&ready, 1);
	for (unsigned int i = 0; i < 20; i++)
		ck_assert_int_eq(submit(HAL_CALL(COUNTERS), 0, NULL), 0);
	begin = loop_now_ms();
	hal_device_free(device);
	device = NULL;
	ck_assert_uint_lt(loop_now_ms() - begin, 900);
	ck_assert_uint_eq(done, 20);
	ck_assert_int_eq(last_result, -ENODEV);
	fake_board_stop(board);
}
END_TEST

START_TEST(comes_back_after_a_loss)
{
	struct fake_config config = { .major = NPU_UAPI_MAJOR, .call = never };
	struct fake_board *board = fake_board_start(dir, &config);

	open_device(NULL, 10000);
	run_until(&ready, 1);
	for (unsigned int i = 0; i < 5; i++)
		ck_assert_int_eq(submit(HAL_CALL(COUNTERS), 0, NULL), 0);
	fake_board_hang_up(board);
	run_until(&lost, 1);
	ck_assert_int_eq(lost_error, -ENODEV);
	run_until(&done, 5);
	ck_assert_int_eq(last_result, -ENODEV);
	run_until(&ready, 2);
	ck_assert_uint_eq(fake_board_connections(board), 2);
	fake_board_stop(board);
}
END_TEST

START_TEST(ioctl_refuses_what_is_no_device)
{
	struct hal_transport *transport;
	struct npu_query query = { .head.size = sizeof(query) };
	struct npu_session_create create = { .head.size = sizeof(create), .fd_slab = 5 };
	struct npu_event event;
	int result = 0;

	ck_assert_int_eq(hal_ioctl_open("/dev/npu63-not", &transport), -ENOENT);
	ck_assert_int_eq(hal_ioctl_open("/", &transport), -EISDIR);
	ck_assert_int_eq(hal_ioctl_open("/etc/passwd", &transport), -ENOTTY);
	/* a device, but not ours: every call gives its error, and no fd */
	ck_assert_int_eq(hal_ioctl_open("/dev/null", &transport), 0);
	ck_assert_int_eq(transport->ops->call(transport, HAL_CALL(QUERY),
					      hal_call_find(HAL_CALL(QUERY)), &query, &result),
			 0);
	ck_assert_int_eq(result, -ENOTTY);
	ck_assert_int_eq(transport->ops->call(transport, HAL_CALL(SESSION_CREATE),
					      hal_call_find(HAL_CALL(SESSION_CREATE)), &create,
					      &result),
			 0);
	ck_assert_int_eq(result, -ENOTTY);
	ck_assert_int_eq(create.fd_slab, -1);
	ck_assert_int_eq(create.fd_life, -1);
	ck_assert_int_eq(transport->ops->event(transport, &event), -ENODEV);
	ck_assert_int_ge(transport->ops->poll_fd(transport), 0);
	transport->ops->close(transport);
	open_device("/dev/npu63", 100);
	run_until(&lost, 1);
	ck_assert_int_eq(lost_error, -ENOENT);
	ck_assert_ptr_nonnull(strstr(lost_text, "/dev/npu63"));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("hal");
	TCase *tc = tcase_create("hal");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 30);
	tcase_add_test(tc, opens_and_cleans_up);
	tcase_add_test(tc, refuses_another_major);
	tcase_add_test(tc, says_that_nobody_listens);
	tcase_add_test(tc, turns_indexes_into_fds);
	tcase_add_loop_test(tc, drops_a_board_that_cheats, 0, 9);
	tcase_add_test(tc, forwards_errors);
	tcase_add_loop_test(tc, keeps_a_device_that_refuses, 0, sizeof(answers) / sizeof(answers[0]));
	tcase_add_test(tc, keeps_the_order_of_events);
	tcase_add_test(tc, times_out_and_heals);
	tcase_add_test(tc, ends_jobs_when_it_is_freed);
	tcase_add_test(tc, comes_back_after_a_loss);
	tcase_add_test(tc, ioctl_refuses_what_is_no_device);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
