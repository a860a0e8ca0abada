/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gate is a word of device memory: a synchronous copy writes it beside the stream that waits.
 */
#include "tests/lib/api.h"

#include <pthread.h>
#include <string.h>

void api_check(int line, int want, const char *words, int code, const char *call)
{
	const char *text;

	if (code == want && !words)
		return;
	text = aclGetRecentErrMsg();
	if (!text)
		text = "no text";
	ck_assert_msg(code == want, "line %d: %s gave %d, wanted %d: %s", line, call, code, want,
		      text);
	ck_assert_msg(strstr(text, words) != NULL, "line %d: %s gave %d, no \"%s\" in: %s", line,
		      call, code, words, text);
}

void api_begin(void)
{
	OK(aclInit(NULL));
	OK(aclrtSetDevice(0));
}

void api_end(void)
{
	OK(aclrtResetDevice(0));
	OK(aclFinalize());
}

aclrtBinHandle api_image(void)
{
	aclrtBinHandle image;

	OK(aclrtBinaryLoadFromFile(NPU_API_KERNELS, NULL, &image));
	return image;
}

aclrtFuncHandle api_kernel(aclrtBinHandle image, const char *name)
{
	aclrtFuncHandle kernel;

	OK(aclrtBinaryGetFunction(image, name, &kernel));
	return kernel;
}

void *api_malloc(size_t size)
{
	void *address;

	OK(aclrtMalloc(&address, size, ACL_MEM_MALLOC_HUGE_FIRST));
	return address;
}

void api_gate_close(struct api_gate *gate, aclrtBinHandle image, aclrtStream stream)
{
	uint64_t address;

	gate->gate = api_malloc(sizeof(*gate->gate));
	OK(aclrtMemset(gate->gate, 8, 0, 8));
	address = (uintptr_t)gate->gate;
	OK(aclrtLaunchKernelWithHostArgs(api_kernel(image, "hold"), 1, stream, NULL, &address, 8,
					 NULL, 0));
}

void api_gate_open(struct api_gate *gate)
{
	uint64_t one = 1;

	OK(aclrtMemcpy(gate->gate, 8, &one, 8, ACL_MEMCPY_HOST_TO_DEVICE));
}

struct start {
	void (*fn)(void *arg);
	void *arg;
};

static void *thread_main(void *arg)
{
	struct start *start = arg;

	start->fn(start->arg);
	return NULL;
}

void api_on_thread(void (*fn)(void *arg), void *arg)
{
	struct start start = { fn, arg };
	pthread_t thread;

	ck_assert_int_eq(pthread_create(&thread, NULL, thread_main, &start), 0);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
}
