/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory: charge, allocate on the device, map at an address of the session's window. A step that
 * fails takes the ones before back. The charge is made for whole pages before the device is asked
 * and put right when it has said how many it used.
 */
#include "daemon/core/space.h"
#include "daemon/util/parse.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct memory_hold {
	struct space *space;
	uint32_t kind;
	unsigned int refs;
	unsigned int files;
	uint64_t bytes;
};

struct memory {
	struct object object;
	struct memory_hold *hold; /* what is charged */
	uint32_t kind, flags;
	uint64_t wanted; /* bytes asked for */
	uint64_t bytes, page, address;
	int fd; /* on its way to the client */
};

static enum charge_kind charge_of(const struct memory_hold *hold)
{
	return hold->kind == NPU_MEM_DEVICE ? CHARGE_MEMORY : CHARGE_HOST;
}

static void count_bytes(struct memory_hold *hold, int64_t change)
{
	struct space *space = hold->space;

	hold->bytes += (uint64_t)change;
	if (hold->kind == NPU_MEM_DEVICE) {
		space->memory_used += (uint64_t)change;
		if (space->memory_used > space->memory_peak)
			space->memory_peak = space->memory_used;
	} else {
		space->host_used += (uint64_t)change;
	}
}

struct memory_hold *memory_hold_get(struct object *object)
{
	struct memory_hold *hold = ((struct memory *)object)->hold;

	hold->refs++;
	return hold;
}

void memory_hold_put(struct memory_hold *hold)
{
	struct charge *charge;

	if (!hold || --hold->refs)
		return;
	charge = &hold->space->session->charge;
	charge_give(charge, charge_of(hold), hold->bytes);
	charge_give(charge, CHARGE_FILE, hold->files);
	count_bytes(hold, -(int64_t)hold->bytes);
	core_changed(hold->space->device);
	free(hold);
}

static struct hal_job *memory_destroy_job(struct object *object, void (*done)(struct hal_job *job))
{
	struct hal_job *job = space_job(object->space, HAL_CALL(MEM_FREE), true, done, object);

	if (job)
		((struct npu_mem_free *)job->arg)->mem = object->device_id;
	return job;
}

static void memory_release(struct object *object)
{
	struct memory *memory = (struct memory *)object;
	struct session *session = object->space->session;

	memory_hold_put(memory->hold);
	if (memory->address)
		vaspace_free(&session->window, memory->address, memory->bytes);
	if (memory->fd >= 0)
		close(memory->fd);
}

const struct object_class memory_class = {
	.name = "memory object",
	.limit = "allocations",
	.destroy_job = memory_destroy_job,
	.release = memory_release,
};

/* Ends the op badly and takes the allocation back. */
static void memory_undo(struct memory *memory, int error, const char *what)
{
	struct object *object = &memory->object;
	struct op *op = object->op;

	object->op = NULL;
	space_fail(object->space, op, error, "%s", what);
	object_kill(object);
	object_destroy(object, NULL);
}

static void memory_live(struct memory *memory)
{
	struct object *object = &memory->object;
	struct op *op = object->op;

	object->op = NULL;
	object->state = OBJECT_LIVE;
	core_changed(object->space->device);
	op->memory.id = object->id;
	op->memory.bytes = memory->bytes;
	op->memory.page = memory->page;
	op->memory.address = memory->address;
	op->memory.generation = object->space->generation;
	if (memory->fd >= 0) {
		op->fds[0] = memory->fd;
		op->nfds = 1;
		memory->fd = -1;
	}
	op_finish(op);
}

static void map_done(struct hal_job *job)
{
	struct memory *memory = job->owner;
	struct object *object = &memory->object;
	struct space *space = object->space;
	uint64_t generation = memory->kind == NPU_MEM_HOST ?
				      ((struct npu_host_register *)job->arg)->generation :
				      ((struct npu_mem_map *)job->arg)->generation;

	if (job->result == 0 && generation > space->generation)
		space->generation = generation;
	if (space->state == SPACE_CLOSING) {
		struct op *op = object->op;

		object->op = NULL;
		space_fail(space, op, -ECANCELED, "mapping memory");
	} else if (job->result < 0 || !object->op) {
		memory_undo(memory, job->result, "mapping memory");
	} else {
		memory_live(memory);
	}
	space_settle(space);
}

static int memory_map(struct memory *memory)
{
	struct space *space = memory->object.space;
	struct hal_job *job;
	int r;

	r = vaspace_alloc(&space->session->window, memory->bytes, memory->page, &memory->address);
	if (r < 0)
		return r;
	if (memory->kind == NPU_MEM_HOST) {
		struct npu_host_register *host;

		job = space_job(space, HAL_CALL(HOST_REGISTER), true, map_done, memory);
		if (!job)
			return -ENOMEM;
		host = job->arg;
		host->mem = memory->object.device_id;
		host->bytes = memory->bytes;
		host->address = memory->address;
	} else {
		struct npu_mem_map *map;

		job = space_job(space, HAL_CALL(MEM_MAP), true, map_done, memory);
		if (!job)
			return -ENOMEM;
		map = job->arg;
		map->mem = memory->object.device_id;
		map->bytes = memory->bytes;
		map->address = memory->address;
	}
	job->timeout = object_timeout;
	return space_submit(space, job);
}

/* The device is full: how much it has left belongs into the answer. */
static void full_done(struct space *space, struct hal_job *job, struct op *op)
{
	const struct npu_query *query = job->arg;
	char wanted[32], left[32], total[32], largest[32];

	format_size(op->wanted, wanted, sizeof(wanted));
	if (job->result < 0) {
		op_fail(op, -ENOSPC, "device %u: out of memory: %s wanted", space->device->id,
			wanted);
		return;
	}
	op->limit = query->memory_free;
	op->largest = query->largest_run;
	format_size(query->memory_free, left, sizeof(left));
	format_size(query->memory_total, total, sizeof(total));
	format_size(query->largest_run, largest, sizeof(largest));
	if (op->contiguous && query->memory_free >= op->wanted) {
		op_fail(op, -ENOSPC,
			"device %u: no contiguous run of %s, the largest is %s (%s free)",
			space->device->id, wanted, largest, left);
	} else {
		op->contiguous = false;
		op_fail(op, -ENOSPC,
			"device %u: out of memory: %s wanted, %s of %s free; free "
			"some or ask for less",
			space->device->id, wanted, left, total);
	}
}

static void memory_full(struct memory *memory)
{
	struct object *object = &memory->object;
	struct space *space = object->space;
	struct op *op = object->op;
	struct hal_job *job;

	object->op = NULL;
	if (!op) {
		object_free(object);
		return;
	}
	op->wanted = memory->wanted;
	op->contiguous = memory->flags & (NPU_MEM_CONTIGUOUS | NPU_MEM_HUGE_ONLY);
	object_free(object);
	job = hal_job_new(HAL_CALL(QUERY), NULL, NULL);
	if (space_call(space, job, op, full_done) < 0)
		op_fail(op, -ENOSPC, "device %u: out of memory", space->device->id);
}

/* Brings the charge to what the device used: 0 or -EDQUOT. */
static int charge_settle(struct memory *memory)
{
	struct charge *charge = &memory->object.space->session->charge;
	struct memory_hold *hold = memory->hold;
	uint64_t charged = hold->bytes;

	if (memory->bytes > charged) {
		if (charge_take(charge, charge_of(hold), memory->bytes - charged, NULL) < 0)
			return -EDQUOT;
	} else {
		charge_give(charge, charge_of(hold), charged - memory->bytes);
	}
	count_bytes(hold, (int64_t)(memory->bytes - charged));
	return 0;
}

static void alloc_done(struct hal_job *job)
{
	struct memory *memory = job->owner;
	struct npu_mem_alloc *alloc = job->arg;
	struct object *object = &memory->object;
	struct space *space = object->space;
	int r;

	if (job->result == -ENOSPC && space->state == SPACE_OPEN) {
		memory_full(memory);
	} else if (object_created(object, job->result, alloc->mem, "allocating memory")) {
		memory->bytes = alloc->bytes;
		memory->page = alloc->page;
		memory->fd = hal_take_fd(&alloc->fd);
		r = charge_settle(memory);
		if (r == 0 && memory->kind != NPU_MEM_IMAGE)
			r = memory_map(memory);
		else if (r == 0)
			memory_live(memory);
		if (r < 0)
			memory_undo(memory, r, "allocating memory");
	}
	space_settle(space);
}

/* What the device will use, as far as npud can tell. */
static uint64_t estimate(uint64_t bytes, uint32_t flags)
{
	uint64_t page = NPU_PAGE_SMALL;

	if ((flags & NPU_MEM_HUGE_ONLY) || ((flags & NPU_MEM_HUGE_FIRST) && bytes > (1u << 20)))
		page = NPU_PAGE_LARGE;
	return bytes > UINT64_MAX - page ? UINT64_MAX : (bytes + page - 1) & ~(page - 1);
}

/* Bytes, and the file that the device keeps them in. */
static int charge_memory(struct memory *memory, uint64_t bytes, struct op *op)
{
	struct memory_hold *hold = calloc(1, sizeof(*hold));
	int r;

	if (!hold)
		return op_error(op, -ENOMEM, "npud has no memory left");
	hold->space = memory->object.space;
	hold->kind = memory->kind;
	hold->refs = 1;
	memory->hold = hold;
	r = space_charge(hold->space, charge_of(hold), bytes, op);
	if (r < 0)
		return r;
	count_bytes(hold, (int64_t)bytes);
	r = space_charge(hold->space, CHARGE_FILE, 1, op);
	if (r == 0)
		hold->files = 1;
	return r;
}

int memory_alloc(struct session *session, unsigned int device, uint64_t bytes, uint32_t kind,
		 uint32_t flags, struct op *op)
{
	struct space *space = space_get(session, device, op);
	struct npu_mem_alloc *alloc;
	struct memory *memory;
	struct hal_job *job;
	int r;

	if (!space)
		return op->error;
	if (!bytes || bytes > NPU_WINDOW_SIZE)
		return op_error(op, -EINVAL,
				"device %u: %llu bytes of memory: 1 to %llu are "
				"possible",
				device, (unsigned long long)bytes,
				(unsigned long long)NPU_WINDOW_SIZE);
	if (kind < NPU_MEM_DEVICE || kind > NPU_MEM_IMAGE)
		return op_error(op, -EINVAL, "device %u: memory of kind %u: 1 to 3 are known",
				device, kind);
	memory = calloc(1, sizeof(*memory));
	if (!memory)
		return op_error(op, -ENOMEM, "npud has no memory left");
	memory->kind = kind;
	memory->flags = flags;
	memory->wanted = bytes;
	memory->fd = -1;
	object_init(&memory->object, OBJECT_MEMORY, space, op);
	r = object_add(&memory->object);
	if (r < 0) {
		free(memory);
		return r;
	}
	r = charge_memory(memory, estimate(bytes, flags), op);
	if (r < 0) {
		memory->object.op = NULL;
		object_free(&memory->object);
		return r;
	}
	job = space_job(space, HAL_CALL(MEM_ALLOC), true, alloc_done, &memory->object);
	if (job) {
		alloc = job->arg;
		alloc->head.flags = flags;
		alloc->kind = kind;
		alloc->bytes = bytes;
		alloc->user = memory->object.id;
	}
	return object_submit_create(&memory->object, job, "allocating memory");
}

int memory_free(struct session *session, uint64_t id, struct op *op)
{
	struct object *memory = object_get(session, OBJECT_MEMORY, id, op);

	if (!memory)
		return op->error;
	op->memory.generation = memory->space->generation;
	return object_destroy(memory, op);
}

uint64_t memory_image(const struct object *object, uint64_t *ret_bytes, uint64_t *ret_page)
{
	const struct memory *memory = (const struct memory *)object;

	*ret_bytes = memory->bytes;
	*ret_page = memory->page > NPU_PAGE_SMALL ? memory->page : NPU_PAGE_SMALL;
	return memory->kind == NPU_MEM_IMAGE ? object->device_id : 0;
}
