/* SPDX-License-Identifier: Apache-2.0 */
/*
 * internal - objects of the runtime, shared by the files of this directory
 *
 * Objects live in handle tables for ever (client/drv/handle.h). A stream's mutex serialises its
 * producers and guards what is marked [lock]; it is taken before any lock of drv.
 */
#ifndef NPU_CLIENT_RT_INTERNAL_H
#define NPU_CLIENT_RT_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "acl/error_codes/rt_error_codes.h"
#include "client/drv/drv.h"
#include "client/drv/handle.h"
#include "client/drv/ring.h"
#include "client/drv/space.h"
#include "client/rt/rt.h"

#define RT_MAX_DEVICES	 64u
#define RT_MAX_CONTEXTS	 1024u
#define RT_MAX_STREAMS	 16384u
#define RT_MAX_EVENTS	 131072u
#define RT_MAX_MODULES	 4096u
#define RT_MAX_FUNCTIONS 65536u
#define RT_PRIORITIES	 8u

struct rt_context;

struct rt_device {
	int32_t id; /* as the program counts */
	uint32_t npud_id;
	struct drv_device info;		   /* as first seen */
	_Atomic(struct drv_space *) space; /* from the first context on */
	uint32_t sets;			   /* device_lock */
	uint32_t contexts;		   /* device_lock: those that exist */
	struct rt_context *primary;	   /* once made, for ever */
	void *primary_handle;
	_Atomic uint32_t streams;
	_Atomic uint64_t peers; /* bit: access to that device was asked for */
};

struct rt_context {
	struct drv_object object;
	void *handle;
	struct rt_device *device;
	struct drv_space *space;
	uint32_t ctx, slot; /* npud's id, index of its error word */
	bool primary;
	_Atomic bool active; /* false: a primary context after its last reset */
	void *default_stream;
};

/* A copy of pageable memory on its way. */
struct rt_staged {
	struct rt_staged *next;
	uintptr_t address; /* of the pinned buffer */
	size_t bytes;
	uint64_t target; /* free when the ring has done this */
};

struct rt_callback {
	struct rt_callback *next;
	void (*fn)(void *arg);
	void *arg;
	uint64_t seq;
	bool block; /* the stream waits for its end */
};

struct rt_stream {
	struct drv_object object;
	pthread_mutex_t lock;
	bool lock_made;
	void *handle;
	struct rt_context *context;
	void *context_handle;
	struct rt_device *device;
	struct drv_space *space;
	uint32_t priority, flags;
	_Atomic uint32_t fail_mode;
	bool is_default;
	uint32_t queue;			 /* npud's id, when there is a ring */
	_Atomic(struct drv_ring *) ring; /* from first use on */
	struct drv_ring *spare_ring;	 /* of the slot's last user */
	_Atomic uint64_t errors_seen;
	struct rt_staged *staged, **staged_end; /* [lock] oldest first */
	size_t staged_bytes;			/* [lock] */
	/* Host callbacks, oldest first; callback_lock guards them. */
	_Atomic uint64_t report_thread;	 /* pthread id, 0: the library's own thread */
	_Atomic uint64_t callbacks_done; /* seq of the last that was taken */
	struct rt_callback *callbacks, **callbacks_end;
	uint64_t callback_seq;
};

struct rt_event {
	struct drv_object object;
	pthread_mutex_t lock;
	bool lock_made;
	struct rt_device *device;
	struct drv_space *space;
	uint32_t flags;
	bool ex;
	bool recorded;
	bool has_word;
	uint32_t index, value;	  /* word in the slab, and what it reaches */
	struct rt_stream *stream; /* of the last record */
	void *stream_handle;
	struct drv_ring *ring;
	uint64_t target; /* done value of ring at which the record is complete */
};

struct rt_function;

struct rt_module {
	struct drv_object object;
	pthread_mutex_t lock;
	bool lock_made;
	void *handle;
	void *context_handle;
	struct rt_device *device;
	struct drv_space *space;
	uint32_t module, device_module, nfuncs;
	char *label;		       /* file name, or "image in memory" */
	struct rt_function *functions; /* [lock] */
};

struct rt_function {
	struct drv_object object;
	void *handle;
	struct rt_function *next;
	struct drv_space *space;
	uint32_t device_module, func, args_size, nparams;
	uint32_t param_sizes[DRV_PARAMS_MAX];
	char name[DRV_NAME_MAX];
};

/* Handle tables, in the file of their object. */
extern struct drv_handles rt_contexts, rt_streams, rt_events, rt_modules, rt_functions;

/* ---- errors (error.c) ---- */

/* Code and text for a failed drv call, as drv_error() has it: "what: why". */
int rt_error_drv(int error, const char *what);
int rt_error_forked(void);
int rt_error_lost(const struct drv_space *space, uint32_t device);

#define RT_ALIVE()                                \
	do {                                      \
		if (drv_process_dead())           \
			return rt_error_forked(); \
	} while (0)

/* ---- device, context ---- */

/* The device for an id of the program; loads the list at first. */
int rt_device_find(int32_t id, struct rt_device **ret_device);

/* Its space; opens it when there is none. device_lock is taken. */
int rt_device_space(struct rt_device *device, struct drv_space **ret_space);

/* Makes the configured default device current, or 107002. */
int rt_device_use_default(void);

/* Forgets spaces and the list of devices, when no context is left: true. */
bool rt_device_close_all(void);

/* Makes ctx work: creates it at npud, with its default stream. Outputs in context. */
int rt_context_begin(struct rt_context *context, struct rt_device *device);
/* Waits unless force, destroys its streams, then it. */
void rt_context_end(struct rt_context *context, bool force);
int rt_context_new_primary(struct rt_device *device);
void rt_context_bind_primary(struct rt_device *device);

bool rt_context_any(void); /* whether one is active */

/* Current context of the thread; 107002. */
int rt_current(struct rt_context **ret_context);

/* What a space's end takes with it. */
void rt_event_drop_space(struct drv_space *space);
void rt_module_drop_space(struct drv_space *space);
void rt_callback_stop(struct drv_space *space);

/* ---- stream ---- */

int rt_stream_new(struct rt_context *context, uint32_t priority, uint32_t flags, bool is_default,
		  void **ret_handle);
void rt_stream_end(struct rt_stream *stream, void *handle, bool force);

/* The stream of a handle; NULL: the default stream. */
int rt_stream_find(void *handle, struct rt_stream **ret_stream);

/*
 * Takes the stream's lock and sees that it is alive, has a ring and may take work. On success the
 * lock is held; rt_stream_unlock() gives it back.
 */
int rt_stream_begin(struct rt_stream *stream, void *handle);
static inline void rt_stream_unlock(struct rt_stream *stream)
{
	pthread_mutex_unlock(&stream->lock);
}

/* drv_ring_reserve() with codes; the lock is held. */
int rt_stream_reserve(struct rt_stream *stream, size_t args, struct npu_entry **ret_entry,
		      uint64_t *ret_offset);

/* Waits until the stream's ring has done target; timeout_ms < 0: for ever. Codes. */
int rt_stream_wait(struct rt_stream *stream, struct drv_ring *ring, uint64_t target,
		   int32_t timeout_ms);

/* Handle NULL stands for the stream's own. */
static inline void *rt_stream_handle(struct rt_stream *stream, void *handle)
{
	return handle ? handle : stream->handle;
}

/* ---- faults (fault.c) ---- */

/* Faults of the stream that no sync has told yet, or that stick; 0: none. */
int rt_fault_take(struct rt_stream *stream);
/* Why a stream takes no work: device lost, or its context stopped. 0: it does. */
int rt_fault_sticky(struct rt_stream *stream);
/* Code of a fault; op: enum npu_op. */
int rt_fault_code(uint32_t kind, uint32_t op);
const char *rt_fault_name(uint32_t kind);

/* Copies the name of a kernel, "?" when unknown. */
void rt_module_kernel_name(const struct drv_space *space, uint32_t device_module, uint32_t func,
			   char *name, size_t size);

/* ---- memory ---- */

/* Frees pinned buffers of copies that are done; all: of every copy. [lock] */
void rt_staged_reap(struct rt_stream *stream, bool all);

/* A range that a copy or fill names, with a reference on its block. */
struct rt_range {
	struct drv_block *block; /* NULL: the program's own memory */
	unsigned char *address;
	bool device; /* device memory; else pinned, or the program's */
};

/* Sees that [address, address + bytes) is one allocation, or not ours. */
int rt_range_get(const void *address, size_t bytes, struct rt_range *ret_range);
void rt_range_put(struct rt_range *range);

/* Where the CPU reaches the range; NULL: only the device does. */
unsigned char *rt_range_cpu(const struct rt_range *range);

int rt_alloc(struct drv_space *space, uint32_t kind, size_t usable, uint32_t flags,
	     uintptr_t *ret_address);
int rt_release(struct drv_block *block, uintptr_t address);

/* Copies by the device, for memory that the CPU does not reach (dma.c). Return when complete. */
int rt_dma_copy(const struct rt_range *dst, const struct rt_range *src, size_t bytes);
int rt_dma_copy2d(const struct rt_range *dst, size_t dst_pitch, const struct rt_range *src,
		  size_t src_pitch, size_t width, size_t height);
int rt_dma_fill(const struct rt_range *dst, uint8_t value, size_t bytes);
void rt_dma_drop_space(struct drv_space *space);

/* ---- limits ---- */

extern _Atomic uint64_t rt_wait_timeout_ms;   /* 0: none */
extern _Atomic uint64_t rt_kernel_timeout_us; /* 0: the device's */

/* ---- callbacks ---- */

/* Drops callbacks that a dead stream still has. */
void rt_callback_drop(struct rt_stream *stream);

/* Deadline for a time-out in ms. */
static inline uint64_t rt_deadline(int32_t timeout_ms)
{
	return timeout_ms < 0 ? UINT64_MAX : drv_now_ns() + (uint64_t)timeout_ms * 1000000u;
}

#endif
