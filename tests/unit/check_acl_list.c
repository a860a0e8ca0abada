/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists of arguments, over a runtime without a device: what a launch gets of them, the order of
 * calls, what is refused, and when a list ends. And the attributes of a launch.
 */
#include <stdlib.h>

#include "client/drv/drv.h"
#include "tests/lib/acl_calls.h"
#include "tests/lib/runner.h"

#define RT_PARAM  107000
#define RT_HANDLE 107017
#define LISTS_MAX 65536

static aclrtArgsHandle list_new(void *kernel)
{
	aclrtArgsHandle list;

	ck_assert_int_eq(aclrtKernelArgsInit(kernel, &list), 0);
	return list;
}

static aclrtParamHandle append(aclrtArgsHandle list, const void *value, size_t size)
{
	aclrtParamHandle param;

	ck_assert_int_eq(aclrtKernelArgsAppend(list, (void *)value, size, &param), 0);
	return param;
}

static aclrtParamHandle append_holder(aclrtArgsHandle list)
{
	aclrtParamHandle param;

	ck_assert_int_eq(aclrtKernelArgsAppendPlaceHolder(list, &param), 0);
	return param;
}

static void *buffer(aclrtArgsHandle list, aclrtParamHandle param, size_t size)
{
	void *address;

	ck_assert_int_eq(aclrtKernelArgsGetPlaceHolderBuffer(list, param, size, &address), 0);
	return address;
}

static int launch(void *kernel, aclrtArgsHandle list)
{
	return aclrtLaunchKernelWithConfig(kernel, 5, FAKE_HANDLE, NULL, list, NULL);
}

static const uint32_t four = 0x01020304;
static const uint64_t eight = 0x1112131415161718;
static const uint8_t twelve[12] = "twelve bytes";

/* All four of FAKE_KERNEL, values only; the second is returned. */
static aclrtParamHandle fill(aclrtArgsHandle list)
{
	aclrtParamHandle second;

	append(list, &four, 4);
	second = append(list, &eight, 8);
	append(list, &eight, 8);
	append(list, twelve, 12);
	return second;
}

static void setup(void)
{
	rt_fake_reset();
}

START_TEST(values_lie_in_slots_of_8_bytes)
{
	aclrtArgsHandle list = list_new(FAKE_KERNEL);
	uint8_t want[FAKE_ARGS_SIZE] = { 0 };

	fill(list);
	ck_assert_int_eq(aclrtKernelArgsFinalize(list), 0);
	ck_assert_int_eq(launch(FAKE_KERNEL, list), 0);
	memcpy(want, &four, 4);
	memcpy(want + 8, &eight, 8);
	memcpy(want + 16, &eight, 8);
	memcpy(want + 24, twelve, 12);
	ck_assert_uint_eq(rt_fake.size, FAKE_ARGS_SIZE);
	ck_assert_mem_eq(rt_fake.args, want, sizeof(want));
	ck_assert(rt_fake.object == FAKE_KERNEL && rt_fake.blocks == 5);
	ck_assert(rt_fake.stream == FAKE_HANDLE && rt_fake.nholders == 0);
	ck_assert_uint_eq(rt_fake.timeout_us, 0);
	/* the code of the runtime comes back, and the list is good for more */
	rt_fake.code = SOME_CODE;
	ck_assert_int_eq(launch(FAKE_KERNEL, list), SOME_CODE);
	rt_fake.code = 0;
	ck_assert_int_eq(launch(FAKE_KERNEL, list), 0);
}
END_TEST

START_TEST(placeholders_lie_behind_and_stay_where_they_are)
{
	aclrtArgsHandle list = list_new(FAKE_KERNEL);
	aclrtParamHandle a, b;
	char *data_a, *data_b;
	void *address;

	append(list, &four, 4);
	a = append_holder(list);
	BAD(RT_PARAM, "append all", aclrtKernelArgsGetPlaceHolderBuffer(list, a, 4, &out.handle));
	b = append_holder(list);
	append(list, twelve, 12);
	BAD(RT_PARAM, "parameter 1 of kernel fake is a placeholder without",
	    aclrtKernelArgsFinalize(list));
	data_a = buffer(list, a, 3);
	memcpy(data_a, "abc", 3);
	BAD(RT_PARAM, "takes no more", aclrtKernelArgsAppend(list, (void *)&four, 4, &out.handle));
	BAD(RT_PARAM, "parameter 2 of", aclrtKernelArgsFinalize(list));
	data_b = buffer(list, b, 10000);
	memset(data_b, 7, 10000);
	ck_assert_ptr_eq(buffer(list, a, 3), data_a);
	BAD(RT_PARAM, "dataSize is 4",
	    aclrtKernelArgsGetPlaceHolderBuffer(list, a, 4, &out.handle));
	ck_assert_int_eq(aclrtKernelArgsFinalize(list), 0);
	ck_assert_int_eq(launch(FAKE_KERNEL, list), 0);
	ck_assert_uint_eq(rt_fake.nholders, 2);
	ck_assert_uint_eq(rt_fake.holders[0].address_offset, 8);
	ck_assert_uint_eq(rt_fake.holders[0].data_offset, FAKE_ARGS_SIZE);
	ck_assert_uint_eq(rt_fake.holders[1].address_offset, 16);
	ck_assert_uint_eq(rt_fake.holders[1].data_offset, FAKE_ARGS_SIZE + 8);
	ck_assert_uint_eq(rt_fake.size, FAKE_ARGS_SIZE + 8 + 10000);
	ck_assert_mem_eq(rt_fake.args, &four, 4);
	ck_assert_mem_eq(rt_fake.args + 24, twelve, 12);
	ck_assert_mem_eq(rt_fake.args + FAKE_ARGS_SIZE, "abc", 3);
	ck_assert_uint_eq(rt_fake.args[rt_fake.size - 1], 7);
	/* other data for the next launch, at the same place */
	memcpy(data_a, "xyz", 3);
	ck_assert_int_eq(aclrtKernelArgsGetPlaceHolderBuffer(list, a, 3, &address), 0);
	ck_assert_ptr_eq(address, data_a);
	ck_assert_int_eq(launch(FAKE_KERNEL, list), 0);
	ck_assert_mem_eq(rt_fake.args + FAKE_ARGS_SIZE, "xyz", 3);
}
END_TEST

START_TEST(placeholder_data_is_limited)
{
	aclrtArgsHandle list = list_new(FAKE_KERNEL);
	aclrtParamHandle a, b;

	append(list, &four, 4);
	a = append_holder(list);
	b = append_holder(list);
	append(list, twelve, 12);
	BAD(RT_PARAM, "dataSize is 16345, allowed: up to 16344",
	    aclrtKernelArgsGetPlaceHolderBuffer(list, a, RT_ARGS_MAX - FAKE_ARGS_SIZE + 1,
						&out.handle));
	BAD(RT_PARAM, "dataSize is ",
	    aclrtKernelArgsGetPlaceHolderBuffer(list, a, SIZE_MAX, &out.handle));
	memset(buffer(list, a, RT_ARGS_MAX - FAKE_ARGS_SIZE), 1, RT_ARGS_MAX - FAKE_ARGS_SIZE);
	BAD(RT_PARAM, "up to 0", aclrtKernelArgsGetPlaceHolderBuffer(list, b, 1, &out.handle));
}
END_TEST

START_TEST(sizes_and_numbers_are_the_kernels)
{
	aclrtArgsHandle list = list_new(FAKE_KERNEL), none = list_new(FAKE_KERNEL_NONE);
	aclrtParamHandle first;

	BAD(RT_PARAM, "paramSize is 8, allowed: 4, the size of parameter 0 of kernel fake",
	    aclrtKernelArgsAppend(list, (void *)&eight, 8, &out.handle));
	BAD(RT_PARAM, "paramSize is 8", aclrtKernelArgsAppendPlaceHolder(list, &out.handle));
	BAD(RT_PARAM, "4 parameters, 0 are there", aclrtKernelArgsFinalize(list));
	first = append(list, &four, 4);
	BAD(RT_PARAM, "a value", aclrtKernelArgsGetPlaceHolderBuffer(list, first, 4, &out.handle));
	append(list, &eight, 8);
	append(list, &eight, 8);
	append(list, twelve, 12);
	BAD(RT_PARAM, "one more", aclrtKernelArgsAppend(list, (void *)&four, 4, &out.handle));
	ck_assert_int_eq(aclrtKernelArgsFinalize(list), 0);
	BAD(RT_PARAM, "takes no more", aclrtKernelArgsAppend(list, (void *)&four, 4, &out.handle));

	BAD(RT_PARAM, "is not closed",
	    aclrtLaunchKernelWithConfig(FAKE_KERNEL_NONE, 1, NULL, NULL, none, NULL));
	ck_assert_int_eq(aclrtKernelArgsFinalize(none), 0);
	ck_assert_int_eq(launch(FAKE_KERNEL_NONE, none), 0);
	ck_assert_uint_eq(rt_fake.size, 0);
	BAD(RT_PARAM, "is not kernel none",
	    aclrtLaunchKernelWithConfig(FAKE_KERNEL, 1, NULL, NULL, none, NULL));

	/* what an image says of its kernels is not taken for the truth */
	calls_poison();
	ck_assert_int_eq(aclrtKernelArgsInit(FAKE_KERNEL_WIDE, &out.handle), RT_PARAM);
	ck_assert(calls_untouched() && strstr(rt_fake.text, "wide"));
}
END_TEST

START_TEST(updates_need_another_finalize)
{
	aclrtArgsHandle list = list_new(FAKE_KERNEL), other = list_new(FAKE_KERNEL);
	uint64_t value = 99;
	aclrtParamHandle param = fill(list);

	ck_assert_int_eq(aclrtKernelArgsParaUpdate(list, param, &value, 8),
			 0); /* before the first */
	ck_assert_int_eq(aclrtKernelArgsFinalize(list), 0);
	value = 100;
	BAD(RT_PARAM, "paramSize is 4", aclrtKernelArgsParaUpdate(list, param, &value, 4));
	BAD(RT_HANDLE, "no argument of this list",
	    aclrtKernelArgsParaUpdate(other, param, &value, 8));
	BAD(RT_HANDLE, "no argument of this list",
	    aclrtKernelArgsParaUpdate(list, FAKE_HANDLE, &value, 8));
	ck_assert_int_eq(launch(FAKE_KERNEL, list), 0);
	ck_assert_int_eq(rt_fake.args[8], 99);
	ck_assert_int_eq(aclrtKernelArgsParaUpdate(list, param, &value, 8), 0);
	BAD(RT_PARAM, "is not closed",
	    aclrtLaunchKernelWithConfig(FAKE_KERNEL, 1, NULL, NULL, list, NULL));
	ck_assert_int_eq(aclrtKernelArgsFinalize(list), 0);
	ck_assert_int_eq(launch(FAKE_KERNEL, list), 0);
	ck_assert_int_eq(rt_fake.args[8], 100);
}
END_TEST

START_TEST(lists_end_with_their_image)
{
	aclrtArgsHandle list = list_new(FAKE_KERNEL), next;

	fill(list);
	ck_assert_int_eq(aclrtKernelArgsFinalize(list), 0);
	rt_fake.code = SOME_CODE; /* nothing unloaded: nothing ends */
	ck_assert_int_eq(aclrtBinaryUnLoad(FAKE_HANDLE), SOME_CODE);
	rt_fake.code = 0;
	ck_assert_int_eq(launch(FAKE_KERNEL, list), 0);
	ck_assert_int_eq(aclrtBinaryUnLoad(FAKE_HANDLE), 0);
	BAD(RT_HANDLE, "image was unloaded",
	    aclrtLaunchKernelWithConfig(FAKE_KERNEL, 1, NULL, NULL, list, NULL));
	rt_fake.image_gone = false;
	next = list_new(FAKE_KERNEL);
	ck_assert_ptr_ne(next, list);
	BAD(RT_HANDLE, "argsHandle", aclrtKernelArgsFinalize(list));
}
END_TEST

START_TEST(a_list_for_every_launch_does_not_run_out)
{
	aclrtArgsHandle kept = list_new(FAKE_KERNEL_NONE), waiting = list_new(FAKE_KERNEL_NONE),
			list;

	ck_assert_int_eq(aclrtKernelArgsFinalize(kept), 0);
	ck_assert_int_eq(aclrtKernelArgsFinalize(waiting), 0);
	for (unsigned i = 0; i < 2 * LISTS_MAX; i++) {
		list = list_new(FAKE_KERNEL_NONE);
		ck_assert_int_eq(aclrtKernelArgsFinalize(list), 0);
		ck_assert_int_eq(launch(FAKE_KERNEL_NONE, list), 0);
		/* in use all the time, so it stays; so does one that was never launched */
		ck_assert_int_eq(launch(FAKE_KERNEL_NONE, kept), 0);
	}
	ck_assert_int_eq(launch(FAKE_KERNEL_NONE, waiting), 0);
}
END_TEST

START_TEST(lists_that_were_never_launched_run_out)
{
	for (unsigned i = 0; i < LISTS_MAX; i++)
		list_new(FAKE_KERNEL_NONE);
	calls_poison();
	ck_assert_int_eq(aclrtKernelArgsInit(FAKE_KERNEL_NONE, &out.handle), 207005);
	ck_assert(calls_untouched());
	ck_assert_msg(strstr(rt_fake.text, "never launched") != NULL, "%s", rt_fake.text);
}
END_TEST

static int launch_with(aclrtLaunchKernelAttr *attrs, size_t n)
{
	aclrtLaunchKernelCfg cfg = { attrs, n };

	return aclrtLaunchKernelV2(FAKE_KERNEL, 1, twelve, 8, &cfg, NULL);
}

START_TEST(attributes_of_a_launch)
{
	static const struct {
		aclrtLaunchKernelAttrId id;
		uint32_t value;
		int want;
		const char *text;
	} rows[] = {
		{ 0, 0, 100000, "id is 0" },
		{ 10, 0, 100000, "id is 10" },
		{ (aclrtLaunchKernelAttrId)-1, 0, 100000, "id is 4294967295" },
		{ ACL_RT_LAUNCH_KERNEL_ATTR_SCHEM_MODE, 0, 0, NULL },
		{ ACL_RT_LAUNCH_KERNEL_ATTR_SCHEM_MODE, 1, 207000, "SCHEM_MODE is 1" },
		{ ACL_RT_LAUNCH_KERNEL_ATTR_DYN_UBUF_SIZE, 0, 0, NULL },
		{ ACL_RT_LAUNCH_KERNEL_ATTR_DYN_UBUF_SIZE, 64, 207000, "DYN_UBUF_SIZE is 64" },
		{ ACL_RT_LAUNCH_KERNEL_ATTR_ENGINE_TYPE, 1, 0, NULL },
		{ ACL_RT_LAUNCH_KERNEL_ATTR_ENGINE_TYPE, 2, 100000, "ENGINE_TYPE is 2" },
		{ ACL_RT_LAUNCH_KERNEL_ATTR_BLOCKDIM_OFFSET, 0, 0, NULL },
		{ ACL_RT_LAUNCH_KERNEL_ATTR_BLOCKDIM_OFFSET, 1, 207000, "BLOCKDIM_OFFSET is 1" },
		{ ACL_RT_LAUNCH_KERNEL_ATTR_BLOCK_TASK_PREFETCH, 1, 0, NULL },
		{ ACL_RT_LAUNCH_KERNEL_ATTR_BLOCK_TASK_PREFETCH, 2, 100000, "PREFETCH is 2" },
		{ ACL_RT_LAUNCH_KERNEL_ATTR_DATA_DUMP, 1, 0, NULL },
		{ ACL_RT_LAUNCH_KERNEL_ATTR_DATA_DUMP, 3, 100000, "DATA_DUMP is 3" },
		{ ACL_RT_LAUNCH_KERNEL_ATTR_ENABLE_PROFILING, 1, 0, NULL },
		{ ACL_RT_LAUNCH_KERNEL_ATTR_ENABLE_PROFILING, 2, 100000, "PROFILING is 2" },
	};
	aclrtLaunchKernelAttr attrs[2] = { 0 };
	aclrtLaunchKernelCfg empty = { NULL, 0 }, missing = { NULL, 1 };

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		attrs[0] = (aclrtLaunchKernelAttr){ rows[i].id, .value.rsv = { rows[i].value } };
		calls_poison();
		ck_assert_msg(launch_with(attrs, 1) == rows[i].want, "row %zu", i);
		ck_assert_uint_eq(rt_fake.calls, rows[i].want == 0);
		ck_assert_msg(!rows[i].text || strstr(rt_fake.text, rows[i].text), "row %zu: %s", i,
			      rt_fake.text);
	}
	ck_assert_int_eq(aclrtLaunchKernelV2(FAKE_KERNEL, 1, twelve, 8, &empty, NULL), 0);
	BAD(100000, "cfg->attrs is NULL",
	    aclrtLaunchKernelV2(FAKE_KERNEL, 1, twelve, 8, &missing, NULL));
	BAD(100000, "cfg->attrs is NULL",
	    aclrtLaunchKernelWithHostArgs(FAKE_KERNEL, 1, NULL, &missing, (void *)twelve, 8, NULL,
					  0));
	BAD(100000, "cfg->attrs is NULL",
	    aclrtLaunchKernelWithConfig(FAKE_KERNEL, 1, NULL, &missing, FAKE_HANDLE, NULL));

	attrs[0] = (aclrtLaunchKernelAttr){ ACL_RT_LAUNCH_KERNEL_ATTR_TIMEOUT,
					    .value.timeout = 65535 };
	ck_assert_int_eq(launch_with(attrs, 1), 0);
	ck_assert_uint_eq(rt_fake.timeout_us, 65535000000);
	attrs[1] =
		(aclrtLaunchKernelAttr){ ACL_RT_LAUNCH_KERNEL_ATTR_TIMEOUT_US,
					 .value.timeoutUs = { .timeoutLow = 7, .timeoutHigh = 1 } };
	ck_assert_int_eq(launch_with(attrs + 1, 1), 0);
	ck_assert_uint_eq(rt_fake.timeout_us, (1ull << 32) + 7);
	rt_fake.calls = 0;
	ck_assert_int_eq(launch_with(attrs, 2), 100000); /* both */
	attrs[1] = attrs[0];
	ck_assert_int_eq(launch_with(attrs, 2), 100000); /* twice */
	ck_assert_uint_eq(rt_fake.calls, 0);
}
END_TEST

/* In a forked child nothing is touched that another thread might have held. */
START_TEST(a_forked_child_is_told_so)
{
	aclrtArgsHandle list = list_new(FAKE_KERNEL_NONE);
	aclrtBinary binary = aclrtCreateBinary(twelve, 12);

	drv_process_forked = true;
	rt_fake.code = 507033;
	ck_assert_int_eq(aclInit(NULL), 507033);
	ck_assert_int_eq(aclFinalize(), 507033);
	ck_assert_int_eq(aclFinalizeReference(NULL), 507033);
	ck_assert_int_eq(aclrtKernelArgsFinalize(list), 507033);
	ck_assert_int_eq(launch(FAKE_KERNEL_NONE, list), 507033);
	ck_assert_int_eq(aclrtDestroyBinary(binary), 507033);
	ck_assert_ptr_null(aclrtCreateBinary(twelve, 12));
	ck_assert_int_eq(aclrtGetRunMode(&out.mode), 507033);
	ck_assert_int_eq(aclrtSetOpWaitTimeout(1), 507033);
	ck_assert_int_eq(aclrtGetOpTimeOutInterval(&out.u64), 507033);
	ck_assert_int_eq(aclrtDeviceGetStreamPriorityRange(&out.i32, &out.i32_2), 507033);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("acl_list");
	TCase *tcase = tcase_create("lists");

	tcase_set_timeout(tcase, 60);
	tcase_add_checked_fixture(tcase, setup, NULL);
	tcase_add_test(tcase, values_lie_in_slots_of_8_bytes);
	tcase_add_test(tcase, placeholders_lie_behind_and_stay_where_they_are);
	tcase_add_test(tcase, placeholder_data_is_limited);
	tcase_add_test(tcase, sizes_and_numbers_are_the_kernels);
	tcase_add_test(tcase, updates_need_another_finalize);
	tcase_add_test(tcase, lists_end_with_their_image);
	tcase_add_test(tcase, a_list_for_every_launch_does_not_run_out);
	tcase_add_test(tcase, lists_that_were_never_launched_run_out);
	tcase_add_test(tcase, attributes_of_a_launch);
	tcase_add_test(tcase, a_forked_child_is_told_so);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}
