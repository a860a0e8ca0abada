/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process has once: errors of its threads, the list of fds that a forked child must not
 * keep, and the window of device addresses.
 */
#include "client/drv/drv.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "client/drv/process.h"
#include "proto/status.h"

#define KEPT_FDS (1u << 19) /* one bit an fd; those above are closed by exec only */

bool drv_process_forked;
uintptr_t drv_window_base;
size_t drv_window_size;

static _Thread_local struct drv_error last_error;
static _Atomic uint64_t kept_fds[KEPT_FDS / 64];
static _Atomic unsigned kept_words; /* words in use */
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

const struct drv_error *drv_error(void)
{
	return &last_error;
}

int drv_fail(int error, const char *format, ...)
{
	va_list args;

	memset(&last_error, 0, offsetof(struct drv_error, text));
	last_error.error = error;
	va_start(args, format);
	vsnprintf(last_error.text, sizeof(last_error.text), format, args);
	va_end(args);
	return error;
}

int drv_errno_from_status(int status)
{
	static const int errors[] = {
		[NPU_STATUS_INVALID] = -EINVAL,		[NPU_STATUS_NOT_FOUND] = -ENOENT,
		[NPU_STATUS_NO_DEVICE] = -ENODEV,	[NPU_STATUS_DEVICE_MEMORY] = -ENOSPC,
		[NPU_STATUS_QUOTA] = -EDQUOT,		[NPU_STATUS_HOST_MEMORY] = -ENOMEM,
		[NPU_STATUS_DENIED] = -EPERM,		[NPU_STATUS_STATE] = -EBADFD,
		[NPU_STATUS_UNKNOWN_METHOD] = -ENOSYS,	[NPU_STATUS_VERSION] = -EPROTO,
		[NPU_STATUS_DEVICE_LOST] = -EIO,	[NPU_STATUS_TIMEOUT] = -ETIMEDOUT,
		[NPU_STATUS_IMAGE] = -ENOEXEC,		[NPU_STATUS_BUSY] = -EBUSY,
		[NPU_STATUS_UNSUPPORTED] = -EOPNOTSUPP, [NPU_STATUS_INTERNAL] = -EREMOTEIO,
		[NPU_STATUS_CONTIGUOUS] = -ENOSPC,	[NPU_STATUS_LIMIT] = -EUSERS,
		[NPU_STATUS_SHUTDOWN] = -ESHUTDOWN,
	};

	if (status <= 0 || (size_t)status >= sizeof(errors) / sizeof(errors[0]) || !errors[status])
		return -EREMOTEIO;
	return errors[status];
}

uint64_t drv_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

void drv_process_keep_fd(int fd)
{
	unsigned word = (unsigned)fd / 64, used;

	if (fd < 0 || (unsigned)fd >= KEPT_FDS)
		return;
	atomic_fetch_or(&kept_fds[word], 1ull << (fd % 64));
	used = atomic_load(&kept_words);
	while (used <= word && !atomic_compare_exchange_weak(&kept_words, &used, word + 1))
		;
}

void drv_process_close_fd(int fd)
{
	if (fd < 0)
		return;
	if ((unsigned)fd < KEPT_FDS)
		atomic_fetch_and(&kept_fds[fd / 64], ~(1ull << (fd % 64)));
	close(fd);
}

/* Only what is safe between fork and exec: flags and close. */
static void child_after_fork(void)
{
	unsigned words = atomic_load(&kept_words);

	if (!drv_window_size)
		return; /* never connected: the child may begin on its own */
	drv_process_forked = true;
	for (unsigned w = 0; w < words; w++) {
		uint64_t bits = atomic_exchange(&kept_fds[w], 0);

		for (; bits; bits &= bits - 1)
			close((int)(w * 64 + (unsigned)__builtin_ctzll(bits)));
	}
}

static void register_fork(void)
{
	pthread_atfork(NULL, NULL, child_after_fork);
}

int drv_process_reserve(uint64_t base, uint64_t size)
{
	long page = sysconf(_SC_PAGESIZE);
	void *p;

	pthread_once(&fork_once, register_fork);
	if (drv_window_size) {
		if (drv_window_base == base && drv_window_size == size)
			return 0;
		return drv_fail(-EPROTO,
				"npud moved the window of device addresses; restart the program");
	}
	if (!base || !size || base % (uint64_t)page || size % (uint64_t)page || base + size < base)
		return drv_fail(-EPROTO, "npud named a bad window of device addresses");
	p = mmap((void *)base, size, PROT_NONE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
	if (p == MAP_FAILED)
		return drv_fail(-errno, "cannot reserve the device addresses 0x%llx to 0x%llx: %s",
				(unsigned long long)base, (unsigned long long)(base + size),
				strerror(errno));
	if ((uintptr_t)p != base) {
		munmap(p, size);
		return drv_fail(-EEXIST, "this kernel does not reserve fixed addresses");
	}
	madvise(p, size, MADV_DONTDUMP);
	drv_window_base = base;
	drv_window_size = size;
	return 0;
}

int drv_process_map(uintptr_t address, size_t bytes, int fd)
{
	void *p;

	if (!drv_in_window((void *)address) || bytes > drv_window_base + drv_window_size - address)
		return drv_fail(-EPROTO, "npud named memory outside of the window");
	p = mmap((void *)address, bytes, PROT_READ | PROT_WRITE,
		 MAP_SHARED | MAP_FIXED | MAP_POPULATE, fd, 0);
	if (p == MAP_FAILED)
		return drv_fail(-errno, "cannot map %zu bytes of pinned memory: %s", bytes,
				strerror(errno));
	madvise(p, bytes, MADV_DONTFORK);
	return 0;
}

void drv_process_unmap(uintptr_t address, size_t bytes)
{
	mmap((void *)address, bytes, PROT_NONE,
	     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}
