/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reference, as the formulas of frame.h say and nothing cleverer: each pixel of each step
 * looks at its neighbours. It shares no code with the kernels.
 */
#include "examples/edges/frame.h"

#include <errno.h>
#include <stdlib.h>

static int at(const uint8_t *plane, int width, int height, int x, int y)
{
	x = x < 0 ? 0 : x >= width ? width - 1 : x;
	y = y < 0 ? 0 : y >= height ? height - 1 : y;
	return plane[(size_t)y * (size_t)width + (size_t)x];
}

static uint8_t level(const uint8_t *pixel, const struct frame *frame)
{
	int grey = (77 * pixel[0] + 150 * pixel[1] + 29 * pixel[2] + 128) / 256;
	int value = (grey * frame->gain + 128) / 256 + frame->offset;

	return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

static uint8_t blur(const uint8_t *plane, int width, int height, int x, int y)
{
	static const int weight[5] = { 1, 4, 6, 4, 1 };
	int sum = 128, dx, dy;

	for (dy = -2; dy <= 2; dy++)
		for (dx = -2; dx <= 2; dx++)
			sum += weight[dy + 2] * weight[dx + 2] *
				at(plane, width, height, x + dx, y + dy);
	return (uint8_t)(sum / 256);
}

static uint8_t edge_at(const uint8_t *plane, int width, int height, int x, int y, int threshold)
{
	static const int slope[3][3] = { { -1, 0, 1 }, { -2, 0, 2 }, { -1, 0, 1 } };
	int gx = 0, gy = 0, dx, dy, larger, smaller, edge;

	for (dy = -1; dy <= 1; dy++) {
		for (dx = -1; dx <= 1; dx++) {
			int value = at(plane, width, height, x + dx, y + dy);

			gx += slope[dy + 1][dx + 1] * value;
			gy += slope[dx + 1][dy + 1] * value;
		}
	}
	gx = abs(gx);
	gy = abs(gy);
	larger = gx > gy ? gx : gy;
	smaller = gx > gy ? gy : gx;
	edge = (15 * larger + 7 * smaller) / 16;
	return (uint8_t)(edge < threshold ? 0 : edge > 255 ? 255 : edge);
}

int frame_reference(const uint8_t *rgb, uint32_t width, uint32_t height, struct frame frame,
		uint8_t *edge)
{
	size_t pixels = (size_t)width * height;
	uint8_t *grey = malloc(pixels), *soft = malloc(pixels);
	int w = (int)width, h = (int)height, x, y, r = 0;

	if (!grey || !soft) {
		r = -ENOMEM;
		goto out;
	}
	for (y = 0; y < h; y++) {
		size_t from = ((size_t)y + height - frame.shift) % height;

		for (x = 0; x < w; x++)
			grey[(size_t)y * width + (size_t)x] =
				level(rgb + (from * width + (size_t)x) * 3, &frame);
	}
	for (y = 0; y < h; y++)
		for (x = 0; x < w; x++)
			soft[(size_t)y * width + (size_t)x] = blur(grey, w, h, x, y);
	for (y = 0; y < h; y++)
		for (x = 0; x < w; x++)
			edge[(size_t)y * width + (size_t)x] =
				edge_at(soft, w, h, x, y, frame.threshold);
out:
	free(grey);
	free(soft);
	return r;
}
