/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels in C++ that check_image loads and runs. Compiled by npu-cc. */
#include <cmath>

#include <npu/npu_kernel.h>

struct vec4 {
	float x, y, z, w;
};

template <class T> static void scale(T *p, T by, unsigned n)
{
	for (unsigned i = npu_block_idx(); i < n; i += npu_block_num())
		p[i] = std::fabs(p[i]) * by;
}

NPU_EXPORT_AS(scale_f32, scale<float>);
NPU_EXPORT_AS(scale_f64, scale<double>);

namespace inner
{
static void hello(int *out) noexcept
{
	*out = 42;
}
NPU_EXPORT(hello);

NPU_KERNEL(vadd, (vec4 *, out), (vec4, a), (const vec4, b))
{
	*out = { a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w };
}
} /* namespace inner */

static void mixed(double *out, char c, bool b, const double d, vec4 v, __int128 w, short h)
{
	out[0] = c;
	out[1] = b;
	out[2] = d;
	out[3] = v.w;
	out[4] = (double)(int64_t)(w >> 64);
	out[5] = h;
}
NPU_EXPORT(mixed);

/* Virtual calls go through relocated tables. */
struct shape {
	virtual float area() const { return 0; }
	float a, b;
};

struct box : shape {
	float area() const override { return a * b; }
};

struct disc : shape {
	float area() const override { return 3 * a * a; }
};

__attribute__((noinline)) static float area_of(const shape *s)
{
	return s->area();
}

NPU_KERNEL(areas, (float *, out), (float, a), (float, b))
{
	box x;
	disc y;

	x.a = y.a = a;
	x.b = y.b = b;
	out[0] = area_of(&x);
	out[1] = area_of(&y);
}

NPU_KERNEL(nothing) {}
