/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NPU_SIM_ENGINE_FAULT_H
#define NPU_SIM_ENGINE_FAULT_H

/*
 * engine_core_fault: what lets a core thread survive the kernel code that it runs.
 *
 * Each core thread of an engine owns one. Kernel code runs on a stack of its own between guard
 * pages; when it raises a signal, the handler (on an alternate stack) rewrites the signal context
 * so that the thread goes on behind engine_core_run() with clean registers, flags and
 * floating-point control. No system call but rt_sigreturn is needed, so it works under the seccomp
 * filter, and running a kernel that behaves costs no system call either.
 *
 * A fault anywhere else is a bug of the engine: the process ends with status 128 + signal.
 *
 * init, run, fini: the owning thread. abort: any thread of the process. init installs handlers,
 * hence before sandbox_seal(). Errors are negative errno.
 */

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define ENGINE_STACK_DEFAULT (8u << 20)
#define ENGINE_STACK_MIN     (64u << 10)
#define ENGINE_STACK_GUARD   (64u << 10)

/* The directed signal of engine_core_abort(). */
#define ENGINE_ABORT_SIGNAL SIGUSR2

enum engine_fault_kind {
	ENGINE_FAULT_NONE = 0,
	ENGINE_FAULT_ACCESS,	     /* SIGSEGV */
	ENGINE_FAULT_BUS,	     /* SIGBUS: past the end of a memory object, or misaligned */
	ENGINE_FAULT_ILLEGAL,	     /* SIGILL: illegal instruction */
	ENGINE_FAULT_ARITHMETIC,     /* SIGFPE */
	ENGINE_FAULT_STACK_OVERFLOW, /* SIGSEGV in the guard below the kernel stack */
	ENGINE_FAULT_SYSCALL,	     /* SIGSYS: a forbidden system call */
	ENGINE_FAULT_TRAP,	     /* SIGTRAP: breakpoint or single step */
	ENGINE_FAULT_ABORT,	     /* engine_core_abort(): time-out, or the queue was aborted */
};

struct engine_fault {
	enum engine_fault_kind kind;
	int signal;
	int si_code;
	bool address_known; /* false: the processor does not tell it (non-canonical, ...) */
	uint64_t address;   /* 0 unless address_known */
	uint64_t pc;
	uint64_t caller;    /* pc outside the code range: nearest return address inside, or 0 */
	int64_t syscall_nr; /* ENGINE_FAULT_SYSCALL, else -1 */
};

/* The first five members are known to engine_switch.S. All others are private to engine_fault.c. */
struct engine_core_fault {
	void *sp;		  /* the thread's stack while a kernel runs */
	_Atomic uint64_t running; /* sequence of the kernel that runs, 0 for none */
	_Atomic uint64_t aborted; /* sequence to abort, 0 for none */
	uint32_t fp_control;	  /* MXCSR; FPCR */
	uint32_t x87_control;

	size_t stack_size;	       /* set before init: bytes, 0 for ENGINE_STACK_DEFAULT */
	uint64_t code_start, code_end; /* the kernel image's code; may be set between runs */

	char *map;
	size_t map_size;
	char *stack_low, *stack_high;
	char *alt;
	size_t alt_size;
	stack_t old_alt;
	sigset_t old_mask, mask;
	pid_t pid, tid;
	struct engine_fault fault;
	uint64_t fault_sp;
};

/*
 * Prepares the calling thread. The caller zeroes *core first, and may set stack_size. Blocks no
 * signal that is needed; all others are blocked in this thread. -EINVAL: stack below
 * ENGINE_STACK_MIN; -ENOMEM.
 */
int engine_core_init(struct engine_core_fault *core);

/* Undoes init, in the same thread. Not after sandbox_seal(): an engine ends by _exit() instead. */
void engine_core_fini(struct engine_core_fault *core);

/* Says where the kernel image's code lies ([start, end)), for engine_fault.caller. */
static inline void engine_core_set_code(struct engine_core_fault *core, const void *start,
					const void *end)
{
	core->code_start = (uint64_t)(uintptr_t)start;
	core->code_end = (uint64_t)(uintptr_t)end;
}

/*
 * Runs entry(args) on the kernel stack. seq names the run for engine_core_abort(); not 0; several
 * runs (the blocks of one launch) may share it. Returns 0 when entry returned; 1 when it faulted or
 * was aborted, with *ret_fault written. A run whose seq was aborted before it began returns 1 at
 * once.
 */
int engine_core_run(struct engine_core_fault *core, void (*entry)(const void *), const void *args,
		    uint64_t seq, struct engine_fault *ret_fault);

/*
 * Asks the core to abandon the run named seq, now or when it begins. Without effect on any other
 * run. The last call counts. Returns 0 when the signal was sent, not when it took effect.
 */
int engine_core_abort(struct engine_core_fault *core, uint64_t seq);

/* Short English text for a kind, for messages: "stack overflow". Static storage, never NULL. */
const char *engine_fault_kind_name(enum engine_fault_kind kind);

#endif
