/* SPDX-License-Identifier: Apache-2.0 */
/*
 * drv - the process's connection to npud, and the calls over it
 *
 * There is one connection a process, made at the first call that needs it. A call is one round trip
 * under a mutex with a deadline; nothing on the data plane comes here. All functions return 0 or a
 * negative errno and then leave a description in drv_error() of the calling thread:
 *
 *   -ENOENT, -ECONNREFUSED, -EACCES  npud cannot be reached, or refuses this user
 *   -EPROTO      npud speaks another major version
 *   -ENOTCONN    npud went away; rings go on working, calls do not
 *   -ETIMEDOUT   npud or the device did not answer in time
 *   -ECHILD      a forked child: see drv_process_dead()
 *   others       what npud answered, see drv_errno_from_status()
 */
#ifndef NPU_CLIENT_DRV_DRV_H
#define NPU_CLIENT_DRV_DRV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DRV_LIBRARY "libnpu-client 0.1.0"

/* ---- errors ---- */

struct drv_error {
	int error;			 /* negative errno */
	int status;			 /* enum npu_status that npud answered, or 0 */
	int sys_errno;			 /* from the device, or 0 */
	uint64_t wanted, limit, largest; /* as in npu.Error */
	char text[256];
};

/* Last failure of the calling thread. */
const struct drv_error *drv_error(void);

/* Sets it; returns error (negative errno). */
int drv_fail(int error, const char *format, ...) __attribute__((format(printf, 2, 3)));

int drv_errno_from_status(int status);

/* ---- process ---- */

extern bool drv_process_forked; /* set in the child of a fork() after the first connection */

/*
 * Whether this process lost the device by fork(). Cheap; asked before anything shared is touched.
 */
static inline bool drv_process_dead(void)
{
	return __builtin_expect(drv_process_forked, 0);
}

/* Registers an fd that a forked child closes at once; forget before closing it. */
void drv_process_keep_fd(int fd);
void drv_process_close_fd(int fd); /* forgets and closes; -1 is fine */

/* CLOCK_MONOTONIC. */
uint64_t drv_now_ns(void);

/* ---- connection ---- */

/* Connects when there is no connection. */
int drv_connect(void);

/* Ends it; what it owned at npud goes. The next drv_connect() makes a new one. */
void drv_disconnect(void);

/* Range of device addresses; 0 before the first connection. Reserved PROT_NONE since then. */
extern uintptr_t drv_window_base;
extern size_t drv_window_size;

static inline bool drv_in_window(const void *address)
{
	return (uintptr_t)address - drv_window_base < drv_window_size;
}

/* ---- calls; plain structs of npu.proto, see there ---- */

struct drv_device {
	uint32_t id;
	char name[64];
	uint64_t caps;
	uint32_t health, kind, cores, util_permille, max_queues;
	uint64_t memory_total, memory_free;
	uint64_t default_timeout_us;
};

/* At most max rows; *ret_count is how many there are. */
int drv_call_devices(struct drv_device *devices, size_t max, size_t *ret_count);

struct drv_opened {
	uint64_t slab_size, slab_address;
	struct drv_device device;
	int slab, doorbell, completion, life; /* the caller's */
};
int drv_call_device_open(uint32_t device, struct drv_opened *ret_opened);
int drv_call_device_close(uint32_t device);

int drv_call_ctx_create(uint32_t device, uint32_t *ret_ctx, uint32_t *ret_slot);
int drv_call_ctx_destroy(uint32_t ctx);
int drv_call_ctx_clear_error(uint32_t ctx);

struct drv_memory {
	uint64_t mem, bytes, page, address, generation;
	int fd; /* -1: not host visible; the caller's */
};
int drv_call_mem_alloc(uint32_t device, uint64_t bytes, uint32_t kind, uint32_t flags,
		       struct drv_memory *ret_memory);
int drv_call_mem_free(uint64_t mem, uint64_t *ret_generation);

struct drv_mem_info {
	uint64_t total, free, quota_used, quota_limit, largest_run;
};
int drv_call_mem_info(uint32_t device, struct drv_mem_info *ret_info);

int drv_call_queue_create(uint32_t ctx, uint32_t priority, uint32_t fail_mode, uint32_t *ret_queue,
			  uint32_t *ret_slot);
int drv_call_queue_destroy(uint32_t queue);
int drv_call_queue_ctrl(uint32_t queue, uint32_t op, uint32_t value, uint32_t *ret_epoch);

int drv_call_module_load(uint64_t mem, uint64_t bytes, uint32_t *ret_module,
			 uint32_t *ret_device_module, uint32_t *ret_funcs);
int drv_call_module_unload(uint32_t module);

#define DRV_PARAMS_MAX 64u
#define DRV_NAME_MAX   256u
struct drv_function {
	uint32_t func, args_size, nparams;
	uint32_t param_sizes[DRV_PARAMS_MAX];
	char name[DRV_NAME_MAX];
};
int drv_call_func_lookup(uint32_t module, const char *name, struct drv_function *ret_function);

#endif
