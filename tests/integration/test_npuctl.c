/* SPDX-License-Identifier: Apache-2.0 */
/*
 * npuctl as a script sees it where npud does not answer: exit codes and messages that tell a
 * stopped daemon from one that refuses, hangs, or is something else; wrong command lines. Runs in
 * the top build directory, as make check does.
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/npuctl_run.h"

static char dir[64], path[108];

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
	const struct npuctl_run *run;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		run = npuctl_as(0, NULL, wrong[i]);
		ck_assert_msg(run->code == NPUCTL_USAGE, "row %zu: exit %d", i, run->code);
		ck_assert_msg(strstr(run->err, "npuctl: ") != NULL, "row %zu: %s", i, run->err);
		ck_assert_str_eq(run->out, "");
	}
	run = npuctl_as(0, NULL, (const char *const[]){ NULL });
	ck_assert_int_eq(run->code, NPUCTL_USAGE);
	ck_assert_ptr_nonnull(strstr(run->err, "usage: "));
}
END_TEST

START_TEST(test_help)
{
	static const char *const commands[] = { "status", "ps", "mem", "version" };
	const struct npuctl_run *run = npuctl("--help");

	ck_assert_int_eq(run->code, 0);
	for (size_t i = 0; i < 4; i++)
		ck_assert_ptr_nonnull(strstr(run->out, commands[i]));
	for (size_t i = 0; i < 4; i++)
		ck_assert_int_eq(npuctl(commands[i], "--help")->code, 0);
	run = npuctl("--version");
	ck_assert_int_eq(run->code, 0);
	ck_assert_int_eq(strncmp(run->out, "npuctl ", 7), 0);
}
END_TEST

/* Nobody has ever run there; and: somebody has, and died. Both exit 3, in other words. */
START_TEST(test_not_running)
{
	const struct npuctl_run *run = npuctl("status");
	char first[sizeof(run->err)];

	npuctl_says(run, NPUCTL_NOT_RUNNING, path);
	strcpy(first, run->err);
	close(listener(SOCK_SEQPACKET));
	run = npuctl("ps", "--json");
	npuctl_says(run, NPUCTL_NOT_RUNNING, path);
	ck_assert_str_ne(run->err, first);
}
END_TEST

START_TEST(test_socket_option)
{
	const struct npuctl_run *run = npuctl("--socket", "/nonexistent/npud.sock", "mem");

	npuctl_says(run, NPUCTL_NOT_RUNNING, "/nonexistent/npud.sock");
}
END_TEST

/* The path leads to what is no npud. */
START_TEST(test_other_things)
{
	char longer[200];
	int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	const struct npuctl_run *run;

	ck_assert_int_ge(fd, 0);
	close(fd);
	run = npuctl("status");
	ck_assert_int_ne(run->code, 0);
	npuctl_says(run, run->code, path);
	unlink(path);

	fd = listener(SOCK_STREAM);
	run = npuctl("status");
	npuctl_says(run, NPUCTL_FAILED, path);
	close(fd);

	memset(longer, 'x', sizeof(longer) - 1);
	longer[0] = '/';
	longer[sizeof(longer) - 1] = '\0';
	run = npuctl("--socket", longer, "status");
	npuctl_says(run, NPUCTL_FAILED, "");
}
END_TEST

START_TEST(test_denied)
{
	int fd;
	const struct npuctl_run *run;

	if (geteuid() != 0)
		return; /* somebody else is needed who may not connect */
	ck_assert_int_eq(chmod(dir, 0777), 0);
	fd = listener(SOCK_SEQPACKET);
	ck_assert_int_eq(chmod(path, 0600), 0);
	run = npuctl_as(65534, NULL, (const char *const[]){ "status", NULL });
	/* 126, 127: that user cannot even reach the build directory */
	if (run->code < 126)
		npuctl_says(run, NPUCTL_DENIED, path);
	close(fd);
}
END_TEST

/* It takes connections, and then says nothing, as a stopped process does. */
START_TEST(test_silent)
{
	int fd = listener(SOCK_SEQPACKET);
	const struct npuctl_run *run = npuctl("status");

	npuctl_says(run, NPUCTL_NO_ANSWER, "");
	ck_assert_uint_ge(run->ms, 1900);
	ck_assert_uint_lt(run->ms, 8000);
	close(fd);
}
END_TEST

/* It takes the connection and drops it; it answers with what is no frame. */
START_TEST(test_nonsense)
{
	static const char junk[] = "HTTP/1.0 400 Bad Request";
	int fd = listener(SOCK_SEQPACKET);
	const struct npuctl_run *run;
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
	npuctl_says(run, NPUCTL_FAILED, "");
	run = npuctl("status");
	npuctl_says(run, NPUCTL_FAILED, "");
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}
END_TEST

START_TEST(test_full_disk)
{
	const struct npuctl_run *run =
		npuctl_as(0, "/dev/full", (const char *const[]){ "--help", NULL });

	ck_assert_int_eq(run->code, NPUCTL_FAILED);
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
