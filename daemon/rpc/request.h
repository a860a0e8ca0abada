/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NPU_RPC_REQUEST_H
#define NPU_RPC_REQUEST_H

#include "daemon/core/session.h"
#include "daemon/rpc/client.h"
#include "proto/npu.pb-c.h"
#include "proto/status.h"
#include "proto/wire.h"

/*
 * One request, from its frame to its reply. The dispatcher takes it apart and enforces its row of
 * methods.def (plane, state, fds of the reply); then a handler rpc_NAME() either answers at once or
 * starts an operation of the core, whose end answers it. Each request is answered exactly once,
 * with request_reply() or one of the fail calls, which end it: the pointer is dead then. The loop's
 * thread.
 */

struct method;

struct request {
	struct client *client;
	const struct method *method;
	uint32_t id;
	uint64_t cursor;     /* for the handler: what the second half needs of the message */
	unsigned int device; /* likewise */
	struct op op;
	/* builds the reply from op; set by request_start() */
	void (*finish)(struct request *request);
};

/* A frame that has passed wire_header_check(). May close the client. */
void request_receive(struct client *client, const unsigned char *frame);

/* Answers with a message, and the fds of request->op. */
void request_reply(struct request *request, const ProtobufCMessage *reply);
/* Answers with the method's reply type, empty. */
void request_reply_empty(struct request *request);
void request_fail(struct request *request, int status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * For handlers: gets request->op ready, and says what answers when it has ended well; with an error
 * the request is failed by itself. Then the handler calls the core and gives the result to
 * request_started().
 */
struct op *request_op(struct request *request, void (*finish)(struct request *request));
/* r: what the core's call gave. */
void request_started(struct request *request, int r);

/* The handlers, and how their messages are called. */
#define NPU_METHOD(id, name, Req, req, Rep, rep, plane, state, fds) \
	void rpc_##name(struct request *request, const Npu__##Req *msg);
#include "proto/methods.def"
#undef NPU_METHOD

/* rpc_device.c: fills a message from what the core knows; the strings live in *info. */
void fill_device(Npu__Device *msg, struct core_device_info *info, const struct client *client);
/* All devices as an array of messages in one block (free()); NULL without memory. */
Npu__Device **fill_devices(const struct client *client, size_t *ret_count);

#endif
