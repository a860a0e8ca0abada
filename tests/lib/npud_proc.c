/* SPDX-License-Identifier: Apache-2.0 */
/* Starting waits for READY=1 on a notify socket, as a service manager does. */
#include "tests/lib/npud_proc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define READY_MS 15000
#define STOP_MS	 15000

#define die(...) (fprintf(stderr, __VA_ARGS__), fputc('\n', stderr), abort())

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

bool wait_for(bool (*condition)(void *arg), void *arg, int timeout_ms)
{
	int64_t end = now_ms() + timeout_ms;

	for (;;) {
		if (condition(arg))
			return true;
		if (now_ms() >= end)
			return false;
		poll(NULL, 0, 2);
	}
}

int fds_of(pid_t pid)
{
	char path[48];
	int count = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%ld/fd", (long)pid);
	dir = opendir(path);
	if (!dir)
		return -1;
	while (readdir(dir))
		count++;
	closedir(dir);
	return count - 2;
}

struct fds_wait {
	pid_t pid;
	int count;
};

static bool fds_reached(void *arg)
{
	const struct fds_wait *wait = arg;
	int now = fds_of(wait->pid);

	return now >= 0 && now <= wait->count;
}

bool fds_settle(pid_t pid, int count, int timeout_ms)
{
	struct fds_wait wait = { pid, count };

	return wait_for(fds_reached, &wait, timeout_ms);
}

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "we");

	if (!file || fputs(text, file) < 0 || fclose(file) != 0)
		die("%s: %s", path, strerror(errno));
}

static void wait_ready(struct npud_proc *proc, int fd)
{
	int64_t end = now_ms() + READY_MS;

	for (;;) {
		struct pollfd pfd = { .fd = fd, .events = POLLIN };
		char message[256];
		ssize_t n;
		int status;

		if (poll(&pfd, 1, 20) > 0) {
			n = recv(fd, message, sizeof(message) - 1, 0);
			message[n > 0 ? n : 0] = '\0';
			if (strstr(message, "READY=1"))
				return;
		}
		if (waitpid(proc->pid, &status, WNOHANG) == proc->pid)
			die("npud ended before it was ready, status 0x%x; see %s", status,
			    proc->log);
		if (now_ms() > end)
			die("npud is not ready after %d ms; see %s", READY_MS, proc->log);
	}
}

void npud_proc_start_in(struct npud_proc *proc, const char *conf)
{
	const char *program = getenv("NPUD_PATH") ? getenv("NPUD_PATH") : "./npud";
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	char path[128], text[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/conf", proc->dir);
	/* inih joins sections of the same name */
	snprintf(text, sizeof(text),
		 "%s\n[device]\nsim_memory = 256M\nsim_stop_with_daemon = yes\n", conf ? conf : "");
	write_file(path, text);
	snprintf(proc->sock, sizeof(proc->sock), "%s/npud.sock", proc->dir);
	snprintf(proc->log, sizeof(proc->log), "%s/log", proc->dir);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/notify", proc->dir);
	unlink(address.sun_path);
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		die("%s: %s", address.sun_path, strerror(errno));
	proc->pid = fork();
	if (proc->pid < 0)
		die("fork: %s", strerror(errno));
	if (proc->pid == 0) {
		int log = open(proc->log, O_WRONLY | O_CREAT | O_APPEND, 0600);

		/* out of the group that Check kills: it is to end its npu-sim when the test dies */
		setpgid(0, 0);
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		dup2(log, 2);
		setenv("NOTIFY_SOCKET", address.sun_path, 1);
		execl(program, program, "--foreground", "--config", path, "--runtime-dir",
		      proc->dir, "--device", "sim", "--log-level", "debug", (char *)NULL);
		fprintf(stderr, "%s: %s\n", program, strerror(errno));
		_exit(127);
	}
	wait_ready(proc, fd);
	close(fd);
}

void npud_proc_start(struct npud_proc *proc, const char *conf)
{
	memset(proc, 0, sizeof(*proc));
	snprintf(proc->dir, sizeof(proc->dir), "%.30s/npud-test.XXXXXX",
		 getenv("TMPDIR") && strlen(getenv("TMPDIR")) < 30 ? getenv("TMPDIR") : "/tmp");
	if (!mkdtemp(proc->dir))
		die("%s: %s", proc->dir, strerror(errno));
	npud_proc_start_in(proc, conf);
}

static void remove_dir(const char *name)
{
	DIR *dir = opendir(name);
	struct dirent *entry;

	if (!dir)
		return;
	while ((entry = readdir(dir)))
		unlinkat(dirfd(dir), entry->d_name, 0);
	closedir(dir);
	rmdir(name);
}

static int wait_end(struct npud_proc *proc)
{
	int fd = (int)syscall(SYS_pidfd_open, proc->pid, 0);
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	int status;

	if (poll(&pfd, 1, STOP_MS) != 1)
		die("npud, pid %ld, does not end; see %s", (long)proc->pid, proc->log);
	close(fd);
	waitpid(proc->pid, &status, 0);
	proc->pid = 0;
	return status;
}

void npud_proc_kill(struct npud_proc *proc, int signo)
{
	kill(proc->pid, signo);
	wait_end(proc);
}

static void print_log(const struct npud_proc *proc)
{
	char line[1024];
	FILE *file = fopen(proc->log, "re");

	while (file && fgets(line, sizeof(line), file))
		fputs(line, stderr);
	if (file)
		fclose(file);
}

void npud_proc_stop(struct npud_proc *proc)
{
	int status;

	kill(proc->pid, SIGTERM);
	status = wait_end(proc);
	if (status != 0) {
		print_log(proc);
		die("npud ended with status 0x%x", status);
	}
	remove_dir(proc->dir);
}

bool npud_proc_alive(const struct npud_proc *proc)
{
	return kill(proc->pid, 0) == 0 && waitpid(proc->pid, NULL, WNOHANG) == 0;
}

bool npud_proc_logged(const struct npud_proc *proc, const char *words)
{
	char line[2048];
	FILE *file = fopen(proc->log, "re");
	bool found = false;

	while (file && !found && fgets(line, sizeof(line), file))
		found = strstr(line, words) != NULL;
	if (file)
		fclose(file);
	return found;
}

pid_t npud_proc_sim(const struct npud_proc *proc, unsigned int n)
{
	char path[128];
	long pid = 0;
	FILE *file;

	snprintf(path, sizeof(path), "%s/npu-sim-%u.pid", proc->dir, n);
	file = fopen(path, "re");
	if (!file || fscanf(file, "%ld", &pid) != 1)
		pid = 0;
	if (file)
		fclose(file);
	return (pid_t)pid;
}
