/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first bytes decide which library reads the file. Sizes are checked against the limits before
 * pixels are allocated. libjpeg takes a truncated file for a picture with a grey rest and only
 * warns, so most warnings count as damage here.
 */
#include "examples/edges/picture.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jpeglib.h>
#include <jerror.h>
#include <png.h>

#define PNG_SIGNATURE "\x89PNG\r\n\x1a\n"
#define JPEG_SIGNATURE "\xff\xd8\xff"

struct jpeg_source {
	struct jpeg_error_mgr manager;	/* first: libjpeg hands back a pointer to it */
	jmp_buf out;
	struct picture_reason *reason;
	uint8_t *rgb;			/* here, because longjmp forgets locals */
};

__attribute__((format(printf, 3, 4)))
static int refuse(int error, struct picture_reason *ret_reason, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(ret_reason->text, sizeof(ret_reason->text), format, args);
	va_end(args);
	return error;
}

static int check_size(uint64_t width, uint64_t height, struct picture_reason *ret_reason)
{
	if (width == 0 || height == 0)
		return refuse(-EINVAL, ret_reason, "the picture has no pixels");
	if (width > PICTURE_SIDE_MAX || height > PICTURE_SIDE_MAX ||
			width * height > PICTURE_PIXELS_MAX)
		return refuse(-EINVAL, ret_reason,
			"%llu x %llu pixels are too many, %u a side and %u in all are the limit",
			(unsigned long long)width, (unsigned long long)height, PICTURE_SIDE_MAX,
			PICTURE_PIXELS_MAX);
	return 0;
}

static int png_read(FILE *file, struct picture *ret_picture, struct picture_reason *ret_reason)
{
	static const png_color black = { 0, 0, 0 };
	png_image image = { .version = PNG_IMAGE_VERSION };
	uint8_t *rgb;
	int r;

	if (!png_image_begin_read_from_stdio(&image, file))
		return refuse(-EINVAL, ret_reason, "damaged PNG: %s", image.message);
	r = check_size(image.width, image.height, ret_reason);
	if (r < 0) {
		png_image_free(&image);
		return r;
	}
	image.format = PNG_FORMAT_RGB;
	rgb = malloc(PNG_IMAGE_SIZE(image));
	if (!rgb) {
		png_image_free(&image);
		return refuse(-ENOMEM, ret_reason, "no memory for %u x %u pixels", image.width,
			image.height);
	}
	if (!png_image_finish_read(&image, &black, rgb, 0, NULL)) {
		free(rgb);
		return refuse(-EINVAL, ret_reason, "damaged PNG: %s", image.message);
	}
	*ret_picture = (struct picture){ image.width, image.height, rgb };
	return 0;
}

/* Called by libjpeg for what it cannot go on from. */
static void jpeg_fail(j_common_ptr common)
{
	struct jpeg_source *source = (struct jpeg_source *)common->err;
	char text[JMSG_LENGTH_MAX];

	source->manager.format_message(common, text);
	refuse(0, source->reason, "damaged JPEG: %.120s", text);
	longjmp(source->out, 1);
}

/* Called by libjpeg for warnings (level -1) and traces. Cameras write some harmless oddities. */
static void jpeg_message(j_common_ptr common, int level)
{
	int code = common->err->msg_code;

	if (level < 0 && code != JWRN_EXTRANEOUS_DATA && code != JWRN_ADOBE_XFORM &&
			code != JWRN_JFIF_MAJOR)
		jpeg_fail(common);
}

static int jpeg_read(FILE *file, struct picture *ret_picture, struct picture_reason *ret_reason)
{
	struct jpeg_source source = { .reason = ret_reason };
	struct jpeg_decompress_struct jpeg = { .err = jpeg_std_error(&source.manager) };
	size_t stride;

	source.manager.error_exit = jpeg_fail;
	source.manager.emit_message = jpeg_message;
	if (setjmp(source.out)) {
		free(source.rgb);
		jpeg_destroy_decompress(&jpeg);
		return -EINVAL;
	}
	jpeg_create_decompress(&jpeg);
	jpeg_stdio_src(&jpeg, file);
	jpeg_read_header(&jpeg, TRUE);
	if (check_size(jpeg.image_width, jpeg.image_height, ret_reason) < 0)
		longjmp(source.out, 1);
	jpeg.out_color_space = JCS_RGB;
	jpeg_start_decompress(&jpeg);
	stride = (size_t)jpeg.output_width * 3;
	source.rgb = malloc(stride * jpeg.output_height);
	if (!source.rgb) {
		refuse(0, ret_reason, "no memory for %u x %u pixels", jpeg.output_width,
			jpeg.output_height);
		longjmp(source.out, 1);
	}
	while (jpeg.output_scanline < jpeg.output_height) {
		JSAMPROW row = source.rgb + stride * jpeg.output_scanline;

		jpeg_read_scanlines(&jpeg, &row, 1);
	}
	jpeg_finish_decompress(&jpeg);
	*ret_picture = (struct picture){ jpeg.output_width, jpeg.output_height, source.rgb };
	jpeg_destroy_decompress(&jpeg);
	return 0;
}

/* Opens what is certainly a file with bytes in it; a FIFO or a device could block for ever. */
static int file_open(const char *path, FILE **ret_file, struct picture_reason *ret_reason)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), r = 0;
	struct stat st;
	FILE *file;

	if (fd < 0)
		return refuse(-errno, ret_reason, "%s", strerror(errno));
	if (fstat(fd, &st) < 0)
		r = refuse(-errno, ret_reason, "%s", strerror(errno));
	else if (!S_ISREG(st.st_mode))
		r = refuse(-EINVAL, ret_reason, "not a regular file");
	else if (st.st_size == 0)
		r = refuse(-EINVAL, ret_reason, "the file is empty");
	else if (st.st_size > PICTURE_FILE_MAX)
		r = refuse(-EINVAL, ret_reason, "%lld bytes are too many, %ld are the limit",
			(long long)st.st_size, PICTURE_FILE_MAX);
	if (r == 0) {
		file = fdopen(fd, "rb");
		if (file) {
			*ret_file = file;
			return 0;
		}
		r = refuse(-errno, ret_reason, "%s", strerror(errno));
	}
	close(fd);
	return r;
}

int picture_read(const char *path, struct picture *ret_picture, struct picture_reason *ret_reason)
{
	uint8_t head[8] = { 0 };
	FILE *file = NULL;
	size_t n;
	int r;

	r = file_open(path, &file, ret_reason);
	if (r < 0)
		return r;
	n = fread(head, 1, sizeof(head), file);
	rewind(file);
	if (n == sizeof(head) && !memcmp(head, PNG_SIGNATURE, 8))
		r = png_read(file, ret_picture, ret_reason);
	else if (n >= 3 && !memcmp(head, JPEG_SIGNATURE, 3))
		r = jpeg_read(file, ret_picture, ret_reason);
	else
		r = refuse(-EINVAL, ret_reason, "neither a PNG nor a JPEG");
	fclose(file);
	return r;
}

void picture_fini(struct picture *picture)
{
	free(picture->rgb);
	*picture = (struct picture){ 0 };
}

int picture_write_grey(const char *path, uint32_t width, uint32_t height, const uint8_t *grey,
		struct picture_reason *ret_reason)
{
	png_image image = {
		.version = PNG_IMAGE_VERSION,
		.width = width,
		.height = height,
		.format = PNG_FORMAT_GRAY,
	};
	FILE *file = fopen(path, "wbe");
	struct stat st;
	int r = 0;

	if (!file)
		return refuse(-errno, ret_reason, "%s", strerror(errno));
	if (!png_image_write_to_stdio(&image, file, 0, grey, 0, NULL))
		r = refuse(-EIO, ret_reason, "%s", image.message);
	if (r == 0 && fflush(file) != 0)
		r = refuse(-errno, ret_reason, "%s", strerror(errno));
	if (r < 0 && !fstat(fileno(file), &st) && S_ISREG(st.st_mode))
		unlink(path);
	if (fclose(file) != 0 && r == 0)
		r = refuse(-errno, ret_reason, "%s", strerror(errno));
	return r;
}
