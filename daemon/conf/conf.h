/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NPU_CONF_H
#define NPU_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "daemon/util/log.h"

/*
 * The configuration: INI text through inih, described by one table of options (conf_print shows
 * it). Plain data, filled once at start, constant afterwards; any thread may read it.
 */

#define CONF_NAME_MAX  64
#define CONF_LIST_MAX  512
#define CONF_FILE_MAX  (256 * 1024)
#define CONF_ERROR_MAX 512

struct conf {
	/* [daemon] */
	uint64_t socket_mode;
	char socket_group[CONF_NAME_MAX];
	char admin_group[CONF_NAME_MAX];
	enum log_level log_level;
	uint64_t rpc_timeout_ms;

	/* [device] */
	char transport[CONF_LIST_MAX]; /* "auto", "sim", or /dev/npuN[,/dev/npuM...] */
	uint64_t sim_devices;
	uint64_t sim_memory; /* bytes a device */
	uint64_t sim_cores;  /* cores a device; 0: online cpus */
	bool sim_host_visible;
	bool sim_stop_with_daemon;

	/* [limits]; 0 means no limit of its own where the help says so */
	uint64_t sessions;
	uint64_t sessions_per_user;
	uint64_t memory;
	uint64_t memory_per_user;
	uint64_t host_memory;
	uint64_t host_memory_per_user;
	uint64_t slab_charge;
	uint64_t files_per_user;
	uint64_t allocations;
	uint64_t contexts;
	uint64_t streams;
	uint64_t modules;
	uint64_t events;
	uint64_t requests;

	/* [management] */
	char bus[CONF_LIST_MAX]; /* "system", "session", "off", or an address "unix:..." */
};

void conf_init(struct conf *conf);

/*
 * Reads a file over the values in conf. A missing file is an error only when must_exist. On error
 * conf is unchanged, `error` (CONF_ERROR_MAX bytes) has one line, "FILE[:LINE]: what, what is
 * allowed", and a negative errno is returned.
 */
int conf_load(struct conf *conf, const char *path, bool must_exist, char *error);

/* Checks a word for [device] transport: 0 or -EINVAL. */
int conf_check_transport(const char *word);

/* Prints all options as a commented INI file with the given values. */
void conf_print(const struct conf *conf, FILE *out);

#endif
