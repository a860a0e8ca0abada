/* SPDX-License-Identifier: Apache-2.0 */
/* npuctl status: the daemon in one line, then a row for each device. */
#include "client/npuctl/command.h"
#include "client/npuctl/format.h"
#include "client/npuctl/out_json.h"
#include "client/npuctl/out_table.h"

#include <inttypes.h>

static const char *health_name(uint32_t health)
{
	static const char *const names[] = { "ok", "degraded", "lost" };

	return health < sizeof(names) / sizeof(names[0]) ? names[health] : "unknown";
}

static const char *kind_name(uint32_t kind)
{
	return kind == 1 ? "pci" : kind == 2 ? "simulator" : "unknown";
}

static int query(struct npu_admin *admin, union result *ret_result)
{
	return npu_admin_status(admin, &ret_result->status);
}

static void clear(union result *result)
{
	npu_admin_status_clear(&result->status);
}

static void device_row(struct table *table, const struct npu_admin_device *device)
{
	uint64_t used = device->memory_total - device->memory_free;
	char a[128], b[FORMAT_MAX], c[FORMAT_MAX], memory[3 * FORMAT_MAX];

	table_cell(table, format_device(device->id, a, sizeof(a)));
	table_cell(table, format_text(device->name, a, sizeof(a)));
	table_cell(table, format_text(device->transport, a, sizeof(a)));
	table_cell(table, health_name(device->health));
	table_cell(table, format_count(device->cores, a, sizeof(a)));
	snprintf(memory, sizeof(memory), "%s / %s", format_bytes(used, b, sizeof(b)),
		 format_bytes(device->memory_total, c, sizeof(c)));
	table_cell(table, memory);
	table_cell(table, format_share(used, device->memory_total, a, sizeof(a)));
	table_cell(table, format_share(device->util_permille, 1000, a, sizeof(a)));
	table_cell(table, format_count(device->sessions, a, sizeof(a)));
	table_cell(table, format_count(device->engines, a, sizeof(a)));
	table_cell(table, format_text(device->firmware, a, sizeof(a)));
}

/* What the host withholds from the engines' sandbox, if anything. */
static void print_sandbox(const struct npu_admin_device *device, FILE *out)
{
	const char *between = "";

	if (!device->sandbox_missing)
		return;
	fprintf(out, "npu%" PRIu32 ": this host does not give the engines: ", device->id);
	for (unsigned int bit = 0; bit < 32; bit++) {
		const char *name = npu_admin_sandbox_name(bit);

		if (!(device->sandbox_missing & 1u << bit))
			continue;
		fprintf(out, "%s%s", between, name ? name : "(unknown)");
		between = ", ";
	}
	fputc('\n', out);
}

static int print(const union result *result, FILE *out)
{
	const struct npu_admin_status *status = &result->status;
	char daemon[128], dir[512], up[FORMAT_MAX];
	struct table *table;
	int r;

	fprintf(out,
		"%s, pid %" PRId32 ", up %s, %" PRIu32 " client%s, %" PRIu64 " fault%s, in %s\n",
		format_text(status->daemon, daemon, sizeof(daemon)), status->pid,
		format_duration(status->uptime_ms, up, sizeof(up)), status->clients,
		status->clients == 1 ? "" : "s", status->faults, status->faults == 1 ? "" : "s",
		format_text(status->runtime_dir, dir, sizeof(dir)));
	if (!status->ndevices) {
		fputs("no devices\n", out);
		return 0;
	}
	table = table_new("DEVICE,NAME,TRANSPORT,HEALTH,>CORES,>MEMORY,>USED,>UTIL,>CLIENTS,"
			  ">ENGINES,FIRMWARE");
	for (size_t i = 0; i < status->ndevices; i++)
		device_row(table, &status->devices[i]);
	r = table_print(table, out);
	table_free(table);
	for (size_t i = 0; i < status->ndevices; i++)
		print_sandbox(&status->devices[i], out);
	return r;
}

static void json_sandbox(struct json_object *object, const char *key, uint32_t bits)
{
	struct json_object *list = out_list(object, key);

	for (unsigned int bit = 0; bit < 32; bit++) {
		const char *name = npu_admin_sandbox_name(bit);

		if (bits & 1u << bit)
			out_list_text(list, name ? name : "(unknown)");
	}
}

static void json(const union result *result, struct json_object *object)
{
	const struct npu_admin_status *status = &result->status;
	struct json_object *devices;

	out_text(object, "daemon", status->daemon);
	out_number(object, "pid", (uint64_t)status->pid);
	out_number(object, "uptime_ms", status->uptime_ms);
	out_number(object, "clients", status->clients);
	out_number(object, "faults", status->faults);
	out_text(object, "runtime_dir", status->runtime_dir);
	out_bool(object, "is_admin", status->is_admin);
	devices = out_list(object, "devices");
	for (size_t i = 0; i < status->ndevices; i++) {
		const struct npu_admin_device *device = &status->devices[i];
		struct json_object *item = out_item(devices);

		out_number(item, "device", device->id);
		out_text(item, "name", device->name);
		out_text(item, "firmware", device->firmware);
		out_text(item, "transport", device->transport);
		out_text(item, "kind", kind_name(device->kind));
		out_text(item, "health", health_name(device->health));
		out_number(item, "caps", device->caps);
		out_number(item, "cores", device->cores);
		out_number(item, "memory_total", device->memory_total);
		out_number(item, "memory_free", device->memory_free);
		out_number(item, "memory_bad", device->memory_bad);
		out_number(item, "largest_run", device->largest_run);
		out_number(item, "util_permille", device->util_permille);
		out_number(item, "clients", device->sessions);
		out_number(item, "engines", device->engines);
		out_number(item, "max_queues", device->max_queues);
		out_number(item, "busy_ns", device->busy_ns);
		json_sandbox(item, "sandbox_active", device->sandbox_active);
		json_sandbox(item, "sandbox_missing", device->sandbox_missing);
	}
}

const struct command command_status = {
	.name = "status",
	.help = "the daemon and its devices",
	.details =
		"MEMORY is used / all of the device, USED the same in percent. UTIL is the share\n"
		"of time that the cores spent in kernels lately. ENGINES are the address spaces\n"
		"in use.\n",
	.query = query,
	.clear = clear,
	.print = print,
	.json = json,
};
