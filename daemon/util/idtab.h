/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NPU_UTIL_IDTAB_H
#define NPU_UTIL_IDTAB_H

#include <stdint.h>

/*
 * A table that gives 32-bit ids to pointers. An id is a slot number (20 bits) and the slot's
 * generation (12 bits); a freed slot goes to the end of a queue and comes back with another
 * generation, so an old id is not taken for a new object until its slot was reused 4095 times. Id 0
 * is never given out. Not locked: one thread at a time. The table does not own the pointers.
 */

#define IDTAB_MAX (1u << 20)

struct idtab_slot;

struct idtab {
	struct idtab_slot *slots;
	uint32_t size;	    /* slots allocated */
	uint32_t used;	    /* ids given out now */
	uint32_t limit;	    /* most ids at once */
	uint32_t free_head; /* queue of free slots */
	uint32_t free_tail;
};

/* limit: most ids at once, at most IDTAB_MAX (0: IDTAB_MAX). */
void idtab_init(struct idtab *table, uint32_t limit);
/* Forgets all ids. What they pointed to is the caller's. */
void idtab_fini(struct idtab *table);

/* 0; -ENOSPC at the limit; -ENOMEM. object must not be NULL. */
int idtab_add(struct idtab *table, void *object, uint32_t *ret_id);
/* The object, or NULL for an id that is not in use. */
void *idtab_get(const struct idtab *table, uint32_t id);
/* Takes the id out; the object it had, or NULL. */
void *idtab_remove(struct idtab *table, uint32_t id);
/*
 * Walks over the ids in slot order: *pos starts at 0; NULL at the end. The current id may be
 * removed.
 */
void *idtab_next(const struct idtab *table, uint32_t *pos, uint32_t *ret_id);

#endif
