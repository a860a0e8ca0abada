/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pools of stream-ordered memory. Types only.
 */
#ifndef NPU_ACL_ACL_RT_MEMORY_SOMA_H
#define NPU_ACL_ACL_RT_MEMORY_SOMA_H

#include <acl/acl_rt.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef void *aclrtMemPool;

/* Attributes of a pool; sizes in bytes. */
typedef enum aclrtMemPoolAttr {
	ACL_RT_MEM_POOL_REUSE_FOLLOW_EVENT_DEPENDENCIES = 0x1,
	ACL_RT_MEM_POOL_REUSE_ALLOW_OPPORTUNISTIC = 0x2,
	ACL_RT_MEM_POOL_REUSE_ALLOW_INTERNAL_DEPENDENCIES = 0x3,
	ACL_RT_MEM_POOL_ATTR_RELEASE_THRESHOLD = 0x4,
	ACL_RT_MEM_POOL_ATTR_RESERVED_MEM_CURRENT = 0x5,
	ACL_RT_MEM_POOL_ATTR_RESERVED_MEM_HIGH = 0x6,
	ACL_RT_MEM_POOL_ATTR_USED_MEM_CURRENT = 0x7,
	ACL_RT_MEM_POOL_ATTR_USED_MEM_HIGH = 0x8,
} aclrtMemPoolAttr;

/* Wishes for a pool. */
typedef struct {
	aclrtMemAllocationType allocType;
	aclrtMemHandleType handleType;
	aclrtMemLocation location;
	size_t maxSize; /* bytes, 0 for no limit */
	unsigned char reserved[32]; /* 0 */
} aclrtMemPoolProps;

#ifdef __cplusplus
}
#endif

#endif /* NPU_ACL_ACL_RT_MEMORY_SOMA_H */
