/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An image is copied into memory that npud made for it and loaded from there; the device alone
 * looks into it. Kernels are looked up by name once and kept in a list of their image.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/drv/drv_caps.h"
#include "client/rt/internal.h"

#define IMAGE_MAX (64u << 20) /* bytes; as the device has it */

struct drv_handles rt_modules = DRV_HANDLES_INIT(4, RT_MAX_MODULES, struct rt_module);
struct drv_handles rt_functions = DRV_HANDLES_INIT(5, RT_MAX_FUNCTIONS, struct rt_function);

static int module_unknown(const void *handle)
{
	return rt_error(ACL_ERROR_RT_INVALID_HANDLE, "EE1001",
			"%p is not a kernel image of this "
			"process, or was unloaded",
			handle);
}

/* Puts the image into memory of kind IMAGE. */
static int image_upload(struct rt_context *context, const void *data, size_t size,
			uint64_t *ret_mem)
{
	struct drv_memory memory;
	uint64_t generation;
	void *p;
	int r = drv_call_mem_alloc(context->device->npud_id, size, DRV_MEM_IMAGE, 0, &memory);

	if (r)
		return rt_error_drv(r, "no memory for the kernel image");
	if (memory.fd < 0 || memory.bytes < size) {
		drv_process_close_fd(memory.fd);
		drv_call_mem_free(memory.mem, &generation);
		return rt_error(ACL_ERROR_RT_DRV_INTERNAL_ERROR, "EL0003",
				"npud gave no memory to put "
				"the kernel image into");
	}
	p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, memory.fd, 0);
	drv_process_close_fd(memory.fd);
	if (p == MAP_FAILED) {
		drv_call_mem_free(memory.mem, &generation);
		return rt_error(ACL_ERROR_RT_MEMORY_ALLOCATION, "EL0004",
				"cannot map %zu bytes for the "
				"kernel image",
				size);
	}
	memcpy(p, data, size);
	munmap(p, size);
	*ret_mem = memory.mem;
	return 0;
}

static int module_load(const void *data, size_t size, const char *label, void **ret_module)
{
	struct rt_context *context = NULL;
	struct rt_module *module;
	uint64_t mem = 0, generation;
	int r = rt_current(&context);

	if (r)
		return r;
	if (size > IMAGE_MAX)
		return rt_error(ACL_ERROR_RT_PARAM_INVALID, "EE1001",
				"%s: %zu bytes are more than a kernel "
				"image may have (%u)",
				label, size, IMAGE_MAX);
	module = drv_handle_new(&rt_modules);
	if (!module)
		return rt_error(ACL_ERROR_RT_RESOURCE_ALLOC_FAIL, "EE1003",
				"no kernel image left: %u are "
				"loaded",
				RT_MAX_MODULES);
	if (!module->lock_made) {
		pthread_mutex_init(&module->lock, NULL);
		module->lock_made = true;
	}
	module->functions = NULL;
	module->device = context->device;
	module->space = context->space;
	module->context_handle = context->handle;
	module->label = strdup(label);
	if (!module->label)
		r = rt_error(ACL_ERROR_RT_MEMORY_ALLOCATION, "EL0004", "out of host memory");
	if (!r)
		r = image_upload(context, data, size, &mem);
	if (!r) {
		r = drv_call_module_load(mem, size, &module->module, &module->device_module,
					 &module->nfuncs);
		if (r)
			r = rt_error_drv(r, label);
		drv_call_mem_free(mem, &generation);
	}
	if (r) {
		free(module->label);
		module->label = NULL;
		drv_handle_free(&rt_modules, module);
		return r;
	}
	module->handle = drv_handle_publish(&rt_modules, module);
	*ret_module = module->handle;
	return 0;
}

int rt_module_load(const void *data, size_t size, void **ret_module)
{
	return module_load(data, size, "kernel image in memory", ret_module);
}

static int file_failed(const char *path, int error)
{
	return rt_error(ACL_ERROR_RT_FILE_OPEN, "EE1001", "cannot read the kernel image %s: %s",
			path, strerror(error));
}

int rt_module_load_file(const char *path, void **ret_module)
{
	struct rt_context *context = NULL;
	struct stat st;
	char *data;
	size_t have = 0;
	int r = rt_current(&context), fd;

	if (r)
		return r;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return file_failed(path, errno);
	if (fstat(fd, &st)) {
		r = file_failed(path, errno);
	} else if (!S_ISREG(st.st_mode)) {
		r = file_failed(path, S_ISDIR(st.st_mode) ? EISDIR : EINVAL);
	} else if (!st.st_size) {
		r = rt_error(ACL_ERROR_RT_PARAM_INVALID, "EE1001",
			     "%s: the file is empty, not a kernel "
			     "image",
			     path);
	} else if ((uint64_t)st.st_size > IMAGE_MAX) {
		r = rt_error(ACL_ERROR_RT_PARAM_INVALID, "EE1001",
			     "%s: %lld bytes are more than a kernel "
			     "image may have (%u)",
			     path, (long long)st.st_size, IMAGE_MAX);
	}
	data = r ? NULL : malloc((size_t)st.st_size);
	if (!r && !data)
		r = rt_error(ACL_ERROR_RT_MEMORY_ALLOCATION, "EL0004", "out of host memory");
	while (!r && have < (size_t)st.st_size) {
		ssize_t n = read(fd, data + have, (size_t)st.st_size - have);

		if (n > 0)
			have += (size_t)n;
		else if (n < 0 && errno != EINTR)
			r = file_failed(path, errno);
		else if (!n)
			r = file_failed(path, ENODATA);
	}
	close(fd);
	if (!r)
		r = module_load(data, have, path, ret_module);
	free(data);
	return r;
}

static void function_free(struct rt_function *function)
{
	drv_handle_retire(&rt_functions, function, function->handle);
	drv_handle_free(&rt_functions, function);
}

/* The module was retired by this thread. */
static void module_free(struct rt_module *module)
{
	pthread_mutex_lock(&module->lock);
	while (module->functions) {
		struct rt_function *next = module->functions->next;

		function_free(module->functions);
		module->functions = next;
	}
	free(module->label);
	module->label = NULL;
	pthread_mutex_unlock(&module->lock);
	drv_handle_free(&rt_modules, module);
}

int rt_module_unload(void *handle)
{
	struct rt_context *context = NULL;
	struct rt_module *module;
	uint32_t id;
	int r = rt_current(&context);

	if (r)
		return r;
	module = drv_handle_get(&rt_modules, handle);
	if (!module)
		return module_unknown(handle);
	if (module->space != context->space)
		return rt_error(ACL_ERROR_RT_CONTEXT_NULL, "EE1001",
				"the kernel image is on device %d, the "
				"current context on device %d",
				module->device->id, context->device->id);
	id = module->module;
	if (!drv_handle_retire(&rt_modules, module, handle))
		return module_unknown(handle);
	module_free(module);
	r = drv_call_module_unload(id);
	return r ? rt_error_drv(r, "cannot unload the kernel image") : 0;
}

void rt_module_drop_space(struct drv_space *space)
{
	struct rt_module *module;
	uint32_t cursor = 0;

	while ((module = drv_handle_next(&rt_modules, &cursor)))
		if (module->space == space &&
		    drv_handle_retire(&rt_modules, module, module->handle))
			module_free(module);
}

static int function_make(struct rt_module *module, const struct drv_function *from,
			 struct rt_function **ret_function)
{
	struct rt_function *function = drv_handle_new(&rt_functions);
	uint64_t slots = 0;

	if (!function)
		return rt_error(ACL_ERROR_RT_RESOURCE_ALLOC_FAIL, "EE1003",
				"no kernel handle left: %u "
				"exist",
				RT_MAX_FUNCTIONS);
	for (uint32_t i = 0; i < from->nparams; i++)
		slots += ((uint64_t)from->param_sizes[i] + 7) & ~7ull;
	if (slots != from->args_size || from->args_size > NPU_MAX_ARGS) {
		drv_handle_free(&rt_functions, function);
		return rt_error(ACL_ERROR_RT_KERNEL_LOOKUP, "EE1001",
				"%s: kernel %s says that its "
				"arguments have %u bytes, its parameters add up to %llu",
				module->label, from->name, from->args_size,
				(unsigned long long)slots);
	}
	memcpy(function->name, from->name, sizeof(function->name));
	memcpy(function->param_sizes, from->param_sizes, sizeof(function->param_sizes));
	function->nparams = from->nparams;
	function->args_size = from->args_size;
	function->func = from->func;
	function->device_module = module->device_module;
	function->space = module->space;
	function->next = module->functions;
	module->functions = function;
	function->handle = drv_handle_publish(&rt_functions, function);
	*ret_function = function;
	return 0;
}

int rt_module_function(void *handle, const char *name, void **ret_function)
{
	struct rt_function *function;
	struct rt_module *module;
	struct drv_function found;
	int r = 0;

	RT_ALIVE();
	module = drv_handle_get(&rt_modules, handle);
	if (!module)
		return module_unknown(handle);
	pthread_mutex_lock(&module->lock);
	if (!drv_handle_live(module, handle)) {
		pthread_mutex_unlock(&module->lock);
		return module_unknown(handle);
	}
	for (function = module->functions; function; function = function->next)
		if (!strcmp(function->name, name))
			break;
	if (!function) {
		r = *name ? drv_call_func_lookup(module->module, name, &found) : -ENOENT;
		if (r == -ENOENT)
			r = rt_error(ACL_ERROR_RT_KERNEL_LOOKUP, "EE1001",
				     "%s has no kernel '%.200s'", module->label, name);
		else if (r)
			r = rt_error_drv(r, "cannot look the kernel up");
		else
			r = function_make(module, &found, &function);
	}
	if (!r)
		*ret_function = function->handle;
	pthread_mutex_unlock(&module->lock);
	return r;
}

int rt_function_info(void *handle, struct rt_function_info *ret_info)
{
	struct rt_function *function;

	RT_ALIVE();
	function = drv_handle_get(&rt_functions, handle);
	if (!function)
		return rt_error(ACL_ERROR_RT_INVALID_HANDLE, "EE1001",
				"%p is not a kernel of a loaded "
				"image",
				handle);
	*ret_info = (struct rt_function_info){
		.name = function->name,
		.args_size = function->args_size,
		.nparams = function->nparams,
		.param_sizes = function->param_sizes,
	};
	return 0;
}

bool rt_function_live(const void *handle)
{
	return drv_handle_get(&rt_functions, handle) != NULL;
}

void rt_module_kernel_name(const struct drv_space *space, uint32_t device_module, uint32_t func,
			   char *name, size_t size)
{
	struct rt_module *module;
	uint32_t cursor = 0;

	strncpy(name, "?", size);
	while ((module = drv_handle_next(&rt_modules, &cursor))) {
		if (module->space != space || module->device_module != device_module)
			continue;
		pthread_mutex_lock(&module->lock);
		for (struct rt_function *f = module->functions; f; f = f->next) {
			if (f->func == func) {
				strncpy(name, f->name, size - 1);
				name[size - 1] = 0;
				break;
			}
		}
		pthread_mutex_unlock(&module->lock);
	}
}
