/* SPDX-License-Identifier: Apache-2.0 */
/*
 * handle - tables of objects that the program names by opaque handles
 *
 * A handle is {type, generation, slot} in the shape of a pointer, never NULL. Objects live in their
 * slots for the life of the process: looking one up takes no lock and never touches freed memory. A
 * stale, foreign or random handle is found out by type and generation. An object that may be freed
 * by another thread meanwhile is looked at again under its own lock: drv_handle_live().
 */
#ifndef NPU_CLIENT_DRV_HANDLE_H
#define NPU_CLIENT_DRV_HANDLE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DRV_HANDLE_PAGE	 64u   /* slots that are allocated together */
#define DRV_HANDLE_PAGES 4096u /* pages of one table at most */

/* First member of each object. */
struct drv_object {
	_Atomic uint32_t generation; /* odd: live */
	uint32_t slot;
	uint32_t next_free;
};

struct drv_handles {
	uint32_t type; /* 1..15, one a table */
	uint32_t max;  /* slots, at most DRV_HANDLE_PAGE * DRV_HANDLE_PAGES */
	size_t size;   /* of an object */
	pthread_mutex_t lock;
	uint32_t used;	    /* slots ever used */
	uint32_t free_head; /* slot + 1, 0: none */
	uint32_t live;
	_Atomic(char *) pages[DRV_HANDLE_PAGES];
};

#define DRV_HANDLES_INIT(type_, max_, object_)                           \
	{                                                                \
		.type = (type_), .max = (max_), .size = sizeof(object_), \
		.lock = PTHREAD_MUTEX_INITIALIZER                        \
	}

/*
 * A slot for a new object. Its bytes behind struct drv_object are zero at the slot's first use,
 * else what the last user left. It is not found by its handle before drv_handle_publish(). NULL:
 * none left.
 */
void *drv_handle_new(struct drv_handles *table);
void *drv_handle_publish(struct drv_handles *table, void *object);

/* The object, or NULL. */
void *drv_handle_get(struct drv_handles *table, const void *handle);

/* Ends the handle, at once and for all; false when another thread did so before. */
bool drv_handle_retire(struct drv_handles *table, void *object, const void *handle);

/* Gives the slot back: after drv_handle_retire(), or instead of drv_handle_publish(). */
void drv_handle_free(struct drv_handles *table, void *object);

/* Whether the object is still the one of this handle. */
bool drv_handle_live(const void *object, const void *handle);

/* Handle of a published object. */
void *drv_handle_of(const struct drv_handles *table, const void *object);

/*
 * The next live object from slot *cursor on, or NULL at the end; moves *cursor behind it. Objects
 * made meanwhile may be left out.
 */
void *drv_handle_next(struct drv_handles *table, uint32_t *cursor);

uint32_t drv_handle_count(struct drv_handles *table);

#endif
