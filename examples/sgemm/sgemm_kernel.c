/* SPDX-License-Identifier: Apache-2.0 */
/*
 * c = a * b for square matrices of n x n floats, row after row. The result is cut into tiles of
 * TILE x TILE; block i makes tiles i, i + blocks, ... A tile is built from strips of 16
 * columns: the strip of b is packed into a small buffer, and 4 rows of a run along it with the 4x16
 * sums in vector registers.
 */
#include <npu/npu_kernel.h>

#define TILE 64u
#define DEPTH 256u	/* rows of b packed at a time: 16 KiB of stack */
#define ROWS 4u
#define COLUMNS 16u
#define LANES 8u

typedef float lanes __attribute__((vector_size(LANES * 4), aligned(4), may_alias));

/* Rows [k, k + depth) of 16 columns of b, with zeros beyond the right border. */
static void pack(const float *b, uint32_t n, uint32_t k, uint32_t depth, uint32_t column,
		float strip[DEPTH][COLUMNS])
{
	uint32_t width = n - column < COLUMNS ? n - column : COLUMNS, i, j;

	for (i = 0; i < depth; i++) {
		const float *row = b + (size_t)(k + i) * n + column;

		for (j = 0; j < COLUMNS; j++)
			strip[i][j] = j < width ? row[j] : 0.0f;
	}
}

/* Adds 4 rows of a times the strip to c; rows and columns beyond the border are not written. */
static void multiply(const float *a, float *c, uint32_t n, uint32_t row, uint32_t k, uint32_t depth,
		uint32_t column, float strip[DEPTH][COLUMNS])
{
	uint32_t height = n - row < ROWS ? n - row : ROWS;
	uint32_t width = n - column < COLUMNS ? n - column : COLUMNS, i, j, r;
	lanes sum[ROWS][2] = { { { 0 } } };
	const float *from[ROWS];

	for (r = 0; r < ROWS; r++)
		from[r] = a + (size_t)(row + (r < height ? r : 0)) * n + k;
	for (i = 0; i < depth; i++) {
		lanes left = *(const lanes *)&strip[i][0], right = *(const lanes *)&strip[i][LANES];

		for (r = 0; r < ROWS; r++) {
			sum[r][0] += from[r][i] * left;
			sum[r][1] += from[r][i] * right;
		}
	}
	for (r = 0; r < height; r++) {
		float *to = c + (size_t)(row + r) * n + column;

		for (j = 0; j < width; j++)
			to[j] += sum[r][j / LANES][j % LANES];
	}
}

static void make_tile(const float *a, const float *b, float *c, uint32_t n, uint32_t top,
		uint32_t left)
{
	uint32_t bottom = n - top < TILE ? n : top + TILE, right = n - left < TILE ? n : left + TILE;
	float strip[DEPTH][COLUMNS];
	uint32_t row, column, k;

	for (row = top; row < bottom; row++)
		for (column = left; column < right; column++)
			c[(size_t)row * n + column] = 0.0f;
	for (k = 0; k < n; k += DEPTH) {
		uint32_t depth = n - k < DEPTH ? n - k : DEPTH;

		for (column = left; column < right; column += COLUMNS) {
			pack(b, n, k, depth, column, strip);
			for (row = top; row < bottom; row += ROWS)
				multiply(a, c, n, row, k, depth, column, strip);
		}
	}
}

NPU_KERNEL(sgemm, (const float *, a), (const float *, b), (float *, c), (uint32_t, n))
{
	uint32_t side = (n + TILE - 1) / TILE, tile;

	for (tile = npu_block_idx(); tile < side * side; tile += npu_block_num())
		make_tile(a, b, c, n, tile / side * TILE, tile % side * TILE);
}
