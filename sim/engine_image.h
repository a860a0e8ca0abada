/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NPU_SIM_ENGINE_IMAGE_H
#define NPU_SIM_ENGINE_IMAGE_H

/*
 * engine_image: a kernel image (client/include/npu/npu_image.h) loaded into this process.
 *
 * The bytes are a client's and count as hostile: everything is checked before use, nothing of them
 * runs while loading, and what is refused is refused with a reason that a person can act on. They
 * must be a copy that nobody else can write, since they are read more than once. After loading they
 * are not needed any more.
 *
 * The image takes anonymous memory: code readable and executable, constants readable, data
 * writable, nothing both writable and executable. Loading, freeing and the accessors use mmap,
 * munmap and mprotect and no other system call, no heap and no lock, so they work inside the
 * engine's sandbox.
 *
 * An image is immutable after loading; any thread may call the accessors, signal handlers too. The
 * owner frees it when no core runs its code.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct engine_image;

/* One kernel of an image. Everything lives as long as the image. */
struct engine_func {
	const char *name;
	uint32_t args_size; /* bytes of the packed arguments, a multiple of 8 */
	uint32_t n_params;
	const uint32_t *param_sizes;	 /* bytes, n_params of them */
	void (*entry)(const void *args); /* once a block; args aligned to 8 bytes */
};

/*
 * Loads an image. Returns 0, or with one line of text in ret_error (always ends with a zero
 * byte, printable): -ENOEXEC what is not an image or a damaged one; -EOPNOTSUPP asks for
 * something that the device does not have (a symbol, thread-local data, a constructor, ...);
 * -EFBIG over the limits; -ENOMEM.
 */
int engine_image_load(const void *bytes, size_t size, struct engine_image **ret_image,
		      char *ret_error, size_t error_size);

/* Unmaps it. NULL is nothing. Returns NULL. */
struct engine_image *engine_image_free(struct engine_image *image);

/* Kernels, in the order of the image; NULL past the end. At least one. */
uint32_t engine_image_n_funcs(const struct engine_image *image);
const struct engine_func *engine_image_func(const struct engine_image *image, uint32_t index);

/* The kernel of that name; NULL when there is none. */
const struct engine_func *engine_image_find(const struct engine_image *image, const char *name);

/* Bytes of address space that the image takes, without the engine's own tables. */
size_t engine_image_size(const struct engine_image *image);

/* First byte of code and first byte behind it: what lies between may hold constants as well. */
void engine_image_code(const struct engine_image *image, const void **ret_start,
		       const void **ret_end);

/* Whether pc lies in executable memory of the image. */
bool engine_image_contains(const struct engine_image *image, uint64_t pc);

/* pc as `addr2line -e image` takes it; pc must be contained. */
uint64_t engine_image_offset(const struct engine_image *image, uint64_t pc);

/*
 * The function that pc lies in, for messages: a kernel by its name, any other function by its
 * symbol when the image has a symbol table; NULL when unknown.
 */
const char *engine_image_func_at(const struct engine_image *image, uint64_t pc);

#endif
