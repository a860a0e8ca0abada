/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Headers, segments and dynamic tables of an image. Structures are copied out of the bytes
 * before use, so that alignment does not matter; sums are formed in 64 bits from parts that were
 * bounded before.
 */
#include "sim/engine_elf.h"

#include <elf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__)
#define MACHINE	     EM_X86_64
#define MACHINE_NAME "x86-64"
#elif defined(__aarch64__)
#define MACHINE	     EM_AARCH64
#define MACHINE_NAME "aarch64"
#else
#error "kernel images are defined for x86-64 and aarch64"
#endif

#define MAKE_AGAIN "compile it again with npu-cc"

int engine_image_fail(const struct engine_image_error *err, int code, const char *format, ...)
{
	va_list args;

	if (!err->size)
		return code;
	va_start(args, format);
	if (vsnprintf(err->text, err->size, format, args) < 0)
		err->text[0] = '\0';
	va_end(args);
	for (char *c = err->text; *c; c++) {
		if (*c < ' ' || *c > '~')
			*c = '?';
	}
	return code;
}

static bool in_bytes(const struct engine_elf *elf, uint64_t offset, uint64_t length)
{
	return offset <= elf->size && length <= elf->size - offset;
}

static uint64_t page_down(const struct engine_elf *elf, uint64_t value)
{
	return value & ~(elf->page - 1);
}

static uint64_t page_up(const struct engine_elf *elf, uint64_t value)
{
	return page_down(elf, value + elf->page - 1);
}

const struct engine_elf_segment *engine_elf_segment_of(const struct engine_elf *elf, uint64_t vaddr,
						       uint64_t length)
{
	for (unsigned int i = 0; i < elf->n_segments; i++) {
		const struct engine_elf_segment *s = &elf->segments[i];

		if (vaddr >= s->vaddr && vaddr - s->vaddr <= s->memsz &&
		    length <= s->memsz - (vaddr - s->vaddr))
			return s;
	}
	return NULL;
}

/* The bytes that are loaded at vaddr; false when they are not all in the file. */
static bool range_at(const struct engine_elf *elf, uint64_t vaddr, uint64_t length,
		     struct engine_elf_range *ret_range)
{
	const struct engine_elf_segment *s = engine_elf_segment_of(elf, vaddr, length);

	if (!s || vaddr - s->vaddr > s->filesz || length > s->filesz - (vaddr - s->vaddr))
		return false;
	ret_range->data = elf->bytes + s->offset + (vaddr - s->vaddr);
	ret_range->size = length;
	return true;
}

static int check_header(const struct engine_elf *elf, Elf64_Ehdr *ret_header,
			const struct engine_image_error *err)
{
	Elf64_Ehdr h;

	if (elf->size < SELFMAG || memcmp(elf->bytes, ELFMAG, SELFMAG) != 0)
		return engine_image_fail(
			err, -ENOEXEC,
			"not a kernel image: it does not start as an ELF file; " MAKE_AGAIN);
	if (elf->size < sizeof(h))
		return engine_image_fail(err, -ENOEXEC,
					 "the image is cut short in its header; " MAKE_AGAIN);
	memcpy(&h, elf->bytes, sizeof(h));
	if (h.e_ident[EI_CLASS] != ELFCLASS64 || h.e_ident[EI_DATA] != ELFDATA2LSB ||
	    h.e_machine != MACHINE)
		return engine_image_fail(err, -ENOEXEC,
					 "the image is for another machine (ELF machine %u), "
					 "the device is " MACHINE_NAME "; " MAKE_AGAIN,
					 h.e_machine);
	if (h.e_ident[EI_VERSION] != EV_CURRENT || h.e_version != EV_CURRENT ||
	    (h.e_ident[EI_OSABI] != ELFOSABI_NONE && h.e_ident[EI_OSABI] != ELFOSABI_GNU))
		return engine_image_fail(err, -ENOEXEC, "unknown ELF version or ABI; " MAKE_AGAIN);
	if (h.e_type != ET_DYN)
		return engine_image_fail(
			err, -ENOEXEC,
			"an ELF file of type %u (%s), not a kernel image; " MAKE_AGAIN, h.e_type,
			h.e_type == ET_REL  ? "object file" :
			h.e_type == ET_EXEC ? "program" :
					      "unknown");
	if (h.e_ehsize != sizeof(h) || h.e_phentsize != sizeof(Elf64_Phdr) || !h.e_phnum)
		return engine_image_fail(err, -ENOEXEC, "damaged ELF header; " MAKE_AGAIN);
	if (!in_bytes(elf, h.e_phoff, (uint64_t)h.e_phnum * sizeof(Elf64_Phdr)) ||
	    (h.e_shoff && !in_bytes(elf, h.e_shoff, (uint64_t)h.e_shnum * h.e_shentsize)))
		return engine_image_fail(err, -ENOEXEC,
					 "the image is cut short: its tables lie behind "
					 "its end at %zu bytes; " MAKE_AGAIN,
					 elf->size);
	*ret_header = h;
	return 0;
}

static int add_load(struct engine_elf *elf, const Elf64_Phdr *p,
		    const struct engine_image_error *err)
{
	struct engine_elf_segment *s = &elf->segments[elf->n_segments];

	if ((p->p_flags & PF_W) && (p->p_flags & PF_X))
		return engine_image_fail(err, -EOPNOTSUPP,
					 "a segment is both writable and executable, which "
					 "the device does not allow; " MAKE_AGAIN);
	if (p->p_filesz > p->p_memsz || !in_bytes(elf, p->p_offset, p->p_filesz))
		return engine_image_fail(err, -ENOEXEC,
					 "the image is cut short: a segment lies behind its "
					 "end at %zu bytes; " MAKE_AGAIN,
					 elf->size);
	if (p->p_vaddr > NPU_IMAGE_SIZE_MAX || p->p_memsz > NPU_IMAGE_SIZE_MAX - p->p_vaddr)
		return engine_image_fail(err, -EFBIG,
					 "the loaded image would take more than the %u MiB that "
					 "the device allows; make static data smaller",
					 NPU_IMAGE_SIZE_MAX >> 20);
	if (p->p_align & (p->p_align - 1) || p->p_align > ENGINE_ELF_ALIGN_MAX)
		return engine_image_fail(err, -EOPNOTSUPP,
					 "a segment is aligned to %llu bytes, the device can "
					 "do powers of two up to %u",
					 (unsigned long long)p->p_align, ENGINE_ELF_ALIGN_MAX);
	if (!p->p_memsz)
		return 0;
	if (elf->n_segments == ENGINE_ELF_SEGMENTS_MAX)
		return engine_image_fail(err, -ENOEXEC, "more than %u segments; " MAKE_AGAIN,
					 ENGINE_ELF_SEGMENTS_MAX);
	if (elf->n_segments && page_down(elf, p->p_vaddr) < elf->span)
		return engine_image_fail(err, -ENOEXEC,
					 "segments overlap or share a page; " MAKE_AGAIN);
	*s = (struct engine_elf_segment){
		.vaddr = p->p_vaddr,
		.memsz = p->p_memsz,
		.offset = p->p_offset,
		.filesz = p->p_filesz,
		.write = p->p_flags & PF_W,
		.exec = p->p_flags & PF_X,
	};
	elf->n_segments++;
	elf->span = page_up(elf, p->p_vaddr + p->p_memsz);
	if (p->p_align > elf->align)
		elf->align = p->p_align;
	return 0;
}

/* First pass over the program headers: what is mapped, and what is refused at sight. */
static int check_segments(struct engine_elf *elf, const Elf64_Ehdr *h,
			  const struct engine_image_error *err)
{
	for (unsigned int i = 0; i < h->e_phnum; i++) {
		Elf64_Phdr p;
		int r = 0;

		memcpy(&p, elf->bytes + h->e_phoff + i * sizeof(p), sizeof(p));
		if (p.p_type == PT_LOAD)
			r = add_load(elf, &p, err);
		else if (p.p_type == PT_TLS)
			r = engine_image_fail(err, -EOPNOTSUPP,
					      "thread_local data does not exist on the device; "
					      "use a parameter or static data");
		else if (p.p_type == PT_INTERP)
			r = engine_image_fail(err, -EOPNOTSUPP,
					      "a program that names an interpreter, not a "
					      "kernel image; " MAKE_AGAIN);
		else if (p.p_type == PT_GNU_STACK && (p.p_flags & PF_X))
			r = engine_image_fail(
				err, -EOPNOTSUPP,
				"asks for an executable stack, which the device "
				"does not have; do not take the address of a nested function");
		if (r < 0)
			return r;
	}
	if (!elf->n_segments)
		return engine_image_fail(err, -ENOEXEC, "nothing to load in it; " MAKE_AGAIN);
	return 0;
}

/* Second pass: what points into the mapped segments. */
static int check_tables(struct engine_elf *elf, const Elf64_Ehdr *h,
			struct engine_elf_range *ret_dynamic, const struct engine_image_error *err)
{
	for (unsigned int i = 0; i < h->e_phnum; i++) {
		const struct engine_elf_segment *s;
		Elf64_Phdr p;

		memcpy(&p, elf->bytes + h->e_phoff + i * sizeof(p), sizeof(p));
		switch (p.p_type) {
		case PT_DYNAMIC:
			if (ret_dynamic->data || !range_at(elf, p.p_vaddr, p.p_filesz, ret_dynamic))
				return engine_image_fail(err, -ENOEXEC,
							 "damaged dynamic segment; " MAKE_AGAIN);
			break;
		case PT_NOTE:
			if (elf->n_notes == ENGINE_ELF_SEGMENTS_MAX ||
			    (p.p_align > 4 && p.p_align != 8) ||
			    !range_at(elf, p.p_vaddr, p.p_filesz, &elf->notes[elf->n_notes]))
				return engine_image_fail(err, -ENOEXEC,
							 "damaged note segment; " MAKE_AGAIN);
			elf->note_vaddr[elf->n_notes] = p.p_vaddr;
			elf->note_align[elf->n_notes++] = p.p_align == 8 ? 8 : 4;
			break;
		case PT_GNU_RELRO:
			/* The linker lets it run on to the end of the segment's last page. */
			s = engine_elf_segment_of(elf, p.p_vaddr, 1);
			if (!s || !s->write || elf->relro_end ||
			    p.p_memsz > page_up(elf, s->vaddr + s->memsz) - p.p_vaddr)
				return engine_image_fail(
					err, -ENOEXEC,
					"damaged read-only data segment; " MAKE_AGAIN);
			elf->relro_start = page_down(elf, p.p_vaddr);
			elf->relro_end = page_down(elf, p.p_vaddr + p.p_memsz);
			break;
		default:
			break;
		}
	}
	if (!ret_dynamic->data)
		return engine_image_fail(err, -ENOEXEC, "no dynamic segment; " MAKE_AGAIN);
	return 0;
}

/* What a dynamic entry asks for and the device does not do; NULL for the rest. */
static const char *refused_tag(const Elf64_Dyn *d)
{
	switch (d->d_tag) {
	case DT_NEEDED:
		return "needs a shared library; kernels have only what npu/npu_symbols.h lists";
	case DT_INIT:
	case DT_INIT_ARRAY:
	case DT_PREINIT_ARRAY:
		return "has a constructor, which the device does not run; initialise in the kernel";
	case DT_FINI:
	case DT_FINI_ARRAY:
		return "has a destructor, which the device does not run";
	case DT_TEXTREL:
		return "has relocations in its code; " MAKE_AGAIN;
	case DT_FLAGS:
		if (d->d_un.d_val & DF_TEXTREL)
			return "has relocations in its code; " MAKE_AGAIN;
		if (d->d_un.d_val & DF_STATIC_TLS)
			return "has thread_local data, which does not exist on the device";
		return NULL;
	case DT_REL:
	case DT_RELR:
		return "has REL or RELR relocations, which the device does not know; " MAKE_AGAIN;
	case DT_VERNEED:
		return "needs symbol versions of a shared library; " MAKE_AGAIN;
	case DT_AUDIT:
	case DT_DEPAUDIT:
	case DT_FILTER:
	case DT_AUXILIARY:
		return "names another object to load; " MAKE_AGAIN;
	default:
		return NULL;
	}
}

struct dynamic {
	uint64_t hash, symtab, strtab, strsz, rela, relasz, jmprel, pltrelsz;
	uint64_t syment, relaent, pltrel;
};

static int read_dynamic(const struct engine_elf_range *range, struct dynamic *ret_dynamic,
			const struct engine_image_error *err)
{
	const struct {
		int64_t tag;
		uint64_t *field;
	} fields[] = {
		{ DT_HASH, &ret_dynamic->hash },     { DT_SYMTAB, &ret_dynamic->symtab },
		{ DT_STRTAB, &ret_dynamic->strtab }, { DT_STRSZ, &ret_dynamic->strsz },
		{ DT_RELA, &ret_dynamic->rela },     { DT_RELASZ, &ret_dynamic->relasz },
		{ DT_JMPREL, &ret_dynamic->jmprel }, { DT_PLTRELSZ, &ret_dynamic->pltrelsz },
		{ DT_SYMENT, &ret_dynamic->syment }, { DT_RELAENT, &ret_dynamic->relaent },
		{ DT_PLTREL, &ret_dynamic->pltrel },
	};

	for (uint64_t at = 0; at + sizeof(Elf64_Dyn) <= range->size; at += sizeof(Elf64_Dyn)) {
		const char *reason;
		Elf64_Dyn d;

		memcpy(&d, range->data + at, sizeof(d));
		if (d.d_tag == DT_NULL)
			return 0;
		reason = refused_tag(&d);
		if (reason)
			return engine_image_fail(err, -EOPNOTSUPP, "%s", reason);
		for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
			if (fields[i].tag == d.d_tag)
				*fields[i].field = d.d_un.d_val;
		}
	}
	return engine_image_fail(err, -ENOEXEC, "the dynamic segment has no end; " MAKE_AGAIN);
}

static int check_dynamic(struct engine_elf *elf, const struct engine_elf_range *range,
			 const struct engine_image_error *err)
{
	struct dynamic d = { .syment = sizeof(Elf64_Sym),
			     .relaent = sizeof(Elf64_Rela),
			     .pltrel = DT_RELA };
	struct engine_elf_range hash;
	uint32_t words[2]; /* buckets, chains; a chain a symbol */
	int r;

	r = read_dynamic(range, &d, err);
	if (r < 0)
		return r;
	if (!d.hash || !d.symtab || !d.strtab || !d.strsz)
		return engine_image_fail(err, -ENOEXEC,
					 "no symbol table with a DT_HASH; link with "
					 "-Wl,--hash-style=sysv or " MAKE_AGAIN);
	if (d.syment != sizeof(Elf64_Sym) || d.relaent != sizeof(Elf64_Rela) ||
	    d.pltrel != DT_RELA || !range_at(elf, d.hash, sizeof(words), &hash))
		return engine_image_fail(err, -ENOEXEC, "damaged dynamic tables; " MAKE_AGAIN);
	memcpy(words, hash.data, sizeof(words));
	if (words[1] > ENGINE_ELF_SYMBOLS_MAX)
		return engine_image_fail(err, -EFBIG,
					 "%u dynamic symbols, more than the %u that the device "
					 "takes; compile with -fvisibility=hidden",
					 words[1], ENGINE_ELF_SYMBOLS_MAX);
	if (!range_at(elf, d.symtab, words[1] * sizeof(Elf64_Sym), &elf->symbols) ||
	    !range_at(elf, d.strtab, d.strsz, &elf->strings) || elf->strings.data[d.strsz - 1] ||
	    (d.relasz && !range_at(elf, d.rela, d.relasz, &elf->relocs[0])) ||
	    (d.pltrelsz && !range_at(elf, d.jmprel, d.pltrelsz, &elf->relocs[1])))
		return engine_image_fail(err, -ENOEXEC,
					 "damaged symbol or relocation table; " MAKE_AGAIN);
	return 0;
}

/* The full symbol table serves messages only: a damaged one counts as none. */
static void find_locals(struct engine_elf *elf, const Elf64_Ehdr *h)
{
	Elf64_Shdr s, strings;

	if (!h->e_shoff || h->e_shentsize != sizeof(s))
		return;
	for (unsigned int i = 0; i < h->e_shnum; i++) {
		memcpy(&s, elf->bytes + h->e_shoff + i * sizeof(s), sizeof(s));
		if (s.sh_type != SHT_SYMTAB)
			continue;
		if (s.sh_link >= h->e_shnum || !in_bytes(elf, s.sh_offset, s.sh_size))
			return;
		memcpy(&strings, elf->bytes + h->e_shoff + s.sh_link * sizeof(s), sizeof(s));
		if (strings.sh_type != SHT_STRTAB || !strings.sh_size ||
		    !in_bytes(elf, strings.sh_offset, strings.sh_size) ||
		    elf->bytes[strings.sh_offset + strings.sh_size - 1])
			return;
		elf->locals = (struct engine_elf_range){ elf->bytes + s.sh_offset, s.sh_size };
		elf->local_strings = (struct engine_elf_range){ elf->bytes + strings.sh_offset,
								strings.sh_size };
		return;
	}
}

int engine_elf_parse(const void *bytes, size_t size, struct engine_elf *ret_elf,
		     const struct engine_image_error *err)
{
	struct engine_elf *elf = ret_elf;
	struct engine_elf_range dynamic = { 0 };
	Elf64_Ehdr h = { 0 };
	int r;

	memset(elf, 0, sizeof(*elf));
	elf->bytes = bytes;
	elf->size = size;
	elf->page = (uint64_t)sysconf(_SC_PAGESIZE);
	elf->align = elf->page;
	if (!size)
		return engine_image_fail(err, -ENOEXEC, "the image is empty; " MAKE_AGAIN);
	if (size > NPU_IMAGE_SIZE_MAX)
		return engine_image_fail(err, -EFBIG,
					 "the image has %zu bytes, more than the %u MiB that the "
					 "device takes",
					 size, NPU_IMAGE_SIZE_MAX >> 20);
	r = check_header(elf, &h, err);
	if (r < 0)
		return r;
	r = check_segments(elf, &h, err);
	if (r < 0)
		return r;
	r = check_tables(elf, &h, &dynamic, err);
	if (r < 0)
		return r;
	r = check_dynamic(elf, &dynamic, err);
	if (r < 0)
		return r;
	find_locals(elf, &h);
	return 0;
}
