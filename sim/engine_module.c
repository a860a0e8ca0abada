/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modules of an engine: an open-addressed table that workers read without a lock. The control thread
 * alone changes it. A dropped image stays until each worker has been seen outside of the run in which
 * it was at the drop, since it may be running that code.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "sim/engine.h"

#define IMAGE_MAX (64u << 20)

static struct engine_module_slot dropped; /* keeps probe chains whole */

static void collect(struct engine *e)
{
	struct engine_module_slot **at = &e->dead;

	while (*at) {
		struct engine_module_slot *m = *at;
		bool used = false;

		for (uint32_t i = 0; i < e->cores; i++) {
			uint64_t run = __atomic_load_n(&e->state->cores[i].run, __ATOMIC_ACQUIRE);

			used |= (m->run_at_drop[i] & 1) && run == m->run_at_drop[i];
		}
		if (used) {
			at = &m->next_dead;
			continue;
		}
		*at = m->next_dead;
		engine_image_free(m->image);
		free(m);
	}
}

static struct engine_module_slot *_Atomic *find_slot(struct engine *e, uint32_t id)
{
	for (uint32_t i = 0; i < ENGINE_MODULES; i++) {
		struct engine_module_slot *_Atomic *slot = &e->modules[(id + i) & (ENGINE_MODULES - 1)];
		struct engine_module_slot *m = atomic_load_explicit(slot, memory_order_acquire);

		if (!m)
			return NULL;
		if (m != &dropped && m->id == id)
			return slot;
	}
	return NULL;
}

const struct engine_image *engine_module_find(struct engine *e, uint32_t id)
{
	struct engine_module_slot *_Atomic *slot = find_slot(e, id);

	return slot ? atomic_load_explicit(slot, memory_order_acquire)->image : NULL;
}

int engine_module_load(struct engine *e, uint32_t id, int fd, uint64_t bytes, char *ret_text,
		       size_t text_size, const struct engine_image **ret_image)
{
	struct engine_module_slot *m;
	void *map, *copy;
	int r;

	collect(e);
	if (!bytes || bytes > IMAGE_MAX) {
		snprintf(ret_text, text_size, "an image of %llu bytes: 1 to %u are allowed",
			 (unsigned long long)bytes, IMAGE_MAX);
		return -EFBIG;
	}
	if (find_slot(e, id))
		return -EEXIST;

	/* The client can still write the file: everything below works on a copy. */
	map = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	copy = malloc(bytes);
	if (copy)
		memcpy(copy, map, bytes);
	munmap(map, bytes);
	m = calloc(1, sizeof(*m));
	if (!copy || !m) {
		free(copy);
		free(m);
		return -ENOMEM;
	}
	m->id = id;
	r = engine_image_load(copy, bytes, &m->image, ret_text, text_size);
	free(copy);
	if (r < 0) {
		free(m);
		return r;
	}
	for (uint32_t i = 0; i < ENGINE_MODULES; i++) {
		struct engine_module_slot *_Atomic *slot = &e->modules[(id + i) & (ENGINE_MODULES - 1)];
		struct engine_module_slot *old = atomic_load_explicit(slot, memory_order_relaxed);

		if (old && old != &dropped)
			continue;
		*ret_image = m->image;
		atomic_store_explicit(slot, m, memory_order_release);
		return 0;
	}
	engine_image_free(m->image);
	free(m);
	snprintf(ret_text, text_size, "more than %u modules", ENGINE_MODULES);
	return -ENOSPC;
}

int engine_module_drop(struct engine *e, uint32_t id)
{
	struct engine_module_slot *_Atomic *slot = find_slot(e, id);
	struct engine_module_slot *m;

	if (!slot)
		return -ENOENT;
	m = atomic_load_explicit(slot, memory_order_relaxed);
	atomic_store(slot, &dropped);
	for (uint32_t i = 0; i < e->cores; i++)
		m->run_at_drop[i] = __atomic_load_n(&e->state->cores[i].run, __ATOMIC_SEQ_CST);
	m->next_dead = e->dead;
	e->dead = m;
	collect(e);
	return 0;
}
