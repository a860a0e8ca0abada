/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernels of the examples, called as plain functions with the blocks one after the other:
 * for every size and number of blocks the result is that of the reference.
 */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "examples/edges/edges_kernel.c"
#include "examples/edges/frame.h"
#include "examples/sgemm/sgemm_kernel.c"

#define LARGEST 40u

static _Thread_local uint32_t block_idx, block_num = 1;

uint32_t npu_block_idx(void)
{
	return block_idx;
}

uint32_t npu_block_num(void)
{
	return block_num;
}

#define FOR_BLOCKS(num) \
	for (block_num = (num), block_idx = 0; block_idx < block_num; block_idx++)

static uint32_t seed = 1;

static uint32_t next(void)
{
	seed = seed * 1664525u + 1013904223u;
	return seed >> 16;
}

static void *allocate(size_t n)
{
	void *p = malloc(n);

	ck_assert_ptr_nonnull(p);
	return p;
}

/* Exact allocations, so that a sanitizer sees each access beyond a plane. */
static void check_frame(uint32_t width, uint32_t height, uint32_t blocks, struct frame frame)
{
	size_t pixels = (size_t)width * height, i, moved = (size_t)frame.shift * width * 3;
	uint8_t *rgb = allocate(pixels * 3), *shifted = allocate(pixels * 3);
	uint8_t *level = allocate(pixels), *soft = allocate(pixels), *edge = allocate(pixels);
	uint8_t *expected = allocate(pixels);
	uint16_t *sums = allocate(pixels * 2);

	for (i = 0; i < pixels * 3; i++)
		rgb[i] = next() % 4 ? (uint8_t)next() : (uint8_t)(next() % 2 * 255);
	memcpy(shifted, rgb + pixels * 3 - moved, moved);
	memcpy(shifted + moved, rgb, pixels * 3 - moved);

	FOR_BLOCKS(blocks)
		edges_level(shifted, level, width, height, frame.gain, frame.offset);
	FOR_BLOCKS(blocks)
		edges_blur_down(level, sums, width, height);
	FOR_BLOCKS(blocks)
		edges_blur_across(sums, soft, width, height);
	FOR_BLOCKS(blocks)
		edges_sobel(soft, edge, width, height, frame.threshold);
	ck_assert_int_eq(frame_reference(rgb, width, height, frame, expected), 0);
	for (i = 0; i < pixels; i++)
		ck_assert_msg(edge[i] == expected[i], "%ux%u in %u blocks: pixel %zu is %u, not %u",
			width, height, blocks, i, edge[i], expected[i]);
	free(rgb);
	free(shifted);
	free(level);
	free(soft);
	free(edge);
	free(expected);
	free(sums);
}

START_TEST(edges_agree_at_every_size)
{
	uint32_t width, height;

	for (width = 1; width <= 9; width++)
		for (height = 1; height <= 9; height++)
			check_frame(width, height, 1 + (width + height) % 5,
				frame_settings(width * 31 + height, height));
}
END_TEST

START_TEST(edges_agree_for_every_setting)
{
	uint32_t left;

	for (left = 0; left < 300; left++)
		check_frame(LARGEST, 31, 1 + left % 64, frame_settings(left, 31));
}
END_TEST

START_TEST(frames_differ)
{
	struct frame last = frame_settings(0, 600), before;
	uint32_t left;

	ck_assert_uint_eq(last.shift, 0);
	ck_assert_int_eq(last.gain, 256);
	ck_assert_int_eq(last.offset, 0);
	for (left = 0; left < 199; left++) {
		last = frame_settings(left, 600);
		before = frame_settings(left + 1, 600);
		ck_assert_int_ne(memcmp(&last, &before, sizeof(last)), 0);
		ck_assert_uint_lt(before.shift, 600);
	}
}
END_TEST

static void check_sgemm(uint32_t n, uint32_t blocks)
{
	size_t entries = (size_t)n * n, i;
	float *a = allocate(entries * 4), *b = allocate(entries * 4), *c = allocate(entries * 4);
	uint32_t x, y, k;

	for (i = 0; i < entries; i++) {
		a[i] = (float)next() / 32768.0f - 1.0f;
		b[i] = (float)next() / 32768.0f - 1.0f;
		c[i] = NAN;
	}
	FOR_BLOCKS(blocks)
		sgemm(a, b, c, n);
	for (y = 0; y < n; y++) {
		for (x = 0; x < n; x++) {
			double sum = 0.0;

			for (k = 0; k < n; k++)
				sum += (double)a[(size_t)y * n + k] * (double)b[(size_t)k * n + x];
			ck_assert_msg(fabs(sum - (double)c[(size_t)y * n + x]) <= n * 0x1p-23,
				"%u: entry (%u, %u) is %g, not %g", n, y, x,
				(double)c[(size_t)y * n + x], sum);
		}
	}
	free(a);
	free(b);
	free(c);
}

START_TEST(sgemm_agrees)
{
	static const uint32_t sizes[] = { 1, 2, 3, 4, 5, 15, 16, 17, 63, 64, 65, 130, 255, 257 };

	check_sgemm(sizes[_i], 1 + (uint32_t)_i % 4);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("example kernels");
	TCase *t = tcase_create("kernels");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_set_timeout(t, 120);
	tcase_add_test(t, edges_agree_at_every_size);
	tcase_add_test(t, edges_agree_for_every_setting);
	tcase_add_test(t, frames_differ);
	tcase_add_loop_test(t, sgemm_agrees, 0, 14);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
