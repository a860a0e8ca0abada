/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything that needs no device: types, handles, error codes.
 */
#ifndef NPU_ACL_ACL_BASE_H
#define NPU_ACL_ACL_BASE_H

#include <acl/acl_base_rt.h>
#include <acl/acl_base_mdl.h>
#include <acl/error_codes/rt_error_codes.h>
#include <acl/error_codes/ge_error_codes.h>

#endif /* NPU_ACL_ACL_BASE_H */
