/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* Calls about the device as a whole: what it is, how it is, what it counted, reset, faults on
 * order. */
#include "kdrv/core/npu_core_int.h"

int npu_call_version(struct npu_call *call, void *arg)
{
	const struct npu_core_config *config = &call->core->config;
	struct npu_version *version = arg;
	uint32_t major = version->major;

	version->major = NPU_UAPI_MAJOR;
	version->minor = NPU_UAPI_MINOR;
	version->queue_major = NPU_QUEUE_MAJOR;
	version->kind = config->kind;
	npu_copy_text(version->name, sizeof(version->name), config->version,
		      sizeof(config->version));
	return major == NPU_UAPI_MAJOR ? 0 : -EPROTO;
}

int npu_call_discover(struct npu_call *call, void *arg)
{
	struct npu_discover *discover = arg;

	memset(discover->ids, 0, sizeof(discover->ids));
	discover->count = 1;
	discover->ids[0] = call->core->config.device_id;
	return 0;
}

int npu_call_query(struct npu_call *call, void *arg)
{
	struct npu_core *core = call->core;
	const struct npu_core_config *config = &core->config;
	struct npu_admin_cmd cmd = { .op = NPU_ADMIN_QUERY, .query = arg };
	struct npu_query *query = arg;
	struct npu_head head = query->head;
	int r;

	memset(query, 0, sizeof(*query));
	query->head = head;
	query->caps = config->caps;
	npu_copy_text(query->name, sizeof(query->name), config->name, sizeof(config->name));
	npu_copy_text(query->firmware, sizeof(query->firmware), config->firmware,
		      sizeof(config->firmware));
	query->health = core->health;
	query->cores = config->cores;
	query->memory_total = ((uint64_t)core->pages.larges * NPU_PAGES_LARGE - core->pages.nbad) *
			      NPU_PAGE_SMALL;
	query->memory_free = core->pages.nfree * NPU_PAGE_SMALL;
	query->memory_bad = core->pages.nbad * NPU_PAGE_SMALL;
	query->largest_run = npu_pages_largest(&core->pages) * NPU_PAGE_SMALL;
	query->sessions = core->sessions.count;
	query->max_queues = config->max_queues;
	query->slab_size = NPU_SLAB_SIZE;
	query->boot_id = core->boot_id;
	query->default_timeout_us = config->default_timeout_us;
	r = npu_admin(core, &cmd);
	query->head = head;
	return r < 0 ? r : 0;
}

int npu_call_reset(struct npu_call *call, void *arg)
{
	struct npu_core *core = call->core;
	struct npu_admin_cmd cmd = { .op = NPU_ADMIN_RESET };
	uint64_t boot_id;
	int r;

	(void)arg;
	r = npu_random(core, &boot_id, sizeof(boot_id));
	if (r < 0)
		return r;
	r = npu_admin(core, &cmd);
	if (r < 0)
		return r;
	core->boot_id = boot_id != core->boot_id ? boot_id : boot_id + 1;
	npu_log(core, NPU_LOG_WARNING, 0, "device reset: every session is lost");
	npu_sessions_lose(core);
	if (core->health != NPU_HEALTH_OK) {
		core->health = NPU_HEALTH_OK;
		npu_event_send_all(core, NPU_EVENT_HEALTH, 0, NPU_HEALTH_OK);
	}
	npu_event_send_all(core, NPU_EVENT_RESET, core->boot_id, 0);
	return 0;
}

int npu_call_counters(struct npu_call *call, void *arg)
{
	struct npu_core *core = call->core;
	struct npu_session *session = call->session, *other;
	struct npu_counters *counters = arg;
	__u64 *values = counters->values;
	struct npu_admin_cmd cmd = { .op = NPU_ADMIN_COUNTERS,
				     .session = session,
				     .counters = values };
	uint32_t slot;
	int r;

	memset(values, 0, sizeof(counters->values));
	if (session) {
		values[NPU_COUNTER_MEM_USED] = session->mem_used;
		values[NPU_COUNTER_MEM_PEAK] = session->mem_peak;
		values[NPU_COUNTER_HOST_MEM] = session->host_used;
		values[NPU_COUNTER_QUEUES] = session->queues.count;
		values[NPU_COUNTER_CONTEXTS] = session->ctx_count;
		values[NPU_COUNTER_MODULES] = session->modules.count;
		values[NPU_COUNTER_FAULTS] = session->faults;
		values[NPU_COUNTER_ENGINE_STARTS] = session->engine_starts;
	} else {
		for (slot = 0; (other = npu_table_next(&core->sessions, &slot)); slot++) {
			values[NPU_COUNTER_QUEUES] += other->queues.count;
			values[NPU_COUNTER_CONTEXTS] += other->ctx_count;
			values[NPU_COUNTER_MODULES] += other->modules.count;
		}
		values[NPU_COUNTER_MEM_USED] = core->mem_used;
		values[NPU_COUNTER_MEM_PEAK] = core->mem_peak;
		values[NPU_COUNTER_HOST_MEM] = core->host_used;
		values[NPU_COUNTER_FAULTS] = core->fault_seq;
		values[NPU_COUNTER_ENGINE_STARTS] = core->engine_starts;
	}
	r = npu_admin(core, &cmd);
	return r < 0 ? r : 0;
}

int npu_call_error_query(struct npu_call *call, void *arg)
{
	struct npu_error_query *query = arg;
	const struct npu_fault_record *record, *best = NULL;
	uint32_t i;

	for (i = 0; i < NPU_CORE_FAULTS; i++) {
		record = &call->core->faults[i];
		if (record->seq <= query->after || (best && best->seq < record->seq))
			continue;
		if (call->session && record->session != call->session->obj.id)
			continue;
		best = record;
	}
	if (!best)
		return -ENOENT;
	query->fault = *best;
	return 0;
}

int npu_call_inject(struct npu_call *call, void *arg)
{
	struct npu_inject *inject = arg;
	struct npu_admin_cmd cmd = { .op = NPU_ADMIN_INJECT, .session = call->session };

	if (!(call->core->config.caps & NPU_CAP_INJECT))
		return -EOPNOTSUPP;
	if (inject->kind < NPU_INJECT_ECC_CORRECTABLE || inject->kind > NPU_INJECT_ENGINE_KILL)
		return -EINVAL;
	cmd.inject.kind = inject->kind;
	cmd.inject.address = inject->address;
	cmd.inject.value = inject->value;
	cmd.inject.page = NPU_PAGE_NONE;
	cmd.inject.queue = NULL;
	if (inject->queue) {
		if (!call->session)
			return -ENOENT;
		cmd.inject.queue = npu_queue_find(call->session, inject->queue);
		if (!cmd.inject.queue)
			return -ENOENT;
	}
	if (call->session && inject->address)
		cmd.inject.page = npu_map_page(call->session, inject->address);
	if (inject->kind == NPU_INJECT_ECC_UNCORRECTABLE && cmd.inject.page == NPU_PAGE_NONE)
		return -ERANGE;
	return npu_admin(call->core, &cmd);
}
