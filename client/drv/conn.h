/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conn - one connection to npud: connect, Hello, round trips
 *
 * Not locked: one thread at a time. Failures are described in drv_error() of the calling thread. A
 * connection that broke stays broken: every later call gives -ENOTCONN.
 */
#ifndef NPU_CLIENT_DRV_CONN_H
#define NPU_CLIENT_DRV_CONN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <protobuf-c/protobuf-c.h>
#include "proto/wire.h"

#define DRV_TIMEOUT_MS 10000u /* for Hello, and when npud names none */

struct drv_conn {
	int fd; /* -1: closed or broken */
	uint32_t next_id;
	unsigned timeout_ms;
	char path[108];
	unsigned char *frame; /* WIRE_FRAME_MAX bytes */
	/* what npud said in Hello */
	char daemon[64];
	uint32_t major, minor;
	bool is_admin;
	uint64_t window_base, window_size;
};

/*
 * path NULL: $NPUD_SOCKET, else the default. timeout_ms 0: npud's own. admin: no device session.
 * Close it in any case.
 */
int drv_conn_open(struct drv_conn *conn, const char *path, unsigned timeout_ms, bool admin);
void drv_conn_close(struct drv_conn *conn);

/* Whether npud still holds the other end; no round trip. */
bool drv_conn_alive(const struct drv_conn *conn);

/*
 * One round trip. *ret_reply is the caller's, to be freed with protobuf_c_message_free_unpacked();
 * NULL when the reply does not matter. Descriptors of the reply go to fds and are the caller's, of
 * which exactly *ret_nfds are valid; fds NULL: those that come are closed.
 */
int drv_conn_call(struct drv_conn *conn, uint16_t method, const ProtobufCMessage *request,
		  const ProtobufCMessageDescriptor *type, ProtobufCMessage **ret_reply, int *fds,
		  size_t *ret_nfds);

#endif
