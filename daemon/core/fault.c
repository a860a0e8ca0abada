/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Faults: each gets its line in the log, with everything that tells whose it is, and goes to the
 * watcher; the records stay with the device, which is asked for them.
 */
#include "daemon/core/fault.h"
#include "daemon/util/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const kind_names[] = {
	[NPU_FAULT_NONE] = "no fault",
	[NPU_FAULT_ACCESS] = "access to an address that is not mapped",
	[NPU_FAULT_BUS] = "bus error",
	[NPU_FAULT_ILLEGAL] = "illegal instruction",
	[NPU_FAULT_ARITH] = "arithmetic error",
	[NPU_FAULT_STACK] = "stack overflow",
	[NPU_FAULT_FORBIDDEN] = "forbidden system call",
	[NPU_FAULT_TRAP] = "trap",
	[NPU_FAULT_TIMEOUT] = "time limit reached",
	[NPU_FAULT_ABORTED] = "aborted",
	[NPU_FAULT_ENGINE] = "engine died",
	[NPU_FAULT_ENTRY] = "malformed ring entry",
	[NPU_FAULT_FUNCTION] = "no such function",
	[NPU_FAULT_DMA] = "copy to or from an address that is not mapped",
	[NPU_FAULT_MAP] = "mapping did not come in time",
	[NPU_FAULT_LOST] = "device lost",
	[NPU_FAULT_EVENT] = "event of a failed record",
	[NPU_FAULT_MEMORY] = "private memory used up",
};

const char *fault_kind_name(uint32_t kind)
{
	return kind < sizeof(kind_names) / sizeof(kind_names[0]) && kind_names[kind] ?
		       kind_names[kind] :
		       "unknown fault";
}

/* The id that the client knows an object by; 0 when it is gone. */
static uint32_t client_id(const struct space *space, enum object_type type, uint64_t device_id)
{
	const struct object *object;

	TAILQ_FOREACH(object, &space->objects, entry) {
		if (object->type == type && object->device_id == device_id)
			return object->id;
	}
	return 0;
}

static void fault_fill(const struct space *space, const struct npu_fault_record *record,
		       struct core_fault *fault)
{
	fault->seq = record->seq;
	fault->device = space->device->id;
	fault->time_ns = record->time_ns;
	fault->kind = record->kind;
	fault->flags = record->flags;
	fault->ctx = client_id(space, OBJECT_CONTEXT, record->context);
	fault->queue = client_id(space, OBJECT_QUEUE, record->queue);
	fault->task = record->task;
	fault->block = record->block;
	fault->core = record->core;
	fault->address = record->address;
	fault->pc = record->pc;
	memcpy(fault->kernel, record->kernel, sizeof(fault->kernel));
	fault->kernel[sizeof(fault->kernel) - 1] = '\0';
}

void fault_report(struct space *space, const struct npu_fault_record *record)
{
	const struct core *core = space->device->core;
	struct log_ident ident = space_ident(space);
	struct core_fault filled, *fault = &filled;
	struct core_fault_report report = {
		.device = space->device->id,
		.session = space->session->id,
		.peer = &space->session->peer,
		.fault = fault,
		.kind = fault_kind_name(record->kind),
		.address_known = !(record->flags & NPU_FAULT_ADDRESS_UNKNOWN),
	};
	char address[40] = "unknown";

	if (!log_limit_ok(&space->session->fault_limit, "core"))
		return;
	fault_fill(space, record, fault);
	ident.context = fault->ctx;
	ident.stream = fault->queue;
	ident.task = fault->task;
	if (report.address_known)
		snprintf(address, sizeof(address), "0x%llx", (unsigned long long)fault->address);
	log_msg(LOG_LEVEL_WARNING, "core", &ident,
		"fault %llu: %s, kernel %s, block %u, core %u, address %s, image offset 0x%llx",
		(unsigned long long)fault->seq, report.kind,
		fault->kernel[0] ? fault->kernel : "none", fault->block, fault->core, address,
		(unsigned long long)fault->pc);
	if (core->watch)
		core->watch->fault(&report, core->watch_arg);
}

static void query_done(struct space *space, struct hal_job *job, struct op *op);

static int query_next(struct space *space, uint64_t after, struct op *op)
{
	struct hal_job *job = space_job(space, HAL_CALL(ERROR_QUERY), false, NULL, NULL);

	if (job)
		((struct npu_error_query *)job->arg)->after = after;
	return space_call(space, job, op, query_done);
}

static void query_done(struct space *space, struct hal_job *job, struct op *op)
{
	const struct npu_error_query *query = job->arg;

	if (job->result == 0 && query->fault.session == space->hal_id)
		fault_fill(space, &query->fault, &op->faults.fault[op->faults.count++]);
	if (job->result == -ENOENT || (job->result == 0 && op->faults.count == OP_FAULTS_MAX)) {
		op_finish(op);
	} else if (job->result < 0) {
		space_fail(space, op, job->result, "asking for faults");
	} else if (query_next(space, query->fault.seq, op) < 0) {
		op_finish(op); /* with those that there are */
	}
}

int session_faults(struct session *session, unsigned int device, uint64_t after, struct op *op)
{
	struct space *space = space_get(session, device, op);

	return space ? query_next(space, after, op) : op->error;
}
