/* SPDX-License-Identifier: Apache-2.0 */
/* npuctl ps: a row for each client and each device that it has open. */
#include "client/npuctl/command.h"
#include "client/npuctl/format.h"
#include "client/npuctl/out_json.h"
#include "client/npuctl/out_table.h"

#include <inttypes.h>

static int query(struct npu_admin *admin, union result *ret_result)
{
	return npu_admin_ps(admin, &ret_result->ps);
}

static void clear(union result *result)
{
	npu_admin_ps_clear(&result->ps);
}

static void client_row(struct table *table, const struct npu_admin_client *client)
{
	char a[128];

	table_cell(table, format_count((uint64_t)client->pid, a, sizeof(a)));
	table_cell(table, format_user(client->uid, a, sizeof(a)));
	table_cell(table, format_text(client->comm, a, sizeof(a)));
	table_cell(table, format_device(client->device, a, sizeof(a)));
	table_cell(table, format_bytes(client->memory, a, sizeof(a)));
	table_cell(table, format_bytes(client->host_memory, a, sizeof(a)));
	table_cell(table, format_count(client->tasks_queued, a, sizeof(a)));
	table_cell(table, format_count(client->tasks_done, a, sizeof(a)));
	table_cell(table, format_duration(client->core_ns / 1000000, a, sizeof(a)));
	table_cell(table, format_count(client->faults, a, sizeof(a)));
	table_cell(table, format_duration(client->connected_ms, a, sizeof(a)));
}

void note_hidden(uint64_t hidden, FILE *out)
{
	if (hidden)
		fprintf(out,
			"%" PRIu64
			" client%s of other users not shown (root and npu-admin see them)\n",
			hidden, hidden == 1 ? "" : "s");
}

static int print(const union result *result, FILE *out)
{
	const struct npu_admin_ps *ps = &result->ps;
	int r = 0;

	if (ps->nclients) {
		struct table *table =
			table_new(">PID,USER,COMMAND,DEVICE,>MEMORY,>HOST,>QUEUED,>DONE,"
				  ">CORE TIME,>FAULTS,>CONNECTED");

		for (size_t i = 0; i < ps->nclients; i++)
			client_row(table, &ps->clients[i]);
		r = table_print(table, out);
		table_free(table);
	} else {
		fputs("no clients\n", out);
	}
	note_hidden(ps->hidden, out);
	return r;
}

static void json(const union result *result, struct json_object *object)
{
	const struct npu_admin_ps *ps = &result->ps;
	struct json_object *clients = out_list(object, "clients");
	char user[128];

	for (size_t i = 0; i < ps->nclients; i++) {
		const struct npu_admin_client *client = &ps->clients[i];
		struct json_object *item = out_item(clients);

		out_number(item, "session", client->session);
		out_number(item, "pid", (uint64_t)client->pid);
		out_number(item, "uid", client->uid);
		out_text(item, "user", format_user(client->uid, user, sizeof(user)));
		out_text(item, "comm", client->comm);
		if (client->device == UINT32_MAX)
			out_null(item, "device");
		else
			out_number(item, "device", client->device);
		out_number(item, "memory", client->memory);
		out_number(item, "memory_peak", client->memory_peak);
		out_number(item, "host_memory", client->host_memory);
		out_number(item, "contexts", client->contexts);
		out_number(item, "queues", client->queues);
		out_number(item, "modules", client->modules);
		out_number(item, "tasks_queued", client->tasks_queued);
		out_number(item, "tasks_done", client->tasks_done);
		out_number(item, "core_ns", client->core_ns);
		out_number(item, "faults", client->faults);
		out_number(item, "connected_ms", client->connected_ms);
		out_number(item, "engine_pid", (uint64_t)client->engine_pid);
	}
	out_number(object, "hidden", ps->hidden);
}

const struct command command_ps = {
	.name = "ps",
	.help = "the clients and what they use",
	.details =
		"MEMORY is device memory, HOST is host memory that the device reaches, QUEUED and\n"
		"DONE count tasks, CORE TIME is what the cores spent in the client's kernels.\n"
		"Clients of other users are shown to root and members of npu-admin only.\n",
	.query = query,
	.clear = clear,
	.print = print,
	.json = json,
};
