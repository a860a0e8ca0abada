/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Start: options, configuration, runtime directory and its lock, loop, devices, control socket
 * (when the devices have been opened), ready. Stop: no new clients, sessions go, devices are let go
 * of; what a device does not confirm in time is left to it. Software NPUs stay, unless configured
 * not to.
 */
#include "daemon/npud.h"
#include "daemon/core/core.h"
#include "daemon/loop/loop.h"
#include "daemon/mgmt/mgmt.h"
#include "daemon/options.h"
#include "daemon/rpc/server.h"
#include "daemon/util/cleanup.h"
#include "daemon/util/closer.h"
#include "daemon/util/fd.h"
#include "daemon/util/log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <systemd/sd-daemon.h>

#include "config.h"

#define STOP_MS	 2000
#define WANT_FDS 65536ul

struct npud {
	struct options options;
	struct conf conf;
	char runtime_dir[PATH_MAX];
	int lock_fd;
	int listen_fd; /* from the service manager, till the server has it */
	int parent_fd; /* in the background: tells the starting process how it went */
	struct loop *loop;
	struct closer *closer;
	struct core *core;
	struct server *server;
	struct mgmt *mgmt; /* NULL: no bus is wanted */
	struct loop_signal *sigterm, *sigint;
	struct loop_timer *stop_timer;
	bool stopping;
	int status;
};

/* The directory must be ours: what lies in it is trusted. Made when it is missing. */
static int open_runtime_dir(struct npud *npud)
{
	const char *dir = npud->options.runtime_dir;
	struct stat st;

	if (mkdir(dir, 0755) == 0) {
		/* clients have to get to the socket, whatever our umask is */
		if (chmod(dir, 0755) < 0)
			fprintf(stderr, "npud: %s: cannot set its mode: %s\n", dir,
				strerror(errno));
	} else if (errno != EEXIST) {
		fprintf(stderr,
			"npud: %s: cannot make the runtime directory: %s; name another with "
			"--runtime-dir\n",
			dir, strerror(errno));
		return -errno;
	}
	if (!realpath(dir, npud->runtime_dir) || stat(npud->runtime_dir, &st) < 0) {
		fprintf(stderr, "npud: %s: cannot use the runtime directory: %s\n", dir,
			strerror(errno));
		return -errno;
	}
	if (!S_ISDIR(st.st_mode)) {
		fprintf(stderr, "npud: %s: not a directory; name one with --runtime-dir\n", dir);
		return -ENOTDIR;
	}
	if ((st.st_uid != geteuid() && st.st_uid != 0) || (st.st_mode & S_IWOTH)) {
		fprintf(stderr,
			"npud: %s: writable by others or not ours (owner %u, mode %04o): give "
			"it to user %u with mode 0755\n",
			dir, st.st_uid, st.st_mode & 07777, geteuid());
		return -EPERM;
	}
	return 0;
}

static int take_lock(struct npud *npud)
{
	char path[PATH_MAX + 16], pid[32];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/npud.lock", npud->runtime_dir);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (fd < 0) {
		fprintf(stderr, "npud: %s: cannot open the lock file: %s\n", path, strerror(errno));
		return -errno;
	}
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		int saved = errno;

		n = pread(fd, pid, sizeof(pid) - 1, 0);
		pid[n > 0 ? n : 0] = '\0';
		pid[strcspn(pid, "\n")] = '\0';
		close(fd);
		if (saved == EWOULDBLOCK)
			fprintf(stderr,
				"npud: %s: another npud, pid %s, runs on this directory; stop "
				"it or choose another --runtime-dir\n",
				npud->runtime_dir, pid[0] ? pid : "unknown");
		else
			fprintf(stderr, "npud: %s: cannot lock: %s\n", path, strerror(saved));
		return -saved;
	}
	npud->lock_fd = fd;
	return 0;
}

/* After fork(): the pid that a second npud will name. */
static void write_pid(struct npud *npud)
{
	char pid[32];
	int n = snprintf(pid, sizeof(pid), "%ld\n", (long)getpid());

	if (ftruncate(npud->lock_fd, 0) < 0 || pwrite(npud->lock_fd, pid, (size_t)n, 0) != n)
		log_warning("npud", "%s/npud.lock: cannot write the pid: %m", npud->runtime_dir);
}

/*
 * The background: the parent waits till the child is ready or has failed, and ends with its status.
 * Returns -1 in the child, else the exit status.
 */
static int go_background(struct npud *npud)
{
	unsigned char status = 1;
	int pipe_fds[2], null;
	pid_t pid;

	if (pipe2(pipe_fds, O_CLOEXEC) < 0)
		return 1;
	pid = fork();
	if (pid < 0) {
		fprintf(stderr, "npud: cannot fork: %s\n", strerror(errno));
		return 1;
	}
	if (pid > 0) {
		close(pipe_fds[1]);
		while (read(pipe_fds[0], &status, 1) < 0 && errno == EINTR)
			;
		return status;
	}
	close(pipe_fds[0]);
	npud->parent_fd = pipe_fds[1];
	setsid();
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null >= 0) {
		dup2(null, STDIN_FILENO);
		dup2(null, STDOUT_FILENO);
		close(null);
	}
	return -1;
}

/* stderr of a daemon in the background goes to a file in the runtime directory. */
static void log_to_file(struct npud *npud)
{
	char path[PATH_MAX + 16];
	int fd;

	snprintf(path, sizeof(path), "%s/npud.log", npud->runtime_dir);
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0640);
	if (fd < 0)
		return;
	dup2(fd, STDERR_FILENO);
	close(fd);
}

static void tell_parent(struct npud *npud, int status)
{
	unsigned char byte = (unsigned char)status;

	if (npud->parent_fd < 0)
		return;
	fd_write_all(npud->parent_fd, &byte, 1);
	close(npud->parent_fd);
	npud->parent_fd = -1;
	if (status == 0)
		log_to_file(npud);
}

static void stop(struct npud *npud, int status)
{
	npud->status = status;
	npud->stopping = true;
	loop_stop(npud->loop);
}

/* The devices have been tried: now clients may come. */
static void on_opened(void *arg)
{
	struct npud *npud = arg;
	struct server_config config = {
		.conf = &npud->conf,
		.runtime_dir = npud->runtime_dir,
		.version = "npud " PACKAGE_VERSION,
		.listen_fd = npud->listen_fd,
	};
	unsigned int ready = 0, count = core_device_count(npud->core);

	if (npud->stopping)
		return;
	/* without a bus npud runs all the same */
	mgmt_new(npud->loop, npud->core, &npud->conf, config.version, &npud->mgmt);
	npud->listen_fd = -1;
	if (server_new(npud->loop, npud->core, npud->closer, &config, &npud->server) < 0) {
		stop(npud, 1);
		return;
	}
	for (unsigned int i = 0; i < count; i++) {
		struct core_device_info info;

		core_device_info(npud->core, i, &info);
		ready += info.ready;
	}
	log_notice("npud", "npud %s is ready in %s: %u of %u devices", PACKAGE_VERSION,
		   npud->runtime_dir, ready, count);
	sd_notifyf(0, "READY=1\nSTATUS=%u of %u devices ready", ready, count);
	tell_parent(npud, 0);
}

static void on_idle(void *arg)
{
	struct npud *npud = arg;

	loop_stop(npud->loop);
}

static void on_stop_timeout(void *arg)
{
	struct npud *npud = arg;

	log_warning("npud", "a device has not let go of all sessions in %d ms", STOP_MS);
	loop_stop(npud->loop);
}

static void on_signal(int signo, void *arg)
{
	struct npud *npud = arg;

	if (npud->stopping)
		return;
	log_notice("npud", "stopping (%s)", signo == SIGTERM ? "SIGTERM" : "SIGINT");
	sd_notify(0, "STOPPING=1\nSTATUS=stopping");
	npud->stopping = true;
	if (npud->server)
		server_stop(npud->server);
	if (core_idle(npud->core)) {
		loop_stop(npud->loop);
		return;
	}
	core_watch_idle(npud->core, on_idle, npud);
	loop_timer_set(npud->stop_timer, STOP_MS);
}

static int setup(struct npud *npud)
{
	struct core_config config = {
		.conf = &npud->conf,
		.runtime_dir = npud->runtime_dir,
		.sim_attach_only = npud->listen_fd >= 0,
	};
	unsigned long fds = 0;
	int r;

	r = fd_raise_limit(WANT_FDS, &fds);
	if (r < 0 || fds < 4096)
		log_warning("npud", "only %lu open files are allowed: set LimitNOFILE to %lu", fds,
			    WANT_FDS);
	/* npu-sim has no more, whether npud or a service starts it */
	config.open_files = fds < WANT_FDS ? fds : WANT_FDS;
	signal(SIGPIPE, SIG_IGN);
	r = loop_new(&npud->loop);
	if (r == 0)
		r = closer_new(&npud->closer);
	if (r == 0)
		r = loop_signal_new(npud->loop, SIGTERM, on_signal, npud, &npud->sigterm);
	if (r == 0)
		r = loop_signal_new(npud->loop, SIGINT, on_signal, npud, &npud->sigint);
	if (r == 0)
		r = loop_timer_new(npud->loop, on_stop_timeout, npud, &npud->stop_timer);
	if (r == 0)
		r = core_new(npud->loop, &config, on_opened, npud, &npud->core);
	if (r < 0)
		log_error("npud", "cannot start: %s", strerror(-r));
	return r;
}

static void teardown(struct npud *npud)
{
	/* requests that still wait end with the core, and look at their server then */
	if (npud->server && !npud->stopping)
		server_stop(npud->server);
	mgmt_stop(npud->mgmt);
	core_free(npud->core);
	mgmt_free(npud->mgmt);
	server_free(npud->server);
	loop_timer_free(npud->stop_timer);
	loop_signal_free(npud->sigterm);
	loop_signal_free(npud->sigint);
	closer_free(npud->closer);
	loop_free(npud->loop);
	if (npud->listen_fd >= 0)
		close(npud->listen_fd);
	if (npud->lock_fd >= 0)
		close(npud->lock_fd);
}

int npud_run(int argc, char **argv)
{
	struct npud npud = { .lock_fd = -1, .listen_fd = -1, .parent_fd = -1 };
	int status, r;

	log_open(LOG_LEVEL_INFO);
	status = options_parse(argc, argv, &npud.options);
	if (status >= 0)
		return status;
	status = options_load(&npud.options, &npud.conf);
	if (status)
		return status;
	if (npud.options.print_config) {
		conf_print(&npud.conf, stdout);
		return 0;
	}
	log_set_level(npud.conf.log_level);
	umask(0077);
	r = sd_listen_fds(1);
	if (r > 1 ||
	    (r == 1 && sd_is_socket_unix(SD_LISTEN_FDS_START, SOCK_SEQPACKET, 1, NULL, 0) <= 0)) {
		fprintf(stderr,
			"npud: %d sockets were passed, must be one listening SOCK_SEQPACKET "
			"Unix socket (ListenSequentialPacket=)\n",
			r);
		return 1;
	}
	if (r == 1)
		npud.listen_fd = SD_LISTEN_FDS_START;
	if (open_runtime_dir(&npud) < 0 || take_lock(&npud) < 0)
		return 1;
	if (!npud.options.foreground) {
		status = go_background(&npud);
		if (status >= 0)
			return status;
	}
	write_pid(&npud);
	r = setup(&npud);
	if (r == 0) {
		r = loop_run(npud.loop);
		if (r < 0)
			log_error("npud", "the event loop failed: %s", strerror(-r));
	}
	status = r < 0 ? 1 : npud.status;
	teardown(&npud);
	tell_parent(&npud, status);
	return status;
}
