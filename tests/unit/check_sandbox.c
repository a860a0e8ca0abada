/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandbox, seen from inside: an engine made by the nursery runs kernels that try to get out. Each
 * attempt has to end as a fault of that kernel, and the engine has to go on.
 */

#include "config.h"
#include "sim/engine_fault.h"
#include "sim/nursery.h"
#include "sim/sandbox.h"
#include "tests/lib/cage.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>

#ifdef NPU_SANITIZERS
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

/* What the engine tells of its cage before it is sealed. */
struct view {
	int pid, parent;
	int fds[8];    /* the first open ones, -1 behind */
	uint32_t user; /* as the new namespace shows it */
	int dumpable, no_new_privs, capabilities, paths, files, core_limit, nofile;
	char host[16];
	int sealed;
};

struct attempt {
	int what;
	int64_t args[6];
};

struct outcome {
	int result; /* of engine_core_run() */
	int kind;
	int64_t syscall_nr;
	int64_t value; /* what the call returned, if it did */
};

static struct engine_core_fault core;
static pthread_barrier_t threads_stand;

static void look_around(struct view *view)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct caps[2] = { 0 };
	struct rlimit limit;
	struct utsname name;
	struct stat status;
	int found = 0;

	memset(view, 0, sizeof(*view));
	view->pid = getpid();
	view->parent = getppid();
	for (int fd = 0; fd < 2000 && found < 8; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			view->fds[found++] = fd;
	while (found < 8)
		view->fds[found++] = -1;
	view->user = getuid();
	view->dumpable = prctl(PR_GET_DUMPABLE, 0, 0, 0, 0);
	view->no_new_privs = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0);
	syscall(SYS_capget, &header, caps);
	view->capabilities = caps[0].effective || caps[0].permitted || caps[1].effective ||
			     caps[1].permitted ||
			     prctl(PR_CAPBSET_READ, CAP_SYS_ADMIN, 0, 0, 0) != 0;
	view->paths = stat("/proc", &status) == 0 || stat("/etc/passwd", &status) == 0;
	view->files = open("/", O_RDONLY | O_DIRECTORY) >= 0 || open("/etc/passwd", O_RDONLY) >= 0;
	getrlimit(RLIMIT_CORE, &limit);
	view->core_limit = limit.rlim_max != 0;
	getrlimit(RLIMIT_NOFILE, &limit);
	view->nofile = (int)limit.rlim_max;
	if (uname(&name) == 0)
		memcpy(view->host, name.nodename, sizeof(view->host) - 1);
}

struct try_args {
	const struct attempt *attempt;
	int64_t *value;
};

enum { TRY_SYSCALL, TRY_INT80, TRY_X32, TRY_RETURN };

__attribute__((noinline, no_sanitize("address", "undefined"))) static void
kernel_try(const void *args)
{
	const struct try_args *try = args;
	const int64_t *a = try->attempt->args;

	switch (try->attempt->what) {
	case TRY_SYSCALL:
		*try->value = syscall(a[0], a[1], a[2], a[3], a[4], a[5], 0);
		break;
#if defined(__x86_64__)
	case TRY_INT80: {
		long number = a[0];

		__asm__ volatile("int $0x80" : "+a"(number) : : "memory", "r8", "r9", "r10", "r11");
		*try->value = number;
		break;
	}
	case TRY_X32:
		*try->value = syscall(0x40000000 | a[0], a[1], a[2], a[3], a[4], a[5], 0);
		break;
#endif
	default:
		*try->value = 42;
	}
}

static void *bystander(void *arg)
{
	pthread_barrier_wait(&threads_stand);
	for (;;)
		syscall(SYS_futex, arg, 0 /* FUTEX_WAIT */, 0, NULL, NULL, 0);
	return NULL;
}

static int engine_send(int fd, const void *data, size_t size)
{
	struct iovec part = { (void *)(uintptr_t)data, size };
	struct msghdr msg = { .msg_iov = &part, .msg_iovlen = 1 };

	return sendmsg(fd, &msg, MSG_NOSIGNAL) == (ssize_t)size ? 0 : -1;
}

static int engine_main(int control, void *arg)
{
	static int never;
	struct attempt attempt;
	struct view view;
	pthread_t thread;

	look_around(&view);
	pthread_barrier_init(&threads_stand, NULL, 2);
	if (arg != (void *)0x1234 || engine_core_init(&core) < 0 ||
	    pthread_create(&thread, NULL, bystander, &never) != 0)
		return 1;
	pthread_barrier_wait(&threads_stand);
	view.sealed = sandbox_seal();
	engine_send(control, &view, sizeof(view));
	while (read(control, &attempt, sizeof(attempt)) == (ssize_t)sizeof(attempt)) {
		struct outcome outcome = { 0 };
		struct engine_fault fault = { 0 };
		struct try_args try = { &attempt, &outcome.value };
		void *block = malloc(1 << 20); /* the allocator works behind the filter */

		block = realloc(block, 8 << 20);
		memset(block, 1, 8 << 20);
		free(block);
		outcome.result = engine_core_run(&core, kernel_try, &try, 1, &fault);
		outcome.kind = fault.kind;
		outcome.syscall_nr = fault.syscall_nr;
		engine_send(control, &outcome, sizeof(outcome));
	}
	return 5;
}

static struct nursery *nursery;
static struct nursery_child child;
static int control;
static struct view seen;

static void cage_open(int ordinary)
{
	const struct nursery_config config = { .engine_main = engine_main,
					       .arg = (void *)0x1234,
					       .log = cage_log };

	/* An fd that an engine must not inherit. */
	ck_assert_int_ge(eventfd(0, 0), 0);
	cage_take_identity(ordinary);
	ck_assert_int_eq(nursery_start(&config, &nursery), 0);
	control = cage_spawn(nursery, &child);
	cage_receive(control, &seen, sizeof(seen));
}

static void cage_close(void)
{
	siginfo_t info;

	close(control);
	info = cage_reap(&child);
	ck_assert_int_eq(info.si_code, CLD_EXITED);
	ck_assert_int_eq(info.si_status, 5);
	nursery_stop(nursery);
}

static struct outcome try(int what, const int64_t args[6])
{
	struct attempt attempt = { .what = what };
	struct outcome outcome;

	memcpy(attempt.args, args, sizeof(attempt.args));
	cage_send(control, &attempt, sizeof(attempt));
	cage_receive(control, &outcome, sizeof(outcome));
	return outcome;
}

START_TEST(view_from_inside)
{
	uint32_t layers;
	char host[64] = "";

	cage_open(_i);
	layers = nursery_layers(nursery);
	ck_assert_int_eq(seen.sealed, 0);
	for (int fd = 0; fd < 4; fd++)
		ck_assert_int_eq(seen.fds[fd], fd);
	ck_assert_int_eq(seen.fds[4], -1);
	ck_assert_int_eq(seen.no_new_privs, 1);
	ck_assert_int_eq(seen.dumpable, 0);
	ck_assert_int_eq(seen.core_limit, 0);
	ck_assert_int_eq(seen.nofile, NURSERY_NOFILE_DEFAULT);
	ck_assert_uint_eq(layers & SANDBOX_MANDATORY, SANDBOX_MANDATORY);
	ck_assert_int_eq(!(layers & SANDBOX_DATA_LIMIT), SANITIZED);
	if (layers & SANDBOX_CAPABILITIES)
		ck_assert_int_eq(seen.capabilities, 0);
	if (layers & SANDBOX_MOUNT_NS)
		ck_assert_int_eq(seen.paths, 0);
	if (layers & SANDBOX_LANDLOCK)
		ck_assert_int_eq(seen.files, 0);
	if (layers & SANDBOX_PID_NS) {
		ck_assert_int_eq(seen.pid, 1);
		ck_assert_int_eq(seen.parent, 0);
	}
	if (layers & SANDBOX_USER_NS)
		ck_assert_uint_eq(seen.user, 65534);
	if (layers & SANDBOX_UTS_NS) {
		gethostname(host, sizeof(host) - 1);
		ck_assert_str_eq(seen.host, "npu");
		ck_assert_str_ne(seen.host, host);
	}
	cage_close();
}
END_TEST

/* Only root in the first namespaces can look at an engine, which is as it should be. */
START_TEST(view_from_outside)
{
	static const struct {
		const char *name;
		uint32_t layer;
	} spaces[] = {
		{ "user", SANDBOX_USER_NS }, { "pid", SANDBOX_PID_NS }, { "net", SANDBOX_NET_NS },
		{ "ipc", SANDBOX_IPC_NS },   { "uts", SANDBOX_UTS_NS }, { "mnt", SANDBOX_MOUNT_NS },
	};
	char path[64], own[64], other[64];
	struct stat status;

	cage_open(_i);
	snprintf(path, sizeof(path), "/proc/%d/mem", (int)child.pid);
	if (geteuid() != 0) {
		ck_assert_int_lt(open(path, O_RDWR | O_CLOEXEC), 0);
		cage_close();
		return;
	}
	for (size_t i = 0; i < sizeof(spaces) / sizeof(spaces[0]); i++) {
		ssize_t n;

		if (!(nursery_layers(nursery) & spaces[i].layer))
			continue;
		snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)child.pid, spaces[i].name);
		n = readlink(path, other, sizeof(other) - 1);
		if (n < 0)
			continue; /* this root may not look */
		other[n] = '\0';
		snprintf(path, sizeof(path), "/proc/self/ns/%s", spaces[i].name);
		n = readlink(path, own, sizeof(own) - 1);
		ck_assert_int_gt(n, 0);
		own[n] = '\0';
		ck_assert_str_ne(own, other);
	}
	if (nursery_layers(nursery) & SANDBOX_UID) {
		char line[128], *found = NULL;
		unsigned int uid = 0;
		FILE *file;

		snprintf(path, sizeof(path), "/proc/%d/status", (int)child.pid);
		file = fopen(path, "re");
		ck_assert_ptr_nonnull(file);
		while (!found && fgets(line, sizeof(line), file))
			if (sscanf(line, "Uid: %u", &uid) == 1)
				found = line;
		fclose(file);
		ck_assert_ptr_nonnull(found);
		ck_assert_uint_eq(uid, NURSERY_UID_DEFAULT);
		ck_assert_uint_ne(uid, getuid());
	}
	ck_assert_int_eq(fstat(control, &status), 0);
	cage_close();
}
END_TEST

#define CALL(name, ...)             \
	{                           \
#name, SYS_##name,  \
		{                   \
			__VA_ARGS__ \
		}                   \
	}
#define SOME_PATH  ((int64_t)(uintptr_t) "/etc/passwd")
#define SOME_BYTES ((int64_t)(uintptr_t)bytes)

START_TEST(forbidden_calls)
{
	static char bytes[256];
	const struct {
		const char *name;
		int64_t number;
		int64_t args[5];
	} calls[] = {
#ifdef SYS_open
		CALL(open, SOME_PATH, 0),
		CALL(fork),
		CALL(vfork),
		CALL(unlink, SOME_PATH),
#endif
		CALL(openat, -100, SOME_PATH, 0),
		CALL(socket, 1, 1, 0),
		CALL(socketpair, 1, 1, 0, SOME_BYTES),
		CALL(bind, 3, SOME_BYTES, 16),
		CALL(connect, 3, SOME_BYTES, 16),
		CALL(clone, 0x11),
		CALL(clone3, SOME_BYTES, 88),
		CALL(ptrace, 16, 0),
		CALL(process_vm_readv, 1, SOME_BYTES, 1, SOME_BYTES, 1),
		CALL(kill, 0, 9),
		CALL(kill, getpid(), 9),
		CALL(tkill, getpid(), 9),
		CALL(tgkill, getpid(), getpid(), 9),
		CALL(rt_sigqueueinfo, getpid(), 9, SOME_BYTES),
		CALL(pidfd_open, 1, 0),
		CALL(pidfd_getfd, 3, 0, 0),
		CALL(pidfd_send_signal, 3, 9, 0, 0),
		CALL(execve, SOME_PATH, 0, 0),
		CALL(execveat, 3, SOME_PATH, 0, 0, 0),
		CALL(memfd_create, SOME_PATH, 0),
		CALL(shmget, 0, 4096, 01600),
		CALL(mremap, SOME_BYTES, 4096, 8192, 1),
		CALL(unshare, CLONE_NEWUSER),
		CALL(setns, 3, 0),
		CALL(mount, SOME_PATH, SOME_PATH, 0, 0, 0),
		CALL(chroot, SOME_PATH),
		CALL(setresuid, 0, 0, 0),
		CALL(capset, SOME_BYTES, SOME_BYTES),
		CALL(seccomp, 1, 0, SOME_BYTES),
		CALL(setpriority, 0, 0, 0),
		CALL(sched_setscheduler, 0, 0, SOME_BYTES),
		CALL(sched_setaffinity, 0, 8, SOME_BYTES),
		CALL(bpf, 0, SOME_BYTES, 64),
		CALL(userfaultfd, 0),
		CALL(io_uring_setup, 1, SOME_BYTES),
		CALL(perf_event_open, SOME_BYTES, 0, -1, -1, 0),
		CALL(timer_create, 1, 0, SOME_BYTES),
		CALL(fcntl, 3, F_SETFL, 0),
		CALL(dup, 3),
		CALL(ftruncate, 3, 0),
		CALL(getppid),
		{ "unknown", 4000, { 0 } },
#ifndef NPU_SANITIZERS
		CALL(ioctl, 3, 0, 0),
		CALL(prctl, PR_SET_DUMPABLE, 1),
		CALL(rt_sigprocmask, 0, SOME_BYTES, 0, 8),
		CALL(rt_sigaction, SIGSEGV, 0, SOME_BYTES, 8),
		CALL(sigaltstack, 0, SOME_BYTES),
#endif
	};

	cage_open(_i);
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		const int64_t *a = calls[i].args;
		const int64_t args[6] = { calls[i].number, a[0], a[1], a[2], a[3], a[4] };
		struct outcome outcome = try(TRY_SYSCALL, args);

		if (SANITIZED &&
		    (!strncmp(calls[i].name, "open", 4) || !strcmp(calls[i].name, "mremap"))) {
			ck_assert_int_eq(outcome.value, -1);
			continue; /* see sandbox_filter.c */
		}
		ck_assert_msg(outcome.result == 1, "%s was not refused: %lld", calls[i].name,
			      (long long)outcome.value);
		ck_assert_int_eq(outcome.kind, ENGINE_FAULT_SYSCALL);
		ck_assert_int_eq(outcome.syscall_nr, calls[i].number);
	}
	cage_close();
}
END_TEST

START_TEST(writable_code_is_refused)
{
	const int64_t map[6] = {
		SYS_mmap, 0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
		-1
	};
	const int64_t code[6] = {
		SYS_mmap, 0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1
	};
	struct outcome outcome;

	cage_open(_i);
	outcome = try(TRY_SYSCALL, map);
	ck_assert_int_eq(outcome.result, 1);
	ck_assert_int_eq(outcome.kind, ENGINE_FAULT_SYSCALL);
	ck_assert_int_eq(outcome.syscall_nr, SYS_mmap);

	outcome = try(TRY_SYSCALL, code);
	ck_assert_int_eq(outcome.result, 0);
	ck_assert_int_gt(outcome.value, 0);
	{
		const int64_t protect[6] = { SYS_mprotect, outcome.value, 4096,
					     PROT_WRITE | PROT_EXEC };
		const int64_t allowed[6] = { SYS_mprotect, outcome.value, 4096,
					     PROT_READ | PROT_WRITE };

		outcome = try(TRY_SYSCALL, protect);
		ck_assert_int_eq(outcome.kind, ENGINE_FAULT_SYSCALL);
		outcome = try(TRY_SYSCALL, allowed);
		ck_assert_int_eq(outcome.result, 0);
		ck_assert_int_eq(outcome.value, 0);
	}
	cage_close();
}
END_TEST

#if defined(__x86_64__)
START_TEST(other_doors_of_the_processor)
{
	const int64_t getpid32[6] = { 20 };
	const int64_t getpid_x32[6] = { SYS_getpid };
	struct outcome outcome;

	cage_open(_i);
	outcome = try(TRY_INT80, getpid32);
	ck_assert_int_eq(outcome.result,
			 1); /* SIGSYS, or SIGSEGV where the kernel has no such door */
	outcome = try(TRY_X32, getpid_x32);
	ck_assert_int_eq(outcome.result, 1);
	ck_assert_int_eq(outcome.kind, ENGINE_FAULT_SYSCALL);
	outcome = try(TRY_RETURN, getpid_x32);
	ck_assert_int_eq(outcome.result, 0);
	ck_assert_int_eq(outcome.value, 42);
	cage_close();
}
END_TEST
#endif

START_TEST(layer_names)
{
	ck_assert_uint_eq(SANDBOX_ALL, 0x1ffff);
	for (unsigned int bit = 0; bit < SANDBOX_LAYER_COUNT; bit++) {
		ck_assert_ptr_nonnull(sandbox_layer_name(bit));
		for (unsigned int other = 0; other < bit; other++)
			ck_assert_str_ne(sandbox_layer_name(bit), sandbox_layer_name(other));
	}
	ck_assert_str_eq(sandbox_layer_name(1), "seccomp");
	ck_assert_str_eq(sandbox_layer_name(16), "parent-death");
	ck_assert_ptr_null(sandbox_layer_name(SANDBOX_LAYER_COUNT));
	ck_assert_ptr_null(sandbox_layer_name(~0u));
}
END_TEST

/* Without no_new_privs the filter must not be loaded, whoever the caller is. */
START_TEST(seal_needs_no_new_privs)
{
	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1)
		return;
	ck_assert_int_eq(sandbox_prepare(), 0);
	ck_assert_int_eq(sandbox_seal(), -EPERM);
	ck_assert_int_eq(prctl(PR_GET_SECCOMP, 0, 0, 0, 0), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("sandbox");
	TCase *tcase = tcase_create("cage");

	tcase_set_timeout(tcase, 60);
	tcase_add_loop_test(tcase, view_from_inside, 0, 2);
	tcase_add_loop_test(tcase, view_from_outside, 0, 2);
	tcase_add_loop_test(tcase, forbidden_calls, 0, 2);
	tcase_add_loop_test(tcase, writable_code_is_refused, 0, 2);
#if defined(__x86_64__)
	tcase_add_loop_test(tcase, other_doors_of_the_processor, 0, 2);
#endif
	tcase_add_test(tcase, layer_names);
	tcase_add_test(tcase, seal_needs_no_new_privs);
	suite_add_tcase(suite, tcase);
	return cage_run_suite(suite);
}
