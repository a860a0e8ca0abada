/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * A file's event records: a ring that never blocks its writers. What npu_core.h promises about
 * records that replace others and records that are lost is decided in npu_event_make().
 */
#include "kdrv/core/npu_core_int.h"

static bool npu_event_replaces(uint32_t type)
{
	return type == NPU_EVENT_ENGINE || type == NPU_EVENT_QUEUE || type == NPU_EVENT_HEALTH;
}

static struct npu_event *npu_event_at(struct npu_core_file *file, uint32_t i)
{
	return &file->events[(file->first + i) % NPU_CORE_EVENTS];
}

/*
 * Makes room in a full queue: the oldest record goes of those that are missed least. Faults first,
 * since ERROR_QUERY has them all; ends of loads last; among equals those of the session that wants
 * the room. False: a fault would push out something better.
 */
static bool npu_event_drop(struct npu_core_file *file, uint32_t type, uint64_t session)
{
	uint32_t i, victim = 0, best = UINT32_MAX;

	for (i = 0; i < file->count && best; i++) {
		struct npu_event *event = npu_event_at(file, i);
		uint32_t rank = event->session != session;

		if (event->type != NPU_EVENT_FAULT)
			rank += event->type == NPU_EVENT_MODULE ? 4 : 2;
		if (rank < best) {
			best = rank;
			victim = i;
		}
	}
	if (type == NPU_EVENT_FAULT && best >= 2)
		return false;
	for (i = victim; i > 0; i--)
		*npu_event_at(file, i) = *npu_event_at(file, i - 1);
	file->first = (file->first + 1) % NPU_CORE_EVENTS;
	file->count--;
	return true;
}

struct npu_event *npu_event_make(struct npu_core *core, struct npu_core_file *file, uint32_t type,
				 uint64_t session, uint64_t id, uint64_t user)
{
	struct npu_event *event;
	uint32_t i, faults = 0;

	if (!file)
		return NULL;
	for (i = 0; i < file->count; i++) {
		event = npu_event_at(file, i);
		if (event->type != type || event->session != session)
			continue;
		if (npu_event_replaces(type) && event->id == id)
			goto fill;
		faults += type == NPU_EVENT_FAULT;
	}
	if (faults >= NPU_CORE_EVENTS_FAULTS) {
		file->lost++;
		return NULL;
	}
	if (file->count == NPU_CORE_EVENTS) {
		file->lost++;
		if (!npu_event_drop(file, type, session))
			return NULL;
	}
	event = npu_event_at(file, file->count);
	file->count++;
fill:
	memset(event, 0, sizeof(*event));
	event->type = type;
	event->size = sizeof(*event);
	event->session = session;
	event->id = id;
	event->user = user;
	event->time_ns = npu_now(core);
	return event;
}

void npu_event_post(struct npu_core *core, struct npu_core_file *file)
{
	if (core->shim.event_ready)
		core->shim.event_ready(core->shim.dev, file, file->cookie);
}

void npu_event_send(struct npu_core *core, struct npu_core_file *file, uint32_t type,
		    uint64_t session, uint64_t id, uint64_t user, int32_t status)
{
	struct npu_event *event = npu_event_make(core, file, type, session, id, user);

	if (event) {
		event->status = status;
		npu_event_post(core, file);
	}
}

void npu_event_send_all(struct npu_core *core, uint32_t type, uint64_t id, int32_t status)
{
	struct npu_list *link;

	for (link = core->files.next; link != &core->files; link = link->next)
		npu_event_send(core, npu_container_of(link, struct npu_core_file, link), type, 0,
			       id, 0, status);
}

int npu_core_event_read(struct npu_core *core, struct npu_core_file *file,
			struct npu_event *ret_event)
{
	int r = -EAGAIN;

	npu_core_lock(core);
	if (file->count) {
		*ret_event = file->events[file->first];
		ret_event->lost = file->lost;
		file->lost = 0;
		file->first = (file->first + 1) % NPU_CORE_EVENTS;
		file->count--;
		r = 0;
	}
	npu_core_unlock(core);
	return r;
}
