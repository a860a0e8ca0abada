/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the devices and takes what they report to whom it concerns. */
#include "daemon/core/core.h"
#include "daemon/core/fault.h"
#include "daemon/util/log.h"
#include "daemon/util/parse.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* On top of the time limit of calls: an npu-sim may have to be started. */
#define OPEN_WAIT_MS 6000

struct log_ident space_ident(const struct space *space)
{
	const struct session_peer *peer = &space->session->peer;

	return (struct log_ident){
		.session = space->session->id,
		.pid = peer->pid,
		.uid = peer->uid,
		.comm = peer->comm,
		.device = space->device->id + 1,
	};
}

/* Once, when no device is in its first attempt any more. */
static void check_opened(struct core *core)
{
	void (*opened)(void *arg) = core->opened;

	for (unsigned int i = 0; i < core->device_count; i++) {
		if (!core->devices[i].opened)
			return;
	}
	core->opened = NULL;
	loop_timer_stop(core->open_timer);
	if (opened)
		opened(core->opened_arg);
}

/* Nobody is to wait for a device that does not even say that it is there. */
static void on_open_timeout(void *arg)
{
	struct core *core = arg;

	for (unsigned int i = 0; i < core->device_count; i++) {
		struct core_device *device = &core->devices[i];

		if (!device->opened)
			log_error("core", "device %u (%s) does not answer; going on without it",
				  device->id, hal_device_path(device->hal));
		device->opened = true;
	}
	check_opened(core);
}

static void lose_spaces(struct core *core, struct core_device *device, bool gone)
{
	struct session *session;

	TAILQ_FOREACH(session, &core->sessions, entry) {
		if (session->spaces[device->id])
			space_lose(session->spaces[device->id], gone);
	}
}

static void on_ready(struct hal_device *hal, void *arg)
{
	struct core_device *device = arg;
	char memory[32];

	device->query = *hal_device_info(hal);
	log_info("core", "device %u (%s): %s, %s, %u cores, %s", device->id, hal_device_path(hal),
		 hal_device_version(hal)->name, device->query.name, device->query.cores,
		 format_size(device->query.memory_total, memory, sizeof(memory)));
	device->opened = true;
	check_opened(device->core);
	core_changed(device);
}

static void on_lost(struct hal_device *hal, int error, const char *text, void *arg)
{
	struct core_device *device = arg;

	(void)hal;
	(void)error;
	log_error("core", "device %u: %s", device->id, text);
	device->query.health = NPU_HEALTH_LOST;
	lose_spaces(device->core, device, true);
	device->opened = true;
	check_opened(device->core);
	core_changed(device);
}

static struct space *find_space(struct core_device *device, uint64_t hal_id)
{
	struct space *space;

	HASH_FIND(hh, device->spaces, &hal_id, sizeof(hal_id), space);
	return space;
}

static void on_event(struct hal_device *hal, const struct npu_event *event, void *arg)
{
	struct core_device *device = arg;
	struct space *space = event->session ? find_space(device, event->session) : NULL;

	(void)hal;
	if (event->lost) {
		if (log_limit_ok(&device->dropped_limit, "core"))
			log_warning("core", "device %u dropped %u event records", device->id,
				    event->lost);
		device->dropped += event->lost;
		module_events_lost(device);
	}
	switch (event->type) {
	case NPU_EVENT_MODULE:
		if (space)
			module_event(space, event);
		break;
	case NPU_EVENT_FAULT:
		device->core->faults++;
		if (space) {
			space->faults++;
			space->session->faults++;
			fault_report(space, &event->fault);
		}
		break;
	case NPU_EVENT_RESET:
		log_warning("core", "device %u was reset", device->id);
		lose_spaces(device->core, device, false);
		if (device->core->watch)
			device->core->watch->reset(device->id, device->core->watch_arg);
		core_changed(device);
		break;
	case NPU_EVENT_HEALTH:
		if (event->status != (__s32)device->query.health)
			log_warning("core", "device %u is %s", device->id,
				    event->status == NPU_HEALTH_OK   ? "well" :
				    event->status == NPU_HEALTH_LOST ? "lost" :
								       "degraded");
		device->query.health = (__u32)event->status;
		if (event->status == NPU_HEALTH_LOST)
			lose_spaces(device->core, device, false);
		core_changed(device);
		break;
	case NPU_EVENT_MEMORY:
		log_warning("core", "device %u: %d bytes of memory were retired", device->id,
			    event->status);
		core_changed(device);
		break;
	case NPU_EVENT_SESSION:
		core_changed(device);
		break;
	default:
		break;
	}
}

static const struct hal_device_fns device_fns = {
	.ready = on_ready,
	.lost = on_lost,
	.event = on_event,
};

static int add_device(struct core *core, const char *path, const struct core_config *config)
{
	const struct conf *conf = config->conf;
	struct hal_sim_config sim = {
		.runtime_dir = config->runtime_dir,
		.memory = conf->sim_memory,
		.cores = (unsigned int)conf->sim_cores,
		.host_visible = conf->sim_host_visible,
		.attach_only = config->sim_attach_only,
		.stop_at_end = conf->sim_stop_with_daemon,
	};
	struct core_device *device = &core->devices[core->device_count];
	int r;

	if (core->device_count == CORE_DEVICES_MAX)
		return -E2BIG;
	device->core = core;
	device->id = core->device_count;
	TAILQ_INIT(&device->loading);
	r = hal_device_new(core->loop, device->id, path, &sim, conf->rpc_timeout_ms, &device_fns,
			   device, &device->hal);
	if (r == 0)
		core->device_count++;
	return r;
}

static int compare_numbers(const void *a, const void *b)
{
	unsigned int x = *(const unsigned int *)a, y = *(const unsigned int *)b;

	return x < y ? -1 : x > y;
}

/* All /dev/npuN, in order of N; the number of them or a negative errno. */
static int add_nodes(struct core *core, const struct core_config *config)
{
	unsigned int numbers[CORE_DEVICES_MAX];
	unsigned int count = 0;
	struct dirent *entry;
	DIR *dir = opendir("/dev");

	if (!dir)
		return -errno;
	while ((entry = readdir(dir))) {
		uint64_t number;

		if (strncmp(entry->d_name, "npu", 3) == 0 && count < CORE_DEVICES_MAX &&
		    parse_u64(entry->d_name + 3, &number) == 0 && number < NPU_MAX_DEVICES)
			numbers[count++] = (unsigned int)number;
	}
	closedir(dir);
	qsort(numbers, count, sizeof(numbers[0]), compare_numbers);
	for (unsigned int i = 0; i < count; i++) {
		char path[32];
		int r;

		snprintf(path, sizeof(path), "/dev/npu%u", numbers[i]);
		r = add_device(core, path, config);
		if (r < 0)
			return r;
	}
	return (int)count;
}

static int add_devices(struct core *core, const struct core_config *config)
{
	const char *word = config->conf->transport;
	int r = 0;

	if (word[0] == '/') {
		char list[CONF_LIST_MAX], *path, *save;

		str_copy(list, sizeof(list), word);
		for (path = strtok_r(list, ",", &save); path && r == 0;
		     path = strtok_r(NULL, ",", &save))
			r = add_device(core, path, config);
		return r;
	}
	if (strcmp(word, "auto") == 0) {
		r = add_nodes(core, config);
		if (r != 0)
			return r < 0 ? r : 0;
	}
	for (uint64_t i = 0; i < config->conf->sim_devices && r == 0; i++)
		r = add_device(core, NULL, config);
	return r;
}

int core_new(struct loop *loop, const struct core_config *config, void (*opened)(void *arg),
	     void *arg, struct core **ret_core)
{
	const struct conf *conf = config->conf;
	uint64_t half = (uint64_t)sysconf(_SC_PHYS_PAGES) / 2 * (uint64_t)sysconf(_SC_PAGESIZE);
	struct charge_limits limits = {
		.session = {
			[CHARGE_MEMORY] = conf->memory,
			[CHARGE_HOST] = conf->host_memory ? conf->host_memory : half,
		},
		.user = {
			[CHARGE_SESSION] = conf->sessions_per_user,
			[CHARGE_MEMORY] = conf->memory_per_user,
			[CHARGE_HOST] = conf->host_memory_per_user ? conf->host_memory_per_user
								   : half,
			[CHARGE_FILE] = conf->files_per_user ? conf->files_per_user
							     : config->open_files / 4,
		},
	};
	struct core *core = calloc(1, sizeof(*core));
	int r;

	if (!core)
		return -ENOMEM;
	core->loop = loop;
	core->conf = conf;
	core->opened = opened;
	core->opened_arg = arg;
	TAILQ_INIT(&core->sessions);
	charge_table_init(&core->charges, &limits);
	r = loop_timer_new(loop, on_open_timeout, core, &core->open_timer);
	if (r == 0)
		r = loop_timer_set(core->open_timer, conf->rpc_timeout_ms + OPEN_WAIT_MS);
	if (r == 0)
		r = add_devices(core, config);
	if (r < 0) {
		core_free(core);
		return r;
	}
	*ret_core = core;
	return 0;
}

void core_free(struct core *core)
{
	if (!core)
		return;
	core->opened = NULL;
	core->idle = NULL;
	core->watch = NULL;
	/* owners that were on the way to close their sessions */
	loop_run_posts(core->loop);
	/* ends the jobs with -ENODEV: spaces that were being closed go then */
	for (unsigned int i = 0; i < core->device_count; i++) {
		lose_spaces(core, &core->devices[i], true);
		hal_device_free(core->devices[i].hal);
	}
	charge_table_fini(&core->charges);
	loop_timer_free(core->open_timer);
	free(core);
}

bool core_idle(const struct core *core)
{
	return TAILQ_EMPTY(&core->sessions);
}

void core_watch_idle(struct core *core, void (*idle)(void *arg), void *arg)
{
	core->idle = idle;
	core->idle_arg = arg;
}

unsigned int core_device_count(const struct core *core)
{
	return core->device_count;
}

void core_window(uint64_t *ret_base, uint64_t *ret_size)
{
	*ret_base = NPU_WINDOW_BASE;
	*ret_size = NPU_WINDOW_SIZE;
}

uint64_t core_faults(const struct core *core)
{
	return core->faults;
}

int core_device_info(const struct core *core, unsigned int id, struct core_device_info *ret_info)
{
	const struct core_device *device;
	const struct npu_version *version;
	const struct npu_query *query;
	struct core_device_info info = { 0 };

	if (id >= core->device_count)
		return -ENODEV;
	device = &core->devices[id];
	version = hal_device_version(device->hal);
	query = &device->query;
	info.id = id;
	info.ready = hal_device_state(device->hal) == HAL_READY;
	info.unresponsive = hal_device_unresponsive(device->hal);
	str_copy(info.name, sizeof(info.name), query->name);
	str_copy(info.firmware, sizeof(info.firmware), query->firmware);
	str_copy(info.driver, sizeof(info.driver), version->name);
	if (version->kind == NPU_KIND_SIM)
		strcpy(info.transport, "sim");
	else
		str_copy(info.transport, sizeof(info.transport), hal_device_path(device->hal));
	info.kind = version->kind;
	info.uapi_major = version->major;
	info.uapi_minor = version->minor;
	info.health = info.ready ? query->health : NPU_HEALTH_LOST;
	info.caps = query->caps;
	info.cores = query->cores;
	info.util_permille = query->util_permille;
	info.sessions = query->sessions;
	info.engines = query->engines;
	info.max_queues = query->max_queues;
	info.memory_total = query->memory_total;
	info.memory_free = query->memory_free;
	info.memory_bad = query->memory_bad;
	info.largest_run = query->largest_run;
	info.slab_size = query->slab_size;
	info.busy_ns = query->busy_ns;
	info.default_timeout_us = query->default_timeout_us;
	info.sandbox_active = query->sandbox_active;
	info.sandbox_missing = query->sandbox_missing;
	info.clients = device->clients;
	info.drained = device->drained;
	*ret_info = info;
	return 0;
}
