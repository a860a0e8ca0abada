/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stage 2: the seccomp allow-list, a row a rule. Whatever no row allows raises SIGSYS, which
 * engine_fault turns into an ordinary fault of the kernel that tried. The program is exported to
 * BPF once, in the nursery (libseccomp takes 170 us for it), and inherited; loading it takes 45 us.
 *
 * In a pid namespace of its own an engine is process 1, so the rule for tgkill is the same for all.
 * Without that layer the pid is not known beforehand, and the engine builds a program of its own.
 */

#include "config.h"
#include "sim/sandbox.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SECCOMP_FILTER_FLAG_TSYNC
#define SECCOMP_FILTER_FLAG_TSYNC 1
#endif

#define PROGRAM_MAX	 512 /* instructions */
#define PID_IN_NAMESPACE 1

enum filter_condition {
	ALWAYS,
	NOT_WRITABLE,	/* third argument without PROT_WRITE */
	NOT_EXECUTABLE, /* third argument without PROT_EXEC */
	OWN_PROCESS,	/* first argument is the engine's pid */
};

struct filter_row {
	int syscall;
	enum filter_condition condition;
};

/* In the order of their frequency: the program tries them one by one. */
static const struct filter_row rows[] = {
	{ SCMP_SYS(futex), ALWAYS },
	{ SCMP_SYS(read), ALWAYS },
	{ SCMP_SYS(write), ALWAYS },
	{ SCMP_SYS(poll), ALWAYS },
	{ SCMP_SYS(ppoll), ALWAYS },
	{ SCMP_SYS(epoll_wait), ALWAYS },
	{ SCMP_SYS(epoll_pwait), ALWAYS },
	{ SCMP_SYS(recvmsg), ALWAYS },
	{ SCMP_SYS(sendmsg), ALWAYS },
	{ SCMP_SYS(rt_sigreturn), ALWAYS },
	{ SCMP_SYS(sched_yield), ALWAYS },
	{ SCMP_SYS(getcpu), ALWAYS },
	{ SCMP_SYS(clock_gettime), ALWAYS },
	{ SCMP_SYS(membarrier), ALWAYS },
	{ SCMP_SYS(close), ALWAYS },
	{ SCMP_SYS(mmap), NOT_WRITABLE },
	{ SCMP_SYS(mmap), NOT_EXECUTABLE },
	{ SCMP_SYS(mprotect), NOT_WRITABLE },
	{ SCMP_SYS(mprotect), NOT_EXECUTABLE },
	{ SCMP_SYS(munmap), ALWAYS },
	{ SCMP_SYS(madvise), ALWAYS },
	{ SCMP_SYS(brk), ALWAYS },
	{ SCMP_SYS(pread64), ALWAYS },
	{ SCMP_SYS(getpid), ALWAYS },
	{ SCMP_SYS(gettid), ALWAYS },
	{ SCMP_SYS(tgkill), OWN_PROCESS },
	{ SCMP_SYS(restart_syscall), ALWAYS },
	{ SCMP_SYS(exit), ALWAYS },
	{ SCMP_SYS(exit_group), ALWAYS },
};

#ifdef NPU_SANITIZERS
/*
 * What the runtimes of the sanitizers call in a running program: alternate stacks and signal masks
 * at the start and end of threads, limits and affinity for their own tables, a pause in their
 * locks, mremap and reads of the mappings for reports.
 */
static const int sanitizer_rows[] = {
	SCMP_SYS(sigaltstack),	   SCMP_SYS(rt_sigprocmask),
	SCMP_SYS(rt_sigaction),	   SCMP_SYS(prlimit64),
	SCMP_SYS(getrlimit),	   SCMP_SYS(sched_getaffinity),
	SCMP_SYS(nanosleep),	   SCMP_SYS(clock_nanosleep),
	SCMP_SYS(mremap),	   SCMP_SYS(getrandom),
	SCMP_SYS(set_robust_list), SCMP_SYS(getuid),
	SCMP_SYS(uname),	   SCMP_SYS(rseq),
};

/* Tried when a report is written: an error costs source lines, a SIGSYS the report. */
static const int sanitizer_errors[] = {
	SCMP_SYS(open),	  SCMP_SYS(openat),	SCMP_SYS(readlink), SCMP_SYS(readlinkat),
	SCMP_SYS(stat),	  SCMP_SYS(newfstatat), SCMP_SYS(fstat),    SCMP_SYS(access),
	SCMP_SYS(ioctl),  SCMP_SYS(pipe2),	SCMP_SYS(prctl),    SCMP_SYS(lseek),
	SCMP_SYS(getcwd),
};
#endif

static struct sock_filter program[PROGRAM_MAX];
static unsigned short program_length;

/* A number that this architecture does not have (poll on aarch64) is no rule. */
static int rule_result(int r)
{
	return r == -EDOM ? 0 : r;
}

static int filter_add_row(scmp_filter_ctx filter, const struct filter_row *row, pid_t pid)
{
	struct scmp_arg_cmp condition;

	switch (row->condition) {
	case NOT_WRITABLE:
		condition = SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_WRITE, 0);
		break;
	case NOT_EXECUTABLE:
		condition = SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0);
		break;
	case OWN_PROCESS:
		condition = SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)pid);
		break;
	default:
		return rule_result(seccomp_rule_add(filter, SCMP_ACT_ALLOW, row->syscall, 0));
	}
	return rule_result(
		seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, row->syscall, 1, &condition));
}

static int filter_add_rows(scmp_filter_ctx filter, pid_t pid)
{
	int r;

	/* System calls of the other architectures of this processor end like any forbidden one. */
	r = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_TRAP);
	if (r < 0)
		return r;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		r = filter_add_row(filter, &rows[i], pid);
		if (r < 0)
			return r;
		/* Only an order of trying: a refusal costs nanoseconds. */
		seccomp_syscall_priority(filter, rows[i].syscall, (uint8_t)(200 - i));
	}
#ifdef NPU_SANITIZERS
	for (size_t i = 0; i < sizeof(sanitizer_rows) / sizeof(sanitizer_rows[0]); i++) {
		r = rule_result(seccomp_rule_add(filter, SCMP_ACT_ALLOW, sanitizer_rows[i], 0));
		if (r < 0)
			return r;
	}
	for (size_t i = 0; i < sizeof(sanitizer_errors) / sizeof(sanitizer_errors[0]); i++) {
		r = rule_result(
			seccomp_rule_add(filter, SCMP_ACT_ERRNO(EACCES), sanitizer_errors[i], 0));
		if (r < 0)
			return r;
	}
#endif
	return 0;
}

/* libseccomp writes the program to an fd only. */
static int filter_export(scmp_filter_ctx filter)
{
	int fd = memfd_create("npu-filter", MFD_CLOEXEC);
	ssize_t n;
	int r;

	if (fd < 0)
		return -errno;
	r = seccomp_export_bpf(filter, fd);
	if (r == 0) {
		n = pread(fd, program, sizeof(program), 0);
		if (n <= 0 || n == (ssize_t)sizeof(program) || n % (ssize_t)sizeof(program[0]))
			r = n < 0 ? -errno : -E2BIG;
		else
			program_length = (unsigned short)((size_t)n / sizeof(program[0]));
	}
	close(fd);
	return r;
}

static int filter_build(pid_t pid)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_TRAP);
	int r;

	if (!filter)
		return -ENOMEM;
	r = filter_add_rows(filter, pid);
	if (r == 0)
		r = filter_export(filter);
	seccomp_release(filter);
	return r;
}

int sandbox_prepare(void)
{
	return filter_build(PID_IN_NAMESPACE);
}

int sandbox_seal(void)
{
	struct sock_fprog prog = { .filter = program };
	long r;

	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
		return -EPERM;
	if (program_length == 0 || getpid() != PID_IN_NAMESPACE) {
		r = filter_build(getpid());
		if (r < 0)
			return (int)r;
	}
	prog.len = program_length;
	r = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &prog);
	if (r < 0)
		return -errno;
	if (r > 0) /* that thread has a filter of its own */
		return -ESRCH;
	return 0;
}
