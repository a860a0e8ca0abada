/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One drv_conn with an admin-only Hello; each query is a round trip (ps: one a page) whose reply is
 * copied into the plain structs of admin.h.
 */
#pragma GCC visibility push(default)
#include "client/drv/admin.h"
#pragma GCC visibility pop

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/drv/conn.h"
#include "client/drv/drv.h"
#include "proto/npu.pb-c.h"
#include "proto/status.h"

#define PS_PAGES_MAX 65536u /* a peer that never ends its list */

struct npu_admin {
	struct drv_conn conn;
	char error[sizeof(((struct drv_error *)0)->text)];
};

#define COPY_TEXT(to, from) copy_text(to, sizeof(to), from)

static void copy_text(char *to, size_t size, const char *from)
{
	size_t n = from ? strnlen(from, size - 1) : 0;

	memcpy(to, from ? from : "", n);
	to[n] = 0;
}

/* Turns a failure into what admin.h promises. */
static int admin_fail(struct npu_admin *admin, int r)
{
	COPY_TEXT(admin->error, drv_error()->text);
	if (r == -ENOMEM)
		return r;
	if (drv_error()->status == NPU_STATUS_DENIED)
		return -EPERM;
	if (drv_error()->status == NPU_STATUS_VERSION)
		return -EPROTO;
	return drv_error()->status ? -EREMOTEIO : r;
}

static int admin_memory(struct npu_admin *admin)
{
	COPY_TEXT(admin->error, "out of host memory");
	return -ENOMEM;
}

static int admin_call(struct npu_admin *admin, uint16_t method, const ProtobufCMessage *request,
		      const ProtobufCMessageDescriptor *type, void *ret_reply)
{
	int r = drv_conn_call(&admin->conn, method, request, type, (ProtobufCMessage **)ret_reply,
			      NULL, NULL);

	return r ? admin_fail(admin, r) : 0;
}

int npu_admin_open(const char *path, unsigned timeout_ms, struct npu_admin **ret_admin)
{
	struct npu_admin *admin = calloc(1, sizeof(*admin));
	int r;

	*ret_admin = admin;
	if (!admin)
		return -ENOMEM;
	r = drv_conn_open(&admin->conn, path, timeout_ms, true);
	return r ? admin_fail(admin, r) : 0;
}

void npu_admin_close(struct npu_admin *admin)
{
	if (!admin)
		return;
	drv_conn_close(&admin->conn);
	free(admin);
}

const char *npu_admin_path(const struct npu_admin *admin)
{
	return admin->conn.path;
}

const char *npu_admin_error(const struct npu_admin *admin)
{
	return admin->error;
}

static void device_copy(struct npu_admin_device *to, const Npu__Device *from)
{
	*to = (struct npu_admin_device){
		.id = from->id,
		.kind = from->kind,
		.caps = from->caps,
		.health = from->health,
		.cores = from->cores,
		.memory_total = from->memory_total,
		.memory_free = from->memory_free,
		.memory_bad = from->memory_bad,
		.largest_run = from->largest_run,
		.util_permille = from->util_permille,
		.sessions = from->sessions,
		.engines = from->engines,
		.max_queues = from->max_queues,
		.busy_ns = from->busy_ns,
		.sandbox_active = from->sandbox_active,
		.sandbox_missing = from->sandbox_missing,
	};
	COPY_TEXT(to->name, from->name);
	COPY_TEXT(to->firmware, from->firmware);
	COPY_TEXT(to->transport, from->transport);
}

int npu_admin_status(struct npu_admin *admin, struct npu_admin_status *ret_status)
{
	Npu__Empty request = NPU__EMPTY__INIT;
	Npu__StatusReply *reply;
	struct npu_admin_status status = { 0 };
	int r = admin_call(admin, NPU_METHOD_status, &request.base, &npu__status_reply__descriptor,
			   &reply);

	if (r)
		return r;
	status.devices = calloc(reply->n_devices + 1, sizeof(*status.devices));
	if (status.devices) {
		COPY_TEXT(status.daemon, reply->daemon);
		COPY_TEXT(status.runtime_dir, reply->runtime_dir);
		status.pid = reply->pid;
		status.uptime_ms = reply->uptime_ms;
		status.clients = reply->clients;
		status.faults = reply->faults;
		status.is_admin = admin->conn.is_admin;
		status.ndevices = reply->n_devices;
		for (size_t i = 0; i < reply->n_devices; i++)
			device_copy(&status.devices[i], reply->devices[i]);
		*ret_status = status;
	} else {
		r = admin_memory(admin);
	}
	npu__status_reply__free_unpacked(reply, NULL);
	return r;
}

void npu_admin_status_clear(struct npu_admin_status *status)
{
	free(status->devices);
	*status = (struct npu_admin_status){ 0 };
}

static void client_copy(struct npu_admin_client *to, const Npu__Client *from)
{
	*to = (struct npu_admin_client){
		.session = from->session,
		.pid = from->pid,
		.uid = from->uid,
		.device = from->device,
		.memory = from->memory,
		.memory_peak = from->memory_peak,
		.host_memory = from->host_memory,
		.contexts = from->contexts,
		.queues = from->queues,
		.modules = from->modules,
		.tasks_queued = from->tasks_queued,
		.tasks_done = from->tasks_done,
		.core_ns = from->core_ns,
		.faults = from->faults,
		.connected_ms = from->connected_ms,
		.engine_pid = from->engine_pid,
	};
	COPY_TEXT(to->comm, from->comm);
}

int npu_admin_ps(struct npu_admin *admin, struct npu_admin_ps *ret_ps)
{
	struct npu_admin_ps ps = { 0 };
	Npu__Ps request = NPU__PS__INIT;
	int r;

	for (unsigned page = 0; page < PS_PAGES_MAX; page++) {
		struct npu_admin_client *clients;
		Npu__PsReply *reply;
		uint64_t cursor;

		r = admin_call(admin, NPU_METHOD_ps, &request.base, &npu__ps_reply__descriptor,
			       &reply);
		if (r)
			goto fail;
		clients = reallocarray(ps.clients, ps.nclients + reply->n_clients + 1,
				       sizeof(*clients));
		if (!clients) {
			npu__ps_reply__free_unpacked(reply, NULL);
			r = admin_memory(admin);
			goto fail;
		}
		ps.clients = clients;
		for (size_t i = 0; i < reply->n_clients; i++)
			client_copy(&clients[ps.nclients++], reply->clients[i]);
		ps.hidden = reply->hidden;
		cursor = reply->cursor;
		npu__ps_reply__free_unpacked(reply, NULL);
		if (!cursor) {
			*ret_ps = ps;
			return 0;
		}
		request.cursor = cursor;
	}
	COPY_TEXT(admin->error, "npud's list of clients has no end");
	r = -EREMOTEIO;
fail:
	npu_admin_ps_clear(&ps);
	return r;
}

void npu_admin_ps_clear(struct npu_admin_ps *ps)
{
	free(ps->clients);
	*ps = (struct npu_admin_ps){ 0 };
}

static bool memory_copy(struct npu_admin_device_memory *to, const Npu__DeviceMemory *from)
{
	*to = (struct npu_admin_device_memory){
		.device = from->device,
		.total = from->total,
		.used = from->used,
		.free = from->free,
		.bad = from->bad,
		.largest_run = from->largest_run,
		.hidden = from->hidden,
		.nclients = from->n_clients,
		.clients = calloc(from->n_clients + 1, sizeof(*to->clients)),
	};
	if (!to->clients)
		return false;
	for (size_t i = 0; i < from->n_clients; i++) {
		const Npu__MemoryUse *use = from->clients[i];

		to->clients[i] = (struct npu_admin_memory_use){
			.session = use->session,
			.pid = use->pid,
			.uid = use->uid,
			.used = use->used,
			.peak = use->peak,
			.host = use->host,
			.objects = use->objects,
		};
		COPY_TEXT(to->clients[i].comm, use->comm);
	}
	return true;
}

int npu_admin_memory(struct npu_admin *admin, struct npu_admin_memory *ret_memory)
{
	Npu__Empty request = NPU__EMPTY__INIT;
	Npu__MemoryReply *reply;
	struct npu_admin_memory memory = { 0 };
	int r = admin_call(admin, NPU_METHOD_memory, &request.base, &npu__memory_reply__descriptor,
			   &reply);

	if (r)
		return r;
	memory.devices = calloc(reply->n_devices + 1, sizeof(*memory.devices));
	if (!memory.devices)
		r = admin_memory(admin);
	for (size_t i = 0; !r && i < reply->n_devices; i++) {
		memory.ndevices = i + 1;
		if (!memory_copy(&memory.devices[i], reply->devices[i]))
			r = admin_memory(admin);
	}
	npu__memory_reply__free_unpacked(reply, NULL);
	if (r)
		npu_admin_memory_clear(&memory);
	else
		*ret_memory = memory;
	return r;
}

void npu_admin_memory_clear(struct npu_admin_memory *memory)
{
	for (size_t i = 0; i < memory->ndevices; i++)
		free(memory->devices[i].clients);
	free(memory->devices);
	*memory = (struct npu_admin_memory){ 0 };
}

int npu_admin_version(struct npu_admin *admin, struct npu_admin_version *ret_version)
{
	Npu__Empty request = NPU__EMPTY__INIT;
	Npu__VersionReply *reply;
	struct npu_admin_version version = { .library = DRV_LIBRARY };
	int r = admin_call(admin, NPU_METHOD_version, &request.base,
			   &npu__version_reply__descriptor, &reply);

	if (r)
		return r;
	version.devices = calloc(reply->n_devices + 1, sizeof(*version.devices));
	if (version.devices) {
		COPY_TEXT(version.daemon, reply->daemon);
		version.major = reply->major;
		version.minor = reply->minor;
		version.ndevices = reply->n_devices;
		for (size_t i = 0; i < reply->n_devices; i++)
			COPY_TEXT(version.devices[i], reply->devices[i]);
		*ret_version = version;
	} else {
		r = admin_memory(admin);
	}
	npu__version_reply__free_unpacked(reply, NULL);
	return r;
}

void npu_admin_version_clear(struct npu_admin_version *version)
{
	free(version->devices);
	*version = (struct npu_admin_version){ 0 };
}

const char *npu_admin_sandbox_name(unsigned bit)
{
	/* In the order of NPU_SANDBOX_* of the device interface. */
	static const char *const names[] = {
		"no_new_privs", "seccomp", "user_ns", "pid_ns", "net_ns", "ipc_ns", "uts_ns", "mount_ns",
		"own_uid", "caps", "landlock", "landlock_net", "landlock_scope", "rlimits", "data_limit",
		"not_dumpable", "parent_death",
	};

	return bit < sizeof(names) / sizeof(names[0]) ? names[bit] : NULL;
}
