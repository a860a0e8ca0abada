/* SPDX-License-Identifier: Apache-2.0 */
/*
 * posix_spawn, since the process has threads. The child gets its own session, empty signal mask,
 * /dev/null as input and the log file as output: it must not hold a terminal or a pipe of npud's
 * caller. Waiting till it listens is the caller's, who has to try to connect anyway.
 */
#include "daemon/hal/sim_start.h"
#include "daemon/util/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>

extern char **environ;

static bool is_program(const char *path)
{
	return access(path, X_OK) == 0;
}

int sim_find_program(char *path, size_t len)
{
	const char *named = getenv("NPU_SIM_PATH");
	char self[PATH_MAX];
	ssize_t n;
	char *slash;

	if (named && *named) {
		if ((size_t)snprintf(path, len, "%s", named) >= len)
			return -ENAMETOOLONG;
		return is_program(path) ? 0 : -errno;
	}
	n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (n > 0) {
		self[n] = '\0';
		slash = strrchr(self, '/');
		if (slash) {
			*slash = '\0';
			/* libtool keeps the executable of an uninstalled program in .libs */
			if (slash - self > 6 && strcmp(slash - 6, "/.libs") == 0)
				slash[-6] = '\0';
			if ((size_t)snprintf(path, len, "%s/npu-sim", self) < len &&
			    is_program(path))
				return 0;
		}
	}
	if ((size_t)snprintf(path, len, "%s/npu-sim", NPU_LIBEXECDIR) >= len)
		return -ENAMETOOLONG;
	return is_program(path) ? 0 : -errno;
}

/* Ours, without what a service manager has said to npud alone. */
static int sim_environment(char ***ret_env)
{
	static const char *const not_for_it[] = { "NOTIFY_SOCKET=", "LISTEN_", "WATCHDOG_",
						  "JOURNAL_STREAM=", "INVOCATION_ID=" };
	size_t count = 0, kept = 0;
	char **env;

	while (environ[count])
		count++;
	env = calloc(count + 1, sizeof(*env));
	if (!env)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		bool keep = true;

		for (size_t k = 0; k < sizeof(not_for_it) / sizeof(not_for_it[0]); k++)
			keep = keep && strncmp(environ[i], not_for_it[k], strlen(not_for_it[k]));
		if (keep)
			env[kept++] = environ[i];
	}
	*ret_env = env;
	return 0;
}

static int sim_spawn(const char *program, char *const argv[], const char *log, pid_t *ret_pid)
{
	cleanup(cleanup_free) char **env = NULL;
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t none, all;
	pid_t pid;
	int r;

	sigemptyset(&none);
	sigfillset(&all);
	r = sim_environment(&env);
	if (r < 0)
		return r;
	r = posix_spawn_file_actions_init(&actions);
	if (r)
		return -r;
	r = posix_spawnattr_init(&attr);
	if (r) {
		posix_spawn_file_actions_destroy(&actions);
		return -r;
	}
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK |
						POSIX_SPAWN_SETSIGDEF);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setsigdefault(&attr, &all);
	r = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	if (!r)
		r = posix_spawn_file_actions_addopen(&actions, 1, log,
						     O_WRONLY | O_CREAT | O_APPEND, 0640);
	if (!r)
		r = posix_spawn_file_actions_adddup2(&actions, 1, 2);
	if (!r)
		r = posix_spawn(&pid, program, &actions, &attr, argv, env);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&actions);
	if (r)
		return -r;
	*ret_pid = pid;
	return 0;
}

int sim_start(const struct sim_start *start, pid_t *ret_pid, char *text)
{
	char program[PATH_MAX], socket[PATH_MAX], pid_file[PATH_MAX], log[PATH_MAX];
	char number[16], memory[32], cores[16];
	int r;

	r = sim_find_program(program, sizeof(program));
	if (r < 0) {
		snprintf(
			text, SIM_TEXT_MAX,
			"npu-sim not found (last tried %.300s: %s); install it or set NPU_SIM_PATH",
			program, strerror(-r));
		return r;
	}
	snprintf(socket, sizeof(socket), "%s/npu-sim-%u.sock", start->runtime_dir, start->number);
	snprintf(pid_file, sizeof(pid_file), "%s/npu-sim-%u.pid", start->runtime_dir,
		 start->number);
	snprintf(log, sizeof(log), "%s/npu-sim-%u.log", start->runtime_dir, start->number);
	snprintf(number, sizeof(number), "%u", start->number);
	snprintf(memory, sizeof(memory), "%llu", (unsigned long long)start->memory);
	snprintf(cores, sizeof(cores), "%u", start->cores);

	char *argv[16] = { program,	 "--device", number,	 "--socket", socket,
			   "--pid-file", pid_file,   "--memory", memory };
	unsigned int argc = 9;

	if (start->cores) {
		argv[argc++] = (char *)"--cores";
		argv[argc++] = cores;
	}
	if (!start->host_visible)
		argv[argc++] = (char *)"--no-host-visible";
	r = sim_spawn(program, argv, log, ret_pid);
	if (r < 0)
		snprintf(text, SIM_TEXT_MAX, "cannot start %.300s: %s", program, strerror(-r));
	return r;
}
