/* SPDX-License-Identifier: Apache-2.0 */
/* daemon/util: parsing, id tables, log lines, fds, and the closer. */
#include "daemon/util/closer.h"
#include "daemon/util/fd.h"
#include "daemon/util/idtab.h"
#include "daemon/util/log.h"
#include "daemon/util/parse.h"
#include "tests/lib/npud_proc.h"
#include "tests/lib/runner.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

START_TEST(parses_numbers)
{
	uint64_t v = 7;

	ck_assert_int_eq(parse_u64("0", &v), 0);
	ck_assert_uint_eq(v, 0);
	ck_assert_int_eq(parse_u64("18446744073709551615", &v), 0);
	ck_assert_uint_eq(v, UINT64_MAX);
	ck_assert_int_eq(parse_u64("0x10", &v), 0);
	ck_assert_uint_eq(v, 16);
	ck_assert_int_eq(parse_u64("18446744073709551616", &v), -ERANGE);
	ck_assert_int_eq(parse_u64("", &v), -EINVAL);
	ck_assert_int_eq(parse_u64("-1", &v), -EINVAL);
	ck_assert_int_eq(parse_u64(" 1", &v), -EINVAL);
	ck_assert_int_eq(parse_u64("1 ", &v), -EINVAL);
	ck_assert_int_eq(parse_u64("0x", &v), -EINVAL);
	ck_assert_uint_eq(v, 16); /* unchanged by errors */
}
END_TEST

START_TEST(parses_sizes)
{
	uint64_t v;
	char buf[32];

	ck_assert_int_eq(parse_size("12", &v), 0);
	ck_assert_uint_eq(v, 12);
	ck_assert_int_eq(parse_size("2G", &v), 0);
	ck_assert_uint_eq(v, 2ull << 30);
	ck_assert_int_eq(parse_size("3MiB", &v), 0);
	ck_assert_uint_eq(v, 3ull << 20);
	ck_assert_int_eq(parse_size("1t", &v), 0);
	ck_assert_uint_eq(v, 1ull << 40);
	ck_assert_int_eq(parse_size("16777216T", &v), -ERANGE);
	ck_assert_int_eq(parse_size("1X", &v), -EINVAL);
	ck_assert_int_eq(parse_size("1MB", &v), -EINVAL);
	ck_assert_int_eq(parse_size("M", &v), -EINVAL);
	ck_assert_str_eq(format_size(512, buf, sizeof(buf)), "512 B");
	ck_assert_str_eq(format_size(1536, buf, sizeof(buf)), "1.5 KiB");
	ck_assert_str_eq(format_size(2ull << 30, buf, sizeof(buf)), "2 GiB");
}
END_TEST

START_TEST(parses_modes_and_words)
{
	unsigned int mode;
	bool on;
	char buf[4];

	ck_assert_int_eq(parse_mode("0660", &mode), 0);
	ck_assert_uint_eq(mode, 0660);
	ck_assert_int_eq(parse_mode("888", &mode), -EINVAL);
	ck_assert_int_eq(parse_mode("77777", &mode), -ERANGE);
	ck_assert_int_eq(parse_bool("Yes", &on), 0);
	ck_assert(on);
	ck_assert_int_eq(parse_bool("off", &on), 0);
	ck_assert(!on);
	ck_assert_int_eq(parse_bool("maybe", &on), -EINVAL);
	ck_assert(str_copy(buf, sizeof(buf), "abc"));
	ck_assert(!str_copy(buf, sizeof(buf), "abcd"));
	ck_assert_str_eq(buf, "abc");
}
END_TEST

START_TEST(ids_are_not_reused_soon)
{
	struct idtab table;
	uint32_t first, id, pos = 0;
	int object;

	idtab_init(&table, 0);
	ck_assert_int_eq(idtab_add(&table, &object, &first), 0);
	ck_assert_uint_ne(first, 0);
	ck_assert_ptr_eq(idtab_get(&table, first), &object);
	ck_assert_ptr_null(idtab_get(&table, 0));
	ck_assert_ptr_null(idtab_get(&table, UINT32_MAX));
	ck_assert_ptr_eq(idtab_remove(&table, first), &object);
	ck_assert_ptr_null(idtab_remove(&table, first));
	for (unsigned int i = 0; i < 60000; i++) {
		ck_assert_int_eq(idtab_add(&table, &object, &id), 0);
		ck_assert_uint_ne(id, first);
		ck_assert_ptr_null(idtab_get(&table, first));
		ck_assert_ptr_eq(idtab_remove(&table, id), &object);
	}
	ck_assert_ptr_null(idtab_next(&table, &pos, &id));
	idtab_fini(&table);
}
END_TEST

START_TEST(ids_have_a_limit)
{
	struct idtab table;
	uint32_t ids[100], id, pos = 0;
	unsigned int seen = 0;
	int objects[100];

	idtab_init(&table, 100);
	for (unsigned int i = 0; i < 100; i++)
		ck_assert_int_eq(idtab_add(&table, &objects[i], &ids[i]), 0);
	ck_assert_int_eq(idtab_add(&table, &objects[0], &id), -ENOSPC);
	for (unsigned int i = 0; i < 100; i++)
		ck_assert_ptr_eq(idtab_get(&table, ids[i]), &objects[i]);
	while (idtab_next(&table, &pos, &id)) {
		ck_assert_ptr_nonnull(idtab_remove(&table, id));
		seen++;
	}
	ck_assert_uint_eq(seen, 100);
	ck_assert_int_eq(idtab_add(&table, &objects[0], &id), 0);
	idtab_fini(&table);
}
END_TEST

/* Runs fn with stderr in a pipe; gives what was written. */
static void capture(void (*fn)(void), char *text, size_t size)
{
	int fds[2], saved = dup(2);
	ssize_t n;

	ck_assert_int_eq(pipe(fds), 0);
	fd_set_nonblock(fds[0], true);
	dup2(fds[1], 2);
	fn();
	dup2(saved, 2);
	close(fds[1]);
	close(saved);
	n = read(fds[0], text, size - 1);
	text[n > 0 ? n : 0] = '\0';
	close(fds[0]);
}

static void log_some(void)
{
	struct log_ident ident = {
		.session = 5, .pid = 77, .uid = 1000, .comm = "bad\nname", .device = 1, .stream = 3
	};

	unsetenv("JOURNAL_STREAM");
	log_open(LOG_LEVEL_INFO);
	log_debug("test", "not shown");
	errno = ENOENT;
	log_msg(LOG_LEVEL_WARNING, "test", &ident, "what %d: %m", 7);
	ck_assert_int_eq(errno, ENOENT);
}

START_TEST(log_lines_have_identity)
{
	char text[512];

	capture(log_some, text, sizeof(text));
	ck_assert_str_eq(text, "npud warning: test: [session 5 pid 77 uid 1000 bad?name device 0 "
			       "stream 3] what 7: No such file or directory\n");
}
END_TEST

static void log_long(void)
{
	char words[3000];

	memset(words, 'x', sizeof(words));
	words[sizeof(words) - 1] = '\0';
	log_error("test", "%s", words);
}

static void log_much(void)
{
	struct log_limit limit = { .burst = 3 };
	unsigned int allowed = 0;

	for (unsigned int i = 0; i < 100; i++)
		allowed += log_limit_ok(&limit, "test");
	ck_assert_uint_eq(allowed, 3);
	limit.window_ns = 1; /* long ago */
	ck_assert(log_limit_ok(&limit, "test"));
}

START_TEST(log_lines_are_cut_and_limited)
{
	char text[4096];
	enum log_level level;

	log_open(LOG_LEVEL_INFO);
	capture(log_long, text, sizeof(text));
	ck_assert_uint_eq(strlen(text), LOG_LINE_MAX);
	ck_assert_int_eq(text[LOG_LINE_MAX - 1], '\n');
	capture(log_much, text, sizeof(text));
	ck_assert_str_eq(text, "npud notice: test: 97 similar messages were dropped\n");
	ck_assert_int_eq(log_level_parse("debug", &level), 0);
	ck_assert_int_eq(level, LOG_LEVEL_DEBUG);
	ck_assert_int_eq(log_level_parse("loud", &level), -EINVAL);
	ck_assert_ptr_null(log_level_name(17));
}
END_TEST

START_TEST(reads_files)
{
	char path[] = "/tmp/check_util.XXXXXX", *data;
	int fd = mkstemp(path);
	size_t len;

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fd_write_all(fd, "hello", 5), 0);
	ck_assert_int_eq(fd_read_file(path, 5, &data, &len), 0);
	ck_assert_uint_eq(len, 5);
	ck_assert_str_eq(data, "hello");
	free(data);
	ck_assert_int_eq(fd_read_file(path, 4, &data, &len), -EFBIG);
	unlink(path);
	close(fd);
	ck_assert_int_eq(fd_read_file(path, 4, &data, &len), -ENOENT);
	ck_assert_int_eq(fd_read_file("/", 4, &data, &len), -EISDIR);
	ck_assert_int_eq(fd_read_file("/dev/zero", 4, &data, &len), -EINVAL);
}
END_TEST

START_TEST(waits_for_fds)
{
	int fds[2];

	ck_assert_int_eq(pipe(fds), 0);
	ck_assert_int_eq(fd_wait(fds[0], POLLIN, 1), -ETIMEDOUT);
	ck_assert_int_eq(fd_write_all(fds[1], "x", 1), 0);
	ck_assert_int_eq(fd_wait(fds[0], POLLIN, 1000), 0);
	ck_assert_int_eq(fd_set_cloexec(fds[0], true), 0);
	ck_assert_int_eq(fcntl(fds[0], F_GETFD), FD_CLOEXEC);
	ck_assert_int_gt(fd_count(), 3);
	close(fds[0]);
	close(fds[1]);
}
END_TEST

/* A connected TCP socket with unsent data and SO_LINGER: close() of it takes as long as it says. */
static int lingering_socket(int *ret_peer)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct linger linger = { .l_onoff = 1, .l_linger = 30 };
	socklen_t len = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM, 0), fd, small = 1;
	static char block[1 << 20];

	setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	ck_assert_int_eq(bind(listener, (struct sockaddr *)&address, len), 0);
	ck_assert_int_eq(listen(listener, 1), 0);
	getsockname(listener, (struct sockaddr *)&address, &len);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	connect(fd, (struct sockaddr *)&address, len);
	*ret_peer = accept(listener, NULL, NULL);
	close(listener);
	ck_assert_int_eq(fd_wait(fd, POLLOUT, 1000), 0);
	while (send(fd, block, sizeof(block), MSG_DONTWAIT) > 0)
		;
	fd_set_nonblock(fd, false);
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	return fd;
}

static bool nothing_pending(void *arg)
{
	return closer_pending(arg) == 0;
}

START_TEST(closer_does_not_wait)
{
	struct closer *closer;
	int bad[8], peers[8], fds[2];

	ck_assert_int_eq(closer_new(&closer), 0);
	closer_close(closer, -1);
	for (unsigned int i = 0; i < 8; i++)
		bad[i] = lingering_socket(&peers[i]);
	for (unsigned int i = 0; i < 8; i++)
		closer_close(closer, bad[i]);
	ck_assert_int_eq(pipe(fds), 0);
	closer_close(closer, fds[1]);
	/* all of them are closed although each asks for 30 seconds */
	ck_assert(wait_for(nothing_pending, closer, 5000));
	ck_assert_int_eq(fd_wait(fds[0], POLLIN, 5000), 0);
	ck_assert_int_eq(fcntl(bad[0], F_GETFD), -1);
	closer_free(closer);
	for (unsigned int i = 0; i < 8; i++)
		close(peers[i]);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("util");
	TCase *tc = tcase_create("util");

	tcase_set_timeout(tc, 30);
	tcase_add_test(tc, parses_numbers);
	tcase_add_test(tc, parses_sizes);
	tcase_add_test(tc, parses_modes_and_words);
	tcase_add_test(tc, ids_are_not_reused_soon);
	tcase_add_test(tc, ids_have_a_limit);
	tcase_add_test(tc, log_lines_have_identity);
	tcase_add_test(tc, log_lines_are_cut_and_limited);
	tcase_add_test(tc, reads_files);
	tcase_add_test(tc, waits_for_fds);
	tcase_add_test(tc, closer_does_not_wait);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
