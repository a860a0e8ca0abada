/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * npu_shim_port.h - the few words of C library that kdrv/core uses, in the kernel and outside
 *
 * Nothing else of libc may be used by kdrv/core: fixed-width types, bool, NULL, errno numbers,
 * memcpy, memmove, memset, memcmp, checked arithmetic, bit searches and a list. Allocation, locks,
 * time, random bytes and logging come through struct npu_shim.
 */
#ifndef NPU_SHIM_PORT_H
#define NPU_SHIM_PORT_H

#ifdef __KERNEL__
#include <linux/bitops.h>
#include <linux/build_bug.h>
#include <linux/container_of.h>
#include <linux/errno.h>
#include <linux/overflow.h>
#include <linux/stddef.h>
#include <linux/string.h>
#include <linux/types.h>

#define npu_add_overflow(a, b, ret) check_add_overflow(a, b, ret)
#define npu_mul_overflow(a, b, ret) check_mul_overflow(a, b, ret)
#define npu_ctz32(x) ((unsigned int)__ffs(x))
#define npu_ctz64(x) ((unsigned int)__ffs64(x))
#define npu_popcount32(x) ((unsigned int)hweight32(x))
#define NPU_STATIC_ASSERT(expr, text) static_assert(expr, text)
#ifndef UINT32_MAX
#define UINT32_MAX U32_MAX
#define UINT64_MAX U64_MAX
#endif
#define npu_container_of(ptr, type, member) container_of(ptr, type, member)
#else
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define npu_add_overflow(a, b, ret) __builtin_add_overflow(a, b, ret)
#define npu_mul_overflow(a, b, ret) __builtin_mul_overflow(a, b, ret)
#define npu_ctz32(x) ((unsigned int)__builtin_ctz(x))
#define npu_ctz64(x) ((unsigned int)__builtin_ctzll(x))
#define npu_popcount32(x) ((unsigned int)__builtin_popcount(x))
#define NPU_STATIC_ASSERT(expr, text) _Static_assert(expr, text)
#define npu_container_of(ptr, type, member) ((type *)((char *)(ptr) - offsetof(type, member)))
#endif

#define NPU_ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* A doubly linked ring; an empty one, and an entry that is in none, points to itself. */
struct npu_list {
	struct npu_list *next;
	struct npu_list *prev;
};

static inline void npu_list_init(struct npu_list *list)
{
	list->next = list;
	list->prev = list;
}

static inline bool npu_list_empty(const struct npu_list *list)
{
	return list->next == list;
}

static inline void npu_list_add(struct npu_list *head, struct npu_list *entry)
{
	entry->prev = head->prev;
	entry->next = head;
	head->prev->next = entry;
	head->prev = entry;
}

static inline void npu_list_del(struct npu_list *entry)
{
	entry->prev->next = entry->next;
	entry->next->prev = entry->prev;
	npu_list_init(entry);
}

/* Bytes before the first NUL, at most max. */
static inline size_t npu_strnlen(const char *s, size_t max)
{
	size_t n = 0;

	while (n < max && s[n])
		n++;
	return n;
}

#endif
