/* SPDX-License-Identifier: Apache-2.0 */
/* Client programs for tests: see client_process.h. */
#include <check.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include "tests/lib/client_process.h"

struct npud_fixture client_npud;

void client_begin(struct client *c)
{
	OK(aclInit(NULL));
	OK(aclrtSetDevice(0));
	OK(aclrtCreateStream(&c->stream));
	OK(aclrtBinaryLoadFromFile(NPU_TEST_KERNELS, NULL, &c->image));
	OK(aclrtMalloc((void **)&c->device, MIB, ACL_MEM_MALLOC_HUGE_FIRST));
	OK(aclrtMemset(c->device, MIB, 0, MIB));
}

void client_launch(struct client *c, const char *name, uint32_t blocks, uint64_t a0, uint64_t a1,
		   unsigned nargs)
{
	uint64_t args[2] = { a0, a1 };
	aclrtFuncHandle func;

	OK(aclrtBinaryGetFunction(c->image, name, &func));
	OK(aclrtLaunchKernelWithHostArgs(func, blocks, c->stream, NULL, args, 8 * nargs, NULL, 0));
}

/* Checked work for some time: sums whose result is known. */
void client_work(struct client *c, unsigned rounds)
{
	uint64_t sum = 0, got;

	OK(aclrtMemset(c->device, MIB, 0, 8));
	for (unsigned i = 1; i <= rounds; i++) {
		client_launch(c, "add", 1, (uintptr_t)c->device, i, 2);
		sum += i;
		if (i % 50)
			continue;
		OK(aclrtSynchronizeStream(c->stream));
		OK(aclrtMemcpy(&got, 8, c->device, 8, ACL_MEMCPY_DEVICE_TO_HOST));
		THAT(got == sum);
	}
	OK(aclrtSynchronizeStream(c->stream));
	OK(aclrtMemcpy(&got, 8, c->device, 8, ACL_MEMCPY_DEVICE_TO_HOST));
	THAT(got == sum);
}

void client_end(struct client *c)
{
	OK(aclrtFree(c->device));
	OK(aclrtBinaryUnLoad(c->image));
	OK(aclrtDestroyStream(c->stream));
	OK(aclrtResetDevice(0));
	OK(aclFinalize());
}

/* Starts a client; go is a pipe whose read end it may wait on, said one that it may write to. */
pid_t client_start(void (*main)(int in, int out), int *ret_in, int *ret_out)
{
	int in[2], out[2];
	pid_t pid;

	ck_assert_int_eq(pipe(in), 0);
	ck_assert_int_eq(pipe(out), 0);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (!pid) {
		close(in[1]);
		close(out[0]);
		main(in[0], out[1]);
		_exit(0);
	}
	close(in[0]);
	close(out[1]);
	*ret_in = in[1];
	*ret_out = out[0];
	return pid;
}

void client_say(int fd)
{
	THAT(write(fd, "x", 1) == 1);
}

/* Waits for the other side's word; false when it is gone or 20 s have passed. */
bool client_hear(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char c;

	return poll(&p, 1, 20000) == 1 && read(fd, &c, 1) == 1;
}

void client_assert_ok(pid_t pid)
{
	int status = wait_for(pid, 60000);

	ck_assert_msg(WIFEXITED(status) && !WEXITSTATUS(status), "client %d: status %x", pid, status);
}

bool client_no_engine(void *arg)
{
	(void)arg;
	return process_children(client_npud.sim) <= 1; /* the nursery */
}

void client_worker(int in, int out)
{
	struct client c;

	(void)in;
	client_begin(&c);
	client_say(out);
	client_work(&c, 20000);
	client_end(&c);
}

void client_memory(int in, int out)
{
	size_t free_bytes, total;

	(void)in;
	(void)out;
	OK(aclInit(NULL));
	OK(aclrtSetDevice(0));
	OK(aclrtGetMemInfo(ACL_HBM_MEM, &free_bytes, &total));
	THAT(free_bytes == total);
	OK(aclrtResetDevice(0));
	OK(aclFinalize());
}

struct level {
	int npud_fds, sim_fds, sim_children;
};

static struct level level(void)
{
	return (struct level){ process_fds(client_npud.npud), process_fds(client_npud.sim), process_children(client_npud.sim) };
}

static struct level before;

bool client_level_is_back(void *arg)
{
	struct level now = level();

	(void)arg;
	return now.npud_fds == before.npud_fds && now.sim_fds == before.sim_fds &&
	       now.sim_children == before.sim_children;
}

void client_level_remember(void)
{
	before = level();
}

void client_level_print(FILE *out)
{
	struct level now = level();

	fprintf(out, "npud fds %d, before %d; npu-sim fds %d, before %d; children %d, before %d\n",
		now.npud_fds, before.npud_fds, now.sim_fds, before.sim_fds, now.sim_children,
		before.sim_children);
}
