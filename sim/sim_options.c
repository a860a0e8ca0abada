/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table of options: name, what its value looks like, the function that takes it, help. One loop
 * goes through argv; "--name value" and "--name=value" are the same.
 */
#include "config.h"

#include "sim/sim_options.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "kdrv/uapi/npu.h"
#include "sim/engine_proto.h"

#define MEMORY_MIN (16ull << 20)
#define MEMORY_MAX (256ull << 30)
#define BAR_MIN (256ull << 20)
#define BAR_MAX (256ull << 30)

struct option {
	const char *name;
	const char *value; /* NULL: takes none */
	const char *(*take)(struct sim_options *options, const char *value); /* why not, or NULL */
	const char *help;
};

static const char *number_parse(const char *text, uint64_t min, uint64_t max, uint64_t *ret)
{
	static char why[96];
	unsigned long long value;
	char *end;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (!isdigit((unsigned char)text[0]) || *end)
		return "not a number";
	if (errno || value < min || value > max) {
		snprintf(why, sizeof(why), "out of range (%llu to %llu)", (unsigned long long)min,
			 (unsigned long long)max);
		return why;
	}
	*ret = value;
	return NULL;
}

static const char *take_socket(struct sim_options *options, const char *value)
{
	struct sockaddr_un address;

	if (!*value)
		return "empty path";
	/* ".lock" is appended to it */
	if (strlen(value) >= sizeof(address.sun_path))
		return "path longer than a Unix socket allows (107 bytes)";
	options->socket = value;
	return NULL;
}

static const char *take_card(struct sim_options *options, const char *value)
{
	options->card = true;
	return take_socket(options, value);
}

static const char *take_ram(struct sim_options *options, const char *value)
{
	if (!*value)
		return "empty path";
	options->ram = value;
	return NULL;
}

static const char *take_pid_file(struct sim_options *options, const char *value)
{
	if (!*value)
		return "empty path";
	options->pid_file = value;
	return NULL;
}

static const char *take_device(struct sim_options *options, const char *value)
{
	uint64_t n;
	const char *why = number_parse(value, 0, NPU_MAX_DEVICES - 1, &n);

	if (!why)
		options->device = (unsigned int)n;
	return why;
}

static const char *size_parse(const char *value, uint64_t *ret_size)
{
	static const char *const suffixes = "KMGkmg";
	unsigned long long n;
	const char *suffix;
	char *end;

	errno = 0;
	n = strtoull(value, &end, 10);
	if (!isdigit((unsigned char)value[0]))
		return "not a size (digits, then K, M or G)";
	if (*end) {
		unsigned int shift;

		suffix = strchr(suffixes, *end);
		if (!suffix || end[1])
			return "not a size (digits, then K, M or G)";
		shift = 10 * (unsigned int)((suffix - suffixes) % 3 + 1);
		if (n > UINT64_MAX >> shift)
			return "too large";
		n <<= shift;
	}
	if (errno)
		return "too large";
	*ret_size = n;
	return NULL;
}

static const char *take_memory(struct sim_options *options, const char *value)
{
	uint64_t n;
	const char *why = size_parse(value, &n);

	if (why)
		return why;
	n &= ~(NPU_PAGE_LARGE - 1);
	if (n > MEMORY_MAX)
		return "too large (at most 256G)";
	if (n < MEMORY_MIN)
		return "too small (at least 16M)";
	options->memory = n;
	return NULL;
}

static const char *take_ram_below_4g(struct sim_options *options, const char *value)
{
	uint64_t n;
	const char *why = size_parse(value, &n);

	if (!why && (n % NPU_PAGE_LARGE || n > 4ull << 30))
		why = "not a multiple of 2M up to 4G";
	if (!why)
		options->ram_below_4g = n;
	return why;
}

static const char *take_bar(struct sim_options *options, const char *value)
{
	uint64_t n;
	const char *why = size_parse(value, &n);

	if (!why && (n & (n - 1) || n < BAR_MIN || n > BAR_MAX))
		why = "not a power of two from 256M to 256G";
	if (!why)
		options->bar = n;
	return why;
}

static const char *take_cores(struct sim_options *options, const char *value)
{
	uint64_t n;
	const char *why = number_parse(value, 1, ENGINE_CORES_MAX, &n);

	if (!why)
		options->cores = (unsigned int)n;
	return why;
}

static const char *take_owner(struct sim_options *options, const char *value)
{
	uint64_t n;
	const char *why = number_parse(value, 0, UINT32_MAX - 1, &n);

	if (!why)
		options->owner = (uid_t)n;
	return why;
}

static const char *take_no_host_visible(struct sim_options *options, const char *value)
{
	(void)value;
	options->host_visible = false;
	return NULL;
}

static const char *take_kernel_timeout(struct sim_options *options, const char *value)
{
	uint64_t n;
	const char *why = number_parse(value, 1, 86400000, &n);

	if (!why)
		options->kernel_timeout_us = n * 1000;
	return why;
}

static const char *take_orphan_grace(struct sim_options *options, const char *value)
{
	return number_parse(value, 0, 86400000, &options->orphan_grace_ms);
}

static const char *take_detach(struct sim_options *options, const char *value)
{
	(void)value;
	options->detach = true;
	return NULL;
}

static const char *take_log_level(struct sim_options *options, const char *value)
{
	return sim_log_level_parse(value, &options->log_level) < 0 ?
		"not one of error, warning, notice, info, debug" : NULL;
}

static const struct option option_table[] = {
	{ "socket", "PATH", take_socket, "socket to listen on, for npud" },
	{ "card", "PATH", take_card, "instead: socket for the ivshmem-doorbell device of a QEMU" },
	{ "ram", "FILE", take_ram, "card: the file that is the machine's memory" },
	{ "ram-below-4g", "SIZE", take_ram_below_4g,
	  "card: how much of it lies below 4 GiB (default: at most 2G)" },
	{ "bar", "SIZE", take_bar, "card: size of BAR2, 132 MiB a session (default 16G)" },
	{ "pid-file", "PATH", take_pid_file, "file that holds our process id and is locked" },
	{ "device", "N", take_device, "number of the device (default 0)" },
	{ "memory", "SIZE", take_memory,
	  "device memory, with K, M or G (default 4G, at most half of the machine's)" },
	{ "cores", "N", take_cores, "cores of the device (default: cpus that are online)" },
	{ "owner", "UID", take_owner, "user who may connect, besides root (default: our own)" },
	{ "no-host-visible", NULL, take_no_host_visible,
	  "give out no device memory to map, as most cards" },
	{ "kernel-timeout", "MS", take_kernel_timeout,
	  "time limit of a kernel that names none (default 60000)" },
	{ "orphan-grace", "MS", take_orphan_grace,
	  "how long sessions outlive their connection (default 30000)" },
	{ "detach", NULL, take_detach, "run in the background; returns when ready" },
	{ "log-level", "L", take_log_level,
	  "error, warning, notice, info or debug (default notice)" },
};

#define OPTION_COUNT (sizeof(option_table) / sizeof(option_table[0]))

static uint64_t ram_bytes(void)
{
	long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGE_SIZE);

	return pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size : 0;
}

static void options_default(struct sim_options *options)
{
	uint64_t half = ram_bytes() / 2 & ~(NPU_PAGE_LARGE - 1);
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	*options = (struct sim_options){
		.memory = 4ull << 30,
		.cores = 1,
		.owner = geteuid(),
		.host_visible = true,
		.bar = 16ull << 30,
		.kernel_timeout_us = 60000000,
		.orphan_grace_ms = 30000,
		.log_level = SIM_LOG_NOTICE,
	};
	if (half >= MEMORY_MIN && half < options->memory)
		options->memory = half;
	if (cpus > 1)
		options->cores = cpus > (long)ENGINE_CORES_MAX ? ENGINE_CORES_MAX :
								 (unsigned int)cpus;
}

static void options_help(void)
{
	printf("Usage: npu-sim --socket PATH [OPTION]...\n"
	       "A software NPU: one device, for npud.\n\n");
	for (unsigned int i = 0; i < OPTION_COUNT; i++) {
		char left[64];

		snprintf(left, sizeof(left), "--%s%s%s", option_table[i].name,
			 option_table[i].value ? " " : "",
			 option_table[i].value ? option_table[i].value : "");
		printf("  %-22s %s\n", left, option_table[i].help);
	}
	printf("  %-22s %s\n  %-22s %s\n", "--version", "print the version", "--help",
	       "print this help");
}

/* The row of "--name" or "--name=value"; NULL: none. */
static const struct option *option_find(const char *arg, const char **ret_value)
{
	const char *name = arg + 2, *equals = strchr(name, '=');
	size_t len = equals ? (size_t)(equals - name) : strlen(name);

	for (unsigned int i = 0; i < OPTION_COUNT; i++) {
		if (strlen(option_table[i].name) == len &&
		    strncmp(option_table[i].name, name, len) == 0) {
			*ret_value = equals ? equals + 1 : NULL;
			return &option_table[i];
		}
	}
	return NULL;
}

static int option_take(struct sim_options *options, int argc, char **argv, int *at)
{
	const char *arg = argv[*at], *value = NULL, *why;
	const struct option *option = NULL;

	if (strncmp(arg, "--", 2) == 0)
		option = option_find(arg, &value);
	if (!option) {
		fprintf(stderr, "npu-sim: %s: unknown option; see npu-sim --help\n", arg);
		return -EINVAL;
	}
	if (!option->value && value) {
		fprintf(stderr, "npu-sim: --%s: takes no value\n", option->name);
		return -EINVAL;
	}
	if (option->value && !value) {
		if (*at + 1 >= argc) {
			fprintf(stderr, "npu-sim: --%s: needs a value (%s)\n", option->name,
				option->value);
			return -EINVAL;
		}
		value = argv[++*at];
	}
	why = option->take(options, value);
	if (why) {
		fprintf(stderr, "npu-sim: --%s %s: %s\n", option->name, value ? value : "", why);
		return -EINVAL;
	}
	return 0;
}

int sim_options_parse(int argc, char **argv, struct sim_options *ret_options)
{
	struct sim_options options;
	uint64_t ram = ram_bytes();

	options_default(&options);
	for (int i = 1; i < argc; i++) {
		int r;

		if (strcmp(argv[i], "--help") == 0) {
			options_help();
			return 1;
		}
		if (strcmp(argv[i], "--version") == 0) {
			printf("npu-sim %s, device interface %u.%u\n", PACKAGE_VERSION,
			       NPU_UAPI_MAJOR, NPU_UAPI_MINOR);
			return 1;
		}
		r = option_take(&options, argc, argv, &i);
		if (r < 0)
			return r;
	}
	if (!options.socket) {
		fprintf(stderr, "npu-sim: --socket PATH or --card PATH is needed; see npu-sim "
			"--help\n");
		return -EINVAL;
	}
	if (options.card && !options.ram) {
		fprintf(stderr, "npu-sim: --card: needs --ram FILE, the machine's memory\n");
		return -EINVAL;
	}
	if (ram && options.memory > ram / 2) {
		fprintf(stderr, "npu-sim: --memory: %llu MiB is more than half of this machine's "
			"%llu MiB; give less\n", (unsigned long long)(options.memory >> 20),
			(unsigned long long)(ram >> 20));
		return -EINVAL;
	}
	*ret_options = options;
	return 0;
}
