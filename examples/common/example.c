/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors, the kernel image, small facts. A program built in the source tree runs through a
 * wrapper and really lies in a directory .libs, so "beside the program" also means one level up.
 */
#include "examples/common/example.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void example_complain(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fprintf(stderr, "%s: ", program_invocation_short_name);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
}

void example_check(aclError code, const char *call)
{
	const char *text;
	int length = (int)strcspn(call, "(");

	if (code == ACL_SUCCESS)
		return;
	text = aclGetRecentErrMsg();
	example_complain("%.*s failed with code %d%s%s", length, call, code, text ? ": " : "",
		text ? text : "");
	exit(EXAMPLE_FAILED);
}

uint32_t example_number(const char *what, const char *text, uint32_t min, uint32_t max)
{
	char *end;
	long long value;

	errno = 0;
	value = strtoll(text, &end, 10);
	if (errno || end == text || *end || value < min || value > max) {
		example_complain("%s: \"%s\" is not a whole number from %u to %u", what, text, min,
			max);
		exit(EXAMPLE_USAGE);
	}
	return (uint32_t)value;
}

/* Whether dir/name.npuk can be read; ret_path, of PATH_MAX bytes, gets its absolute name. */
static bool image_in(const char *dir, int length, const char *name, char *ret_path)
{
	char *path;
	bool found;

	if (length == 0)
		return false;
	if (asprintf(&path, "%.*s/%s.npuk", length, dir, name) < 0)
		return false;
	found = !access(path, R_OK) && realpath(path, ret_path);
	free(path);
	return found;
}

static bool image_find(const char *name, char *ret_path)
{
	const char *list = getenv("NPU_KERNEL_PATH");
	char self[PATH_MAX];
	ssize_t n;
	int up;

	while (list && *list) {
		int length = (int)strcspn(list, ":");

		if (image_in(list, length, name, ret_path))
			return true;
		list += length + (list[length] == ':');
	}

	n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	for (up = 0; n > 0 && up < 2; up++) {
		while (n > 0 && self[n - 1] != '/')
			n--;
		if (n > 0 && image_in(self, (int)--n, name, ret_path))
			return true;
	}
	return image_in(NPU_LIBEXECDIR "/examples", INT_MAX, name, ret_path);
}

aclrtBinHandle example_load(const char *path, const char *name)
{
	char found[PATH_MAX];
	aclrtBinHandle image;

	if (path && !realpath(path, found)) {
		example_complain("%s: %s", path, strerror(errno));
		exit(EXAMPLE_FAILED);
	}
	if (!path && !image_find(name, found)) {
		example_complain("%s.npuk: not found beside the program, in $NPU_KERNEL_PATH or in "
			NPU_LIBEXECDIR "/examples: name the file with -k", name);
		exit(EXAMPLE_FAILED);
	}
	CHECK(aclrtBinaryLoadFromFile(found, NULL, &image));
	return image;
}

aclrtFuncHandle example_kernel(aclrtBinHandle image, const char *name)
{
	aclrtFuncHandle kernel;

	CHECK(aclrtBinaryGetFunction(image, name, &kernel));
	return kernel;
}

uint32_t example_cores(void)
{
	int32_t device;
	int64_t cores;

	CHECK(aclrtGetDevice(&device));
	CHECK(aclrtGetDeviceInfo((uint32_t)device, ACL_DEV_ATTR_AICORE_CORE_NUM, &cores));
	return cores < 1 ? 1 : cores > 1024 ? 1024 : (uint32_t)cores;
}

double example_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}
