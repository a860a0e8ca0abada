/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transport over a device node of npu.ko. The file is non-blocking, which matters to read() of
 * event records only: calls never wait for work. Event records are read one at a time. The calls of
 * the control node go there, through a file that is open for that call alone.
 */
#include "daemon/hal/transport.h"
#include "daemon/util/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define CONTROL_NODE "/dev/npu-ctl0"

struct hal_ioctl {
	struct hal_transport transport;
	int fd;
};

/* The node of a card that is gone is told by its events; each call is answered. */
static int ioctl_call(struct hal_transport *transport, unsigned int nr, const struct hal_call *call,
		      void *arg, int *ret_result)
{
	struct hal_ioctl *self = (struct hal_ioctl *)transport;
	cleanup(cleanup_close) int control = -1;
	__s32 *fds = hal_call_fds(call, arg);
	int fd = self->fd;
	int r;

	if (nr == HAL_CALL(VERSION) || nr == HAL_CALL(DISCOVER)) {
		control = open(CONTROL_NODE, O_RDWR | O_CLOEXEC);
		if (control < 0) {
			*ret_result = -errno;
			return 0;
		}
		fd = control;
	}
	for (unsigned int i = 0; i < call->fds; i++)
		fds[i] = -1;
	do {
		r = ioctl(fd, call->request, arg);
	} while (r < 0 && errno == EINTR);
	*ret_result = r < 0 ? -errno : 0;
	return 0;
}

static int ioctl_event(struct hal_transport *transport, struct npu_event *ret_event)
{
	struct hal_ioctl *self = (struct hal_ioctl *)transport;
	struct npu_event event = { 0 };
	ssize_t n;

	do {
		n = read(self->fd, &event, sizeof(event));
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	if (n == 0)
		return -ENODEV;
	if ((size_t)n < offsetof(struct npu_event, module))
		return -EPROTO;
	*ret_event = event;
	return 0;
}

static int ioctl_poll_fd(struct hal_transport *transport)
{
	return ((struct hal_ioctl *)transport)->fd;
}

static void ioctl_close(struct hal_transport *transport)
{
	struct hal_ioctl *self = (struct hal_ioctl *)transport;

	close(self->fd);
	free(self);
}

static const struct hal_transport_ops ioctl_ops = {
	.call = ioctl_call,
	.event = ioctl_event,
	.poll_fd = ioctl_poll_fd,
	.close = ioctl_close,
};

int hal_ioctl_open(const char *path, struct hal_transport **ret_transport)
{
	cleanup(cleanup_close) int fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
	struct hal_ioctl *self;
	struct stat st;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISCHR(st.st_mode))
		return -ENOTTY;
	self = calloc(1, sizeof(*self));
	if (!self)
		return -ENOMEM;
	self->transport.ops = &ioctl_ops;
	self->fd = steal_fd(&fd);
	*ret_transport = &self->transport;
	return 0;
}
