/* SPDX-License-Identifier: Apache-2.0 */
/* A file in memory, with the path that /proc has for it. */
#include "tests/fuzz/fuzz.h"

#include <sys/mman.h>
#include <unistd.h>

const char *fuzz_file(const uint8_t *data, size_t size)
{
	static char path[40];
	static int fd = -1;

	if (fd < 0) {
		fd = memfd_create("input", MFD_CLOEXEC);
		fuzz_check(fd >= 0, "no file in memory");
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	}
	fuzz_check(ftruncate(fd, 0) == 0 && pwrite(fd, data, size, 0) == (ssize_t)size,
		   "cannot write the file");
	return path;
}
