/* SPDX-License-Identifier: Apache-2.0 */
/* Blocking in poll() only. */
#include "tests/lib/frame_client.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int fc_connect(struct frame_client *client, const char *sock)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	memset(client, 0, sizeof(*client));
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", sock);
	client->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (client->fd < 0)
		return -errno;
	if (connect(client->fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		int saved = errno;

		close(client->fd);
		client->fd = -1;
		return -saved;
	}
	return 0;
}

void fc_drop_fds(struct frame_client *client)
{
	for (size_t i = 0; i < client->nfds; i++)
		close(client->fds[i]);
	client->nfds = 0;
}

void fc_close(struct frame_client *client)
{
	fc_drop_fds(client);
	if (client->fd >= 0)
		close(client->fd);
	client->fd = -1;
}

int fc_send(struct frame_client *client, unsigned int method, const ProtobufCMessage *msg)
{
	static unsigned char body[WIRE_FRAME_MAX * 2];
	struct wire_header header = {
		.magic = WIRE_MAGIC,
		.method = (uint16_t)method,
		.id = ++client->next_id,
	};

	header.bytes = (uint32_t)protobuf_c_message_pack(msg, body);
	return wire_send(client->fd, &header, body, NULL, 0);
}

int fc_receive(struct frame_client *client)
{
	struct pollfd pfd = { .fd = client->fd, .events = POLLIN };
	int n;

	fc_drop_fds(client);
	if (poll(&pfd, 1, FC_WAIT_MS) != 1)
		return -ETIMEDOUT;
	n = wire_receive(client->fd, client->frame, sizeof(client->frame), client->fds,
			 WIRE_FDS_MAX, &client->nfds, 0);
	if (n == 0 || n == -ECONNRESET || n == -EPIPE)
		return -ENOTCONN;
	if (n < 0)
		return n;
	if (wire_header_check(client->frame, (size_t)n, WIRE_REPLY) < 0)
		return -EBADMSG;
	memcpy(&client->header, client->frame, sizeof(client->header));
	return client->header.fds == client->nfds ? 0 : -EBADMSG;
}

int fc_disconnected(struct frame_client *client)
{
	int r;

	do {
		r = fc_receive(client);
	} while (r == 0);
	return r == -ENOTCONN;
}

int fc_call(struct frame_client *client, unsigned int method, const ProtobufCMessage *msg,
	    const ProtobufCMessageDescriptor *type, void *ret_reply)
{
	int r = fc_send(client, method, msg);

	if (r == 0)
		r = fc_receive(client);
	if (r < 0)
		return r;
	if (client->header.id != client->next_id || client->header.method != method)
		return -EBADMSG;
	if (client->header.status == NPU_STATUS_OK && type) {
		ProtobufCMessage *reply = protobuf_c_message_unpack(
			type, NULL, client->header.bytes, client->frame + sizeof(client->header));

		if (!reply)
			return -EBADMSG;
		*(ProtobufCMessage **)ret_reply = reply;
	}
	return client->header.status;
}

const char *fc_error(struct frame_client *client)
{
	static char text[1024];
	Npu__Error *error = npu__error__unpack(NULL, client->header.bytes,
					       client->frame + sizeof(client->header));

	snprintf(text, sizeof(text), "%s", error ? error->text : "(no error message)");
	if (error)
		npu__error__free_unpacked(error, NULL);
	return text;
}

void fc_open(struct frame_client *client, const char *sock)
{
	Npu__Hello hello = NPU__HELLO__INIT;
	int r = fc_connect(client, sock);

	hello.major = NPU_PROTO_MAJOR;
	hello.library = (char *)"frame client";
	if (r == 0)
		r = fc_call(client, NPU_METHOD_hello, &hello.base, NULL, NULL);
	if (r != 0) {
		fprintf(stderr, "%s: hello gave %d\n", sock, r);
		abort();
	}
}

int fc_open_device(struct frame_client *client, unsigned int device)
{
	Npu__DeviceOpen open = NPU__DEVICE_OPEN__INIT;
	int r;

	open.device = device;
	r = fc_call(client, NPU_METHOD_device_open, &open.base, NULL, NULL);
	fc_drop_fds(client);
	return r;
}
