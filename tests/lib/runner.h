/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NPU_TESTS_RUNNER_H
#define NPU_TESTS_RUNNER_H

#include <check.h>
#include <stdlib.h>

/* Runs one suite and gives the exit status of the test program. Prints Check's closing line. */
static inline int run_suite(Suite *suite)
{
	SRunner *runner = srunner_create(suite);
	int failed;

	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif
