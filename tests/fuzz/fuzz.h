/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz - what the targets share: the entry point that libFuzzer and standalone.c call, and a check
 * that ends the process.
 */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define fuzz_check(ok, what) \
	do { \
		if (!(ok)) { \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, what); \
			abort(); \
		} \
	} while (0)

/*
 * The path of a file of this process that holds these bytes, the same file at each call; for
 * parsers that open their file themselves.
 */
const char *fuzz_file(const uint8_t *data, size_t size);

#endif
