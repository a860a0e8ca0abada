/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the edges of a picture on the NPU, over many frames, double-buffered: two lanes, each with
 * a stream, pinned host memory and device memory of its own. While the device works on one lane,
 * the CPU checks the result of the other, pixel by pixel, and fills it with the next frame.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "examples/common/example.h"
#include "examples/edges/frame.h"
#include "examples/edges/picture.h"

#define LANES 2u
#define FRAMES_MAX 1000000u
#define SAMPLE "/usr/share/matplotlib/mpl-data/sample_data/grace_hopper.jpg"

struct options {
	uint32_t frames;
	const char *output, *image, *picture;
	bool quiet;
};

struct kernels {
	aclrtFuncHandle level, blur_down, blur_across, sobel;
	uint32_t blocks;
};

struct lane {
	aclrtStream stream;
	aclrtEvent begin, end;
	uint8_t *host_rgb, *host_edge;		/* pinned */
	uint8_t *rgb, *level, *soft, *edge;	/* device */
	uint16_t *sums;				/* device */
};

struct edges {
	struct options options;
	struct picture picture;
	struct kernels kernels;
	struct lane lanes[LANES];
	uint8_t *expected;
	size_t pixels;
	double device_ms;
};

/*
 * Arguments of a launch as the device reads them: in the order of the kernel's parameters, each in
 * a slot of 8 bytes.
 */
#define SLOT _Alignas(8)

static void launch(aclrtFuncHandle kernel, uint32_t blocks, aclrtStream stream, void *args,
		size_t size)
{
	CHECK(aclrtLaunchKernelWithHostArgs(kernel, blocks, stream, NULL, args, size, NULL, 0));
}

static void launch_frame(struct edges *edges, struct lane *lane, struct frame frame)
{
	const struct kernels *k = &edges->kernels;
	uint32_t width = edges->picture.width, height = edges->picture.height;
	struct {
		SLOT const uint8_t *rgb;
		SLOT uint8_t *level;
		SLOT uint32_t width;
		SLOT uint32_t height;
		SLOT int32_t gain;
		SLOT int32_t offset;
	} level = { lane->rgb, lane->level, width, height, frame.gain, frame.offset };
	struct {
		SLOT const uint8_t *level;
		SLOT uint16_t *sums;
		SLOT uint32_t width;
		SLOT uint32_t height;
	} down = { lane->level, lane->sums, width, height };
	struct {
		SLOT const uint16_t *sums;
		SLOT uint8_t *soft;
		SLOT uint32_t width;
		SLOT uint32_t height;
	} across = { lane->sums, lane->soft, width, height };
	struct {
		SLOT const uint8_t *soft;
		SLOT uint8_t *edge;
		SLOT uint32_t width;
		SLOT uint32_t height;
		SLOT int32_t threshold;
	} sobel = { lane->soft, lane->edge, width, height, frame.threshold };

	launch(k->level, k->blocks, lane->stream, &level, sizeof(level));
	launch(k->blur_down, k->blocks, lane->stream, &down, sizeof(down));
	launch(k->blur_across, k->blocks, lane->stream, &across, sizeof(across));
	launch(k->sobel, k->blocks, lane->stream, &sobel, sizeof(sobel));
}

static struct frame settings(const struct edges *edges, uint32_t number)
{
	return frame_settings(edges->options.frames - 1 - number, edges->picture.height);
}

/* Puts a frame on the lane; nothing waits for the device here. */
static void frame_start(struct edges *edges, struct lane *lane, uint32_t number)
{
	const struct picture *picture = &edges->picture;
	struct frame frame = settings(edges, number);
	size_t bytes = edges->pixels * 3, moved = (size_t)frame.shift * picture->width * 3;

	memcpy(lane->host_rgb, picture->rgb + bytes - moved, moved);
	memcpy(lane->host_rgb + moved, picture->rgb, bytes - moved);
	memset(lane->host_edge, 0x5a, edges->pixels);	/* what comes back must be all new */

	CHECK(aclrtRecordEvent(lane->begin, lane->stream));
	CHECK(aclrtMemcpyAsync(lane->rgb, bytes, lane->host_rgb, bytes, ACL_MEMCPY_HOST_TO_DEVICE,
		lane->stream));
	launch_frame(edges, lane, frame);
	CHECK(aclrtMemcpyAsync(lane->host_edge, edges->pixels, lane->edge, edges->pixels,
		ACL_MEMCPY_DEVICE_TO_HOST, lane->stream));
	CHECK(aclrtRecordEvent(lane->end, lane->stream));
}

/* Waits for the frame on the lane and compares it; exits at the first wrong pixel. */
static void frame_finish(struct edges *edges, struct lane *lane, uint32_t number)
{
	const struct picture *picture = &edges->picture;
	size_t i;
	float ms;

	if (frame_reference(picture->rgb, picture->width, picture->height,
			settings(edges, number), edges->expected) < 0) {
		example_complain("no memory for the reference");
		exit(EXAMPLE_FAILED);
	}
	CHECK(aclrtSynchronizeEvent(lane->end));
	CHECK(aclrtEventElapsedTime(&ms, lane->begin, lane->end));
	edges->device_ms += (double)ms;
	if (!memcmp(lane->host_edge, edges->expected, edges->pixels))
		return;
	/* a fault of the work explains wrong pixels, and is the better message */
	CHECK(aclrtSynchronizeStream(lane->stream));
	for (i = 0; lane->host_edge[i] == edges->expected[i]; i++)
		;
	example_complain("frame %u: pixel (%zu, %zu) is %u, the CPU says %u", number,
		i % picture->width, i / picture->width, lane->host_edge[i], edges->expected[i]);
	exit(EXAMPLE_FAILED);
}

static void *device_malloc(size_t size)
{
	void *memory;

	CHECK(aclrtMalloc(&memory, size, ACL_MEM_MALLOC_HUGE_FIRST));
	return memory;
}

static void *pinned_malloc(size_t size)
{
	void *memory;

	CHECK(aclrtMallocHost(&memory, size));
	return memory;
}

static void lane_init(struct lane *lane, size_t pixels)
{
	CHECK(aclrtCreateStream(&lane->stream));
	CHECK(aclrtCreateEvent(&lane->begin));
	CHECK(aclrtCreateEvent(&lane->end));
	lane->host_rgb = pinned_malloc(pixels * 3);
	lane->host_edge = pinned_malloc(pixels);
	lane->rgb = device_malloc(pixels * 3);
	lane->level = device_malloc(pixels);
	lane->sums = device_malloc(pixels * sizeof(*lane->sums));
	lane->soft = device_malloc(pixels);
	lane->edge = device_malloc(pixels);
}

static void lane_fini(struct lane *lane)
{
	CHECK(aclrtFree(lane->edge));
	CHECK(aclrtFree(lane->soft));
	CHECK(aclrtFree(lane->sums));
	CHECK(aclrtFree(lane->level));
	CHECK(aclrtFree(lane->rgb));
	CHECK(aclrtFreeHost(lane->host_edge));
	CHECK(aclrtFreeHost(lane->host_rgb));
	CHECK(aclrtDestroyEvent(lane->end));
	CHECK(aclrtDestroyEvent(lane->begin));
	CHECK(aclrtDestroyStream(lane->stream));
}

static void run_frames(struct edges *edges)
{
	uint32_t frames = edges->options.frames, i;
	struct progress progress;

	progress_init(&progress, "frames", frames, edges->options.quiet);
	for (i = 0; i < frames + LANES; i++) {
		struct lane *lane = &edges->lanes[i % LANES];

		if (i >= LANES && i - LANES < frames) {
			frame_finish(edges, lane, i - LANES);
			progress_step(&progress, i - LANES + 1);
		}
		if (i < frames)
			frame_start(edges, lane, i);
	}
	progress_fini(&progress);
	for (i = 0; i < LANES; i++)
		CHECK(aclrtSynchronizeStream(edges->lanes[i].stream));
}

static void run(struct edges *edges)
{
	const struct options *options = &edges->options;
	const struct lane *last = &edges->lanes[(options->frames - 1) % LANES];
	struct picture_reason reason;
	aclrtBinHandle image;
	double seconds;
	uint32_t i;

	CHECK(aclInit(NULL));
	CHECK(aclrtSetDevice(0));
	image = example_load(options->image, "edges");
	edges->kernels = (struct kernels){
		.level = example_kernel(image, "edges_level"),
		.blur_down = example_kernel(image, "edges_blur_down"),
		.blur_across = example_kernel(image, "edges_blur_across"),
		.sobel = example_kernel(image, "edges_sobel"),
		.blocks = 2 * example_cores(),
	};
	for (i = 0; i < LANES; i++)
		lane_init(&edges->lanes[i], edges->pixels);

	seconds = example_seconds();
	run_frames(edges);
	seconds = example_seconds() - seconds;

	if (picture_write_grey(options->output, edges->picture.width, edges->picture.height,
			last->host_edge, &reason) < 0) {
		example_complain("%s: %s", options->output, reason.text);
		exit(EXAMPLE_FAILED);
	}
	for (i = 0; i < LANES; i++)
		lane_fini(&edges->lanes[i]);
	CHECK(aclrtBinaryUnLoad(image));
	CHECK(aclrtResetDevice(0));
	CHECK(aclFinalize());
	printf("edges: %u frames of %ux%u, every pixel as on the CPU; %.2f s, %.0f frames/s, "
		"%.2f ms a frame on the device; wrote %s\n", options->frames, edges->picture.width,
		edges->picture.height, seconds, options->frames / seconds,
		edges->device_ms / options->frames, options->output);
}

static void usage(FILE *out)
{
	fprintf(out,
		"usage: edges [-n FRAMES] [-o OUT.png] [-k KERNEL.npuk] [-q] [PICTURE]\n"
		"Blurs a picture (PNG or JPEG) and finds its edges on the NPU, frame after frame,\n"
		"and compares every pixel with the CPU.\n"
		"  -n, --frames N    frames, 1 to %u (default 200)\n"
		"  -o, --output F    where the last frame goes (default edges.png)\n"
		"  -k, --kernel F    kernel image (default: edges.npuk beside the program)\n"
		"  -q, --quiet       no progress\n"
		"  -h, --help        this text\n"
		"Without PICTURE: " SAMPLE "\n"
		"Exit status: 0 all right, 1 something was not, 2 wrong usage.\n", FRAMES_MAX);
}

static struct options options_parse(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "frames", required_argument, NULL, 'n' },
		{ "output", required_argument, NULL, 'o' },
		{ "kernel", required_argument, NULL, 'k' },
		{ "quiet", no_argument, NULL, 'q' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	struct options options = { .frames = 200, .output = "edges.png" };
	int c;

	while ((c = getopt_long(argc, argv, "n:o:k:qh", longs, NULL)) != -1) {
		switch (c) {
		case 'n':
			options.frames = example_number("--frames", optarg, 1, FRAMES_MAX);
			break;
		case 'o':
			options.output = optarg;
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
	if (argc - optind > 1) {
		example_complain("one picture at a time, but \"%s\" follows", argv[optind + 1]);
		exit(EXAMPLE_USAGE);
	}
	options.picture = argv[optind];
	return options;
}

int main(int argc, char **argv)
{
	struct edges edges = { .options = options_parse(argc, argv) };
	const char *path = edges.options.picture ? edges.options.picture : SAMPLE;
	struct picture_reason reason;

	if (picture_read(path, &edges.picture, &reason) < 0) {
		example_complain("%s: %s%s", path, reason.text, edges.options.picture ? "" :
			": name a PNG or JPEG, or install python-matplotlib-data");
		return EXAMPLE_FAILED;
	}
	edges.pixels = (size_t)edges.picture.width * edges.picture.height;
	edges.expected = malloc(edges.pixels);
	if (!edges.expected) {
		example_complain("%s: no memory for %zu pixels", path, edges.pixels);
		return EXAMPLE_FAILED;
	}
	run(&edges);
	free(edges.expected);
	picture_fini(&edges.picture);
	return EXAMPLE_OK;
}
