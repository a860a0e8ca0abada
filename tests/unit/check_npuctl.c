/* SPDX-License-Identifier: Apache-2.0 */
/* npuctl's output: units, tables, text from outside, and JSON that parses back. */
#include "client/npuctl/command.h"
#include "client/npuctl/format.h"
#include "client/npuctl/out_json.h"
#include "client/npuctl/out_table.h"

#include <check.h>
#include <errno.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MIB (1ull << 20)

static struct npu_admin_device device = {
	.id = 0,
	.name = "npu-sim",
	.firmware = "0.1.0",
	.transport = "sim",
	.kind = 2,
	.cores = 2,
	.memory_total = 2048 * MIB,
	.memory_free = 1536 * MIB,
	.util_permille = 342,
	.sessions = 3,
	.engines = 2,
};

static struct npu_admin_client clients[] = {
	{ .session = 7,
	  .pid = 4242,
	  .uid = 0,
	  .comm = "edges",
	  .memory = 64 * MIB,
	  .tasks_queued = 12,
	  .tasks_done = 3400,
	  .core_ns = 12340000000,
	  .connected_ms = 65000 },
	{ .session = 8,
	  .pid = 17,
	  .uid = 4000000000,
	  .comm = "a\x1b[2J\xff",
	  .device = UINT32_MAX },
};

static struct npu_admin_memory_use uses[] = {
	{ .pid = 4242, .comm = "edges", .used = 512 * MIB, .peak = 600 * MIB, .objects = 9 },
};

static struct npu_admin_device_memory memory = {
	.total = 2048 * MIB,
	.used = 512 * MIB,
	.free = 1536 * MIB,
	.largest_run = 1024 * MIB,
	.nclients = 1,
	.clients = uses,
	.hidden = 1,
};

static char versions[][128] = { "npu0: npu-sim 0.1.0, interface 1.0" };

static union result status_result = {
	.status = { .daemon = "npud 0.1.0",
		    .pid = 99,
		    .uptime_ms = 3723000,
		    .clients = 1,
		    .faults = 2,
		    .runtime_dir = "/run/npud",
		    .ndevices = 1,
		    .devices = &device },
};
static union result ps_result = {
	.ps = { .nclients = 2, .clients = clients, .hidden = 2 },
};
static union result memory_result = {
	.memory = { .ndevices = 1, .devices = &memory },
};
static union result version_result = {
	.version = { .library = "libnpu-client 0.1.0",
		     .daemon = "npud 0.1.0",
		     .major = 1,
		     .minor = 4,
		     .ndevices = 1,
		     .devices = versions },
};

static const struct {
	const struct command *command;
	const union result *result;
} rows[] = {
	{ &command_status, &status_result },
	{ &command_ps, &ps_result },
	{ &command_mem, &memory_result },
	{ &command_version, &version_result },
};

static char *text_of(const struct command *command, const union result *result, bool json)
{
	struct json_object *object;
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	ck_assert_ptr_nonnull(out);
	if (json) {
		object = out_new();
		command->json(result, object);
		ck_assert_int_eq(out_print(object, out), 0);
		out_free(object);
	} else {
		ck_assert_int_eq(command->print(result, out), 0);
	}
	ck_assert_int_eq(fclose(out), 0);
	return text;
}

static struct json_object *json_of(const struct command *command, const union result *result)
{
	char *text = text_of(command, result, true);
	struct json_object *object = json_tokener_parse(text);

	ck_assert_msg(object != NULL, "%s", text);
	free(text);
	return object;
}

static void has(const char *text, const char *part)
{
	ck_assert_msg(strstr(text, part) != NULL, "no \"%s\" in:\n%s", part, text);
}

static struct json_object *member(struct json_object *object, const char *key)
{
	struct json_object *value = NULL;

	ck_assert_msg(json_object_object_get_ex(object, key, &value), "no \"%s\"", key);
	return value;
}

static uint64_t number(struct json_object *object, const char *key)
{
	return json_object_get_uint64(member(object, key));
}

START_TEST(test_bytes)
{
	static const struct {
		uint64_t bytes;
		const char *text;
	} cases[] = {
		{ 0, "0 B" },
		{ 1023, "1023 B" },
		{ 1024, "1.0 KiB" },
		{ 1536, "1.5 KiB" },
		{ MIB - 1, "1.0 MiB" },
		{ 256 * MIB, "256.0 MiB" },
		{ 2048 * MIB, "2.0 GiB" },
		{ UINT64_MAX, "16.0 EiB" },
	};
	char buf[FORMAT_MAX];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		ck_assert_str_eq(format_bytes(cases[i].bytes, buf, sizeof(buf)), cases[i].text);
}
END_TEST

START_TEST(test_share_and_duration)
{
	char buf[FORMAT_MAX];

	ck_assert_str_eq(format_share(1, 0, buf, sizeof(buf)), "-");
	ck_assert_str_eq(format_share(0, 5, buf, sizeof(buf)), "0.0%");
	ck_assert_str_eq(format_share(342, 1000, buf, sizeof(buf)), "34.2%");
	ck_assert_str_eq(format_share(UINT64_MAX, UINT64_MAX, buf, sizeof(buf)), "100.0%");
	ck_assert_str_eq(format_duration(999, buf, sizeof(buf)), "999 ms");
	ck_assert_str_eq(format_duration(12345, buf, sizeof(buf)), "12.3 s");
	ck_assert_str_eq(format_duration(185000, buf, sizeof(buf)), "3m 05s");
	ck_assert_str_eq(format_duration(7620000, buf, sizeof(buf)), "2h 07m");
	ck_assert_str_eq(format_duration(349200000, buf, sizeof(buf)), "4d 01h");
	format_duration(UINT64_MAX, buf, sizeof(buf));
	ck_assert_uint_lt(strlen(buf), sizeof(buf));
}
END_TEST

START_TEST(test_text)
{
	static const struct {
		const char *in, *out;
	} cases[] = {
		{ "edges", "edges" },
		{ "", "" },
		{ "a\tb\n\x7f", "a?b??" },
		{ "gr\xc3\xbc\xc3\x9f \xe6\x97\xa5 \xf0\x9f\x98\x80",
		  "gr\xc3\xbc\xc3\x9f \xe6\x97\xa5 \xf0\x9f\x98\x80" },
		{ "\xc3", "?" },	   /* cut */
		{ "\xc0\xaf", "??" },	   /* overlong */
		{ "\xed\xa0\x80", "???" }, /* surrogate */
		{ "\xc2\x9b"
		  "31m",
		  "??31m" }, /* C1 control */
		{ "\xf4\x90\x80\x80", "????" },
	};
	char buf[64];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		ck_assert_str_eq(format_text(cases[i].in, buf, sizeof(buf)), cases[i].out);
	/* never half a character */
	ck_assert_str_eq(format_text("ab\xc3\xbc", buf, 4), "ab");
	ck_assert_str_eq(format_text("abcdef", buf, 4), "abc");
	ck_assert_str_eq(format_device(3, buf, sizeof(buf)), "npu3");
	ck_assert_str_eq(format_user(4000000000, buf, sizeof(buf)), "4000000000");
	ck_assert_str_eq(format_user(0, buf, sizeof(buf)), "root");
}
END_TEST

START_TEST(test_table)
{
	struct table *table = table_new("NAME,>SIZE,LAST");
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	for (const char *const *cell = (const char *const[]){ "a", "12", "x", "l\xc3\xa4nger", "3",
							      "y", "unfinished", NULL };
	     *cell; cell++)
		table_cell(table, *cell);
	ck_assert_int_eq(table_print(table, out), 0);
	ck_assert_int_eq(fclose(out), 0);
	ck_assert_str_eq(text, "NAME        SIZE  LAST\n"
			       "a             12  x\n"
			       "l\xc3\xa4nger         3  y\n");
	free(text);
	table_free(table);

	table_cell(NULL, "x");
	ck_assert_int_eq(table_print(NULL, stdout), -ENOMEM);
	table_free(NULL);
}
END_TEST

START_TEST(test_status)
{
	char *text = text_of(&command_status, &status_result, false);

	has(text, "npud 0.1.0, pid 99, up 1h 02m, 1 client, 2 faults, in /run/npud\n");
	has(text, "512.0 MiB / 2.0 GiB  25.0%  34.2%");
	ck_assert_ptr_null(strstr(text, "does not give"));
	free(text);

	device.sandbox_missing = 1u << 31;
	text = text_of(&command_status, &status_result, false);
	has(text, "npu0: this host does not give the engines: ");
	free(text);
}
END_TEST

START_TEST(test_ps)
{
	char *text = text_of(&command_ps, &ps_result, false);
	union result none = { .ps = { .nclients = 0 } };

	has(text, "4242  root");
	has(text, "64.0 MiB");
	has(text, "12.3 s");
	has(text, "1m 05s");
	has(text, "  17  4000000000  a?[2J?");
	has(text, "2 clients of other users not shown");
	free(text);

	text = text_of(&command_ps, &none, false);
	ck_assert_str_eq(text, "no clients\n");
	free(text);
}
END_TEST

START_TEST(test_mem_and_version)
{
	char *text = text_of(&command_mem, &memory_result, false);

	has(text, "npu0    2.0 GiB  512.0 MiB   25.0%  1.5 GiB  0 B      1.0 GiB\n");
	has(text, "600.0 MiB");
	has(text, "1 client of other users not shown");
	free(text);
	text = text_of(&command_version, &version_result, false);
	has(text, "protocol  1.4\n");
	has(text, "device    npu0: npu-sim 0.1.0, interface 1.0\n");
	free(text);
}
END_TEST

START_TEST(test_json)
{
	struct json_object *root, *item;

	root = json_of(&command_status, &status_result);
	ck_assert_uint_eq(number(root, "uptime_ms"), 3723000);
	item = json_object_array_get_idx(member(root, "devices"), 0);
	ck_assert_uint_eq(number(item, "memory_free"), 1536 * MIB);
	ck_assert_str_eq(json_object_get_string(member(item, "health")), "ok");
	json_object_put(root);

	root = json_of(&command_ps, &ps_result);
	ck_assert_uint_eq(json_object_array_length(member(root, "clients")), 2);
	item = json_object_array_get_idx(member(root, "clients"), 1);
	ck_assert_uint_eq(number(item, "uid"), 4000000000);
	ck_assert_ptr_null(member(item, "device"));
	ck_assert_str_eq(json_object_get_string(member(item, "comm")), "a?[2J?");
	ck_assert_uint_eq(number(root, "hidden"), 2);
	json_object_put(root);

	root = json_of(&command_mem, &memory_result);
	item = json_object_array_get_idx(member(root, "devices"), 0);
	ck_assert_uint_eq(number(item, "largest_run"), 1024 * MIB);
	item = json_object_array_get_idx(member(item, "clients"), 0);
	ck_assert_uint_eq(number(item, "used"), 512 * MIB);
	json_object_put(root);

	root = json_of(&command_version, &version_result);
	ck_assert_uint_eq(number(root, "protocol_minor"), 4);
	json_object_put(root);
}
END_TEST

/* A full disk is an error of each command, however small its output. */
START_TEST(test_full_disk)
{
	FILE *out = fopen("/dev/full", "w");

	ck_assert_ptr_nonnull(out);
	ck_assert_int_eq(rows[_i].command->print(rows[_i].result, out), 0);
	ck_assert(fflush(out) != 0 || ferror(out));
	fclose(out);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("npuctl");
	TCase *tcase = tcase_create("output");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_test(tcase, test_bytes);
	tcase_add_test(tcase, test_share_and_duration);
	tcase_add_test(tcase, test_text);
	tcase_add_test(tcase, test_table);
	tcase_add_test(tcase, test_status);
	tcase_add_test(tcase, test_ps);
	tcase_add_test(tcase, test_mem_and_version);
	tcase_add_test(tcase, test_json);
	tcase_add_loop_test(tcase, test_full_disk, 0, sizeof(rows) / sizeof(rows[0]));
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
