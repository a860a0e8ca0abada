/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists live in a handle table: looking one up takes no lock and touches no freed memory, so a
 * launch needs the list's own lock only. A list that an image's end or the making of room took away
 * is found out under that lock.
 */
#include "client/acl/acl_list.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "client/acl/acl_internal.h"
#include "client/drv/handle.h"

#define PARAMS_MAX 128u
#define LISTS_MAX  65536u
#define SLOT	   8u
#define PARAM_BITS 8 /* of a parameter handle: number + 1; above, the list's serial number */

enum list_state { LIST_OPEN, LIST_FILLING, LIST_CLOSED, LIST_UPDATED };

struct arg {
	uint32_t offset, size; /* bytes of the parameter */
	bool holder;
	uint32_t data_offset, data_size; /* behind a holder; 0 until asked for */
};

struct acl_list {
	struct drv_object object;
	pthread_mutex_t lock;
	bool lock_made;
	enum list_state state;
	_Atomic uint64_t used; /* last_serial at the last launch, 0: never launched */
	uint64_t serial;
	void *function;
	char *name; /* of the kernel */
	uint32_t nparams, nargs, nholders;
	uint32_t size, capacity;	/* bytes of data: used, allocated */
	struct arg *args;		/* nparams */
	struct rt_placeholder *holders; /* nparams */
	unsigned char *data;
};

static struct drv_handles lists = DRV_HANDLES_INIT(ACL_HANDLE_ARGS, LISTS_MAX, struct acl_list);
static _Atomic uint64_t last_serial;

static uint32_t slot_size(size_t size)
{
	return (uint32_t)((size + SLOT - 1) / SLOT * SLOT);
}

static ACL_COLD int bad_handle(const char *caller, const void *handle)
{
	return acl_bad_rt(ACL_ERROR_RT_INVALID_HANDLE, caller,
			  "argsHandle %p is no list of arguments, or its image was unloaded",
			  handle);
}

struct acl_list *acl_list_lock(const char *caller, aclrtArgsHandle handle, int *ret_code)
{
	struct acl_list *list;
	int code = acl_process_check();

	if (code) {
		*ret_code = code;
		return NULL;
	}
	list = drv_handle_get(&lists, handle);
	if (list) {
		pthread_mutex_lock(&list->lock);
		if (drv_handle_live(list, handle))
			return list;
		pthread_mutex_unlock(&list->lock);
	}
	*ret_code = bad_handle(caller, handle);
	return NULL;
}

void acl_list_unlock(struct acl_list *list)
{
	pthread_mutex_unlock(&list->lock);
}

static void list_empty(struct acl_list *list)
{
	free(list->args);
	free(list->holders);
	free(list->data);
	free(list->name);
	list->args = NULL;
	list->holders = NULL;
	list->data = NULL;
	list->name = NULL;
}

/* Ends it unless another thread did. */
static bool list_end(struct acl_list *list, void *handle)
{
	bool ended;

	pthread_mutex_lock(&list->lock);
	ended = drv_handle_retire(&lists, list, handle);
	if (ended)
		list_empty(list);
	pthread_mutex_unlock(&list->lock);
	if (ended)
		drv_handle_free(&lists, list);
	return ended;
}

bool acl_list_sweep(void)
{
	bool ended = false;
	uint32_t cursor = 0;
	struct acl_list *list;

	while ((list = drv_handle_next(&lists, &cursor))) {
		void *handle = drv_handle_of(&lists, list);

		if (!rt_function_live(list->function))
			ended |= list_end(list, handle);
	}
	return ended;
}

/* Ends lists, or one, that were launched, but not since so many lists were made. */
static bool end_unused(uint64_t age, bool one)
{
	uint64_t now = atomic_load(&last_serial);
	bool ended = false;
	uint32_t cursor = 0;
	struct acl_list *list;

	while (!(one && ended) && (list = drv_handle_next(&lists, &cursor))) {
		uint64_t used = atomic_load(&list->used);
		void *handle = drv_handle_of(&lists, list);

		if (used && used + age <= now)
			ended |= list_end(list, handle);
	}
	return ended;
}

/* Ends the lists whose kernels are no more, else those that were launched longest ago. */
static bool make_room(void)
{
	if (acl_list_sweep())
		return true;
	for (uint64_t age = LISTS_MAX / 2; age; age /= 2)
		if (end_unused(age, false))
			return true;
	return end_unused(0, true);
}

static bool list_make(struct acl_list *list, void *function, const struct rt_function_info *info)
{
	uint32_t offset = 0;

	if (!list->lock_made)
		list->lock_made = !pthread_mutex_init(&list->lock, NULL);
	if (!list->lock_made)
		return false;
	list->args = calloc(info->nparams + 1, sizeof(*list->args));
	list->holders = calloc(info->nparams + 1, sizeof(*list->holders));
	list->data = calloc(info->args_size + SLOT, 1);
	list->name = strdup(info->name);
	if (!list->args || !list->holders || !list->data || !list->name) {
		list_empty(list);
		return false;
	}
	for (uint32_t i = 0; i < info->nparams; i++) {
		list->args[i].offset = offset;
		list->args[i].size = info->param_sizes[i];
		offset += slot_size(info->param_sizes[i]);
	}
	list->state = LIST_OPEN;
	atomic_store(&list->used, 0);
	list->serial = atomic_fetch_add(&last_serial, 1) + 1;
	list->function = function;
	list->nparams = info->nparams;
	list->nargs = list->nholders = 0;
	list->size = list->capacity = info->args_size;
	return true;
}

/* Whether the parameters of a kernel lie as this file has it. */
static bool info_fits(const struct rt_function_info *info)
{
	uint64_t sum = 0;

	if (info->nparams > PARAMS_MAX || info->args_size > RT_ARGS_MAX)
		return false;
	for (uint32_t i = 0; i < info->nparams; i++)
		sum += ((uint64_t)info->param_sizes[i] + SLOT - 1) / SLOT * SLOT;
	return sum == info->args_size;
}

int acl_list_new(const char *caller, void *function, const struct rt_function_info *info,
		 aclrtArgsHandle *ret_handle)
{
	struct acl_list *list;

	if (!info_fits(info))
		return acl_bad_rt(ACL_ERROR_RT_PARAM_INVALID, caller,
				  "kernel %s has %u parameters of %u bytes, allowed: 128 of 16384, "
				  "with the sizes that its image says",
				  info->name, info->nparams, info->args_size);
	do
		list = drv_handle_new(&lists);
	while (!list && make_room());
	if (!list)
		return rt_error(ACL_ERROR_RT_RESOURCE_ALLOC_FAIL, "EE1003",
				"%s: no host memory, or %u lists exist that were never launched",
				caller, LISTS_MAX);
	if (!list_make(list, function, info)) {
		drv_handle_free(&lists, list);
		return rt_error(ACL_ERROR_RT_RESOURCE_ALLOC_FAIL, "EE1003",
				"%s: no host memory for %u bytes", caller, info->args_size);
	}
	*ret_handle = drv_handle_publish(&lists, list);
	return 0;
}

static aclrtParamHandle param_handle(const struct acl_list *list, uint32_t number)
{
	return (aclrtParamHandle)(uintptr_t)(list->serial << PARAM_BITS | (number + 1));
}

static struct arg *param_find(const struct acl_list *list, aclrtParamHandle handle)
{
	uint64_t value = (uintptr_t)handle;
	uint32_t number = value & ((1u << PARAM_BITS) - 1);

	if (value >> PARAM_BITS != list->serial || number == 0 || number > list->nargs)
		return NULL;
	return &list->args[number - 1];
}

static ACL_COLD int bad_param(const char *caller, const void *handle)
{
	return acl_bad_rt(ACL_ERROR_RT_INVALID_HANDLE, caller,
			  "paramHandle %p is no argument of this list", handle);
}

/* The parameter that the next argument of size bytes is for. */
static int list_next(const char *caller, struct acl_list *list, size_t size, struct arg **ret_arg)
{
	if (list->state != LIST_OPEN)
		return acl_bad_rt(ACL_ERROR_RT_PARAM_INVALID, caller,
				  "the list for kernel %s takes no more arguments: append before "
				  "the first placeholder buffer and before aclrtKernelArgsFinalize",
				  list->name);
	if (list->nargs == list->nparams)
		return acl_bad_rt(ACL_ERROR_RT_PARAM_INVALID, caller,
				  "kernel %s has %u parameters, this would be one more", list->name,
				  list->nparams);
	if (list->args[list->nargs].size != size)
		return acl_bad_rt(
			ACL_ERROR_RT_PARAM_INVALID, caller,
			"paramSize is %zu, allowed: %u, the size of parameter %u of kernel %s",
			size, list->args[list->nargs].size, list->nargs, list->name);
	*ret_arg = &list->args[list->nargs];
	return 0;
}

int acl_list_append(const char *caller, struct acl_list *list, const void *param, size_t size,
		    aclrtParamHandle *ret_param)
{
	struct arg *arg = NULL;
	int code = list_next(caller, list, size, &arg);

	if (code)
		return code;
	arg->holder = !param;
	if (param)
		memcpy(list->data + arg->offset, param, size);
	*ret_param = param_handle(list, list->nargs);
	list->nargs++;
	return 0;
}

int acl_list_update(const char *caller, struct acl_list *list, aclrtParamHandle handle,
		    const void *param, size_t size)
{
	struct arg *arg = param_find(list, handle);

	if (!arg)
		return bad_param(caller, handle);
	if (arg->holder)
		return acl_bad_rt(ACL_ERROR_RT_PARAM_INVALID, caller,
				  "parameter %u of kernel %s is a placeholder: write to its buffer",
				  (uint32_t)(arg - list->args), list->name);
	if (arg->size != size)
		return acl_bad_rt(ACL_ERROR_RT_PARAM_INVALID, caller,
				  "paramSize is %zu, allowed: %u, that of the value it replaces",
				  size, arg->size);
	memcpy(list->data + arg->offset, param, size);
	if (list->state == LIST_CLOSED)
		list->state = LIST_UPDATED;
	return 0;
}

/* Room for as much as a launch can carry, so that no buffer ever moves. */
static bool list_grow(struct acl_list *list)
{
	unsigned char *data;

	if (list->capacity == RT_ARGS_MAX)
		return true;
	data = calloc(RT_ARGS_MAX, 1);
	if (!data)
		return false;
	memcpy(data, list->data, list->size);
	free(list->data);
	list->data = data;
	list->capacity = RT_ARGS_MAX;
	return true;
}

int acl_list_buffer(const char *caller, struct acl_list *list, aclrtParamHandle handle, size_t size,
		    void **ret_buffer)
{
	struct arg *arg = param_find(list, handle);

	if (!arg)
		return bad_param(caller, handle);
	if (!arg->holder)
		return acl_bad_rt(ACL_ERROR_RT_PARAM_INVALID, caller,
				  "parameter %u of kernel %s is a value, allowed: one of "
				  "aclrtKernelArgsAppendPlaceHolder",
				  (uint32_t)(arg - list->args), list->name);
	if (list->nargs < list->nparams)
		return acl_bad_rt(ACL_ERROR_RT_PARAM_INVALID, caller,
				  "kernel %s has %u parameters, %u are there: append all, then ask "
				  "for buffers",
				  list->name, list->nparams, list->nargs);
	if (arg->data_size) {
		if (arg->data_size != size)
			return acl_bad_rt(
				ACL_ERROR_RT_PARAM_INVALID, caller,
				"dataSize is %zu, allowed: %u, the size of the buffer it has", size,
				arg->data_size);
		*ret_buffer = list->data + arg->data_offset;
		return 0;
	}
	if (size > RT_ARGS_MAX - list->size)
		return acl_bad_rt(ACL_ERROR_RT_PARAM_INVALID, caller,
				  "dataSize is %zu, allowed: up to %u, what is left of %u bytes",
				  size, RT_ARGS_MAX - list->size, RT_ARGS_MAX);
	if (!list_grow(list))
		return rt_error(ACL_ERROR_RT_RESOURCE_ALLOC_FAIL, "EE1003",
				"%s: no host memory for %u bytes", caller, RT_ARGS_MAX);
	arg->data_offset = list->size;
	arg->data_size = (uint32_t)size;
	list->size = slot_size(list->size + size);
	list->holders[list->nholders++] = (struct rt_placeholder){
		.address_offset = arg->offset,
		.data_offset = arg->data_offset,
	};
	list->state = LIST_FILLING;
	*ret_buffer = list->data + arg->data_offset;
	return 0;
}

int acl_list_close(const char *caller, struct acl_list *list)
{
	if (list->nargs < list->nparams)
		return acl_bad_rt(ACL_ERROR_RT_PARAM_INVALID, caller,
				  "kernel %s has %u parameters, %u are there", list->name,
				  list->nparams, list->nargs);
	for (uint32_t i = 0; i < list->nargs; i++)
		if (list->args[i].holder && !list->args[i].data_size)
			return acl_bad_rt(ACL_ERROR_RT_PARAM_INVALID, caller,
					  "parameter %u of kernel %s is a placeholder without a "
					  "buffer: call aclrtKernelArgsGetPlaceHolderBuffer",
					  i, list->name);
	list->state = LIST_CLOSED;
	return 0;
}

int acl_list_launch(const char *caller, struct acl_list *list, void *function, uint32_t blocks,
		    uint64_t timeout_us, void *stream)
{
	if (ACL_UNLIKELY(list->state != LIST_CLOSED))
		return acl_bad_rt(
			ACL_ERROR_RT_PARAM_INVALID, caller,
			"the list for kernel %s is not closed: call aclrtKernelArgsFinalize",
			list->name);
	if (ACL_UNLIKELY(list->function != function))
		return acl_bad_rt(ACL_ERROR_RT_PARAM_INVALID, caller,
				  "funcHandle %p is not kernel %s, for which the list was made",
				  function, list->name);
	atomic_store_explicit(&list->used, atomic_load_explicit(&last_serial, memory_order_relaxed),
			      memory_order_relaxed);
	return rt_launch(function, blocks, list->data, list->size,
			 list->nholders ? list->holders : NULL, list->nholders, timeout_us, stream);
}
