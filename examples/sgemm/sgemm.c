/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Multiplies two square matrices on the NPU, several times, checks each result against the CPU
 * and prints the speed. The arguments of the launch go through an argument list of the library.
 *
 * Tolerance: entries are in [-1, 1]; a result may differ from the one in double precision by
 * n * 2^-23, the rounding of n additions of that size.
 */
#include <float.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "examples/common/example.h"

#define SIZE_MAX_N 8192u
#define REPEATS_MAX 100000u

struct options {
	uint32_t n, repeats;
	const char *image;
	bool quiet;
};

struct sgemm {
	struct options options;
	float *a, *b, *c;			/* pinned */
	float *device_a, *device_b, *device_c;
	double *expected;
	size_t bytes;
	uint32_t blocks;
	aclrtStream stream;
	aclrtEvent begin, end;
	aclrtFuncHandle kernel;
	aclrtArgsHandle args;
	double best_ms, all_ms, worst_difference;
};

/* Numbers in [-1, 1] that are the same in every run. */
static void fill(float *matrix, size_t entries, uint32_t seed)
{
	size_t i;

	for (i = 0; i < entries; i++) {
		seed = seed * 1664525u + 1013904223u;
		matrix[i] = (float)(seed >> 8) / 8388608.0f - 1.0f;
	}
}

static void reference(struct sgemm *sgemm)
{
	uint32_t n = sgemm->options.n, i, j, k;

	for (i = 0; i < n; i++) {
		double *row = sgemm->expected + (size_t)i * n;

		memset(row, 0, n * sizeof(*row));
		for (k = 0; k < n; k++) {
			double a = (double)sgemm->a[(size_t)i * n + k];
			const float *b = sgemm->b + (size_t)k * n;

			for (j = 0; j < n; j++)
				row[j] += a * (double)b[j];
		}
	}
}

/* Exits at the first entry that is off by more than the tolerance. */
static void compare(struct sgemm *sgemm, uint32_t repeat)
{
	uint32_t n = sgemm->options.n;
	double tolerance = n * (double)FLT_EPSILON;
	size_t i;

	for (i = 0; i < (size_t)n * n; i++) {
		double difference = fabs((double)sgemm->c[i] - sgemm->expected[i]);

		if (!(difference <= tolerance)) {
			example_complain("multiplication %u: entry (%zu, %zu) is %g, the CPU says %g, "
				"more than %g apart", repeat, i / n, i % n, (double)sgemm->c[i],
				sgemm->expected[i], tolerance);
			exit(EXAMPLE_FAILED);
		}
		if (difference > sgemm->worst_difference)
			sgemm->worst_difference = difference;
	}
}

static void append(aclrtArgsHandle args, void *value, size_t size)
{
	aclrtParamHandle param;

	CHECK(aclrtKernelArgsAppend(args, value, size, &param));
}

static void sgemm_init(struct sgemm *sgemm, aclrtBinHandle image)
{
	void **pinned[] = { (void **)&sgemm->a, (void **)&sgemm->b, (void **)&sgemm->c };
	void **device[] = { (void **)&sgemm->device_a, (void **)&sgemm->device_b,
		(void **)&sgemm->device_c };
	int i;

	for (i = 0; i < 3; i++) {
		CHECK(aclrtMallocHost(pinned[i], sgemm->bytes));
		CHECK(aclrtMalloc(device[i], sgemm->bytes, ACL_MEM_MALLOC_HUGE_FIRST));
	}
	CHECK(aclrtCreateStream(&sgemm->stream));
	CHECK(aclrtCreateEvent(&sgemm->begin));
	CHECK(aclrtCreateEvent(&sgemm->end));
	sgemm->blocks = 4 * example_cores();
	sgemm->kernel = example_kernel(image, "sgemm");
	CHECK(aclrtKernelArgsInit(sgemm->kernel, &sgemm->args));
	append(sgemm->args, &sgemm->device_a, sizeof(sgemm->device_a));
	append(sgemm->args, &sgemm->device_b, sizeof(sgemm->device_b));
	append(sgemm->args, &sgemm->device_c, sizeof(sgemm->device_c));
	append(sgemm->args, &sgemm->options.n, sizeof(sgemm->options.n));
	CHECK(aclrtKernelArgsFinalize(sgemm->args));
}

static void sgemm_fini(struct sgemm *sgemm)
{
	CHECK(aclrtDestroyEvent(sgemm->end));
	CHECK(aclrtDestroyEvent(sgemm->begin));
	CHECK(aclrtDestroyStream(sgemm->stream));
	CHECK(aclrtFree(sgemm->device_a));
	CHECK(aclrtFree(sgemm->device_b));
	CHECK(aclrtFree(sgemm->device_c));
	CHECK(aclrtFreeHost(sgemm->a));
	CHECK(aclrtFreeHost(sgemm->b));
	CHECK(aclrtFreeHost(sgemm->c));
}

static void multiply(struct sgemm *sgemm, uint32_t repeat)
{
	aclrtStream stream = sgemm->stream;
	float ms;

	/* all bits set is a NaN: an entry that the kernel leaves out cannot pass */
	CHECK(aclrtMemsetAsync(sgemm->device_c, sgemm->bytes, 0xff, sgemm->bytes, stream));
	CHECK(aclrtRecordEvent(sgemm->begin, stream));
	CHECK(aclrtLaunchKernelWithConfig(sgemm->kernel, sgemm->blocks, stream, NULL, sgemm->args,
		NULL));
	CHECK(aclrtRecordEvent(sgemm->end, stream));
	CHECK(aclrtMemcpyAsync(sgemm->c, sgemm->bytes, sgemm->device_c, sgemm->bytes,
		ACL_MEMCPY_DEVICE_TO_HOST, stream));
	CHECK(aclrtSynchronizeStream(stream));
	CHECK(aclrtEventElapsedTime(&ms, sgemm->begin, sgemm->end));
	compare(sgemm, repeat);
	sgemm->all_ms += (double)ms;
	if (repeat == 1 || (double)ms < sgemm->best_ms)
		sgemm->best_ms = (double)ms;
}

static void run(struct sgemm *sgemm)
{
	const struct options *options = &sgemm->options;
	double gflop = 2.0 * options->n * options->n * options->n / 1e9;
	struct progress progress;
	aclrtBinHandle image;
	uint32_t i;

	CHECK(aclInit(NULL));
	CHECK(aclrtSetDevice(0));
	image = example_load(options->image, "sgemm");
	sgemm_init(sgemm, image);
	fill(sgemm->a, (size_t)options->n * options->n, 1);
	fill(sgemm->b, (size_t)options->n * options->n, 2);
	CHECK(aclrtMemcpy(sgemm->device_a, sgemm->bytes, sgemm->a, sgemm->bytes,
		ACL_MEMCPY_HOST_TO_DEVICE));
	CHECK(aclrtMemcpy(sgemm->device_b, sgemm->bytes, sgemm->b, sgemm->bytes,
		ACL_MEMCPY_HOST_TO_DEVICE));
	reference(sgemm);

	progress_init(&progress, "multiplications", options->repeats, options->quiet);
	for (i = 1; i <= options->repeats; i++) {
		multiply(sgemm, i);
		progress_step(&progress, i);
	}
	progress_fini(&progress);

	sgemm_fini(sgemm);
	CHECK(aclrtBinaryUnLoad(image));
	CHECK(aclrtResetDevice(0));
	CHECK(aclFinalize());
	printf("sgemm: %u x %u, %u times, right within %.1e (allowed %.1e); %.2f GFLOP/s, "
		"best %.2f GFLOP/s\n", options->n, options->n, options->repeats,
		sgemm->worst_difference, options->n * (double)FLT_EPSILON,
		gflop * options->repeats / (sgemm->all_ms / 1e3), gflop / (sgemm->best_ms / 1e3));
}

static void usage(FILE *out)
{
	fprintf(out,
		"usage: sgemm [-n SIZE] [-r REPEATS] [-k KERNEL.npuk] [-q]\n"
		"Multiplies square matrices on the NPU, checks them against the CPU, prints GFLOP/s.\n"
		"  -n, --size N      rows and columns, 1 to %u (default 1024)\n"
		"  -r, --repeats N   multiplications, 1 to %u (default 20)\n"
		"  -k, --kernel F    kernel image (default: sgemm.npuk beside the program)\n"
		"  -q, --quiet       no progress\n"
		"  -h, --help        this text\n"
		"Exit status: 0 all right, 1 something was not, 2 wrong usage.\n",
		SIZE_MAX_N, REPEATS_MAX);
}

static struct options options_parse(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "size", required_argument, NULL, 'n' },
		{ "repeats", required_argument, NULL, 'r' },
		{ "kernel", required_argument, NULL, 'k' },
		{ "quiet", no_argument, NULL, 'q' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	struct options options = { .n = 1024, .repeats = 20 };
	int c;

	while ((c = getopt_long(argc, argv, "n:r:k:qh", longs, NULL)) != -1) {
		switch (c) {
		case 'n':
			options.n = example_number("--size", optarg, 1, SIZE_MAX_N);
			break;
		case 'r':
			options.repeats = example_number("--repeats", optarg, 1, REPEATS_MAX);
			break;
		case 'k':
			options.image = optarg;
			break;
		case 'q':
			options.quiet = true;
			break;
		case 'h':
			usage(stdout);
			exit(EXAMPLE_OK);
		default:
			usage(stderr);
			exit(EXAMPLE_USAGE);
		}
	}
	if (optind < argc) {
		example_complain("\"%s\" is no option", argv[optind]);
		exit(EXAMPLE_USAGE);
	}
	return options;
}

int main(int argc, char **argv)
{
	struct sgemm sgemm = { .options = options_parse(argc, argv) };
	size_t entries = (size_t)sgemm.options.n * sgemm.options.n;

	sgemm.bytes = entries * sizeof(float);
	sgemm.expected = malloc(entries * sizeof(double));
	if (!sgemm.expected) {
		example_complain("no memory for %zu entries", entries);
		return EXAMPLE_FAILED;
	}
	run(&sgemm);
	free(sgemm.expected);
	return EXAMPLE_OK;
}
