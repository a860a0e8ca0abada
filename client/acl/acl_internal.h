/* SPDX-License-Identifier: Apache-2.0 */
/*
 * acl - the public calls: what they check themselves, and how they say it
 *
 * A public call looks at what it can judge without an object (NULL, zero sizes, ranges), then makes
 * one call of rt and returns its code unchanged. What fails here leaves everything as it was, gives
 * the code of the first layer (100xxx, 200xxx) and one line for aclGetRecentErrMsg() that names the
 * call, the argument, its value and what is allowed. The few codes of the runtime that are decided
 * here (a count over its limit, a state of an argument list) go through rt_error(), so that they
 * are the thread's last error as well.
 *
 * No file calls a public function: a program may replace any of them, and the others must not
 * notice.
 */
#ifndef NPU_CLIENT_ACL_ACL_INTERNAL_H
#define NPU_CLIENT_ACL_ACL_INTERNAL_H

#include <acl/acl.h>

#include "client/drv/drv.h"
#include "client/rt/rt.h"

#define ACL_UNLIKELY(condition) __builtin_expect(!!(condition), 0)
#define ACL_COLD		__attribute__((cold, noinline))

/* Types of the handle tables of this layer, see client/drv/handle.h. */
enum acl_handle_type { ACL_HANDLE_ARGS = 14, ACL_HANDLE_BINARY = 15 };

/* "function: argument is NULL"; 100000. */
ACL_COLD int acl_bad_null(const char *function, const char *argument);

/* "function: argument is value, allowed: ..."; 100000. */
ACL_COLD int acl_bad_value(const char *function, const char *argument, long long value,
			   const char *allowed);

/* "function: text"; code. */
ACL_COLD int acl_bad(int code, const char *function, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The same with a code of the runtime: it becomes the thread's last error. */
ACL_COLD int acl_bad_rt(int code, const char *function, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Of calls that take a lock here or answer without the runtime: 0, or the code after a fork. */
static inline int acl_process_check(void)
{
	return ACL_UNLIKELY(drv_process_dead()) ? rt_init() : 0;
}

#define ACL_NOT_NULL(argument)                                    \
	do {                                                      \
		if (ACL_UNLIKELY(!(argument)))                    \
			return acl_bad_null(__func__, #argument); \
	} while (0)

#define ACL_ALLOW(argument, condition, allowed)                                                    \
	do {                                                                                       \
		if (ACL_UNLIKELY(!(condition)))                                                    \
			return acl_bad_value(__func__, #argument, (long long)(argument), allowed); \
	} while (0)

/* Bounds of time-outs in ms that take -1 for none; these are a matter of the runtime (107000). */
#define ACL_ALLOW_TIMEOUT(argument)                                                         \
	do {                                                                                \
		if (ACL_UNLIKELY((argument) < -1))                                          \
			return acl_bad_rt(ACL_ERROR_RT_PARAM_INVALID, __func__,             \
					  #argument                                         \
					  " is %d, allowed: -1 (no limit) or milliseconds", \
					  argument);                                        \
	} while (0)

/* ---- between the files of this layer ---- */

/* What a launch takes from its attributes. cfg may be NULL. */
int acl_launch_config(const char *function, const aclrtLaunchKernelCfg *cfg,
		      uint64_t *ret_timeout_us);

/* Queues a launch with the arguments of a closed list. */
int acl_args_launch(const char *caller, aclrtArgsHandle handle, void *function, uint32_t blocks,
		    uint64_t timeout_us, void *stream);

/* What a file for aclInit() may set. */
struct acl_config {
	bool share_errors;	/* err_msg_mode */
	int32_t default_device; /* -1: none */
	char *content;		/* for comparison: the file in one form; the caller's, free() it */
};

/* path NULL or "": no settings. On an error the code with its text set, as aclInit() returns it. */
int acl_config_read(const char *path, struct acl_config *ret_config);

#endif
