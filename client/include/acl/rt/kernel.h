/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Part of acl_rt.h: kernel images, functions, arguments, launches.
 */
#ifndef NPU_ACL_RT_KERNEL_H
#define NPU_ACL_RT_KERNEL_H

#include <acl/acl_base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef void *aclrtBinary; /* description of an image */
typedef void *aclrtBinHandle; /* a loaded image */
typedef void *aclrtFuncHandle; /* a kernel of it */
typedef void *aclrtArgsHandle; /* a list of arguments */
typedef void *aclrtParamHandle; /* one argument of a list */

/* Values of ACL_RT_BINARY_LOAD_OPT_MAGIC. */
#define ACL_RT_BINARY_MAGIC_ELF_AICORE 0x43554245U
#define ACL_RT_BINARY_MAGIC_ELF_VECTOR_CORE 0x41415246U
#define ACL_RT_BINARY_MAGIC_ELF_CUBE_CORE 0x41494343U

/* Options of a load. */
typedef enum aclrtBinaryLoadOptionType {
	ACL_RT_BINARY_LOAD_OPT_LAZY_LOAD = 1,
	ACL_RT_BINARY_LOAD_OPT_LAZY_MAGIC = 2, /* older name */
	ACL_RT_BINARY_LOAD_OPT_MAGIC = 2, /* same value */
	ACL_RT_BINARY_LOAD_OPT_CPU_KERNEL_MODE = 3,
} aclrtBinaryLoadOptionType;

/* Value of such an option. */
typedef union aclrtBinaryLoadOptionValue {
	uint32_t isLazyLoad; /* 1: at the first lookup */
	uint32_t magic;
	int32_t cpuKernelMode;
	uint32_t rsv[4];
} aclrtBinaryLoadOptionValue;

/* One option. */
typedef struct {
	aclrtBinaryLoadOptionType type;
	aclrtBinaryLoadOptionValue value;
} aclrtBinaryLoadOption;

/* All options of a call. */
typedef struct aclrtBinaryLoadOptions {
	aclrtBinaryLoadOption *options;
	size_t numOpt;
} aclrtBinaryLoadOptions;

/* Units that can run a kernel. */
typedef enum {
	ACL_RT_ENGINE_TYPE_AIC = 0,
	ACL_RT_ENGINE_TYPE_AIV = 1,
} aclrtEngineType;

/* Attributes of a launch. */
typedef enum aclrtLaunchKernelAttrId {
	ACL_RT_LAUNCH_KERNEL_ATTR_SCHEM_MODE = 1,
	ACL_RT_LAUNCH_KERNEL_ATTR_LOCAL_MEMORY_SIZE = 2, /* older name */
	ACL_RT_LAUNCH_KERNEL_ATTR_DYN_UBUF_SIZE = 2, /* same value */
	ACL_RT_LAUNCH_KERNEL_ATTR_ENGINE_TYPE = 3,
	ACL_RT_LAUNCH_KERNEL_ATTR_BLOCKDIM_OFFSET = 4,
	ACL_RT_LAUNCH_KERNEL_ATTR_BLOCK_TASK_PREFETCH = 5,
	ACL_RT_LAUNCH_KERNEL_ATTR_DATA_DUMP = 6,
	ACL_RT_LAUNCH_KERNEL_ATTR_TIMEOUT = 7,
	ACL_RT_LAUNCH_KERNEL_ATTR_TIMEOUT_US = 8,
	ACL_RT_LAUNCH_KERNEL_ATTR_ENABLE_PROFILING = 9,
} aclrtLaunchKernelAttrId;

#ifndef __BISHENG_CCEC__
/* A size in three dimensions. */
typedef struct dim3 {
	uint32_t x;
	uint32_t y;
	uint32_t z;
#ifdef __cplusplus
	dim3(uint32_t dx = 1, uint32_t dy = 1, uint32_t dz = 1) : x(dx), y(dy), z(dz)
	{
	}
#endif
} dim3;
#endif

/* Microseconds, in two halves. */
typedef struct {
	uint32_t timeoutLow;
	uint32_t timeoutHigh;
} aclrtTimeoutUs;

/* Value of such an attribute. */
typedef union aclrtLaunchKernelAttrValue {
	uint8_t schemMode;
	uint32_t localMemorySize; /* older name of dynUBufSize */
	uint32_t dynUBufSize;
	aclrtEngineType engineType;
	uint32_t blockDimOffset;
	uint8_t isBlockTaskPrefetch;
	uint8_t isDataDump;
	uint16_t timeout; /* seconds */
	aclrtTimeoutUs timeoutUs;
	uint8_t enableProfiling;
	uint32_t rsv[4];
} aclrtLaunchKernelAttrValue;

/* One attribute. */
typedef struct aclrtLaunchKernelAttr {
	aclrtLaunchKernelAttrId id;
	aclrtLaunchKernelAttrValue value;
} aclrtLaunchKernelAttr;

/* All attributes of a launch. */
typedef struct aclrtLaunchKernelCfg {
	aclrtLaunchKernelAttr *attrs;
	size_t numAttrs;
} aclrtLaunchKernelCfg;

/*
 * Where a launch puts the device address of data that travels with the arguments; byte offsets
 * into them.
 */
typedef struct {
	uint32_t addrOffset; /* the pointer */
	uint32_t dataOffset; /* the data */
} aclrtPlaceHolderInfo;

/* Attributes of a kernel. */
typedef enum {
	ACL_FUNC_ATTR_KERNEL_TYPE = 1,
	ACL_FUNC_ATTR_KERNEL_RATIO = 2,
	ACL_FUNC_ATTR_KERNEL_SCHED_MODE = 3,
} aclrtFuncAttribute;

/* Values of ACL_FUNC_ATTR_KERNEL_TYPE. */
typedef enum {
	ACL_KERNEL_TYPE_AICORE = 0,
	ACL_KERNEL_TYPE_CUBE = 1,
	ACL_KERNEL_TYPE_VECTOR = 2,
	ACL_KERNEL_TYPE_MIX = 3,
	ACL_KERNEL_TYPE_AICPU = 100,
} aclrtKernelType;

/* ---- images and kernels ---- */

/*
 * Loads an image from a file onto the current device; options may be NULL. No such file:
 * 107009.
 */
ACL_FUNC_VISIBILITY aclError aclrtBinaryLoadFromFile(const char *binPath,
		aclrtBinaryLoadOptions *options, aclrtBinHandle *binHandle);

/* The same from memory, of which a copy is made. */
ACL_FUNC_VISIBILITY aclError aclrtBinaryLoadFromData(const void *data, size_t length,
		const aclrtBinaryLoadOptions *options, aclrtBinHandle *binHandle);

/*
 * Describes an image in memory, which must outlive the description; NULL when it cannot be
 * done.
 */
ACL_FUNC_VISIBILITY aclrtBinary aclrtCreateBinary(const void *data, size_t dataLen);

/* Frees the description, not the memory. */
ACL_FUNC_VISIBILITY aclError aclrtDestroyBinary(aclrtBinary binary);

/* Loads what aclrtCreateBinary() described. */
ACL_FUNC_VISIBILITY aclError aclrtBinaryLoad(const aclrtBinary binary,
		aclrtBinHandle *binHandle);

/* Unloads an image, under the context that loaded it; its kernels are dead then. */
ACL_FUNC_VISIBILITY aclError aclrtBinaryUnLoad(aclrtBinHandle binHandle);

/* A kernel by name; it lives as long as the image. No such name: 507027. */
ACL_FUNC_VISIBILITY aclError aclrtBinaryGetFunction(const aclrtBinHandle binHandle,
		const char *kernelName, aclrtFuncHandle *funcHandle);

/* ---- arguments ---- */

/*
 * Begins a list of arguments, owned by the library, for one kernel. It may be launched again and
 * again and ends with the image. A process has up to 65536 lists; beyond, the one that was not
 * launched for the longest time makes room, and its handle is dead.
 */
ACL_FUNC_VISIBILITY aclError aclrtKernelArgsInit(aclrtFuncHandle funcHandle,
		aclrtArgsHandle *argsHandle);

/*
 * Adds a copy of one argument, in the order of the parameters and of their sizes (else 107000);
 * at most 128.
 */
ACL_FUNC_VISIBILITY aclError aclrtKernelArgsAppend(aclrtArgsHandle argsHandle, void *param,
		size_t paramSize, aclrtParamHandle *paramHandle);

/* Adds a pointer that the launch fills with the device address of data of the list. */
ACL_FUNC_VISIBILITY aclError aclrtKernelArgsAppendPlaceHolder(aclrtArgsHandle argsHandle,
		aclrtParamHandle *paramHandle);

/* Where to write that data; after all appends. It stays there as long as the list. */
ACL_FUNC_VISIBILITY aclError aclrtKernelArgsGetPlaceHolderBuffer(aclrtArgsHandle argsHandle,
		aclrtParamHandle paramHandle, size_t dataSize, void **bufferAddr);

/* Closes the list; needed before a launch, and again after each update. */
ACL_FUNC_VISIBILITY aclError aclrtKernelArgsFinalize(aclrtArgsHandle argsHandle);

/* Writes another value of the same size over an argument. */
ACL_FUNC_VISIBILITY aclError aclrtKernelArgsParaUpdate(aclrtArgsHandle argsHandle,
		aclrtParamHandle paramHandle, void *param, size_t paramSize);

/* ---- launch; numBlocks is 1 or more, a dead or foreign handle gives 107017 ---- */

/* Queued: argsData is a DEVICE address that holds all arguments, each rounded up to 8 bytes. */
ACL_FUNC_VISIBILITY aclError aclrtLaunchKernel(aclrtFuncHandle funcHandle, uint32_t numBlocks,
		const void *argsData, size_t argsSize, aclrtStream stream);

/*
 * The same with attributes; cfg may be NULL. Those that ask for what the device does not have
 * (schedule mode, dynamic buffer, block offset) give 207000 when they are not 0; a time-out of 0
 * is the limit of the process.
 */
ACL_FUNC_VISIBILITY aclError aclrtLaunchKernelV2(aclrtFuncHandle funcHandle, uint32_t numBlocks,
		const void *argsData, size_t argsSize, aclrtLaunchKernelCfg *cfg,
		aclrtStream stream);

/* Queued: arguments from a closed list; cfg may be NULL, reserve must be. */
ACL_FUNC_VISIBILITY aclError aclrtLaunchKernelWithConfig(aclrtFuncHandle funcHandle,
		uint32_t numBlocks, aclrtStream stream, aclrtLaunchKernelCfg *cfg,
		aclrtArgsHandle argsHandle, void *reserve);

/*
 * Queued: arguments from HOST memory, copied before the call returns; placeHolderArray, which
 * may be NULL, names pointers to data that lies in the same block.
 */
ACL_FUNC_VISIBILITY aclError aclrtLaunchKernelWithHostArgs(aclrtFuncHandle funcHandle,
		uint32_t numBlocks, aclrtStream stream, aclrtLaunchKernelCfg *cfg,
		void *hostArgs, size_t argsSize, aclrtPlaceHolderInfo *placeHolderArray,
		size_t placeHolderNum);

#ifdef __cplusplus
}
#endif

#endif /* NPU_ACL_RT_KERNEL_H */
