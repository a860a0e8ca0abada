/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread has an explicit binding (a context it set or created) and, beneath it, the device whose
 * primary context it uses otherwise. Both are kept as handles, so a context that is gone is found
 * out at its next use. A primary context keeps its handle for ever; reset only makes it inactive.
 */
#include <errno.h>
#include <string.h>

#include "client/rt/internal.h"

struct drv_handles rt_contexts = DRV_HANDLES_INIT(1, RT_MAX_CONTEXTS, struct rt_context);

static _Thread_local __attribute__((tls_model("initial-exec"))) struct {
	void *explicit; /* or NULL */
	void *primary;	/* of the device that was set, or NULL */
} bound;

static int context_none(const void *handle)
{
	if (handle)
		return rt_error(ACL_ERROR_RT_CONTEXT_NULL, "EE1001",
				"the context that is current on this "
				"thread was destroyed or its device was reset");
	return rt_device_use_default();
}

int rt_current(struct rt_context **ret_context)
{
	for (int pass = 0;; pass++) {
		void *handle = bound.explicit ? bound.explicit : bound.primary;
		struct rt_context *context;
		int r;

		RT_ALIVE();
		context = drv_handle_get(&rt_contexts, handle);
		if (context && atomic_load_explicit(&context->active, memory_order_acquire)) {
			if (drv_space_lost(context->space))
				return rt_error_lost(context->space, (uint32_t)context->device->id);
			*ret_context = context;
			return 0;
		}
		r = context_none(handle);
		if (r || pass)
			return r;
	}
}

bool rt_context_any(void)
{
	struct rt_context *context = NULL;
	uint32_t cursor = 0;

	while ((context = drv_handle_next(&rt_contexts, &cursor)))
		if (atomic_load(&context->active))
			return true;
	return false;
}

int rt_context_begin(struct rt_context *context, struct rt_device *device)
{
	int r = drv_call_ctx_create(device->npud_id, &context->ctx, &context->slot);

	if (r)
		return rt_error_drv(r, "cannot create a context");
	context->device = device;
	context->default_stream = NULL;
	r = rt_stream_new(context, 0, 0, true, &context->default_stream);
	if (r) {
		drv_call_ctx_destroy(context->ctx);
		return r;
	}
	atomic_store_explicit(&context->active, true, memory_order_release);
	return 0;
}

void rt_context_end(struct rt_context *context, bool force)
{
	struct rt_stream *stream = NULL;
	uint32_t cursor = 0;

	atomic_store(&context->active, false);
	while ((stream = drv_handle_next(&rt_streams, &cursor))) {
		void *handle = stream->handle;

		if (stream->context == context && drv_handle_live(stream, handle))
			rt_stream_end(stream, handle, force);
	}
	context->default_stream = NULL;
	/* When npud is gone there is nothing to destroy. */
	drv_call_ctx_destroy(context->ctx);
}

int rt_context_new_primary(struct rt_device *device)
{
	struct rt_context *context = drv_handle_new(&rt_contexts);

	if (!context)
		return rt_error(ACL_ERROR_RT_RESOURCE_ALLOC_FAIL, "EE1003",
				"no context left: %u exist", RT_MAX_CONTEXTS);
	context->primary = true;
	context->device = device;
	atomic_store(&context->active, false);
	context->handle = drv_handle_publish(&rt_contexts, context);
	device->primary = context;
	device->primary_handle = context->handle;
	return 0;
}

void rt_context_bind_primary(struct rt_device *device)
{
	bound.explicit = NULL;
	bound.primary = device->primary_handle;
}

int rt_context_create(int32_t id, void **ret_context)
{
	struct rt_context *context = NULL;
	struct rt_device *device = NULL;
	struct drv_space *space;
	int r = rt_device_find(id, &device);

	if (!r)
		r = rt_device_space(device, &space);
	if (r)
		return r;
	context = drv_handle_new(&rt_contexts);
	if (!context)
		return rt_error(ACL_ERROR_RT_RESOURCE_ALLOC_FAIL, "EE1003",
				"no context left: %u exist", RT_MAX_CONTEXTS);
	context->primary = false;
	context->space = space;
	context->handle = NULL;
	r = rt_context_begin(context, device);
	if (r) {
		atomic_store(&context->active, false);
		drv_handle_free(&rt_contexts, context);
		return r;
	}
	context->handle = drv_handle_publish(&rt_contexts, context);
	bound.explicit = context->handle;
	*ret_context = context->handle;
	return 0;
}

static int context_unknown(const void *handle)
{
	return rt_error(ACL_ERROR_RT_CONTEXT_NULL, "EE1001",
			"%p is not a context of this process, or "
			"was destroyed",
			handle);
}

int rt_context_destroy(void *handle)
{
	struct rt_context *context = NULL;

	RT_ALIVE();
	context = drv_handle_get(&rt_contexts, handle);
	if (!context)
		return context_unknown(handle);
	if (context->primary)
		return rt_error(ACL_ERROR_RT_CONTEXT_NULL, "EE1001",
				"%p is the primary context of device "
				"%d: only aclrtResetDevice releases it",
				handle, context->device->id);
	if (!drv_handle_retire(&rt_contexts, context, handle))
		return context_unknown(handle);
	rt_context_end(context, false);
	drv_handle_free(&rt_contexts, context);
	if (bound.explicit == handle)
		bound.explicit = NULL;
	return 0;
}

int rt_context_set_current(void *handle)
{
	struct rt_context *context = NULL;

	RT_ALIVE();
	context = drv_handle_get(&rt_contexts, handle);
	if (!context)
		return context_unknown(handle);
	if (!atomic_load(&context->active))
		return rt_error(ACL_ERROR_RT_CONTEXT_RELEASE_ERROR, "EE1001",
				"context %p was released by "
				"aclrtResetDevice",
				handle);
	bound.explicit = handle;
	return 0;
}

int rt_context_current(void **ret_context)
{
	struct rt_context *context = NULL;
	int r = rt_current(&context);

	if (!r)
		*ret_context = context->handle;
	return r;
}

int rt_context_default_stream(void **ret_stream)
{
	struct rt_context *context = NULL;
	int r = rt_current(&context);

	if (!r)
		*ret_stream = context->default_stream;
	return r;
}
