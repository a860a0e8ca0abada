/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A main for fuzz targets where the compiler has no libFuzzer: runs the target once over each file
 * that is named on the command line.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define INPUT_MAX (1u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int main(int argc, char **argv)
{
	uint8_t *input = malloc(INPUT_MAX);
	size_t size;
	FILE *file;
	int i;

	if (!input)
		return EXIT_FAILURE;
	for (i = 1; i < argc; i++) {
		file = fopen(argv[i], "rbe");
		if (!file) {
			perror(argv[i]);
			free(input);
			return EXIT_FAILURE;
		}
		size = fread(input, 1, INPUT_MAX, file);
		fclose(file);
		LLVMFuzzerTestOneInput(input, size);
	}
	printf("%d inputs\n", argc - 1);
	free(input);
	return EXIT_SUCCESS;
}
