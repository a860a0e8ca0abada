/* SPDX-License-Identifier: Apache-2.0 */
/*
 * npuctl as a script sees it where npud does not answer: exit codes and messages that tell a
 * stopped daemon from one that refuses, hangs, or is something else; wrong command lines. Runs in
 * the top build directory, as make check does.
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ARGS_MAX 8

struct run {
	int code; /* exit code, or 128 + signal */
	uint64_t ms;
	char out[16384], err[4096];
};

static char dir[64], path[108];

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static void take(int fd, char *buf, size_t len)
{
	off_t size = lseek(fd, 0, SEEK_END);
	ssize_t n;

	ck_assert_int_ge(size, 0);
	ck_assert_uint_lt((size_t)size, len);
	n = pread(fd, buf, len - 1, 0);
	ck_assert_int_eq(n, size);
	buf[n] = '\0';
	close(fd);
}

static int temp_file(void)
{
	int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	ck_assert_int_ge(fd, 0);
	return fd;
}

/* ./npuctl WORD..., as `uid` when that is not 0; out_path for its output, or NULL to catch it. */
static struct run npuctl_as(uid_t uid, const char *out_path, const char *const *words)
{
	static struct run run;
	char *argv[ARGS_MAX + 2] = { "npuctl" };
	int out = out_path ? open(out_path, O_WRONLY | O_CLOEXEC) : temp_file();
	int err = temp_file(), status;
	uint64_t start = now_ms();
	pid_t pid;

	for (size_t i = 0; words[i]; i++) {
		ck_assert_uint_lt(i, ARGS_MAX);
		argv[i + 1] = (char *)words[i];
	}
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		dup2(out, STDOUT_FILENO);
		dup2(err, STDERR_FILENO);
		if (uid && (setgid(uid) != 0 || setuid(uid) != 0))
			_exit(126);
		execv("./npuctl", argv);
		_exit(127);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	memset(&run, 0, sizeof(run));
	run.ms = now_ms() - start;
	run.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	if (out_path)
		close(out);
	else
		take(out, run.out, sizeof(run.out));
	take(err, run.err, sizeof(run.err));
	return run;
}

#define npuctl(...) npuctl_as(0, NULL, (const char *const[]){ __VA_ARGS__, NULL })

/* One line, ours, with all of `part`. */
static void says(const struct run *run, int code, const char *part)
{
	ck_assert_msg(run->code == code, "exit %d, wanted %d: %s", run->code, code, run->err);
	ck_assert_msg(strstr(run->err, part) != NULL, "no \"%s\" in: %s", part, run->err);
	ck_assert_msg(strncmp(run->err, "npuctl: ", 8) == 0, "%s", run->err);
	ck_assert_msg(strchr(run->err, '\n') == run->err + strlen(run->err) - 1, "%s", run->err);
	ck_assert_str_eq(run->out, "");
}

static int listener(int type)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

	ck_assert_int_ge(fd, 0);
	memcpy(address.sun_path, path, strlen(path) + 1);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	ck_assert_int_eq(listen(fd, 8), 0);
	return fd;
}

static void setup(void)
{
	strcpy(dir, "/tmp/npud-npuctl.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/npud.sock", dir);
	ck_assert_int_eq(setenv("NPUD_SOCKET", path, 1), 0);
}

static void teardown(void)
{
	unlink(path);
	rmdir(dir);
}

START_TEST(test_usage)
{
	static const char *const wrong[][4] = {
		{ "frobnicate" }, { "status", "extra" },	{ "status", "--no-such-option" },
		{ "--socket" },	  { "--socket", "", "status" }, { "ps", "--json=yes" },
	};
	struct run run;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		run = npuctl_as(0, NULL, wrong[i]);
		ck_assert_msg(run.code == 2, "row %zu: exit %d", i, run.code);
		ck_assert_msg(strstr(run.err, "npuctl: ") != NULL, "row %zu: %s", i, run.err);
		ck_assert_str_eq(run.out, "");
	}
	run = npuctl_as(0, NULL, (const char *const[]){ NULL });
	ck_assert_int_eq(run.code, 2);
	ck_assert_ptr_nonnull(strstr(run.err, "usage: "));
}
END_TEST

START_TEST(test_help)
{
	static const char *const commands[] = { "status", "ps", "mem", "version" };
	struct run run = npuctl("--help");

	ck_assert_int_eq(run.code, 0);
	for (size_t i = 0; i < 4; i++) {
		ck_assert_ptr_nonnull(strstr(run.out, commands[i]));
		ck_assert_int_eq(npuctl(commands[i], "--help").code, 0);
	}
	run = npuctl("--version");
	ck_assert_int_eq(run.code, 0);
	ck_assert_int_eq(strncmp(run.out, "npuctl ", 7), 0);
}
END_TEST

/* Nobody has ever run there; and: somebody has, and died. Both exit 3, in other words. */
START_TEST(test_not_running)
{
	struct run run = npuctl("status");
	char first[sizeof(run.err)];

	says(&run, 3, path);
	strcpy(first, run.err);
	close(listener(SOCK_SEQPACKET));
	run = npuctl("ps", "--json");
	says(&run, 3, path);
	ck_assert_str_ne(run.err, first);
}
END_TEST

START_TEST(test_socket_option)
{
	struct run run = npuctl("--socket", "/nonexistent/npud.sock", "mem");

	says(&run, 3, "/nonexistent/npud.sock");
}
END_TEST

/* The path leads to what is no npud. */
START_TEST(test_other_things)
{
	char longer[200];
	int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	struct run run;

	ck_assert_int_ge(fd, 0);
	close(fd);
	run = npuctl("status");
	ck_assert_int_ne(run.code, 0);
	says(&run, run.code, path);
	unlink(path);

	fd = listener(SOCK_STREAM);
	run = npuctl("status");
	says(&run, 1, path);
	close(fd);

	memset(longer, 'x', sizeof(longer) - 1);
	longer[0] = '/';
	longer[sizeof(longer) - 1] = '\0';
	run = npuctl("--socket", longer, "status");
	says(&run, 1, "");
}
END_TEST

START_TEST(test_denied)
{
	int fd;
	struct run run;

	if (geteuid() != 0)
		return; /* somebody else is needed who may not connect */
	ck_assert_int_eq(chmod(dir, 0777), 0);
	fd = listener(SOCK_SEQPACKET);
	ck_assert_int_eq(chmod(path, 0600), 0);
	run = npuctl_as(65534, NULL, (const char *const[]){ "status", NULL });
	/* 126, 127: that user cannot even reach the build directory */
	if (run.code < 126)
		says(&run, 4, path);
	close(fd);
}
END_TEST

/* It takes connections, and then says nothing, as a stopped process does. */
START_TEST(test_silent)
{
	int fd = listener(SOCK_SEQPACKET);
	struct run run = npuctl("status");

	says(&run, 5, "");
	ck_assert_uint_ge(run.ms, 1900);
	ck_assert_uint_lt(run.ms, 8000);
	close(fd);
}
END_TEST

/* It takes the connection and drops it; it answers with what is no frame. */
START_TEST(test_nonsense)
{
	static const char junk[] = "HTTP/1.0 400 Bad Request";
	int fd = listener(SOCK_SEQPACKET);
	struct run run;
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		int first = accept(fd, NULL, NULL), second;
		char buf[65536];

		close(first);
		second = accept(fd, NULL, NULL);
		while (recv(second, buf, sizeof(buf), 0) > 0)
			send(second, junk, sizeof(junk), MSG_NOSIGNAL);
		_exit(0);
	}
	close(fd);
	run = npuctl("status");
	says(&run, 1, "");
	run = npuctl("status");
	says(&run, 1, "");
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}
END_TEST

START_TEST(test_full_disk)
{
	struct run run = npuctl_as(0, "/dev/full", (const char *const[]){ "--help", NULL });

	ck_assert_int_eq(run.code, 1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("npuctl without npud");
	TCase *tcase = tcase_create("npuctl");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_set_timeout(tcase, 30);
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, test_usage);
	tcase_add_test(tcase, test_help);
	tcase_add_test(tcase, test_not_running);
	tcase_add_test(tcase, test_socket_option);
	tcase_add_test(tcase, test_other_things);
	tcase_add_test(tcase, test_denied);
	tcase_add_test(tcase, test_silent);
	tcase_add_test(tcase, test_nonsense);
	tcase_add_test(tcase, test_full_disk);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
