/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wire - frames of the control protocol
 *
 * One SOCK_SEQPACKET packet is one frame: struct wire_header, then .bytes of protobuf. All numbers
 * are in host byte order: the peers are on one machine. A frame that breaks the rules of
 * wire_header_check() is malformed: the receiver disconnects.
 */
#ifndef NPU_PROTO_WIRE_H
#define NPU_PROTO_WIRE_H

#include <stddef.h>
#include <stdint.h>

#define NPU_PROTO_MAJOR 1u
#define NPU_PROTO_MINOR 0u

#define WIRE_MAGIC 0x4455504eu /* "NPUD" */
#define WIRE_FRAME_MAX 65536u
#define WIRE_FDS_MAX 4u /* of a reply */
#define WIRE_FDS_RECEIVE_MAX 253u /* what one packet can carry at all (SCM_MAX_FD of Linux) */
#define WIRE_REPLY 0x1u /* header.flags: this is a reply */

/* Where npud listens when NPUD_SOCKET is not set. */
#define NPUD_SOCKET_DEFAULT "/run/npud/npud.sock"
#define NPUD_SOCKET_ENV "NPUD_SOCKET"

struct wire_header {
	uint32_t magic;  /* WIRE_MAGIC */
	uint16_t method; /* id in methods.def */
	uint16_t flags;  /* WIRE_REPLY or 0; other bits are malformed */
	uint32_t id;     /* chosen by the client, repeated in the reply */
	int32_t status;  /* reply: enum npu_status; request: 0 */
	uint32_t bytes;  /* of the body: exactly the rest of the packet */
	uint32_t fds;    /* reply: number of fds that come with it; request: 0 */
};

enum npu_method {
#define NPU_METHOD(id, name, Req, req, Rep, rep, plane, state, fds) NPU_METHOD_##name = id,
#include "proto/methods.def"
#undef NPU_METHOD
};

/*
 * Checks a received packet of size bytes. flags is what the header must have (0 or WIRE_REPLY).
 * Returns 0, or -EBADMSG when it is malformed.
 */
int wire_header_check(const void *packet, size_t size, uint16_t flags);

/*
 * Sends header and body as one packet with nfds descriptors; MSG_NOSIGNAL, never blocks when the
 * socket is non-blocking. The fds stay the caller's. Returns 0 or a negative errno (-EAGAIN: the
 * peer's queue is full; -EMSGSIZE).
 */
int wire_send(int fd, struct wire_header *header, const void *body, const int *fds, size_t nfds);

/*
 * Receives one packet into buffer (at least WIRE_FRAME_MAX bytes). Control space for max_fds (at
 * most WIRE_FDS_RECEIVE_MAX) descriptors is offered; those that come are put into fds,
 * close-on-exec, and are the caller's also when an error is returned; *ret_nfds is always set.
 * Returns the size, 0 at end of file, or a negative errno: -EMSGSIZE when data or control data were
 * cut off.
 */
int wire_receive(int fd, void *buffer, size_t size, int *fds, size_t max_fds, size_t *ret_nfds,
		 int flags);

#endif
