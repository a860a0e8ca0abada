/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NPU_SIM_FW_CRC_H
#define NPU_SIM_FW_CRC_H

#include <stddef.h>
#include <stdint.h>

/* CRC-32 of a firmware's body: IEEE, reflected, as zlib's crc32() and the kernel's crc32_le(). */
static inline uint32_t fw_crc(const void *data, size_t bytes)
{
	static const uint32_t table[16] = {
		0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4,
		0x4db26158, 0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
		0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c,
	};
	const uint8_t *p = data;
	uint32_t crc = UINT32_MAX;

	for (size_t i = 0; i < bytes; i++) {
		crc ^= p[i];
		crc = crc >> 4 ^ table[crc & 15];
		crc = crc >> 4 ^ table[crc & 15];
	}
	return ~crc;
}

#endif
