/* SPDX-License-Identifier: Apache-2.0 */
/* npuctl mem: for each device its memory, then who uses it. */
#include "client/npuctl/command.h"
#include "client/npuctl/format.h"
#include "client/npuctl/out_json.h"
#include "client/npuctl/out_table.h"

static int query(struct npu_admin *admin, union result *ret_result)
{
	return npu_admin_memory(admin, &ret_result->memory);
}

static void clear(union result *result)
{
	npu_admin_memory_clear(&result->memory);
}

static int print_devices(const struct npu_admin_memory *memory, FILE *out)
{
	struct table *table = table_new("DEVICE,>TOTAL,>USED,>USED %,>FREE,>BAD,>LARGEST RUN");
	char a[FORMAT_MAX];
	int r;

	for (size_t i = 0; i < memory->ndevices; i++) {
		const struct npu_admin_device_memory *device = &memory->devices[i];

		table_cell(table, format_device(device->device, a, sizeof(a)));
		table_cell(table, format_bytes(device->total, a, sizeof(a)));
		table_cell(table, format_bytes(device->used, a, sizeof(a)));
		table_cell(table, format_share(device->used, device->total, a, sizeof(a)));
		table_cell(table, format_bytes(device->free, a, sizeof(a)));
		table_cell(table, format_bytes(device->bad, a, sizeof(a)));
		table_cell(table, format_bytes(device->largest_run, a, sizeof(a)));
	}
	r = table_print(table, out);
	table_free(table);
	return r;
}

static int print_clients(const struct npu_admin_memory *memory, FILE *out)
{
	struct table *table =
		table_new("DEVICE,>PID,USER,COMMAND,>USED,>SHARE,>PEAK,>HOST,>OBJECTS");
	char a[128];
	int r;

	for (size_t i = 0; i < memory->ndevices; i++) {
		const struct npu_admin_device_memory *device = &memory->devices[i];

		for (size_t j = 0; j < device->nclients; j++) {
			const struct npu_admin_memory_use *use = &device->clients[j];

			table_cell(table, format_device(device->device, a, sizeof(a)));
			table_cell(table, format_count((uint64_t)use->pid, a, sizeof(a)));
			table_cell(table, format_user(use->uid, a, sizeof(a)));
			table_cell(table, format_text(use->comm, a, sizeof(a)));
			table_cell(table, format_bytes(use->used, a, sizeof(a)));
			table_cell(table, format_share(use->used, device->total, a, sizeof(a)));
			table_cell(table, format_bytes(use->peak, a, sizeof(a)));
			table_cell(table, format_bytes(use->host, a, sizeof(a)));
			table_cell(table, format_count(use->objects, a, sizeof(a)));
		}
	}
	r = table_print(table, out);
	table_free(table);
	return r;
}

static int print(const union result *result, FILE *out)
{
	const struct npu_admin_memory *memory = &result->memory;
	uint64_t hidden = 0;
	size_t clients = 0;
	int r;

	if (!memory->ndevices) {
		fputs("no devices\n", out);
		return 0;
	}
	for (size_t i = 0; i < memory->ndevices; i++) {
		clients += memory->devices[i].nclients;
		hidden += memory->devices[i].hidden;
	}
	r = print_devices(memory, out);
	if (r == 0 && clients) {
		fputc('\n', out);
		r = print_clients(memory, out);
	}
	note_hidden(hidden, out);
	return r;
}

static void json(const union result *result, struct json_object *object)
{
	const struct npu_admin_memory *memory = &result->memory;
	struct json_object *devices = out_list(object, "devices");
	char user[128];

	for (size_t i = 0; i < memory->ndevices; i++) {
		const struct npu_admin_device_memory *device = &memory->devices[i];
		struct json_object *item = out_item(devices), *clients;

		out_number(item, "device", device->device);
		out_number(item, "total", device->total);
		out_number(item, "used", device->used);
		out_number(item, "free", device->free);
		out_number(item, "bad", device->bad);
		out_number(item, "largest_run", device->largest_run);
		clients = out_list(item, "clients");
		for (size_t j = 0; j < device->nclients; j++) {
			const struct npu_admin_memory_use *use = &device->clients[j];
			struct json_object *client = out_item(clients);

			out_number(client, "session", use->session);
			out_number(client, "pid", (uint64_t)use->pid);
			out_number(client, "uid", use->uid);
			out_text(client, "user", format_user(use->uid, user, sizeof(user)));
			out_text(client, "comm", use->comm);
			out_number(client, "used", use->used);
			out_number(client, "peak", use->peak);
			out_number(client, "host", use->host);
			out_number(client, "objects", use->objects);
		}
		out_number(item, "hidden", device->hidden);
	}
}

const struct command command_mem = {
	.name = "mem",
	.help = "the memory of each device and who uses it",
	.details =
		"LARGEST RUN is the largest allocation that can still be physically contiguous.\n"
		"BAD pages were retired. SHARE is a client's part of the whole device.\n",
	.query = query,
	.clear = clear,
	.print = print,
	.json = json,
};
