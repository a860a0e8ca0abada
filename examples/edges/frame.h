/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EXAMPLES_EDGES_FRAME_H
#define EXAMPLES_EDGES_FRAME_H
/*
 * What one frame is: the picture, moved down by some rows, made brighter and darker, blurred, and
 * its edges stronger than a threshold. All in whole numbers, so that device and CPU agree in
 * every bit:
 *
 *   grey   = (77 red + 150 green + 29 blue + 128) / 256
 *   level  = (grey * gain + 128) / 256 + offset, kept within 0..255
 *   blur   = (sum of level * weight over 5x5 pixels + 128) / 256, weights (1 4 6 4 1) both ways
 *   edge   = (15 * larger + 7 * smaller) / 16 of the two Sobel slopes of blur, at most 255,
 *            and 0 below the threshold
 *
 * Pixels beyond the border are those of the border.
 */
#include <stdint.h>

struct frame {
	uint32_t shift;		/* rows */
	int32_t gain;		/* 256 is 1.0 */
	int32_t offset;
	int32_t threshold;
};

/* Settings of the frame that is `left` frames before the last; the last one is the plain picture. */
static inline struct frame frame_settings(uint32_t left, uint32_t height)
{
	return (struct frame){
		.shift = (uint32_t)((uint64_t)left * 3 % height),
		.gain = 256 + (int32_t)(left * 53u % 256u),
		.offset = -(int32_t)(left * 29u % 96u),
		.threshold = 24 + (int32_t)(left * 17u % 64u),
	};
}

/*
 * The plain CPU reference: edge, of width x height bytes, gets the result for the picture that is
 * rgb moved down by frame.shift rows (what leaves below comes in above). -ENOMEM or 0.
 */
int frame_reference(const uint8_t *rgb, uint32_t width, uint32_t height, struct frame frame,
		uint8_t *edge);

#endif
