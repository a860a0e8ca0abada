/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NPU_IMAGE_H
#define NPU_IMAGE_H
/*
 * The kernel image (.npuk), as npu-cc writes it and the device reads it.
 *
 * An image is an ELF64 little-endian shared object (ET_DYN) of the device's machine that needs no
 * other object, has no constructor, no thread-local data and no writable code, and leaves only the
 * symbols of npu_symbols.h undefined. Each kernel is described by one ELF note in a PT_NOTE segment
 * (section .note.npu), aligned to 4 bytes, which a linker resolves without a relocation:
 *
 *   offset  size  field
 *        0     4  n_namesz = 4
 *        4     4  n_descsz = 16 + 4 * n_params + length of the name + 1
 *        8     4  n_type   = NPU_IMAGE_NOTE_KERNEL
 *       12     4  "NPU\0"
 *       16     8  thunk: address of the thunk minus the address of this field, signed
 *       24     4  args_size: bytes of the packed arguments, a multiple of 8
 *       28     4  n_params
 *       32  4*n   size of each parameter in bytes, at least 1
 *     32+4n    m  name of the kernel, printable ASCII without spaces, ends with a zero byte
 *
 * and zero bytes up to the next multiple of 4. Fields are little-endian; the 8-byte one is aligned
 * to 4 only. args_size is the sum of the parameter sizes, each rounded up to NPU_IMAGE_SLOT.
 *
 * The thunk is `void thunk(const void *args)`. args points to the packed arguments, aligned to 8
 * bytes: each parameter starts a slot of its own, in the order of the declaration, and takes its
 * size rounded up to 8 bytes whatever its alignment is. The device calls the thunk once a block.
 *
 * A note named "NPU" of another type is refused: it comes from a newer npu-cc.
 */

#define NPU_IMAGE_NOTE_NAME	"NPU"
#define NPU_IMAGE_NOTE_KERNEL	1u

#define NPU_IMAGE_SLOT		8u		/* bytes */
#define NPU_IMAGE_PARAMS_MAX	28u		/* a compiler takes 30 operands in one asm */
#define NPU_IMAGE_ARGS_MAX	4096u		/* bytes of packed arguments */
#define NPU_IMAGE_NAME_MAX	255u		/* characters of a kernel's name */
#define NPU_IMAGE_KERNELS_MAX	4096u		/* kernels in one image */
#define NPU_IMAGE_SIZE_MAX	(64u << 20)	/* bytes of the file, and of the loaded image */

/* Fixed part of the note's description; param sizes and name follow. */
#define NPU_IMAGE_DESC_THUNK	0u		/* int64_t */
#define NPU_IMAGE_DESC_ARGS	8u		/* uint32_t */
#define NPU_IMAGE_DESC_PARAMS	12u		/* uint32_t */
#define NPU_IMAGE_DESC_SIZES	16u		/* uint32_t [n_params] */

#endif
