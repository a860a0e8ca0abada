/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of noted calls are kept in one text, each between spaces.
 */
#include "tests/lib/acl_calls.h"

#include <stdio.h>

struct outputs out;

static struct outputs before;
static char noted[16384] = " ";

void calls_poison(void)
{
	memset(&out, 0xa5, sizeof(out));
	memcpy(&before, &out, sizeof(out));
	rt_fake.calls = rt_fake.texts = 0;
	rt_fake.last_error = 77;
	rt_fake.code = 0;
}

int calls_untouched(void)
{
	return !memcmp(&before, &out, sizeof(out));
}

static int name_length(const char *call)
{
	return (int)strcspn(call, "(");
}

void calls_note(const char *call)
{
	char name[128];

	snprintf(name, sizeof(name), " %.*s ", name_length(call), call);
	if (!strstr(noted, name)) {
		ck_assert_uint_lt(strlen(noted) + strlen(name), sizeof(noted));
		strcat(noted, name + 1);
	}
}

void calls_all_noted(const char *path)
{
	char line[128], name[132], missing[2048] = "";
	FILE *file = fopen(path, "re");
	unsigned lines = 0;

	ck_assert_msg(file != NULL, "cannot read %s", path);
	while (fscanf(file, "%127s", line) == 1) {
		lines++;
		snprintf(name, sizeof(name), " %s ", line);
		if (!strstr(noted, name))
			strncat(missing, name, sizeof(missing) - strlen(missing) - 1);
	}
	fclose(file);
	ck_assert_msg(!*missing, "not tested:%s", missing);
	ck_assert_uint_gt(lines, 80);
}

void bad_(int line, int want, const char *words, int code, const char *call)
{
	char name[128];

	calls_note(call);
	snprintf(name, sizeof(name), "%.*s: ", name_length(call), call);
	ck_assert_msg(code == want, "line %d: %s gave %d, wanted %d", line, call, code, want);
	ck_assert_msg(rt_fake.calls == 0, "line %d: %s asked %s", line, call, rt_fake.last);
	ck_assert_msg(calls_untouched(), "line %d: %s changed an output", line, call);
	ck_assert_msg(rt_fake.texts == 1, "line %d: %s left %u texts", line, call, rt_fake.texts);
	ck_assert_msg(strstr(rt_fake.text, name) && strstr(rt_fake.text, words) &&
			      !strchr(rt_fake.text, '\n'),
		      "line %d: %s said: %s", line, call, rt_fake.text);
	/* codes of the first layer are no runtime errors, 107xxx and 207xxx are */
	ck_assert_int_eq(rt_fake.last_error, want / 1000 % 100 == 7 ? want : 77);
}

void good_(int line, const char *function, int want, int code, const char *call)
{
	calls_note(call);
	ck_assert_msg(code == want, "line %d: %s gave %d, wanted %d", line, call, code, want);
	ck_assert_msg(rt_fake.calls == 1, "line %d: %s asked the runtime %u times", line, call,
		      rt_fake.calls);
	ck_assert_msg(!strcmp(rt_fake.last, function), "line %d: %s asked %s", line, call,
		      rt_fake.last);
}
