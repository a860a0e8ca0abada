/* SPDX-License-Identifier: Apache-2.0 */
/*
 * acl_calls - one line a call for tests of the public calls over rt_fake
 *
 * BAD:  a wrong argument. The code is the API's, the runtime was not asked, the outputs in `out`
 *       are as before, one text names the call and the argument.
 * GOOD: a right one. Exactly one call of the runtime, whose code comes back unchanged and then with
 *       outputs untouched; the other way round, 0 and outputs.
 * Each notes the call's name, so that a test can tell which calls it has not covered.
 */
#ifndef NPU_TESTS_LIB_ACL_CALLS_H
#define NPU_TESTS_LIB_ACL_CALLS_H

#include <check.h>
#include <string.h>

#include <acl/acl.h>

#include "tests/lib/rt_fake.h"

/* Every output of a call under test. */
struct outputs {
	void *handle, *handle2;
	uint32_t u32;
	int32_t i32, i32_2, i32_3;
	int64_t i64;
	uint64_t u64;
	size_t size, size2;
	float f32;
	aclrtRunMode mode;
	aclrtDeviceStatus device_status;
	aclrtStreamStatus stream_status;
	aclrtEventRecordedStatus event_status;
	aclrtPtrAttributes pointer;
};

extern struct outputs out;

#define SOME_CODE 123456 /* no code of anybody: comes from the runtime only */

void calls_poison(void);
int calls_untouched(void);
void calls_note(const char *call);
/* Aborts the test when a line of the file names a call that was not noted. */
void calls_all_noted(const char *path);

#define BAD(want, words, call) bad_(__LINE__, want, words, (calls_poison(), (call)), #call)
#define GOOD(function, call)                                                              \
	do {                                                                              \
		calls_poison();                                                           \
		rt_fake.calls = 0;                                                        \
		rt_fake.code = SOME_CODE;                                                 \
		good_(__LINE__, function, SOME_CODE, (call), #call);                      \
		ck_assert_msg(calls_untouched(), "line %d: an output changed", __LINE__); \
		rt_fake.calls = 0;                                                        \
		rt_fake.code = 0;                                                         \
		good_(__LINE__, function, 0, (call), #call);                              \
	} while (0)
/* Right, and answered without the runtime. */
#define LOCAL(call)                                  \
	do {                                         \
		rt_fake.calls = 0;                   \
		calls_note(#call);                   \
		ck_assert_int_eq(call, 0);           \
		ck_assert_uint_eq(rt_fake.calls, 0); \
	} while (0)

void bad_(int line, int want, const char *words, int code, const char *call);
void good_(int line, const char *function, int want, int code, const char *call);

#endif
