/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nursery: engines come quickly, are the board's own children, leave nothing behind, and end with
 * it.
 */

#include "config.h"
#include "sim/nursery.h"
#include "sim/sandbox.h"
#include "tests/lib/cage.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>

#define ENGINES 64

struct hello {
	uint32_t arg;
	int pid;
	int lone; /* no other thread id than 1 is known to glibc */
};

static uint32_t engine_arg = 7;

static int engine_hello(int control, void *arg)
{
	struct hello hello = { .arg = *(uint32_t *)arg, .pid = getpid() };
	pthread_mutexattr_t attributes;
	pthread_mutex_t mutex;

	/* A recursive mutex knows its owner by the thread id that glibc keeps. */
	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&mutex, &attributes);
	pthread_mutex_lock(&mutex);
	hello.lone = mutex.__data.__owner;
	pthread_mutex_unlock(&mutex);
	if (send(control, &hello, sizeof(hello), MSG_NOSIGNAL) != sizeof(hello))
		return 1;
	/* Until the board closes its end. */
	while (read(control, &hello, sizeof(hello)) > 0)
		;
	return 33;
}

static int engine_deaf(int control, void *arg)
{
	struct hello hello = { .arg = *(uint32_t *)arg, .pid = getpid() };

	send(control, &hello, sizeof(hello), MSG_NOSIGNAL);
	for (;;)
		__asm__ volatile(""
				 :
				 :
				 : "memory"); /* looks at nothing, like an engine in kernel code */
	return 0;
}

static int engine_greedy(int control, void *arg)
{
	uint64_t granted = 0;

	(void)arg;
	for (int i = 0; i < 256; i++) {
		if (mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			 0) == MAP_FAILED)
			break;
		granted++;
	}
	send(control, &granted, sizeof(granted), MSG_NOSIGNAL);
	return 0;
}

static uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000u + (uint64_t)t.tv_nsec / 1000u;
}

static int count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int count = 0;

	ck_assert_ptr_nonnull(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

static struct nursery *start(int (*engine_main)(int, void *))
{
	const struct nursery_config config = { .engine_main = engine_main,
					       .arg = &engine_arg,
					       .log = cage_log };
	struct nursery *nursery = NULL;

	ck_assert_int_eq(nursery_start(&config, &nursery), 0);
	return nursery;
}

static void assert_exited(siginfo_t info, int status)
{
	ck_assert_int_eq(info.si_code, CLD_EXITED);
	ck_assert_int_eq(info.si_status, status);
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

START_TEST(many_engines_leave_nothing)
{
	struct nursery_child children[ENGINES];
	uint64_t cost[ENGINES];
	int controls[ENGINES];
	struct nursery *nursery;
	int before, between;
	siginfo_t info = { 0 };

	cage_take_identity(_i);
	before = count_fds();
	nursery = start(engine_hello);
	between = count_fds();
	ck_assert_int_eq(between, before + 1);
	for (int i = 0; i < ENGINES; i++) {
		uint64_t begin = now_us();

		controls[i] = cage_spawn(nursery, &children[i]);
		cost[i] = now_us() - begin;
		ck_assert_int_eq(fcntl(children[i].pidfd, F_GETFD), FD_CLOEXEC);
	}
	qsort(cost, ENGINES, sizeof(cost[0]), compare);
	printf("spawn: median %llu us, worst %llu us\n", (unsigned long long)cost[ENGINES / 2],
	       (unsigned long long)cost[ENGINES - 1]);
	ck_assert_uint_lt(cost[ENGINES / 2], 100000);
	for (int i = 0; i < ENGINES; i++) {
		struct hello hello;

		cage_receive(controls[i], &hello, sizeof(hello));
		ck_assert_uint_eq(hello.arg, 7);
		if (nursery_layers(nursery) & SANDBOX_PID_NS) {
			ck_assert_int_eq(hello.pid, 1);
			ck_assert_int_eq(hello.lone, 1);
		}
		for (int j = 0; j < i; j++)
			ck_assert_int_ne(children[i].pid, children[j].pid);
	}
	for (int i = 0; i < ENGINES; i++) {
		close(controls[i]);
		assert_exited(cage_reap(&children[i]), 33);
	}
	ck_assert_int_eq(count_fds(), between);
	/* The nursery is the only child that is left. */
	ck_assert_int_eq(waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT), 0);
	ck_assert_int_eq(info.si_pid, 0);
	nursery_stop(nursery);
	ck_assert_int_eq(count_fds(), before);
	ck_assert_int_eq(waitid(P_ALL, 0, &info, WEXITED | WNOHANG), -1);
	ck_assert_int_eq(errno, ECHILD);
}
END_TEST

START_TEST(argument_is_the_one_at_the_start)
{
	struct nursery *nursery = start(engine_hello);
	struct nursery_child child;
	struct hello hello;
	int control;

	engine_arg = 99;
	control = cage_spawn(nursery, &child);
	cage_receive(control, &hello, sizeof(hello));
	ck_assert_uint_eq(hello.arg, 7);
	close(control);
	assert_exited(cage_reap(&child), 33);
	nursery_stop(nursery);
}
END_TEST

/* The board is a process of its own here; this one adopts what it leaves. */
START_TEST(engines_end_with_the_board)
{
	int report[2];
	pid_t board, pids[2];
	int status;

	ck_assert_int_eq(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
	ck_assert_int_eq(pipe2(report, O_CLOEXEC), 0);
	board = fork();
	if (board == 0) {
		struct nursery_child child;
		struct nursery *nursery;
		struct hello hello;
		int control;

		cage_take_identity(_i);
		nursery = start(engine_deaf);
		control = cage_spawn(nursery, &child);
		cage_receive(control, &hello, sizeof(hello));
		pids[0] = child.pid;
		pids[1] = nursery_pid(nursery);
		if (write(report[1], pids, sizeof(pids)) != sizeof(pids))
			_exit(1);
		for (;;)
			pause();
	}
	close(report[1]);
	ck_assert_int_eq(read(report[0], pids, sizeof(pids)), sizeof(pids));
	ck_assert_int_eq(kill(board, SIGKILL), 0);
	ck_assert_int_eq(waitpid(board, &status, 0), board);
	for (int i = 0; i < 2; i++) {
		int pidfd = (int)syscall(SYS_pidfd_open, pids[i], 0);
		struct pollfd ended = { .fd = pidfd, .events = POLLIN };

		ck_assert_int_ge(pidfd, 0);
		ck_assert_int_eq(poll(&ended, 1, CAGE_DEADLINE_MS), 1);
		ck_assert_int_eq(waitpid(pids[i], &status, 0), pids[i]);
		if (i == 0) {
			ck_assert(WIFSIGNALED(status));
			ck_assert_int_eq(WTERMSIG(status), SIGKILL);
		}
		close(pidfd);
	}
	close(report[0]);
}
END_TEST

START_TEST(dead_nursery_is_reported)
{
	struct nursery *nursery = start(engine_hello);
	struct nursery_child child, none;
	struct hello hello;
	int control = cage_spawn(nursery, &child);
	int fds = count_fds();

	ck_assert_int_eq(kill(nursery_pid(nursery), SIGKILL), 0);
	ck_assert_int_eq(nursery_spawn(nursery, control, &none), -EPIPE);
	ck_assert_int_eq(nursery_spawn(nursery, control, &none), -EPIPE);
	ck_assert_int_eq(count_fds(), fds - 1);
	/* The engine does not mind. */
	cage_receive(control, &hello, sizeof(hello));
	close(control);
	assert_exited(cage_reap(&child), 33);
	nursery_stop(nursery);
}
END_TEST

START_TEST(hung_nursery_is_given_up)
{
	int lines = 0;
	const struct nursery_config config = { .engine_main = engine_hello,
					       .arg = &engine_arg,
					       .timeout_ms = 300,
					       .log = cage_log,
					       .log_arg = &lines };
	struct nursery *nursery = NULL;
	struct nursery_child none;
	uint64_t begin;
	int pair[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	ck_assert_int_eq(nursery_start(&config, &nursery), 0);
	lines = 0;
	ck_assert_int_eq(kill(nursery_pid(nursery), SIGSTOP), 0);
	begin = now_us();
	ck_assert_int_eq(nursery_spawn(nursery, pair[1], &none), -ETIMEDOUT);
	ck_assert_uint_lt(now_us() - begin, 5000000);
	ck_assert_int_eq(lines, 1);
	ck_assert_int_eq(nursery_spawn(nursery, pair[1], &none), -EPIPE);
	nursery_stop(nursery);
}
END_TEST

START_TEST(each_live_engine_has_its_own_uid)
{
	const struct nursery_config config = { .engine_main = engine_hello,
					       .arg = &engine_arg,
					       .log = cage_log,
					       .uid = 700000,
					       .uid_count = 3 };
	struct nursery *nursery = NULL;
	struct nursery_child children[4];
	int controls[3], pair[2];
	struct hello hello;
	uid_t freed;

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	ck_assert_int_eq(nursery_start(&config, &nursery), 0);
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 3; i++) {
			controls[i] = cage_spawn(nursery, &children[i]);
			cage_receive(controls[i], &hello, sizeof(hello));
			ck_assert_uint_ge(children[i].uid, 700000);
			ck_assert_uint_lt(children[i].uid, 700003);
			for (int j = 0; j < i; j++)
				ck_assert_uint_ne(children[i].uid, children[j].uid);
		}
		ck_assert_int_eq(nursery_spawn(nursery, pair[1], &children[3]), -EUSERS);
		freed = children[1].uid;
		close(controls[1]);
		assert_exited(cage_reap(&children[1]), 33);
		controls[1] = cage_spawn(nursery, &children[1]);
		cage_receive(controls[1], &hello, sizeof(hello));
		ck_assert_uint_eq(children[1].uid, freed);
		for (int i = 0; i < 3; i++) {
			close(controls[i]);
			assert_exited(cage_reap(&children[i]), 33);
		}
	}
	nursery_stop(nursery);
}
END_TEST

START_TEST(private_memory_is_bounded)
{
	const struct nursery_config config = { .engine_main = engine_greedy,
					       .arg = &engine_arg,
					       .log = cage_log,
					       .data_limit = 64 << 20 };
	struct nursery *nursery = NULL;
	struct nursery_child child;
	uint64_t granted;
	int control;

	ck_assert_int_eq(nursery_start(&config, &nursery), 0);
	control = cage_spawn(nursery, &child);
	cage_receive(control, &granted, sizeof(granted));
	if (nursery_layers(nursery) & SANDBOX_DATA_LIMIT) {
		ck_assert_uint_gt(granted, 16);
		ck_assert_uint_lt(granted, 64);
	}
	close(control);
	assert_exited(cage_reap(&child), 0);
	nursery_stop(nursery);
}
END_TEST

START_TEST(no_fd_left_for_the_engine)
{
	struct nursery *nursery = start(engine_hello);
	struct nursery_child child;
	struct rlimit limit, tight;
	siginfo_t info = { 0 };
	int pair[2], last;

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	/* The lowest free number is where the pidfd would go. */
	last = dup(0);
	close(last);
	tight = limit;
	tight.rlim_cur = (rlim_t)last;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &tight), 0);
	ck_assert_int_eq(nursery_spawn(nursery, pair[1], &child), -EMFILE);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	/* No engine without a pidfd stays behind, and the nursery still works. */
	ck_assert_int_eq(waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT), 0);
	ck_assert_int_eq(info.si_pid, 0);
	ck_assert_int_eq(nursery_spawn(nursery, pair[1], &child), 0);
	close(pair[0]);
	close(pair[1]);
	cage_reap(&child);
	nursery_stop(nursery);
}
END_TEST

/* A request that the socket has no room for was not sent: the nursery is as good as before. */
START_TEST(full_socket_is_not_the_end)
{
	struct nursery_child child;
	struct nursery *nursery;
	int pair[2], socket = dup(0);

	/* The lowest free number is what the board's end gets. */
	close(socket);
	nursery = start(engine_hello);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	ck_assert_int_eq(kill(nursery_pid(nursery), SIGSTOP), 0);
	while (send(socket, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1)
		;
	ck_assert_int_eq(errno, EAGAIN);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(nursery_spawn(nursery, pair[1], &child), -EAGAIN);
	close(pair[0]);
	close(pair[1]);
	nursery_stop(nursery);
}
END_TEST

START_TEST(wrong_arguments)
{
	const struct nursery_config nothing = { .log = cage_log };
	struct nursery *nursery = (struct nursery *)1;
	struct nursery_child child;

	ck_assert_int_eq(nursery_start(&nothing, &nursery), -EINVAL);
	ck_assert_ptr_eq(nursery, (struct nursery *)1);
	nursery_stop(NULL);
	nursery = start(engine_hello);
	ck_assert_int_eq(nursery_spawn(nursery, -1, &child), -EBADF);
	ck_assert_int_eq(nursery_spawn(nursery, 1000, &child), -EBADF);
	nursery_stop(nursery);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("nursery");
	TCase *tcase = tcase_create("nursery");

	tcase_set_timeout(tcase, 60);
	tcase_add_loop_test(tcase, many_engines_leave_nothing, 0, 2);
	tcase_add_test(tcase, argument_is_the_one_at_the_start);
	tcase_add_loop_test(tcase, engines_end_with_the_board, 0, 2);
	tcase_add_test(tcase, dead_nursery_is_reported);
	tcase_add_test(tcase, hung_nursery_is_given_up);
	tcase_add_test(tcase, each_live_engine_has_its_own_uid);
	tcase_add_test(tcase, private_memory_is_bounded);
	tcase_add_test(tcase, no_fd_left_for_the_engine);
	tcase_add_test(tcase, full_socket_is_not_the_end);
	tcase_add_test(tcase, wrong_arguments);
	suite_add_tcase(suite, tcase);
	return cage_run_suite(suite);
}
