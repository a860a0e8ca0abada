/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One image a value of BAD that the device must refuse; make_images.sh compiles and links them,
 * past the checks of npu-cc. C and C++.
 */
#include <npu/npu_kernel.h>

#define KERNEL(...) NPU_KERNEL(k, (int *, a)) { __VA_ARGS__ }

#if BAD == 1 /* thread_local of its own */
static __thread int counter;
KERNEL(*a = ++counter;)
#elif BAD == 2 /* thread_local of somebody else */
extern __thread int counter;
KERNEL(*a = counter;)
#elif BAD == 3 /* constructor */
static volatile int ready;
__attribute__((constructor)) static void set_up(void)
{
	ready = 1;
}
KERNEL(*a = ready;)
#elif BAD == 4 /* destructor */
static volatile int ready;
__attribute__((destructor)) static void tear_down(void)
{
	ready = 1;
}
KERNEL(*a = ready;)
#elif BAD == 5
#include <stdio.h>
KERNEL(printf("%d\n", *a);)
#elif BAD == 6
#include <errno.h>
KERNEL(*a = errno;)
#elif BAD == 7 /* ifunc seen as a symbol */
static int one(void)
{
	return 1;
}
static int (*choose(void))(void)
{
	return one;
}
__attribute__((visibility("default"), ifunc("choose"))) int chosen(void);
KERNEL(*a = chosen();)
#elif BAD == 8 /* ifunc without one */
static int one(void)
{
	return 1;
}
static int (*choose(void))(void)
{
	return one;
}
__attribute__((visibility("hidden"), ifunc("choose"))) int chosen(void);
KERNEL(*a = chosen();)
#elif BAD == 9 /* relocation in code */
__asm__(".pushsection .text\n.quad npu_block_idx\n.popsection\n");
KERNEL(*a = 1;)
#elif BAD == 10 /* program interpreter */
__attribute__((used, section(".interp"))) static const char interp[] = "/bin/sh";
KERNEL(*a = 1;)
#elif BAD == 11 /* no kernel */
__attribute__((visibility("default"))) int nothing(int a)
{
	return a;
}
#elif BAD == 12 /* too big in memory */
static char big[65 << 20];
KERNEL(big[*a] = 1; *a = big[*a + 1];)
#elif BAD == 13 || BAD == 14 /* same name twice; too many kernels */
KERNEL(*a = 1;)
__asm__(".pushsection .note.npu,\"a\",@note\n"
	".set i, 0\n"
#if BAD == 13
	".rept 2\n"
#else
	".rept 4096\n.set i, i + 1\n"
#endif
	".balign 4\n.long 4, 24, 1\n.asciz \"NPU\"\n.quad npu_thunk_k - .\n.long 0, 0\n"
	".byte 'A' + (i >> 12), 'A' + (i >> 8 & 15), 'A' + (i >> 4 & 15), 'A' + (i & 15)\n"
	".asciz \"---\"\n.endr\n.popsection\n");
#elif BAD == 15 /* weak and absent */
__attribute__((weak)) void maybe(void);
KERNEL(if (maybe) maybe(); *a = 1;)
#elif BAD == 16
KERNEL(char buffer[64] = { 0 }; __asm__ volatile("" : : "r"(buffer), "r"(a) : "memory");)
#elif BAD == 17 /* exceptions */
KERNEL(if (*a) throw 1; *a = 1;)
#elif BAD == 18 /* static local with a lock */
struct made {
	made();
	int value;
};
static volatile int seed;
made::made() : value(seed)
{
}
KERNEL(static made m; *a = m.value;)
#elif BAD == 19 /* pure virtual */
struct base {
	__attribute__((noinline)) base() { __asm__ volatile("" : : "r"(this) : "memory"); }
	virtual int get() = 0;
};
struct derived : base {
	int get() override { return 1; }
};
KERNEL(derived d; *a = d.get();)
#elif BAD == 20 /* good, for a link that is not */
KERNEL(*a = (int)npu_block_idx();)
#elif BAD == 21 /* data relocations in the compact form */
static int *volatile pointers[] = { (int *)pointers, (int *)(pointers + 1), (int *)pointers };
KERNEL(*a = *pointers[*a];)
#elif BAD == 22 /* what -D_FORTIFY_SOURCE calls */
void *__memcpy_chk(void *to, const void *from, size_t size, size_t room);
KERNEL(__memcpy_chk(a, a + 1, (size_t)*a, 8);)
#endif
