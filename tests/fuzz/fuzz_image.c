/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kernel image, loaded and asked for all that it has. Nothing of it runs. One that is refused
 * must be refused with a printable line; of one that is taken, every kernel must begin in its
 * code.
 */
#include "tests/fuzz/fuzz.h"

#include <ctype.h>
#include <string.h>

#include "sim/engine_image.h"

static void look(const struct engine_image *image)
{
	const void *start, *end;
	uint32_t count = engine_image_n_funcs(image);
	uint64_t begin;

	engine_image_code(image, &start, &end);
	fuzz_check(count >= 1 && !engine_image_func(image, count), "number of kernels");
	fuzz_check((uintptr_t)end - (uintptr_t)start <= engine_image_size(image), "size of the code");
	for (uint32_t i = 0; i < count; i++) {
		const struct engine_func *func = engine_image_func(image, i);
		uint64_t sum = 0, entry = (uintptr_t)func->entry;

		fuzz_check(*func->name && engine_image_find(image, func->name) == func, "name");
		for (const char *c = func->name; *c; c++)
			fuzz_check(isgraph((unsigned char)*c), "printable name");
		for (uint32_t j = 0; j < func->n_params; j++)
			sum += func->param_sizes[j];
		fuzz_check(func->args_size % 8 == 0 && sum <= func->args_size, "sizes");
		fuzz_check(engine_image_contains(image, entry), "a kernel outside of the code");
		engine_image_offset(image, entry);
	}
	begin = (uintptr_t)start;
	for (uint64_t pc = begin; pc < (uintptr_t)end; pc += 509) {
		const char *name = engine_image_func_at(image, pc);

		fuzz_check(!name || strlen(name) < 4096, "name at an address");
	}
	fuzz_check(!engine_image_contains(image, 0) && !engine_image_contains(image, UINT64_MAX),
		   "addresses that are nowhere");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct engine_image *image;
	char error[160];
	int r;

	memset(error, 'x', sizeof(error));
	r = engine_image_load(data, size, &image, error, sizeof(error));
	if (r == 0) {
		look(image);
		engine_image_free(image);
		return 0;
	}
	fuzz_check(memchr(error, 0, sizeof(error)) && *error, "refused without a reason");
	for (const char *c = error; *c; c++)
		fuzz_check(isprint((unsigned char)*c), "printable reason");
	return 0;
}
