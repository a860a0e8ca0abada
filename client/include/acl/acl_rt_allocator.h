/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An allocator that the program brings for a stream: the shapes of its functions.
 * Types only.
 */
#ifndef NPU_ACL_ACL_RT_ALLOCATOR_H
#define NPU_ACL_ACL_RT_ALLOCATOR_H

#include <acl/acl_base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef void *(*aclrtAllocatorAllocFunc)(aclrtAllocator allocator, size_t size);
typedef void (*aclrtAllocatorFreeFunc)(aclrtAllocator allocator, aclrtAllocatorBlock block);
typedef void *(*aclrtAllocatorAllocAdviseFunc)(aclrtAllocator allocator, size_t size,
		aclrtAllocatorAddr addr);
typedef void *(*aclrtAllocatorGetAddrFromBlockFunc)(aclrtAllocatorBlock block);

#ifdef __cplusplus
}
#endif

#endif /* NPU_ACL_ACL_RT_ALLOCATOR_H */
