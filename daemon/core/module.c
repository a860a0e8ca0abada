/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modules. Loading is a call and an event: the call gives the device's id, the event comes when the
 * engine has read the image, or refused it. Either may be seen first. What a module says about
 * itself is its client's claim; npud passes it on.
 */
#include "daemon/core/space.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct module {
	struct object object;
	struct loop_timer *timer; /* for the event */
	bool called;		  /* the call was answered */
	bool ended;		  /* the event has come */
	int status;
	uint32_t funcs;
	char error[NPU_NAME_MAX];
};

static struct hal_job *module_destroy_job(struct object *object, void (*done)(struct hal_job *job))
{
	struct hal_job *job = space_job(object->space, HAL_CALL(MODULE_UNLOAD), true, done, object);

	if (job)
		((struct npu_module_unload *)job->arg)->module = (__u32)object->device_id;
	return job;
}

static void module_release(struct object *object)
{
	loop_timer_free(((struct module *)object)->timer);
}

const struct object_class module_class = {
	.name = "module",
	.limit = "modules",
	.destroy_job = module_destroy_job,
	.release = module_release,
};

void module_lose(struct object *object, int error)
{
	struct module *module = (struct module *)object;
	struct op *op = object->op;

	loop_timer_stop(module->timer);
	if (!module->called)
		return; /* its job ends op */
	object->op = NULL;
	space_fail(object->space, op, error, "loading a module");
}

static void module_undo(struct module *module)
{
	module->object.op = NULL;
	object_kill(&module->object);
	object_destroy(&module->object, NULL);
}

/* Call and event are there. */
static void module_end(struct module *module)
{
	struct object *object = &module->object;
	struct op *op = object->op;

	loop_timer_stop(module->timer);
	if (module->status < 0 || !op) {
		module_undo(module);
		if (op && module->error[0])
			op_fail(op, -ENOEXEC, "device %u: kernel image refused: %s",
				object->space->device->id, module->error);
		else
			space_fail(object->space, op, module->status, "loading a module");
		return;
	}
	object->op = NULL;
	object->state = OBJECT_LIVE;
	op->module.id = object->id;
	op->module.device_id = (uint32_t)object->device_id;
	op->module.funcs = module->funcs;
	op_finish(op);
}

void module_event(struct space *space, const struct npu_event *event)
{
	struct idtab *ids = &space->session->ids[OBJECT_MODULE];
	struct module *module =
		event->user <= UINT32_MAX ? idtab_get(ids, (uint32_t)event->user) : NULL;

	if (!module || module->object.space != space || module->ended ||
	    module->object.state != OBJECT_CREATING)
		return;
	module->ended = true;
	module->status = event->status;
	module->funcs = event->module.funcs;
	memcpy(module->error, event->module.error, sizeof(module->error));
	if (module->called)
		module_end(module);
}

static void on_timer(void *arg)
{
	struct module *module = arg;
	struct op *op = module->object.op;

	module_undo(module);
	space_fail(module->object.space, op, -ETIMEDOUT, "loading a module");
}

static void load_done(struct hal_job *job)
{
	struct object *object = job->owner;
	struct module *module = job->owner;
	const struct npu_module_load *load = job->arg;
	struct space *space = object->space;

	if (object_created(object, job->result, load->module, "loading a module")) {
		module->called = true;
		if (module->ended)
			module_end(module);
		else
			loop_timer_set(module->timer, space->session->core->conf->rpc_timeout_ms);
	}
	space_settle(space);
}

int module_load(struct session *session, uint64_t memory, uint64_t bytes, struct op *op)
{
	struct object *image = object_get(session, OBJECT_MEMORY, memory, op);
	struct npu_module_load *load;
	struct module *module;
	struct hal_job *job;
	uint64_t device_memory, room;
	int r;

	if (!image)
		return op->error;
	device_memory = memory_image(image, &room);
	if (!device_memory)
		return op_error(op, -EINVAL,
				"memory %llu is not of kind image, so no module can "
				"be loaded from it",
				(unsigned long long)memory);
	if (!bytes || bytes > room)
		return op_error(op, -EINVAL, "an image of %llu bytes in a memory object of %llu",
				(unsigned long long)bytes, (unsigned long long)room);
	module = calloc(1, sizeof(*module));
	if (!module)
		return op_error(op, -ENOMEM, "npud has no memory left");
	object_init(&module->object, OBJECT_MODULE, image->space, op);
	r = loop_timer_new(session->core->loop, on_timer, module, &module->timer);
	if (r == 0)
		r = object_add(&module->object);
	if (r < 0) {
		if (!op->error)
			op_error(op, r, "npud has no memory left");
		loop_timer_free(module->timer);
		free(module);
		return r;
	}
	job = space_job(image->space, HAL_CALL(MODULE_LOAD), true, load_done, &module->object);
	if (job) {
		load = job->arg;
		load->mem = device_memory;
		load->bytes = bytes;
		load->user = module->object.id;
	}
	return object_submit_create(&module->object, job, "loading a module");
}

int module_unload(struct session *session, uint32_t id, struct op *op)
{
	struct object *module = object_get(session, OBJECT_MODULE, id, op);

	return module ? object_destroy(module, op) : op->error;
}

static void lookup_done(struct space *space, struct hal_job *job, struct op *op)
{
	struct npu_func_lookup *lookup = job->arg;

	if (job->result < 0) {
		lookup->name[NPU_NAME_MAX - 1] = '\0';
		if (job->result == -ENOENT)
			op_fail(op, -ENOENT, "device %u: the module has no kernel %s%.200s",
				space->device->id, lookup->name[0] ? "" : "of that index",
				lookup->name);
		else
			space_fail(space, op, job->result, "looking up kernel %.200s",
				   lookup->name);
		return;
	}
	op->func.func = lookup->func;
	op->func.args_size = lookup->args_size;
	op->func.params = lookup->params < NPU_MAX_PARAMS ? lookup->params : NPU_MAX_PARAMS;
	memcpy(op->func.param_sizes, lookup->param_sizes, sizeof(op->func.param_sizes));
	memcpy(op->func.name, lookup->name, sizeof(op->func.name));
	op->func.name[sizeof(op->func.name) - 1] = '\0';
	op_finish(op);
}

int module_lookup(struct session *session, uint32_t id, const char *name, uint32_t func,
		  struct op *op)
{
	struct object *module = object_get(session, OBJECT_MODULE, id, op);
	struct npu_func_lookup *lookup;
	struct hal_job *job;

	if (!module)
		return op->error;
	if (strlen(name) >= NPU_NAME_MAX)
		return op_error(op, -ENOENT, "a kernel name of %zu bytes, at most %u are possible",
				strlen(name), NPU_NAME_MAX - 1);
	job = space_job(module->space, HAL_CALL(FUNC_LOOKUP), false, NULL, NULL);
	if (job) {
		lookup = job->arg;
		lookup->module = (__u32)module->device_id;
		lookup->func = func;
		strcpy(lookup->name, name);
	}
	return space_call(module->space, job, op, lookup_done);
}
