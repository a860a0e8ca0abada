/* SPDX-License-Identifier: Apache-2.0 */
/*
 * aclInit(): its file, good and bad, and the count of uses. And the calls on numbers, which need
 * neither.
 */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/lib/acl_calls.h"
#include "tests/lib/runner.h"

#define NO_FILE	   100003
#define NO_JSON	   100006
#define PARAM	   100000
#define AGAIN	   100002
#define NOT_IN_USE 100037

static char dir[64], path[96];

static void setup(void)
{
	rt_fake_reset();
	snprintf(dir, sizeof(dir), "/tmp/npud-config.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/acl.json", dir);
}

static void teardown(void)
{
	unlink(path);
	rmdir(dir);
}

static const char *file(const char *text, size_t size)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, text, size), (ssize_t)size);
	close(fd);
	return path;
}

static int init_with(const char *text)
{
	rt_fake.texts = 0;
	return aclInit(file(text, strlen(text)));
}

/* A line that names the file. */
static void refused(int want, const char *words, int code)
{
	ck_assert_msg(code == want, "gave %d, wanted %d (%s): %s", code, want, words, rt_fake.text);
	ck_assert_uint_eq(rt_fake.texts, 1);
	ck_assert_msg(strstr(rt_fake.text, path) && strstr(rt_fake.text, words) &&
			      !strchr(rt_fake.text, '\n'),
		      "said: %s", rt_fake.text);
	ck_assert_uint_eq(rt_fake.calls, 0);
	ck_assert_int_eq(aclFinalize(), NOT_IN_USE);
	rt_fake.texts = 0;
}

/* n objects in each other, the last with a number. */
static const char *nested(unsigned n)
{
	static char text[8192];
	char *end = text;

	for (unsigned i = 0; i < n; i++)
		end = stpcpy(end, "{\"a\":");
	*end++ = '0';
	memset(end, '}', n);
	end[n] = 0;
	return text;
}

START_TEST(files_that_cannot_be_read)
{
	static char large[(1 << 20) + 1];

	refused(NO_FILE, "No such file", aclInit(path));
	ck_assert_int_eq(mkdir(path, 0700), 0);
	refused(NO_FILE, "not a regular file", aclInit(path));
	ck_assert_int_eq(rmdir(path), 0);
	ck_assert_int_eq(mkfifo(path, 0600), 0); /* nobody ever writes to it */
	refused(NO_FILE, "not a regular file", aclInit(path));
	ck_assert_int_eq(unlink(path), 0);
	memset(large, ' ', sizeof(large));
	refused(NO_FILE, "larger than", aclInit(file(large, sizeof(large))));
	if (geteuid() != 0) {
		ck_assert_int_eq(chmod(path, 0), 0);
		refused(NO_FILE, "Permission denied", aclInit(path));
	}
}
END_TEST

START_TEST(files_that_are_not_json)
{
	static const char nul[] = "{}\0{}";

	refused(NO_JSON, "empty", init_with(""));
	refused(NO_JSON, "empty", init_with(" \n\t"));
	refused(NO_JSON, "it ends after", init_with("{"));
	refused(NO_JSON, "it ends after", init_with("{\"dump\": {\"dump_list\": ["));
	refused(NO_JSON, "it ends after", init_with("{\"err_msg_mode\": \"1"));
	refused(NO_JSON, "not JSON at byte", init_with("{err_msg_mode: 1}"));
	refused(NO_JSON, "not JSON at byte", init_with("err_msg_mode = 1"));
	refused(NO_JSON, "byte", init_with("{} {}"));
	refused(NO_JSON, "byte", init_with("{}}"));
	refused(NO_JSON, "byte 2", aclInit(file(nul, sizeof(nul) - 1)));
	refused(NO_JSON, "byte",
		init_with("\x7f"
			  "ELF\x02\x01\x01"));
	refused(NO_JSON, "no object", init_with("[]"));
	refused(NO_JSON, "no object", init_with("\"{}\""));
	refused(NO_JSON, "no object", init_with("null"));
	refused(NO_JSON, "more than 10", init_with(nested(11)));
	refused(NO_JSON, "more than 10", init_with(nested(1000)));
}
END_TEST

START_TEST(values_that_are_not_allowed)
{
	refused(PARAM, "\"err_msg_mode\" is \"2\"", init_with("{\"err_msg_mode\": \"2\"}"));
	refused(PARAM, "\"err_msg_mode\" is true", init_with("{\"err_msg_mode\": true}"));
	refused(PARAM, "\"err_msg_mode\" is {}", init_with("{\"err_msg_mode\": {}}"));
	refused(PARAM, "\"dump\" is []", init_with("{\"dump\": []}"));
	refused(PARAM, "\"profiler\" is 1", init_with("{\"profiler\": 1}"));
	refused(PARAM, "\"StackSize\" is null", init_with("{\"StackSize\": null}"));
	refused(PARAM, "\"max_opqueue_num\" is \"many\"",
		init_with("{\"max_opqueue_num\": \"many\"}"));
	refused(PARAM, "\"defaultDevice\" is 0", init_with("{\"defaultDevice\": 0}"));
	refused(PARAM, "\"default_device\" is \"-1\"",
		init_with("{\"defaultDevice\": {\"default_device\": \"-1\"}}"));
	refused(PARAM, "\"default_device\" is 4294967296",
		init_with("{\"defaultDevice\": {\"default_device\": 4294967296}}"));
	refused(PARAM, "\"default_device\" is \"0x1\"",
		init_with("{\"defaultDevice\": {\"default_device\": \"0x1\"}}"));
	refused(PARAM, "\"default_device\" is \"1\\u0000\"",
		init_with("{\"defaultDevice\": {\"default_device\": \"1\\u0000\"}}"));
	refused(PARAM, "\"default_device\" is \"\"",
		init_with("{\"defaultDevice\": {\"default_device\": \"\"}}"));
}
END_TEST

START_TEST(good_files_and_their_settings)
{
	static const char *const good[] = {
		"{}",
		" { } \n",
		"{\"unknown\": [1, {\"deep\": null}]}",
		"{\"dump\": {\"dump_path\": \"x\", \"dump_list\": []}, \"profiler\": {}}",
		"{\"max_opqueue_num\": \"200\", \"simt_printf_fifo_size\": 1048576}",
		"{\"StackSize\": {\"aicore_stack_size\": 32768}}",
	};

	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		int code = init_with(good[i]);

		ck_assert_msg(code == 0, "%s: %d, %s", good[i], code, rt_fake.text);
		ck_assert(!rt_fake.shared && rt_fake.default_device == -1);
		ck_assert_int_eq(aclFinalize(), 0);
	}
	ck_assert_int_eq(init_with("{\"err_msg_mode\": \"1\", \"defaultDevice\": "
				   "{\"default_device\": \"3\"}}"),
			 0);
	ck_assert(rt_fake.shared && rt_fake.default_device == 3);
	ck_assert_int_eq(aclFinalize(), 0);
	ck_assert(!rt_fake.shared && rt_fake.default_device == -1);
	ck_assert_int_eq(init_with(nested(10)), 0);
	ck_assert_int_eq(aclFinalize(), 0);
	ck_assert_int_eq(init_with("{\"err_msg_mode\": 0}"), 0);
	ck_assert(!rt_fake.shared);
	ck_assert_int_eq(aclFinalize(), 0);
}
END_TEST

START_TEST(uses_are_counted)
{
	uint64_t left = 99;

	ck_assert_int_eq(aclFinalize(), NOT_IN_USE);
	ck_assert_int_eq(aclFinalizeReference(&left), NOT_IN_USE);
	ck_assert_uint_eq(left, 99);
	ck_assert_int_eq(aclInit(NULL), 0);
	ck_assert_int_eq(aclInit(NULL), AGAIN);
	ck_assert_int_eq(aclInit(""), AGAIN);
	ck_assert_uint_eq(rt_fake.calls, 1); /* rt_init */
	ck_assert_int_eq(aclFinalizeReference(&left), 0);
	ck_assert_uint_eq(left, 2);
	ck_assert_int_eq(aclFinalizeReference(NULL), 0);
	ck_assert_uint_eq(rt_fake.calls, 1);
	ck_assert_int_eq(aclFinalizeReference(&left), 0);
	ck_assert_uint_eq(left, 0);
	ck_assert_str_eq(rt_fake.last, "rt_fini");
	ck_assert_int_eq(aclFinalizeReference(&left), NOT_IN_USE);

	/* finalize ends it whatever the count, and another init may follow */
	ck_assert_int_eq(aclInit(NULL), 0);
	ck_assert_int_eq(aclInit(NULL), AGAIN);
	ck_assert_int_eq(aclFinalize(), 0);
	ck_assert_int_eq(aclFinalize(), NOT_IN_USE);

	/* an init that fails is none */
	rt_fake.code = SOME_CODE;
	ck_assert_int_eq(aclInit(NULL), SOME_CODE);
	ck_assert_int_eq(aclFinalize(), NOT_IN_USE);
	rt_fake.code = 0;
	ck_assert_int_eq(aclInit(NULL), 0);
	rt_fake.code = SOME_CODE;
	ck_assert_int_eq(aclFinalize(), SOME_CODE);
	ck_assert_int_eq(aclFinalize(), NOT_IN_USE);
}
END_TEST

START_TEST(a_second_file_has_to_say_the_same)
{
	uint64_t left;

	ck_assert_int_eq(init_with("{\"err_msg_mode\": \"1\"}"), 0);
	ck_assert_int_eq(init_with("{ \"err_msg_mode\" :\"1\"}"), AGAIN);
	ck_assert_int_eq(aclInit(NULL), AGAIN);
	ck_assert_int_eq(init_with("{\"err_msg_mode\": \"0\"}"), PARAM);
	ck_assert_msg(strstr(rt_fake.text, "other settings") != NULL, "%s", rt_fake.text);
	ck_assert_int_eq(init_with("{"), NO_JSON);
	ck_assert(rt_fake.shared);
	ck_assert_int_eq(aclFinalizeReference(&left), 0);
	ck_assert_uint_eq(left, 2); /* refused ones were not counted */
	ck_assert_int_eq(aclFinalize(), 0);
	ck_assert_int_eq(aclInit(NULL), 0);
	ck_assert_int_eq(init_with("{}"), AGAIN);
	ck_assert_int_eq(init_with("{\"err_msg_mode\": \"1\"}"), PARAM);
	ck_assert_int_eq(aclFinalize(), 0);
}
END_TEST

START_TEST(halves_widen)
{
	ck_assert(aclFloat16ToFloat(0x7c00) == 65536.0f);
	ck_assert(aclFloat16ToFloat(0xfc00) == -65536.0f);
	ck_assert(aclFloat16ToFloat(0x7e00) == 98304.0f);
	ck_assert(aclFloat16ToFloat(0) == 0.0f && !signbit(aclFloat16ToFloat(0)));
	ck_assert(aclFloat16ToFloat(0x8000) == 0.0f && signbit(aclFloat16ToFloat(0x8000)));
	for (unsigned half = 0; half < 0x10000; half++) {
		int exponent = half >> 10 & 31, mantissa = half & 1023;
		double want =
			exponent ? ldexp(1024 + mantissa, exponent - 25) : ldexp(mantissa, -24);

		if (half & 0x8000)
			want = -want;
		ck_assert_msg((double)aclFloat16ToFloat((aclFloat16)half) == want, "0x%04x", half);
		/* and back, for all that are not beyond the largest */
		if (exponent < 31)
			ck_assert_uint_eq(aclFloatToFloat16((float)want), half);
	}
}
END_TEST

START_TEST(floats_narrow_to_the_nearest)
{
	ck_assert_uint_eq(aclFloatToFloat16(INFINITY), 0x7bff);
	ck_assert_uint_eq(aclFloatToFloat16(-INFINITY), 0xfbff);
	ck_assert_uint_eq(aclFloatToFloat16(NAN), 0x7bff);
	ck_assert_uint_eq(aclFloatToFloat16(-NAN), 0x7bff);
	ck_assert_uint_eq(aclFloatToFloat16(65504.0f), 0x7bff);
	ck_assert_uint_eq(aclFloatToFloat16(65535.0f), 0x7bff);
	ck_assert_uint_eq(aclFloatToFloat16(-1e30f), 0xfbff);
	ck_assert_uint_eq(aclFloatToFloat16(1.0f), 0x3c00);
	ck_assert_uint_eq(aclFloatToFloat16(0x1p-24f), 1);
	ck_assert_uint_eq(aclFloatToFloat16(0x1p-25f), 0); /* a tie: to even */
	ck_assert_uint_eq(aclFloatToFloat16(0x1.8p-25f), 1);
	ck_assert_uint_eq(aclFloatToFloat16(-0x1p-30f), 0x8000);
	ck_assert_uint_eq(aclFloatToFloat16(0x1p-140f), 0);
	/* between each two neighbours: below, at and above the middle */
	for (unsigned half = 0; half < 0x7bff; half++) {
		float low = aclFloat16ToFloat((aclFloat16)half);
		float high = aclFloat16ToFloat((aclFloat16)(half + 1)), middle = (low + high) / 2;

		ck_assert_uint_eq(aclFloatToFloat16(nextafterf(middle, low)), half);
		ck_assert_uint_eq(aclFloatToFloat16(nextafterf(middle, high)), half + 1);
		ck_assert_uint_eq(aclFloatToFloat16(middle), half + (half & 1));
		ck_assert_uint_eq(aclFloatToFloat16(-middle), (half + (half & 1)) | 0x8000);
	}
}
END_TEST

START_TEST(widths_of_elements)
{
	static const struct {
		int type;
		size_t size;
	} rows[] = {
		{ ACL_DT_UNDEFINED, 0 },
		{ ACL_FLOAT, 4 },
		{ ACL_FLOAT16, 2 },
		{ ACL_INT8, 1 },
		{ ACL_INT32, 4 },
		{ ACL_UINT8, 1 },
		{ 5, 0 },
		{ ACL_INT16, 2 },
		{ ACL_UINT16, 2 },
		{ ACL_UINT32, 4 },
		{ ACL_INT64, 8 },
		{ ACL_UINT64, 8 },
		{ ACL_DOUBLE, 8 },
		{ ACL_BOOL, 1 },
		{ ACL_STRING, 0 },
		{ ACL_COMPLEX64, 8 },
		{ ACL_COMPLEX128, 16 },
		{ ACL_BF16, 2 },
		{ ACL_INT4, 1 },
		{ ACL_UINT1, 1 },
		{ ACL_COMPLEX32, 4 },
		{ ACL_HIFLOAT8, 1 },
		{ ACL_FLOAT8_E5M2, 1 },
		{ ACL_FLOAT8_E4M3FN, 1 },
		{ ACL_FLOAT8_E8M0, 1 },
		{ ACL_FLOAT6_E3M2, 8 },
		{ ACL_FLOAT6_E2M3, 8 },
		{ ACL_FLOAT4_E2M1, 8 },
		{ ACL_FLOAT4_E1M2, 8 },
		{ ACL_HIFLOAT4, 8 },
		{ 1000, 0 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		ck_assert_msg(aclDataTypeSize((aclDataType)rows[i].type) == rows[i].size, "type %d",
			      rows[i].type);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("acl_config");
	TCase *init = tcase_create("init"), *numbers = tcase_create("numbers");

	tcase_add_checked_fixture(init, setup, teardown);
	tcase_add_test(init, files_that_cannot_be_read);
	tcase_add_test(init, files_that_are_not_json);
	tcase_add_test(init, values_that_are_not_allowed);
	tcase_add_test(init, good_files_and_their_settings);
	tcase_add_test(init, uses_are_counted);
	tcase_add_test(init, a_second_file_has_to_say_the_same);
	suite_add_tcase(suite, init);
	tcase_add_test(numbers, halves_widen);
	tcase_add_test(numbers, floats_narrow_to_the_nearest);
	tcase_add_test(numbers, widths_of_elements);
	suite_add_tcase(suite, numbers);
	return run_suite(suite);
}
