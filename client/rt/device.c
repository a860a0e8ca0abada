/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of devices is read once, when first needed, and filtered by ASCEND_RT_VISIBLE_DEVICES.
 * device_lock guards the list, the counts of sets and the opening of spaces; it is taken before any
 * other lock.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/drv/drv_caps.h"
#include "client/rt/internal.h"

static pthread_mutex_t device_lock = PTHREAD_MUTEX_INITIALIZER;
static struct rt_device devices[RT_MAX_DEVICES];
static uint32_t ndevices;
static _Atomic bool listed;
static _Atomic int32_t default_device = -1;
static char soc_name[sizeof(((struct drv_device *)0)->name)];

_Atomic uint64_t rt_wait_timeout_ms;
_Atomic uint64_t rt_kernel_timeout_us;

int rt_init(void)
{
	RT_ALIVE();
	return 0;
}

int rt_fini(void)
{
	RT_ALIVE();
	if (rt_device_close_all())
		drv_disconnect();
	return 0;
}

/*
 * Which of n devices the variable shows, in rows; -EINVAL when it is wrong. Reading stops at the
 * first bad token; numbers must rise.
 */
static int visible_devices(const char *text, const struct drv_device *all, size_t n,
			   struct rt_device *rows, uint32_t *ret_n)
{
	uint32_t count = 0;
	long last = -1;

	while (text && *text) {
		char *end;
		long id = *text >= '0' && *text <= '9' ? strtol(text, &end, 10) : -1;
		size_t i;

		if (id < 0 || (*end && *end != ','))
			break;
		if (id <= last)
			return -EINVAL;
		for (i = 0; i < n && (long)all[i].id != id; i++)
			;
		if (i == n)
			break;
		last = id;
		rows[count].info = all[i];
		count++;
		if (!*end)
			break;
		text = end + 1;
	}
	*ret_n = count;
	return count ? 0 : -EINVAL;
}

static int list_load(void)
{
	struct drv_device *all;
	const char *text;
	size_t n;
	int r;

	if (listed)
		return 0;
	all = calloc(RT_MAX_DEVICES, sizeof(*all));
	if (!all)
		return rt_error(ACL_ERROR_RT_MEMORY_ALLOCATION, "EL0004", "out of host memory");
	r = drv_call_devices(all, RT_MAX_DEVICES, &n);
	if (r) {
		free(all);
		return rt_error_drv(r, "cannot list the devices");
	}
	if (n > RT_MAX_DEVICES)
		n = RT_MAX_DEVICES;
	text = getenv("ASCEND_RT_VISIBLE_DEVICES");
	ndevices = 0;
	if (text && visible_devices(text, all, n, devices, &ndevices)) {
		free(all);
		return rt_error(ACL_ERROR_RT_NO_DEVICE, "EE1001",
				"ASCEND_RT_VISIBLE_DEVICES=%s names no "
				"device or is not in rising order; there are %zu devices",
				text, n);
	}
	if (!text)
		for (; ndevices < n; ndevices++)
			devices[ndevices].info = all[ndevices];
	free(all);
	for (uint32_t i = 0; i < ndevices; i++) {
		devices[i].id = (int32_t)i;
		devices[i].npud_id = devices[i].info.id;
	}
	listed = true;
	return 0;
}

int rt_device_find(int32_t id, struct rt_device **ret_device)
{
	int r;

	RT_ALIVE();
	if (!atomic_load(&listed)) {
		pthread_mutex_lock(&device_lock);
		r = list_load();
		pthread_mutex_unlock(&device_lock);
		if (r)
			return r;
	}
	if (id < 0 || (uint32_t)id >= ndevices)
		return rt_error(ACL_ERROR_RT_INVALID_DEVICEID, "EE1001",
				"no device %d: there are %u, "
				"counted from 0",
				id, ndevices);
	*ret_device = &devices[id];
	return 0;
}

int rt_device_count(uint32_t *ret_count)
{
	int r;

	RT_ALIVE();
	pthread_mutex_lock(&device_lock);
	r = list_load();
	if (!r)
		*ret_count = ndevices;
	pthread_mutex_unlock(&device_lock);
	return r;
}

int rt_device_info(int32_t device, struct rt_device_info *ret_info)
{
	struct drv_device *all, *d = NULL;
	struct rt_device *row;
	size_t n;
	int r = rt_device_find(device, &row);

	if (r)
		return r;
	all = calloc(RT_MAX_DEVICES, sizeof(*all));
	if (!all)
		return rt_error(ACL_ERROR_RT_MEMORY_ALLOCATION, "EL0004", "out of host memory");
	r = drv_call_devices(all, RT_MAX_DEVICES, &n);
	for (size_t i = 0; !r && i < n && i < RT_MAX_DEVICES; i++)
		if (all[i].id == row->npud_id)
			d = &all[i];
	if (r) {
		r = rt_error_drv(r, "cannot ask the device");
	} else if (!d) {
		r = rt_error(ACL_ERROR_RT_INVALID_DEVICEID, "EL0003",
			     "device %d is no longer there", device);
	} else {
		*ret_info = (struct rt_device_info){
			.cores = d->cores,
			.memory_total = d->memory_total,
			.memory_free = d->memory_free,
			.util_permille = d->util_permille,
			.healthy = d->health == DRV_HEALTH_OK,
			.peer = d->caps & DRV_CAP_PEER,
			.virtual_device = d->kind == DRV_KIND_SIM,
			.default_timeout_us = d->default_timeout_us,
			.max_streams = d->max_queues,
		};
		memcpy(ret_info->name, d->name, sizeof(ret_info->name));
	}
	free(all);
	return r;
}

const char *rt_device_soc_name(void)
{
	struct rt_device *device = NULL;

	if (rt_device_find(0, &device))
		return NULL;
	pthread_mutex_lock(&device_lock);
	memcpy(soc_name, device->info.name, sizeof(soc_name));
	pthread_mutex_unlock(&device_lock);
	return soc_name[0] ? soc_name : NULL;
}

/* With device_lock held. */
static int space_locked(struct rt_device *device, struct drv_space **ret_space)
{
	struct drv_space *space = atomic_load(&device->space);
	int r;

	if (!space) {
		r = drv_space_open(device->npud_id, &space);
		if (r)
			return rt_error_drv(r, "cannot open the device");
		atomic_store(&device->space, space);
	}
	if (drv_space_lost(space))
		return rt_error_lost(space, (uint32_t)device->id);
	*ret_space = space;
	return 0;
}

int rt_device_space(struct rt_device *device, struct drv_space **ret_space)
{
	int r;

	pthread_mutex_lock(&device_lock);
	r = space_locked(device, ret_space);
	pthread_mutex_unlock(&device_lock);
	return r;
}

int rt_device_set(int32_t id)
{
	struct rt_device *device = NULL;
	struct drv_space *space;
	int r = rt_device_find(id, &device);

	if (r)
		return r;
	pthread_mutex_lock(&device_lock);
	r = space_locked(device, &space);
	if (!r && !device->primary)
		r = rt_context_new_primary(device);
	if (!r && !atomic_load(&device->primary->active)) {
		device->primary->space = space;
		r = rt_context_begin(device->primary, device);
	}
	if (!r) {
		device->sets++;
		rt_context_bind_primary(device);
	}
	pthread_mutex_unlock(&device_lock);
	return r;
}

static int device_reset(int32_t id, bool force)
{
	struct rt_device *device = NULL;
	int r = rt_device_find(id, &device);

	if (r)
		return r;
	pthread_mutex_lock(&device_lock);
	if (!device->sets) {
		r = rt_error(ACL_ERROR_RT_CONTEXT_RELEASE_ERROR, "EE1001",
			     "device %d is not set: more "
			     "resets than sets",
			     id);
	} else {
		device->sets = force ? 0 : device->sets - 1;
		if (!device->sets)
			rt_context_end(device->primary, false);
	}
	pthread_mutex_unlock(&device_lock);
	return r;
}

int rt_device_reset(int32_t device)
{
	return device_reset(device, false);
}

int rt_device_reset_force(int32_t device)
{
	return device_reset(device, true);
}

void rt_device_default(int32_t device)
{
	atomic_store(&default_device, device);
}

int rt_device_use_default(void)
{
	int32_t id = atomic_load_explicit(&default_device, memory_order_relaxed);

	if (id < 0)
		return rt_error(ACL_ERROR_RT_CONTEXT_NULL, "EE1001",
				"no context is current on this "
				"thread; call aclrtSetDevice or aclrtSetCurrentContext on it");
	return rt_device_set(id);
}

int rt_device_current(int32_t *ret_device)
{
	struct rt_context *context = NULL;
	int r = rt_current(&context);

	if (!r)
		*ret_device = context->device->id;
	return r;
}

int rt_device_sync(int32_t timeout_ms)
{
	uint64_t deadline = rt_deadline(timeout_ms);
	struct rt_context *context = NULL;
	struct rt_stream *stream = NULL;
	uint32_t cursor = 0;
	int r = rt_current(&context), first = 0;

	if (r)
		return r;
	while ((stream = drv_handle_next(&rt_streams, &cursor))) {
		struct drv_ring *ring = atomic_load(&stream->ring);
		uint64_t now;
		int32_t left = -1;

		if (stream->device != context->device)
			continue;
		if (timeout_ms >= 0) {
			now = drv_now_ns();
			left = now < deadline ? (int32_t)((deadline - now + 999999) / 1000000) : 0;
		}
		if (ring) {
			r = rt_stream_wait(stream, ring, drv_ring_target(ring), left);
			if (r == ACL_ERROR_RT_STREAM_CONTEXT)
				continue; /* destroyed meanwhile */
			if (r)
				return r;
		}
		r = rt_fault_take(stream);
		if (r && !first)
			first = r;
	}
	return first;
}

int rt_device_primary_active(int32_t id, bool *ret_active)
{
	struct rt_device *device = NULL;
	int r = rt_device_find(id, &device);

	if (r)
		return r;
	pthread_mutex_lock(&device_lock);
	*ret_active = device->primary && atomic_load(&device->primary->active);
	pthread_mutex_unlock(&device_lock);
	return 0;
}

int rt_device_can_peer(int32_t id, int32_t peer, bool *ret_can)
{
	struct rt_device *a, *b;
	int r = rt_device_find(id, &a);

	if (!r)
		r = rt_device_find(peer, &b);
	if (!r)
		*ret_can = (a->info.caps & b->info.caps & DRV_CAP_PEER) != 0;
	return r;
}

static int peer_change(int32_t peer, bool enable)
{
	struct rt_context *context = NULL;
	struct rt_device *other;
	int r = rt_current(&context);

	if (!r)
		r = rt_device_find(peer, &other);
	if (r)
		return r;
	if (other == context->device)
		return rt_error(ACL_ERROR_RT_INVALID_DEVICEID, "EE1001",
				"device %d is the current one, "
				"not a peer",
				peer);
	if (!(context->device->info.caps & other->info.caps & DRV_CAP_PEER))
		return rt_error(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "EE1001",
				"device %d cannot reach the "
				"memory of device %d",
				context->device->id, peer);
	if (enable)
		atomic_fetch_or(&context->device->peers, 1ull << peer);
	else
		atomic_fetch_and(&context->device->peers, ~(1ull << peer));
	return 0;
}

int rt_device_enable_peer(int32_t peer)
{
	return peer_change(peer, true);
}

int rt_device_disable_peer(int32_t peer)
{
	return peer_change(peer, false);
}

bool rt_device_close_all(void)
{
	bool closed = false;

	pthread_mutex_lock(&device_lock);
	if (!rt_context_any()) {
		for (uint32_t i = 0; i < ndevices; i++) {
			struct drv_space *space = atomic_exchange(&devices[i].space, NULL);

			if (space) {
				rt_event_drop_space(space);
				rt_module_drop_space(space);
				rt_callback_stop(space);
				rt_dma_drop_space(space);
				drv_space_close(space);
			}
		}
		listed = false;
		closed = true;
	}
	pthread_mutex_unlock(&device_lock);
	return closed;
}

void rt_timeout_set_wait(uint64_t timeout_us)
{
	atomic_store(&rt_wait_timeout_ms, (timeout_us + 999) / 1000);
}

int rt_timeout_set_kernel(uint64_t timeout_us, uint64_t *ret_actual_us)
{
	uint64_t steps = timeout_us / RT_TIMEOUT_STEP_US + !!(timeout_us % RT_TIMEOUT_STEP_US);

	if (!steps || steps > RT_TIMEOUT_STEPS)
		steps = RT_TIMEOUT_STEPS;
	atomic_store(&rt_kernel_timeout_us, steps * RT_TIMEOUT_STEP_US);
	if (ret_actual_us)
		*ret_actual_us = steps * RT_TIMEOUT_STEP_US;
	return 0;
}
