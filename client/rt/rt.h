/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt - the runtime under the public calls: devices, contexts, streams, events, memory, kernels
 *
 * The layer above checks what it can see without an object (NULL, zero sizes, ranges of enums) and
 * then makes one call of this header. Every function that returns int returns 0 or a code of
 * acl/error_codes/rt_error_codes.h, has then recorded it as the thread's last error and left a text
 * (see rt_error()), and has changed nothing. Outputs are written only on success. All functions may
 * be called from any thread at any time; one that needs the device connects to npud by itself.
 *
 * A handle is a number in the shape of a pointer: it names a slot and its generation, so one that
 * is dead, foreign or garbage is found out and gives 107002 (context), 107003 (stream) or 107017
 * (event, image, kernel); nothing is ever read through it. NULL as stream is the default stream of
 * the thread's current context.
 *
 * In a child of fork() every call gives 507033: what the parent had belongs to the parent.
 */
#ifndef NPU_CLIENT_RT_RT_H
#define NPU_CLIENT_RT_RT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- process ---- */

/* Prepares the process (no connection yet). May be repeated. */
int rt_init(void);

/*
 * Ends the use: when no context is left, lets go of every device and of npud. With contexts alive
 * it leaves them working: they end with the process.
 */
int rt_fini(void);

/* ---- errors ---- */

/*
 * Records code as the thread's last error and adds a text "id: text" to what rt_error_recent()
 * tells; returns code. id is one of "EE1001" (caller's mistake), "EE1002" (time-out), "EE1003"
 * (no resource), "EL0003" (connection, device), "EL0004" (device out of memory), "EZ9999" (device
 * fault), "EE9999" (internal).
 */
int rt_error(int code, const char *id, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The same without touching the last error: for the checks of the layer above ("EH0001", ...). */
void rt_error_text(const char *id, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * Texts since the last call, newest first, a newline between two; NULL when there are none. Taken
 * by reading. Belongs to the thread and lives until its next call.
 */
const char *rt_error_recent(void);

/* true: one list of texts for the process instead of one a thread. */
void rt_error_share(bool process);

/* Last code of the thread; get also sets it back to 0. */
int rt_last_error_peek(void);
int rt_last_error_get(void);

/* ---- device ---- */

struct rt_device_info {
	char name[64]; /* of the chip */
	uint32_t cores;
	uint64_t memory_total, memory_free; /* bytes */
	uint32_t util_permille;		    /* of all cores over about the last second */
	bool healthy;
	bool peer;		     /* can reach memory of other devices */
	bool virtual_device;	     /* a simulator */
	uint64_t default_timeout_us; /* of a kernel */
	uint32_t max_streams;	     /* of this process */
};

/* Devices that this process may see; ids are 0 .. count - 1. */
int rt_device_count(uint32_t *ret_count);

/* Fresh facts; bad id: 107001. Makes no context. */
int rt_device_info(int32_t device, struct rt_device_info *ret_info);

/* Name of device 0, owned by the library; NULL when there is none. */
const char *rt_device_soc_name(void);

/* Counted; makes the primary context current on this thread. */
int rt_device_set(int32_t device);
/* Takes one set back; at the last one waits and releases the primary context. */
int rt_device_reset(int32_t device);
int rt_device_reset_force(int32_t device);

/* Device that calls needing a context set by themselves, or -1. */
void rt_device_default(int32_t device);

/* Of the current context. */
int rt_device_current(int32_t *ret_device);

/* Waits for every stream of the process on the current device; timeout_ms < 0: for ever. */
int rt_device_sync(int32_t timeout_ms);

int rt_device_primary_active(int32_t device, bool *ret_active);

/* Peer access from the current device, one way; 207000 when the device cannot. */
int rt_device_can_peer(int32_t device, int32_t peer, bool *ret_can);
int rt_device_enable_peer(int32_t peer);
int rt_device_disable_peer(int32_t peer);

/* ---- context ---- */

/* Makes it current on this thread as well. */
int rt_context_create(int32_t device, void **ret_context);
int rt_context_destroy(void *context);
int rt_context_set_current(void *context);
int rt_context_current(void **ret_context);
int rt_context_default_stream(void **ret_stream);

/* ---- limits on time, of the process ---- */

/* Of event waits queued later; 0: none. */
void rt_timeout_set_wait(uint64_t timeout_us);
/* Of kernels launched later; 0: the device's longest. Gives what it was rounded up to. */
int rt_timeout_set_kernel(uint64_t timeout_us, uint64_t *ret_actual_us);
#define RT_TIMEOUT_STEP_US 1000000u /* step of a limit of kernels */
#define RT_TIMEOUT_STEPS   254u	    /* longest limit, in steps */

/* ---- stream ---- */

enum rt_fail_mode { RT_FAIL_CONTINUE = 0, RT_FAIL_STOP = 1 };

int rt_stream_create(uint32_t priority, uint32_t flags, void **ret_stream);
int rt_stream_destroy(void *stream, bool force);
/* timeout_ms < 0: for ever. Returns a fault of the stream's work. */
int rt_stream_sync(void *stream, int32_t timeout_ms);
int rt_stream_query(void *stream, bool *ret_complete);
int rt_stream_id(void *stream, int32_t *ret_id);
int rt_stream_priority(void *stream, uint32_t *ret_priority);
int rt_stream_available(uint32_t *ret_count);
int rt_stream_set_fail_mode(void *stream, enum rt_fail_mode mode);
int rt_stream_wait_event(void *stream, void *event);

/* ---- event ---- */

/*
 * flags: ACL_EVENT_*; ex: may be recorded again and again, reads complete before its first record.
 */
int rt_event_create(uint32_t flags, bool ex, void **ret_event);
int rt_event_destroy(void *event);
int rt_event_record(void *event, void *stream);
int rt_event_query(void *event, bool *ret_complete);
int rt_event_sync(void *event, int32_t timeout_ms);
int rt_event_elapsed(void *start, void *end, float *ret_ms);

/* ---- memory ---- */

enum rt_pages { RT_PAGES_HUGE_FIRST = 0, RT_PAGES_HUGE_ONLY = 1, RT_PAGES_NORMAL = 2 };

/*
 * Device memory of the current context's device (64 byte aligned). usable is what the caller may
 * use: the layer above does the rounding that each public call promises. 207001 when there is none.
 */
int rt_malloc(size_t usable, enum rt_pages pages, void **ret_address);
int rt_free(void *address);
/* Pinned host memory: the same address on host and device. */
int rt_malloc_host(size_t usable, void **ret_address);
int rt_free_host(void *address);

struct rt_mem_info {
	uint64_t free, total;
}; /* bytes, of the current device */
int rt_mem_info(struct rt_mem_info *ret_info);

enum rt_place { RT_PLACE_HOST = 0, RT_PLACE_DEVICE = 1, RT_PLACE_UNKNOWN = 2 };
struct rt_pointer_info {
	enum rt_place place; /* HOST: pinned; UNKNOWN: the program's own */
	int32_t device;	     /* 0 when not ours */
	uint64_t page;	     /* bytes */
};
/* Any address; needs no context and makes no connection. */
int rt_pointer_info(const void *address, struct rt_pointer_info *ret_info);

/*
 * Copies; direction is found from the addresses. count > 0 and within the destination as the caller
 * told it. A range that leaves its allocation gives 107000.
 */
int rt_memcpy(void *dst, const void *src, size_t count);
int rt_memcpy_async(void *dst, const void *src, size_t count, void *stream);
int rt_memcpy2d(void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width,
		size_t height);
int rt_memcpy2d_async(void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width,
		      size_t height, void *stream);
int rt_memset(void *address, int32_t value, size_t count);
int rt_memset_async(void *address, int32_t value, size_t count, void *stream);

/* ---- kernels ---- */

/* Loads onto the current device. A file that cannot be read: 107009; a refused image: 107000. */
int rt_module_load(const void *data, size_t size, void **ret_module);
int rt_module_load_file(const char *path, void **ret_module);
int rt_module_unload(void *module);
/* No such name: 507027. The kernel lives as long as the image. */
int rt_module_function(void *module, const char *name, void **ret_function);

struct rt_function_info {
	const char *name;   /* lives as long as the image */
	uint32_t args_size; /* bytes; parameters rounded up to 8 each */
	uint32_t nparams;
	const uint32_t *param_sizes; /* as name */
};
int rt_function_info(void *function, struct rt_function_info *ret_info);

/* Whether the kernel still exists. Records nothing. */
bool rt_function_live(const void *function);

struct rt_placeholder {
	uint32_t address_offset; /* where the device address goes, 8 byte aligned */
	uint32_t data_offset;	 /* of the data that it points to */
};

#define RT_ARGS_MAX 16384u /* bytes of host arguments, data behind placeholders included */

/*
 * Queues a launch. size is that of args; without placeholders it must be the kernel's, with them at
 * least that. The bytes are copied before the call returns. timeout_us 0: the process's limit.
 */
int rt_launch(void *function, uint32_t blocks, const void *args, size_t size,
	      const struct rt_placeholder *holders, size_t nholders, uint64_t timeout_us,
	      void *stream);

/* The same with all arguments in device memory, which must stay until the kernel has run. */
int rt_launch_device_args(void *function, uint32_t blocks, const void *args, size_t size,
			  uint64_t timeout_us, void *stream);

/* ---- callbacks on the host ---- */

/* Queued: a thread of the library runs fn(arg), the stream waits for it. */
int rt_host_func(void *stream, void (*fn)(void *arg), void *arg);

/* thread is a pthread id; it runs the callbacks of the stream inside rt_report_process(). */
int rt_report_subscribe(uint64_t thread, void *stream);
int rt_report_unsubscribe(uint64_t thread, void *stream);
int rt_report_launch(void *stream, void (*fn)(void *arg), void *arg, bool block);
/* Runs what is due on this thread; timeout_ms < 0: waits for ever. 507012: nothing came. */
int rt_report_process(int32_t timeout_ms);

#endif
