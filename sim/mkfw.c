/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mkfw - makes the firmware image of the reference board: a header, a body, its CRC.
 *
 *   mkfw FILE VERSION [KIND]     KIND: good (default), magic, crc, major, truncated, huge
 *
 * npu-sim is its own firmware, so the body holds no code: a text that says whose it is, and a table
 * for the check to have something to do. The bad kinds are for tests of drivers.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kdrv/uapi/npu_hw.h"
#include "sim/fw_crc.h"

#define BODY_BYTES 65536u

struct image {
	struct npu_fw_header header;
	unsigned char body[BODY_BYTES];
};

static void image_fill(struct image *image, const char *version)
{
	uint32_t word = 1;

	for (size_t i = 0; i < BODY_BYTES; i++) {
		word = word * 1664525u + 1013904223u;
		image->body[i] = (unsigned char)(word >> 24);
	}
	snprintf((char *)image->body, 256, "Firmware of the reference NPU, version %s", version);
	image->header = (struct npu_fw_header){
		.magic = NPU_FW_MAGIC,
		.major = NPU_FW_MAJOR,
		.header_bytes = sizeof(image->header),
		.body_bytes = BODY_BYTES,
		.body_crc = fw_crc(image->body, BODY_BYTES),
	};
	snprintf(image->header.version, sizeof(image->header.version), "%s", version);
}

/* Bytes of the file; 0: no such kind. */
static size_t image_spoil(struct image *image, const char *kind)
{
	if (strcmp(kind, "good") == 0)
		return sizeof(*image);
	if (strcmp(kind, "magic") == 0)
		image->header.magic ^= 1;
	else if (strcmp(kind, "crc") == 0)
		image->body[BODY_BYTES / 2] ^= 0x10;
	else if (strcmp(kind, "major") == 0)
		image->header.major++;
	else if (strcmp(kind, "huge") == 0)
		image->header.body_bytes = NPU_FW_MAX;
	else
		return strcmp(kind, "truncated") == 0 ? sizeof(*image) / 2 : 0;
	return sizeof(*image);
}

int main(int argc, char **argv)
{
	static struct image image;
	size_t bytes;
	FILE *file;

	if (argc < 3 || argc > 4) {
		fprintf(stderr, "usage: mkfw FILE VERSION [KIND]\n");
		return 2;
	}
	image_fill(&image, argv[2]);
	bytes = image_spoil(&image, argc > 3 ? argv[3] : "good");
	if (!bytes) {
		fprintf(stderr, "mkfw: %s: no such kind of image\n", argv[3]);
		return 2;
	}
	file = fopen(argv[1], "wb");
	if (!file || fwrite(&image, bytes, 1, file) != 1 || fclose(file)) {
		perror(argv[1]);
		return EXIT_FAILURE;
	}
	return EXIT_SUCCESS;
}
