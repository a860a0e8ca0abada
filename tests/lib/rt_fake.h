/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt_fake - the runtime of client/rt/rt.h without a device, for tests of the calls above it
 *
 * Every function notes its name and arguments and returns `code`; on 0 it gives recognisable
 * outputs. Kernels are the handles below, of one image. Single-threaded.
 */
#ifndef NPU_TESTS_LIB_RT_FAKE_H
#define NPU_TESTS_LIB_RT_FAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/rt/rt.h"

#define FAKE_HANDLE	 ((void *)0xf00d0)
#define FAKE_KERNEL	 ((void *)0xca110) /* "fake": parameters of 4, 8, 8 and 12 bytes */
#define FAKE_KERNEL_NONE ((void *)0xca120) /* "none": no parameters */
#define FAKE_KERNEL_WIDE ((void *)0xca130) /* "wide": one parameter of 8 bytes more than fits */
#define FAKE_ARGS_SIZE	 40u

struct rt_fake {
	int code;	  /* what every function returns */
	unsigned calls;	  /* functions called, but for those on errors */
	const char *last; /* the last of them */

	/* arguments of the last call, where it has them */
	void *object, *stream;
	const void *dst, *src;
	size_t size, pitch[2], height;
	int64_t value;
	uint32_t flags, blocks;
	uint64_t timeout_us;
	enum rt_pages pages;
	bool flag;
	const struct rt_placeholder *holders;
	size_t nholders;
	unsigned char args[RT_ARGS_MAX];

	/* errors */
	unsigned texts;
	char text[1024]; /* the last line */
	int last_error;
	bool shared;
	int32_t default_device;

	bool image_gone; /* the kernels exist no more */
};

extern struct rt_fake rt_fake;

/* Back to the start. */
void rt_fake_reset(void);

#endif
