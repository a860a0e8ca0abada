/* SPDX-License-Identifier: Apache-2.0 */
/* Plain sendmsg and recvmsg of one packet; no state. */
#include "proto/wire.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

int wire_header_check(const void *packet, size_t size, uint16_t flags)
{
	struct wire_header header;

	if (size < sizeof(header) || size > WIRE_FRAME_MAX)
		return -EBADMSG;
	memcpy(&header, packet, sizeof(header));
	if (header.magic != WIRE_MAGIC || header.flags != flags ||
	    header.bytes != size - sizeof(header))
		return -EBADMSG;
	if (header.fds > WIRE_FDS_MAX)
		return -EBADMSG;
	if (!(flags & WIRE_REPLY) && (header.fds || header.status))
		return -EBADMSG;
	return 0;
}

int wire_send(int fd, struct wire_header *header, const void *body, const int *fds, size_t nfds)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int) * WIRE_FDS_MAX)];
	} control;
	struct iovec iov[2] = {
		{ .iov_base = header, .iov_len = sizeof(*header) },
		{ .iov_base = (void *)body, .iov_len = header->bytes },
	};
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = header->bytes ? 2 : 1 };
	ssize_t n;

	if (header->bytes > WIRE_FRAME_MAX - sizeof(*header))
		return -EMSGSIZE;
	if (nfds > WIRE_FDS_MAX)
		return -EINVAL;
	header->fds = (uint32_t)nfds;
	if (nfds) {
		struct cmsghdr *cmsg;

		memset(&control, 0, sizeof(control));
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * nfds);
		cmsg = CMSG_FIRSTHDR(&msg);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(sizeof(int) * nfds);
		memcpy(CMSG_DATA(cmsg), fds, sizeof(int) * nfds);
	}
	do {
		n = sendmsg(fd, &msg, MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

int wire_receive(int fd, void *buffer, size_t size, int *fds, size_t max_fds, size_t *ret_nfds,
		 int flags)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int) * WIRE_FDS_RECEIVE_MAX)];
	} control;
	struct iovec iov = { .iov_base = buffer, .iov_len = size };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	size_t nfds = 0;
	ssize_t n;

	*ret_nfds = 0;
	if (max_fds > WIRE_FDS_RECEIVE_MAX)
		return -EINVAL;
	if (max_fds) {
		msg.msg_control = &control;
		/* not CMSG_SPACE: its padding would admit one fd more */
		msg.msg_controllen = CMSG_LEN(sizeof(int) * max_fds);
	}
	do {
		n = recvmsg(fd, &msg, flags | MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	for (struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg); cmsg; cmsg = CMSG_NXTHDR(&msg, cmsg)) {
		size_t count;

		if (cmsg->cmsg_level != SOL_SOCKET || cmsg->cmsg_type != SCM_RIGHTS)
			continue;
		count = (cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < count && nfds < max_fds; i++)
			memcpy(&fds[nfds++], CMSG_DATA(cmsg) + i * sizeof(int), sizeof(int));
	}
	*ret_nfds = nfds;
	if (msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC))
		return -EMSGSIZE;
	return (int)n;
}
