/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entries of a parsed image's tables: symbols, relocations, notes. The tables lie inside the
 * bytes by engine_elf_parse(); what the entries say is checked here, one at a time.
 */
#include "sim/engine_elf.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#if defined(__x86_64__)
#define RELOC_NONE	R_X86_64_NONE
#define RELOC_RELATIVE	R_X86_64_RELATIVE
#define RELOC_ABS64	R_X86_64_64
#define RELOC_GLOB_DAT	R_X86_64_GLOB_DAT
#define RELOC_JUMP_SLOT R_X86_64_JUMP_SLOT
#define RELOC_IRELATIVE R_X86_64_IRELATIVE
#define RELOC_IS_TLS(t) ((t) >= R_X86_64_DTPMOD64 && (t) <= R_X86_64_TPOFF32)
/* The x86-64 ABI takes the symbol alone here. */
#define SLOT_KIND ENGINE_ELF_RELOC_SYMBOL
#elif defined(__aarch64__)
#define RELOC_NONE	R_AARCH64_NONE
#define RELOC_RELATIVE	R_AARCH64_RELATIVE
#define RELOC_ABS64	R_AARCH64_ABS64
#define RELOC_GLOB_DAT	R_AARCH64_GLOB_DAT
#define RELOC_JUMP_SLOT R_AARCH64_JUMP_SLOT
#define RELOC_IRELATIVE R_AARCH64_IRELATIVE
#define RELOC_IS_TLS(t) ((t) >= R_AARCH64_TLS_DTPMOD && (t) <= R_AARCH64_TLSDESC)
#define SLOT_KIND	ENGINE_ELF_RELOC_SYMBOL_ADD
#endif

#define MAKE_AGAIN "compile it again with npu-cc"

uint32_t engine_elf_n_symbols(const struct engine_elf *elf)
{
	return (uint32_t)(elf->symbols.size / sizeof(Elf64_Sym));
}

int engine_elf_symbol(const struct engine_elf *elf, uint32_t index,
		      struct engine_elf_symbol *ret_symbol, const struct engine_image_error *err)
{
	const char *name;
	Elf64_Sym s;

	if (index >= engine_elf_n_symbols(elf))
		return engine_image_fail(err, -ENOEXEC,
					 "a relocation names symbol %u of %u; " MAKE_AGAIN, index,
					 engine_elf_n_symbols(elf));
	memcpy(&s, elf->symbols.data + (uint64_t)index * sizeof(s), sizeof(s));
	if (s.st_name >= elf->strings.size)
		return engine_image_fail(err, -ENOEXEC,
					 "symbol %u has no name inside the image; " MAKE_AGAIN,
					 index);
	name = (const char *)elf->strings.data + s.st_name;
	if (ELF64_ST_TYPE(s.st_info) == STT_TLS)
		return engine_image_fail(err, -EOPNOTSUPP,
					 "symbol '%.80s' is thread_local, which does not "
					 "exist on the device; use a parameter or static data",
					 name);
	if (ELF64_ST_TYPE(s.st_info) == STT_GNU_IFUNC)
		return engine_image_fail(
			err, -EOPNOTSUPP,
			"symbol '%.80s' is an ifunc, which the device does "
			"not resolve; choose the instruction set with npu-cc --march",
			name);
	if (s.st_shndx == SHN_COMMON)
		return engine_image_fail(err, -ENOEXEC,
					 "symbol '%.80s' is a common block; " MAKE_AGAIN, name);
	*ret_symbol = (struct engine_elf_symbol){
		.name = name,
		.value = s.st_value,
		.size = s.st_size,
		.defined = s.st_shndx != SHN_UNDEF,
		.absolute = s.st_shndx == SHN_ABS,
		.function = ELF64_ST_TYPE(s.st_info) == STT_FUNC,
	};
	if (ret_symbol->defined && !ret_symbol->absolute && s.st_value > elf->span)
		return engine_image_fail(
			err, -ENOEXEC, "symbol '%.80s' lies outside the image; " MAKE_AGAIN, name);
	return 0;
}

uint64_t engine_elf_n_relocs(const struct engine_elf *elf)
{
	return elf->relocs[0].size / sizeof(Elf64_Rela) + elf->relocs[1].size / sizeof(Elf64_Rela);
}

int engine_elf_reloc(const struct engine_elf *elf, uint64_t index,
		     struct engine_elf_reloc *ret_reloc, const struct engine_image_error *err)
{
	uint64_t first = elf->relocs[0].size / sizeof(Elf64_Rela);
	const struct engine_elf_range *table = &elf->relocs[index >= first];
	const struct engine_elf_segment *segment;
	enum engine_elf_reloc_kind kind;
	Elf64_Rela rela;
	uint32_t type;

	memcpy(&rela, table->data + (index >= first ? index - first : index) * sizeof(rela),
	       sizeof(rela));
	type = (uint32_t)ELF64_R_TYPE(rela.r_info);
	switch (type) {
	case RELOC_NONE:
		*ret_reloc = (struct engine_elf_reloc){ .kind = ENGINE_ELF_RELOC_NONE };
		return 0;
	case RELOC_RELATIVE:
		kind = ENGINE_ELF_RELOC_RELATIVE;
		break;
	case RELOC_ABS64:
		kind = ENGINE_ELF_RELOC_SYMBOL_ADD;
		break;
	case RELOC_GLOB_DAT:
	case RELOC_JUMP_SLOT:
		kind = SLOT_KIND;
		break;
	case RELOC_IRELATIVE:
		return engine_image_fail(
			err, -EOPNOTSUPP,
			"has an ifunc or target_clones function, which the "
			"device does not resolve; choose the instruction set with npu-cc --march");
	default:
		if (RELOC_IS_TLS(type))
			return engine_image_fail(err, -EOPNOTSUPP,
						 "has thread_local data, which does not exist "
						 "on the device; use a parameter or static data");
		return engine_image_fail(err, -EOPNOTSUPP,
					 "has a relocation of type %u, which the device does "
					 "not know; " MAKE_AGAIN,
					 type);
	}
	segment = engine_elf_segment_of(elf, rela.r_offset, sizeof(uint64_t));
	if (!segment || !segment->write)
		return engine_image_fail(
			err, -ENOEXEC,
			"a relocation at 0x%llx is not in writable data; " MAKE_AGAIN,
			(unsigned long long)rela.r_offset);
	*ret_reloc = (struct engine_elf_reloc){
		.kind = kind,
		.offset = rela.r_offset,
		.symbol = (uint32_t)ELF64_R_SYM(rela.r_info),
		.addend = (uint64_t)rela.r_addend,
	};
	return 0;
}

uint32_t engine_elf_n_locals(const struct engine_elf *elf)
{
	uint64_t n = elf->locals.size / sizeof(Elf64_Sym);

	return n < ENGINE_ELF_SYMBOLS_MAX ? (uint32_t)n : ENGINE_ELF_SYMBOLS_MAX;
}

bool engine_elf_local(const struct engine_elf *elf, uint32_t index,
		      struct engine_elf_symbol *ret_symbol)
{
	const struct engine_elf_segment *segment;
	Elf64_Sym s;

	memcpy(&s, elf->locals.data + (uint64_t)index * sizeof(s), sizeof(s));
	if (ELF64_ST_TYPE(s.st_info) != STT_FUNC || s.st_shndx == SHN_UNDEF || !s.st_size ||
	    s.st_name >= elf->local_strings.size)
		return false;
	segment = engine_elf_segment_of(elf, s.st_value, s.st_size);
	if (!segment || !segment->exec)
		return false;
	*ret_symbol = (struct engine_elf_symbol){
		.name = (const char *)elf->local_strings.data + s.st_name,
		.value = s.st_value,
		.size = s.st_size,
		.defined = true,
		.function = true,
	};
	return true;
}

static uint32_t load32(const uint8_t *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

/* A name that may stand in messages and tables: printable ASCII without spaces. */
static bool name_ok(const uint8_t *name, uint64_t length)
{
	if (!length || length > NPU_IMAGE_NAME_MAX)
		return false;
	for (uint64_t i = 0; i < length; i++) {
		if (name[i] <= ' ' || name[i] > '~')
			return false;
	}
	return true;
}

/* desc is the note's description, vaddr where it will lie in memory. */
static int parse_kernel(const struct engine_elf *elf, const struct engine_elf_range *desc,
			uint64_t vaddr, struct engine_elf_kernel *ret_kernel,
			const struct engine_image_error *err)
{
	const struct engine_elf_segment *segment;
	struct engine_elf_kernel k = { 0 };
	uint64_t name_at, slots = 0;
	int64_t distance;

	if (desc->size < NPU_IMAGE_DESC_SIZES)
		return engine_image_fail(err, -ENOEXEC,
					 "a kernel's note is cut short; " MAKE_AGAIN);
	k.args_size = load32(desc->data + NPU_IMAGE_DESC_ARGS);
	k.n_params = load32(desc->data + NPU_IMAGE_DESC_PARAMS);
	if (k.n_params > NPU_IMAGE_PARAMS_MAX || k.args_size > NPU_IMAGE_ARGS_MAX)
		return engine_image_fail(err, -EFBIG,
					 "a kernel has %u parameters in %u bytes, the device takes "
					 "%u and %u; pass a pointer to a structure",
					 k.n_params, k.args_size, NPU_IMAGE_PARAMS_MAX,
					 NPU_IMAGE_ARGS_MAX);
	name_at = NPU_IMAGE_DESC_SIZES + 4ull * k.n_params;
	if (desc->size <= name_at || desc->data[desc->size - 1] ||
	    !name_ok(desc->data + name_at, desc->size - 1 - name_at))
		return engine_image_fail(err, -ENOEXEC,
					 "a kernel's note has no name of 1 to %u printable "
					 "characters; " MAKE_AGAIN,
					 NPU_IMAGE_NAME_MAX);
	k.name = (const char *)desc->data + name_at;
	k.sizes = desc->data + NPU_IMAGE_DESC_SIZES;
	for (uint32_t i = 0; i < k.n_params; i++) {
		uint64_t size = load32(k.sizes + 4ull * i);

		if (!size)
			return engine_image_fail(
				err, -ENOEXEC,
				"parameter %u of kernel '%s' has no size; " MAKE_AGAIN, i, k.name);
		slots += (size + NPU_IMAGE_SLOT - 1) / NPU_IMAGE_SLOT;
	}
	if (slots * NPU_IMAGE_SLOT != k.args_size)
		return engine_image_fail(err, -ENOEXEC,
					 "the parameters of kernel '%s' do not add up to its %u "
					 "bytes; " MAKE_AGAIN,
					 k.name, k.args_size);
	memcpy(&distance, desc->data + NPU_IMAGE_DESC_THUNK, sizeof(distance));
	k.thunk = vaddr + NPU_IMAGE_DESC_THUNK + (uint64_t)distance;
	segment = engine_elf_segment_of(elf, k.thunk, 1);
	if (!segment || !segment->exec)
		return engine_image_fail(
			err, -ENOEXEC,
			"kernel '%s' does not start in the image's code; " MAKE_AGAIN, k.name);
	*ret_kernel = k;
	return 0;
}

int engine_elf_next_kernel(const struct engine_elf *elf, struct engine_elf_cursor *cursor,
			   struct engine_elf_kernel *ret_kernel,
			   const struct engine_image_error *err)
{
	for (; cursor->segment < elf->n_notes; cursor->segment++, cursor->offset = 0) {
		const struct engine_elf_range *notes = &elf->notes[cursor->segment];
		uint64_t align = elf->note_align[cursor->segment] - 1;

		while (cursor->offset < notes->size) {
			uint64_t at = cursor->offset, left = notes->size - at, desc_at, end;
			const uint8_t *note = notes->data + at;
			struct engine_elf_range desc;
			Elf64_Nhdr h;
			int r;

			if (left < sizeof(h))
				return engine_image_fail(err, -ENOEXEC,
							 "a note is cut short; " MAKE_AGAIN);
			memcpy(&h, note, sizeof(h));
			desc_at = (sizeof(h) + (uint64_t)h.n_namesz + align) & ~align;
			end = desc_at + h.n_descsz;
			if (end > left)
				return engine_image_fail(err, -ENOEXEC,
							 "a note is cut short; " MAKE_AGAIN);
			end = (end + align) & ~align;
			cursor->offset += end < left ? end : left;
			if (h.n_namesz != sizeof(NPU_IMAGE_NOTE_NAME) ||
			    memcmp(note + sizeof(h), NPU_IMAGE_NOTE_NAME,
				   sizeof(NPU_IMAGE_NOTE_NAME)) != 0)
				continue;
			if (h.n_type != NPU_IMAGE_NOTE_KERNEL)
				return engine_image_fail(err, -EOPNOTSUPP,
							 "has a note of type %u, made for a "
							 "newer device; " MAKE_AGAIN,
							 h.n_type);
			desc = (struct engine_elf_range){ note + desc_at, h.n_descsz };
			r = parse_kernel(elf, &desc,
					 elf->note_vaddr[cursor->segment] + at + desc_at,
					 ret_kernel, err);
			return r < 0 ? r : 1;
		}
	}
	return 0;
}
