/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a client sends to npud: a row of frames, each with two bytes of length in front (the
 * highest bit: the header is put right, so that the body is reached). Each body is unpacked as the
 * request and the reply of its method, and what unpacks is packed again. Then all frames go to a
 * real server, whose only device cannot be opened: it must answer with frames that are in order,
 * or disconnect.
 */
#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/rpc/request.h"
#include "daemon/rpc/server_int.h"

#define FRAMES_MAX 64u
#define LENGTH_MASK 0x7fffu

struct types {
	unsigned int id;
	const ProtobufCMessageDescriptor *request, *reply;
};

static const struct types types[] = {
#define NPU_METHOD(id, name, Req, req, Rep, rep, plane, state, fds) \
	{ id, &npu__##req##__descriptor, &npu__##rep##__descriptor },
#include "proto/methods.def"
#undef NPU_METHOD
};
#define TYPES (sizeof(types) / sizeof(*types))

static struct loop *loop;
static struct server *server;
static uint8_t packet[WIRE_FRAME_MAX];

static void unpack(const ProtobufCMessageDescriptor *type, const uint8_t *body, size_t size)
{
	ProtobufCMessage *msg = protobuf_c_message_unpack(type, NULL, size, body), *again;
	uint8_t *packed;
	size_t n;

	if (!msg)
		return;
	n = protobuf_c_message_get_packed_size(msg);
	packed = malloc(n + 1);
	fuzz_check(packed, "no memory");
	fuzz_check(protobuf_c_message_pack(msg, packed) == n, "packed size");
	/* It need not unpack: protobuf-c passes on unknown fields, and takes some that it then refuses. */
	again = protobuf_c_message_unpack(type, NULL, n, packed);
	if (again)
		protobuf_c_message_free_unpacked(again, NULL);
	protobuf_c_message_free_unpacked(msg, NULL);
	free(packed);
}

/* The next frame into packet; false at the end. */
static bool frame_next(const uint8_t **data, size_t *size, size_t *ret_length)
{
	struct wire_header header;
	uint16_t word;
	size_t length;

	if (*size < sizeof(word))
		return false;
	memcpy(&word, *data, sizeof(word));
	*data += sizeof(word);
	*size -= sizeof(word);
	length = word & LENGTH_MASK;
	if (length > *size)
		length = *size;
	memcpy(packet, *data, length);
	*data += length;
	*size -= length;
	if ((word & ~LENGTH_MASK) && length >= sizeof(header)) {
		memcpy(&header, packet, sizeof(header));
		header.magic = WIRE_MAGIC;
		header.flags = 0;
		header.status = 0;
		header.fds = 0;
		header.bytes = (uint32_t)(length - sizeof(header));
		memcpy(packet, &header, sizeof(header));
	}
	*ret_length = length;
	return true;
}

static void frame_look(size_t length)
{
	struct wire_header header;
	bool request = wire_header_check(packet, length, 0) == 0;
	bool reply = wire_header_check(packet, length, WIRE_REPLY) == 0;

	fuzz_check(!(request && reply), "request and reply at once");
	if (!request && !reply)
		return;
	memcpy(&header, packet, sizeof(header));
	for (size_t i = 0; i < TYPES; i++) {
		if (types[i].id != header.method)
			continue;
		unpack(types[i].request, packet + sizeof(header), header.bytes);
		unpack(types[i].reply, packet + sizeof(header), header.bytes);
	}
	if (reply && header.status)
		unpack(&npu__error__descriptor, packet + sizeof(header), header.bytes);
}

/* Our end of the connection: what npud says, until it disconnects. */
static void on_reply(int fd, unsigned int events, void *arg)
{
	static uint8_t answer[WIRE_FRAME_MAX];
	int fds[WIRE_FDS_MAX];
	size_t nfds;
	int n = wire_receive(fd, answer, sizeof(answer), fds, WIRE_FDS_MAX, &nfds, MSG_DONTWAIT);

	(void)events;
	(void)arg;
	if (n == -EAGAIN)
		return;
	if (n <= 0) {
		loop_stop(loop);
		return;
	}
	fuzz_check(wire_header_check(answer, (size_t)n, WIRE_REPLY) == 0, "a malformed reply");
	fuzz_check(nfds == 0, "a reply with fds");
}

static void serve(const uint8_t *data, size_t size)
{
	struct session_peer peer = { .pid = 1, .uid = 1000, .gid = 1000, .comm = "fuzz" };
	struct client *client;
	struct loop_fd *source;
	size_t length;
	int pair[2];

	peer.admin = size && (data[size - 1] & 1);
	fuzz_check(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0,
		   "no socket");
	fuzz_check(client_new(server, pair[0], &peer, &client) == 0, "no client");
	fuzz_check(loop_fd_new(loop, pair[1], LOOP_READ, on_reply, NULL, &source) == 0, "no source");
	for (unsigned int i = 0; i < FRAMES_MAX && frame_next(&data, &size, &length); i++) {
		if (length && send(pair[1], packet, length, MSG_NOSIGNAL) < 0)
			break;
	}
	shutdown(pair[1], SHUT_WR);
	fuzz_check(loop_run(loop) == 0, "the loop");
	loop_fd_free(source);
	close(pair[1]);
	fuzz_check(server->connections == 0, "the connection stays");
}

static void opened(void *arg)
{
	(void)arg;
	loop_stop(loop);
}

static void start(void)
{
	static struct conf conf;
	static struct core *core;
	static struct closer *closer;
	struct core_config core_config = { .conf = &conf, .runtime_dir = "." };
	struct server_config config = { .conf = &conf, .runtime_dir = ".", .version = "npud" };

	log_set_level(LOG_LEVEL_ERROR);
	conf_init(&conf);
	/* There can be no device of this number. */
	snprintf(conf.transport, sizeof(conf.transport), "/dev/npu4294967295");
	config.listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	fuzz_check(config.listen_fd >= 0 && listen(config.listen_fd, 1) <= 0, "no socket");
	fuzz_check(loop_new(&loop) == 0, "no loop");
	fuzz_check(closer_new(&closer) == 0, "no closer");
	fuzz_check(core_new(loop, &core_config, opened, NULL, &core) == 0, "no core");
	fuzz_check(loop_run(loop) == 0, "the loop");
	fuzz_check(server_new(loop, core, closer, &config, &server) == 0, "no server");
	/* Nobody connects there, and an unbound socket would always be ready. */
	loop_fd_set(server->source, 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *at = data;
	size_t rest = size, length;

	if (!server)
		start();
	while (frame_next(&at, &rest, &length))
		frame_look(length);
	serve(data, size);
	return 0;
}
