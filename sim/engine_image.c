/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loading goes in four steps: check the view (engine_elf), count what the tables need and build
 * them in one mapping, map and relocate the segments, protect them. Until the last step nothing
 * of the image is executable; a failure unmaps all.
 */
#include "sim/engine_image.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "sim/engine_elf.h"
#include "sim/engine_symbols.h"

#define THUNK_PREFIX "npu_thunk_"
#define HASH_SLOTS   (2 * NPU_IMAGE_KERNELS_MAX) /* a power of two */

struct range {
	uint64_t start, end; /* relative to the image */
};

struct local {
	struct range code;
	const char *name;
};

/* Lies at the start of its own mapping, with the tables behind it. */
struct engine_image {
	size_t map_size;
	char *base; /* of the segments */
	size_t span;
	struct range code[ENGINE_ELF_SEGMENTS_MAX];
	unsigned int n_code;
	struct engine_func *funcs;
	uint32_t n_funcs;
	struct local *locals;
	uint32_t n_locals;
	uint16_t *hash;	    /* index + 1 of a function; more slots than functions */
	uint32_t hash_mask; /* slots - 1, slots a power of two */
};

struct counts {
	uint64_t funcs, params, locals, names;
};

static void *map_memory(uint64_t size, int prot)
{
	void *map = mmap(NULL, size, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return map == MAP_FAILED ? NULL : map;
}

/* Names of locals are shown as they are found, up to the length of a kernel's name. */
static size_t name_length(const char *name)
{
	return strnlen(name, NPU_IMAGE_NAME_MAX);
}

static int count(const struct engine_elf *elf, struct counts *ret_counts,
		 const struct engine_image_error *err)
{
	struct engine_elf_cursor cursor = { 0 };
	struct engine_elf_kernel kernel;
	struct engine_elf_symbol symbol;
	struct counts n = { 0 };
	int r;

	while ((r = engine_elf_next_kernel(elf, &cursor, &kernel, err)) > 0) {
		if (n.funcs == NPU_IMAGE_KERNELS_MAX)
			return engine_image_fail(err, -EFBIG,
						 "more than the %u kernels that one image may "
						 "have; split it",
						 NPU_IMAGE_KERNELS_MAX);
		n.funcs++;
		n.params += kernel.n_params;
		n.names += strlen(kernel.name) + 1;
	}
	if (r < 0)
		return r;
	if (!n.funcs)
		return engine_image_fail(err, -ENOEXEC,
					 "no kernel in the image; mark a function with NPU_KERNEL "
					 "and compile it with npu-cc");
	for (uint32_t i = 0; i < engine_elf_n_locals(elf); i++) {
		if (!engine_elf_local(elf, i, &symbol))
			continue;
		n.locals++;
		n.names += name_length(symbol.name) + 1;
	}
	*ret_counts = n;
	return 0;
}

static uint32_t hash_slots(uint64_t n_funcs)
{
	uint32_t slots = 2;

	while (slots < 2 * n_funcs)
		slots *= 2;
	return slots;
}

static uint32_t hash_of(const char *name)
{
	uint32_t h = 2166136261u;

	for (; *name; name++)
		h = (h ^ (uint8_t)*name) * 16777619u;
	return h ^ h >> 15;
}

/* Slot of that name, or the free one where it belongs. There are more slots than names. */
static uint16_t *hash_slot(const struct engine_image *image, const char *name)
{
	uint32_t at = hash_of(name) & image->hash_mask;

	while (image->hash[at] && strcmp(image->funcs[image->hash[at] - 1].name, name) != 0)
		at = (at + 1) & image->hash_mask;
	return &image->hash[at];
}

static char *copy_name(char **names, const char *name)
{
	size_t length = name_length(name);
	char *copy = *names;

	for (size_t i = 0; i < length; i++)
		copy[i] = name[i] > ' ' && name[i] <= '~' ? name[i] : '?';
	copy[length] = '\0';
	*names += length + 1;
	return copy;
}

static int build_tables(struct engine_image *image, const struct engine_elf *elf, uint32_t *sizes,
			char *names, const struct engine_image_error *err)
{
	struct engine_elf_cursor cursor = { 0 };
	struct engine_elf_kernel kernel;
	struct engine_elf_symbol symbol;
	int r;

	while ((r = engine_elf_next_kernel(elf, &cursor, &kernel, err)) > 0) {
		struct engine_func *func = &image->funcs[image->n_funcs];
		uint16_t *slot = hash_slot(image, kernel.name);

		if (*slot)
			return engine_image_fail(err, -ENOEXEC,
						 "kernel '%s' is in the image twice; rename one",
						 kernel.name);
		func->name = copy_name(&names, kernel.name);
		func->args_size = kernel.args_size;
		func->n_params = kernel.n_params;
		func->param_sizes = sizes;
		memcpy(sizes, kernel.sizes, kernel.n_params * sizeof(*sizes));
		sizes += kernel.n_params;
		func->entry = (void (*)(const void *))(image->base + kernel.thunk);
		*slot = (uint16_t)++image->n_funcs;
	}
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < engine_elf_n_locals(elf); i++) {
		if (!engine_elf_local(elf, i, &symbol))
			continue;
		image->locals[image->n_locals++] = (struct local){
			.code = { symbol.value, symbol.value + symbol.size },
			.name = copy_name(&names, symbol.name),
		};
	}
	return 0;
}

/* Reserves the address space of the segments, aligned as they want. */
static int reserve(struct engine_image *image, const struct engine_elf *elf,
		   const struct engine_image_error *err)
{
	uint64_t size = elf->span + elf->align - elf->page, head, tail;
	char *map = map_memory(size, PROT_NONE);

	if (!map)
		return engine_image_fail(err, -ENOMEM,
					 "no address space for %llu bytes of image; unload others",
					 (unsigned long long)size);
	head = -(uintptr_t)map & (elf->align - 1);
	tail = size - head - elf->span;
	if (head)
		munmap(map, head);
	if (tail)
		munmap(map + head + elf->span, tail);
	image->base = map + head;
	image->span = elf->span;
	return 0;
}

static void pages_of(const struct engine_elf *elf, const struct engine_elf_segment *s,
		     struct range *ret_pages)
{
	ret_pages->start = s->vaddr & ~(elf->page - 1);
	ret_pages->end = (s->vaddr + s->memsz + elf->page - 1) & ~(elf->page - 1);
}

static int copy_segments(struct engine_image *image, const struct engine_elf *elf,
			 const struct engine_image_error *err)
{
	for (unsigned int i = 0; i < elf->n_segments; i++) {
		const struct engine_elf_segment *s = &elf->segments[i];
		struct range pages;

		pages_of(elf, s, &pages);
		if (mprotect(image->base + pages.start, pages.end - pages.start,
			     PROT_READ | PROT_WRITE) < 0)
			return engine_image_fail(err, -ENOMEM,
						 "no memory for %llu bytes of image; unload others",
						 (unsigned long long)(pages.end - pages.start));
		memcpy(image->base + s->vaddr, elf->bytes + s->offset, s->filesz);
	}
	return 0;
}

static int resolve(const struct engine_image *image, const struct engine_elf *elf, uint32_t index,
		   uint64_t *ret_value, const struct engine_image_error *err)
{
	struct engine_elf_symbol symbol;
	int r;

	r = engine_elf_symbol(elf, index, &symbol, err);
	if (r < 0)
		return r;
	if (symbol.absolute)
		*ret_value = symbol.value;
	else if (symbol.defined)
		*ret_value = (uint64_t)(uintptr_t)image->base + symbol.value;
	else if (!index || !symbol.name[0])
		*ret_value = 0;
	else {
		*ret_value = engine_symbols_find(symbol.name);
		if (!*ret_value)
			return engine_image_fail(err, -EOPNOTSUPP,
						 "symbol '%.80s' is not provided by the device; "
						 "npu/npu_symbols.h lists what is",
						 symbol.name);
	}
	return 0;
}

static int relocate(struct engine_image *image, const struct engine_elf *elf,
		    const struct engine_image_error *err)
{
	uint64_t n = engine_elf_n_relocs(elf), value;
	int r;

	/* All symbols, not only those that a relocation uses: each missing one has a name. */
	for (uint32_t i = 0; i < engine_elf_n_symbols(elf); i++) {
		r = resolve(image, elf, i, &value, err);
		if (r < 0)
			return r;
	}
	for (uint64_t i = 0; i < n; i++) {
		struct engine_elf_reloc reloc;

		r = engine_elf_reloc(elf, i, &reloc, err);
		if (r < 0)
			return r;
		if (reloc.kind == ENGINE_ELF_RELOC_NONE)
			continue;
		value = (uint64_t)(uintptr_t)image->base;
		if (reloc.kind != ENGINE_ELF_RELOC_RELATIVE) {
			r = resolve(image, elf, reloc.symbol, &value, err);
			if (r < 0)
				return r;
		}
		if (reloc.kind != ENGINE_ELF_RELOC_SYMBOL)
			value += reloc.addend;
		memcpy(image->base + reloc.offset, &value, sizeof(value));
	}
	return 0;
}

static int protect(struct engine_image *image, const struct engine_elf *elf,
		   const struct engine_image_error *err)
{
	int failed = 0;

	for (unsigned int i = 0; i < elf->n_segments; i++) {
		const struct engine_elf_segment *s = &elf->segments[i];
		struct range pages;

		if (s->write)
			continue;
		pages_of(elf, s, &pages);
		if (s->exec) {
			__builtin___clear_cache(image->base + pages.start, image->base + pages.end);
			image->code[image->n_code++] = pages;
		}
		failed |= mprotect(image->base + pages.start, pages.end - pages.start,
				   s->exec ? PROT_READ | PROT_EXEC : PROT_READ);
	}
	if (elf->relro_end > elf->relro_start)
		failed |= mprotect(image->base + elf->relro_start,
				   elf->relro_end - elf->relro_start, PROT_READ);
	if (failed)
		return engine_image_fail(err, -ENOMEM, "cannot protect the image's memory: %s",
					 strerrorname_np(errno));
	return 0;
}

/* The image's own mapping: the object, then its tables. */
static struct engine_image *new_tables(const struct counts *n, uint32_t **ret_sizes,
				       char **ret_names)
{
	uint64_t size = sizeof(struct engine_image) + n->funcs * sizeof(struct engine_func) +
			n->locals * sizeof(struct local) + n->params * sizeof(uint32_t) +
			hash_slots(n->funcs) * sizeof(uint16_t) + n->names;
	struct engine_image *image = map_memory(size, PROT_READ | PROT_WRITE);

	if (!image)
		return NULL;
	image->map_size = size;
	image->hash_mask = hash_slots(n->funcs) - 1;
	image->funcs = (struct engine_func *)(image + 1);
	image->locals = (struct local *)(image->funcs + n->funcs);
	*ret_sizes = (uint32_t *)(image->locals + n->locals);
	image->hash = (uint16_t *)(*ret_sizes + n->params);
	*ret_names = (char *)(image->hash + hash_slots(n->funcs));
	return image;
}

int engine_image_load(const void *bytes, size_t size, struct engine_image **ret_image,
		      char *ret_error, size_t error_size)
{
	const struct engine_image_error err = { ret_error, error_size };
	struct engine_image *image;
	struct engine_elf elf;
	struct counts n = { 0 };
	uint32_t *sizes;
	char *names;
	int r;

	r = engine_elf_parse(bytes, size, &elf, &err);
	if (r < 0)
		return r;
	r = count(&elf, &n, &err);
	if (r < 0)
		return r;
	image = new_tables(&n, &sizes, &names);
	if (!image)
		return engine_image_fail(&err, -ENOMEM,
					 "no memory for the tables of %llu kernels; unload others",
					 (unsigned long long)n.funcs);
	r = reserve(image, &elf, &err);
	if (r == 0)
		r = build_tables(image, &elf, sizes, names, &err);
	if (r == 0)
		r = copy_segments(image, &elf, &err);
	if (r == 0)
		r = relocate(image, &elf, &err);
	if (r == 0)
		r = protect(image, &elf, &err);
	if (r < 0) {
		engine_image_free(image);
		return r;
	}
	mprotect(image, image->map_size, PROT_READ);
	*ret_image = image;
	return 0;
}

struct engine_image *engine_image_free(struct engine_image *image)
{
	if (image) {
		if (image->base)
			munmap(image->base, image->span);
		munmap(image, image->map_size);
	}
	return NULL;
}

uint32_t engine_image_n_funcs(const struct engine_image *image)
{
	return image->n_funcs;
}

const struct engine_func *engine_image_func(const struct engine_image *image, uint32_t index)
{
	return index < image->n_funcs ? &image->funcs[index] : NULL;
}

const struct engine_func *engine_image_find(const struct engine_image *image, const char *name)
{
	uint16_t index = *hash_slot(image, name);

	return index ? &image->funcs[index - 1] : NULL;
}

size_t engine_image_size(const struct engine_image *image)
{
	return image->span;
}

void engine_image_code(const struct engine_image *image, const void **ret_start,
		       const void **ret_end)
{
	/* There is code, since each kernel starts in it; segments ascend. */
	*ret_start = image->base + image->code[0].start;
	*ret_end = image->base + image->code[image->n_code - 1].end;
}

bool engine_image_contains(const struct engine_image *image, uint64_t pc)
{
	uint64_t offset = engine_image_offset(image, pc);

	for (unsigned int i = 0; i < image->n_code; i++) {
		if (offset >= image->code[i].start && offset < image->code[i].end)
			return true;
	}
	return false;
}

uint64_t engine_image_offset(const struct engine_image *image, uint64_t pc)
{
	return pc - (uint64_t)(uintptr_t)image->base;
}

static const struct engine_func *func_entered_at(const struct engine_image *image, uint64_t offset)
{
	for (uint32_t i = 0; i < image->n_funcs; i++) {
		if (engine_image_offset(image, (uint64_t)(uintptr_t)image->funcs[i].entry) ==
		    offset)
			return &image->funcs[i];
	}
	return NULL;
}

const char *engine_image_func_at(const struct engine_image *image, uint64_t pc)
{
	uint64_t offset = engine_image_offset(image, pc);

	if (!engine_image_contains(image, pc))
		return NULL;
	for (uint32_t i = 0; i < image->n_locals; i++) {
		const struct local *local = &image->locals[i];
		const struct engine_func *func;

		if (offset < local->code.start || offset >= local->code.end)
			continue;
		func = func_entered_at(image, local->code.start);
		if (func)
			return func->name;
		/* A part of a kernel that the compiler moved away: npu_thunk_NAME.cold */
		if (strncmp(local->name, THUNK_PREFIX, strlen(THUNK_PREFIX)) == 0)
			return local->name + strlen(THUNK_PREFIX);
		return local->name;
	}
	return NULL;
}
