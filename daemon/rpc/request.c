/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dispatcher. Rows come from methods.def, so a method is a row and a handler; nothing else
 * knows the list. A body that does not parse means the peer does not speak the protocol: it is
 * disconnected. Everything else gets a status.
 */
#include "daemon/rpc/request.h"
#include "daemon/rpc/server_int.h"
#include "daemon/util/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum plane { PLANE_CLIENT, PLANE_ADMIN };
enum method_state { METHOD_NEW, METHOD_READY, METHOD_DEVICE };

struct method {
	unsigned int id;
	const char *name;
	const ProtobufCMessageDescriptor *request, *reply;
	enum plane plane;
	enum method_state state;
	unsigned int fds;
	void (*handle)(struct request *request, const ProtobufCMessage *msg);
};

#define NPU_METHOD(id, name, Req, req, Rep, rep, plane, state, fds)                     \
	static void handle_##name(struct request *request, const ProtobufCMessage *msg) \
	{                                                                               \
		rpc_##name(request, (const Npu__##Req *)msg);                           \
	}
#include "proto/methods.def"
#undef NPU_METHOD

static const struct method methods[] = {
#define NPU_METHOD(id, name, Req, req, Rep, rep, plane, state, fds) \
	{ id,                                                       \
	  #name,                                                    \
	  &npu__##req##__descriptor,                                \
	  &npu__##rep##__descriptor,                                \
	  PLANE_##plane,                                            \
	  METHOD_##state,                                           \
	  fds,                                                      \
	  handle_##name },
#include "proto/methods.def"
#undef NPU_METHOD
};

static const struct method *method_find(unsigned int id)
{
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
		if (methods[i].id == id)
			return &methods[i];
	}
	return NULL;
}

static void request_free(struct request *request)
{
	struct client *client = request->client;

	op_release(&request->op);
	free(request);
	client->requests--;
	client_request_done(client);
	client_unref(client);
}

static void send_message(struct client *client, unsigned int method, uint32_t id, int status,
			 const ProtobufCMessage *msg, int *fds, unsigned int nfds)
{
	unsigned char body[WIRE_FRAME_MAX];
	struct wire_header header = {
		.magic = WIRE_MAGIC,
		.method = (uint16_t)method,
		.flags = WIRE_REPLY,
		.id = id,
		.status = status,
	};
	size_t len = protobuf_c_message_get_packed_size(msg);

	if (len > sizeof(body) - sizeof(header)) {
		client_close(client, "a reply is longer than a frame");
		return;
	}
	header.bytes = (uint32_t)protobuf_c_message_pack(msg, body);
	client_send(client, &header, body, fds, nfds);
}

static void send_error(struct client *client, unsigned int method, uint32_t id, int status,
		       const char *text, const struct op *op)
{
	Npu__Error error = NPU__ERROR__INIT;

	error.status = status;
	error.text = (char *)text;
	if (op) {
		error.sys_errno = -op->error;
		error.wanted = op->wanted;
		error.limit = op->limit;
		error.largest = op->largest;
	}
	send_message(client, method, id, status, &error.base, NULL, 0);
}

void request_reply(struct request *request, const ProtobufCMessage *reply)
{
	struct op *op = &request->op;

	if (op->nfds > request->method->fds) {
		request_fail(request, NPU_STATUS_INTERNAL,
			     "%s: the reply has %u fds, more than the method may send",
			     request->method->name, op->nfds);
		return;
	}
	send_message(request->client, request->method->id, request->id, NPU_STATUS_OK, reply,
		     op->fds, op->nfds);
	request_free(request);
}

void request_reply_empty(struct request *request)
{
	ProtobufCMessage *reply = calloc(1, request->method->reply->sizeof_message);

	if (!reply) {
		request_fail(request, NPU_STATUS_HOST_MEMORY, "npud has no memory left");
		return;
	}
	protobuf_c_message_init(request->method->reply, reply);
	request_reply(request, reply);
	free(reply);
}

void request_fail(struct request *request, int status, const char *format, ...)
{
	char text[OP_TEXT_MAX];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	send_error(request->client, request->method->id, request->id, status, text, NULL);
	request_free(request);
}

static void fail_op(struct request *request)
{
	struct op *op = &request->op;
	int status = npu_status_from_errno(op->error);

	if (op->error == -ENOSPC && op->contiguous)
		status = NPU_STATUS_CONTIGUOUS;
	send_error(request->client, request->method->id, request->id, status, op->text, op);
	request_free(request);
}

static void op_done(struct op *op)
{
	struct request *request = (struct request *)((char *)op - offsetof(struct request, op));

	if (op->error)
		fail_op(request);
	else
		request->finish(request);
}

struct op *request_op(struct request *request, void (*finish)(struct request *request))
{
	op_init(&request->op, op_done);
	request->finish = finish;
	return &request->op;
}

void request_started(struct request *request, int r)
{
	if (r < 0)
		fail_op(request);
}

/* What is wrong with the row for this client; NPU_STATUS_OK and no text when nothing is. */
static int check_row(const struct client *client, const struct method *method, char *text,
		     size_t len)
{
	if (client->server->stopping) {
		snprintf(text, len, "%s: npud is stopping", method->name);
		return NPU_STATUS_SHUTDOWN;
	}
	if (method->state == METHOD_NEW && client->state != CLIENT_NEW) {
		snprintf(text, len, "%s: only the first request may be that", method->name);
		return NPU_STATUS_STATE;
	}
	if (method->state != METHOD_NEW && client->state == CLIENT_NEW) {
		snprintf(text, len, "%s: say hello first", method->name);
		return NPU_STATUS_STATE;
	}
	if (method->state == METHOD_DEVICE && client->state != CLIENT_READY) {
		snprintf(text, len, "%s: this connection said hello as an administrator's tool",
			 method->name);
		return NPU_STATUS_STATE;
	}
	if (method->plane == PLANE_ADMIN && !client->peer.admin) {
		snprintf(text, len, "%s: needs root or a member of group %s", method->name,
			 client->server->conf->admin_group);
		return NPU_STATUS_DENIED;
	}
	return NPU_STATUS_OK;
}

void request_receive(struct client *client, const unsigned char *frame)
{
	char text[OP_TEXT_MAX];
	struct wire_header header;
	const struct method *method;
	struct request *request;
	ProtobufCMessage *msg;
	int status;

	memcpy(&header, frame, sizeof(header));
	method = method_find(header.method);
	if (!method) {
		snprintf(text, sizeof(text), "method %u: %s does not know it", header.method,
			 client->server->version);
		send_error(client, header.method, header.id, NPU_STATUS_UNKNOWN_METHOD, text, NULL);
		return;
	}
	msg = protobuf_c_message_unpack(method->request, NULL, header.bytes,
					frame + sizeof(header));
	if (!msg) {
		client_close(client, "a message that does not parse");
		return;
	}
	status = check_row(client, method, text, sizeof(text));
	if (status != NPU_STATUS_OK) {
		send_error(client, method->id, header.id, status, text, NULL);
		goto out;
	}
	request = calloc(1, sizeof(*request));
	if (!request) {
		client_close(client, "no memory for a request");
		goto out;
	}
	request->client = client;
	request->method = method;
	request->id = header.id;
	client_ref(client);
	client->requests++;
	method->handle(request, msg);
out:
	protobuf_c_message_free_unpacked(msg, NULL);
}
