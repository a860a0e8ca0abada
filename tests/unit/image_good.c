/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels in C that check_image loads and runs. Compiled by npu-cc. */
#include <math.h>
#include <string.h>

#include <npu/npu_kernel.h>

struct odd {
	char c[3];
};

struct big {
	float a[6];
	int64_t z;
};

typedef float (*unary)(float);

static float twice(float x)
{
	return 2 * x;
}

/* Relocated data: one function of the image, one of the device. */
static const unary unaries[] = { twice, sinf, cosf };

static int calls;
static char aligned[8192] __attribute__((aligned(65536)));

NPU_KERNEL(nothing)
{
	calls++;
}

NPU_KERNEL(get_calls, (int *, out))
{
	*out = calls;
}

NPU_KERNEL(saxpy, (float, a), (const float *restrict, x), (float *restrict, y), (uint32_t, n))
{
	uint32_t chunk = (n + npu_block_num() - 1) / npu_block_num();
	uint32_t i = npu_block_idx() * chunk;
	uint32_t end = i + chunk < n ? i + chunk : n;

	for (; i < end; i++)
		y[i] += a * x[i];
}

NPU_KERNEL(mixed, (double *, out), (char, c), (bool, b), (const double, d), (struct odd, s),
	   (struct big, g), (__int128, w), (short, h), (float, f))
{
	out[0] = c;
	out[1] = b;
	out[2] = d;
	out[3] = s.c[0] * 100 + s.c[1] * 10 + s.c[2];
	out[4] = g.a[5];
	out[5] = (double)g.z;
	out[6] = (double)(int64_t)(w >> 64);
	out[7] = h;
	out[8] = f;
}

NPU_KERNEL(apply, (int, which), (float *, x))
{
	*x = unaries[which](*x);
}

NPU_KERNEL(maths, (double *, x))
{
	x[0] = pow(x[0], 2.5);
	x[1] = tgamma(x[1]);
	x[2] = remainder(x[2], 3.0);
	x[3] = fmaf(2.0f, 3.0f, (float)x[3]);
}

NPU_KERNEL(bytes, (char *, to), (const char *, from), (size_t, n), (uint64_t *, ret_aligned))
{
	memset(aligned, 'x', sizeof(aligned));
	memcpy(aligned, from, n);
	memmove(to, aligned, n + 1);
	*ret_aligned = (uint64_t)(uintptr_t)aligned;
}

/* Not inlined, so that a pc can lie in it. */
__attribute__((noinline)) static uint64_t here(void)
{
	uint64_t pc;

#ifdef __x86_64__
	__asm__ volatile("lea 0(%%rip), %0" : "=r"(pc));
#else
	__asm__ volatile("adr %0, ." : "=r"(pc));
#endif
	return pc;
}

NPU_KERNEL(where, (uint64_t *, out))
{
	out[0] = here();
}

NPU_KERNEL(trap)
{
	__builtin_abort();
}

#define INT(n) (int, a##n)
NPU_KERNEL(many, INT(0), INT(1), INT(2), INT(3), INT(4), INT(5), INT(6), INT(7), INT(8), INT(9),
	   INT(10), INT(11), INT(12), INT(13), INT(14), INT(15), INT(16), INT(17), INT(18), INT(19),
	   INT(20), INT(21), INT(22), INT(23), INT(24), INT(25), INT(26), (int *, out))
{
	const int all[] = { a0,	 a1,  a2,  a3,	a4,  a5,  a6,  a7,  a8,	 a9,  a10, a11, a12, a13,
			    a14, a15, a16, a17, a18, a19, a20, a21, a22, a23, a24, a25, a26 };

	*out = 0;
	for (unsigned int i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		*out += all[i] * (int)(i + 1);
}
