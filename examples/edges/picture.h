/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EXAMPLES_EDGES_PICTURE_H
#define EXAMPLES_EDGES_PICTURE_H
/*
 * Pictures in files. A picture belongs to who read it. Reads PNG and JPEG, whatever the name of
 * the file says, and writes grey PNG.
 */
#include <stddef.h>
#include <stdint.h>

#define PICTURE_SIDE_MAX 32768u			/* pixels */
#define PICTURE_PIXELS_MAX (64u * 1024 * 1024)
#define PICTURE_FILE_MAX (256l * 1024 * 1024)	/* bytes */

struct picture {
	uint32_t width, height;
	uint8_t *rgb;		/* 3 bytes a pixel, rows from top to bottom without gaps */
};

/* One line that says why a file could not be used; the file itself is not named in it. */
struct picture_reason {
	char text[160];
};

/*
 * Reads a file. -errno when the system refused it, -EINVAL when it is empty, not a picture,
 * truncated, damaged or larger than the limits; then ret_reason says why and ret_picture is
 * untouched.
 */
int picture_read(const char *path, struct picture *ret_picture, struct picture_reason *ret_reason);

/* Frees the pixels; a picture of zero bytes is fine. */
void picture_fini(struct picture *picture);

/* Writes width x height bytes of grey. -errno and a reason when that fails; no half file stays. */
int picture_write_grey(const char *path, uint32_t width, uint32_t height, const uint8_t *grey,
		struct picture_reason *ret_reason);

#endif
