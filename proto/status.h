/* SPDX-License-Identifier: Apache-2.0 */
/*
 * status - what a method answers, and how errno values map to it
 *
 * Numbers are part of the protocol: never reused. npud never sends an ACL code; the library maps.
 */
#ifndef NPU_PROTO_STATUS_H
#define NPU_PROTO_STATUS_H

enum npu_status {
	NPU_STATUS_OK = 0,
	NPU_STATUS_INVALID = 1,       /* an argument is out of its range */
	NPU_STATUS_NOT_FOUND = 2,     /* no such object of this connection */
	NPU_STATUS_NO_DEVICE = 3,     /* no such device, or not allowed to this user */
	NPU_STATUS_DEVICE_MEMORY = 4, /* the device's memory is used up */
	NPU_STATUS_QUOTA = 5,         /* a limit of this session or user */
	NPU_STATUS_HOST_MEMORY = 6,
	NPU_STATUS_DENIED = 7,        /* needs an administrator */
	NPU_STATUS_STATE = 8,         /* not in this state of the connection */
	NPU_STATUS_UNKNOWN_METHOD = 9,
	NPU_STATUS_VERSION = 10,      /* majors differ */
	NPU_STATUS_DEVICE_LOST = 11,
	NPU_STATUS_TIMEOUT = 12,      /* the device did not answer in time */
	NPU_STATUS_IMAGE = 13,        /* the kernel image was refused; the text says why */
	NPU_STATUS_BUSY = 14,
	NPU_STATUS_UNSUPPORTED = 15,
	NPU_STATUS_INTERNAL = 16,
	NPU_STATUS_CONTIGUOUS = 17,   /* memory is there, but no contiguous run of that size */
	NPU_STATUS_LIMIT = 18,        /* too many objects or requests at once */
	NPU_STATUS_SHUTDOWN = 19,     /* npud is stopping */
};

/* Name of a status for messages, "unknown status" for others; static string. */
const char *npu_status_name(int status);

/* The status for a negative errno of the device interface; NPU_STATUS_INTERNAL for unknown ones. */
int npu_status_from_errno(int error);

#endif
