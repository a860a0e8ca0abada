/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operator calls belong to another package; the header exists because programs include it.
 */
#ifndef NPU_ACL_ACL_OP_H
#define NPU_ACL_ACL_OP_H

#include <acl/acl_base.h>

#endif /* NPU_ACL_ACL_OP_H */
