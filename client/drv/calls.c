/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process's connection and the calls over it: each packs one message, makes a round trip under
 * the mutex and copies the reply out of protobuf's hands.
 */
#include "client/drv/drv.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "client/drv/conn.h"
#include "client/drv/drv_caps.h"
#include "client/drv/process.h"
#include "proto/npu.pb-c.h"

static pthread_mutex_t link_lock = PTHREAD_MUTEX_INITIALIZER;
static struct drv_conn link_conn = { .fd = -1 };
static bool link_open;
static unsigned link_devices; /* open ones: with them a lost connection stays lost */

#define CALL(name, request, Reply, ret_reply)                                                      \
	CALL_FDS(name, request, Reply, ret_reply, NULL, NULL)
#define CALL_FDS(name, request, Reply, ret_reply, fds, ret_nfds)                                   \
	link_call(NPU_METHOD_##name, &(request)->base, &npu__##Reply##__descriptor,                \
		  (ProtobufCMessage **)(ret_reply), fds, ret_nfds)

/* With the lock held. A broken connection that no open device hangs on is made anew. */
static int link_connect_locked(void)
{
	struct drv_conn conn;
	int r;

	if (link_open && !link_devices && !drv_conn_alive(&link_conn)) {
		drv_conn_close(&link_conn);
		link_open = false;
	}
	if (link_open)
		return 0;
	r = drv_conn_open(&conn, NULL, 0, false);
	if (!r)
		r = drv_process_reserve(conn.window_base, conn.window_size);
	if (r) {
		drv_conn_close(&conn);
		return r;
	}
	link_conn = conn;
	link_open = true;
	return 0;
}

static int link_forked(void)
{
	return drv_fail(-ECHILD,
			"this process is a fork of one that uses the device: what that one had "
			"is not the child's; fork before the first call, or exec");
}

static int link_call(uint16_t method, const ProtobufCMessage *request,
		     const ProtobufCMessageDescriptor *type, ProtobufCMessage **ret_reply, int *fds,
		     size_t *ret_nfds)
{
	int r;

	if (drv_process_dead())
		return link_forked();
	pthread_mutex_lock(&link_lock);
	r = link_connect_locked();
	if (!r)
		r = drv_conn_call(&link_conn, method, request, type, ret_reply, fds, ret_nfds);
	pthread_mutex_unlock(&link_lock);
	return r;
}

int drv_connect(void)
{
	int r;

	if (drv_process_dead())
		return link_forked();
	pthread_mutex_lock(&link_lock);
	r = link_connect_locked();
	pthread_mutex_unlock(&link_lock);
	return r;
}

void drv_disconnect(void)
{
	if (drv_process_dead())
		return;
	pthread_mutex_lock(&link_lock);
	if (link_open)
		drv_conn_close(&link_conn);
	link_open = false;
	link_devices = 0;
	pthread_mutex_unlock(&link_lock);
}

static void copy_text(char *to, size_t size, const char *from)
{
	size_t n = from ? strnlen(from, size - 1) : 0;

	memcpy(to, from ? from : "", n);
	to[n] = 0;
}

static void device_copy(struct drv_device *to, const Npu__Device *from)
{
	*to = (struct drv_device){
		.id = from->id,
		.caps = from->caps,
		.health = from->health,
		.kind = from->kind,
		.cores = from->cores,
		.util_permille = from->util_permille,
		.max_queues = from->max_queues,
		.memory_total = from->memory_total,
		.memory_free = from->memory_free,
		.default_timeout_us = from->default_timeout_us,
	};
	copy_text(to->name, sizeof(to->name), from->name);
}

int drv_call_devices(struct drv_device *devices, size_t max, size_t *ret_count)
{
	Npu__Empty request = NPU__EMPTY__INIT;
	Npu__DevicesReply *reply;
	int r = CALL(devices, &request, devices_reply, &reply);

	if (r)
		return r;
	for (size_t i = 0; i < reply->n_devices && i < max; i++)
		device_copy(&devices[i], reply->devices[i]);
	*ret_count = reply->n_devices;
	npu__devices_reply__free_unpacked(reply, NULL);
	return 0;
}

int drv_call_device_open(uint32_t device, struct drv_opened *ret_opened)
{
	Npu__DeviceOpen request = NPU__DEVICE_OPEN__INIT;
	Npu__DeviceOpenReply *reply;
	int fds[WIRE_FDS_MAX], r;
	size_t nfds;

	request.device = device;
	r = CALL_FDS(device_open, &request, device_open_reply, &reply, fds, &nfds);
	if (r)
		return r;
	for (size_t i = 0; i < nfds; i++)
		drv_process_keep_fd(fds[i]);
	if (nfds != 4 || !reply->device) {
		for (size_t i = 0; i < nfds; i++)
			drv_process_close_fd(fds[i]);
		npu__device_open_reply__free_unpacked(reply, NULL);
		return drv_fail(-EPROTO, "npud opened device %u with %zu descriptors instead of 4",
				device, nfds);
	}
	*ret_opened = (struct drv_opened){
		.slab_size = reply->slab_size,
		.slab_address = reply->slab_address,
		.slab = fds[0],
		.doorbell = fds[1],
		.completion = fds[2],
		.life = fds[3],
	};
	device_copy(&ret_opened->device, reply->device);
	npu__device_open_reply__free_unpacked(reply, NULL);
	pthread_mutex_lock(&link_lock);
	link_devices++;
	pthread_mutex_unlock(&link_lock);
	return 0;
}

int drv_call_device_close(uint32_t device)
{
	Npu__DeviceClose request = NPU__DEVICE_CLOSE__INIT;
	int r;

	request.device = device;
	r = CALL(device_close, &request, empty, NULL);
	pthread_mutex_lock(&link_lock);
	if (link_devices)
		link_devices--;
	pthread_mutex_unlock(&link_lock);
	return r;
}

int drv_call_ctx_create(uint32_t device, uint32_t *ret_ctx, uint32_t *ret_slot)
{
	Npu__CtxCreate request = NPU__CTX_CREATE__INIT;
	Npu__CtxCreateReply *reply;
	int r;

	request.device = device;
	r = CALL(ctx_create, &request, ctx_create_reply, &reply);
	if (r)
		return r;
	*ret_ctx = reply->ctx;
	*ret_slot = reply->slot;
	npu__ctx_create_reply__free_unpacked(reply, NULL);
	return 0;
}

int drv_call_ctx_destroy(uint32_t ctx)
{
	Npu__CtxDestroy request = NPU__CTX_DESTROY__INIT;

	request.ctx = ctx;
	return CALL(ctx_destroy, &request, empty, NULL);
}

int drv_call_ctx_clear_error(uint32_t ctx)
{
	Npu__CtxSet request = NPU__CTX_SET__INIT;

	request.ctx = ctx;
	request.fields = DRV_CTX_CLEAR_ERROR;
	return CALL(ctx_set, &request, empty, NULL);
}

int drv_call_mem_alloc(uint32_t device, uint64_t bytes, uint32_t kind, uint32_t flags,
		       struct drv_memory *ret_memory)
{
	Npu__MemAlloc request = NPU__MEM_ALLOC__INIT;
	Npu__MemAllocReply *reply;
	int fds[WIRE_FDS_MAX], r;
	size_t nfds;

	request.device = device;
	request.bytes = bytes;
	request.kind = kind;
	request.flags = flags;
	r = CALL_FDS(mem_alloc, &request, mem_alloc_reply, &reply, fds, &nfds);
	if (r)
		return r;
	*ret_memory = (struct drv_memory){
		.mem = reply->mem,
		.bytes = reply->bytes,
		.page = reply->page,
		.address = reply->address,
		.generation = reply->generation,
		.fd = nfds ? fds[0] : -1,
	};
	drv_process_keep_fd(ret_memory->fd);
	npu__mem_alloc_reply__free_unpacked(reply, NULL);
	return 0;
}

int drv_call_mem_free(uint64_t mem, uint64_t *ret_generation)
{
	Npu__MemFree request = NPU__MEM_FREE__INIT;
	Npu__MemFreeReply *reply;
	int r;

	request.mem = mem;
	r = CALL(mem_free, &request, mem_free_reply, &reply);
	if (r)
		return r;
	*ret_generation = reply->generation;
	npu__mem_free_reply__free_unpacked(reply, NULL);
	return 0;
}

int drv_call_mem_info(uint32_t device, struct drv_mem_info *ret_info)
{
	Npu__MemInfo request = NPU__MEM_INFO__INIT;
	Npu__MemInfoReply *reply;
	int r;

	request.device = device;
	r = CALL(mem_info, &request, mem_info_reply, &reply);
	if (r)
		return r;
	*ret_info = (struct drv_mem_info){
		.total = reply->total,
		.free = reply->free,
		.quota_used = reply->quota_used,
		.quota_limit = reply->quota_limit,
		.largest_run = reply->largest_run,
	};
	npu__mem_info_reply__free_unpacked(reply, NULL);
	return 0;
}

int drv_call_queue_create(uint32_t ctx, uint32_t priority, uint32_t fail_mode, uint32_t *ret_queue,
			  uint32_t *ret_slot)
{
	Npu__QueueCreate request = NPU__QUEUE_CREATE__INIT;
	Npu__QueueCreateReply *reply;
	int r;

	request.ctx = ctx;
	request.priority = priority;
	request.fail_mode = fail_mode;
	r = CALL(queue_create, &request, queue_create_reply, &reply);
	if (r)
		return r;
	*ret_queue = reply->queue;
	*ret_slot = reply->slot;
	npu__queue_create_reply__free_unpacked(reply, NULL);
	return 0;
}

int drv_call_queue_destroy(uint32_t queue)
{
	Npu__QueueDestroy request = NPU__QUEUE_DESTROY__INIT;

	request.queue = queue;
	return CALL(queue_destroy, &request, empty, NULL);
}

int drv_call_queue_ctrl(uint32_t queue, uint32_t op, uint32_t value, uint32_t *ret_epoch)
{
	Npu__QueueCtrl request = NPU__QUEUE_CTRL__INIT;
	Npu__QueueCtrlReply *reply;
	int r;

	request.queue = queue;
	request.op = op;
	request.value = value;
	r = CALL(queue_ctrl, &request, queue_ctrl_reply, &reply);
	if (r)
		return r;
	*ret_epoch = reply->epoch;
	npu__queue_ctrl_reply__free_unpacked(reply, NULL);
	return 0;
}

int drv_call_module_load(uint64_t mem, uint64_t bytes, uint32_t *ret_module,
			 uint32_t *ret_device_module, uint32_t *ret_funcs)
{
	Npu__ModuleLoad request = NPU__MODULE_LOAD__INIT;
	Npu__ModuleLoadReply *reply;
	int r;

	request.mem = mem;
	request.bytes = bytes;
	r = CALL(module_load, &request, module_load_reply, &reply);
	if (r)
		return r;
	*ret_module = reply->module;
	*ret_device_module = reply->device_module;
	*ret_funcs = reply->funcs;
	npu__module_load_reply__free_unpacked(reply, NULL);
	return 0;
}

int drv_call_module_unload(uint32_t module)
{
	Npu__ModuleUnload request = NPU__MODULE_UNLOAD__INIT;

	request.module = module;
	return CALL(module_unload, &request, empty, NULL);
}

int drv_call_func_lookup(uint32_t module, const char *name, struct drv_function *ret_function)
{
	Npu__FuncLookup request = NPU__FUNC_LOOKUP__INIT;
	Npu__FuncLookupReply *reply;
	int r;

	request.module = module;
	request.name = (char *)name;
	r = CALL(func_lookup, &request, func_lookup_reply, &reply);
	if (r)
		return r;
	*ret_function = (struct drv_function){ .func = reply->func, .args_size = reply->args_size };
	for (size_t i = 0; i < reply->n_param_sizes && i < DRV_PARAMS_MAX; i++)
		ret_function->param_sizes[ret_function->nparams++] = reply->param_sizes[i];
	copy_text(ret_function->name, sizeof(ret_function->name), reply->name);
	npu__func_lookup_reply__free_unpacked(reply, NULL);
	return 0;
}
