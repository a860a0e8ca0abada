/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients that together, or at a bad moment, are more than npud can serve: connections that crowd
 * others out, that never say hello, that end while npud tells them of the loss of their device.
 */
#include "daemon/rpc/client.h"
#include "tests/lib/fake_board.h"
#include "tests/lib/frame_calls.h"
#include "tests/lib/npud_proc.h"
#include "tests/lib/runner.h"

#include <errno.h>
#include <grp.h>
#include <linux/sockios.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct npud_proc npud;

static void ping(struct frame_client *from)
{
	Npu__Empty empty = NPU__EMPTY__INIT;

	ck_assert(npud_proc_alive(&npud));
	ck_assert_int_eq(fc_call(from, NPU_METHOD_ping, &empty.base, NULL, NULL), NPU_STATUS_OK);
}

/* Connections with an administrator's hello (which needs no right) that this user gets of 400. */
static unsigned int crowd_in(void)
{
	static struct frame_client clients[400];
	Npu__Hello hello = NPU__HELLO__INIT;
	unsigned int held = 0;

	hello.major = NPU_PROTO_MAJOR;
	hello.admin = true;
	for (unsigned int i = 0; i < 400; i++) {
		if (fc_connect(&clients[held], npud.sock) < 0)
			continue;
		if (fc_call(&clients[held], NPU_METHOD_hello, &hello.base, NULL, NULL) ==
		    NPU_STATUS_OK)
			held++;
		else
			fc_close(&clients[held]);
	}
	return held;
}

static void become(uid_t uid)
{
	if (setgroups(0, NULL) < 0 || setgid(uid) < 0 || setuid(uid) < 0)
		_exit(1);
}

/* A process of that user that holds all it gets, and writes how many that are. */
static pid_t start_crowd(uid_t uid, unsigned int *ret_held)
{
	int fds[2];
	pid_t pid;

	ck_assert_int_eq(pipe(fds), 0);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		unsigned int held;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		become(uid);
		held = crowd_in();
		if (write(fds[1], &held, sizeof(held)) != sizeof(held))
			_exit(1);
		pause();
		_exit(0);
	}
	close(fds[1]);
	ck_assert_int_eq(read(fds[0], ret_held, sizeof(*ret_held)), sizeof(*ret_held));
	close(fds[0]);
	return pid;
}

START_TEST(one_user_has_a_share)
{
	npud_proc_start(&npud, "[limits]\nsessions_per_user = 8\n");
	ck_assert_uint_eq(crowd_in(), 8 + 16);
	npud_proc_stop(&npud);
}
END_TEST

/* Several users who take all they get leave room for root. */
START_TEST(root_gets_in)
{
	struct frame_client client;
	unsigned int sum = 0;
	pid_t pids[3];

	if (geteuid() != 0)
		return; /* it takes root to be several users */
	npud_proc_start(&npud, "[daemon]\nsocket_mode = 0666\n"
			       "[limits]\nsessions = 40\nsessions_per_user = 20\n");
	ck_assert_int_eq(chmod(npud.dir, 0755), 0);
	for (unsigned int i = 0; i < 3; i++) {
		unsigned int held;

		pids[i] = start_crowd(65531 + i, &held);
		ck_assert_uint_le(held, 36);
		sum += held;
	}
	ck_assert_uint_eq(sum, 40 + 64 - 32);
	fc_open(&client, npud.sock);
	ping(&client);
	fc_close(&client);
	for (unsigned int i = 0; i < 3; i++) {
		kill(pids[i], SIGKILL);
		waitpid(pids[i], NULL, 0);
	}
	npud_proc_stop(&npud);
}
END_TEST

static bool taken(void *arg)
{
	const struct frame_client *client = arg;
	int left = 0;

	return ioctl(client->fd, SIOCOUTQ, &left) == 0 && left == 0;
}

/* Sends a request whose reply nobody reads, after npud has taken those before. */
static int send_one(struct frame_client *client)
{
	Npu__Empty empty = NPU__EMPTY__INIT;

	ck_assert(wait_for(taken, client, 5000));
	return fc_send(client, NPU_METHOD_ping, &empty.base);
}

/* Without hello, and with replies it does not read: the connection ends like any without hello. */
START_TEST(unread_replies_do_not_buy_time)
{
	struct frame_client client;
	struct pollfd pfd;
	int sent = 0;

	npud_proc_start(&npud, NULL);
	ck_assert_int_eq(fc_connect(&client, npud.sock), 0);
	/* how many unread replies end a connection at once */
	while (send_one(&client) == 0)
		sent++;
	fc_close(&client);
	ck_assert(npud_proc_logged(&npud, "does not read its replies"));
	/* fewer: npud waits to send some of them */
	ck_assert_int_eq(fc_connect(&client, npud.sock), 0);
	for (int i = 0; i < sent - CLIENT_QUEUE_MAX / 2; i++)
		ck_assert_int_eq(send_one(&client), 0);
	pfd = (struct pollfd){ .fd = client.fd, .events = POLLRDHUP };
	ck_assert_int_eq(poll(&pfd, 1, 15000), 1);
	ck_assert(npud_proc_logged(&npud, "no Hello in time"));
	fc_close(&client);
	npud_proc_stop(&npud);
}
END_TEST

static void on_call(struct fake_board *board, struct fake_call *call, void *arg)
{
	(void)board;
	(void)arg;
	fake_board_obey(call);
}

static bool there(void *arg)
{
	return access(arg, F_OK) == 0;
}

/* A process that is a device whose modules never finish loading; npud takes it for its npu-sim. */
static pid_t start_board(void)
{
	struct fake_config config = { .major = NPU_UAPI_MAJOR, .call = on_call };
	char path[96];
	pid_t pid;

	memset(&npud, 0, sizeof(npud));
	strcpy(npud.dir, "/tmp/npud-test.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(npud.dir));
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		fake_board_start(npud.dir, &config);
		pause();
		_exit(0);
	}
	snprintf(path, sizeof(path), "%s/npu-sim-0.sock", npud.dir);
	ck_assert(wait_for(there, path, 5000));
	return pid;
}

/* Opens the device and starts to load many modules; npud has seen the answers to all the calls. */
static void load_many(struct frame_client *client)
{
	Npu__ModuleLoad load = NPU__MODULE_LOAD__INIT;
	Npu__MemAllocReply *image;
	int status;

	fc_open(client, npud.sock);
	ck_assert_int_eq(fc_open_device(client, 0), NPU_STATUS_OK);
	image = fc_alloc(client, 4096, NPU_MEM_IMAGE, &status);
	ck_assert_int_eq(status, NPU_STATUS_OK);
	load.mem = image->mem;
	load.bytes = 4096;
	npu__mem_alloc_reply__free_unpacked(image, NULL);
	for (unsigned int i = 0; i < 40; i++)
		ck_assert_int_eq(fc_send(client, NPU_METHOD_module_load, &load.base), 0);
	fc_ctx_create(client, &status);
	ck_assert_int_eq(status, NPU_STATUS_OK);
}

static bool told(void *arg)
{
	(void)arg;
	return npud_proc_logged(&npud, "the connection broke");
}

/* Ends the board, and waits till npud has begun to tell its clients. */
static void end_board(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	ck_assert(wait_for(told, NULL, 5000));
}

/* Each module is answered, and the first answer finds that the client has gone. */
START_TEST(device_and_client_go_together)
{
	struct frame_client good, client, second;
	pid_t pid;

	/* freed memory is filled: whoever goes on in it falls over */
	setenv("MALLOC_PERTURB_", "165", 1);
	pid = start_board();
	npud_proc_start_in(&npud, NULL);
	fc_open(&good, npud.sock);
	load_many(&client);
	load_many(&second);
	ck_assert_int_eq(shutdown(client.fd, SHUT_RD), 0);
	ck_assert_int_eq(shutdown(second.fd, SHUT_RD), 0);
	end_board(pid);
	ping(&good);
	fc_close(&client);
	fc_close(&second);
	fc_close(&good);
	npud_proc_stop(&npud);
}
END_TEST

/* The same while the device's sessions are closed, one by the client, one by its end. */
START_TEST(closing_and_client_go_together)
{
	Npu__DeviceClose closing = NPU__DEVICE_CLOSE__INIT;
	struct frame_client good, client;
	pid_t pid;

	setenv("MALLOC_PERTURB_", "165", 1);
	pid = start_board();
	npud_proc_start_in(&npud, NULL);
	fc_open(&good, npud.sock);
	load_many(&client);
	ck_assert_int_eq(shutdown(client.fd, SHUT_RD), 0);
	ck_assert_int_eq(fc_send(&client, NPU_METHOD_device_close, &closing.base), 0);
	ping(&good);
	fc_close(&client);
	load_many(&client);
	fc_close(&client);
	ping(&good);
	end_board(pid);
	ping(&good);
	fc_close(&good);
	npud_proc_stop(&npud);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("crowd");
	TCase *tc = tcase_create("crowd");

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, one_user_has_a_share);
	tcase_add_test(tc, root_gets_in);
	tcase_add_test(tc, unread_replies_do_not_buy_time);
	tcase_add_test(tc, device_and_client_go_together);
	tcase_add_test(tc, closing_and_client_go_together);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
