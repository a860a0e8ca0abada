/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A launch is one ring entry; host arguments are copied into the argument ring beside it, where the
 * device reads them in place, so a placeholder's address points there too.
 */
#include <string.h>

#include "client/rt/internal.h"

static int function_unknown(const void *handle)
{
	return rt_error(ACL_ERROR_RT_INVALID_HANDLE, "EE1001",
			"%p is not a kernel of a loaded image", handle);
}

/* Finds kernel and stream; on success the stream's lock is held. */
static int launch_begin(void *function_handle, void *stream_handle,
			struct rt_function **ret_function, struct rt_stream **ret_stream)
{
	struct rt_function *function = NULL;
	struct rt_stream *stream = NULL;
	int r;

	RT_ALIVE();
	function = drv_handle_get(&rt_functions, function_handle);
	if (!function)
		return function_unknown(function_handle);
	r = rt_stream_find(stream_handle, &stream);
	if (r)
		return r;
	if (function->space != stream->space)
		return rt_error(ACL_ERROR_RT_STREAM_CONTEXT, "EE1001",
				"the kernel is loaded on another "
				"device than the stream's (%d)",
				stream->device->id);
	r = rt_stream_begin(stream, stream_handle);
	if (r)
		return r;
	*ret_function = function;
	*ret_stream = stream;
	return 0;
}

static void launch_entry(struct npu_entry *entry, const struct rt_function *function,
			 uint32_t blocks, uint64_t timeout_us)
{
	if (!timeout_us)
		timeout_us = atomic_load_explicit(&rt_kernel_timeout_us, memory_order_relaxed);
	entry->op = NPU_OP_KERNEL;
	entry->kernel.module = function->device_module;
	entry->kernel.func = function->func;
	entry->kernel.blocks = blocks;
	entry->kernel.args_size = function->args_size;
	entry->kernel.timeout_us = timeout_us > UINT32_MAX ? UINT32_MAX : (uint32_t)timeout_us;
}

static int args_check(const struct rt_function *function, size_t size,
		      const struct rt_placeholder *holders, size_t nholders)
{
	if (size > RT_ARGS_MAX)
		return rt_error(ACL_ERROR_RT_PARAM_INVALID, "EE1001",
				"kernel %s: %zu bytes of arguments "
				"and data, the limit is %u",
				function->name, size, RT_ARGS_MAX);
	if (nholders ? size < function->args_size :
		       ((size + 7) & ~(size_t)7) != function->args_size)
		return rt_error(ACL_ERROR_RT_PARAM_INVALID, "EE1001",
				"kernel %s takes %u bytes of "
				"arguments, not %zu",
				function->name, function->args_size, size);
	for (size_t i = 0; i < nholders; i++)
		if (holders[i].address_offset % 8 || function->args_size < 8 ||
		    holders[i].address_offset > function->args_size - 8 ||
		    holders[i].data_offset >= size)
			return rt_error(
				ACL_ERROR_RT_PARAM_INVALID, "EE1001",
				"kernel %s: pointer %zu at %u "
				"to data at %u lies outside of the arguments (%u of %zu bytes)",
				function->name, i, holders[i].address_offset,
				holders[i].data_offset, function->args_size, size);
	return 0;
}

int rt_launch(void *function_handle, uint32_t blocks, const void *args, size_t size,
	      const struct rt_placeholder *holders, size_t nholders, uint64_t timeout_us,
	      void *stream_handle)
{
	struct rt_function *function = NULL;
	struct rt_stream *stream = NULL;
	struct drv_ring *ring;
	struct npu_entry *entry;
	uint64_t offset = 0;
	unsigned char *to;
	size_t bytes;
	int r = launch_begin(function_handle, stream_handle, &function, &stream);

	if (__builtin_expect(r, 0))
		return r;
	bytes = size > function->args_size ? size : function->args_size;
	r = args_check(function, size, holders, nholders);
	if (!r)
		r = rt_stream_reserve(stream, bytes, &entry, &offset);
	if (__builtin_expect(r, 0)) {
		rt_stream_unlock(stream);
		return r;
	}
	ring = atomic_load_explicit(&stream->ring, memory_order_relaxed);
	to = ring->args + offset;
	if (size)
		memcpy(to, args, size);
	if (size < bytes)
		memset(to + size, 0, bytes - size);
	for (size_t i = 0; i < nholders; i++) {
		uint64_t address = ring->args_address + offset + holders[i].data_offset;

		memcpy(to + holders[i].address_offset, &address, sizeof(address));
	}
	launch_entry(entry, function, blocks, timeout_us);
	entry->kernel.args = offset;
	entry->kernel.args_total = (uint32_t)bytes;
	drv_ring_submit(ring);
	rt_stream_unlock(stream);
	return 0;
}

int rt_launch_device_args(void *function_handle, uint32_t blocks, const void *args, size_t size,
			  uint64_t timeout_us, void *stream_handle)
{
	struct rt_function *function = NULL;
	struct rt_stream *stream = NULL;
	struct npu_entry *entry;
	int r = launch_begin(function_handle, stream_handle, &function, &stream);

	if (r)
		return r;
	if (((size + 7) & ~(size_t)7) != function->args_size)
		r = rt_error(ACL_ERROR_RT_PARAM_INVALID, "EE1001",
			     "kernel %s takes %u bytes of arguments, "
			     "not %zu",
			     function->name, function->args_size, size);
	else if (function->args_size && (!drv_in_window(args) || (uintptr_t)args % 8))
		r = rt_error(ACL_ERROR_RT_PARAM_INVALID, "EE1001",
			     "kernel %s: the arguments at %p are not "
			     "in device memory, or not 8 byte aligned",
			     function->name, args);
	if (!r)
		r = rt_stream_reserve(stream, 0, &entry, NULL);
	if (!r) {
		launch_entry(entry, function, blocks, timeout_us);
		entry->flags |= NPU_ENTRY_ARGS_DEVICE;
		entry->kernel.args = (uintptr_t)args;
		entry->kernel.args_total = function->args_size;
		drv_ring_submit(atomic_load_explicit(&stream->ring, memory_order_relaxed));
	}
	rt_stream_unlock(stream);
	return r;
}
