/* SPDX-License-Identifier: Apache-2.0 */
/*
 * list - a list of arguments for one kernel
 *
 * A list is a block of bytes as the kernel gets it: first the parameters, each in a slot of a
 * multiple of 8 bytes, then the data that pointers of the list point to. It is made after the
 * kernel's own description, so a wrong number or size of arguments is found when it is given.
 *
 *   OPEN -> (first buffer) FILLING -> (close) CLOSED -> (update) UPDATED -> (close) CLOSED
 *
 * The interface has no call that ends a list. It ends with the kernel's image; and when a process
 * makes a list for every launch, those launched longest ago make room for new ones.
 *
 * A list belongs to the library; any thread may use it, one at a time, under its lock. Functions
 * return 0 or a code with its text set (caller is the public call that it names), and have then
 * changed nothing.
 */
#ifndef NPU_CLIENT_ACL_ACL_LIST_H
#define NPU_CLIENT_ACL_ACL_LIST_H

#include <acl/acl.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/rt/rt.h"

struct acl_list;

/* A list for a kernel of which the runtime says info. */
int acl_list_new(const char *caller, void *function, const struct rt_function_info *info,
		 aclrtArgsHandle *ret_handle);

/* Ends the lists of kernels that are no more: after the end of an image. Whether there were any. */
bool acl_list_sweep(void);

/* The list of a handle, locked; NULL: *ret_code says why. */
struct acl_list *acl_list_lock(const char *caller, aclrtArgsHandle handle, int *ret_code);
void acl_list_unlock(struct acl_list *list);

/* ---- of a locked list ---- */

/* The next argument: a copy of size bytes at param, or a placeholder when param is NULL. */
int acl_list_append(const char *caller, struct acl_list *list, const void *param, size_t size,
		    aclrtParamHandle *ret_param);

/* Another value of the same size. */
int acl_list_update(const char *caller, struct acl_list *list, aclrtParamHandle handle,
		    const void *param, size_t size);

/* Where the program writes the data of a placeholder; stays there as long as the list. */
int acl_list_buffer(const char *caller, struct acl_list *list, aclrtParamHandle handle, size_t size,
		    void **ret_buffer);

int acl_list_close(const char *caller, struct acl_list *list);

/* Queues a launch of a closed list. */
int acl_list_launch(const char *caller, struct acl_list *list, void *function, uint32_t blocks,
		    uint64_t timeout_us, void *stream);

#endif
