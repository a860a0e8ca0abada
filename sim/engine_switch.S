/* SPDX-License-Identifier: Apache-2.0 */
/*
 * int engine_switch(void (*entry)(const void *), const void *args, void *stack_top,
 *                   struct engine_core_fault *core, uint64_t seq)
 *
 * Saves the callee-saved registers on the thread's stack and the stack pointer in core->sp, marks
 * seq as running, moves to stack_top and calls entry(args). Comes back in one of three ways:
 *   entry returns             0; flags and FP control are put right if the kernel changed them
 *   engine_switch_recover is  1; the signal handler put the program counter there and the
 *   reached from a signal     stack pointer to core->sp, and has cleared core->running
 *   core->aborted equals seq  1, entry is not called
 * The way back finds core through the thread pointer, not through the kernel stack or a register,
 * because kernel code may have overwritten either. core->running is set after core->sp and cleared
 * before the registers are popped, so that the handler may rewind at any instruction at which it
 * sees the mark.
 *
 * engine_switch_handler is what sigaction() gets: it clears flags and goes on to
 * engine_fault_handler(). Offsets in struct engine_core_fault are asserted in engine_fault.c.
 */
#define CORE_SP 0
#define CORE_RUNNING 8
#define CORE_ABORTED 16
#define CORE_FP_CONTROL 24
#define CORE_X87_CONTROL 28

	.text
	.hidden engine_core_self
	.hidden engine_switch
	.hidden engine_switch_recover
	.hidden engine_switch_handler
	.hidden engine_fault_handler

#if defined(__x86_64__)

#define FLAGS_CLEAN 0x202
#define FLAGS_AC_DF 0x40400
#define MXCSR_STATUS 0x3f

	.globl engine_switch
	.type engine_switch, @function
	.p2align 6
engine_switch:
	.cfi_startproc
	.cfi_undefined rip
	pushq %rbp
	pushq %rbx
	pushq %r12
	pushq %r13
	pushq %r14
	pushq %r15
	movq %rsp, CORE_SP(%rcx)
	movq %r8, CORE_RUNNING(%rcx)
	cmpq %r8, CORE_ABORTED(%rcx)
	je .Laborted
	movq %rdi, %rax
	movq %rsi, %rdi
	movq %rdx, %rsp
	xorl %ebp, %ebp
	call *%rax

	movq engine_core_self@gottpoff(%rip), %rcx
	movq %fs:(%rcx), %rcx
	movq CORE_SP(%rcx), %rsp
	stmxcsr -16(%rsp)
	fnstcw -24(%rsp)
	pushfq
	popq %rdx
	movl -16(%rsp), %eax
	andl $~MXCSR_STATUS, %eax
	xorl CORE_FP_CONTROL(%rcx), %eax
	movzwl -24(%rsp), %esi
	xorl CORE_X87_CONTROL(%rcx), %esi
	andl $FLAGS_AC_DF, %edx
	orl %esi, %eax
	orl %edx, %eax
	jnz .Ldirty
.Lclean:
	xorl %eax, %eax
.Lout:
	movq $0, CORE_RUNNING(%rcx)
	popq %r15
	popq %r14
	popq %r13
	popq %r12
	popq %rbx
	popq %rbp
	ret

.Laborted:
	movl $1, %eax
	jmp .Lout
.Ldirty:
	pushq $FLAGS_CLEAN
	popfq
	fldcw CORE_X87_CONTROL(%rcx)
	ldmxcsr CORE_FP_CONTROL(%rcx)
	jmp .Lclean

	.globl engine_switch_recover
	.type engine_switch_recover, @function
engine_switch_recover:
	movq engine_core_self@gottpoff(%rip), %rcx
	movq %fs:(%rcx), %rcx
	fninit
	fldcw CORE_X87_CONTROL(%rcx)
	ldmxcsr CORE_FP_CONTROL(%rcx)
	movl $1, %eax
	jmp .Lout
	.cfi_endproc
	.size engine_switch, . - engine_switch

	/* The kernel enters handlers with the alignment check as it was; C code may not bear it. */
	.globl engine_switch_handler
	.type engine_switch_handler, @function
engine_switch_handler:
	pushfq
	andl $~FLAGS_AC_DF, (%rsp)
	popfq
	jmp engine_fault_handler
	.size engine_switch_handler, . - engine_switch_handler

#elif defined(__aarch64__)

	.globl engine_switch
	.type engine_switch, %function
	.p2align 6
engine_switch:
	hint #34 /* bti c */
	stp x29, x30, [sp, #-160]!
	stp x19, x20, [sp, #16]
	stp x21, x22, [sp, #32]
	stp x23, x24, [sp, #48]
	stp x25, x26, [sp, #64]
	stp x27, x28, [sp, #80]
	stp d8, d9, [sp, #96]
	stp d10, d11, [sp, #112]
	stp d12, d13, [sp, #128]
	stp d14, d15, [sp, #144]
	mov x9, sp
	str x9, [x3, #CORE_SP]
	str x4, [x3, #CORE_RUNNING]
	ldr x10, [x3, #CORE_ABORTED]
	cmp x10, x4
	b.eq .Laborted
	mov x9, x0
	mov x0, x1
	mov sp, x2
	mov x29, xzr
	blr x9

	mrs x9, tpidr_el0
	adrp x10, :gottprel:engine_core_self
	ldr x10, [x10, #:gottprel_lo12:engine_core_self]
	ldr x3, [x9, x10]
	mrs x10, fpcr
	ldr w11, [x3, #CORE_FP_CONTROL]
	cmp x10, x11
	b.eq .Lfpcr_done
	msr fpcr, x11
.Lfpcr_done:
	mov w0, #0
.Lout:
	ldr x9, [x3, #CORE_SP]
	mov sp, x9
	str xzr, [x3, #CORE_RUNNING]
	ldp d14, d15, [sp, #144]
	ldp d12, d13, [sp, #128]
	ldp d10, d11, [sp, #112]
	ldp d8, d9, [sp, #96]
	ldp x27, x28, [sp, #80]
	ldp x25, x26, [sp, #64]
	ldp x23, x24, [sp, #48]
	ldp x21, x22, [sp, #32]
	ldp x19, x20, [sp, #16]
	ldp x29, x30, [sp], #160
	ret

.Laborted:
	mov w0, #1
	b .Lout

	.globl engine_switch_recover
	.type engine_switch_recover, %function
engine_switch_recover:
	mrs x9, tpidr_el0
	adrp x10, :gottprel:engine_core_self
	ldr x10, [x10, #:gottprel_lo12:engine_core_self]
	ldr x3, [x9, x10]
	ldr w11, [x3, #CORE_FP_CONTROL]
	msr fpcr, x11
	mov w0, #1
	b .Lout
	.size engine_switch, . - engine_switch

	.globl engine_switch_handler
	.type engine_switch_handler, %function
engine_switch_handler:
	hint #34 /* bti c */
	b engine_fault_handler
	.size engine_switch_handler, . - engine_switch_handler

#else
#error "engine_switch.S knows x86-64 and aarch64 only"
#endif

	.section .note.GNU-stack, "", %progbits
