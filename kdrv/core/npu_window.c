/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * The results of the last mutating calls, so that a caller who does not know whether a call was
 * done can repeat it. The lowest number is forgotten first; calls may come out of order within
 * the window.
 */
#include "kdrv/core/npu_core_int.h"

static uint64_t npu_hash_byte(uint64_t hash, uint8_t byte)
{
	return (hash ^ byte) * 0x100000001b3ull;
}

/* FNV-1a over the flags and what is behind the head. */
uint64_t npu_window_hash(const struct npu_row *row, const void *arg)
{
	const struct npu_head *head = arg;
	const uint8_t *bytes = arg;
	uint64_t hash = 0xcbf29ce484222325ull;
	uint32_t i;

	for (i = 0; i < 4; i++)
		hash = npu_hash_byte(hash, (uint8_t)(head->flags >> (8 * i)));
	for (i = sizeof(*head); i < row->size; i++)
		hash = npu_hash_byte(hash, bytes[i]);
	return hash;
}

int npu_window_replay(struct npu_call_window *window, const struct npu_row *row, uint64_t hash,
		      void *arg, int *ret_result)
{
	uint64_t call = ((struct npu_head *)arg)->call;
	uint32_t i;

	if (call > window->newest)
		return 0;
	for (i = 0; i < NPU_CALL_WINDOW; i++) {
		const struct npu_call_result *result = &window->results[i];

		if (result->call != call)
			continue;
		if (result->nr != row->nr || result->hash != hash)
			return -EINVAL;
		memcpy((uint8_t *)arg + sizeof(struct npu_head), result->out,
		       row->size - sizeof(struct npu_head));
		*ret_result = result->result;
		return 1;
	}
	return call <= window->floor ? -ESTALE : 0;
}

void npu_window_store(struct npu_call_window *window, const struct npu_row *row, uint64_t call,
		      uint64_t hash, const void *arg, int result)
{
	struct npu_call_result *slot = &window->results[0];
	uint32_t i;

	for (i = 1; i < NPU_CALL_WINDOW && slot->call; i++) {
		if (window->results[i].call < slot->call)
			slot = &window->results[i];
	}
	if (slot->call > window->floor)
		window->floor = slot->call;
	if (call > window->newest)
		window->newest = call;
	slot->call = call;
	slot->hash = hash;
	slot->nr = row->nr;
	slot->result = result;
	memcpy(slot->out, (const uint8_t *)arg + sizeof(struct npu_head),
	       row->size - sizeof(struct npu_head));
}
