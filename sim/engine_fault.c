/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recovery works on the signal context: the handler stores what it learnt in the core, then changes
 * program counter, stack pointer, flags and mask of the interrupted context, so that returning from
 * the signal lands at engine_switch_recover. Against siglongjmp this also clears flags such as
 * alignment check that live in no jmp_buf, and it needs no system call to set the mask.
 *
 * The core's `running` mark decides whether a signal belongs to a kernel. It is written by the
 * owning thread only; `aborted` is written by others before they send the signal, and read again by
 * the thread after it has set the mark, so an abort cannot fall between the two.
 */

#include "config.h"
#include "sim/engine_fault.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define ALT_STACK_EXTRA (256u << 10)
#else
#define ASAN_UNPOISON_MEMORY_REGION(addr, size) ((void)(addr), (void)(size))
#define ALT_STACK_EXTRA				(16u << 10)
#endif

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51
#endif
#ifndef SYS_SECCOMP
#define SYS_SECCOMP 1
#endif

#define SI_CODE_KERNEL	   128 /* SI_KERNEL: the processor named no address */
#define STACK_SLACK	   64  /* bytes above the first frame */
#define SCAN_WORDS	   8192
#define KERNEL_SIGSET_SIZE 8 /* the kernel's sigset_t; glibc's is longer than what the frame has */

int engine_switch(void (*entry)(const void *), const void *args, void *stack_top,
		  struct engine_core_fault *core, uint64_t seq);
void engine_switch_handler(int sig, siginfo_t *info, void *context);
extern const char engine_switch_recover[];
void engine_fault_handler(int sig, siginfo_t *info, void *ucontext);

_Static_assert(offsetof(struct engine_core_fault, sp) == 0, "engine_switch.S");
_Static_assert(offsetof(struct engine_core_fault, running) == 8, "engine_switch.S");
_Static_assert(offsetof(struct engine_core_fault, aborted) == 16, "engine_switch.S");
_Static_assert(offsetof(struct engine_core_fault, fp_control) == 24, "engine_switch.S");
_Static_assert(offsetof(struct engine_core_fault, x87_control) == 28, "engine_switch.S");

__thread struct engine_core_fault *engine_core_self
	__attribute__((tls_model("initial-exec"), visibility("hidden")));

static const int fault_signals[] = {
	SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGSYS, SIGTRAP, ENGINE_ABORT_SIGNAL
};
#define FAULT_SIGNALS (sizeof(fault_signals) / sizeof(fault_signals[0]))

static pthread_once_t handlers_once = PTHREAD_ONCE_INIT;
static int handlers_error;

#if defined(__x86_64__)

static uint64_t context_pc(const ucontext_t *context)
{
	return (uint64_t)context->uc_mcontext.gregs[REG_RIP];
}

static uint64_t context_sp(const ucontext_t *context)
{
	return (uint64_t)context->uc_mcontext.gregs[REG_RSP];
}

static uint64_t context_link(const ucontext_t *context)
{
	(void)context;
	return 0; /* return addresses are on the stack only */
}

static void context_resume(ucontext_t *context, void *sp)
{
	greg_t *regs = context->uc_mcontext.gregs;
	const int clean[] = { REG_RAX, REG_RBX, REG_RCX, REG_RDX, REG_RSI, REG_RDI, REG_RBP, REG_R8,
			      REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15 };

	for (size_t i = 0; i < sizeof(clean) / sizeof(clean[0]); i++)
		regs[clean[i]] = 0;
	regs[REG_RIP] = (greg_t)(uintptr_t)engine_switch_recover;
	regs[REG_RSP] = (greg_t)(uintptr_t)sp;
	regs[REG_EFL] = 0x202; /* interrupts on, and the bit that is always one */
}

static void core_save_fp_control(struct engine_core_fault *core)
{
	uint32_t mxcsr;
	uint16_t x87;

	__asm__ volatile("stmxcsr %0" : "=m"(mxcsr));
	__asm__ volatile("fnstcw %0" : "=m"(x87));
	core->fp_control = mxcsr & ~0x3fu; /* without the status bits */
	core->x87_control = x87;
}

#elif defined(__aarch64__)

static uint64_t context_pc(const ucontext_t *context)
{
	return context->uc_mcontext.pc;
}

static uint64_t context_sp(const ucontext_t *context)
{
	return context->uc_mcontext.sp;
}

static uint64_t context_link(const ucontext_t *context)
{
	return context->uc_mcontext.regs[30];
}

static void context_resume(ucontext_t *context, void *sp)
{
	for (int i = 0; i < 31; i++)
		context->uc_mcontext.regs[i] = 0;
	context->uc_mcontext.pc = (uintptr_t)engine_switch_recover;
	context->uc_mcontext.sp = (uintptr_t)sp;
	context->uc_mcontext.pstate = 0; /* EL0, AArch64, flags clear, no branch type */
}

static void core_save_fp_control(struct engine_core_fault *core)
{
	uint64_t fpcr;

	__asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
	core->fp_control = (uint32_t)fpcr;
	core->x87_control = 0;
}

#endif

static bool core_is_code(const struct engine_core_fault *core, uint64_t address)
{
	return address >= core->code_start && address < core->code_end;
}

/* A call leaves the address behind it, so the very start of the code is no return address. */
static bool core_is_return(const struct engine_core_fault *core, uint64_t word)
{
	return word > core->code_start && word <= core->code_end;
}

/* The first stack word that points into the image's code: most likely a return address there. */
__attribute__((no_sanitize("address"), noinline)) static uint64_t
core_find_caller(const struct engine_core_fault *core, uint64_t sp)
{
	uint64_t low = (uint64_t)(uintptr_t)core->stack_low;
	uint64_t high = (uint64_t)(uintptr_t)core->stack_high;
	uint64_t first = (sp + 7) & ~7ull;

	/* Below the lower end after an overflow: the frames that matter start at the end. */
	if (sp >= low - ENGINE_STACK_GUARD && sp < low)
		first = low;
	else if (sp < low || sp >= high)
		return 0;
	for (unsigned int i = 0; i < SCAN_WORDS && first + 8 <= high; i++, first += 8) {
		uint64_t word = *(const volatile uint64_t *)(uintptr_t)first;

		if (core_is_return(core, word))
			return word;
	}
	return 0;
}

static enum engine_fault_kind core_kind(const struct engine_core_fault *core, int sig,
					const siginfo_t *info, bool address_known)
{
	const char *address = info->si_addr;

	switch (sig) {
	case SIGSEGV:
		if (address_known && address < core->stack_low &&
		    address >= core->stack_low - ENGINE_STACK_GUARD)
			return ENGINE_FAULT_STACK_OVERFLOW;
		return ENGINE_FAULT_ACCESS;
	case SIGBUS:
		return ENGINE_FAULT_BUS;
	case SIGILL:
		return ENGINE_FAULT_ILLEGAL;
	case SIGFPE:
		return ENGINE_FAULT_ARITHMETIC;
	case SIGSYS:
		return ENGINE_FAULT_SYSCALL;
	case SIGTRAP:
		return ENGINE_FAULT_TRAP;
	default:
		return ENGINE_FAULT_ABORT;
	}
}

static void core_record(struct engine_core_fault *core, int sig, const siginfo_t *info,
			const ucontext_t *context)
{
	struct engine_fault *fault = &core->fault;

	/* Positive codes come from the kernel; others from tgkill, whose address is garbage. */
	fault->address_known =
		sig != ENGINE_ABORT_SIGNAL && info->si_code > 0 && info->si_code != SI_CODE_KERNEL;
	/* x86's alignment check names no address either. */
	if (sig == SIGBUS && info->si_code == BUS_ADRALN && !info->si_addr)
		fault->address_known = false;
	fault->kind = core_kind(core, sig, info, fault->address_known);
	fault->signal = sig;
	fault->si_code = info->si_code;
	fault->pc = context_pc(context);
	fault->syscall_nr = -1;
	if (sig == SIGSYS && info->si_code == SYS_SECCOMP) {
		fault->syscall_nr = info->si_syscall;
		fault->address = (uint64_t)(uintptr_t)info->si_call_addr;
	} else {
		fault->address = fault->address_known ? (uint64_t)(uintptr_t)info->si_addr : 0;
	}
	core->fault_sp = context_sp(context);
	fault->caller = 0;
	if (core->code_end && !core_is_code(core, fault->pc)) {
		fault->caller = context_link(context);
		if (!core_is_return(core, fault->caller))
			fault->caller = core_find_caller(core, core->fault_sp);
	}
}

__attribute__((visibility("hidden"))) void engine_fault_handler(int sig, siginfo_t *info,
								void *ucontext)
{
	struct engine_core_fault *core = engine_core_self;
	ucontext_t *context = ucontext;
	uint64_t running = core ? atomic_load_explicit(&core->running, memory_order_relaxed) : 0;

	if (sig == ENGINE_ABORT_SIGNAL) {
		if (!running ||
		    atomic_load_explicit(&core->aborted, memory_order_relaxed) != running)
			return; /* late, or for another run */
	} else if (!running) {
		/* The engine's own bug. SIGKILL would not reach the first of a pid namespace. */
		_exit(128 + sig);
	}
	core_record(core, sig, info, context);
	atomic_store_explicit(&core->running, 0, memory_order_relaxed);
	context_resume(context, core->sp);
	memcpy(&context->uc_sigmask, &core->mask, KERNEL_SIGSET_SIZE);
}

static void handlers_install(void)
{
	struct sigaction action = { .sa_sigaction = engine_switch_handler,
				    .sa_flags = SA_SIGINFO | SA_ONSTACK };

	sigfillset(&action.sa_mask);
	for (size_t i = 0; i < FAULT_SIGNALS; i++)
		if (sigaction(fault_signals[i], &action, NULL) < 0)
			handlers_error = -errno;
}

static int core_map_stacks(struct engine_core_fault *core)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t stack = core->stack_size ? core->stack_size : ENGINE_STACK_DEFAULT;
	size_t alt = getauxval(AT_MINSIGSTKSZ);

	if (stack < ENGINE_STACK_MIN || stack > SIZE_MAX / 4)
		return -EINVAL;
	stack = (stack + page - 1) & ~(page - 1);
	if (alt < (size_t)MINSIGSTKSZ)
		alt = (size_t)MINSIGSTKSZ;
	alt = (alt + ALT_STACK_EXTRA + page - 1) & ~(page - 1);

	/* guard, alternate stack, guard, kernel stack, guard: every overrun meets a guard first */
	core->map_size = stack + alt + 3 * (size_t)ENGINE_STACK_GUARD;
	core->map = mmap(NULL, core->map_size, PROT_NONE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (core->map == MAP_FAILED) {
		core->map = NULL;
		return -errno;
	}
	core->alt = core->map + ENGINE_STACK_GUARD;
	core->alt_size = alt;
	core->stack_low = core->alt + alt + ENGINE_STACK_GUARD;
	core->stack_high = core->stack_low + stack;
	if (mprotect(core->alt, alt, PROT_READ | PROT_WRITE) < 0 ||
	    mprotect(core->stack_low, stack, PROT_READ | PROT_WRITE) < 0) {
		int error = -errno;

		munmap(core->map, core->map_size);
		core->map = NULL;
		return error;
	}
	return 0;
}

int engine_core_init(struct engine_core_fault *core)
{
	stack_t alt;
	int r;

	pthread_once(&handlers_once, handlers_install);
	if (handlers_error)
		return handlers_error;
	r = core_map_stacks(core);
	if (r < 0)
		return r;
	alt = (stack_t){ .ss_sp = core->alt, .ss_size = core->alt_size };
	if (sigaltstack(&alt, &core->old_alt) < 0) {
		r = -errno;
		munmap(core->map, core->map_size);
		core->map = NULL;
		return r;
	}
	sigfillset(&core->mask);
	for (size_t i = 0; i < FAULT_SIGNALS; i++)
		sigdelset(&core->mask, fault_signals[i]);
	pthread_sigmask(SIG_SETMASK, &core->mask, &core->old_mask);
	core_save_fp_control(core);
	core->pid = getpid();
	core->tid = (pid_t)syscall(SYS_gettid);
	atomic_store_explicit(&core->running, 0, memory_order_relaxed);
	engine_core_self = core;
	return 0;
}

void engine_core_fini(struct engine_core_fault *core)
{
	if (!core->map)
		return;
	engine_core_self = NULL;
	/* The runtime of a sanitizer frees the stack that it finds here, so it must be its own. */
	sigaltstack(&core->old_alt, NULL);
	pthread_sigmask(SIG_SETMASK, &core->old_mask, NULL);
	munmap(core->map, core->map_size);
	core->map = NULL;
}

/* In an AddressSanitizer build an abandoned kernel leaves its frames' red zones poisoned. */
static void core_unpoison(struct engine_core_fault *core)
{
	char *from = (char *)(uintptr_t)core->fault_sp;

	if (from < core->stack_low || from >= core->stack_high)
		from = core->stack_low;
	ASAN_UNPOISON_MEMORY_REGION(from, (size_t)(core->stack_high - from));
}

static int core_faulted(struct engine_core_fault *core, struct engine_fault *ret_fault)
{
	if (core->fault.kind == ENGINE_FAULT_NONE) {
		/* Aborted before it began: no signal, no place. */
		core->fault = (struct engine_fault){ .kind = ENGINE_FAULT_ABORT,
						     .signal = ENGINE_ABORT_SIGNAL,
						     .syscall_nr = -1 };
		core->fault_sp = (uint64_t)(uintptr_t)core->stack_high - 1;
	}
	core_unpoison(core);
	*ret_fault = core->fault;
	core->fault.kind = ENGINE_FAULT_NONE;
	return 1;
}

int engine_core_run(struct engine_core_fault *core, void (*entry)(const void *), const void *args,
		    uint64_t seq, struct engine_fault *ret_fault)
{
	if (__builtin_expect(
		    engine_switch(entry, args, core->stack_high - STACK_SLACK, core, seq) == 0, 1))
		return 0;
	return core_faulted(core, ret_fault);
}

int engine_core_abort(struct engine_core_fault *core, uint64_t seq)
{
	atomic_store(&core->aborted, seq);
	if (syscall(SYS_tgkill, core->pid, core->tid, ENGINE_ABORT_SIGNAL) < 0)
		return -errno;
	return 0;
}

const char *engine_fault_kind_name(enum engine_fault_kind kind)
{
	switch (kind) {
	case ENGINE_FAULT_NONE:
		return "no fault";
	case ENGINE_FAULT_ACCESS:
		return "invalid memory access";
	case ENGINE_FAULT_BUS:
		return "bus error";
	case ENGINE_FAULT_ILLEGAL:
		return "illegal instruction";
	case ENGINE_FAULT_ARITHMETIC:
		return "arithmetic fault";
	case ENGINE_FAULT_STACK_OVERFLOW:
		return "stack overflow";
	case ENGINE_FAULT_SYSCALL:
		return "forbidden system call";
	case ENGINE_FAULT_TRAP:
		return "trap instruction";
	case ENGINE_FAULT_ABORT:
		return "aborted";
	}
	return "unknown fault";
}
