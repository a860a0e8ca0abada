/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modules. Loading is a call and an event: the call gives the device's id, the event comes when the
 * engine has read the image, or refused it. Either may be seen first. What a module says about
 * itself is its client's claim; npud passes it on.
 *
 * A device that nobody reads fast enough drops event records, whoever filled it. So when it says
 * that it did, modules that wait for theirs ask for their state: FUNC_LOOKUP gives -EAGAIN while
 * the module loads, its error when it was refused, and names a kernel for each index it has.
 */
#include "daemon/core/space.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FUNCS_MAX 65536u /* where asking for the number of kernels stops */

struct module {
	struct object object;
	struct loop_timer *timer; /* for the event */
	struct memory_hold *image;
	bool called;	  /* the call was answered */
	bool ended;	  /* the event has come */
	bool waiting;	  /* for the event: in device->loading, the timer runs */
	bool asking;	  /* a FUNC_LOOKUP is under way */
	bool again;	  /* records were dropped meanwhile */
	uint64_t dropped; /* of the device, when the call was made */
	/* asking: by which index; how many are there; one that is not (0: not known) */
	uint32_t func, has, hasnt;
	TAILQ_ENTRY(module) entry;
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

static void module_wait(struct module *module)
{
	struct space *space = module->object.space;

	module->waiting = true;
	TAILQ_INSERT_TAIL(&space->device->loading, module, entry);
	loop_timer_set(module->timer, space->session->core->conf->rpc_timeout_ms);
}

static void module_unwait(struct module *module)
{
	if (!module->waiting)
		return;
	module->waiting = false;
	TAILQ_REMOVE(&module->object.space->device->loading, module, entry);
	loop_timer_stop(module->timer);
}

static void module_release(struct object *object)
{
	struct module *module = (struct module *)object;

	module_unwait(module);
	loop_timer_free(module->timer);
	memory_hold_put(module->image);
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

	module_unwait(module);
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

	module_unwait(module);
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

static void ask(struct module *module, uint32_t func);

/* The state is known: what the event would have brought. */
static void asked_all(struct module *module, int status)
{
	module->ended = true;
	module->status = status;
	module->funcs = module->has;
	if (status < 0)
		snprintf(module->error, sizeof(module->error), "%s (the device's reason was lost)",
			 strerror(-status));
	module_end(module);
}

/* The number of kernels is where indexes end: doubled till one is not there, then halved. */
static void asked(struct hal_job *job)
{
	struct module *module = job->owner;
	struct space *space = module->object.space;
	int r = job->result;

	module->asking = false;
	if (!module->waiting || r == -ENODEV) {
		; /* it has ended, or will with its space */
	} else if (r == -EAGAIN) {
		if (module->again)
			ask(module, 0);
	} else if (r < 0 && (r != -ENOENT || !module->has)) {
		asked_all(module, r);
	} else {
		if (r == 0)
			module->has = module->func + 1;
		else
			module->hasnt = module->func;
		if (module->has == module->hasnt || module->has > FUNCS_MAX)
			asked_all(module, 0);
		else if (module->hasnt)
			ask(module, module->has + (module->hasnt - module->has) / 2);
		else
			ask(module, module->has * 2);
	}
	space_settle(space);
}

static void ask(struct module *module, uint32_t func)
{
	struct space *space = module->object.space;
	struct npu_func_lookup *lookup;
	struct hal_job *job = space_job(space, HAL_CALL(FUNC_LOOKUP), false, asked, module);

	if (!job)
		return; /* the timer ends it */
	lookup = job->arg;
	lookup->module = (__u32)module->object.device_id;
	lookup->func = func;
	module->func = func;
	module->again = false;
	module->asking = space_submit(space, job) == 0;
}

/* Starts to ask, unless an answer is on its way. */
static void ask_state(struct module *module)
{
	if (module->asking) {
		module->again = true;
		return;
	}
	module->has = 0;
	module->hasnt = 0;
	ask(module, 0);
}

void module_events_lost(struct core_device *device)
{
	struct module *module;

	TAILQ_FOREACH(module, &device->loading, entry)
		ask_state(module);
}

static void on_timer(void *arg)
{
	struct module *module = arg;
	struct op *op = module->object.op;

	module_unwait(module);
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
		if (module->ended) {
			module_end(module);
		} else {
			module_wait(module);
			if (module->dropped != space->device->dropped)
				ask_state(module);
		}
	}
	space_settle(space);
}

int module_load(struct session *session, uint64_t memory, uint64_t bytes, struct op *op)
{
	struct object *image = object_get(session, OBJECT_MEMORY, memory, op);
	struct npu_module_load *load;
	struct module *module;
	struct hal_job *job;
	uint64_t device_memory, room, page;
	int r;

	if (!image)
		return op->error;
	device_memory = memory_image(image, &room, &page);
	if (!device_memory)
		return op_error(op, -EINVAL,
				"memory %llu is not of kind image, so no module can "
				"be loaded from it",
				(unsigned long long)memory);
	if (!bytes || bytes > room)
		return op_error(op, -EINVAL, "an image of %llu bytes in a memory object of %llu",
				(unsigned long long)bytes, (unsigned long long)room);
	/* the device keeps all of it as long as the module lives */
	if (room - bytes >= page)
		return op_error(op, -EINVAL,
				"an image of %llu bytes in a memory object of %llu: make the "
				"object as large as the image",
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
	module->image = memory_hold_get(image);
	module->dropped = image->space->device->dropped;
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
