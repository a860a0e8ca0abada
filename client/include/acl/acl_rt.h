/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runtime interface: device, context, stream, event, memory, kernel.
 *
 * Rules that hold for all calls:
 * - A call returns ACL_SUCCESS or a code; on an error the outputs keep what they held, and
 *   aclGetRecentErrMsg() has one line that says where and why. Pointers for results must not be
 *   NULL (100000), unless the comment says so.
 * - Calls may come from any thread. Device and context are a property of the calling thread; a
 *   call that needs a context and finds none gives 107002.
 * - Calls marked "queued" only put work on a stream: their code covers the submission, faults of
 *   the work come out of the next synchronise.
 * - After fork() the child has no session: its calls fail with 507033 and a text that says so.
 *   Call exec, or use the device from the parent only.
 */
#ifndef NPU_ACL_ACL_RT_H
#define NPU_ACL_ACL_RT_H

#include <acl/acl_base.h>
#include <acl/rt/init.h>
#include <acl/rt/device.h>
#include <acl/rt/fault.h>
#include <acl/rt/stream.h>
#include <acl/rt/memory.h>
#include <acl/rt/memory_share.h>
#include <acl/rt/kernel.h>
#include <acl/rt/model.h>

#endif /* NPU_ACL_ACL_RT_H */
