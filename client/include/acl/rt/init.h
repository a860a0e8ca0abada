/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Part of acl_rt.h: start and end of use, versions, error texts.
 */
#ifndef NPU_ACL_RT_INIT_H
#define NPU_ACL_RT_INIT_H

#include <acl/acl_base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Version of the interface that these headers describe. */
#define ACL_MAJOR_VERSION 1
#define ACL_MINOR_VERSION 17
#define ACL_PATCH_VERSION 0

/* Components that may ask to be told of init and finalize. */
typedef enum aclRegisterCallbackType {
	ACL_REG_TYPE_ACL_MODEL = 0,
	ACL_REG_TYPE_ACL_OP_EXECUTOR = 1,
	ACL_REG_TYPE_ACL_OP_CBLAS = 2,
	ACL_REG_TYPE_ACL_OP_COMPILER = 3,
	ACL_REG_TYPE_ACL_TDT_CHANNEL = 4,
	ACL_REG_TYPE_ACL_TDT_QUEUE = 5,
	ACL_REG_TYPE_ACL_DVPP = 6,
	ACL_REG_TYPE_ACL_RETR = 7,
	ACL_REG_TYPE_OTHER = 0xFFFF,
} aclRegisterCallbackType;

typedef aclError (*aclInitCallbackFunc)(const char *configStr, size_t len, void *userData);
typedef aclError (*aclFinalizeCallbackFunc)(void *userData);

/* Packages that a version query knows. */
typedef enum aclCANNPackageName {
	ACL_PKG_NAME_CANN = 0,
	ACL_PKG_NAME_RUNTIME = 1,
	ACL_PKG_NAME_COMPILER = 2,
	ACL_PKG_NAME_HCCL = 3,
	ACL_PKG_NAME_TOOLKIT = 4,
	ACL_PKG_NAME_OPP = 5,
	ACL_PKG_NAME_OPP_KERNEL = 6,
	ACL_PKG_NAME_DRIVER = 7,
} aclCANNPackageName;

/* Bytes of the texts in aclCANNPackageVersion, the closing NUL included. */
#define ACL_PKG_VERSION_MAX_SIZE 128
#define ACL_PKG_VERSION_PARTS_MAX_SIZE 64

/* Version of a package, as texts. */
typedef struct aclCANNPackageVersion {
	char version[ACL_PKG_VERSION_MAX_SIZE];
	char majorVersion[ACL_PKG_VERSION_PARTS_MAX_SIZE];
	char minorVersion[ACL_PKG_VERSION_PARTS_MAX_SIZE];
	char releaseVersion[ACL_PKG_VERSION_PARTS_MAX_SIZE];
	char patchVersion[ACL_PKG_VERSION_PARTS_MAX_SIZE];
	char reserved[ACL_PKG_VERSION_MAX_SIZE];
} aclCANNPackageVersion;

/* Whose last error is meant: the calling thread is the only level. */
typedef enum aclrtLastErrLevel {
	ACL_RT_THREAD_LEVEL = 0,
} aclrtLastErrLevel;

/* ---- calls ---- */

/*
 * Starts the use of the library. configPath: NULL or "", or a JSON file with an object (100003
 * when it cannot be read, 100006 when it is no such thing or nests deeper than 10, 100000 when
 * a known key has a value that is not allowed). A repeated call is counted and gives 100002,
 * which callers ignore; a file with other content gives 100000 and is not counted.
 */
ACL_FUNC_VISIBILITY aclError aclInit(const char *configPath);

/*
 * Ends the use, whatever the count of inits. Without an aclInit before it: 100037. aclInit may
 * follow again.
 */
ACL_FUNC_VISIBILITY aclError aclFinalize(void);

/*
 * Takes one off the count of inits and ends the use when it was the last; refCount, which may
 * be NULL, gets what is left. A count of 0 gives 100037.
 */
ACL_FUNC_VISIBILITY aclError aclFinalizeReference(uint64_t *refCount);

/* The three numbers of the interface. Old, but programs call it. */
ACL_FUNC_VISIBILITY aclError aclrtGetVersion(int32_t *majorVersion, int32_t *minorVersion,
		int32_t *patchVersion);

/*
 * Texts of the failures since the last call on this thread, newest first, or NULL. They are
 * taken by reading; the string stays valid until the next call of this function on the thread.
 * With "err_msg_mode": "1" in the file of aclInit one list serves the process.
 */
ACL_FUNC_VISIBILITY const char *aclGetRecentErrMsg(void);

/*
 * Last runtime code of the calling thread, faults that a synchronise returned included; level
 * must be ACL_RT_THREAD_LEVEL (else 100000).
 */
ACL_FUNC_VISIBILITY aclError aclrtPeekAtLastError(aclrtLastErrLevel level);

/* The same, and sets it back to 0. */
ACL_FUNC_VISIBILITY aclError aclrtGetLastError(aclrtLastErrLevel level);

#ifdef __cplusplus
}
#endif

#endif /* NPU_ACL_RT_INIT_H */
