/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NPU_KERNEL_H
#define NPU_KERNEL_H
/*
 * Device side of a kernel source, for C (gnu11 or later) and C++ (C++17 or later). Compile the
 * source with npu-cc; it is not for host programs.
 *
 * A kernel is a function without a result that the device runs once for each block of a launch,
 * blocks in any order and at the same time:
 *
 *	#include <npu/npu_kernel.h>
 *
 *	NPU_KERNEL(saxpy, (float, a), (const float *, x), (float *, y), (uint32_t, n))
 *	{
 *		uint32_t chunk = (n + npu_block_num() - 1) / npu_block_num();
 *		uint32_t i = npu_block_idx() * chunk, end = i + chunk < n ? i + chunk : n;
 *
 *		for (; i < end; i++)
 *			y[i] += a * x[i];
 *	}
 *
 * Each parameter is a pair (type, name), up to 28 of them and 4096 bytes in all. A type is anything
 * that is copied byte by byte: numbers, bool, pointers, structures by value; no arrays. A type with
 * a comma in it needs a typedef. In a `(float *restrict, y)` the compiler may use the promise.
 *
 * In C++ an existing function becomes a kernel too:
 *
 *	NPU_EXPORT(fn)                       void fn(T...) in the current namespace, named "fn"
 *	NPU_EXPORT_AS(scale_f32, scale<float>)   any function with one address, under a name given
 *
 * NPU_KERNEL and NPU_EXPORT stand at file or namespace scope. The name is global in the image.
 *
 * What a kernel may call beyond its own functions is listed in npu_symbols.h: the functions of
 * <math.h> for float and double, memcpy, memmove, memset, memcmp, strlen, and abort, which ends the
 * kernel with a fault. Static data belongs to the loaded image and is shared by all blocks and
 * launches of it.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "npu_image.h"

#ifdef __cplusplus
extern "C" {
#define NPU_NOEXCEPT_ noexcept
#else
#define NPU_NOEXCEPT_
#endif

/* Index of the running block, 0 to npu_block_num() - 1. */
__attribute__((const)) uint32_t npu_block_idx(void) NPU_NOEXCEPT_;

/* Number of blocks of the launch. */
__attribute__((const)) uint32_t npu_block_num(void) NPU_NOEXCEPT_;

#ifdef __cplusplus
}
#define NPU_LINKAGE_ extern "C"
#define NPU_ASSERT_ static_assert
#define NPU_COPYABLE_(type) __is_trivially_copyable(type)
#else
#define NPU_LINKAGE_
#define NPU_ASSERT_ _Static_assert
#define NPU_COPYABLE_(type) 1
#endif

/*
 * Everything below is the making of NPU_KERNEL. NPU_EACH_(m, ...) expands m(x) for each x,
 * rescanned often enough for 28 of them and more; NPU_LIST_ does so with commas between.
 */
#define NPU_SCAN_(...) NPU_SCAN3_(NPU_SCAN3_(NPU_SCAN3_(__VA_ARGS__)))
#define NPU_SCAN3_(...) NPU_SCAN2_(NPU_SCAN2_(NPU_SCAN2_(__VA_ARGS__)))
#define NPU_SCAN2_(...) NPU_SCAN1_(NPU_SCAN1_(NPU_SCAN1_(__VA_ARGS__)))
#define NPU_SCAN1_(...) __VA_ARGS__
#define NPU_PARENS_ ()

#define NPU_EACH_(m, ...) __VA_OPT__(NPU_SCAN_(NPU_EACH_STEP_(m, __VA_ARGS__)))
#define NPU_EACH_STEP_(m, x, ...) m x __VA_OPT__(NPU_EACH_NEXT_ NPU_PARENS_ (m, __VA_ARGS__))
#define NPU_EACH_NEXT_() NPU_EACH_STEP_

#define NPU_LIST_(m, ...) __VA_OPT__(NPU_SCAN_(NPU_LIST_STEP_(m, __VA_ARGS__)))
#define NPU_LIST_STEP_(m, x, ...) m x __VA_OPT__(, NPU_LIST_NEXT_ NPU_PARENS_ (m, __VA_ARGS__))
#define NPU_LIST_NEXT_() NPU_LIST_STEP_

/* "void" when there is nothing between the parentheses. */
#define NPU_SECOND_(a, b, ...) b
#define NPU_VOID_(...) NPU_SECOND_(~ __VA_OPT__(,), void, ~)

#define NPU_ROUND_(size) (((size) + NPU_IMAGE_SLOT - 1) / NPU_IMAGE_SLOT * NPU_IMAGE_SLOT)

#define NPU_P_PARAM_(type, arg) __typeof__(type) arg
#define NPU_P_FIELD_(type, arg) __typeof__(type) arg __attribute__((aligned(8)));
#define NPU_P_LOAD_(type, arg) npu_a_->arg
#define NPU_P_ONE_(type, arg) "+1"
#define NPU_P_COUNT_(type, arg) + 1
#define NPU_P_SLOTS_(type, arg) + NPU_ROUND_(sizeof(type))
#define NPU_P_LONG_(type, arg) "	.long %c[npu_" #arg "]\n"
#define NPU_P_SIZE_(type, arg) [npu_##arg] "i" (sizeof(type))
#define NPU_P_CHECK_(type, arg) \
	NPU_ASSERT_(NPU_COPYABLE_(type), "kernel parameter '" #arg "' cannot be copied as bytes");

#ifdef __clang__
#define NPU_THUNK_ATTR_ __attribute__((used, noinline, visibility("hidden")))
#else
#define NPU_THUNK_ATTR_ __attribute__((used, noinline, noclone, visibility("hidden")))
#endif

/* The note of npu_image.h in two parts, with the count in between and the sizes after. */
#define NPU_NOTE_HEAD_(name) \
	"	.pushsection .note.npu,\"a\",@note\n" \
	"	.balign 4\n" \
	"	.long 4\n" \
	"	.long 772f - 771f\n" \
	"	.long 1\n" \
	"	.asciz \"" NPU_IMAGE_NOTE_NAME "\"\n" \
	"771:	.quad npu_thunk_" #name " - .\n" \
	"	.long %c[npu_args_size_]\n"
#define NPU_NOTE_TAIL_(name) \
	"	.asciz \"" #name "\"\n" \
	"772:	.balign 4\n" \
	"	.popsection\n"

#define NPU_KERNEL(name, ...) \
	struct npu_args_##name { \
		NPU_EACH_(NPU_P_FIELD_, __VA_ARGS__) \
	} __attribute__((packed, aligned(8), may_alias)); \
	static inline void name( \
		NPU_LIST_(NPU_P_PARAM_, __VA_ARGS__) NPU_VOID_(__VA_ARGS__)); \
	NPU_LINKAGE_ NPU_THUNK_ATTR_ void npu_thunk_##name(const void *npu_args_); \
	NPU_LINKAGE_ NPU_THUNK_ATTR_ void npu_thunk_##name(const void *npu_args_) \
	{ \
		const struct npu_args_##name *npu_a_ = (const struct npu_args_##name *)npu_args_; \
		enum { npu_size_ = 0 NPU_EACH_(NPU_P_SLOTS_, __VA_ARGS__) }; \
		NPU_EACH_(NPU_P_CHECK_, __VA_ARGS__) \
		NPU_ASSERT_(sizeof(#name) - 1 <= NPU_IMAGE_NAME_MAX, \
			"the name of kernel '" #name "' is longer than 255 characters"); \
		NPU_ASSERT_(0 NPU_EACH_(NPU_P_COUNT_, __VA_ARGS__) <= NPU_IMAGE_PARAMS_MAX, \
			"kernel '" #name "' has more than 28 parameters: use a structure"); \
		NPU_ASSERT_(npu_size_ <= NPU_IMAGE_ARGS_MAX, \
			"kernel '" #name "' has more than 4096 bytes of parameters: use a pointer"); \
		NPU_ASSERT_(npu_size_ == 0 || sizeof(struct npu_args_##name) == npu_size_, \
			"kernel '" #name "' has a parameter type that cannot be packed"); \
		__asm__ volatile(NPU_NOTE_HEAD_(name) \
			"	.long 0" NPU_EACH_(NPU_P_ONE_, __VA_ARGS__) "\n" \
			NPU_EACH_(NPU_P_LONG_, __VA_ARGS__) NPU_NOTE_TAIL_(name) \
			: : [npu_args_size_] "i" ((int)npu_size_) \
			__VA_OPT__(, NPU_LIST_(NPU_P_SIZE_, __VA_ARGS__))); \
		(void)npu_a_; \
		name(NPU_LIST_(NPU_P_LOAD_, __VA_ARGS__)); \
	} \
	static inline void name(NPU_LIST_(NPU_P_PARAM_, __VA_ARGS__) NPU_VOID_(__VA_ARGS__))

#ifdef __cplusplus
#include <type_traits>
#include <utility>

namespace npu_detail {

template <unsigned size> struct bytes {
	unsigned char b[size];
} __attribute__((may_alias));

template <class... P> struct params {
	static constexpr unsigned count = sizeof...(P);
	static constexpr unsigned sizes[count + 1] = { unsigned(sizeof(P))..., 0 };
	static constexpr bool copyable = (true && ... && __is_trivially_copyable(P));

	/* Bytes before parameter i; with i = count, bytes in all. */
	static constexpr unsigned offset(unsigned i)
	{
		return i ? offset(i - 1) + NPU_ROUND_(sizes[i - 1]) : 0;
	}

	static constexpr unsigned size(unsigned i)
	{
		return i < count ? sizes[i] : 0;
	}

	template <class F, std::size_t... I>
	static inline void run(F fn, const unsigned char *args, std::index_sequence<I...>)
	{
		(void)args;
		if constexpr (copyable)
			fn(__builtin_bit_cast(std::remove_cv_t<P>,
				*reinterpret_cast<const bytes<sizeof(P)> *>(args + offset(I)))...);
	}

	template <class F> static inline void call(F fn, const void *args)
	{
		run(fn, static_cast<const unsigned char *>(args),
			std::make_index_sequence<count>());
	}
};

template <class R, class... P> struct function : params<P...> {
	static constexpr bool is_void = std::is_void_v<R>;
};

template <class F> struct signature;
template <class R, class... P> struct signature<R (*)(P...)> : function<R, P...> {};
template <class R, class... P> struct signature<R (*)(P...) noexcept> : function<R, P...> {};

} /* namespace npu_detail */

#define NPU_X_LONG_(i) \
	"	.if %c[npu_n_] > " #i "\n" \
	"	.long %c[npu_" #i "]\n" \
	"	.endif\n"
#define NPU_X_SIZE_(i) [npu_##i] "i" (npu_sig_::size(i))
#define NPU_X_ALL_ (0), (1), (2), (3), (4), (5), (6), (7), (8), (9), (10), (11), (12), (13), (14), \
	(15), (16), (17), (18), (19), (20), (21), (22), (23), (24), (25), (26), (27)

#define NPU_EXPORT(fn) NPU_EXPORT_AS(fn, fn)
#define NPU_EXPORT_AS(name, ...) \
	extern "C" NPU_THUNK_ATTR_ void npu_thunk_##name(const void *npu_args_); \
	extern "C" NPU_THUNK_ATTR_ void npu_thunk_##name(const void *npu_args_) \
	{ \
		typedef npu_detail::signature<decltype(&__VA_ARGS__)> npu_sig_; \
		static_assert(npu_sig_::is_void, "kernel '" #name "' has a result: return void"); \
		static_assert(npu_sig_::copyable, \
			"kernel '" #name "' has a parameter that cannot be copied as bytes"); \
		static_assert(sizeof(#name) - 1 <= NPU_IMAGE_NAME_MAX, \
			"the name of kernel '" #name "' is longer than 255 characters"); \
		static_assert(npu_sig_::count <= NPU_IMAGE_PARAMS_MAX, \
			"kernel '" #name "' has more than 28 parameters: use a structure"); \
		static_assert(npu_sig_::offset(npu_sig_::count) <= NPU_IMAGE_ARGS_MAX, \
			"kernel '" #name "' has more than 4096 bytes of parameters: use a pointer"); \
		__asm__ volatile(NPU_NOTE_HEAD_(name) \
			"	.long %c[npu_n_]\n" \
			NPU_EACH_(NPU_X_LONG_, NPU_X_ALL_) NPU_NOTE_TAIL_(name) \
			: : [npu_args_size_] "i" (npu_sig_::offset(npu_sig_::count)), \
			[npu_n_] "i" (npu_sig_::count), NPU_LIST_(NPU_X_SIZE_, NPU_X_ALL_)); \
		npu_sig_::call(&__VA_ARGS__, npu_args_); \
	} \
	static_assert(true, "a semicolon follows")
#endif /* __cplusplus */

#endif
