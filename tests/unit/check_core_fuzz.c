/* SPDX-License-Identifier: Apache-2.0 */
/* A short run of the fuzz target over inputs from a fixed seed. */
#include <check.h>
#include <stdlib.h>

#include "tests/fuzz/fuzz_core.h"

#define INPUTS 1500
#define INPUT_MAX 4096u

START_TEST(test_seeded)
{
	static uint8_t input[INPUT_MAX];
	uint64_t x = 0x9e3779b97f4a7c15ull * (unsigned int)(_i + 1);
	unsigned int run, i, size;

	for (run = 0; run < INPUTS; run++) {
		x = x * 6364136223846793005ull + 1442695040888963407ull;
		size = (unsigned int)(x >> 40) % INPUT_MAX;
		for (i = 0; i < size; i++) {
			x = x * 6364136223846793005ull + 1442695040888963407ull;
			input[i] = (uint8_t)(x >> 56);
			/* small numbers reach further */
			if (!(x >> 20 & 3))
				input[i] &= 0xf;
		}
		ck_assert_int_eq(LLVMFuzzerTestOneInput(input, size), 0);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("core_fuzz");
	TCase *tc = tcase_create("seeded");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tc, 120);
	tcase_add_loop_test(tc, test_seeded, 0, 4);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
