/* SPDX-License-Identifier: Apache-2.0 */
/* Two tables: names by number, and numbers by errno. */
#include "proto/status.h"

#include <errno.h>
#include <stddef.h>

static const char *const names[] = {
	[NPU_STATUS_OK] = "ok",
	[NPU_STATUS_INVALID] = "invalid argument",
	[NPU_STATUS_NOT_FOUND] = "no such object",
	[NPU_STATUS_NO_DEVICE] = "no such device",
	[NPU_STATUS_DEVICE_MEMORY] = "out of device memory",
	[NPU_STATUS_QUOTA] = "quota reached",
	[NPU_STATUS_HOST_MEMORY] = "out of host memory",
	[NPU_STATUS_DENIED] = "permission denied",
	[NPU_STATUS_STATE] = "wrong state",
	[NPU_STATUS_UNKNOWN_METHOD] = "unknown method",
	[NPU_STATUS_VERSION] = "versions differ",
	[NPU_STATUS_DEVICE_LOST] = "device lost",
	[NPU_STATUS_TIMEOUT] = "timed out",
	[NPU_STATUS_IMAGE] = "kernel image refused",
	[NPU_STATUS_BUSY] = "busy",
	[NPU_STATUS_UNSUPPORTED] = "not supported",
	[NPU_STATUS_INTERNAL] = "internal error",
	[NPU_STATUS_CONTIGUOUS] = "no contiguous memory",
	[NPU_STATUS_LIMIT] = "limit reached",
	[NPU_STATUS_SHUTDOWN] = "shutting down",
};

static const struct {
	int error;
	int status;
} errnos[] = {
	{ -EINVAL, NPU_STATUS_INVALID },
	{ -ERANGE, NPU_STATUS_INVALID },
	{ -EEXIST, NPU_STATUS_INVALID },
	{ -E2BIG, NPU_STATUS_INVALID },
	{ -ENOENT, NPU_STATUS_NOT_FOUND },
	{ -ENOSPC, NPU_STATUS_DEVICE_MEMORY },
	{ -EDQUOT, NPU_STATUS_QUOTA },
	{ -ENOMEM, NPU_STATUS_HOST_MEMORY },
	{ -EPERM, NPU_STATUS_DENIED },
	{ -EACCES, NPU_STATUS_DENIED },
	{ -EPROTO, NPU_STATUS_VERSION },
	{ -ENXIO, NPU_STATUS_NO_DEVICE },
	{ -ENODEV, NPU_STATUS_DEVICE_LOST },
	{ -EIO, NPU_STATUS_DEVICE_LOST },
	{ -ETIMEDOUT, NPU_STATUS_TIMEOUT },
	{ -ENOEXEC, NPU_STATUS_IMAGE },
	{ -EBUSY, NPU_STATUS_BUSY },
	{ -EAGAIN, NPU_STATUS_BUSY },
	{ -EOPNOTSUPP, NPU_STATUS_UNSUPPORTED },
	{ -EMFILE, NPU_STATUS_LIMIT },
	{ -ENFILE, NPU_STATUS_LIMIT },
	{ -ETOOMANYREFS, NPU_STATUS_LIMIT },
	{ -EUSERS, NPU_STATUS_LIMIT },
	{ -ESHUTDOWN, NPU_STATUS_SHUTDOWN },
};

const char *npu_status_name(int status)
{
	if (status < 0 || (size_t)status >= sizeof(names) / sizeof(names[0]) || !names[status])
		return "unknown status";
	return names[status];
}

int npu_status_from_errno(int error)
{
	if (error == 0)
		return NPU_STATUS_OK;
	for (size_t i = 0; i < sizeof(errnos) / sizeof(errnos[0]); i++) {
		if (errnos[i].error == error)
			return errnos[i].status;
	}
	return NPU_STATUS_INTERNAL;
}
