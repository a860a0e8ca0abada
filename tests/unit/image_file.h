/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_UNIT_IMAGE_FILE_H
#define TESTS_UNIT_IMAGE_FILE_H

/*
 * The images that make_images.sh made, for check_image and check_image_refuse. Failures end the
 * test.
 */

#include <check.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim/engine_image.h"

/* bytes: exactly size of them from malloc, so that a sanitizer sees reads past the end */
struct image_file {
	uint8_t *bytes;
	size_t size;
};

static inline struct image_file image_file_read(const char *name)
{
	struct image_file file;
	char path[1024];
	long size;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s.npuk", NPU_IMAGES_DIR, name);
	f = fopen(path, "rb");
	ck_assert_msg(f != NULL, "%s: cannot open", path);
	ck_assert_int_eq(fseek(f, 0, SEEK_END), 0);
	size = ftell(f);
	ck_assert_int_gt(size, 0);
	rewind(f);
	file.size = (size_t)size;
	file.bytes = malloc(file.size);
	ck_assert_ptr_nonnull(file.bytes);
	ck_assert_uint_eq(fread(file.bytes, 1, file.size, f), file.size);
	fclose(f);
	return file;
}

/* The image loaded; its bytes are gone afterwards, as they may be. */
static inline struct engine_image *image_file_load(const char *name)
{
	struct image_file file = image_file_read(name);
	struct engine_image *image = NULL;
	char error[256] = "";
	int r = engine_image_load(file.bytes, file.size, &image, error, sizeof(error));

	ck_assert_msg(r == 0, "%s: %d: %s", name, r, error);
	free(file.bytes);
	return image;
}

#endif
