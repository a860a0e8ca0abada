/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NPU_SIM_ENGINE_ELF_H
#define NPU_SIM_ENGINE_ELF_H

/*
 * engine_elf: a checked view of the bytes of a kernel image. Part of engine_image, which see for
 * where the bytes come from and for the error codes.
 *
 * engine_elf_parse() checks headers, segments and dynamic tables; afterwards every offset in the
 * view is known to lie inside the bytes. The view owns nothing and allocates nothing; it is
 * valid as long as the bytes are.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/include/npu/npu_image.h"

#define ENGINE_ELF_SEGMENTS_MAX 16u
#define ENGINE_ELF_SYMBOLS_MAX	65536u
#define ENGINE_ELF_ALIGN_MAX	(2u << 20)

/* Where a reason goes. text may be NULL when size is 0. */
struct engine_image_error {
	char *text;
	size_t size;
};

struct engine_elf_segment {
	uint64_t vaddr, memsz;
	uint64_t offset, filesz; /* filesz <= memsz */
	bool write, exec;	 /* never both */
};

/* Part of the bytes. */
struct engine_elf_range {
	const uint8_t *data;
	uint64_t size;
};

struct engine_elf {
	const uint8_t *bytes;
	size_t size;
	uint64_t page;
	struct engine_elf_segment segments[ENGINE_ELF_SEGMENTS_MAX]; /* ascending, no shared page */
	unsigned int n_segments;
	uint64_t span;	/* end of the last segment, whole pages, at most NPU_IMAGE_SIZE_MAX */
	uint64_t align; /* of the load address; a power of two, at least a page */
	uint64_t relro_start, relro_end; /* whole pages of a writable segment; equal when none */
	struct engine_elf_range notes[ENGINE_ELF_SEGMENTS_MAX];
	uint64_t note_vaddr[ENGINE_ELF_SEGMENTS_MAX];
	uint64_t note_align[ENGINE_ELF_SEGMENTS_MAX]; /* 4 or 8 */
	unsigned int n_notes;
	struct engine_elf_range symbols, strings; /* dynamic; strings end with a zero byte */
	struct engine_elf_range relocs[2];
	struct engine_elf_range locals, local_strings; /* .symtab, empty when there is none */
};

struct engine_elf_symbol {
	const char *name; /* "" when it has none */
	uint64_t value, size;
	bool defined, absolute, function;
};

enum engine_elf_reloc_kind {
	ENGINE_ELF_RELOC_NONE,
	ENGINE_ELF_RELOC_RELATIVE,   /* load address + addend */
	ENGINE_ELF_RELOC_SYMBOL,     /* symbol */
	ENGINE_ELF_RELOC_SYMBOL_ADD, /* symbol + addend */
};

struct engine_elf_reloc {
	enum engine_elf_reloc_kind kind;
	uint64_t offset; /* 8 bytes there lie in a writable segment; unset for NONE */
	uint32_t symbol;
	uint64_t addend;
};

/* Writes the reason, printable and ended by a zero byte, and returns code. */
__attribute__((format(printf, 3, 4))) int engine_image_fail(const struct engine_image_error *err,
							    int code, const char *format, ...);

/* Fills *ret_elf (also on failure, then without meaning). */
int engine_elf_parse(const void *bytes, size_t size, struct engine_elf *ret_elf,
		     const struct engine_image_error *err);

/* The segment that has [vaddr, vaddr + length) in memory; NULL when none has all of it. */
const struct engine_elf_segment *engine_elf_segment_of(const struct engine_elf *elf, uint64_t vaddr,
						       uint64_t length);

uint32_t engine_elf_n_symbols(const struct engine_elf *elf);
int engine_elf_symbol(const struct engine_elf *elf, uint32_t index,
		      struct engine_elf_symbol *ret_symbol, const struct engine_image_error *err);

/* Relocations of both tables, numbered through. */
uint64_t engine_elf_n_relocs(const struct engine_elf *elf);
int engine_elf_reloc(const struct engine_elf *elf, uint64_t index,
		     struct engine_elf_reloc *ret_reloc, const struct engine_image_error *err);

/* Functions of the symbol table that is not loaded: false when entry index is no usable one. */
uint32_t engine_elf_n_locals(const struct engine_elf *elf);
bool engine_elf_local(const struct engine_elf *elf, uint32_t index,
		      struct engine_elf_symbol *ret_symbol);

/* One kernel's note. */
struct engine_elf_kernel {
	const char *name; /* printable, 1 to NPU_IMAGE_NAME_MAX characters */
	uint64_t thunk;	  /* lies in an executable segment */
	uint32_t args_size, n_params;
	const uint8_t *sizes; /* n_params little-endian 32-bit values, checked */
};

struct engine_elf_cursor {
	unsigned int segment;
	uint64_t offset;
};

/*
 * The next kernel; the cursor starts zeroed. Returns 1, or 0 at the end, or an error.
 */
int engine_elf_next_kernel(const struct engine_elf *elf, struct engine_elf_cursor *cursor,
			   struct engine_elf_kernel *ret_kernel,
			   const struct engine_image_error *err);

#endif
