/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pictures in files: good ones are read pixel by pixel; bad ones give one line with the reason and
 * leave the result untouched, whatever their bytes are.
 */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jpeglib.h>
#include <zlib.h>

#include "examples/edges/picture.h"

#define WIDTH 23u
#define HEIGHT 17u
#define BYTES_MAX 65536u

static char dir[] = "/tmp/check_picture.XXXXXX";
static char path[64];

struct bytes {
	size_t n;
	unsigned char b[BYTES_MAX];
};

static uint8_t grey_at(size_t i)
{
	return (uint8_t)(i * 7 + i / WIDTH * 31);
}

static void setup(void)
{
	strcpy(strrchr(dir, '.'), ".XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/picture", dir);
}

static void teardown(void)
{
	unlink(path);
	rmdir(path);
	rmdir(dir);
}

static void file_write(const void *data, size_t n)
{
	FILE *f = fopen(path, "wbe");

	ck_assert_ptr_nonnull(f);
	ck_assert_uint_eq(fwrite(data, 1, n, f), n);
	ck_assert_int_eq(fclose(f), 0);
}

static void file_get(struct bytes *bytes)
{
	FILE *f = fopen(path, "rbe");

	ck_assert_ptr_nonnull(f);
	bytes->n = fread(bytes->b, 1, sizeof(bytes->b), f);
	ck_assert_uint_lt(bytes->n, sizeof(bytes->b));
	fclose(f);
}

static void make_png(void)
{
	uint8_t grey[WIDTH * HEIGHT];
	struct picture_reason reason;
	size_t i;

	for (i = 0; i < sizeof(grey); i++)
		grey[i] = grey_at(i);
	ck_assert_int_eq(picture_write_grey(path, WIDTH, HEIGHT, grey, &reason), 0);
}

static void make_jpeg(void)
{
	struct jpeg_error_mgr manager;
	struct jpeg_compress_struct jpeg = { .err = jpeg_std_error(&manager) };
	FILE *f = fopen(path, "wbe");
	uint8_t row[WIDTH * 3];
	unsigned int x;

	ck_assert_ptr_nonnull(f);
	jpeg_create_compress(&jpeg);
	jpeg_stdio_dest(&jpeg, f);
	jpeg.image_width = WIDTH;
	jpeg.image_height = HEIGHT;
	jpeg.input_components = 3;
	jpeg.in_color_space = JCS_RGB;
	jpeg_set_defaults(&jpeg);
	jpeg_set_quality(&jpeg, 100, TRUE);
	jpeg_start_compress(&jpeg, TRUE);
	while (jpeg.next_scanline < HEIGHT) {
		JSAMPROW rows = row;

		for (x = 0; x < WIDTH; x++) {
			row[3 * x] = 200;
			row[3 * x + 1] = (uint8_t)(10 * jpeg.next_scanline);
			row[3 * x + 2] = 40;
		}
		jpeg_write_scanlines(&jpeg, &rows, 1);
	}
	jpeg_finish_compress(&jpeg);
	jpeg_destroy_compress(&jpeg);
	ck_assert_int_eq(fclose(f), 0);
}

/* Reads path; when it is refused, checks that this was done properly. */
static int read_it(struct picture_reason *ret_reason)
{
	struct picture picture = { 7, 7, NULL };
	int r;

	memset(ret_reason, 0, sizeof(*ret_reason));
	r = picture_read(path, &picture, ret_reason);
	if (r == 0) {
		ck_assert_ptr_nonnull(picture.rgb);
		picture_fini(&picture);
	} else {
		ck_assert_int_lt(r, 0);
		ck_assert_uint_eq(picture.width, 7);
		ck_assert_ptr_null(picture.rgb);
		ck_assert_uint_gt(strlen(ret_reason->text), 3);
		ck_assert_ptr_null(strchr(ret_reason->text, '\n'));
	}
	return r;
}

static void refused(int error, const char *text)
{
	struct picture_reason reason;

	ck_assert_int_eq(read_it(&reason), error);
	ck_assert_msg(strstr(reason.text, text) != NULL, "\"%s\" does not say \"%s\"", reason.text,
		text);
}

START_TEST(png_is_read_as_it_was_written)
{
	struct picture picture;
	struct picture_reason reason;
	size_t i;

	make_png();
	ck_assert_int_eq(picture_read(path, &picture, &reason), 0);
	ck_assert_uint_eq(picture.width, WIDTH);
	ck_assert_uint_eq(picture.height, HEIGHT);
	for (i = 0; i < WIDTH * HEIGHT * 3; i++)
		ck_assert_uint_eq(picture.rgb[i], grey_at(i / 3));
	picture_fini(&picture);
	ck_assert_ptr_null(picture.rgb);
}
END_TEST

START_TEST(jpeg_is_read_as_colours)
{
	struct picture picture;
	struct picture_reason reason;
	size_t i;

	make_jpeg();
	ck_assert_int_eq(picture_read(path, &picture, &reason), 0);
	ck_assert_uint_eq(picture.width, WIDTH);
	ck_assert_uint_eq(picture.height, HEIGHT);
	for (i = 0; i < WIDTH * HEIGHT; i++) {
		ck_assert_int_le(abs(picture.rgb[3 * i] - 200), 12);
		ck_assert_int_le(abs(picture.rgb[3 * i + 1] - (int)(10 * (i / WIDTH))), 12);
		ck_assert_int_le(abs(picture.rgb[3 * i + 2] - 40), 12);
	}
	picture_fini(&picture);
}
END_TEST

START_TEST(what_is_no_picture_is_refused)
{
	static const char text[] = "P3 2 2 255 this is text";

	refused(-ENOENT, "No such file");
	file_write("", 0);
	refused(-EINVAL, "empty");
	file_write(text, sizeof(text));
	refused(-EINVAL, "neither a PNG nor a JPEG");
	file_write("\x89", 1);
	refused(-EINVAL, "neither");
	file_write("\xff\xd8\xff", 3);
	refused(-EINVAL, "damaged JPEG");
	file_write("\x89PNG\r\n\x1a\n", 8);
	refused(-EINVAL, "damaged PNG");
	unlink(path);
	ck_assert_int_eq(mkdir(path, 0700), 0);
	refused(-EINVAL, "not a regular file");
	rmdir(path);
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	refused(-EINVAL, "not a regular file");
	unlink(path);
	ck_assert_int_eq(symlink(path, path), 0);
	refused(-ELOOP, "symbolic links");
}
END_TEST

/* Both kinds; a JPEG may lose its two closing bytes without a pixel missing. */
START_TEST(every_truncation_is_refused)
{
	static struct bytes whole;
	struct picture_reason reason;
	size_t n;

	if (_i == 0)
		make_png();
	else
		make_jpeg();
	file_get(&whole);
	ck_assert_uint_gt(whole.n, 100);
	for (n = 1; n + 2 < whole.n; n++) {
		file_write(whole.b, n);
		ck_assert_msg(read_it(&reason) < 0 || n + 16 > whole.n,
			"%zu of %zu bytes pass for a picture", n, whole.n);
	}
	file_write(whole.b, whole.n / 2);
	refused(-EINVAL, _i == 0 ? "damaged PNG" : "damaged JPEG");
}
END_TEST

/* Any byte may be anything: read or refused, but never worse. */
START_TEST(damage_does_no_harm)
{
	static struct bytes whole;
	struct picture_reason reason;
	unsigned int seed = 1;
	size_t i;

	if (_i == 0)
		make_png();
	else
		make_jpeg();
	file_get(&whole);
	for (i = 0; i < whole.n; i++) {
		unsigned char kept = whole.b[i];

		seed = seed * 1664525u + 1013904223u;
		whole.b[i] ^= (unsigned char)(seed >> 24 | 1);
		file_write(whole.b, whole.n);
		read_it(&reason);
		whole.b[i] = kept;
	}
}
END_TEST

static void put32(unsigned char *to, uint32_t value)
{
	to[0] = (unsigned char)(value >> 24);
	to[1] = (unsigned char)(value >> 16);
	to[2] = (unsigned char)(value >> 8);
	to[3] = (unsigned char)value;
}

/* A header may promise any size; no memory is taken for it. */
START_TEST(huge_sizes_are_refused)
{
	static struct bytes whole;

	make_png();
	file_get(&whole);
	put32(whole.b + 16, PICTURE_SIDE_MAX + 1);
	put32(whole.b + 20, 1);
	put32(whole.b + 29, (uint32_t)crc32(0, whole.b + 12, 17));
	file_write(whole.b, whole.n);
	refused(-EINVAL, "too many");
	put32(whole.b + 16, PICTURE_SIDE_MAX);
	put32(whole.b + 20, PICTURE_SIDE_MAX);
	put32(whole.b + 29, (uint32_t)crc32(0, whole.b + 12, 17));
	file_write(whole.b, whole.n);
	refused(-EINVAL, "too many");
	put32(whole.b + 16, 0);
	put32(whole.b + 29, (uint32_t)crc32(0, whole.b + 12, 17));
	file_write(whole.b, whole.n);
	refused(-EINVAL, "PNG");
}
END_TEST

START_TEST(a_file_that_is_too_long_is_refused)
{
	file_write("\xff\xd8\xff", 3);
	ck_assert_int_eq(truncate(path, PICTURE_FILE_MAX + 1), 0);
	refused(-EINVAL, "too many");
}
END_TEST

START_TEST(failed_writes_say_why)
{
	static const uint8_t grey[WIDTH * HEIGHT];
	struct picture_reason reason;
	char inner[80];

	snprintf(inner, sizeof(inner), "%s/none/out.png", dir);
	ck_assert_int_eq(picture_write_grey(inner, WIDTH, HEIGHT, grey, &reason), -ENOENT);
	ck_assert_str_eq(reason.text, strerror(ENOENT));
	ck_assert_int_lt(picture_write_grey("/dev/full", WIDTH, HEIGHT, grey, &reason), 0);
	ck_assert_uint_gt(strlen(reason.text), 3);
	ck_assert_int_eq(access("/dev/full", F_OK), 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("picture");
	TCase *t = tcase_create("files");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, png_is_read_as_it_was_written);
	tcase_add_test(t, jpeg_is_read_as_colours);
	tcase_add_test(t, what_is_no_picture_is_refused);
	tcase_add_loop_test(t, every_truncation_is_refused, 0, 2);
	tcase_add_loop_test(t, damage_does_no_harm, 0, 2);
	tcase_add_test(t, huge_sizes_are_refused);
	tcase_add_test(t, a_file_that_is_too_long_is_refused);
	tcase_add_test(t, failed_writes_say_why);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
