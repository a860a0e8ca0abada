/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens a device once for the process: takes the four fds, maps the slab, checks that its header is
 * what this library was built for, and makes the heaps.
 */
#include "client/drv/space.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/drv/block.h"
#include "client/drv/drv_caps.h"

static int chunk_get(struct drv_heap *heap, struct drv_chunk *chunk, uintptr_t *ret_address)
{
	struct drv_space *space = heap->source.arg;
	uint32_t kind = heap == &space->host_heap ? DRV_MEM_HOST : DRV_MEM_DEVICE;
	int r = drv_block_new(space, DRV_HEAP_CHUNK, kind, DRV_MEM_HUGE_FIRST | DRV_MEM_POPULATE,
			      &chunk->block);

	if (r)
		return r;
	chunk->block->owner = chunk;
	*ret_address = chunk->block->address;
	return 0;
}

static void chunk_put(struct drv_heap *heap, struct drv_chunk *chunk)
{
	(void)heap;
	drv_block_retire(chunk->block);
}

static int slab_check(const struct npu_slab_header *slab, const struct drv_opened *opened)
{
	if (slab->magic != NPU_QUEUE_MAGIC)
		return drv_fail(-EPROTO, "device %u: its slab is not one", opened->device.id);
	if (slab->major != NPU_QUEUE_MAJOR)
		return drv_fail(-EPROTO,
				"device %u speaks ring protocol %u, this library %u: install "
				"matching versions",
				opened->device.id, slab->major, NPU_QUEUE_MAJOR);
	if (slab->max_queues > NPU_MAX_QUEUES || slab->ring_entries != NPU_RING_ENTRIES)
		return drv_fail(-EPROTO, "device %u: rings of another shape", opened->device.id);
	return 0;
}

static int space_map(struct drv_space *space, const struct drv_opened *opened)
{
	struct stat st;
	void *p;

	if (opened->slab_size < NPU_SLAB_SIZE)
		return drv_fail(-EPROTO, "device %u: a slab of %llu bytes is too small",
				space->device, (unsigned long long)opened->slab_size);
	if (fstat(opened->slab, &st) == 0 && S_ISREG(st.st_mode) &&
	    (uint64_t)st.st_size < opened->slab_size)
		return drv_fail(-EPROTO, "device %u: the slab is shorter than told", space->device);
	p = mmap(NULL, opened->slab_size, PROT_READ | PROT_WRITE, MAP_SHARED, opened->slab, 0);
	if (p == MAP_FAILED)
		return drv_fail(-errno, "cannot map the slab of device %u: %s", space->device,
				strerror(errno));
	madvise(p, opened->slab_size, MADV_DONTFORK);
	madvise(p, opened->slab_size, MADV_DONTDUMP);
	space->slab = p;
	space->slab_size = opened->slab_size;
	space->slab_address = opened->slab_address;
	return slab_check(p, opened);
}

int drv_space_open(uint32_t device, struct drv_space **ret_space)
{
	struct drv_space *space = calloc(1, sizeof(*space));
	struct drv_heap_source source = { .get = chunk_get, .put = chunk_put, .arg = space };
	struct drv_opened opened;
	int r;

	if (!space)
		return drv_fail(-ENOMEM, "out of host memory");
	space->device = device;
	space->free_events = malloc(NPU_MAX_EVENTS * sizeof(*space->free_events));
	r = space->free_events ? drv_call_device_open(device, &opened) :
				 drv_fail(-ENOMEM, "out of host memory");
	if (r) {
		free(space->free_events);
		free(space);
		return r;
	}
	space->info = opened.device;
	space->host_visible = opened.device.caps & DRV_CAP_HOST_VISIBLE;
	space->doorbell = opened.doorbell;
	r = space_map(space, &opened);
	drv_process_close_fd(opened.slab);
	if (!r) {
		r = drv_waitroom_init(&space->waitroom, space->slab, opened.completion,
				      opened.life);
	}
	if (r) {
		struct drv_error error = *drv_error();

		drv_process_close_fd(opened.doorbell);
		drv_process_close_fd(opened.completion);
		drv_process_close_fd(opened.life);
		if (space->slab)
			munmap(space->slab, space->slab_size);
		drv_call_device_close(device);
		free(space->free_events);
		free(space);
		*(struct drv_error *)drv_error() = error;
		return r;
	}
	drv_heap_init(&space->device_heap, &source);
	drv_heap_init(&space->host_heap, &source);
	pthread_mutex_init(&space->event_lock, NULL);
	*ret_space = space;
	return 0;
}

void drv_space_close(struct drv_space *space)
{
	drv_block_drop_space(space);
	drv_heap_fini(&space->device_heap);
	drv_heap_fini(&space->host_heap);
	drv_call_device_close(space->device);
	drv_waitroom_fini(&space->waitroom);
	drv_process_close_fd(space->doorbell);
	munmap(space->slab, space->slab_size);
	pthread_mutex_destroy(&space->event_lock);
	free(space->free_events);
	free(space);
}

void drv_space_raise(struct drv_space *space, uint64_t generation)
{
	uint64_t now = atomic_load_explicit(&space->generation, memory_order_relaxed);

	while (now < generation &&
	       !atomic_compare_exchange_weak(&space->generation, &now, generation))
		;
}

struct npu_event_word *drv_space_event(const struct drv_space *space, uint32_t index)
{
	return (struct npu_event_word *)((unsigned char *)space->slab + NPU_SLAB_EVENTS) + index;
}

int drv_space_event_get(struct drv_space *space, uint32_t *ret_index)
{
	int r = 0;

	pthread_mutex_lock(&space->event_lock);
	if (space->nfree_events)
		*ret_index = space->free_events[--space->nfree_events];
	else if (space->next_event < NPU_MAX_EVENTS)
		*ret_index = space->next_event++;
	else
		r = -ENOSPC;
	pthread_mutex_unlock(&space->event_lock);
	return r;
}

void drv_space_event_put(struct drv_space *space, uint32_t index)
{
	pthread_mutex_lock(&space->event_lock);
	space->free_events[space->nfree_events++] = index;
	pthread_mutex_unlock(&space->event_lock);
}
