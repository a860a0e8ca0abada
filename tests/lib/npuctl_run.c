/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/npuctl_run.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WORDS_MAX 8

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
	int fd = memfd_create("npuctl", MFD_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	return fd;
}

const struct npuctl_run *npuctl_as(uid_t uid, const char *out_path, const char *const *words)
{
	static struct npuctl_run run;
	char *argv[WORDS_MAX + 2] = { "npuctl" };
	int out = out_path ? open(out_path, O_WRONLY | O_CLOEXEC) : temp_file();
	int err = temp_file(), status;
	uint64_t start = now_ms();
	pid_t pid;

	for (size_t i = 0; words[i]; i++) {
		ck_assert_uint_lt(i, WORDS_MAX);
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
	return &run;
}

void npuctl_says(const struct npuctl_run *run, int code, const char *part)
{
	ck_assert_msg(run->code == code, "exit %d, wanted %d: %s", run->code, code, run->err);
	ck_assert_msg(strstr(run->err, part) != NULL, "no \"%s\" in: %s", part, run->err);
	ck_assert_msg(strncmp(run->err, "npuctl: ", 8) == 0, "%s", run->err);
	ck_assert_msg(strchr(run->err, '\n') == run->err + strlen(run->err) - 1, "%s", run->err);
	ck_assert_str_eq(run->out, "");
}
