/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole interface; most programs include only this.
 */
#ifndef NPU_ACL_ACL_H
#define NPU_ACL_ACL_H

#include <acl/acl_rt.h>
#include <acl/acl_op.h>
#include <acl/acl_mdl.h>

#endif /* NPU_ACL_ACL_H */
