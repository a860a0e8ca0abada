/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api - what the tests of the public calls with a device share
 *
 * A Check test is a process of its own: it begins without the library in use. Errors fail the test.
 */
#ifndef NPU_TESTS_LIB_API_H
#define NPU_TESTS_LIB_API_H

#include <check.h>
#include <stdbool.h>
#include <stdint.h>

#include <acl/acl.h>

/* What rt_error_codes.h and acl_base_rt.h call them; short, for the tables of the tests. */
#define PARAM	    100000
#define RT_PARAM    ACL_ERROR_RT_PARAM_INVALID
#define RT_CONTEXT  ACL_ERROR_RT_CONTEXT_NULL
#define RT_STREAM   ACL_ERROR_RT_STREAM_CONTEXT
#define RT_HANDLE   ACL_ERROR_RT_INVALID_HANDLE
#define RT_RELEASED ACL_ERROR_RT_CONTEXT_RELEASE_ERROR

#define OK(call)	 api_check(__LINE__, 0, NULL, (call), #call)
#define CODE(want, call) api_check(__LINE__, want, NULL, (call), #call)
/* The code, and a text that holds words. Older texts are taken away first. */
#define SAYS(want, words, call) \
	(aclGetRecentErrMsg(), api_check(__LINE__, want, words, (call), #call))

void api_check(int line, int want, const char *words, int code, const char *call);

/* aclInit and device 0. */
void api_begin(void);
/* Takes both back. */
void api_end(void);

aclrtBinHandle api_image(void);
aclrtFuncHandle api_kernel(aclrtBinHandle image, const char *name);
void *api_malloc(size_t size);

/* A stream that works until api_gate_open(); one at a time. */
struct api_gate {
	uint64_t *gate;
};

void api_gate_close(struct api_gate *gate, aclrtBinHandle image, aclrtStream stream);
void api_gate_open(struct api_gate *gate);

/* Runs fn(arg) on a new thread and waits for it. */
void api_on_thread(void (*fn)(void *arg), void *arg);

#endif
