/* SPDX-License-Identifier: GPL-2.0 */
/* Tracepoints: /sys/kernel/tracing/events/npu/ */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM npu

#if !defined(NPU_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define NPU_TRACE_H

#include <linux/tracepoint.h>

#include "kdrv/npu_drv.h"

TRACE_EVENT(npu_ioctl_enter,
	TP_PROTO(int device, unsigned int nr, unsigned int size, const struct npu_head *request),
	TP_ARGS(device, nr, size, request),
	TP_STRUCT__entry(
		__field(int, device)
		__field(unsigned int, nr)
		__field(unsigned int, size)
		__field(u64, session)
		__field(u64, call)
	),
	TP_fast_assign(
		__entry->device = device;
		__entry->nr = nr;
		__entry->size = size;
		__entry->session = request->session;
		__entry->call = request->call;
	),
	TP_printk("npu%d nr=0x%02x size=%u session=%llu call=%llu", __entry->device, __entry->nr,
		  __entry->size, __entry->session, __entry->call)
);

TRACE_EVENT(npu_ioctl_exit,
	TP_PROTO(int device, unsigned int nr, int result),
	TP_ARGS(device, nr, result),
	TP_STRUCT__entry(
		__field(int, device)
		__field(unsigned int, nr)
		__field(int, result)
	),
	TP_fast_assign(
		__entry->device = device;
		__entry->nr = nr;
		__entry->result = result;
	),
	TP_printk("npu%d nr=0x%02x result=%d", __entry->device, __entry->nr, __entry->result)
);

TRACE_EVENT(npu_admin,
	TP_PROTO(struct npu_device *ndev, const struct npu_hw_cmd *cmd),
	TP_ARGS(ndev, cmd),
	TP_STRUCT__entry(
		__field(int, device)
		__field(unsigned int, op)
		__field(u32, cid)
		__field(u32, space)
		__field(u32, id)
	),
	TP_fast_assign(
		__entry->device = ndev->id;
		__entry->op = cmd->op;
		__entry->cid = cmd->cid;
		__entry->space = cmd->space;
		__entry->id = cmd->id;
	),
	TP_printk("npu%d op=%u cid=%u slot=%u id=%u", __entry->device, __entry->op, __entry->cid,
		  __entry->space, __entry->id)
);

TRACE_EVENT(npu_completion,
	TP_PROTO(struct npu_device *ndev, const struct npu_hw_completion *cq),
	TP_ARGS(ndev, cq),
	TP_STRUCT__entry(
		__field(int, device)
		__field(unsigned int, type)
		__field(u32, cid)
		__field(u32, space)
		__field(u32, id)
		__field(int, status)
	),
	TP_fast_assign(
		__entry->device = ndev->id;
		__entry->type = cq->type;
		__entry->cid = cq->cid;
		__entry->space = cq->space;
		__entry->id = cq->id;
		__entry->status = cq->status;
	),
	TP_printk("npu%d type=%u cid=%u slot=%u id=%u status=%d", __entry->device, __entry->type,
		  __entry->cid, __entry->space, __entry->id, __entry->status)
);

TRACE_EVENT(npu_alloc,
	TP_PROTO(struct npu_device *ndev, u64 session, u32 id, u32 kind, u64 bytes, bool made),
	TP_ARGS(ndev, session, id, kind, bytes, made),
	TP_STRUCT__entry(
		__field(int, device)
		__field(u64, session)
		__field(u32, id)
		__field(u32, kind)
		__field(u64, bytes)
		__field(bool, made)
	),
	TP_fast_assign(
		__entry->device = ndev->id;
		__entry->session = session;
		__entry->id = id;
		__entry->kind = kind;
		__entry->bytes = bytes;
		__entry->made = made;
	),
	TP_printk("npu%d %s session=%llu id=%u kind=%u bytes=%llu", __entry->device,
		  __entry->made ? "alloc" : "free", __entry->session, __entry->id, __entry->kind,
		  __entry->bytes)
);

TRACE_EVENT(npu_map,
	TP_PROTO(struct npu_device *ndev, u64 session, u64 address, u64 bytes, bool made),
	TP_ARGS(ndev, session, address, bytes, made),
	TP_STRUCT__entry(
		__field(int, device)
		__field(u64, session)
		__field(u64, address)
		__field(u64, bytes)
		__field(bool, made)
	),
	TP_fast_assign(
		__entry->device = ndev->id;
		__entry->session = session;
		__entry->address = address;
		__entry->bytes = bytes;
		__entry->made = made;
	),
	TP_printk("npu%d %s session=%llu address=0x%llx bytes=0x%llx", __entry->device,
		  __entry->made ? "map" : "unmap", __entry->session, __entry->address,
		  __entry->bytes)
);

TRACE_EVENT(npu_submit,
	TP_PROTO(struct npu_device *ndev, u64 session, u32 ring, u32 count, u64 tail),
	TP_ARGS(ndev, session, ring, count, tail),
	TP_STRUCT__entry(
		__field(int, device)
		__field(u64, session)
		__field(u32, ring)
		__field(u32, count)
		__field(u64, tail)
	),
	TP_fast_assign(
		__entry->device = ndev->id;
		__entry->session = session;
		__entry->ring = ring;
		__entry->count = count;
		__entry->tail = tail;
	),
	TP_printk("npu%d session=%llu ring=%u count=%u tail=%llu", __entry->device,
		  __entry->session, __entry->ring, __entry->count, __entry->tail)
);

TRACE_EVENT(npu_doorbell,
	TP_PROTO(struct npu_device *ndev, u64 session, u32 slot),
	TP_ARGS(ndev, session, slot),
	TP_STRUCT__entry(
		__field(int, device)
		__field(u64, session)
		__field(u32, slot)
	),
	TP_fast_assign(
		__entry->device = ndev->id;
		__entry->session = session;
		__entry->slot = slot;
	),
	TP_printk("npu%d session=%llu slot=%u", __entry->device, __entry->session, __entry->slot)
);

TRACE_EVENT(npu_irq,
	TP_PROTO(struct npu_device *ndev, unsigned int vector, u64 cause),
	TP_ARGS(ndev, vector, cause),
	TP_STRUCT__entry(
		__field(int, device)
		__field(unsigned int, vector)
		__field(u64, cause)
	),
	TP_fast_assign(
		__entry->device = ndev->id;
		__entry->vector = vector;
		__entry->cause = cause;
	),
	TP_printk("npu%d vector=%u cause=0x%llx", __entry->device, __entry->vector, __entry->cause)
);

TRACE_EVENT(npu_wake,
	TP_PROTO(struct npu_device *ndev, u64 session, u32 slot),
	TP_ARGS(ndev, session, slot),
	TP_STRUCT__entry(
		__field(int, device)
		__field(u64, session)
		__field(u32, slot)
	),
	TP_fast_assign(
		__entry->device = ndev->id;
		__entry->session = session;
		__entry->slot = slot;
	),
	TP_printk("npu%d session=%llu slot=%u", __entry->device, __entry->session, __entry->slot)
);

TRACE_EVENT(npu_fault,
	TP_PROTO(struct npu_device *ndev, u64 session, u32 ring,
		 const struct npu_fault_record *fault),
	TP_ARGS(ndev, session, ring, fault),
	TP_STRUCT__entry(
		__field(int, device)
		__field(u64, session)
		__field(u32, ring)
		__field(u32, kind)
		__field(u64, task)
		__field(u64, address)
	),
	TP_fast_assign(
		__entry->device = ndev->id;
		__entry->session = session;
		__entry->ring = ring;
		__entry->kind = fault->kind;
		__entry->task = fault->task;
		__entry->address = fault->address;
	),
	TP_printk("npu%d session=%llu ring=%u kind=%u task=%llu address=0x%llx", __entry->device,
		  __entry->session, __entry->ring, __entry->kind, __entry->task, __entry->address)
);

TRACE_EVENT(npu_reset,
	TP_PROTO(struct npu_device *ndev, int result),
	TP_ARGS(ndev, result),
	TP_STRUCT__entry(
		__field(int, device)
		__field(int, result)
	),
	TP_fast_assign(
		__entry->device = ndev->id;
		__entry->result = result;
	),
	TP_printk("npu%d result=%d", __entry->device, __entry->result)
);

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE npu_trace
#include <trace/define_trace.h>
