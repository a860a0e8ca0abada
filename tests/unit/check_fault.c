/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine_fault: each way in which kernel code can go wrong ends that run and nothing else.
 */

#include "config.h"
#include "sim/engine_block.h"
#include "sim/engine_fault.h"
#include "tests/lib/fault.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

struct sum {
	const int *values;
	int count;
	long *out;
};

KERNEL static void kernel_sum(const void *args)
{
	const struct sum *sum = args;
	long total = 0;

	for (int i = 0; i < sum->count; i++)
		total += sum->values[i];
	*sum->out = total + npu_block_idx() * 1000 + npu_block_num();
}

KERNEL static void kernel_store(const void *args)
{
	**(volatile int *const *)args = 7;
}

static const volatile int zero;

#if defined(__x86_64__)
KERNEL static void kernel_divide(const void *args)
{
	int quotient = 5, rest = 0;

	(void)args;
	__asm__ volatile("idivl %2" : "+a"(quotient), "+d"(rest) : "r"(zero));
}
#endif

KERNEL static void kernel_jump(const void *args)
{
	void (*target)(void);

	memcpy(&target, args, sizeof(target));
	target();
	__asm__ volatile("" : : : "memory"); /* a call, not a jump */
}

KERNEL static void kernel_illegal(const void *args)
{
	(void)args;
#if defined(__x86_64__)
	__asm__ volatile("ud2");
#else
	__asm__ volatile("udf #0");
#endif
}

KERNEL static void kernel_trap(const void *args)
{
	(void)args;
#if defined(__x86_64__)
	__asm__ volatile("int3");
#else
	__asm__ volatile("brk #0");
#endif
}

KERNEL static int deeper(volatile char *above)
{
	volatile char frame[512];

	frame[0] = above[0];
	return zero ? 0 : deeper(frame) + frame[511];
}

KERNEL static void kernel_recurse(const void *args)
{
	volatile char start = 1;

	(void)args;
	deeper(&start);
}

__attribute__((noinline, no_sanitize("address", "undefined"),
	       optimize("stack-clash-protection"))) static void
kernel_big_frame(const void *args)
{
	volatile char frame[4 << 20];

	(void)args;
	frame[0] = 1;
	frame[sizeof(frame) - 1] = frame[0];
}

KERNEL static void kernel_memcpy(const void *args)
{
	void *const *p = args;

	memcpy(p[0], p[1], 1 << 20);
	__asm__ volatile("" : : : "memory"); /* a call, not a jump */
}

KERNEL static void kernel_smash(const void *args)
{
	volatile char frame[64];
	volatile char *p = frame;

	(void)args;
	for (;;)
		*p++ = 0x5a;
}

START_TEST(normal_run)
{
	int values[] = { 1, 2, 3, 4 };
	long out = 0;
	struct sum sum = { values, 4, &out };

	engine_block_set(5, 8);
	ck_assert_int_eq(run(kernel_sum, &sum), 0);
	ck_assert_int_eq(out, 10 + 5000 + 8);
	ck_assert_uint_eq(npu_block_idx(), 5);
}
END_TEST

START_TEST(null_and_wild_access)
{
	void *null = NULL;
	void *wild = (void *)0x123456789000;

	ck_assert_int_eq(run(kernel_store, &null), 1);
	ck_assert_int_eq(fault.kind, ENGINE_FAULT_ACCESS);
	ck_assert_int_eq(fault.signal, SIGSEGV);
	ck_assert(fault.address_known);
	ck_assert_uint_eq(fault.address, 0);
	ck_assert_int_eq(fault.syscall_nr, -1);
	ck_assert_uint_ge(fault.pc, (uintptr_t)kernel_store);
	ck_assert_uint_lt(fault.pc, (uintptr_t)kernel_store + 256);

	ck_assert_int_eq(run(kernel_store, &wild), 1);
	ck_assert_int_eq(fault.kind, ENGINE_FAULT_ACCESS);
	ck_assert_uint_eq(fault.address, (uintptr_t)wild);
}
END_TEST

START_TEST(non_canonical_address_is_unknown)
{
	uint64_t wild = 0x8000000000000000ull;

	ck_assert_int_eq(run(kernel_store, &wild), 1);
	ck_assert_int_eq(fault.kind, ENGINE_FAULT_ACCESS);
#if defined(__x86_64__)
	ck_assert(!fault.address_known);
	ck_assert_uint_eq(fault.address, 0);
#endif
}
END_TEST

START_TEST(jump_to_zero_names_the_caller)
{
	void *null = NULL;

	engine_core_set_code(&core, (void *)kernel_jump, (char *)kernel_jump + 256);
	ck_assert_int_eq(run(kernel_jump, &null), 1);
	ck_assert_int_eq(fault.kind, ENGINE_FAULT_ACCESS);
	ck_assert_uint_eq(fault.pc, 0);
	ck_assert_uint_gt(fault.caller, (uintptr_t)kernel_jump);
	ck_assert_uint_lt(fault.caller, (uintptr_t)kernel_jump + 256);
}
END_TEST

START_TEST(illegal_arithmetic_trap)
{
	ck_assert_int_eq(run(kernel_illegal, NULL), 1);
	ck_assert_int_eq(fault.kind, ENGINE_FAULT_ILLEGAL);
#if defined(__x86_64__)
	ck_assert_int_eq(run(kernel_divide, NULL), 1);
	ck_assert_int_eq(fault.kind, ENGINE_FAULT_ARITHMETIC);
	ck_assert_int_eq(fault.si_code, FPE_INTDIV);
#endif
	ck_assert_int_eq(run(kernel_trap, NULL), 1);
	ck_assert_int_eq(fault.kind, ENGINE_FAULT_TRAP);
}
END_TEST

START_TEST(stack_overflow)
{
	ck_assert_int_eq(run(kernel_recurse, NULL), 1);
	ck_assert_int_eq(fault.kind, ENGINE_FAULT_STACK_OVERFLOW);
	ck_assert_int_eq(run(kernel_big_frame, NULL), 1);
	ck_assert_int_eq(fault.kind, ENGINE_FAULT_STACK_OVERFLOW);
}
END_TEST

START_TEST(overwriting_upwards)
{
	ck_assert_int_eq(run(kernel_smash, NULL), 1);
	ck_assert_int_eq(fault.kind, ENGINE_FAULT_ACCESS);
	ck_assert_ptr_eq((void *)(uintptr_t)fault.address, core.stack_high);
}
END_TEST

START_TEST(fault_inside_memcpy)
{
	char *target =
		mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *p[2] = { target, (void *)0x10000 };

	engine_core_set_code(&core, (void *)kernel_memcpy, (char *)kernel_memcpy + 256);
	ck_assert_int_eq(run(kernel_memcpy, p), 1);
	ck_assert_int_eq(fault.kind, ENGINE_FAULT_ACCESS);
	/* memcpy may start at either end */
	ck_assert_uint_ge(fault.address, 0x10000);
	ck_assert_uint_lt(fault.address, 0x10000 + (1 << 20));
	/* The pc is in libc, unless the compiler put the copy in place. */
	if (fault.pc - (uintptr_t)kernel_memcpy >= 256) {
		ck_assert_uint_gt(fault.caller, (uintptr_t)kernel_memcpy);
		ck_assert_uint_le(fault.caller, (uintptr_t)kernel_memcpy + 256);
	}
	munmap(target, 1 << 20);
}
END_TEST

START_TEST(bus_error_past_the_end_of_memory)
{
	int fd = memfd_create("check", MFD_CLOEXEC);
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	ck_assert_int_eq(run(kernel_store, &p), 1);
	ck_assert_int_eq(fault.kind, ENGINE_FAULT_BUS);
	ck_assert_uint_eq(fault.address, (uintptr_t)p);
	munmap(p, 4096);
	close(fd);
}
END_TEST

KERNEL static void kernel_kill_self(const void *args)
{
	(void)args;
	syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), SIGSEGV);
}

START_TEST(signal_sent_by_the_kernel_itself)
{
	ck_assert_int_eq(run(kernel_kill_self, NULL), 1);
	ck_assert_int_eq(fault.kind, ENGINE_FAULT_ACCESS);
	ck_assert(!fault.address_known);
}
END_TEST

#if defined(__x86_64__)

KERNEL static void kernel_cli(const void *args)
{
	(void)args;
	__asm__ volatile("cli");
}

KERNEL static void kernel_unmasked_fp(const void *args)
{
	unsigned int mxcsr = 0; /* every exception unmasked */
	volatile double x = 1.0;

	(void)args;
	__asm__ volatile("ldmxcsr %0" : : "m"(mxcsr));
	x = x / zero;
}

KERNEL static void kernel_x87_full(const void *args)
{
	unsigned short control = 0x340; /* every exception unmasked */

	(void)args;
	__asm__ volatile("fldcw %0" : : "m"(control));
	for (int i = 0; i < 10; i++)
		__asm__ volatile("fld1");
	__asm__ volatile("fwait");
}

KERNEL static void kernel_alignment_check(const void *args)
{
	static char bytes[16] __attribute__((aligned(16)));

	(void)args;
	__asm__ volatile("pushfq; orl $0x40000, (%%rsp); popfq; movl %%eax, 1(%0)"
			 :
			 : "r"(bytes)
			 : "memory", "cc");
}

KERNEL static void kernel_direction(const void *args)
{
	(void)args;
	__asm__ volatile("std; ud2");
}

KERNEL static void kernel_garbage_registers(const void *args)
{
	(void)args;
	__asm__ volatile("mov $-1, %rax; mov %rax, %rbx; mov %rax, %rcx; mov %rax, %r12;"
			 "mov %rax, %r13; mov %rax, %r14; mov %rax, %r15; mov %rax, %rbp;"
			 "mov %rax, %rsp; push %rax");
}

KERNEL static void kernel_single_step(const void *args)
{
	(void)args;
	__asm__ volatile("pushfq; orl $0x100, (%%rsp); popfq; nop; nop" : : : "cc", "memory");
}

KERNEL static void kernel_returns_dirty(const void *args)
{
	unsigned int mxcsr = 0x9fc0;	/* flush to zero, denormals are zero */
	unsigned short control = 0x07f; /* single precision */

	(void)args;
	__asm__ volatile("ldmxcsr %0; fldcw %1; pushfq; orl $0x40400, (%%rsp); popfq"
			 :
			 : "m"(mxcsr), "m"(control)
			 : "memory");
	/* returns with the direction and alignment flags set */
}

static void assert_clean_state(void)
{
	unsigned long flags;
	unsigned int mxcsr;
	unsigned short control;
	unsigned short x87[14];
	char odd[16] __attribute__((aligned(16))) = { 0 };
	volatile long double third = 1.0L;

	__asm__ volatile("pushfq; popq %0" : "=r"(flags));
	ck_assert_uint_eq(flags & 0x40500, 0);
	__asm__ volatile("stmxcsr %0" : "=m"(mxcsr));
	ck_assert_uint_eq(mxcsr & ~0x3fu, 0x1f80);
	__asm__ volatile("fnstcw %0" : "=m"(control));
	ck_assert_uint_eq(control, 0x37f);
	__asm__ volatile("fnstenv %0; fldenv %0" : "+m"(x87));
	ck_assert_uint_eq(x87[4], 0xffff); /* all eight x87 registers are empty */
	third /= 3;
	ck_assert(third * 3 > 0.99L);
	/* would be SIGBUS with the alignment check still on */
	__asm__ volatile("movl $1, 1(%0)" : : "r"(odd) : "memory");
	memmove(odd + 1, odd, 8);
}

START_TEST(clobbered_state_is_restored)
{
	void (*const kernels[])(const void *) = { kernel_cli,	     kernel_unmasked_fp,
						  kernel_x87_full,   kernel_alignment_check,
						  kernel_direction,  kernel_garbage_registers,
						  kernel_single_step };
	const enum engine_fault_kind kinds[] = { ENGINE_FAULT_ACCESS,	  ENGINE_FAULT_ARITHMETIC,
						 ENGINE_FAULT_ARITHMETIC, ENGINE_FAULT_BUS,
						 ENGINE_FAULT_ILLEGAL,	  ENGINE_FAULT_BUS,
						 ENGINE_FAULT_TRAP };

	for (size_t i = 0; i < sizeof(kernels) / sizeof(kernels[0]); i++) {
		ck_assert_int_eq(run(kernels[i], NULL), 1);
		if (kernels[i] !=
		    kernel_garbage_registers) /* SIGBUS: stack segment, not canonical */
			ck_assert_int_eq(fault.kind, kinds[i]);
		assert_clean_state();
	}
}
END_TEST

START_TEST(dirty_return_is_cleaned)
{
	ck_assert_int_eq(run(kernel_returns_dirty, NULL), 0);
	assert_clean_state();
}
END_TEST

#endif

static long resident_pages(void)
{
	long size = 0, resident = 0;
	FILE *file = fopen("/proc/self/statm", "re");

	ck_assert_ptr_nonnull(file);
	ck_assert_int_eq(fscanf(file, "%ld %ld", &size, &resident), 2);
	fclose(file);
	return resident;
}

START_TEST(ten_thousand_faults)
{
	void *null = NULL;
	long before;
	uint64_t start;

	ck_assert_int_eq(run(kernel_recurse, NULL), 1);
	for (int i = 0; i < 100; i++)
		ck_assert_int_eq(run(i & 1 ? kernel_illegal : kernel_store, &null), 1);
	resident_pages();
	before = resident_pages();
	start = now_ns();
	for (int i = 0; i < 10000; i++)
		if (run(i & 1 ? kernel_illegal : kernel_store, &null) != 1)
			ck_abort_msg("run %d did not fault", i);
	printf("fault and recovery: %.1f us\n", (double)(now_ns() - start) / 1e7);
	ck_assert_int_le(resident_pages() - before, 16);
}
END_TEST

KERNEL static void kernel_empty(const void *args)
{
	(void)args;
}

START_TEST(cost_of_a_normal_run)
{
	uint64_t start = now_ns();

	for (uint64_t i = 1; i <= 1000000; i++)
		engine_core_run(&core, kernel_empty, NULL, i, &fault);
	printf("run of an empty kernel: %.1f ns\n", (double)(now_ns() - start) / 1e6);
	/* Bounds an accident, such as a system call; a busy machine may be slow. */
	ck_assert_uint_lt(now_ns() - start, 1000000ull * 500);
}
END_TEST

START_TEST(fault_of_the_engine_itself_ends_it)
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		kernel_illegal(NULL); /* not through engine_core_run() */
		_exit(0);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), 128 + SIGILL);
}
END_TEST

START_TEST(bad_stack_size)
{
	static struct engine_core_fault small = { .stack_size = 4096 };
	static struct engine_core_fault huge = { .stack_size = SIZE_MAX - 4096 };

	ck_assert_int_eq(engine_core_init(&small), -EINVAL);
	ck_assert_int_eq(engine_core_init(&huge), -EINVAL);
	engine_core_fini(&small);
	for (int kind = 0; kind <= ENGINE_FAULT_ABORT + 1; kind++)
		ck_assert_uint_gt(strlen(engine_fault_kind_name(kind)), 4);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("fault");

	tcase_add_test(tcase, normal_run);
	tcase_add_test(tcase, null_and_wild_access);
	tcase_add_test(tcase, non_canonical_address_is_unknown);
	tcase_add_test(tcase, jump_to_zero_names_the_caller);
	tcase_add_test(tcase, illegal_arithmetic_trap);
	tcase_add_test(tcase, stack_overflow);
	tcase_add_test(tcase, overwriting_upwards);
	tcase_add_test(tcase, fault_inside_memcpy);
	tcase_add_test(tcase, bus_error_past_the_end_of_memory);
	tcase_add_test(tcase, signal_sent_by_the_kernel_itself);
#if defined(__x86_64__)
	tcase_add_test(tcase, clobbered_state_is_restored);
	tcase_add_test(tcase, dirty_return_is_cleaned);
#endif
	tcase_add_test(tcase, ten_thousand_faults);
	tcase_add_test(tcase, cost_of_a_normal_run);
	tcase_add_test(tcase, fault_of_the_engine_itself_ends_it);
	tcase_add_test(tcase, bad_stack_size);
	return run_suite("engine_fault", tcase);
}
