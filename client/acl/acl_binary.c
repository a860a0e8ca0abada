/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernel images. The older way describes an image in memory first and loads it then; such a
 * description keeps nothing but where the image lies.
 */
#include "client/acl/acl_internal.h"
#include "client/acl/acl_list.h"
#include "client/drv/handle.h"

#define BINARIES_MAX 65536u

struct binary {
	struct drv_object object;
	const void *_Atomic data;
	_Atomic size_t size;
};

static struct drv_handles binaries =
	DRV_HANDLES_INIT(ACL_HANDLE_BINARY, BINARIES_MAX, struct binary);

aclrtBinary aclrtCreateBinary(const void *data, size_t dataLen)
{
	struct binary *binary;

	if (!data) {
		acl_bad_null(__func__, "data");
		return NULL;
	}
	if (dataLen == 0) {
		acl_bad_value(__func__, "dataLen", 0, "1 or more bytes");
		return NULL;
	}
	if (acl_process_check())
		return NULL;
	binary = drv_handle_new(&binaries);
	if (!binary) {
		rt_error(ACL_ERROR_RT_RESOURCE_ALLOC_FAIL, "EE1003",
			 "%s: no host memory, or %u descriptions exist: call aclrtDestroyBinary",
			 __func__, BINARIES_MAX);
		return NULL;
	}
	atomic_store(&binary->data, data);
	atomic_store(&binary->size, dataLen);
	return drv_handle_publish(&binaries, binary);
}

static ACL_COLD int bad_binary(const char *function, const void *handle)
{
	return acl_bad_rt(ACL_ERROR_RT_INVALID_HANDLE, function,
			  "binary %p is nothing that aclrtCreateBinary made and that still exists",
			  handle);
}

aclError aclrtDestroyBinary(aclrtBinary binary)
{
	struct binary *found;
	int code;

	ACL_NOT_NULL(binary);
	code = acl_process_check();
	if (code)
		return code;
	found = drv_handle_get(&binaries, binary);
	if (!found || !drv_handle_retire(&binaries, found, binary))
		return bad_binary(__func__, binary);
	drv_handle_free(&binaries, found);
	return 0;
}

aclError aclrtBinaryLoad(const aclrtBinary binary, aclrtBinHandle *binHandle)
{
	struct binary *found;
	const void *data;
	size_t size;

	ACL_NOT_NULL(binary);
	ACL_NOT_NULL(binHandle);
	found = drv_handle_get(&binaries, binary);
	if (!found)
		return bad_binary(__func__, binary);
	data = atomic_load(&found->data);
	size = atomic_load(&found->size);
	if (!drv_handle_live(found, binary)) /* what was read may be of the next one */
		return bad_binary(__func__, binary);
	return rt_module_load(data, size, binHandle);
}

/*
 * Images are loaded whole and at once, which a lazy load may be too; one image serves all units
 * that the magic numbers name.
 */
static int options_check(const char *function, const aclrtBinaryLoadOptions *options)
{
	if (!options || options->numOpt == 0)
		return 0;
	if (!options->options)
		return acl_bad_null(function, "options->options");
	for (size_t i = 0; i < options->numOpt; i++) {
		const aclrtBinaryLoadOption *option = &options->options[i];
		const char *allowed;
		uint32_t value;

		switch (option->type) {
		case ACL_RT_BINARY_LOAD_OPT_LAZY_LOAD:
			value = option->value.isLazyLoad;
			allowed = value > 1 ? "LAZY_LOAD 0, 1" : NULL;
			break;
		case ACL_RT_BINARY_LOAD_OPT_MAGIC:
			value = option->value.magic;
			allowed = value != ACL_RT_BINARY_MAGIC_ELF_AICORE &&
						  value != ACL_RT_BINARY_MAGIC_ELF_VECTOR_CORE &&
						  value != ACL_RT_BINARY_MAGIC_ELF_CUBE_CORE ?
					  "MAGIC one of ACL_RT_BINARY_MAGIC_ELF_*" :
					  NULL;
			break;
		case ACL_RT_BINARY_LOAD_OPT_CPU_KERNEL_MODE:
			return acl_bad_rt(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, function,
					  "options->options[%zu] is CPU_KERNEL_MODE: this device "
					  "has no AI CPU kernels",
					  i);
		default:
			value = (uint32_t)option->type;
			allowed = "type 1 to 3";
		}
		if (allowed)
			return acl_bad(ACL_ERROR_INVALID_PARAM, function,
				       "options->options[%zu] has 0x%x, allowed: %s", i, value,
				       allowed);
	}
	return 0;
}

aclError aclrtBinaryLoadFromFile(const char *binPath, aclrtBinaryLoadOptions *options,
				 aclrtBinHandle *binHandle)
{
	int code;

	ACL_NOT_NULL(binPath);
	ACL_NOT_NULL(binHandle);
	code = options_check(__func__, options);
	if (code)
		return code;
	return rt_module_load_file(binPath, binHandle);
}

aclError aclrtBinaryLoadFromData(const void *data, size_t length,
				 const aclrtBinaryLoadOptions *options, aclrtBinHandle *binHandle)
{
	int code;

	ACL_NOT_NULL(data);
	ACL_ALLOW(length, length > 0, "1 or more bytes");
	ACL_NOT_NULL(binHandle);
	code = options_check(__func__, options);
	if (code)
		return code;
	return rt_module_load(data, length, binHandle);
}

aclError aclrtBinaryUnLoad(aclrtBinHandle binHandle)
{
	int code;

	ACL_NOT_NULL(binHandle);
	code = rt_module_unload(binHandle);
	if (!drv_process_dead())
		acl_list_sweep(); /* an image may be gone although npud could not be told */
	return code;
}

aclError aclrtBinaryGetFunction(const aclrtBinHandle binHandle, const char *kernelName,
				aclrtFuncHandle *funcHandle)
{
	ACL_NOT_NULL(binHandle);
	ACL_NOT_NULL(kernelName);
	ACL_NOT_NULL(funcHandle);
	return rt_module_function(binHandle, kernelName, funcHandle);
}
