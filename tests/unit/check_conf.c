/* SPDX-License-Identifier: Apache-2.0 */
/*
 * daemon/conf: defaults, values, and one clear line for each thing that can be wrong with a file.
 */
#include "daemon/conf/conf.h"
#include "tests/lib/runner.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char path[64];

static void setup(void)
{
	int fd;

	strcpy(path, "/tmp/check_conf.XXXXXX");
	fd = mkstemp(path);
	ck_assert_int_ge(fd, 0);
	close(fd);
}

static void teardown(void)
{
	unlink(path);
}

static int load(struct conf *conf, const char *text, size_t len, char *error)
{
	FILE *file = fopen(path, "w");

	ck_assert_ptr_nonnull(file);
	ck_assert_uint_eq(fwrite(text, 1, len, file), len);
	fclose(file);
	error[0] = '\0';
	return conf_load(conf, path, true, error);
}

/* The text is refused with a line that begins with the file, has all the words, and is one line. */
static void refused(const char *text, const char *line, const char *words)
{
	char error[CONF_ERROR_MAX], begin[96];
	struct conf conf, before;

	conf_init(&conf);
	before = conf;
	ck_assert_int_lt(load(&conf, text, strlen(text), error), 0);
	snprintf(begin, sizeof(begin), "%s:%s%s", path, line, *line ? ": " : "");
	ck_assert_msg(strncmp(error, begin, strlen(begin)) == 0, "%s", error);
	ck_assert_msg(strstr(error, words) != NULL, "%s", error);
	ck_assert_ptr_null(strchr(error, '\n'));
	ck_assert_mem_eq(&conf, &before, sizeof(conf));
}

START_TEST(has_defaults)
{
	struct conf conf;

	conf_init(&conf);
	ck_assert_uint_eq(conf.socket_mode, 0660);
	ck_assert_str_eq(conf.socket_group, "npu");
	ck_assert_str_eq(conf.admin_group, "npu-admin");
	ck_assert_int_eq(conf.log_level, LOG_LEVEL_INFO);
	ck_assert_uint_eq(conf.rpc_timeout_ms, 5000);
	ck_assert_str_eq(conf.transport, "auto");
	ck_assert_uint_eq(conf.sim_memory, 2ull << 30);
	ck_assert(conf.sim_host_visible);
	ck_assert(!conf.sim_stop_with_daemon);
	ck_assert_uint_eq(conf.sessions, 256);
}
END_TEST

START_TEST(takes_values)
{
	static const char text[] = "; a comment\n# another\n\n[daemon]\nsocket_mode = 0600\n"
				   "log_level=debug\n  rpc_timeout_ms = 100 ; behind it\n[device]\n"
				   "transport = /dev/npu0,/dev/npu12\nsim_memory = 64M\n"
				   "sim_host_visible = no\n[limits]\nmemory = 1G\nsessions = 3\n";
	char error[CONF_ERROR_MAX];
	struct conf conf;

	conf_init(&conf);
	ck_assert_int_eq(load(&conf, text, strlen(text), error), 0);
	ck_assert_uint_eq(conf.socket_mode, 0600);
	ck_assert_int_eq(conf.log_level, LOG_LEVEL_DEBUG);
	ck_assert_uint_eq(conf.rpc_timeout_ms, 100);
	ck_assert_str_eq(conf.transport, "/dev/npu0,/dev/npu12");
	ck_assert_uint_eq(conf.sim_memory, 64u << 20);
	ck_assert(!conf.sim_host_visible);
	ck_assert_uint_eq(conf.memory, 1u << 30);
	ck_assert_uint_eq(conf.sessions, 3);
	ck_assert_uint_eq(conf.sim_cores, 0); /* not mentioned: the default */
}
END_TEST

START_TEST(refuses_wrong_text)
{
	refused("[daemon]\nsocket_mod = 0600\n", "2", "daemon.socket_mod: no such option");
	refused("[deamon]\nsocket_mode = 0600\n", "2", "no such section");
	refused("socket_mode = 0600\n", "1", "no such section");
	refused("[daemon]\nsocket_mode = 0999\n", "2", "octal mode from 0000 to 0777");
	refused("[daemon]\n\nlog_level = loud\n", "3", "error, warning, notice, info or debug");
	refused("[daemon]\nrpc_timeout_ms = 1\n", "2", "a number from 50 to 600000");
	refused("[daemon]\nrpc_timeout_ms = 1s\n", "2", "a number");
	refused("[daemon]\nrpc_timeout_ms = -7\n", "2", "a number");
	refused("[daemon]\nrpc_timeout_ms =\n", "2", "a number");
	refused("[device]\nsim_memory = 1K\n", "2", "a size from 16 MiB");
	refused("[device]\nsim_memory = 99999999999999999999\n", "2", "a size");
	refused("[device]\nsim_host_visible = perhaps\n", "2", "yes or no");
	refused("[device]\ntransport = /dev/nvidia0\n", "2", "auto, sim or");
	refused("[device]\ntransport = /dev/npu0,\n", "2", "auto, sim or");
	refused("[device]\ntransport = /dev/npu\n", "2", "auto, sim or");
	refused("[management]\nbus = tcp:host=here,port=1\n", "2", "system, session, off or");
	refused("[management]\nbus = unix:path=/a;tcp:host=b\n", "2", "system, session, off or");
	refused("[daemon]\nsocket_group = a b\n", "2", "group name");
	refused("[daemon]\nlog_level = info\nlog_level = debug\n", "3",
		"given twice, first in line 2");
	refused("[daemon\nlog_level = info\n", "1", "neither [section] nor");
	refused("[daemon]\nwhat is this\n", "2", "neither [section] nor");
}
END_TEST

START_TEST(refuses_wrong_files)
{
	char error[CONF_ERROR_MAX], longer[1000], *huge;
	struct conf conf;

	conf_init(&conf);
	/* empty, truncated in the middle of a line, binary, too long */
	ck_assert_int_lt(load(&conf, "", 0, error), 0);
	ck_assert_ptr_nonnull(strstr(error, "is empty"));
	refused("[daemon]\nlog_level = inf", "2", "truncated");
	ck_assert_int_lt(load(&conf, "[daemon]\n\0\1\2\n", 13, error), 0);
	ck_assert_ptr_nonnull(strstr(error, ":2: byte 0x00: not a text file"));
	ck_assert_int_lt(load(&conf, "\177ELF\2\1\1\n", 8, error), 0);
	ck_assert_ptr_nonnull(strstr(error, ":1: byte 0x7f: not a text file"));
	memset(longer, 'x', sizeof(longer));
	memcpy(longer, "[daemon]\n", 9);
	longer[998] = '\n';
	longer[999] = '\0';
	refused(longer, "2", "at most 190 are allowed");
	huge = calloc(1, CONF_FILE_MAX + 2);
	memset(huge, '\n', CONF_FILE_MAX + 1);
	ck_assert_int_eq(load(&conf, huge, CONF_FILE_MAX + 1, error), -EFBIG);
	ck_assert_ptr_nonnull(strstr(error, path));
	free(huge);
	/* missing: an error only when somebody named it */
	ck_assert_int_eq(conf_load(&conf, "/nowhere/npud.conf", false, error), 0);
	ck_assert_int_eq(conf_load(&conf, "/nowhere/npud.conf", true, error), -ENOENT);
	ck_assert_ptr_nonnull(strstr(error, "/nowhere/npud.conf: cannot read"));
	ck_assert_int_eq(conf_load(&conf, "/tmp", true, error), -EISDIR);
	ck_assert_int_eq(conf_load(&conf, "/dev/null", true, error), -EINVAL);
	ck_assert_ptr_nonnull(strstr(error, "not a regular file"));
}
END_TEST

/* What conf_print() writes is what conf_load() reads. */
START_TEST(prints_what_it_reads)
{
	char error[CONF_ERROR_MAX];
	struct conf conf, again;
	FILE *file = fopen(path, "w");

	conf_init(&conf);
	strcpy(conf.transport, "sim");
	conf.sim_memory = 96u << 20;
	conf.sim_stop_with_daemon = true;
	conf.log_level = LOG_LEVEL_ERROR;
	conf.socket_mode = 0606;
	conf_print(&conf, file);
	fclose(file);
	conf_init(&again);
	ck_assert_msg(conf_load(&again, path, true, error) == 0, "%s", error);
	ck_assert_mem_eq(&conf, &again, sizeof(conf));
}
END_TEST

START_TEST(survives_damage)
{
	char error[CONF_ERROR_MAX], text[256];
	unsigned int seed = 12345, failed = 0;
	struct conf conf;

	for (unsigned int round = 0; round < 3000; round++) {
		size_t len = 1 + rand_r(&seed) % (sizeof(text) - 1);

		for (size_t i = 0; i < len; i++)
			text[i] = "[]=;#\n \tdaemon.log_level0123456789\r\xff"[rand_r(&seed) % 36];
		conf_init(&conf);
		if (load(&conf, text, len, error) < 0) {
			failed++;
			ck_assert_ptr_nonnull(strstr(error, path));
			ck_assert_ptr_null(strchr(error, '\n'));
		}
	}
	ck_assert_uint_gt(failed, 2000);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("conf");
	TCase *tc = tcase_create("conf");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 30);
	tcase_add_test(tc, has_defaults);
	tcase_add_test(tc, takes_values);
	tcase_add_test(tc, refuses_wrong_text);
	tcase_add_test(tc, refuses_wrong_files);
	tcase_add_test(tc, prints_what_it_reads);
	tcase_add_test(tc, survives_damage);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
