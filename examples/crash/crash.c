/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches a kernel that goes wrong and shows what a program sees of it: the launch succeeds, the
 * next synchronise returns the fault once, and then the stream works again.
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "examples/common/example.h"

#define BLOCKS 4u
#define LIMIT_US 200000u
#define NULL_ADDRESS UINT64_C(0)
#define WILD_ADDRESS UINT64_C(0x7efdeadbe000)	/* of the device, but nobody allocated it */

enum outcome { FAULT, TIME_OUT };

/* One way to go wrong: the kernel, its only argument, what must come of it. */
struct kind {
	const char *name, *kernel, *help;
	uint64_t argument;
	enum outcome outcome;
	bool address;		/* the error must name the argument as the address */
};

static const struct kind kinds[] = {
	{ "null", "crash_write", "writes to address 0", NULL_ADDRESS, FAULT, true },
	{ "wild", "crash_write", "writes where nothing is", WILD_ADDRESS, FAULT, true },
#ifndef __aarch64__	/* where a division by zero is no fault */
	{ "div0", "crash_divide", "divides by zero", 0, FAULT, false },
#endif
	{ "ill", "crash_illegal", "executes what is no instruction", 1, FAULT, false },
	{ "stack", "crash_stack", "recurses beyond its stack", UINT32_MAX, FAULT, false },
	{ "loop", "crash_loop", "never ends, until its time is up", 1, TIME_OUT, false },
};

#define N_KINDS (sizeof(kinds) / sizeof(kinds[0]))

struct options {
	const struct kind *kind;
	const char *image;
};

static bool expected(const struct kind *kind, aclError code)
{
	if (kind->outcome == TIME_OUT)
		return code == ACL_ERROR_RT_AICORE_TIMEOUT ||
			code == ACL_ERROR_RT_VECTOR_CORE_TIMEOUT;
	return code == ACL_ERROR_RT_AICORE_EXCEPTION ||
		code == ACL_ERROR_RT_AICORE_TRAP_EXCEPTION ||
		code == ACL_ERROR_RT_VECTOR_CORE_EXCEPTION ||
		code == ACL_ERROR_RT_VECTOR_CORE_TRAP_EXCEPTION;
}

/* Whether the text says which kernel it was, and where it went wrong if that is known. */
static bool explained(const struct kind *kind, const char *text)
{
	char address[32];

	snprintf(address, sizeof(address), kind->argument ? "%" PRIx64 : "0x%" PRIx64,
		kind->argument);
	return text && strstr(text, kind->kernel) && (!kind->address || strcasestr(text, address));
}

static void launch(aclrtBinHandle image, const char *name, aclrtStream stream, void *args,
		size_t size)
{
	CHECK(aclrtLaunchKernelWithHostArgs(example_kernel(image, name), BLOCKS, stream, NULL, args,
		size, NULL, 0));
}

/* After the fault: the same stream runs a healthy kernel, and memory is what it was. */
static bool works_again(aclrtBinHandle image, aclrtStream stream, uint32_t *words)
{
	struct {
		_Alignas(8) uint32_t *words;
		_Alignas(8) uint32_t value;
	} args = { words, 1000 };
	uint32_t host[BLOCKS], i;

	launch(image, "crash_none", stream, &args, sizeof(args));
	CHECK(aclrtSynchronizeStream(stream));
	CHECK(aclrtMemcpy(host, sizeof(host), words, sizeof(host), ACL_MEMCPY_DEVICE_TO_HOST));
	for (i = 0; i < BLOCKS; i++)
		if (host[i] != 1000 + i)
			return false;
	return true;
}

static int run(const struct options *options)
{
	const struct kind *kind = options->kind;
	uint64_t argument = kind->argument, limit;
	const char *text;
	aclrtBinHandle image;
	aclrtStream stream;
	void *words;
	aclError code;
	int exit_code = EXAMPLE_FAILED;

	CHECK(aclInit(NULL));
	CHECK(aclrtSetDevice(0));
	image = example_load(options->image, "crash");
	CHECK(aclrtCreateStream(&stream));
	CHECK(aclrtMalloc(&words, BLOCKS * sizeof(uint32_t), ACL_MEM_MALLOC_HUGE_FIRST));
	if (kind->outcome == TIME_OUT) {
		CHECK(aclrtSetOpExecuteTimeOutV2(LIMIT_US, &limit));
		printf("crash: a kernel may run %.3f s\n", (double)limit / 1e6);
	}

	launch(image, kind->kernel, stream, &argument, sizeof(argument));
	code = aclrtSynchronizeStream(stream);
	text = aclGetRecentErrMsg();
	if (code == ACL_SUCCESS)
		example_complain("%s was to fail and did not", kind->kernel);
	else if (!expected(kind, code))
		example_complain("%s failed, but with code %d: %s", kind->kernel, code,
			text ? text : "(no text)");
	else if (!explained(kind, text))
		example_complain("code %d is right, but the text does not name kernel and address: "
			"%s", code, text ? text : "(no text)");
	else
		exit_code = EXAMPLE_OK;
	if (exit_code == EXAMPLE_OK) {
		printf("crash: %s (%s) got code %d: %s\n", kind->name, kind->help, code, text);
		if (works_again(image, stream, words)) {
			printf("crash: and the stream works again\n");
		} else {
			example_complain("the stream does not work again after the fault");
			exit_code = EXAMPLE_FAILED;
		}
	}
	CHECK(aclrtFree(words));
	CHECK(aclrtDestroyStream(stream));
	CHECK(aclrtBinaryUnLoad(image));
	CHECK(aclrtResetDevice(0));
	CHECK(aclFinalize());
	return exit_code;
}

static void usage(FILE *out)
{
	size_t i;

	fprintf(out,
		"usage: crash [--kind KIND] [-k KERNEL.npuk]\n"
		"Launches a kernel that goes wrong on the NPU and prints the error that comes of it.\n"
		"  -t, --kind KIND   how it goes wrong (default wild):\n");
	for (i = 0; i < N_KINDS; i++)
		fprintf(out, "        %-6s %s\n", kinds[i].name, kinds[i].help);
	fprintf(out,
		"  -k, --kernel F    kernel image (default: crash.npuk beside the program)\n"
		"  -h, --help        this text\n"
		"Exit status: 0 the error was the right one, 1 it was not, 2 wrong usage.\n");
}

static const struct kind *kind_find(const char *name)
{
	size_t i;

	for (i = 0; i < N_KINDS; i++)
		if (!strcmp(name, kinds[i].name))
			return &kinds[i];
	example_complain("--kind: \"%s\" is none of those that --help lists", name);
	exit(EXAMPLE_USAGE);
}

static struct options options_parse(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "kind", required_argument, NULL, 't' },
		{ "kernel", required_argument, NULL, 'k' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	struct options options = { .kind = kind_find("wild") };
	int c;

	while ((c = getopt_long(argc, argv, "t:k:h", longs, NULL)) != -1) {
		switch (c) {
		case 't':
			options.kind = kind_find(optarg);
			break;
		case 'k':
			options.image = optarg;
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
	struct options options = options_parse(argc, argv);

	return run(&options);
}
