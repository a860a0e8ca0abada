/* SPDX-License-Identifier: Apache-2.0 */
/*
 * make_fw FILE [magic|crc|major|short|long]: writes firmware for the reference NPU, or a file that is
 * wrong in the named way.
 */
#include <stdio.h>
#include <string.h>

#include "kdrv/uapi/npu_hw.h"

#define BODY 65536u

static unsigned char body[BODY];

static __u32 crc32_of(const unsigned char *bytes, size_t count)
{
	__u32 crc = ~0u;

	for (size_t i = 0; i < count; i++) {
		crc ^= bytes[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
	}
	return ~crc;
}

int main(int argc, char **argv)
{
	struct npu_fw_header header = {
		.magic = NPU_FW_MAGIC,
		.major = NPU_FW_MAJOR,
		.header_bytes = sizeof(header),
		.body_bytes = BODY,
		.version = "1.0-vm",
	};
	const char *wrong = argc > 2 ? argv[2] : "";
	size_t bytes = BODY;
	FILE *file;

	if (argc < 2) {
		fprintf(stderr, "usage: make_fw FILE [magic|crc|major|short|long]\n");
		return 2;
	}
	for (unsigned int i = 0; i < BODY; i++)
		body[i] = (unsigned char)(i * 2654435761u >> 24);
	header.body_crc = crc32_of(body, BODY);
	if (!strcmp(wrong, "magic"))
		header.magic ^= 1;
	else if (!strcmp(wrong, "crc"))
		body[BODY / 2] ^= 0x10;
	else if (!strcmp(wrong, "major"))
		header.major++;
	else if (!strcmp(wrong, "short"))
		bytes /= 2;
	else if (!strcmp(wrong, "long"))
		header.body_bytes = ~0u;
	file = fopen(argv[1], "wb");
	if (!file || fwrite(&header, sizeof(header), 1, file) != 1 ||
	    fwrite(body, 1, bytes, file) != bytes || fclose(file)) {
		perror(argv[1]);
		return 1;
	}
	return 0;
}
