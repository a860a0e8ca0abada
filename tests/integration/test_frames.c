/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hostile clients of the control socket: whatever they send, and whatever they do not read, npud
 * goes on serving others and has as many fds open afterwards as before.
 */
#include "tests/lib/frame_client.h"
#include "tests/lib/npud_proc.h"
#include "tests/lib/runner.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kdrv/uapi/npu.h"

static struct npud_proc npud;
static struct frame_client good; /* an honest client, there all the time */
static int fds_before;

static void ping(void)
{
	Npu__Empty empty = NPU__EMPTY__INIT;

	ck_assert(npud_proc_alive(&npud));
	ck_assert_int_eq(fc_call(&good, NPU_METHOD_ping, &empty.base, NULL, NULL), NPU_STATUS_OK);
}

static void setup(void)
{
	npud_proc_start(&npud, "[daemon]\nsocket_mode = 0666\n[limits]\nsessions_per_user = 256\n");
	fc_open(&good, npud.sock);
	ping();
	fds_before = fds_of(npud.pid);
}

static void teardown(void)
{
	ping();
	ck_assert_msg(fds_settle(npud.pid, fds_before, 8000), "%d fds open, %d before",
		      fds_of(npud.pid), fds_before);
	fc_close(&good);
	npud_proc_stop(&npud);
}

static struct wire_header header_of(unsigned int method, uint32_t bytes)
{
	return (struct wire_header){
		.magic = WIRE_MAGIC, .method = (uint16_t)method, .id = 1, .bytes = bytes
	};
}

/* Sends a packet on a fresh connection, with or without hello; npud must disconnect. */
static void disconnects(const void *packet, size_t size, bool hello)
{
	struct frame_client client;

	if (hello)
		fc_open(&client, npud.sock);
	else
		ck_assert_int_eq(fc_connect(&client, npud.sock), 0);
	ck_assert_int_eq(send(client.fd, packet, size, MSG_NOSIGNAL), size);
	ck_assert_msg(fc_disconnected(&client), "%zu bytes", size);
	fc_close(&client);
	ping();
}

START_TEST(malformed_frames)
{
	unsigned char packet[256] = { 0 };
	struct wire_header header;

	for (unsigned int hello = 0; hello < 2; hello++) {
		disconnects("", 0, hello);
		disconnects("x", 1, hello);
		disconnects(packet, sizeof(packet), hello);
		header = header_of(NPU_METHOD_ping, 0);
		disconnects(&header, sizeof(header) - 1, hello);
		header.magic ^= 0x100;
		disconnects(&header, sizeof(header), hello);
		header = header_of(NPU_METHOD_ping, 1);
		disconnects(&header, sizeof(header), hello);
		header = header_of(NPU_METHOD_ping, UINT32_MAX);
		disconnects(&header, sizeof(header), hello);
		header = header_of(NPU_METHOD_ping, 0);
		header.flags = WIRE_REPLY;
		disconnects(&header, sizeof(header), hello);
		header = header_of(NPU_METHOD_ping, 0);
		header.flags = 0x8000;
		disconnects(&header, sizeof(header), hello);
		header = header_of(NPU_METHOD_ping, 0);
		header.fds = 1;
		disconnects(&header, sizeof(header), hello);
		header = header_of(NPU_METHOD_ping, 0);
		header.status = -1;
		disconnects(&header, sizeof(header), hello);
	}
	/* a body that is no message: a length that goes past the end, an endless number */
	header = header_of(NPU_METHOD_hello, 3);
	memcpy(packet, &header, sizeof(header));
	memcpy(packet + sizeof(header), "\x1a\x7f\x61", 3);
	disconnects(packet, sizeof(header) + 3, false);
	header = header_of(NPU_METHOD_mem_alloc, 12);
	memcpy(packet, &header, sizeof(header));
	memset(packet + sizeof(header), 0xff, 12);
	disconnects(packet, sizeof(header) + 12, true);
}
END_TEST

START_TEST(truncated_frames)
{
	Npu__Hello hello = NPU__HELLO__INIT;
	unsigned char packet[256];
	struct wire_header header;
	size_t len;

	hello.major = NPU_PROTO_MAJOR;
	hello.library = (char *)"a client of some name";
	len = npu__hello__pack(&hello, packet + sizeof(header));
	header = header_of(NPU_METHOD_hello, (uint32_t)len);
	memcpy(packet, &header, sizeof(header));
	for (size_t size = 0; size < sizeof(header) + len; size++)
		disconnects(packet, size, false);
}
END_TEST

START_TEST(oversized_frames)
{
	static const size_t sizes[] = { WIRE_FRAME_MAX + 1, WIRE_FRAME_MAX + 24, 100000, 180000 };
	unsigned char *packet = calloc(1, 200000);
	struct frame_client client;
	struct wire_header header;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		header = header_of(NPU_METHOD_ping, (uint32_t)(sizes[i] - sizeof(header)));
		memcpy(packet, &header, sizeof(header));
		disconnects(packet, sizes[i], true);
	}
	/* the longest frame that is allowed: 64 KiB of an unknown field, which is skipped */
	header = header_of(NPU_METHOD_ping, WIRE_FRAME_MAX - sizeof(header));
	memcpy(packet, &header, sizeof(header));
	memcpy(packet + sizeof(header), "\xfa\x01\xe3\xff\x03", 5);
	memset(packet + sizeof(header) + 5, 0, WIRE_FRAME_MAX);
	fc_open(&client, npud.sock);
	ck_assert_int_eq(send(client.fd, packet, WIRE_FRAME_MAX, 0), WIRE_FRAME_MAX);
	ck_assert_int_eq(fc_receive(&client), 0);
	ck_assert_int_eq(client.header.status, NPU_STATUS_OK);
	fc_close(&client);
	free(packet);
}
END_TEST

START_TEST(random_frames)
{
	unsigned int seed = 20240607;
	unsigned char packet[512];

	for (unsigned int round = 0; round < 1500; round++) {
		size_t size = sizeof(struct wire_header) + rand_r(&seed) % 200;
		struct wire_header header;
		struct frame_client client;
		unsigned int frames = 1 + rand_r(&seed) % 8;

		if (rand_r(&seed) % 2)
			fc_open(&client, npud.sock);
		else
			ck_assert_int_eq(fc_connect(&client, npud.sock), 0);
		/* a good header before anything but the last one: the body is what varies */
		for (unsigned int k = 0; k < frames; k++) {
			for (size_t i = 0; i < size; i++)
				packet[i] = (unsigned char)rand_r(&seed);
			header = header_of(rand_r(&seed) % 110, (uint32_t)(size - sizeof(header)));
			if (rand_r(&seed) % 16)
				memcpy(packet, &header, sizeof(header));
			if (rand_r(&seed) % 2) /* small fields: closer to a message */
				for (size_t i = sizeof(header); i < size; i += 2)
					packet[i] = (unsigned char)(rand_r(&seed) % 8 << 3);
			if (send(client.fd, packet, size, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
				break;
		}
		fc_close(&client);
	}
	ping();
}
END_TEST

/* A frame with fds besides. 0 or -errno. */
static int send_with_fds(int sock, const void *packet, size_t size, const int *fds, size_t nfds)
{
	static _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int) * 253)];
	struct iovec iov = { (void *)packet, size };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control,
			      .msg_controllen = CMSG_SPACE(sizeof(int) * nfds) };
	struct cmsghdr *cmsg;

	memset(control, 0, sizeof(control));
	cmsg = CMSG_FIRSTHDR(&msg);
	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(sizeof(int) * nfds);
	memcpy(CMSG_DATA(cmsg), fds, sizeof(int) * nfds);
	return sendmsg(sock, &msg, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

START_TEST(fds_passed_in)
{
	static const size_t counts[] = { 1, 2, 4, 5, 16, 100, 253 };
	struct wire_header header = header_of(NPU_METHOD_ping, 0);
	struct frame_client client;
	int fds[253], one;

	one = open("/dev/null", O_RDONLY);
	for (size_t i = 0; i < 253; i++)
		fds[i] = one;
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		fc_open(&client, npud.sock);
		ck_assert_int_eq(send_with_fds(client.fd, &header, sizeof(header), fds, counts[i]),
				 0);
		/* several packets: the rest of them is never received, only closed */
		for (unsigned int k = 0; k < 4; k++)
			send_with_fds(client.fd, &header, sizeof(header), fds, counts[i]);
		ck_assert(fc_disconnected(&client));
		fc_close(&client);
		ping();
	}
	/* with a frame that is malformed besides, and before hello */
	header.magic = 0;
	ck_assert_int_eq(fc_connect(&client, npud.sock), 0);
	ck_assert_int_eq(send_with_fds(client.fd, &header, sizeof(header), fds, 253), 0);
	ck_assert(fc_disconnected(&client));
	fc_close(&client);
	close(one);
}
END_TEST

/* Sockets with unsent data whose close() takes 20 seconds, as long as the sender keeps the peer. */
static int lingering_socket(int *ret_peer)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct linger linger = { .l_onoff = 1, .l_linger = 20 };
	socklen_t len = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM, 0), fd, small = 1;
	static char block[1 << 20];

	setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	ck_assert_int_eq(bind(listener, (struct sockaddr *)&address, len), 0);
	ck_assert_int_eq(listen(listener, 1), 0);
	getsockname(listener, (struct sockaddr *)&address, &len);
	fd = socket(AF_INET, SOCK_STREAM, 0);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, len), 0);
	*ret_peer = accept(listener, NULL, NULL);
	close(listener);
	while (send(fd, block, sizeof(block), MSG_DONTWAIT) > 0)
		;
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	return fd;
}

static bool fds_refused(void *arg)
{
	return npud_proc_logged(arg, "sent file descriptors");
}

START_TEST(lingering_sockets_passed_in)
{
	struct wire_header header = header_of(NPU_METHOD_ping, 0);
	int bad[24], peers[24], go[2], status;
	struct timespec begin, end;
	pid_t sender;

	for (unsigned int i = 0; i < 24; i++)
		bad[i] = lingering_socket(&peers[i]);
	/*
	 * The last to close such a socket waits, unless it is exiting. So the sender ends after
	 * sending: some are then received by npud, some lie in the queue of the socket that npud
	 * closes.
	 */
	ck_assert_int_eq(pipe(go), 0);
	sender = fork();
	ck_assert_int_ge(sender, 0);
	if (sender == 0) {
		struct frame_client client;
		char byte;

		fc_open(&client, npud.sock);
		if (read(go[0], &byte, 1) != 1)
			_exit(1);
		for (unsigned int i = 0; i < 24; i += 8) {
			if (send_with_fds(client.fd, &header, sizeof(header), &bad[i], 8) < 0)
				break; /* disconnected already */
		}
		_exit(0);
	}
	for (unsigned int i = 0; i < 24; i++)
		close(bad[i]);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	ck_assert_int_eq(write(go[1], "x", 1), 1);
	ck_assert_int_eq(waitpid(sender, &status, 0), sender);
	ck_assert_int_eq(status, 0);
	ck_assert(wait_for(fds_refused, &npud, 5000));
	for (unsigned int i = 0; i < 50; i++)
		ping();
	clock_gettime(CLOCK_MONOTONIC, &end);
	ck_assert_int_lt(
		(end.tv_sec - begin.tv_sec) * 1000 + (end.tv_nsec - begin.tv_nsec) / 1000000, 4000);
	for (unsigned int i = 0; i < 24; i++)
		close(peers[i]);
	close(go[0]);
	close(go[1]);
}
END_TEST

START_TEST(version_refusal_names_both)
{
	Npu__Hello hello = NPU__HELLO__INIT;
	struct frame_client client;
	char ours[32], theirs[32];

	hello.major = NPU_PROTO_MAJOR + 41;
	hello.minor = 7;
	hello.library = (char *)"libfuture 9";
	ck_assert_int_eq(fc_connect(&client, npud.sock), 0);
	ck_assert_int_eq(fc_call(&client, NPU_METHOD_hello, &hello.base, NULL, NULL),
			 NPU_STATUS_VERSION);
	snprintf(ours, sizeof(ours), "%u.%u", NPU_PROTO_MAJOR, NPU_PROTO_MINOR);
	snprintf(theirs, sizeof(theirs), "libfuture 9 %u.7", NPU_PROTO_MAJOR + 41);
	ck_assert_ptr_nonnull(strstr(fc_error(&client), ours));
	ck_assert_ptr_nonnull(strstr(fc_error(&client), theirs));
	/* a larger minor is no obstacle */
	hello.major = NPU_PROTO_MAJOR;
	hello.minor = NPU_PROTO_MINOR + 5;
	ck_assert_int_eq(fc_call(&client, NPU_METHOD_hello, &hello.base, NULL, NULL),
			 NPU_STATUS_OK);
	fc_close(&client);
}
END_TEST

START_TEST(wrong_state)
{
	Npu__Hello hello = NPU__HELLO__INIT;
	Npu__Empty empty = NPU__EMPTY__INIT;
	struct frame_client client;

	ck_assert_int_eq(fc_connect(&client, npud.sock), 0);
	ck_assert_int_eq(fc_call(&client, NPU_METHOD_ping, &empty.base, NULL, NULL),
			 NPU_STATUS_STATE);
	ck_assert_int_eq(fc_open_device(&client, 0), NPU_STATUS_STATE);
	ck_assert_int_eq(fc_call(&client, NPU_METHOD_status, &empty.base, NULL, NULL),
			 NPU_STATUS_STATE);
	hello.major = NPU_PROTO_MAJOR;
	hello.token.data = (uint8_t *)"a token that nobody gave";
	hello.token.len = 24;
	ck_assert_int_eq(fc_call(&client, NPU_METHOD_hello, &hello.base, NULL, NULL),
			 NPU_STATUS_NOT_FOUND);
	hello.token.len = 0;
	ck_assert_int_eq(fc_call(&client, NPU_METHOD_hello, &hello.base, NULL, NULL),
			 NPU_STATUS_OK);
	ck_assert_int_eq(fc_call(&client, NPU_METHOD_hello, &hello.base, NULL, NULL),
			 NPU_STATUS_STATE);
	/* still a good connection */
	ck_assert_int_eq(fc_call(&client, NPU_METHOD_ping, &empty.base, NULL, NULL), NPU_STATUS_OK);
	for (unsigned int method = 0; method < 70000; method += 997) {
		if (method % 65536 > 103)
			ck_assert_int_eq(fc_call(&client, method % 65536, &empty.base, NULL, NULL),
					 NPU_STATUS_UNKNOWN_METHOD);
	}
	fc_close(&client);
}
END_TEST

START_TEST(client_that_never_reads)
{
	Npu__Empty empty = NPU__EMPTY__INIT;
	struct frame_client client;
	struct pollfd pfd;
	int r;

	fc_open(&client, npud.sock);
	/*
	 * npud reads on till its replies don't fit, then disconnects; until then we may have to
	 * wait
	 */
	do {
		pfd = (struct pollfd){ .fd = client.fd, .events = POLLOUT };
		ck_assert_int_eq(poll(&pfd, 1, 5000), 1);
		r = fc_send(&client, NPU_METHOD_status, &empty.base);
	} while (r == 0);
	ck_assert_msg(r == -EPIPE || r == -ECONNRESET, "%s", strerror(-r));
	ck_assert(fc_disconnected(&client));
	fc_close(&client);
	ck_assert(npud_proc_logged(&npud, "does not read its replies"));
}
END_TEST

START_TEST(fds_wait_for_a_slow_reader)
{
	Npu__MemAlloc msg = NPU__MEM_ALLOC__INIT;
	struct frame_client client;
	struct pollfd pfd;

	fc_open(&client, npud.sock);
	ck_assert_int_eq(fc_open_device(&client, 0), NPU_STATUS_OK);
	msg.bytes = 4096;
	msg.kind = NPU_MEM_DEVICE;
	for (unsigned int i = 0; i < 40; i++)
		ck_assert_int_eq(fc_send(&client, NPU_METHOD_mem_alloc, &msg.base), 0);
	/* at most one reply with fds is in the socket: what is there can be read in one go */
	pfd = (struct pollfd){ .fd = client.fd, .events = POLLIN };
	ck_assert_int_eq(poll(&pfd, 1, 5000), 1);
	for (unsigned int i = 0; i < 20; i++)
		ping();
	ck_assert_int_eq(fc_receive(&client), 0);
	ck_assert_uint_eq(client.nfds, 1);
	ck_assert_int_lt(recv(client.fd, client.frame, 1, MSG_PEEK | MSG_DONTWAIT), 0);
	/* and all of them come */
	for (unsigned int i = 1; i < 40; i++) {
		ck_assert_int_eq(fc_receive(&client), 0);
		ck_assert_int_eq(client.header.status, NPU_STATUS_OK);
		ck_assert_uint_eq(client.nfds, 1);
	}
	fc_close(&client);
}
END_TEST

START_TEST(clients_that_leave_in_the_middle)
{
	static const unsigned int methods[] = { NPU_METHOD_status, NPU_METHOD_device_open,
						NPU_METHOD_ps, NPU_METHOD_mem_alloc };
	Npu__MemAlloc alloc = NPU__MEM_ALLOC__INIT;
	Npu__Empty empty = NPU__EMPTY__INIT;

	alloc.bytes = 65536;
	alloc.kind = NPU_MEM_DEVICE;
	for (unsigned int i = 0; i < 200; i++) {
		unsigned int method = methods[i % 4];
		struct frame_client client;

		fc_open(&client, npud.sock);
		if (method == NPU_METHOD_mem_alloc) {
			fc_send(&client, NPU_METHOD_device_open, &empty.base);
			for (unsigned int k = 0; k < i % 7; k++)
				fc_send(&client, method, &alloc.base);
		} else {
			fc_send(&client, method, &empty.base);
		}
		fc_close(&client);
	}
	ping();
}
END_TEST

START_TEST(connections_without_hello)
{
	struct frame_client clients[64];
	unsigned int refused = 0;

	for (unsigned int i = 0; i < 64; i++)
		ck_assert_int_eq(fc_connect(&clients[i], npud.sock), 0);
	ping();
	/* They are closed by the closer's thread: within 5 s. */
	for (unsigned int round = 0; round < 1000 && refused < 32; round++) {
		refused = 0;
		for (unsigned int i = 0; i < 64; i++) {
			struct pollfd pfd = { .fd = clients[i].fd, .events = POLLIN };

			refused += poll(&pfd, 1, 0) == 1;
		}
		if (refused < 32)
			poll(NULL, 0, 5);
	}
	ck_assert_uint_ge(refused, 32);
	for (unsigned int i = 0; i < 64; i++)
		fc_close(&clients[i]);
}
END_TEST

/* As another user: sees itself only, and that there are others. */
START_TEST(others_are_hidden)
{
	pid_t pid;
	int status;

	if (geteuid() != 0)
		return; /* it takes root to be two users */
	ck_assert_int_eq(chmod(npud.dir, 0755), 0);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		Npu__Ps msg = NPU__PS__INIT;
		Npu__PsReply *ps = NULL;
		struct frame_client client;

		if (setgroups(0, NULL) < 0 || setgid(65534) < 0 || setuid(65534) < 0)
			_exit(1);
		fc_open(&client, npud.sock);
		if (fc_call(&client, NPU_METHOD_ps, &msg.base, &npu__ps_reply__descriptor, &ps) !=
		    NPU_STATUS_OK)
			_exit(2);
		if (ps->n_clients != 1 || ps->clients[0]->uid != 65534 ||
		    ps->clients[0]->pid != getpid() || ps->hidden != 1)
			_exit(3);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}
END_TEST

/* The socket's directory has one npud. */
START_TEST(second_npud_is_refused)
{
	char command[400], line[512] = "", pid[32];
	FILE *out;

	snprintf(command, sizeof(command), "%s --foreground --device sim --runtime-dir %s 2>&1",
		 getenv("NPUD_PATH") ? getenv("NPUD_PATH") : "./npud", npud.dir);
	out = popen(command, "r");
	ck_assert_ptr_nonnull(out);
	ck_assert_ptr_nonnull(fgets(line, sizeof(line), out));
	ck_assert_int_eq(WEXITSTATUS(pclose(out)), 1);
	snprintf(pid, sizeof(pid), "pid %ld", (long)npud.pid);
	ck_assert_msg(strstr(line, pid) != NULL, "%s", line);
	ck_assert_msg(strstr(line, npud.dir) != NULL, "%s", line);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("frames");
	TCase *tc = tcase_create("frames");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, malformed_frames);
	tcase_add_test(tc, truncated_frames);
	tcase_add_test(tc, oversized_frames);
	tcase_add_test(tc, random_frames);
	tcase_add_test(tc, fds_passed_in);
	tcase_add_test(tc, lingering_sockets_passed_in);
	tcase_add_test(tc, version_refusal_names_both);
	tcase_add_test(tc, wrong_state);
	tcase_add_test(tc, client_that_never_reads);
	tcase_add_test(tc, fds_wait_for_a_slow_reader);
	tcase_add_test(tc, clients_that_leave_in_the_middle);
	tcase_add_test(tc, connections_without_hello);
	tcase_add_test(tc, others_are_hidden);
	tcase_add_test(tc, second_npud_is_refused);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
