/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The public headers as C++: the lists of this directory as static assertions. What does not
 * agree does not compile; the count of constants goes to check_headers.c.
 */
#include <cstddef>

#include <acl/acl.h>
#include <acl/acl_platform.h>
#include <acl/acl_rt_allocator.h>
#include <acl/acl_rt_memory_soma.h>

extern "C" {
#include "tests/abi/prototypes.inc"
extern int headers_cxx_constants;
}

#define CONSTANT(name, value) static_assert((unsigned long long)(name) == \
	(unsigned long long)(value), #name);
#include "tests/abi/enums.inc"
#undef CONSTANT

#define SIZE(type, bytes) static_assert(sizeof(type) == bytes, #type);
#define FIELD(type, member, offset, bytes) \
	static_assert(offsetof(type, member) == offset, #type "." #member); \
	static_assert(sizeof(((type *)nullptr)->member) == bytes, #type "." #member);
#include "tests/abi/layout.inc"
#undef SIZE
#undef FIELD

#define CONSTANT(name, value) +1
int headers_cxx_constants = 0
#include "tests/abi/enums.inc"
;

/* dim3 has defaults in C++ only */
static_assert(sizeof(dim3(2)) == 12, "dim3");
