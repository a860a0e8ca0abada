/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NPU_CORE_OBJECT_H
#define NPU_CORE_OBJECT_H

#include "daemon/core/session.h"

/*
 * What a client makes on a device: contexts, memory, queues, modules, named by ids of its session.
 * All functions start an operation (op.h). Common errors: -ENOENT no such object of this session,
 * -ENODEV the device is lost or not open, -ETIMEDOUT, -EMFILE too many objects of that kind,
 * -ENOMEM, and what the device answers (-EINVAL, -EBUSY ...). An object whose destruction has begun
 * has no id any more. The loop's thread.
 */

struct context_params {
	uint32_t priority, weight, cores;
};

int context_create(struct session *session, unsigned int device,
		   const struct context_params *params, struct op *op);
/* Its queues go with it. -EBUSY while one of them is being created. */
int context_destroy(struct session *session, uint32_t id, struct op *op);
/* fields: bits of the device interface. */
int context_set(struct session *session, uint32_t id, uint32_t fields,
		const struct context_params *params, struct op *op);

/*
 * Allocates and maps (images are not mapped). op->memory, and one fd when it can be mapped by the
 * client. -EDQUOT: a quota, whose is in the text; -ENOSPC: the device's memory; op->wanted, limit
 * and largest are set for both.
 */
int memory_alloc(struct session *session, unsigned int device, uint64_t bytes, uint32_t kind,
		 uint32_t flags, struct op *op);
/* op->memory.generation */
int memory_free(struct session *session, uint64_t id, struct op *op);

struct queue_params {
	uint32_t priority, fail_mode, window;
};

int queue_create(struct session *session, uint32_t context, const struct queue_params *params,
		 struct op *op);
int queue_destroy(struct session *session, uint32_t id, struct op *op);
/* op->queue.epoch */
int queue_ctrl(struct session *session, uint32_t id, uint32_t what, uint32_t value, struct op *op);

/* Ends when the engine has read the image: -ENOEXEC with its reason as text when it was refused. */
int module_load(struct session *session, uint64_t memory, uint64_t bytes, struct op *op);
int module_unload(struct session *session, uint32_t id, struct op *op);
/* name "": by index. op->func */
int module_lookup(struct session *session, uint32_t id, const char *name, uint32_t func,
		  struct op *op);

#endif
