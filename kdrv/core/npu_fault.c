/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * The device's memory of what went wrong. Many records never push out the few of another session.
 */
#include "kdrv/core/npu_core_int.h"

/* The counter of a session's records. */
static uint32_t *npu_fault_counter(struct npu_core *core, uint64_t session)
{
	const uint32_t size = NPU_ARRAY_SIZE(core->fault_counts);
	uint32_t i = (uint32_t)((session * 0x9e3779b97f4a7c15ull) >> 32) % size;

	while (core->fault_counts[i].count && core->fault_counts[i].session != session)
		i = (i + 1) % size;
	core->fault_counts[i].session = session;
	return &core->fault_counts[i].count;
}

/* All are in use: the oldest record of the session that has most. */
static struct npu_fault_record *npu_fault_victim(struct npu_core *core)
{
	struct npu_fault_record *record, *victim = NULL;
	uint32_t i, count, most = 0;

	memset(core->fault_counts, 0, sizeof(core->fault_counts));
	for (i = 0; i < NPU_CORE_FAULTS; i++) {
		count = ++*npu_fault_counter(core, core->faults[i].session);
		if (count > most)
			most = count;
	}
	for (i = 0; i < NPU_CORE_FAULTS; i++) {
		record = &core->faults[i];
		if (*npu_fault_counter(core, record->session) == most &&
		    (!victim || record->seq < victim->seq))
			victim = record;
	}
	return victim;
}

/* Where the next record of a session goes. */
static struct npu_fault_record *npu_fault_slot(struct npu_core *core, uint64_t session)
{
	struct npu_fault_record *record, *own = NULL, *unused = NULL;
	uint32_t i, count = 0;

	for (i = 0; i < NPU_CORE_FAULTS; i++) {
		record = &core->faults[i];
		if (!record->seq) {
			unused = record;
			continue;
		}
		if (record->session != session)
			continue;
		count++;
		if (!own || record->seq < own->seq)
			own = record;
	}
	if (count >= NPU_CORE_FAULTS_SESSION)
		return own;
	return unused ? unused : npu_fault_victim(core);
}

static void npu_fault_fill(struct npu_core *core, struct npu_session *session,
			   struct npu_queue *queue, const struct npu_fault_record *record,
			   struct npu_fault_record *slot)
{
	struct npu_module *module = npu_module_find(session, record->module);
	const char *name = module ? npu_module_func_name(module, record->func) : NULL;

	*slot = *record;
	slot->seq = core->fault_seq;
	slot->session = session->obj.id;
	if (!slot->time_ns)
		slot->time_ns = npu_now(core);
	slot->flags &= NPU_FAULT_ADDRESS_UNKNOWN;
	slot->queue = queue ? (uint32_t)queue->obj.id : 0;
	slot->context = queue ? (uint32_t)queue->ctx->obj.id : 0;
	npu_copy_text(slot->kernel, sizeof(slot->kernel), name, NPU_NAME_MAX);
}

void npu_fault_add(struct npu_core *core, struct npu_session *session, struct npu_queue *queue,
		   const struct npu_fault_record *record)
{
	struct npu_fault_record *slot = npu_fault_slot(core, session->obj.id);
	struct npu_event *event;

	core->fault_seq++;
	session->faults++;
	npu_fault_fill(core, session, queue, record, slot);
	event = npu_event_make(core, session->file, NPU_EVENT_FAULT, session->obj.id,
			       queue ? queue->obj.id : 0,
			       queue ? queue->obj.user : session->obj.user);
	if (event) {
		event->fault = *slot;
		npu_event_post(core, session->file);
	}
}

void npu_core_fault(struct npu_core *core, struct npu_session *session, uint32_t slot,
		    const struct npu_fault_record *record)
{
	npu_core_lock(core);
	if (!session->dying)
		npu_fault_add(core, session,
			      slot == NPU_SLOT_NONE ? NULL : npu_session_queue_at(session, slot),
			      record);
	npu_core_unlock(core);
}
