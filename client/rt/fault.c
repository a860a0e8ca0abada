/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a queue's error record to the code and the text that a sync gives. A stream remembers how
 * many errors it has told; the context's word in the slab header is set while it is stopped.
 */
#include <stdio.h>

#include "client/rt/internal.h"

const char *rt_fault_name(uint32_t kind)
{
	static const char *const names[] = {
		[NPU_FAULT_NONE] = "no fault",
		[NPU_FAULT_ACCESS] = "access to an address that is not mapped",
		[NPU_FAULT_BUS] = "bus error",
		[NPU_FAULT_ILLEGAL] = "illegal instruction",
		[NPU_FAULT_ARITH] = "arithmetic fault",
		[NPU_FAULT_STACK] = "kernel stack overflow",
		[NPU_FAULT_FORBIDDEN] = "system call from kernel code",
		[NPU_FAULT_TRAP] = "trap",
		[NPU_FAULT_TIMEOUT] = "time limit exceeded",
		[NPU_FAULT_ABORTED] = "aborted",
		[NPU_FAULT_ENGINE] = "the engine died",
		[NPU_FAULT_ENTRY] = "malformed ring entry",
		[NPU_FAULT_FUNCTION] = "no such kernel, or arguments of the wrong size",
		[NPU_FAULT_DMA] = "copy or fill touched an address that is not mapped",
		[NPU_FAULT_MAP] = "memory was not mapped in time",
		[NPU_FAULT_LOST] = "device lost",
		[NPU_FAULT_EVENT] = "the event waited for was dropped or failed",
		[NPU_FAULT_MEMORY] = "memory limit of the engine reached",
	};

	return kind < sizeof(names) / sizeof(names[0]) && names[kind] ? names[kind] :
									"unknown fault";
}

int rt_fault_code(uint32_t kind, uint32_t op)
{
	switch (kind) {
	case NPU_FAULT_NONE:
		return 0;
	case NPU_FAULT_TRAP:
		return ACL_ERROR_RT_AICORE_TRAP_EXCEPTION;
	case NPU_FAULT_TIMEOUT:
		return op == NPU_OP_KERNEL ? ACL_ERROR_RT_AICORE_TIMEOUT :
					     ACL_ERROR_RT_TASK_TIMEOUT;
	case NPU_FAULT_ABORTED:
		return ACL_ERROR_RT_STREAM_ABORT;
	case NPU_FAULT_DMA:
		return ACL_ERROR_RT_SYS_DMA;
	case NPU_FAULT_LOST:
		return ACL_ERROR_RT_SOCKET_CLOSE;
	case NPU_FAULT_ENTRY:
		return ACL_ERROR_RT_TS_ERROR;
	case NPU_FAULT_FUNCTION:
		return ACL_ERROR_RT_INVALID_DEVICE_FUNCTION;
	case NPU_FAULT_MAP:
		return ACL_ERROR_RT_DRV_INTERNAL_ERROR;
	case NPU_FAULT_EVENT:
		return ACL_ERROR_RT_DEVICE_TASK_ABORT;
	default:
		return ACL_ERROR_RT_AICORE_EXCEPTION;
	}
}

static int fault_text(const struct rt_stream *stream, const struct npu_ring_error *error)
{
	int code = rt_fault_code(error->kind, error->op);
	char kernel[DRV_NAME_MAX] = "-", address[64] = "unknown", where[64] = "";

	if (error->op == NPU_OP_KERNEL)
		rt_module_kernel_name(stream->space, error->module, error->func, kernel,
				      sizeof(kernel));
	if (error->kind == NPU_FAULT_FORBIDDEN)
		snprintf(address, sizeof(address), "(system call %llu)",
			 (unsigned long long)error->address);
	else if (!(error->flags & NPU_FAULT_ADDRESS_UNKNOWN))
		snprintf(address, sizeof(address), "0x%llx", (unsigned long long)error->address);
	if (error->pc)
		snprintf(where, sizeof(where), ", pc offset 0x%llx", (unsigned long long)error->pc);
	return rt_error(
		code, error->kind == NPU_FAULT_TIMEOUT ? "EE1002" : "EZ9999",
		"code %d, layer device %d: %s; kernel %s, stream %u, task %llu, block %u, address "
		"%s%s",
		code, stream->device->id, rt_fault_name(error->kind), kernel, stream->object.slot,
		(unsigned long long)error->task, error->block, address, where);
}

int rt_fault_sticky(struct rt_stream *stream)
{
	uint32_t kind;

	if (drv_space_lost(stream->space))
		return rt_error_lost(stream->space, (uint32_t)stream->device->id);
	kind = __atomic_load_n(&stream->space->slab->context_error[stream->context->slot % 1024],
			       __ATOMIC_ACQUIRE);
	if (__builtin_expect(!kind, 1))
		return 0;
	/* The slab of a device that has just gone is blank or stale: ask before it is believed. */
	if (drv_waitroom_check(&stream->space->waitroom))
		return rt_error_lost(stream->space, (uint32_t)stream->device->id);
	return rt_error(
		rt_fault_code(kind, NPU_OP_KERNEL), "EZ9999",
		"code %d, layer device %d: %s; the "
		"context of stream %u stopped after this fault and takes no work until it is reset",
		rt_fault_code(kind, NPU_OP_KERNEL), stream->device->id, rt_fault_name(kind),
		stream->object.slot);
}

int rt_fault_take(struct rt_stream *stream)
{
	struct drv_ring *ring = atomic_load(&stream->ring);
	struct npu_ring_error error;
	uint64_t seen, now;

	if (ring) {
		seen = atomic_load_explicit(&stream->errors_seen, memory_order_relaxed);
		now = drv_ring_errors(ring);
		if (__builtin_expect(now != seen, 0) &&
		    atomic_compare_exchange_strong(&stream->errors_seen, &seen, now) &&
		    drv_ring_error(ring, &error) && error.kind != NPU_FAULT_NONE)
			return fault_text(stream, &error);
	}
	return rt_fault_sticky(stream);
}
