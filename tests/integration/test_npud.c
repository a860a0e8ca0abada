/* SPDX-License-Identifier: Apache-2.0 */
/*
 * npud as a program: its options and what it refuses, background and foreground, service manager,
 * software NPUs that stay, several devices, memory that clients can't map, idleness.
 */
#include "tests/lib/frame_calls.h"
#include "tests/lib/npud_proc.h"
#include "tests/lib/runner.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kdrv/uapi/npu.h"

static char dir[64];

static void setup(void)
{
	strcpy(dir, "/tmp/npud-test.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
}

static void teardown(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -r %s", dir);
	ck_assert_int_eq(system(command), 0);
}

static const char *program(void)
{
	return getenv("NPUD_PATH") ? getenv("NPUD_PATH") : "./npud";
}

static char output[8192];

/* Runs npud with these words; its exit status, output and errors in output. */
static int run(const char *format, ...) __attribute__((format(printf, 1, 2)));

static int run(const char *format, ...)
{
	char words[512], command[700];
	va_list args;
	size_t n;
	FILE *out;

	va_start(args, format);
	vsnprintf(words, sizeof(words), format, args);
	va_end(args);
	snprintf(command, sizeof(command), "%s %s 2>&1", program(), words);
	out = popen(command, "r");
	ck_assert_ptr_nonnull(out);
	n = fread(output, 1, sizeof(output) - 1, out);
	output[n] = '\0';
	return WEXITSTATUS(pclose(out));
}

/* The output is one line with these words. */
static void says(const char *words)
{
	ck_assert_msg(strstr(output, words) != NULL, "%s", output);
	ck_assert_msg(strchr(output, '\n') == output + strlen(output) - 1, "%s", output);
}

static void write_file(const char *name, const char *text)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	file = fopen(path, "we");
	ck_assert_ptr_nonnull(file);
	fputs(text, file);
	fclose(file);
}

START_TEST(explains_its_options)
{
	static const char *const options[] = { "--config",     "--runtime-dir", "--device",
					       "--foreground", "--log-level",	"--print-config",
					       "--version",    "--help" };

	ck_assert_int_eq(run("--help"), 0);
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		ck_assert_ptr_nonnull(strstr(output, options[i]));
	ck_assert_int_eq(run("--version"), 0);
	ck_assert_int_eq(strncmp(output, "npud ", 5), 0);
	ck_assert_int_eq(run("--print-config"), 0);
	ck_assert_ptr_nonnull(strstr(output, "rpc_timeout_ms = 5000"));
	ck_assert_int_eq(run("--frobnicate"), 2);
	ck_assert_int_eq(run("now"), 2);
	says("\"now\"");
	ck_assert_int_eq(run("--device tpu"), 2);
	says("--device \"tpu\" is not allowed, must be auto, sim or");
	ck_assert_int_eq(run("--log-level loud"), 2);
	says("error, warning, notice, info or debug");
}
END_TEST

START_TEST(refuses_bad_configuration)
{
	ck_assert_int_eq(run("--config %s/none", dir), 1);
	says("none: cannot read the configuration: No such file");
	write_file("conf", "");
	ck_assert_int_eq(run("--config %s/conf", dir), 1);
	says("/conf: the file is empty");
	write_file("conf", "[limits]\nsessions = many\n");
	ck_assert_int_eq(run("--config %s/conf", dir), 1);
	says("/conf:2: limits.sessions: \"many\" is not allowed, must be a number from 1 to 65536");
	write_file("conf", "[limits]\nsessions = 3");
	ck_assert_int_eq(run("--config %s/conf", dir), 1);
	says("/conf:2: the last line has no end");
	write_file("conf", "\177ELF\2\1\1 an image\n");
	ck_assert_int_eq(run("--config %s/conf", dir), 1);
	says("/conf:1: byte 0x7f: not a text file");
}
END_TEST

START_TEST(refuses_bad_runtime_directories)
{
	char path[128];

	write_file("file", "x");
	ck_assert_int_eq(run("--runtime-dir %s/file --foreground", dir), 1);
	says("not a directory");
	ck_assert_int_eq(run("--runtime-dir %s/a/b/c --foreground", dir), 1);
	says("cannot make the runtime directory");
	snprintf(path, sizeof(path), "%s/open", dir);
	ck_assert_int_eq(mkdir(path, 0755), 0);
	ck_assert_int_eq(chmod(path, 0777), 0);
	ck_assert_int_eq(run("--runtime-dir %s/open --foreground", dir), 1);
	says("writable by others");
}
END_TEST

static long read_pid(const char *name)
{
	char path[128];
	long pid = 0;
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	file = fopen(path, "re");
	if (!file || fscanf(file, "%ld", &pid) != 1)
		pid = 0;
	if (file)
		fclose(file);
	return pid;
}

static bool ended(void *arg)
{
	long pid = *(long *)arg;
	char path[48], state = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%ld/stat", pid);
	file = fopen(path, "re");
	if (!file)
		return true;
	if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
		state = 0;
	fclose(file);
	return state == 'Z'; /* nobody waits for it where there is no init */
}

START_TEST(runs_in_the_background)
{
	long pid, sim, again;
	struct frame_client client;
	char sock[96];

	/* returns when it is ready */
	ck_assert_int_eq(run("--device sim --runtime-dir %s", dir), 0);
	pid = read_pid("npud.lock");
	ck_assert_int_gt(pid, 0);
	sim = read_pid("npu-sim-0.pid");
	ck_assert_int_gt(sim, 0);
	snprintf(sock, sizeof(sock), "%s/npud.sock", dir);
	fc_open(&client, sock);
	ck_assert_int_eq(fc_open_device(&client, 0), NPU_STATUS_OK);
	ck_assert_int_eq(run("--device sim --runtime-dir %s", dir), 1);
	ck_assert_ptr_nonnull(strstr(output, "another npud, pid"));
	kill((pid_t)pid, SIGTERM);
	ck_assert(fc_disconnected(&client));
	fc_close(&client);
	ck_assert(wait_for(ended, &pid, 5000));
	/* the socket has gone, the npu-sim stays, the next npud takes it */
	ck_assert_int_eq(access(sock, F_OK), -1);
	ck_assert(!ended(&sim));
	ck_assert_int_eq(run("--device sim --runtime-dir %s", dir), 0);
	pid = read_pid("npud.lock");
	again = read_pid("npu-sim-0.pid");
	ck_assert_int_eq(again, sim);
	fc_open(&client, sock);
	ck_assert_int_eq(fc_open_device(&client, 0), NPU_STATUS_OK);
	fc_close(&client);
	kill((pid_t)pid, SIGINT);
	ck_assert(wait_for(ended, &pid, 5000));
	kill((pid_t)sim, SIGTERM);
	ck_assert(wait_for(ended, &sim, 5000));
}
END_TEST

static int notify_socket(char *path, size_t len)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	snprintf(path, len, "%s/notify", dir);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

/* Reads notifications till one has these words. */
static void notified(int fd, const char *words)
{
	char message[256];
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	ssize_t n;

	do {
		ck_assert_int_eq(poll(&pfd, 1, 10000), 1);
		n = recv(fd, message, sizeof(message) - 1, 0);
		ck_assert_int_ge(n, 0);
		message[n] = '\0';
	} while (!strstr(message, words));
}

/* As systemd starts it: with the listening socket, and told when it is ready and when it stops. */
START_TEST(works_with_a_service_manager)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct frame_client client;
	char notify[96], sock[96];
	int notify_fd = notify_socket(notify, sizeof(notify));
	int listener = socket(AF_UNIX, SOCK_SEQPACKET, 0), status;
	Npu__StatusReply *reply;
	pid_t pid;

	snprintf(sock, sizeof(sock), "%s/passed.sock", dir);
	strcpy(address.sun_path, sock);
	ck_assert_int_eq(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
	ck_assert_int_eq(listen(listener, 8), 0);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		char number[16];

		if (listener != 3) {
			dup2(listener, 3);
			close(listener);
		} else {
			fcntl(3, F_SETFD, 0);
		}
		snprintf(number, sizeof(number), "%ld", (long)getpid());
		setenv("LISTEN_PID", number, 1);
		setenv("LISTEN_FDS", "1", 1);
		setenv("NOTIFY_SOCKET", notify, 1);
		execl(program(), program(), "--foreground", "--device", "sim", "--runtime-dir", dir,
		      "--log-level", "error", (char *)NULL);
		_exit(127);
	}
	close(listener);
	/* ready also without a device: that is for the service manager to start */
	notified(notify_fd, "READY=1");
	fc_open(&client, sock);
	reply = fc_status(&client);
	ck_assert_uint_eq(reply->devices[0]->health, NPU_HEALTH_LOST);
	npu__status_reply__free_unpacked(reply, NULL);
	ck_assert_int_eq(fc_open_device(&client, 0), NPU_STATUS_DEVICE_LOST);
	kill(pid, SIGTERM);
	notified(notify_fd, "STOPPING=1");
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	ck_assert_int_eq(access(sock, F_OK), 0); /* not ours to remove */
	fc_close(&client);
	close(notify_fd);
}
END_TEST

/* npu-sim crashes at once, or is not there. */
START_TEST(says_why_there_is_no_device)
{
	char notify[96], log[96], line[1024];
	int notify_fd = notify_socket(notify, sizeof(notify)), status;
	bool found = false;
	FILE *file;
	pid_t pid;

	snprintf(log, sizeof(log), "%s/log", dir);
	pid = fork();
	if (pid == 0) {
		int fd = open(log, O_WRONLY | O_CREAT, 0600);

		dup2(fd, 2);
		setenv("NPU_SIM_PATH", "/bin/false", 1);
		setenv("NOTIFY_SOCKET", notify, 1);
		execl(program(), program(), "--foreground", "--device", "sim", "--runtime-dir", dir,
		      (char *)NULL);
		_exit(127);
	}
	notified(notify_fd, "0 of 1 devices ready");
	kill(pid, SIGTERM);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	file = fopen(log, "re");
	while (fgets(line, sizeof(line), file))
		found = found || strstr(line, "npu-sim ended at once (exit status 1)");
	fclose(file);
	ck_assert(found);
	close(notify_fd);
}
END_TEST

static Npu__MemAllocReply *alloc_on(struct frame_client *client, uint32_t device, uint32_t kind)
{
	Npu__MemAlloc msg = NPU__MEM_ALLOC__INIT;
	Npu__MemAllocReply *reply = NULL;

	msg.device = device;
	msg.bytes = 1u << 20;
	msg.kind = kind;
	ck_assert_int_eq(fc_call(client, NPU_METHOD_mem_alloc, &msg.base,
				 &npu__mem_alloc_reply__descriptor, &reply),
			 NPU_STATUS_OK);
	return reply;
}

START_TEST(serves_two_devices)
{
	struct npud_proc npud;
	struct frame_client client;
	Npu__MemAllocReply *a, *b;
	Npu__StatusReply *reply;

	npud_proc_start(&npud, "[device]\nsim_devices = 2\n");
	fc_open(&client, npud.sock);
	ck_assert_int_eq(fc_open_device(&client, 0), NPU_STATUS_OK);
	ck_assert_int_eq(fc_open_device(&client, 1), NPU_STATUS_OK);
	a = alloc_on(&client, 0, NPU_MEM_DEVICE);
	b = alloc_on(&client, 1, NPU_MEM_DEVICE);
	/* one window: an address tells the device */
	ck_assert_uint_ne(a->address, b->address);
	ck_assert_uint_ne(a->mem, b->mem);
	reply = fc_status(&client);
	ck_assert_uint_eq(reply->n_devices, 2);
	ck_assert_uint_eq(reply->devices[1]->id, 1);
	ck_assert_uint_eq(reply->devices[1]->memory_total - reply->devices[1]->memory_free,
			  1u << 20);
	npu__status_reply__free_unpacked(reply, NULL);
	npu__mem_alloc_reply__free_unpacked(a, NULL);
	npu__mem_alloc_reply__free_unpacked(b, NULL);
	fc_close(&client);
	npud_proc_stop(&npud);
}
END_TEST

START_TEST(hides_memory_that_is_not_visible)
{
	struct npud_proc npud;
	struct frame_client client;
	Npu__MemAllocReply *a;
	Npu__StatusReply *reply;

	npud_proc_start(&npud, "[device]\nsim_host_visible = no\n");
	fc_open(&client, npud.sock);
	ck_assert_int_eq(fc_open_device(&client, 0), NPU_STATUS_OK);
	reply = fc_status(&client);
	ck_assert(!(reply->devices[0]->caps & NPU_CAP_HOST_VISIBLE));
	npu__status_reply__free_unpacked(reply, NULL);
	a = alloc_on(&client, 0, NPU_MEM_DEVICE);
	ck_assert(!a->has_fd);
	ck_assert_uint_ne(a->address, 0);
	npu__mem_alloc_reply__free_unpacked(a, NULL);
	a = alloc_on(&client, 0, NPU_MEM_HOST);
	ck_assert(a->has_fd);
	npu__mem_alloc_reply__free_unpacked(a, NULL);
	fc_close(&client);
	npud_proc_stop(&npud);
}
END_TEST

/* Clock ticks that a process has used. */
static unsigned long ticks_of(pid_t pid)
{
	unsigned long user = 0, system = 0;
	char path[48];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%ld/stat", (long)pid);
	file = fopen(path, "re");
	ck_assert_ptr_nonnull(file);
	ck_assert_int_eq(fscanf(file,
				"%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu "
				"%lu",
				&user, &system),
			 2);
	fclose(file);
	return user + system;
}

START_TEST(costs_nothing_when_idle)
{
	struct npud_proc npud;
	struct frame_client client;
	unsigned long before;

	npud_proc_start(&npud, NULL);
	fc_open(&client, npud.sock);
	ck_assert_int_eq(fc_open_device(&client, 0), NPU_STATUS_OK);
	before = ticks_of(npud.pid);
	poll(NULL, 0, 1000); /* the second that is measured */
	ck_assert_uint_le(ticks_of(npud.pid) - before, 1);
	fc_close(&client);
	npud_proc_stop(&npud);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("npud");
	TCase *tc = tcase_create("npud");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, explains_its_options);
	tcase_add_test(tc, refuses_bad_configuration);
	tcase_add_test(tc, refuses_bad_runtime_directories);
	tcase_add_test(tc, runs_in_the_background);
	tcase_add_test(tc, works_with_a_service_manager);
	tcase_add_test(tc, says_why_there_is_no_device);
	tcase_add_test(tc, serves_two_devices);
	tcase_add_test(tc, hides_memory_that_is_not_visible);
	tcase_add_test(tc, costs_nothing_when_idle);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
