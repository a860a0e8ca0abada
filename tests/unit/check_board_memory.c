/* SPDX-License-Identifier: Apache-2.0 */
/* The board's loop, its releaser, and memory objects. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/board_loop.h"
#include "sim/board_memory.h"
#include "sim/board_release.h"
#include "sim/sim_fd.h"

static struct board_loop *loop;
static struct board_release *release;

static void setup(void)
{
	ck_assert_int_eq(board_loop_new(&loop), 0);
	ck_assert_int_eq(board_release_new(loop, &release), 0);
}

static void teardown(void)
{
	board_release_free(release);
	board_loop_free(loop);
}

static void turn_until(const bool *flag)
{
	uint64_t deadline = sim_now() + 10000 * SIM_MS;

	while (!*flag && sim_now() < deadline)
		ck_assert_int_eq(board_loop_turn(loop, deadline), 0);
	ck_assert(*flag);
}

/* ---- loop ---------------------------------------------------------------------------------- */

static struct board_source sources[2];
static unsigned int calls;

static void delete_both(struct board_source *source, uint32_t events)
{
	(void)source;
	(void)events;
	calls++;
	for (unsigned int i = 0; i < 2; i++)
		board_loop_delete(loop, &sources[i]);
}

/* What a callback deletes is not called, though its event was there. */
START_TEST(test_deleted_source_is_silent)
{
	for (unsigned int i = 0; i < 2; i++) {
		sources[i].fd = eventfd(1, EFD_CLOEXEC);
		sources[i].ready = delete_both;
		ck_assert_int_eq(board_loop_add(loop, &sources[i], EPOLLIN), 0);
	}
	ck_assert_int_eq(board_loop_turn(loop, sim_now()), 0);
	ck_assert_int_eq(board_loop_turn(loop, sim_now()), 0);
	ck_assert_uint_eq(calls, 1);
	for (unsigned int i = 0; i < 2; i++)
		close(sources[i].fd);
}
END_TEST

START_TEST(test_loop_keeps_deadline)
{
	uint64_t begin = sim_now();

	ck_assert_int_eq(board_loop_turn(loop, begin + 20 * SIM_MS), 0);
	ck_assert_uint_ge(sim_now() - begin, 20 * SIM_MS);
}
END_TEST

/* ---- releaser ------------------------------------------------------------------------------ */

struct reached {
	struct board_job mark;
	bool yes;
};

static void mark_reached(struct board_job *mark)
{
	sim_container(mark, struct reached, mark)->yes = true;
}

static blkcnt_t blocks(int fd)
{
	struct stat st;

	ck_assert_int_eq(fstat(fd, &st), 0);
	return st.st_blocks;
}

START_TEST(test_jobs_in_order)
{
	const uint64_t bytes = 4u << 20;
	struct reached reached = { .yes = false };
	int fd, keep;

	ck_assert_int_eq(board_memory_file("test", bytes, &fd), 0);
	keep = dup(fd);
	board_release_populate(release, &reached.mark, fd, bytes, mark_reached);
	turn_until(&reached.yes);
	ck_assert_int_eq(blocks(keep), (blkcnt_t)bytes / 512);
	reached.yes = false;
	board_release_range(release, fd, 0, bytes / 2);
	board_release_mark(release, &reached.mark, mark_reached);
	turn_until(&reached.yes);
	ck_assert_int_eq(blocks(keep), (blkcnt_t)bytes / 512 / 2);
	reached.yes = false;
	board_release_populate(release, &reached.mark, fd, bytes, mark_reached);
	turn_until(&reached.yes);
	reached.yes = false;
	board_release_file(release, &reached.mark, fd, bytes, mark_reached);
	turn_until(&reached.yes);
	ck_assert_int_eq(blocks(keep), 0);
	ck_assert_int_eq(fcntl(fd, F_GETFD), -1);
	close(keep);
}
END_TEST

/* What is cancelled is not done, and one that has begun ends soon. */
START_TEST(test_populate_is_cancelled)
{
	const uint64_t bytes = 1ull << 40;
	struct reached first = { .yes = false }, last = { .yes = false };
	int fds[2];

	for (unsigned int i = 0; i < 2; i++)
		ck_assert_int_eq(board_memory_file("test", bytes, &fds[i]), 0);
	board_release_populate(release, &first.mark, fds[0], bytes, mark_reached);
	board_release_populate(release, &last.mark, fds[1], bytes, mark_reached);
	ck_assert_uint_gt(board_release_backlog(release), bytes);
	for (unsigned int i = 0; i < 2; i++) {
		struct reached *job = i ? &first : &last;

		if (!board_release_cancel(release, &job->mark))
			turn_until(&job->yes);
	}
	ck_assert_uint_eq(board_release_backlog(release), 0);
	for (unsigned int i = 0; i < 2; i++) {
		ck_assert_int_lt(blocks(fds[i]), (1 << 30) / 512);
		close(fds[i]);
	}
}
END_TEST

START_TEST(test_free_runs_what_is_left)
{
	struct reached reached = { .yes = false };
	struct board_release *own;
	int fds[2];

	ck_assert_int_eq(board_release_new(loop, &own), 0);
	ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
	board_release_close(own, fds[1]);
	board_release_mark(own, &reached.mark, mark_reached);
	board_release_free(own);
	ck_assert(reached.yes);
	ck_assert_int_eq(poll(&(struct pollfd){ .fd = fds[0] }, 1, 0), 1);
	close(fds[0]);
}
END_TEST

/* ---- memory -------------------------------------------------------------------------------- */

static void memory_retired(void *arg)
{
	*(bool *)arg = true;
}

START_TEST(test_memory_is_sealed)
{
	const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
	struct board_memory *memory;
	bool retired = false;

	ck_assert_int_eq(board_memory_new(release, "test", 65536, &memory), 0);
	ck_assert_int_eq(fcntl(memory->fd, F_GET_SEALS) & seals, seals);
	ck_assert_int_ne(fcntl(memory->fd, F_GETFD) & FD_CLOEXEC, 0);
	ck_assert_int_eq(ftruncate(memory->fd, 0), -1);
	ck_assert_int_eq(ftruncate(memory->fd, 1u << 20), -1);
	board_memory_retire(memory, memory_retired, &retired);
	turn_until(&retired);
}
END_TEST

/* Freed while it is populated: its pages come back, also those of the piece in progress. */
START_TEST(test_memory_goes_while_populated)
{
	struct board_memory *memory;
	struct board_release *fill;
	bool retired = false;
	int keep;

	ck_assert_int_eq(board_release_new(loop, &fill), 0);
	ck_assert_int_eq(board_memory_new(release, "test", 1ull << 40, &memory), 0);
	keep = dup(memory->fd);
	board_memory_populate(memory, fill);
	while (!blocks(keep))
		ck_assert_int_eq(board_loop_turn(loop, sim_now()), 0);
	board_memory_retire(memory, memory_retired, &retired);
	turn_until(&retired);
	ck_assert_int_eq(blocks(keep), 0);
	close(keep);
	board_release_free(fill);
}
END_TEST

/* Retired by its maker, held by a message: it goes with the message. */
START_TEST(test_memory_lives_with_last_reference)
{
	struct board_memory *memory;
	bool retired = false;
	char *map;

	ck_assert_int_eq(board_memory_new(release, "test", 65536, &memory), 0);
	map = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_SHARED, memory->fd, 0);
	ck_assert_ptr_ne(map, MAP_FAILED);
	map[0] = 1;
	board_memory_ref(memory);
	board_memory_retire(memory, memory_retired, &retired);
	ck_assert_int_eq(board_loop_turn(loop, sim_now()), 0);
	ck_assert(!retired);
	ck_assert_int_eq(map[0], 1);
	board_memory_unref(memory);
	turn_until(&retired);
	ck_assert_int_eq(map[0], 0);
	munmap(map, 65536);
	board_memory_unref(NULL);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("board_memory");
	TCase *tcase = tcase_create("all");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 60);
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, test_deleted_source_is_silent);
	tcase_add_test(tcase, test_loop_keeps_deadline);
	tcase_add_test(tcase, test_jobs_in_order);
	tcase_add_test(tcase, test_populate_is_cancelled);
	tcase_add_test(tcase, test_free_runs_what_is_left);
	tcase_add_test(tcase, test_memory_is_sealed);
	tcase_add_test(tcase, test_memory_goes_while_populated);
	tcase_add_test(tcase, test_memory_lives_with_last_reference);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
