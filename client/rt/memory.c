/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocations: below 1 MiB from the space's heaps, else blocks of their own. Every address of the
 * window is found by its block, so freeing and looking up need no table of their own.
 */
#include <errno.h>

#include "client/drv/block.h"
#include "client/drv/drv_caps.h"
#include "client/rt/internal.h"

int rt_alloc(struct drv_space *space, uint32_t kind, size_t usable, uint32_t flags,
	     uintptr_t *ret_address)
{
	struct drv_heap *heap = kind == DRV_MEM_HOST ? &space->host_heap : &space->device_heap;
	struct drv_block *block;
	int r;

	if (usable < DRV_HEAP_MAX) {
		r = drv_heap_alloc(heap, usable, ret_address);
		if (r != -ENOSPC)
			return r;
		/* No room for another chunk: perhaps there is for this one. */
	}
	r = drv_block_new(space, usable, kind, flags, &block);
	if (!r)
		*ret_address = block->address;
	return r;
}

int rt_release(struct drv_block *block, uintptr_t address)
{
	if (block->owner)
		return drv_heap_free(block->owner, address);
	return address == block->address && drv_block_retire(block) ? 0 : -EINVAL;
}

static int malloc_failed(int r, size_t usable, const char *what)
{
	if (r == -ENOMEM && drv_error()->error != r)
		return rt_error(ACL_ERROR_RT_MEMORY_ALLOCATION, "EL0004", "out of host memory");
	/* EINVAL: a size that no device has */
	if (r == -ENOSPC || r == -EDQUOT || r == -ENOMEM || r == -EINVAL)
		return rt_error(ACL_ERROR_RT_MEMORY_ALLOCATION, "EL0004", "no %zu bytes of %s: %s",
				usable, what, drv_error()->text);
	return rt_error_drv(r, what);
}

int rt_malloc(size_t usable, enum rt_pages pages, void **ret_address)
{
	struct rt_context *context = NULL;
	uint32_t flags = pages == RT_PAGES_HUGE_FIRST ? DRV_MEM_HUGE_FIRST :
			 pages == RT_PAGES_HUGE_ONLY  ? DRV_MEM_HUGE_ONLY :
							0;
	uintptr_t address;
	int r = rt_current(&context);

	if (r)
		return r;
	r = rt_alloc(context->space, DRV_MEM_DEVICE, usable, flags, &address);
	if (r)
		return malloc_failed(r, usable, "device memory");
	*ret_address = (void *)address;
	return 0;
}

int rt_malloc_host(size_t usable, void **ret_address)
{
	struct rt_context *context = NULL;
	uintptr_t address;
	int r = rt_current(&context);

	if (r)
		return r;
	r = rt_alloc(context->space, DRV_MEM_HOST, usable, 0, &address);
	if (r)
		return malloc_failed(r, usable, "pinned host memory");
	*ret_address = (void *)address;
	return 0;
}

static int free_kind(void *address, uint32_t kind, const char *what)
{
	struct drv_block *block;
	int r = -EINVAL;

	RT_ALIVE();
	block = drv_block_get(address);
	if (block) {
		if (block->kind == kind)
			r = rt_release(block, (uintptr_t)address);
		drv_block_put(block);
	}
	if (r)
		return rt_error(ACL_ERROR_RT_PARAM_INVALID, "EE1001",
				"%p is not the address of an "
				"allocation of %s, or was freed before",
				address, what);
	return 0;
}

int rt_free(void *address)
{
	return free_kind(address, DRV_MEM_DEVICE, "device memory");
}

int rt_free_host(void *address)
{
	return free_kind(address, DRV_MEM_HOST, "pinned host memory");
}

int rt_mem_info(struct rt_mem_info *ret_info)
{
	struct rt_context *context = NULL;
	struct drv_mem_info info;
	int r = rt_current(&context);

	if (r)
		return r;
	r = drv_call_mem_info(context->device->npud_id, &info);
	if (r)
		return rt_error_drv(r, "cannot ask for the device's memory");
	ret_info->free = info.free;
	ret_info->total = info.total;
	return 0;
}

static int32_t space_device(const struct drv_space *space)
{
	struct rt_context *context;
	uint32_t cursor = 0;

	while ((context = drv_handle_next(&rt_contexts, &cursor)))
		if (context->space == space)
			return context->device->id;
	return 0;
}

int rt_pointer_info(const void *address, struct rt_pointer_info *ret_info)
{
	struct drv_block *block;

	RT_ALIVE();
	block = drv_block_get(address);
	if (!block) {
		*ret_info = (struct rt_pointer_info){ .place = RT_PLACE_UNKNOWN };
		return 0;
	}
	*ret_info = (struct rt_pointer_info){
		.place = block->kind == DRV_MEM_HOST ? RT_PLACE_HOST : RT_PLACE_DEVICE,
		.device = space_device(block->space),
		.page = block->page,
	};
	drv_block_put(block);
	return 0;
}

int rt_range_get(const void *address, size_t bytes, struct rt_range *ret_range)
{
	uintptr_t at = (uintptr_t)address;
	struct drv_block *block;
	bool inside;

	if (!drv_in_window(address)) {
		if (at + bytes < at || (at < drv_window_base && at + bytes > drv_window_base))
			return rt_error(ACL_ERROR_RT_PARAM_INVALID, "EE1001",
					"%zu bytes from %p on are "
					"not one piece of memory",
					bytes, address);
		*ret_range = (struct rt_range){ .address = (unsigned char *)at };
		return 0;
	}
	block = drv_block_get(address);
	inside = block && (block->owner ? drv_heap_holds(block->owner, at, bytes) :
					  at - block->address < block->usable &&
						  block->usable - (at - block->address) >= bytes);
	if (!inside) {
		if (block)
			drv_block_put(block);
		return rt_error(ACL_ERROR_RT_PARAM_INVALID, "EE1001",
				"%zu bytes from %p on are not inside "
				"one allocation",
				bytes, address);
	}
	*ret_range = (struct rt_range){
		.block = block,
		.address = (unsigned char *)at,
		.device = block->kind == DRV_MEM_DEVICE,
	};
	return 0;
}

void rt_range_put(struct rt_range *range)
{
	if (range->block)
		drv_block_put(range->block);
	range->block = NULL;
}

unsigned char *rt_range_cpu(const struct rt_range *range)
{
	unsigned char *cpu;

	if (!range->device)
		return range->address;
	cpu = drv_block_cpu(range->block);
	return cpu ? cpu + ((uintptr_t)range->address - range->block->address) : NULL;
}
