/* SPDX-License-Identifier: Apache-2.0 */
/*
 * admin - the administrator's view of npud, for npuctl
 *
 * Part of libnpu-client, exported under the version node NPU_ADMIN_0 for npuctl only: no promise of
 * stability. One connection belongs to one thread. Every call waits at most the connection's limit.
 * All calls return 0 or a negative errno and then describe the failure in npu_admin_error():
 * -ENOENT, -ECONNREFUSED: npud is not running; -EACCES: the socket refused us; -ETIMEDOUT: npud does
 * not respond; -EPROTO: versions differ; -EPERM: needs an administrator; -EREMOTEIO: npud's error.
 */
#ifndef NPU_CLIENT_DRV_ADMIN_H
#define NPU_CLIENT_DRV_ADMIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct npu_admin; /* a connection */

struct npu_admin_device {
	uint32_t id;
	char name[64];
	char firmware[32];
	char transport[108];
	uint32_t kind; /* 1: PCI, 2: simulator */
	uint64_t caps;
	uint32_t health; /* 0: ok, 1: degraded, 2: lost */
	uint32_t cores;
	uint64_t memory_total, memory_free, memory_bad, largest_run; /* bytes */
	uint32_t util_permille;
	uint32_t sessions, engines, max_queues;
	uint64_t busy_ns;
	uint32_t sandbox_active, sandbox_missing;
};

struct npu_admin_status {
	char daemon[64];
	int32_t pid;
	uint64_t uptime_ms;
	uint32_t clients;
	uint64_t faults;
	char runtime_dir[256];
	bool is_admin;
	size_t ndevices;
	struct npu_admin_device *devices;
};

struct npu_admin_client {
	uint64_t session;
	int32_t pid;
	uint32_t uid;
	char comm[32];
	uint32_t device; /* UINT32_MAX: none open */
	uint64_t memory, memory_peak, host_memory; /* bytes */
	uint32_t contexts, queues, modules;
	uint64_t tasks_queued, tasks_done, core_ns, faults, connected_ms;
	int32_t engine_pid;
};

struct npu_admin_ps {
	size_t nclients;
	struct npu_admin_client *clients;
	uint32_t hidden; /* clients of other users that were not shown */
};

struct npu_admin_memory_use {
	uint64_t session;
	int32_t pid;
	uint32_t uid;
	char comm[32];
	uint64_t used, peak, host, objects;
};

struct npu_admin_device_memory {
	uint32_t device;
	uint64_t total, used, free, bad, largest_run; /* bytes */
	size_t nclients;
	struct npu_admin_memory_use *clients;
	uint32_t hidden;
};

struct npu_admin_memory {
	size_t ndevices;
	struct npu_admin_device_memory *devices;
};

struct npu_admin_version {
	char library[64];
	char daemon[64];
	uint32_t major, minor; /* of the control protocol that npud speaks */
	size_t ndevices;
	char (*devices)[128];
};

/*
 * Connects and says Hello. path NULL: $NPUD_SOCKET, else the default. timeout_ms bounds each call.
 * On failure *ret_admin is still set (unless memory is out: NULL) so that npu_admin_error() can be
 * asked; close it in any case.
 */
int npu_admin_open(const char *path, unsigned timeout_ms, struct npu_admin **ret_admin);
void npu_admin_close(struct npu_admin *admin);

/* Path of the socket, and the text of the last failure: one line, owned by the connection. */
const char *npu_admin_path(const struct npu_admin *admin);
const char *npu_admin_error(const struct npu_admin *admin);

/* Queries. The result is the caller's; free with the function beside it. */
int npu_admin_status(struct npu_admin *admin, struct npu_admin_status *ret_status);
void npu_admin_status_clear(struct npu_admin_status *status);
int npu_admin_ps(struct npu_admin *admin, struct npu_admin_ps *ret_ps);
void npu_admin_ps_clear(struct npu_admin_ps *ps);
int npu_admin_memory(struct npu_admin *admin, struct npu_admin_memory *ret_memory);
void npu_admin_memory_clear(struct npu_admin_memory *memory);
int npu_admin_version(struct npu_admin *admin, struct npu_admin_version *ret_version);
void npu_admin_version_clear(struct npu_admin_version *version);

/* Name of bit number bit of NPU_SANDBOX_* (1: "seccomp"), or NULL; static string. */
const char *npu_admin_sandbox_name(unsigned bit);

#endif
