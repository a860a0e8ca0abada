/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Four kernels for the steps of a frame (the formulas are in frame.h). A launch is cut into bands
 * of rows, one a block. Each step reads rows that other blocks of the step before have written,
 * so each is a launch of its own: a stream runs them one after the other.
 */
#include <npu/npu_kernel.h>

struct band {
	uint32_t first, end;	/* rows */
};

static struct band band_of_block(uint32_t height)
{
	uint64_t index = npu_block_idx(), num = npu_block_num();

	return (struct band){
		.first = (uint32_t)(index * height / num),
		.end = (uint32_t)((index + 1) * height / num),
	};
}

static inline int32_t clamp(int32_t value, int32_t low, int32_t high)
{
	return value < low ? low : value > high ? high : value;
}

/* A row of a plane; rows beyond the border are those of the border. */
static inline const uint8_t *row_of(const uint8_t *plane, uint32_t width, uint32_t height, int64_t y)
{
	y = y < 0 ? 0 : y >= (int64_t)height ? (int64_t)height - 1 : y;
	return plane + (size_t)y * width;
}

NPU_KERNEL(edges_level, (const uint8_t *, rgb), (uint8_t *, level), (uint32_t, width),
	(uint32_t, height), (int32_t, gain), (int32_t, offset))
{
	struct band band = band_of_block(height);
	size_t i = (size_t)band.first * width, end = (size_t)band.end * width;

	for (; i < end; i++) {
		const uint8_t *p = rgb + 3 * i;
		int32_t grey = (77 * p[0] + 150 * p[1] + 29 * p[2] + 128) >> 8;

		level[i] = (uint8_t)clamp(((grey * gain + 128) >> 8) + offset, 0, 255);
	}
}

/* The blur from top to bottom; its sums need 12 bits. */
NPU_KERNEL(edges_blur_down, (const uint8_t *, level), (uint16_t *, sums), (uint32_t, width),
	(uint32_t, height))
{
	struct band band = band_of_block(height);
	uint32_t x, y;

	for (y = band.first; y < band.end; y++) {
		const uint8_t *a = row_of(level, width, height, (int64_t)y - 2);
		const uint8_t *b = row_of(level, width, height, (int64_t)y - 1);
		const uint8_t *c = row_of(level, width, height, y);
		const uint8_t *d = row_of(level, width, height, (int64_t)y + 1);
		const uint8_t *e = row_of(level, width, height, (int64_t)y + 2);
		uint16_t *to = sums + (size_t)y * width;

		for (x = 0; x < width; x++)
			to[x] = (uint16_t)(a[x] + e[x] + 4 * (b[x] + d[x]) + 6 * c[x]);
	}
}

/* The blur from left to right, which closes the sum over 5x5 pixels. */
NPU_KERNEL(edges_blur_across, (const uint16_t *, sums), (uint8_t *, soft), (uint32_t, width),
	(uint32_t, height))
{
	struct band band = band_of_block(height);
	int32_t last = (int32_t)width - 1, x;
	uint32_t y;

	for (y = band.first; y < band.end; y++) {
		const uint16_t *s = sums + (size_t)y * width;
		uint8_t *to = soft + (size_t)y * width;

		for (x = 0; x <= last; x++) {
			int32_t sum;

			if (x >= 2 && x <= last - 2)
				sum = s[x - 2] + s[x + 2] + 4 * (s[x - 1] + s[x + 1]) + 6 * s[x];
			else
				sum = s[clamp(x - 2, 0, last)] + s[clamp(x + 2, 0, last)] +
					4 * (s[clamp(x - 1, 0, last)] + s[clamp(x + 1, 0, last)]) +
					6 * s[x];
			to[x] = (uint8_t)((sum + 128) >> 8);
		}
	}
}

NPU_KERNEL(edges_sobel, (const uint8_t *, soft), (uint8_t *, edge), (uint32_t, width),
	(uint32_t, height), (int32_t, threshold))
{
	struct band band = band_of_block(height);
	int32_t last = (int32_t)width - 1, x;
	uint32_t y;

	for (y = band.first; y < band.end; y++) {
		const uint8_t *up = row_of(soft, width, height, (int64_t)y - 1);
		const uint8_t *in = row_of(soft, width, height, y);
		const uint8_t *down = row_of(soft, width, height, (int64_t)y + 1);
		uint8_t *to = edge + (size_t)y * width;

		for (x = 0; x <= last; x++) {
			int32_t l = x > 0 ? x - 1 : 0, r = x < last ? x + 1 : last;
			int32_t gx = up[r] + 2 * in[r] + down[r] - up[l] - 2 * in[l] - down[l];
			int32_t gy = down[l] + 2 * down[x] + down[r] - up[l] - 2 * up[x] - up[r];
			int32_t larger, smaller, value;

			gx = gx < 0 ? -gx : gx;
			gy = gy < 0 ? -gy : gy;
			larger = gx > gy ? gx : gy;
			smaller = gx > gy ? gy : gx;
			value = (15 * larger + 7 * smaller) >> 4;
			to[x] = (uint8_t)(value < threshold ? 0 : value > 255 ? 255 : value);
		}
	}
}
