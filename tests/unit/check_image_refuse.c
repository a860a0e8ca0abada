/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine_image: what it refuses and why. Images that ask for what the device lacks, images
 * damaged in one field, cut short anywhere, and mutated at random: a reason in one line each
 * time, nothing left mapped, no crash.
 */
#include "config.h"

#include <check.h>
#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "client/include/npu/npu_image.h"
#include "tests/unit/image_file.h"

/* An error text is one printable line. */
static void check_text(const char *what, const char *error)
{
	ck_assert_msg(error[0] != '\0', "%s: no reason", what);
	for (const char *c = error; *c; c++)
		ck_assert_msg(*c >= ' ' && *c <= '~', "%s: %s", what, error);
}

static void check_refused(const char *what, const uint8_t *bytes, size_t size, int code,
			  const char *text)
{
	struct engine_image *image = (struct engine_image *)&image;
	char error[256] = "";
	int r = engine_image_load(bytes, size, &image, error, sizeof(error));

	ck_assert_msg(r == code, "%s: %d instead of %d: %s", what, r, code, error);
	ck_assert_msg(strstr(error, text) != NULL, "%s: \"%s\" has no \"%s\"", what, error, text);
	check_text(what, error);
	ck_assert_ptr_eq(image, &image);
}

static const struct {
	const char *image;
	int code;
	const char *text;
} refused[] = {
	{ "tls", -EOPNOTSUPP, "thread_local" },
	{ "tls_extern", -EOPNOTSUPP, "symbol '__tls_get_addr' is not provided" },
	{ "constructor", -EOPNOTSUPP, "constructor" },
	{ "destructor", -EOPNOTSUPP, "destructor" },
	{ "init", -EOPNOTSUPP, "constructor" },
	{ "fini", -EOPNOTSUPP, "destructor" },
	{ "printf", -EOPNOTSUPP, "symbol 'printf' is not provided by the device" },
	{ "errno", -EOPNOTSUPP, "symbol '__errno_location' is not provided" },
	{ "stack_protector", -EOPNOTSUPP, "symbol '__stack_chk_fail' is not provided" },
	{ "fortify", -EOPNOTSUPP, "symbol '__memcpy_chk' is not provided" },
	{ "weak", -EOPNOTSUPP, "symbol 'maybe' is not provided" },
	{ "exceptions", -EOPNOTSUPP, "is not provided by the device" },
	{ "guard", -EOPNOTSUPP, "symbol '__cxa_guard_" },
	{ "pure", -EOPNOTSUPP, "symbol '__cxa_pure_virtual' is not provided" },
	{ "ifunc", -EOPNOTSUPP, "'chosen' is an ifunc" },
	{ "irelative", -EOPNOTSUPP, "ifunc or target_clones" },
	{ "textrel", -EOPNOTSUPP, "relocations in its code" },
	{ "relr", -EOPNOTSUPP, "RELR" },
	{ "interp", -EOPNOTSUPP, "interpreter" },
	{ "execstack", -EOPNOTSUPP, "executable stack" },
	{ "writable_code", -EOPNOTSUPP, "both writable and executable" },
	{ "needed", -EOPNOTSUPP, "shared library" },
	{ "gnu_hash", -ENOEXEC, "DT_HASH" },
	{ "nokernel", -ENOEXEC, "no kernel in the image" },
	{ "twice", -ENOEXEC, "kernel 'AAAA---' is in the image twice" },
	{ "toomany", -EFBIG, "more than the 4096 kernels" },
	{ "bigbss", -EFBIG, "64 MiB" },
	{ "object", -ENOEXEC, "object file" },
	{ "program", -ENOEXEC, "program" },
};

START_TEST(test_refused_images)
{
	struct image_file file = image_file_read(refused[_i].image);

	check_refused(refused[_i].image, file.bytes, file.size, refused[_i].code, refused[_i].text);
	free(file.bytes);
}
END_TEST

START_TEST(test_not_an_image)
{
	uint8_t *page = calloc(1, 4096), *large = malloc(NPU_IMAGE_SIZE_MAX + 1);

	ck_assert(page && large);
	check_refused("empty", page, 0, -ENOEXEC, "empty");
	check_refused("null", NULL, 0, -ENOEXEC, "empty");
	check_refused("zeros", page, 4096, -ENOEXEC, "does not start as an ELF file");
	memcpy(page, ELFMAG, SELFMAG);
	check_refused("magic alone", page, SELFMAG, -ENOEXEC, "cut short");
	check_refused("magic and zeros", page, 4096, -ENOEXEC, "another machine");
	memcpy(page, "\177EL", 3);
	check_refused("three bytes", page, 3, -ENOEXEC, "does not start");
	check_refused("text", (const uint8_t *)"int main(void) {}", 17, -ENOEXEC, "does not start");
	check_refused("large", large, NPU_IMAGE_SIZE_MAX + 1, -EFBIG, "64 MiB");
	free(page);
	free(large);
}
END_TEST

START_TEST(test_small_error_buffers)
{
	struct image_file file = image_file_read("printf");
	struct engine_image *image = NULL;
	char error[8];

	for (size_t size = 0; size <= sizeof(error); size++) {
		memset(error, 'x', sizeof(error));
		ck_assert_int_eq(engine_image_load(file.bytes, file.size, &image, error, size),
				 -EOPNOTSUPP);
		if (size)
			ck_assert_uint_eq(strnlen(error, sizeof(error)), size - 1);
		for (size_t i = size; i < sizeof(error); i++)
			ck_assert_int_eq(error[i], 'x');
	}
	ck_assert_int_eq(engine_image_load(file.bytes, file.size, &image, NULL, 0), -EOPNOTSUPP);
	free(file.bytes);
}
END_TEST

/* A good image to damage: one field at a time, then whole again. */
struct victim {
	struct image_file file;
	Elf64_Ehdr *header;
	Elf64_Phdr *segments;
};

static struct victim victim_open(const char *name)
{
	struct victim v = { .file = image_file_read(name) };

	v.header = (Elf64_Ehdr *)v.file.bytes;
	v.segments = (Elf64_Phdr *)(v.file.bytes + v.header->e_phoff);
	return v;
}

static Elf64_Phdr *segment(struct victim *v, uint32_t type, uint32_t flags)
{
	for (unsigned int i = 0; i < v->header->e_phnum; i++) {
		if (v->segments[i].p_type == type && (!flags || v->segments[i].p_flags == flags))
			return &v->segments[i];
	}
	ck_abort_msg("no segment of type %u", type);
	return NULL;
}

/* Writable bytes at a loaded address; for the image's tables, which are in the file. */
static void *at(struct victim *v, uint64_t vaddr)
{
	for (unsigned int i = 0; i < v->header->e_phnum; i++) {
		Elf64_Phdr *p = &v->segments[i];

		if (p->p_type == PT_LOAD && vaddr >= p->p_vaddr && vaddr - p->p_vaddr < p->p_filesz)
			return v->file.bytes + p->p_offset + (vaddr - p->p_vaddr);
	}
	ck_abort_msg("nothing at 0x%lx", (unsigned long)vaddr);
	return NULL;
}

static Elf64_Dyn *dynamic(struct victim *v, int64_t tag)
{
	Elf64_Dyn *d = at(v, segment(v, PT_DYNAMIC, 0)->p_vaddr);

	while (d->d_tag != tag) {
		ck_assert_int_ne(d->d_tag, DT_NULL);
		d++;
	}
	return d;
}

/* The description of the first kernel's note. */
static uint8_t *kernel_note(struct victim *v)
{
	Elf64_Phdr *p = segment(v, PT_NOTE, 0);
	uint8_t *bytes = at(v, p->p_vaddr);

	for (uint64_t i = 0; i + 16 <= p->p_filesz; i += 4) {
		if (memcmp(bytes + i + 12, NPU_IMAGE_NOTE_NAME, 4) == 0)
			return bytes + i + 16;
	}
	ck_abort_msg("no kernel note");
	return NULL;
}

#define DAMAGE(v, field, value, code, text)                                                    \
	do {                                                                                   \
		__typeof__(field) old_ = (field);                                              \
		(field) = (__typeof__(field))(value);                                          \
		check_refused(#field " = " #value, (v).file.bytes, (v).file.size, code, text); \
		(field) = old_;                                                                \
	} while (0)

static void check_whole(struct victim *v)
{
	struct engine_image *image;
	char error[256] = "";
	int r = engine_image_load(v->file.bytes, v->file.size, &image, error, sizeof(error));

	ck_assert_msg(r == 0, "%d: %s", r, error);
	engine_image_free(image);
	free(v->file.bytes);
}

START_TEST(test_damaged_header)
{
	struct victim v = victim_open("good_c");
	Elf64_Ehdr *h = v.header;

	DAMAGE(v, h->e_ident[EI_MAG3], 'f', -ENOEXEC, "does not start");
	DAMAGE(v, h->e_ident[EI_CLASS], ELFCLASS32, -ENOEXEC, "another machine");
	DAMAGE(v, h->e_ident[EI_DATA], ELFDATA2MSB, -ENOEXEC, "another machine");
	DAMAGE(v, h->e_ident[EI_VERSION], 0, -ENOEXEC, "version");
	DAMAGE(v, h->e_ident[EI_OSABI], ELFOSABI_FREEBSD, -ENOEXEC, "ABI");
	DAMAGE(v, h->e_machine, EM_S390, -ENOEXEC, "another machine (ELF machine 22)");
	DAMAGE(v, h->e_version, 2, -ENOEXEC, "version");
	DAMAGE(v, h->e_type, ET_EXEC, -ENOEXEC, "program");
	DAMAGE(v, h->e_type, ET_REL, -ENOEXEC, "object file");
	DAMAGE(v, h->e_type, ET_CORE, -ENOEXEC, "type 4");
	DAMAGE(v, h->e_ehsize, 0, -ENOEXEC, "damaged");
	DAMAGE(v, h->e_phentsize, 32, -ENOEXEC, "damaged");
	DAMAGE(v, h->e_phnum, 0, -ENOEXEC, "damaged");
	DAMAGE(v, h->e_phnum, 65535, -ENOEXEC, "cut short");
	DAMAGE(v, h->e_phoff, UINT64_MAX, -ENOEXEC, "cut short");
	DAMAGE(v, h->e_phoff, v.file.size, -ENOEXEC, "cut short");
	DAMAGE(v, h->e_shoff, UINT64_MAX - 8, -ENOEXEC, "cut short");
	check_whole(&v);
}
END_TEST

START_TEST(test_damaged_segments)
{
	struct victim v = victim_open("good_c");
	Elf64_Phdr *code = segment(&v, PT_LOAD, PF_R | PF_X),
		   *data = segment(&v, PT_LOAD, PF_R | PF_W);
	Elf64_Phdr *note = segment(&v, PT_NOTE, 0), *dyn = segment(&v, PT_DYNAMIC, 0);
	Elf64_Phdr *relro = segment(&v, PT_GNU_RELRO, 0), *stack = segment(&v, PT_GNU_STACK, 0);

	DAMAGE(v, code->p_flags, PF_R | PF_W | PF_X, -EOPNOTSUPP, "both writable and executable");
	DAMAGE(v, code->p_flags, PF_R, -ENOEXEC, "does not start in the image's code");
	DAMAGE(v, stack->p_flags, PF_R | PF_W | PF_X, -EOPNOTSUPP, "executable stack");
	DAMAGE(v, stack->p_type, PT_TLS, -EOPNOTSUPP, "thread_local");
	DAMAGE(v, stack->p_type, PT_INTERP, -EOPNOTSUPP, "interpreter");
	DAMAGE(v, code->p_offset, UINT64_MAX, -ENOEXEC, "cut short");
	DAMAGE(v, code->p_offset, v.file.size - 1, -ENOEXEC, "cut short");
	DAMAGE(v, code->p_filesz, UINT64_MAX, -ENOEXEC, "cut short");
	DAMAGE(v, code->p_memsz, 1, -ENOEXEC, "cut short");
	DAMAGE(v, code->p_memsz, 65u << 20, -EFBIG, "64 MiB");
	DAMAGE(v, code->p_memsz, UINT64_MAX, -EFBIG, "64 MiB");
	DAMAGE(v, code->p_vaddr, UINT64_MAX - 4095, -EFBIG, "64 MiB");
	DAMAGE(v, code->p_vaddr, 0, -ENOEXEC, "overlap");
	DAMAGE(v, code->p_memsz, 1u << 20, -ENOEXEC, "overlap");
	DAMAGE(v, code->p_align, 3, -EOPNOTSUPP, "aligned");
	DAMAGE(v, code->p_align, 1ull << 40, -EOPNOTSUPP, "aligned");
	DAMAGE(v, data->p_flags, PF_R, -ENOEXEC, "");
	DAMAGE(v, dyn->p_type, PT_NULL, -ENOEXEC, "no dynamic segment");
	DAMAGE(v, dyn->p_vaddr, UINT64_MAX - 15, -ENOEXEC, "damaged dynamic");
	DAMAGE(v, dyn->p_filesz, UINT64_MAX, -ENOEXEC, "damaged dynamic");
	DAMAGE(v, dyn->p_filesz, 8, -ENOEXEC, "no end");
	DAMAGE(v, stack->p_type, PT_DYNAMIC, -ENOEXEC, "damaged dynamic");
	DAMAGE(v, note->p_type, PT_NULL, -ENOEXEC, "no kernel");
	DAMAGE(v, note->p_vaddr, 1u << 30, -ENOEXEC, "damaged note");
	DAMAGE(v, note->p_filesz, UINT64_MAX, -ENOEXEC, "damaged note");
	DAMAGE(v, note->p_filesz, note->p_filesz - 5, -ENOEXEC, "note is cut short");
	DAMAGE(v, note->p_align, 16, -ENOEXEC, "damaged note");
	DAMAGE(v, relro->p_vaddr, code->p_vaddr, -ENOEXEC, "damaged read-only data");
	DAMAGE(v, relro->p_memsz, UINT64_MAX, -ENOEXEC, "damaged read-only data");
	check_whole(&v);
}
END_TEST

START_TEST(test_damaged_dynamic_tables)
{
	struct victim v = victim_open("good_c");
	uint32_t *hash = at(&v, dynamic(&v, DT_HASH)->d_un.d_ptr);
	Elf64_Sym *symbols = at(&v, dynamic(&v, DT_SYMTAB)->d_un.d_ptr);
	Elf64_Rela *rela = at(&v, dynamic(&v, DT_RELA)->d_un.d_ptr);
	uint64_t n = dynamic(&v, DT_RELASZ)->d_un.d_val / sizeof(*rela);
	Elf64_Dyn *flags = dynamic(&v, DT_FLAGS), *flags_1 = dynamic(&v, DT_FLAGS_1);
	Elf64_Rela *last = &rela[n - 1]; /* names a symbol: RELATIVE ones come first */

	DAMAGE(v, flags->d_un.d_val, DF_TEXTREL, -EOPNOTSUPP, "in its code");
	DAMAGE(v, flags->d_un.d_val, DF_STATIC_TLS, -EOPNOTSUPP, "thread_local");
	DAMAGE(v, flags_1->d_tag, DT_VERNEED, -EOPNOTSUPP, "versions");
	DAMAGE(v, flags_1->d_tag, DT_REL, -EOPNOTSUPP, "REL");
	DAMAGE(v, flags_1->d_tag, DT_PREINIT_ARRAY, -EOPNOTSUPP, "constructor");
	DAMAGE(v, flags_1->d_tag, DT_AUXILIARY, -EOPNOTSUPP, "another object");
	DAMAGE(v, dynamic(&v, DT_HASH)->d_un.d_ptr, UINT64_MAX, -ENOEXEC, "damaged dynamic");
	DAMAGE(v, dynamic(&v, DT_SYMENT)->d_un.d_val, 16, -ENOEXEC, "damaged dynamic");
	DAMAGE(v, dynamic(&v, DT_RELAENT)->d_un.d_val, 8, -ENOEXEC, "damaged dynamic");
	DAMAGE(v, dynamic(&v, DT_SYMTAB)->d_un.d_ptr, 1ull << 62, -ENOEXEC, "damaged symbol");
	DAMAGE(v, dynamic(&v, DT_STRTAB)->d_un.d_ptr, 1ull << 62, -ENOEXEC, "damaged symbol");
	DAMAGE(v, dynamic(&v, DT_STRSZ)->d_un.d_val, UINT64_MAX, -ENOEXEC, "damaged symbol");
	DAMAGE(v, dynamic(&v, DT_STRSZ)->d_un.d_val, 0, -ENOEXEC, "no symbol table");
	DAMAGE(v, dynamic(&v, DT_STRSZ)->d_un.d_val, 3, -ENOEXEC, "damaged symbol");
	DAMAGE(v, dynamic(&v, DT_RELA)->d_un.d_ptr, 1ull << 30, -ENOEXEC, "damaged symbol");
	DAMAGE(v, dynamic(&v, DT_RELASZ)->d_un.d_val, UINT64_MAX, -ENOEXEC, "damaged symbol");
	DAMAGE(v, hash[1], UINT32_MAX, -EFBIG, "dynamic symbols");
	DAMAGE(v, hash[1], 60000, -ENOEXEC, "damaged symbol");
	DAMAGE(v, symbols[1].st_name, UINT32_MAX, -ENOEXEC, "no name");
	DAMAGE(v, symbols[1].st_info, STT_TLS, -EOPNOTSUPP, "thread_local");
	DAMAGE(v, symbols[1].st_info, STT_GNU_IFUNC, -EOPNOTSUPP, "ifunc");
	DAMAGE(v, symbols[1].st_shndx, SHN_COMMON, -ENOEXEC, "common");
	symbols[1].st_value = UINT64_MAX;
	DAMAGE(v, symbols[1].st_shndx, 1, -ENOEXEC, "outside the image");
	symbols[1].st_value = 0;
	DAMAGE(v, last->r_info, ELF64_R_INFO(100000, ELF64_R_TYPE(last->r_info)), -ENOEXEC,
	       "names symbol 100000");
	DAMAGE(v, last->r_info, ELF64_R_INFO(1, 200), -EOPNOTSUPP, "type 200");
	DAMAGE(v, last->r_offset, 0, -ENOEXEC, "not in writable data");
	DAMAGE(v, last->r_offset, UINT64_MAX - 3, -ENOEXEC, "not in writable data");
	DAMAGE(v, last->r_offset, segment(&v, PT_LOAD, PF_R | PF_X)->p_vaddr, -ENOEXEC,
	       "not in writable data");
#ifdef __x86_64__
	DAMAGE(v, last->r_info, ELF64_R_INFO(0, R_X86_64_IRELATIVE), -EOPNOTSUPP, "ifunc");
	DAMAGE(v, last->r_info, ELF64_R_INFO(0, R_X86_64_DTPMOD64), -EOPNOTSUPP, "thread_local");
	DAMAGE(v, last->r_info, ELF64_R_INFO(1, R_X86_64_COPY), -EOPNOTSUPP, "type 5");
#endif
	check_whole(&v);
}
END_TEST

START_TEST(test_damaged_kernel_note)
{
	struct victim v = victim_open("good_c");
	uint8_t *desc = kernel_note(&v), *name;
	uint32_t *words = (uint32_t *)(void *)desc; /* thunk, thunk, args_size, n_params, sizes */

	while (!words[3]) /* the first kernels have no parameters */
		words = (uint32_t *)((uint8_t *)words + ((words[-3] + 3) & ~3u) + 16);
	desc = (uint8_t *)words;
	name = desc + NPU_IMAGE_DESC_SIZES + 4 * words[3];
	ck_assert_str_eq((char *)name, "get_calls");
	DAMAGE(v, words[-2], 2, -EOPNOTSUPP, "newer device");
	DAMAGE(v, words[-3], 12, -ENOEXEC, "note is cut short");
	DAMAGE(v, words[-3], UINT32_MAX, -ENOEXEC, "note is cut short");
	DAMAGE(v, words[-3], 16 + 4 * words[3], -ENOEXEC, "no name");
	DAMAGE(v, words[0], INT_MAX, -ENOEXEC, "does not start in the image's code");
	DAMAGE(v, words[1], INT_MAX, -ENOEXEC, "does not start in the image's code");
	DAMAGE(v, words[2], words[2] + 8, -ENOEXEC, "do not add up");
	DAMAGE(v, words[2], UINT32_MAX, -EFBIG, "takes 28 and 4096");
	DAMAGE(v, words[3], 29, -EFBIG, "takes 28 and 4096");
	DAMAGE(v, words[3], 28, -ENOEXEC, "no name");
	DAMAGE(v, words[4], 0, -ENOEXEC, "parameter 0 of kernel 'get_calls' has no size");
	DAMAGE(v, words[4], UINT32_MAX, -ENOEXEC, "do not add up");
	DAMAGE(v, name[0], '\n', -ENOEXEC, "no name");
	DAMAGE(v, name[3], ' ', -ENOEXEC, "no name");
	DAMAGE(v, name[3], 0, -ENOEXEC, "no name");
	DAMAGE(v, name[9], 'x', -ENOEXEC, "no name");
	memcpy(name, "npu_blo", 7); /* a good name, nothing to refuse */
	check_whole(&v);
}
END_TEST

START_TEST(test_unprintable_symbol_is_shown_without_harm)
{
	struct victim v = victim_open("printf");
	char *strings = at(&v, dynamic(&v, DT_STRTAB)->d_un.d_ptr);
	char *name = memmem(strings, dynamic(&v, DT_STRSZ)->d_un.d_val, "printf", 6);

	ck_assert_ptr_nonnull(name);
	memcpy(name, "\033[2J\n\t", 6);
	check_refused("escape", v.file.bytes, v.file.size, -EOPNOTSUPP,
		      "'?[2J?\?' is not provided");
	free(v.file.bytes);
}
END_TEST

static const char *const whole[] = { "good_c", "good_g", "good_cxx", "good_stripped" };

/* Every length: a copy of exactly that many bytes, so that a sanitizer sees a read behind it. */
START_TEST(test_cut_short)
{
	struct image_file file = image_file_read(whole[_i]);

	for (size_t size = 0; size < file.size; size += size < 4096 ? 1 : 16) {
		uint8_t *part = malloc(size ? size : 1);
		char what[32];

		memcpy(part, file.bytes, size);
		snprintf(what, sizeof(what), "%zu bytes", size);
		check_refused(what, part, size, -ENOEXEC,
			      size == 0	     ? "empty" :
			      size < SELFMAG ? "does not start" :
					       "cut short");
		free(part);
	}
	free(file.bytes);
}
END_TEST

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state * 0x2545f4914f6cdd1dull;
}

static void mutate(uint8_t *bytes, size_t size, uint64_t *state)
{
	static const uint64_t values[] = {
		0,
		1,
		2,
		7,
		8,
		0x1000,
		0x7fffffff,
		0x80000000,
		0xffffffff,
		1ull << 32,
		0x7fffffffffffffff,
		0x8000000000000000,
		0xfffffffffffff000,
		0xffffffffffffffff,
	};
	unsigned int n = 1 + next_random(state) % 6;

	while (n--) {
		uint64_t r = next_random(state), width = 1ull << (r >> 8) % 4;
		/* Headers, notes and tables come first in the file, data relocations are rare. */
		size_t part = r % 4 ? (size < 4096 ? size : 4096) : size;
		size_t where = (next_random(state) % part) & ~(width - 1);
		uint64_t value;

		if (where + width > size)
			continue;
		value = r >> 16 & 1 ? values[(r >> 20) % (sizeof(values) / sizeof(values[0]))] :
				      next_random(state);
		if (r >> 17 & 1)
			bytes[where] ^= (uint8_t)(1u << (r >> 40) % 8);
		else
			memcpy(bytes + where, &value, width);
	}
}

/* What was taken must hold what the header promises; nothing of it is run. */
static void check_taken(struct engine_image *image)
{
	uint32_t n = engine_image_n_funcs(image);
	const void *start, *end;

	ck_assert_uint_ge(n, 1);
	engine_image_code(image, &start, &end);
	ck_assert(start < end);
	for (uint32_t i = 0; i < n; i++) {
		const struct engine_func *func = engine_image_func(image, i);
		uint64_t entry = (uint64_t)(uintptr_t)func->entry, slots = 0;
		const char *name;

		ck_assert(engine_image_contains(image, entry));
		ck_assert_uint_lt(engine_image_offset(image, entry), engine_image_size(image));
		ck_assert_ptr_eq(engine_image_find(image, func->name), func);
		check_text("name", func->name);
		for (uint32_t k = 0; k < func->n_params; k++)
			slots += (func->param_sizes[k] + 7ull) / 8;
		ck_assert_uint_eq(slots * 8, func->args_size);
		name = engine_image_func_at(image, entry);
		if (name && *name)
			check_text("function", name);
	}
}

#ifdef NPU_SANITIZERS
#define ROUNDS 1200 /* each is ten times as slow; fuzz_image goes on where this ends */
#else
#define ROUNDS 5500
#endif

START_TEST(test_mutations)
{
	struct image_file file = image_file_read(whole[_i]);
	uint64_t state = 0x9e3779b97f4a7c15ull + (uint64_t)_i;
	unsigned int taken = 0, rounds = ROUNDS;
	uint8_t *bytes = malloc(file.size);

	for (unsigned int i = 0; i < rounds; i++) {
		struct engine_image *image;
		char error[160] = "";
		int r;

		memcpy(bytes, file.bytes, file.size);
		mutate(bytes, file.size, &state);
		r = engine_image_load(bytes, file.size, &image, error, sizeof(error));
		if (r == 0) {
			check_taken(image);
			engine_image_free(image);
			taken++;
			continue;
		}
		ck_assert(r == -ENOEXEC || r == -EOPNOTSUPP || r == -EFBIG);
		check_text("mutation", error);
	}
	/* Both ways are taken often, else the mutations are too wild or too tame. */
	ck_assert_uint_gt(taken, rounds / 20);
	ck_assert_uint_lt(taken, rounds - rounds / 20);
	free(bytes);
	free(file.bytes);
}
END_TEST

int main(void)
{
	int n = sizeof(whole) / sizeof(whole[0]), failed;
	Suite *suite = suite_create("image_refuse");
	TCase *tests = tcase_create("refused"), *slow = tcase_create("hostile");
	SRunner *runner;

	tcase_add_loop_test(tests, test_refused_images, 0, sizeof(refused) / sizeof(refused[0]));
	tcase_add_test(tests, test_not_an_image);
	tcase_add_test(tests, test_small_error_buffers);
	tcase_add_test(tests, test_damaged_header);
	tcase_add_test(tests, test_damaged_segments);
	tcase_add_test(tests, test_damaged_dynamic_tables);
	tcase_add_test(tests, test_damaged_kernel_note);
	tcase_add_test(tests, test_unprintable_symbol_is_shown_without_harm);
	suite_add_tcase(suite, tests);
	tcase_set_timeout(slow, 120);
	tcase_add_loop_test(slow, test_cut_short, 0, n);
	tcase_add_loop_test(slow, test_mutations, 0, n);
	suite_add_tcase(suite, slow);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
