/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NPU_TESTS_FRAME_CALLS_H
#define NPU_TESTS_FRAME_CALLS_H

#include <stdbool.h>

#include "tests/lib/frame_client.h"

/*
 * Calls of the control protocol that many tests make, on device 0. Status of the reply (or a
 * negative errno) as the result or in *status; ids are 0 and replies NULL when it is not OK.
 * Replies are the caller's (npu__..._free_unpacked()); fds of a reply stay in the client till its
 * next call.
 */

Npu__MemAllocReply *fc_alloc(struct frame_client *from, uint64_t bytes, uint32_t kind, int *status);
int fc_mem_free(struct frame_client *from, uint64_t mem);
uint32_t fc_ctx_create(struct frame_client *from, int *status);
int fc_ctx_destroy(struct frame_client *from, uint32_t ctx);
uint32_t fc_queue_create(struct frame_client *from, uint32_t ctx, int *status);
int fc_queue_destroy(struct frame_client *from, uint32_t queue);
/* Aborts when there is none. */
Npu__StatusReply *fc_status(struct frame_client *from);
/* For wait_for(), arg a struct frame_client without a device: nobody has anything on device 0. */
bool fc_all_gone(void *arg);

#endif
