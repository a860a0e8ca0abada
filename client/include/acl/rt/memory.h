/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Part of acl_rt.h: device and pinned host memory, copies, fills. Sizes in bytes.
 */
#ifndef NPU_ACL_RT_MEMORY_H
#define NPU_ACL_RT_MEMORY_H

#include <acl/acl_base.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Which pages an allocation wants. One value, not bits, except for aclrtMallocWithCfg(). */
typedef enum aclrtMemMallocPolicy {
	ACL_MEM_MALLOC_HUGE_FIRST = 0,
	ACL_MEM_MALLOC_HUGE_ONLY = 1,
	ACL_MEM_MALLOC_NORMAL_ONLY = 2,
	ACL_MEM_MALLOC_HUGE_FIRST_P2P = 3,
	ACL_MEM_MALLOC_HUGE_ONLY_P2P = 4,
	ACL_MEM_MALLOC_NORMAL_ONLY_P2P = 5,
	ACL_MEM_MALLOC_HUGE1G_ONLY = 6,
	ACL_MEM_MALLOC_HUGE1G_ONLY_P2P = 7,
	ACL_MEM_TYPE_LOW_BAND_WIDTH = 0x0100,
	ACL_MEM_TYPE_HIGH_BAND_WIDTH = 0x1000,
	ACL_MEM_ACCESS_USER_SPACE_READONLY = 0x100000,
} aclrtMemMallocPolicy;

/* Attributes of aclrtMallocWithCfg(). */
typedef enum {
	ACL_RT_MEM_ATTR_RSV = 0,
	ACL_RT_MEM_ATTR_MODULE_ID = 1,
	ACL_RT_MEM_ATTR_DEVICE_ID = 2,
	ACL_RT_MEM_ATTR_VA_FLAG = 3,
} aclrtMallocAttrType;

/* Value of such an attribute. */
typedef union {
	uint16_t moduleId;
	uint32_t deviceId;
	uint32_t vaFlag;
	uint8_t rsv[8];
} aclrtMallocAttrValue;

/* One attribute. */
typedef struct {
	aclrtMallocAttrType attr;
	aclrtMallocAttrValue value;
} aclrtMallocAttribute;

/* All attributes of a call. */
typedef struct {
	aclrtMallocAttribute *attrs;
	size_t numAttrs;
} aclrtMallocConfig;

/* Kinds of device memory. */
typedef enum aclrtMemAttr {
	ACL_DDR_MEM = 0,
	ACL_HBM_MEM = 1,
	ACL_DDR_MEM_HUGE = 2,
	ACL_DDR_MEM_NORMAL = 3,
	ACL_HBM_MEM_HUGE = 4,
	ACL_HBM_MEM_NORMAL = 5,
	ACL_DDR_MEM_P2P_HUGE = 6,
	ACL_DDR_MEM_P2P_NORMAL = 7,
	ACL_HBM_MEM_P2P_HUGE = 8,
	ACL_HBM_MEM_P2P_NORMAL = 9,
	ACL_HBM_MEM_HUGE1G = 10,
	ACL_HBM_MEM_P2P_HUGE1G = 11,
	ACL_MEM_NORMAL = 12,
	ACL_MEM_HUGE = 13,
	ACL_MEM_HUGE1G = 14,
	ACL_MEM_P2P_NORMAL = 15,
	ACL_MEM_P2P_HUGE = 16,
	ACL_MEM_P2P_HUGE1G = 17,
} aclrtMemAttr;

/* Kinds of page. */
enum aclrtMemPgType {
	NORMAL_PAGE_TYPE = 0U,
	HUGE_PAGE_TYPE = 1,
	HUGE1G_PAGE_TYPE = 2,
};

/* Kinds of memory. */
enum aclrtMemType {
	HBM_TYPE = 0U,
	DDR_TYPE = 1,
	P2P_HBM_TYPE = 2,
	P2P_DDR_TYPE = 3,
};

/* How kinds of page and memory make an aclrtMemAttr. */
struct MemAttrMapping {
	uint32_t pgType;
	uint32_t memType;
	bool isHostAlloc;
	aclrtMemAttr memAttr;
};

/* Kinds of memory that an address can be checked for. */
#define ACL_RT_MEM_TYPE_DEV 0x2U
#define ACL_RT_MEM_TYPE_DVPP 0x8U
#define ACL_RT_MEM_TYPE_RSVD 0x10U

/* Direction of a copy. The addresses decide; the kind must only be a valid one. */
typedef enum aclrtMemcpyKind {
	ACL_MEMCPY_HOST_TO_HOST = 0,
	ACL_MEMCPY_HOST_TO_DEVICE = 1,
	ACL_MEMCPY_DEVICE_TO_HOST = 2,
	ACL_MEMCPY_DEVICE_TO_DEVICE = 3,
	ACL_MEMCPY_DEFAULT = 4,
	ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE = 5,
	ACL_MEMCPY_INNER_DEVICE_TO_DEVICE = 6,
	ACL_MEMCPY_INTER_DEVICE_TO_DEVICE = 7,
} aclrtMemcpyKind;

/* Where an address lies. */
typedef enum aclrtMemLocationType {
	ACL_MEM_LOCATION_TYPE_HOST = 0,
	ACL_MEM_LOCATION_TYPE_DEVICE = 1,
	ACL_MEM_LOCATION_TYPE_UNREGISTERED = 2,
	ACL_MEM_LOCATION_TYPE_MANAGED = 3,
	ACL_MEM_LOCATION_TYPE_HOST_NUMA = 4,
} aclrtMemLocationType;

/* A place: device number and kind. */
typedef struct aclrtMemLocation {
	uint32_t id;
	aclrtMemLocationType type;
} aclrtMemLocation;

/* What is known of an address. */
typedef struct aclrtPtrAttributes {
	aclrtMemLocation location;
	uint32_t pageSize; /* bytes */
	uint32_t rsv[4];
} aclrtPtrAttributes;

/* Memory that one component uses. */
typedef struct aclrtMemUsageInfo {
	char name[32];
	uint64_t curMemSize; /* bytes */
	uint64_t memPeakSize; /* bytes */
	size_t reserved[8];
} aclrtMemUsageInfo;

/* Places of both sides of a batch of copies. */
typedef struct {
	aclrtMemLocation dstLoc;
	aclrtMemLocation srcLoc;
	uint8_t rsv[16];
} aclrtMemcpyBatchAttr;

/* Arithmetic of a reducing copy. */
typedef enum {
	ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM = 10,
	ACL_RT_MEMCPY_SDMA_AUTOMATIC_MAX = 11,
	ACL_RT_MEMCPY_SDMA_AUTOMATIC_MIN = 12,
	ACL_RT_MEMCPY_SDMA_AUTOMATIC_EQUAL = 13,
} aclrtReduceKind;

/* Operations on the cache. */
typedef enum aclrtCmoType {
	ACL_RT_CMO_TYPE_PREFETCH = 0,
	ACL_RT_CMO_TYPE_WRITEBACK = 1,
	ACL_RT_CMO_TYPE_INVALID = 2,
	ACL_RT_CMO_TYPE_FLUSH = 3,
} aclrtCmoType;

/* Entries of aclrtBarrierTaskInfo. */
#define ACL_RT_CMO_MAX_BARRIER_NUM 6U

/* One operation that a barrier waits for. */
typedef struct {
	aclrtCmoType cmoType;
	uint32_t barrierId;
} aclrtBarrierCmoInfo;

/* A barrier behind operations on the cache; barrierNum entries are valid. */
typedef struct {
	size_t barrierNum;
	aclrtBarrierCmoInfo cmoInfo[ACL_RT_CMO_MAX_BARRIER_NUM];
} aclrtBarrierTaskInfo;

/* Atomic operations between devices. */
typedef enum aclrtAtomicOperation {
	ACL_RT_ATOMIC_OPERATION_INTEGER_ADD = 0,
	ACL_RT_ATOMIC_OPERATION_INTEGER_MIN = 1,
	ACL_RT_ATOMIC_OPERATION_INTEGER_MAX = 2,
	ACL_RT_ATOMIC_OPERATION_INTEGER_INCREMENT = 3,
	ACL_RT_ATOMIC_OPERATION_INTEGER_DECREMENT = 4,
	ACL_RT_ATOMIC_OPERATION_AND = 5,
	ACL_RT_ATOMIC_OPERATION_OR = 6,
	ACL_RT_ATOMIC_OPERATION_XOR = 7,
	ACL_RT_ATOMIC_OPERATION_EXCHANGE = 8,
	ACL_RT_ATOMIC_OPERATION_CAS = 9,
	ACL_RT_ATOMIC_OPERATION_FLOAT_ADD = 10,
	ACL_RT_ATOMIC_OPERATION_FLOAT_MIN = 11,
	ACL_RT_ATOMIC_OPERATION_FLOAT_MAX = 12,
	ACL_RT_ATOMIC_OPERATION_DMA_ADD = 30,
	ACL_RT_ATOMIC_OPERATION_DMA_MIN = 31,
	ACL_RT_ATOMIC_OPERATION_DMA_MAX = 32,
	ACL_RT_ATOMIC_OPERATION_SIMD_SCALAR_ADD = 40,
	ACL_RT_ATOMIC_OPERATION_SIMD_SCALAR_MIN = 41,
	ACL_RT_ATOMIC_OPERATION_SIMD_SCALAR_MAX = 42,
	ACL_RT_ATOMIC_OPERATION_SIMD_SCALAR_CAS = 43,
	ACL_RT_ATOMIC_OPERATION_SIMD_SCALAR_EXCH = 44,
} aclrtAtomicOperation;

/* What such an operation can do, as bits. */
typedef enum aclrtAtomicOperationCapability {
	ACL_RT_ATOMIC_CAPABILITY_SIGNED = 1U << 0,
	ACL_RT_ATOMIC_CAPABILITY_UNSIGNED = 1U << 1,
	ACL_RT_ATOMIC_CAPABILITY_REDUCATION = 1U << 2, /* older spelling */
	ACL_RT_ATOMIC_CAPABILITY_REDUCTION = 1U << 2, /* same value */
	ACL_RT_ATOMIC_CAPABILITY_SCALAR8 = 1U << 3,
	ACL_RT_ATOMIC_CAPABILITY_SCALAR16 = 1U << 4,
	ACL_RT_ATOMIC_CAPABILITY_SCALAR32 = 1U << 5,
	ACL_RT_ATOMIC_CAPABILITY_SCALAR64 = 1U << 6,
	ACL_RT_ATOMIC_CAPABILITY_SCALAR128 = 1U << 7,
	ACL_RT_ATOMIC_CAPABILITY_VECTOR32X4 = 1U << 8,
} aclrtAtomicOperationCapability;

/* ---- allocation ---- */

/*
 * Device memory, 64 byte aligned, not cleared; some bytes more than asked for are usable. It
 * belongs to the process; free it with aclrtFree(). Size 0: 100000, no memory: 207001.
 */
ACL_FUNC_VISIBILITY aclError aclrtMalloc(void **devPtr, size_t size,
		aclrtMemMallocPolicy policy);

/* The same, rounded up to 32 bytes and nothing more. */
ACL_FUNC_VISIBILITY aclError aclrtMallocAlign32(void **devPtr, size_t size,
		aclrtMemMallocPolicy policy);

/*
 * The same with attributes; cfg may be NULL, policy bits may be or-ed. Unknown bits and
 * attributes: 100000; those that the device does not have: 207000; a device that is not the
 * current one: 107001.
 */
ACL_FUNC_VISIBILITY aclError aclrtMallocWithCfg(void **devPtr, size_t size,
		aclrtMemMallocPolicy policy, aclrtMallocConfig *cfg);

/* Frees at once: queued work that still uses the memory faults. NULL: 100000. */
ACL_FUNC_VISIBILITY aclError aclrtFree(void *devPtr);

/*
 * Pinned host memory, 64 byte aligned, not cleared; copies to and from it are truly
 * asynchronous. Size 0: 100000.
 */
ACL_FUNC_VISIBILITY aclError aclrtMallocHost(void **hostPtr, size_t size);

/* Frees it at once. NULL: 100000. */
ACL_FUNC_VISIBILITY aclError aclrtFreeHost(void *hostPtr);

/*
 * Free and total bytes of one kind on the current device, of all its users together. Kinds
 * that the device lacks read 0.
 */
ACL_FUNC_VISIBILITY aclError aclrtGetMemInfo(aclrtMemAttr attr, size_t *free, size_t *total);

/* Tells for any address whether it is device, pinned or other memory. */
ACL_FUNC_VISIBILITY aclError aclrtPointerGetAttributes(const void *ptr,
		aclrtPtrAttributes *attributes);

/* ---- copies and fills ---- */

/*
 * Copies and waits, beside all streams. count 0 is success before any other check; count over
 * destMax: 107000.
 */
ACL_FUNC_VISIBILITY aclError aclrtMemcpy(void *dst, size_t destMax, const void *src,
		size_t count, aclrtMemcpyKind kind);

/* Queued when the host side is pinned, else complete on return. Host to host: 207000. */
ACL_FUNC_VISIBILITY aclError aclrtMemcpyAsync(void *dst, size_t destMax, const void *src,
		size_t count, aclrtMemcpyKind kind, aclrtStream stream);

/*
 * Copies height rows of width bytes, pitch bytes apart. Width over a pitch: 100000; width or
 * height 0 is success.
 */
ACL_FUNC_VISIBILITY aclError aclrtMemcpy2d(void *dst, size_t dpitch, const void *src,
		size_t spitch, size_t width, size_t height, aclrtMemcpyKind kind);

/* The same, queued; width up to 5000000, height up to 5242880. */
ACL_FUNC_VISIBILITY aclError aclrtMemcpy2dAsync(void *dst, size_t dpitch, const void *src,
		size_t spitch, size_t width, size_t height, aclrtMemcpyKind kind,
		aclrtStream stream);

/* Sets count bytes of device or pinned memory and waits; count over maxCount: 107000. */
ACL_FUNC_VISIBILITY aclError aclrtMemset(void *devPtr, size_t maxCount, int32_t value,
		size_t count);

/* The same, queued. */
ACL_FUNC_VISIBILITY aclError aclrtMemsetAsync(void *devPtr, size_t maxCount, int32_t value,
		size_t count, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif /* NPU_ACL_RT_MEMORY_H */
