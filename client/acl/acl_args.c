/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists of arguments: the public calls over acl_list.h.
 */
#include "client/acl/acl_internal.h"
#include "client/acl/acl_list.h"

aclError aclrtKernelArgsInit(aclrtFuncHandle funcHandle, aclrtArgsHandle *argsHandle)
{
	struct rt_function_info info;
	int code;

	ACL_NOT_NULL(funcHandle);
	ACL_NOT_NULL(argsHandle);
	code = rt_function_info(funcHandle, &info);
	if (code)
		return code;
	return acl_list_new(__func__, funcHandle, &info, argsHandle);
}

aclError aclrtKernelArgsAppend(aclrtArgsHandle argsHandle, void *param, size_t paramSize,
			       aclrtParamHandle *paramHandle)
{
	struct acl_list *list;
	int code;

	ACL_NOT_NULL(argsHandle);
	ACL_NOT_NULL(param);
	ACL_ALLOW(paramSize, paramSize > 0, "1 or more bytes");
	ACL_NOT_NULL(paramHandle);
	list = acl_list_lock(__func__, argsHandle, &code);
	if (!list)
		return code;
	code = acl_list_append(__func__, list, param, paramSize, paramHandle);
	acl_list_unlock(list);
	return code;
}

aclError aclrtKernelArgsAppendPlaceHolder(aclrtArgsHandle argsHandle, aclrtParamHandle *paramHandle)
{
	struct acl_list *list;
	int code;

	ACL_NOT_NULL(argsHandle);
	ACL_NOT_NULL(paramHandle);
	list = acl_list_lock(__func__, argsHandle, &code);
	if (!list)
		return code;
	code = acl_list_append(__func__, list, NULL, sizeof(uint64_t), paramHandle);
	acl_list_unlock(list);
	return code;
}

aclError aclrtKernelArgsGetPlaceHolderBuffer(aclrtArgsHandle argsHandle,
					     aclrtParamHandle paramHandle, size_t dataSize,
					     void **bufferAddr)
{
	struct acl_list *list;
	int code;

	ACL_NOT_NULL(argsHandle);
	ACL_NOT_NULL(paramHandle);
	ACL_ALLOW(dataSize, dataSize > 0, "1 or more bytes");
	ACL_NOT_NULL(bufferAddr);
	list = acl_list_lock(__func__, argsHandle, &code);
	if (!list)
		return code;
	code = acl_list_buffer(__func__, list, paramHandle, dataSize, bufferAddr);
	acl_list_unlock(list);
	return code;
}

aclError aclrtKernelArgsParaUpdate(aclrtArgsHandle argsHandle, aclrtParamHandle paramHandle,
				   void *param, size_t paramSize)
{
	struct acl_list *list;
	int code;

	ACL_NOT_NULL(argsHandle);
	ACL_NOT_NULL(paramHandle);
	ACL_NOT_NULL(param);
	ACL_ALLOW(paramSize, paramSize > 0, "1 or more bytes");
	list = acl_list_lock(__func__, argsHandle, &code);
	if (!list)
		return code;
	code = acl_list_update(__func__, list, paramHandle, param, paramSize);
	acl_list_unlock(list);
	return code;
}

aclError aclrtKernelArgsFinalize(aclrtArgsHandle argsHandle)
{
	struct acl_list *list;
	int code;

	ACL_NOT_NULL(argsHandle);
	list = acl_list_lock(__func__, argsHandle, &code);
	if (!list)
		return code;
	code = acl_list_close(__func__, list);
	acl_list_unlock(list);
	return code;
}

int acl_args_launch(const char *caller, aclrtArgsHandle handle, void *function, uint32_t blocks,
		    uint64_t timeout_us, void *stream)
{
	struct acl_list *list;
	int code;

	list = acl_list_lock(caller, handle, &code);
	if (ACL_UNLIKELY(!list))
		return code;
	code = acl_list_launch(caller, list, function, blocks, timeout_us, stream);
	acl_list_unlock(list);
	return code;
}
