/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proto: the frame header, sending and receiving with fds, golden frames, the rows of methods.def.
 */
#include "proto/npu.pb-c.h"
#include "proto/wire.h"
#include "tests/lib/runner.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

_Static_assert(sizeof(struct wire_header) == 24, "the header is part of the protocol");

static int pair[2];

static void setup(void)
{
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair), 0);
}

static void teardown(void)
{
	close(pair[0]);
	close(pair[1]);
}

static struct wire_header good(uint32_t bytes)
{
	return (struct wire_header){ .magic = WIRE_MAGIC, .method = 2, .id = 7, .bytes = bytes };
}

START_TEST(checks_headers)
{
	unsigned char packet[WIRE_FRAME_MAX + 8] = { 0 };
	struct wire_header header = good(0);

	memcpy(packet, &header, sizeof(header));
	ck_assert_int_eq(wire_header_check(packet, sizeof(header), 0), 0);
	for (size_t size = 0; size < sizeof(header); size++)
		ck_assert_int_eq(wire_header_check(packet, size, 0), -EBADMSG);
	ck_assert_int_eq(wire_header_check(packet, sizeof(header) + 1, 0), -EBADMSG);
	ck_assert_int_eq(wire_header_check(packet, sizeof(header), WIRE_REPLY), -EBADMSG);
	header.flags = 2;
	memcpy(packet, &header, sizeof(header));
	ck_assert_int_eq(wire_header_check(packet, sizeof(header), 0), -EBADMSG);
	header = good(0);
	header.magic ^= 1;
	memcpy(packet, &header, sizeof(header));
	ck_assert_int_eq(wire_header_check(packet, sizeof(header), 0), -EBADMSG);
	header = good(0);
	header.fds = 1;
	memcpy(packet, &header, sizeof(header));
	ck_assert_int_eq(wire_header_check(packet, sizeof(header), 0), -EBADMSG);
	header = good(0);
	header.status = 1;
	memcpy(packet, &header, sizeof(header));
	ck_assert_int_eq(wire_header_check(packet, sizeof(header), 0), -EBADMSG);
	header.flags = WIRE_REPLY;
	header.fds = WIRE_FDS_MAX;
	memcpy(packet, &header, sizeof(header));
	ck_assert_int_eq(wire_header_check(packet, sizeof(header), WIRE_REPLY), 0);
	header.fds++;
	memcpy(packet, &header, sizeof(header));
	ck_assert_int_eq(wire_header_check(packet, sizeof(header), WIRE_REPLY), -EBADMSG);
	header = good(UINT32_MAX);
	memcpy(packet, &header, sizeof(header));
	ck_assert_int_eq(wire_header_check(packet, sizeof(header), 0), -EBADMSG);
	header = good(WIRE_FRAME_MAX - sizeof(header));
	memcpy(packet, &header, sizeof(header));
	ck_assert_int_eq(wire_header_check(packet, WIRE_FRAME_MAX, 0), 0);
	header = good(WIRE_FRAME_MAX - sizeof(header) + 1);
	memcpy(packet, &header, sizeof(header));
	ck_assert_int_eq(wire_header_check(packet, WIRE_FRAME_MAX + 1, 0), -EBADMSG);
}
END_TEST

START_TEST(sends_and_receives)
{
	unsigned char buffer[WIRE_FRAME_MAX], body[] = "body";
	struct wire_header header = good(sizeof(body));
	int fds[2], got[WIRE_FDS_MAX];
	struct stat a, b;
	size_t nfds;
	int n;

	ck_assert_int_eq(wire_receive(pair[1], buffer, sizeof(buffer), got, 0, &nfds, 0), -EAGAIN);
	ck_assert_int_eq(pipe(fds), 0);
	ck_assert_int_eq(wire_send(pair[0], &header, body, fds, 2), 0);
	n = wire_receive(pair[1], buffer, sizeof(buffer), got, WIRE_FDS_MAX, &nfds, 0);
	ck_assert_int_eq(n, sizeof(header) + sizeof(body));
	ck_assert_uint_eq(nfds, 2);
	ck_assert_mem_eq(buffer + sizeof(header), body, sizeof(body));
	ck_assert_uint_eq(((struct wire_header *)buffer)->fds, 2);
	ck_assert_int_eq(fstat(fds[1], &a), 0);
	ck_assert_int_eq(fstat(got[1], &b), 0);
	ck_assert_uint_eq(a.st_ino, b.st_ino);
	close(got[0]);
	close(got[1]);
	/* without room for the fds they are cut off, which is an error; so is cut off data */
	ck_assert_int_eq(wire_send(pair[0], &header, body, fds, 2), 0);
	ck_assert_int_eq(wire_receive(pair[1], buffer, sizeof(buffer), got, 0, &nfds, 0),
			 -EMSGSIZE);
	ck_assert_uint_eq(nfds, 0);
	ck_assert_int_eq(wire_send(pair[0], &header, body, fds, 2), 0);
	ck_assert_int_eq(wire_receive(pair[1], buffer, sizeof(buffer), got, 1, &nfds, 0),
			 -EMSGSIZE);
	ck_assert_uint_eq(nfds, 1);
	close(got[0]);
	ck_assert_int_eq(wire_send(pair[0], &header, body, NULL, 0), 0);
	ck_assert_int_eq(wire_receive(pair[1], buffer, 10, got, 1, &nfds, 0), -EMSGSIZE);
	header.bytes = WIRE_FRAME_MAX;
	ck_assert_int_eq(wire_send(pair[0], &header, buffer, NULL, 0), -EMSGSIZE);
	header.bytes = 0;
	ck_assert_int_eq(wire_send(pair[0], &header, NULL, fds, WIRE_FDS_MAX + 1), -EINVAL);
	while ((n = wire_send(pair[0], &header, NULL, NULL, 0)) == 0)
		;
	ck_assert_int_eq(n, -EAGAIN);
	close(pair[1]);
	ck_assert_int_lt(wire_send(pair[0], &header, NULL, NULL, 0), 0);
	pair[1] = -1;
	close(fds[0]);
	close(fds[1]);
}
END_TEST

START_TEST(sees_the_end)
{
	unsigned char buffer[64];
	size_t nfds;

	close(pair[0]);
	pair[0] = -1;
	ck_assert_int_eq(wire_receive(pair[1], buffer, sizeof(buffer), NULL, 0, &nfds, 0), 0);
}
END_TEST

/* Frames as bytes: what changes here breaks clients that are installed. */
START_TEST(keeps_golden_frames)
{
	static const unsigned char hello_bytes[] = { 0x08, 0x01, 0x1a, 0x03, 'l',
						     'i',  'b',	 0x28, 0x01 };
	static const unsigned char alloc_bytes[] = { 0x08, 0x02, 0x10, 0x80, 0x80,
						     0x04, 0x18, 0x01, 0x20, 0x08 };
	Npu__MemAlloc alloc = NPU__MEM_ALLOC__INIT;
	Npu__Hello hello = NPU__HELLO__INIT;
	unsigned char bytes[64];

	hello.major = 1;
	hello.library = (char *)"lib";
	hello.admin = true;
	ck_assert_uint_eq(npu__hello__pack(&hello, bytes), sizeof(hello_bytes));
	ck_assert_mem_eq(bytes, hello_bytes, sizeof(hello_bytes));
	alloc.device = 2;
	alloc.bytes = 65536;
	alloc.kind = 1;
	alloc.flags = 8;
	ck_assert_uint_eq(npu__mem_alloc__pack(&alloc, bytes), sizeof(alloc_bytes));
	ck_assert_mem_eq(bytes, alloc_bytes, sizeof(alloc_bytes));
}
END_TEST

START_TEST(rows_are_sound)
{
	static const unsigned int ids[] = {
#define NPU_METHOD(id, name, Req, req, Rep, rep, plane, state, fds) id,
#include "proto/methods.def"
#undef NPU_METHOD
	};
	static const unsigned int fds_out[] = {
#define NPU_METHOD(id, name, Req, req, Rep, rep, plane, state, fds) fds,
#include "proto/methods.def"
#undef NPU_METHOD
	};

	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		ck_assert_uint_gt(ids[i], 0);
		ck_assert_uint_le(ids[i], UINT16_MAX);
		ck_assert_uint_le(fds_out[i], WIRE_FDS_MAX);
		if (i)
			ck_assert_uint_gt(ids[i], ids[i - 1]); /* sorted, no number twice */
	}
	ck_assert_int_eq(NPU_METHOD_hello, 1);
	ck_assert_int_eq(NPU_METHOD_status, 100);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("wire");
	TCase *tc = tcase_create("wire");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, checks_headers);
	tcase_add_test(tc, sends_and_receives);
	tcase_add_test(tc, sees_the_end);
	tcase_add_test(tc, keeps_golden_frames);
	tcase_add_test(tc, rows_are_sound);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
