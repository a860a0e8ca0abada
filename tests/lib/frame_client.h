/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NPU_TESTS_FRAME_CLIENT_H
#define NPU_TESTS_FRAME_CLIENT_H

#include "proto/npu.pb-c.h"
#include "proto/status.h"
#include "proto/wire.h"

/*
 * A bare client of the control protocol, for tests: one call at a time, no library in between.
 * Every wait ends after FC_WAIT_MS at the latest.
 */

#define FC_WAIT_MS 10000

struct frame_client {
	int fd;
	uint32_t next_id;
	unsigned char frame[WIRE_FRAME_MAX]; /* the last reply */
	struct wire_header header;	     /* its header */
	int fds[WIRE_FDS_MAX];		     /* its fds: the caller's to close */
	size_t nfds;
};

/* 0 or a negative errno. */
int fc_connect(struct frame_client *client, const char *sock);
void fc_close(struct frame_client *client);

int fc_send(struct frame_client *client, unsigned int method, const ProtobufCMessage *msg);
/* The next reply into client: 0, -ENOTCONN when npud has disconnected, -ETIMEDOUT. */
int fc_receive(struct frame_client *client);
/* True when npud disconnects within FC_WAIT_MS (replies in between are read). */
int fc_disconnected(struct frame_client *client);
/*
 * Sends and receives: the status of the reply, negative errno when there was none. With status OK
 * and type not NULL *ret_reply is the reply (protobuf_c_message_free_unpacked()).
 */
int fc_call(struct frame_client *client, unsigned int method, const ProtobufCMessage *msg,
	    const ProtobufCMessageDescriptor *type, void *ret_reply);
/* Text of the last reply when it was an error; static. */
const char *fc_error(struct frame_client *client);
/* Closes the fds of the last reply. */
void fc_drop_fds(struct frame_client *client);

/* Connects and says hello; aborts on failure. */
void fc_open(struct frame_client *client, const char *sock);
/* A call with an id as its only field of interest: opens device 0 and drops the fds. Status. */
int fc_open_device(struct frame_client *client, unsigned int device);

#endif
