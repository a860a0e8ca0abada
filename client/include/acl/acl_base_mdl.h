/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Types of the model layer that older programs find through acl_base.h. The layer itself is
 * not part of this library.
 */
#ifndef NPU_ACL_ACL_BASE_MDL_H
#define NPU_ACL_ACL_BASE_MDL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct aclTensorDesc aclTensorDesc; /* description of a tensor */

/* Entries of a shape range and of a value range; number of dimensions of an unknown shape. */
#define ACL_TENSOR_SHAPE_RANGE_NUM 2
#define ACL_TENSOR_VALUE_RANGE_NUM 2
#define ACL_UNKNOWN_RANK 0xFFFFFFFFFFFFFFFE

#ifdef __cplusplus
}
#endif

#endif /* NPU_ACL_ACL_BASE_MDL_H */
