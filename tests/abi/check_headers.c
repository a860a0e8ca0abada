/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The public headers against the lists of this directory: every constant has its value, every
 * type its size, every member its place, every call its prototype; and the list of exported
 * calls, the version script and the headers name the same calls.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <acl/acl.h>
#include <acl/acl_platform.h>
#include <acl/acl_rt_allocator.h>
#include <acl/acl_rt_memory_soma.h>

#include "tests/abi/prototypes.inc"

#define TEXT_MAX (256 * 1024)

/* defined in headers_cxx.cc: the same lists, asserted while compiling as C++ */
extern int headers_cxx_constants;

struct constant {
	const char *name;
	unsigned long long got, want;
};

struct layout {
	const char *name;
	size_t got_offset, got_size, want_offset, want_size;
};

static const char *const headers[] = {
	"acl_base_rt.h", "rt/init.h", "rt/device.h", "rt/fault.h", "rt/stream.h", "rt/memory.h",
	"rt/memory_share.h", "rt/kernel.h", "rt/model.h",
};

static const char *const calls[] = {
#define CALL(name) #name,
#include "tests/abi/calls.inc"
#undef CALL
};

#define N_CALLS (sizeof(calls) / sizeof(calls[0]))

START_TEST(constants_have_their_values)
{
	const struct constant list[] = {
#define CONSTANT(name, value) { #name, (unsigned long long)(name), (unsigned long long)(value) },
#include "tests/abi/enums.inc"
#undef CONSTANT
	};
	size_t i, n = sizeof(list) / sizeof(list[0]);

	ck_assert_uint_gt(n, 700);
	for (i = 0; i < n; i++)
		ck_assert_msg(list[i].got == list[i].want, "%s is %lld, not %lld", list[i].name,
			(long long)list[i].got, (long long)list[i].want);
	ck_assert_int_eq(headers_cxx_constants, (int)n);
}
END_TEST

START_TEST(types_have_their_layout)
{
	static const struct layout list[] = {
#define SIZE(type, bytes) { #type, 0, sizeof(type), 0, bytes },
#define FIELD(type, member, offset, bytes) \
	{ #type "." #member, offsetof(type, member), sizeof(((type *)0)->member), offset, bytes },
#include "tests/abi/layout.inc"
#undef SIZE
#undef FIELD
	};
	size_t i, n = sizeof(list) / sizeof(list[0]);

	ck_assert_uint_gt(n, 300);
	for (i = 0; i < n; i++) {
		ck_assert_msg(list[i].got_size == list[i].want_size, "%s has %zu bytes, not %zu",
			list[i].name, list[i].got_size, list[i].want_size);
		ck_assert_msg(list[i].got_offset == list[i].want_offset,
			"%s lies at %zu, not at %zu", list[i].name, list[i].got_offset,
			list[i].want_offset);
	}
}
END_TEST

/* The file under the source tree, as one string that the caller frees. */
static char *file_read(const char *path)
{
	char *full, *text;
	size_t n;
	FILE *f;

	ck_assert_int_gt(asprintf(&full, "%s/%s", NPU_TOP_SRCDIR, path), 0);
	f = fopen(full, "re");
	ck_assert_msg(f != NULL, "cannot open %s", full);
	text = malloc(TEXT_MAX);
	ck_assert_ptr_nonnull(text);
	n = fread(text, 1, TEXT_MAX - 1, f);
	text[n] = '\0';
	ck_assert_uint_lt(n, TEXT_MAX - 1);
	fclose(f);
	free(full);
	return text;
}

/* Times that the name stands as a whole word followed by one of the characters of after. */
static unsigned int word_count(const char *text, const char *name, const char *after)
{
	const char *p = text;
	unsigned int n = 0;
	size_t len = strlen(name);

	while ((p = strstr(p, name)) != NULL) {
		if ((p == text || strchr(" \t\n*", p[-1])) && p[len] && strchr(after, p[len]))
			n++;
		p += len;
	}
	return n;
}

static unsigned int char_count(const char *text, char c)
{
	unsigned int n = 0;

	for (; *text; text++)
		n += *text == c;
	return n;
}

START_TEST(list_and_script_name_the_same_calls)
{
	char *list = file_read("client/acl/functions.list");
	char *map = file_read("client/libnpu-client.map");
	const char *global = strstr(map, "global:"), *local = strstr(map, "local:");
	size_t i;

	ck_assert_ptr_nonnull(global);
	ck_assert_ptr_nonnull(local);
	ck_assert_ptr_nonnull(strstr(map, "NPU_CLIENT_0.1 {"));
	for (i = 0; i < N_CALLS; i++) {
		ck_assert_msg(word_count(list, calls[i], "\n") == 1,
			"%s does not stand once in functions.list", calls[i]);
		ck_assert_msg(word_count(map, calls[i], ";") == 1,
			"%s does not stand once in libnpu-client.map", calls[i]);
	}
	ck_assert_uint_eq(char_count(list, '\n'), N_CALLS);
	/* a semicolon a call, one of "*", and two of npuctl's node; one a closing brace */
	ck_assert_uint_eq(char_count(map, ';'), N_CALLS + 4);
	free(list);
	free(map);
}
END_TEST

START_TEST(headers_declare_those_calls_and_no_other)
{
	unsigned int declared = 0;
	size_t h, i, found[N_CALLS] = { 0 };

	for (h = 0; h < sizeof(headers) / sizeof(headers[0]); h++) {
		char path[128], *text, *p;

		snprintf(path, sizeof(path), "client/include/acl/%s", headers[h]);
		text = file_read(path);
		for (i = 0; i < N_CALLS; i++) {
			for (p = text; (p = strstr(p, "\nACL_FUNC_VISIBILITY")) != NULL; p++) {
				char *end = strchr(p, '(');
				size_t len = strlen(calls[i]);

				ck_assert_ptr_nonnull(end);
				found[i] += !strncmp(end - len, calls[i], len) &&
					strchr(" *", end[-(long)len - 1]) != NULL;
			}
		}
		for (p = text; (p = strstr(p, "\nACL_FUNC_VISIBILITY")) != NULL; p++)
			declared++;
		free(text);
	}
	for (i = 0; i < N_CALLS; i++)
		ck_assert_msg(found[i] == 1, "%s is declared %zu times", calls[i], found[i]);
	ck_assert_uint_eq(declared, N_CALLS);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("headers");
	TCase *t = tcase_create("abi");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_test(t, constants_have_their_values);
	tcase_add_test(t, types_have_their_layout);
	tcase_add_test(t, list_and_script_name_the_same_calls);
	tcase_add_test(t, headers_declare_those_calls_and_no_other);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
