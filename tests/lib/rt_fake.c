/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One line a function: what it noted, what it gives.
 */
#include "tests/lib/rt_fake.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "client/drv/drv.h"

struct rt_fake rt_fake = { .default_device = -1 };
bool drv_process_forked;

void rt_fake_reset(void)
{
	memset(&rt_fake, 0, sizeof(rt_fake));
	rt_fake.default_device = -1;
	drv_process_forked = false;
}

static int called(const char *name)
{
	rt_fake.calls++;
	rt_fake.last = name;
	return rt_fake.code;
}

/* Notes the call; on success runs `gives`. */
#define CALLED(gives)                         \
	do {                                  \
		int code_ = called(__func__); \
		if (code_ == 0) {             \
			gives;                \
		}                             \
		return code_;                 \
	} while (0)

#define NOTE(field, argument) (rt_fake.field = (argument))

/* ---- process, errors ---- */

int rt_init(void)
{
	CALLED();
}

int rt_fini(void)
{
	CALLED();
}

static void line(const char *id, const char *format, va_list args)
{
	int n = snprintf(rt_fake.text, sizeof(rt_fake.text), "%s: ", id);

	vsnprintf(rt_fake.text + n, sizeof(rt_fake.text) - (size_t)n, format, args);
	rt_fake.texts++;
}

int rt_error(int code, const char *id, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	line(id, format, args);
	va_end(args);
	rt_fake.last_error = code;
	return code;
}

void rt_error_text(const char *id, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	line(id, format, args);
	va_end(args);
}

const char *rt_error_recent(void)
{
	return rt_fake.texts ? rt_fake.text : NULL;
}

void rt_error_share(bool process)
{
	rt_fake.shared = process;
}

int rt_last_error_peek(void)
{
	return rt_fake.last_error;
}

int rt_last_error_get(void)
{
	int code = rt_fake.last_error;

	rt_fake.last_error = 0;
	return code;
}

/* ---- device, context, limits ---- */

int rt_device_count(uint32_t *ret_count)
{
	CALLED(*ret_count = 2);
}

int rt_device_info(int32_t device, struct rt_device_info *ret_info)
{
	NOTE(value, device);
	CALLED(*ret_info = ((struct rt_device_info){ .name = "fake",
						     .cores = 6,
						     .memory_total = 1ull << 33,
						     .memory_free = 1ull << 32,
						     .util_permille = 255,
						     .healthy = !rt_fake.flag,
						     .virtual_device = true,
						     .max_streams = 64 }));
}

const char *rt_device_soc_name(void)
{
	called(__func__);
	return "fake";
}

int rt_device_set(int32_t device)
{
	NOTE(value, device);
	CALLED();
}

int rt_device_reset(int32_t device)
{
	NOTE(value, device);
	CALLED();
}

int rt_device_reset_force(int32_t device)
{
	NOTE(value, device);
	CALLED();
}

void rt_device_default(int32_t device)
{
	rt_fake.default_device = device;
}

int rt_device_current(int32_t *ret_device)
{
	CALLED(*ret_device = 1);
}

int rt_device_sync(int32_t timeout_ms)
{
	NOTE(value, timeout_ms);
	CALLED();
}

int rt_device_primary_active(int32_t device, bool *ret_active)
{
	NOTE(value, device);
	CALLED(*ret_active = true);
}

int rt_device_can_peer(int32_t device, int32_t peer, bool *ret_can)
{
	NOTE(value, device);
	NOTE(flags, (uint32_t)peer);
	CALLED(*ret_can = true);
}

int rt_device_enable_peer(int32_t peer)
{
	NOTE(value, peer);
	CALLED();
}

int rt_device_disable_peer(int32_t peer)
{
	NOTE(value, peer);
	CALLED();
}

int rt_context_create(int32_t device, void **ret_context)
{
	NOTE(value, device);
	CALLED(*ret_context = FAKE_HANDLE);
}

int rt_context_destroy(void *context)
{
	NOTE(object, context);
	CALLED();
}

int rt_context_set_current(void *context)
{
	NOTE(object, context);
	CALLED();
}

int rt_context_current(void **ret_context)
{
	CALLED(*ret_context = FAKE_HANDLE);
}

int rt_context_default_stream(void **ret_stream)
{
	CALLED(*ret_stream = FAKE_HANDLE);
}

void rt_timeout_set_wait(uint64_t timeout_us)
{
	NOTE(timeout_us, timeout_us);
	called(__func__);
}

int rt_timeout_set_kernel(uint64_t timeout_us, uint64_t *ret_actual_us)
{
	NOTE(timeout_us, timeout_us);
	CALLED(*ret_actual_us = timeout_us + 1);
}

/* ---- stream, event ---- */

int rt_stream_create(uint32_t priority, uint32_t flags, void **ret_stream)
{
	NOTE(value, priority);
	NOTE(flags, flags);
	CALLED(*ret_stream = FAKE_HANDLE);
}

int rt_stream_destroy(void *stream, bool force)
{
	NOTE(stream, stream);
	NOTE(flag, force);
	CALLED();
}

int rt_stream_sync(void *stream, int32_t timeout_ms)
{
	NOTE(stream, stream);
	NOTE(value, timeout_ms);
	CALLED();
}

int rt_stream_query(void *stream, bool *ret_complete)
{
	NOTE(stream, stream);
	CALLED(*ret_complete = rt_fake.flag);
}

int rt_stream_id(void *stream, int32_t *ret_id)
{
	NOTE(stream, stream);
	CALLED(*ret_id = 17);
}

int rt_stream_priority(void *stream, uint32_t *ret_priority)
{
	NOTE(stream, stream);
	CALLED(*ret_priority = 3);
}

int rt_stream_available(uint32_t *ret_count)
{
	CALLED(*ret_count = 63);
}

int rt_stream_set_fail_mode(void *stream, enum rt_fail_mode mode)
{
	NOTE(stream, stream);
	NOTE(value, mode);
	CALLED();
}

int rt_stream_wait_event(void *stream, void *event)
{
	NOTE(stream, stream);
	NOTE(object, event);
	CALLED();
}

int rt_event_create(uint32_t flags, bool ex, void **ret_event)
{
	NOTE(flags, flags);
	NOTE(flag, ex);
	CALLED(*ret_event = FAKE_HANDLE);
}

int rt_event_destroy(void *event)
{
	NOTE(object, event);
	CALLED();
}

int rt_event_record(void *event, void *stream)
{
	NOTE(object, event);
	NOTE(stream, stream);
	CALLED();
}

int rt_event_query(void *event, bool *ret_complete)
{
	NOTE(object, event);
	CALLED(*ret_complete = rt_fake.flag);
}

int rt_event_sync(void *event, int32_t timeout_ms)
{
	NOTE(object, event);
	NOTE(value, timeout_ms);
	CALLED();
}

int rt_event_elapsed(void *start, void *end, float *ret_ms)
{
	NOTE(object, start);
	NOTE(stream, end);
	CALLED(*ret_ms = 1.5f);
}

/* ---- memory ---- */

int rt_malloc(size_t usable, enum rt_pages pages, void **ret_address)
{
	NOTE(size, usable);
	NOTE(pages, pages);
	CALLED(*ret_address = FAKE_HANDLE);
}

int rt_free(void *address)
{
	NOTE(object, address);
	CALLED();
}

int rt_malloc_host(size_t usable, void **ret_address)
{
	NOTE(size, usable);
	CALLED(*ret_address = FAKE_HANDLE);
}

int rt_free_host(void *address)
{
	NOTE(object, address);
	CALLED();
}

int rt_mem_info(struct rt_mem_info *ret_info)
{
	CALLED(*ret_info = ((struct rt_mem_info){ .free = 100, .total = 200 }));
}

int rt_pointer_info(const void *address, struct rt_pointer_info *ret_info)
{
	NOTE(src, address);
	CALLED(*ret_info = ((struct rt_pointer_info){
		       .place = (enum rt_place)rt_fake.flags, .device = 1, .page = 4096 }));
}

static int copied(const char *name, const void *dst, const void *src, size_t size, void *stream)
{
	rt_fake.dst = dst;
	rt_fake.src = src;
	rt_fake.size = size;
	rt_fake.stream = stream;
	return called(name);
}

int rt_memcpy(void *dst, const void *src, size_t count)
{
	return copied(__func__, dst, src, count, NULL);
}

int rt_memcpy_async(void *dst, const void *src, size_t count, void *stream)
{
	return copied(__func__, dst, src, count, stream);
}

static int rows_copied(const char *name, const void *dst, size_t dst_pitch, const void *src,
		       size_t src_pitch, size_t width, size_t height, void *stream)
{
	rt_fake.pitch[0] = dst_pitch;
	rt_fake.pitch[1] = src_pitch;
	rt_fake.height = height;
	return copied(name, dst, src, width, stream);
}

int rt_memcpy2d(void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width,
		size_t height)
{
	return rows_copied(__func__, dst, dst_pitch, src, src_pitch, width, height, NULL);
}

int rt_memcpy2d_async(void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width,
		      size_t height, void *stream)
{
	return rows_copied(__func__, dst, dst_pitch, src, src_pitch, width, height, stream);
}

int rt_memset(void *address, int32_t value, size_t count)
{
	NOTE(value, value);
	return copied(__func__, address, NULL, count, NULL);
}

int rt_memset_async(void *address, int32_t value, size_t count, void *stream)
{
	NOTE(value, value);
	return copied(__func__, address, NULL, count, stream);
}

/* ---- kernels, callbacks ---- */

int rt_module_load(const void *data, size_t size, void **ret_module)
{
	NOTE(src, data);
	NOTE(size, size);
	CALLED(*ret_module = FAKE_HANDLE);
}

int rt_module_load_file(const char *path, void **ret_module)
{
	NOTE(src, path);
	CALLED(*ret_module = FAKE_HANDLE);
}

int rt_module_unload(void *module)
{
	NOTE(object, module);
	CALLED(rt_fake.image_gone = true);
}

int rt_module_function(void *module, const char *name, void **ret_function)
{
	NOTE(object, module);
	NOTE(src, name);
	CALLED(*ret_function = FAKE_KERNEL);
}

int rt_function_info(void *function, struct rt_function_info *ret_info)
{
	static const uint32_t sizes[] = { 4, 8, 8, 12 }, wide[] = { RT_ARGS_MAX + 8 };
	struct rt_function_info info = {
		.name = "fake", .args_size = FAKE_ARGS_SIZE, .nparams = 4, .param_sizes = sizes
	};

	NOTE(object, function);
	if (function == FAKE_KERNEL_NONE)
		info = (struct rt_function_info){ .name = "none", .param_sizes = sizes };
	else if (function == FAKE_KERNEL_WIDE)
		info = (struct rt_function_info){
			.name = "wide", .args_size = wide[0], .nparams = 1, .param_sizes = wide
		};
	CALLED(*ret_info = info);
}

bool rt_function_live(const void *function)
{
	(void)function;
	return !rt_fake.image_gone;
}

static int launched(const char *name, void *function, uint32_t blocks, size_t size,
		    uint64_t timeout_us, void *stream)
{
	rt_fake.object = function;
	rt_fake.blocks = blocks;
	rt_fake.size = size;
	rt_fake.timeout_us = timeout_us;
	rt_fake.stream = stream;
	return called(name);
}

int rt_launch(void *function, uint32_t blocks, const void *args, size_t size,
	      const struct rt_placeholder *holders, size_t nholders, uint64_t timeout_us,
	      void *stream)
{
	rt_fake.holders = holders;
	rt_fake.nholders = nholders;
	if (args && size <= sizeof(rt_fake.args))
		memcpy(rt_fake.args, args, size);
	return launched(__func__, function, blocks, size, timeout_us, stream);
}

int rt_launch_device_args(void *function, uint32_t blocks, const void *args, size_t size,
			  uint64_t timeout_us, void *stream)
{
	NOTE(src, args);
	return launched(__func__, function, blocks, size, timeout_us, stream);
}

int rt_host_func(void *stream, void (*fn)(void *arg), void *arg)
{
	(void)fn;
	NOTE(stream, stream);
	NOTE(object, arg);
	CALLED();
}

int rt_report_subscribe(uint64_t thread, void *stream)
{
	NOTE(timeout_us, thread);
	NOTE(stream, stream);
	CALLED();
}

int rt_report_unsubscribe(uint64_t thread, void *stream)
{
	NOTE(timeout_us, thread);
	NOTE(stream, stream);
	CALLED();
}

int rt_report_launch(void *stream, void (*fn)(void *arg), void *arg, bool block)
{
	(void)fn;
	NOTE(stream, stream);
	NOTE(object, arg);
	NOTE(flag, block);
	CALLED();
}

int rt_report_process(int32_t timeout_ms)
{
	NOTE(value, timeout_ms);
	CALLED();
}
