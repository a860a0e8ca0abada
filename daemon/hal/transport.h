/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NPU_HAL_TRANSPORT_H
#define NPU_HAL_TRANSPORT_H

#include "daemon/hal/calls.h"

/*
 * How calls reach a device: one set of functions over two implementations. A transport belongs to
 * its device's thread; only `cancel_fd` is shared: it becomes readable when the device is being
 * freed, and whatever the transport waits for ends then with -ECANCELED.
 *
 * call() gives 0 when the device has answered, with what it answered in *ret_result; any negative
 * errno (-ECANCELED: see above) means that the transport broke: it is dead then, and is closed. So
 * whatever a device answers, -ENODEV included, is the result of that one call.
 */
struct hal_transport;

struct hal_transport_ops {
	/*
	 * One call; arg is call->size bytes. On return the fd slots hold fds of this process (or
	 * -1) that belong to the caller, whatever the result.
	 */
	int (*call)(struct hal_transport *transport, unsigned int nr, const struct hal_call *call,
		    void *arg, int *ret_result);
	/* The next event record; -EAGAIN: none now. */
	int (*event)(struct hal_transport *transport, struct npu_event *ret_event);
	/* What to poll for POLLIN to learn of events. */
	int (*poll_fd)(struct hal_transport *transport);
	void (*close)(struct hal_transport *transport);
};

struct hal_transport {
	const struct hal_transport_ops *ops;
};

/* Opens a device node. */
int hal_ioctl_open(const char *path, struct hal_transport **ret_transport);
/*
 * Connects to an npu-sim's socket; does not wait for one to appear. -ECONNREFUSED, -ENOENT: none.
 */
int hal_sim_open(const char *path, int cancel_fd, struct hal_transport **ret_transport,
		 pid_t *ret_pid);

#endif
