/* SPDX-License-Identifier: Apache-2.0 */
/* An npud and npu-sim for tests: see npud_fixture.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "tests/lib/npud_fixture.h"

#define LIMIT_MS 20000

static void die(const struct npud_fixture *f, const char *what)
{
	char *log = f ? read_file(f->log) : NULL;

	fprintf(stderr, "npud_fixture: %s: %s\n%s", what, strerror(errno), log ? log : "");
	free(log);
	abort();
}

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000ull + ts.tv_nsec / 1000000;
}

bool wait_until(bool (*condition)(void *arg), void *arg, unsigned limit_ms)
{
	uint64_t limit = now_ms() + limit_ms;

	while (!condition(arg)) {
		if (now_ms() > limit)
			return false;
		poll(NULL, 0, 5);
	}
	return true;
}

struct exit_wait {
	pid_t pid;
	int status;
};

static bool has_exited(void *arg)
{
	struct exit_wait *w = arg;

	return waitpid(w->pid, &w->status, WNOHANG) == w->pid;
}

int wait_for(pid_t pid, unsigned limit_ms)
{
	struct exit_wait w = { .pid = pid };

	if (wait_until(has_exited, &w, limit_ms))
		return w.status;
	kill(pid, SIGKILL);
	waitpid(pid, &w.status, 0);
	return w.status;
}

char *read_file(const char *path)
{
	FILE *file = fopen(path, "re");
	char *text = NULL;
	size_t size = 0;

	if (!file)
		return NULL;
	if (getdelim(&text, &size, '\0', file) < 0) {
		free(text);
		text = NULL;
	}
	fclose(file);
	return text;
}

static bool serves(void *arg)
{
	const struct npud_fixture *f = arg;
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	bool ok;

	if (fd < 0)
		return false;
	memcpy(addr.sun_path, f->socket, sizeof(f->socket));
	ok = !connect(fd, (struct sockaddr *)&addr, sizeof(addr));
	close(fd);
	if (!ok && waitpid(f->npud, NULL, WNOHANG) == f->npud)
		die(f, "npud ended at once");
	return ok;
}

static pid_t read_pid(const char *path)
{
	char *text = read_file(path);
	pid_t pid = text ? atoi(text) : 0;

	free(text);
	return pid;
}

static bool sim_is_there(void *arg)
{
	struct npud_fixture *f = arg;
	char path[128];

	snprintf(path, sizeof(path), "%s/npu-sim-0.pid", f->dir);
	f->sim = read_pid(path);
	return f->sim > 0;
}

void npud_launch(struct npud_fixture *f)
{
	char config[96];

	snprintf(config, sizeof(config), "%s/npud.conf", f->dir);
	f->npud = fork();
	if (f->npud < 0)
		die(f, "fork");
	if (!f->npud) {
		int log = open(f->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

		dup2(log, 2);
		dup2(log, 1);
		execl(NPU_BUILD_DIR "/npud", "npud", "--foreground", "--runtime-dir", f->dir,
		      "--config", config, "--device", "sim", (char *)NULL);
		_exit(127);
	}
	if (!wait_until(serves, f, LIMIT_MS) || !wait_until(sim_is_there, f, LIMIT_MS))
		die(f, "npud does not serve");
}

/* A test that fails leaves by exit(): npud and npu-sim would stay. */
static struct npud_fixture *running;
static pid_t running_owner;

static void stop_at_exit(void)
{
	if (running && getpid() == running_owner)
		npud_stop(running);
}

void npud_start(struct npud_fixture *f, const char *config)
{
	static bool registered;
	char path[128];
	FILE *file;

	memset(f, 0, sizeof(*f));
	snprintf(f->dir, sizeof(f->dir), "/tmp/npud-test-XXXXXX");
	if (!mkdtemp(f->dir))
		die(NULL, "runtime directory");
	snprintf(f->socket, sizeof(f->socket), "%s/npud.sock", f->dir);
	snprintf(f->log, sizeof(f->log), "%s/npud.log", f->dir);
	snprintf(path, sizeof(path), "%s/npud.conf", f->dir);
	file = fopen(path, "we");
	if (!file || fputs(config ? config : "[device]\nsim_memory = 1G\n", file) < 0 || fclose(file))
		die(NULL, path);
	setenv("NPUD_SOCKET", f->socket, 1);
	setenv("NPU_SIM_PATH", NPU_BUILD_DIR "/npu-sim", 1);
	running = f;
	running_owner = getpid();
	if (!registered)
		atexit(stop_at_exit);
	registered = true;
	npud_launch(f);
}

int npud_end(struct npud_fixture *f, int signal)
{
	int status;

	kill(f->npud, signal);
	status = wait_for(f->npud, LIMIT_MS);
	f->npud = 0;
	return status;
}

static bool is_gone(void *arg)
{
	pid_t *pid = arg;
	char path[64], *text;
	bool gone;

	/* It is not our child; whoever has to reap it may take his time. */
	snprintf(path, sizeof(path), "/proc/%d/status", (int)*pid);
	text = read_file(path);
	gone = !text || strstr(text, "\nState:\tZ");
	free(text);
	return gone;
}

static void remove_all(const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *e;

	if (!d)
		return;
	while ((e = readdir(d))) {
		if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
			unlinkat(dirfd(d), e->d_name, 0);
	}
	closedir(d);
	rmdir(dir);
}

void npud_stop(struct npud_fixture *f)
{
	running = NULL;
	if (f->npud)
		npud_end(f, SIGTERM);
	sim_is_there(f);
	if (f->sim > 0) {
		kill(f->sim, SIGTERM);
		if (!wait_until(is_gone, &f->sim, LIMIT_MS))
			kill(f->sim, SIGKILL);
	}
	if (!getenv("NPUD_TEST_KEEP")) /* to look at the logs */
		remove_all(f->dir);
}

/* ---- processes ------------------------------------------------------------------------------ */

int process_fds(pid_t pid)
{
	char path[64];
	DIR *d;
	int n = 0;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	d = opendir(path);
	if (!d)
		return -1;
	while (readdir(d))
		n++;
	closedir(d);
	return n - 2;
}

static pid_t parent_of(pid_t pid)
{
	char path[64], *text, *p;
	pid_t parent = 0;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	text = read_file(path);
	p = text ? strrchr(text, ')') : NULL;
	if (p && p[1] == ' ' && p[2] && p[3] == ' ')
		parent = atoi(p + 4);
	free(text);
	return parent;
}

static bool descends(pid_t pid, pid_t from)
{
	for (unsigned depth = 0; depth < 32 && pid > 1; depth++) {
		pid = parent_of(pid);
		if (pid == from)
			return true;
	}
	return false;
}

static uint64_t threads_cpu_ns(pid_t pid)
{
	char path[300];
	struct dirent *e;
	uint64_t sum = 0;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	d = opendir(path);
	while (d && (e = readdir(d))) {
		char *text;

		if (e->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/proc/%d/task/%s/schedstat", (int)pid, e->d_name);
		text = read_file(path);
		if (text)
			sum += strtoull(text, NULL, 10);
		free(text);
	}
	if (d)
		closedir(d);
	return sum;
}

static void over_tree(pid_t root, int *ret_count, uint64_t *ret_cpu)
{
	DIR *d = opendir("/proc");
	struct dirent *e;

	while (d && (e = readdir(d))) {
		pid_t pid = atoi(e->d_name);

		if (pid <= 0 || !descends(pid, root))
			continue;
		++*ret_count;
		*ret_cpu += threads_cpu_ns(pid);
	}
	if (d)
		closedir(d);
}

int process_children(pid_t pid)
{
	uint64_t cpu = 0;
	int count = 0;

	over_tree(pid, &count, &cpu);
	return count;
}

uint64_t process_cpu_ns(pid_t pid, bool tree)
{
	uint64_t cpu = threads_cpu_ns(pid);
	int count = 0;

	if (tree)
		over_tree(pid, &count, &cpu);
	return cpu;
}
