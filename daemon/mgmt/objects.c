/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The objects on the bus. A property of a device is a row: where it lies in what the core tells,
 * and its type there. Strings come from devices and clients: what is not printable goes out as '?'.
 */
#include "daemon/core/session.h"
#include "daemon/mgmt/mgmt_int.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum row_type { ROW_U32, ROW_U64, ROW_BOOL, ROW_TEXT, ROW_HEALTH };

struct row {
	const char *name;
	enum row_type type;
	size_t offset, size;
};

#define ROW(name, type, field)                                        \
	{                                                             \
		name, type, offsetof(struct core_device_info, field), \
			sizeof(((struct core_device_info *)0)->field) \
	}

static const struct row rows[] = {
	ROW("Number", ROW_U32, id),
	ROW("Name", ROW_TEXT, name),
	ROW("Firmware", ROW_TEXT, firmware),
	ROW("Driver", ROW_TEXT, driver),
	ROW("Transport", ROW_TEXT, transport),
	ROW("Health", ROW_HEALTH, health),
	ROW("Cores", ROW_U32, cores),
	ROW("MemoryTotal", ROW_U64, memory_total),
	ROW("MemoryFree", ROW_U64, memory_free),
	ROW("MemoryBad", ROW_U64, memory_bad),
	ROW("Clients", ROW_U32, clients),
	ROW("Utilisation", ROW_U32, util_permille),
	ROW("Drained", ROW_BOOL, drained),
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

static const char *printable(const char *text, char *buf, size_t len)
{
	size_t n;

	for (n = 0; n + 1 < len && text[n]; n++)
		buf[n] = text[n] >= ' ' && text[n] < 0x7f ? text[n] : '?';
	buf[n] = '\0';
	return buf;
}

static const char *device_path(unsigned int id, char *buf)
{
	snprintf(buf, MGMT_PATH_MAX, MGMT_PATH "/device/%u", id);
	return buf;
}

static int row_append(const struct row *row, const struct core_device_info *info,
		      sd_bus_message *reply)
{
	const void *field = (const char *)info + row->offset;
	char text[256];

	switch (row->type) {
	case ROW_U32:
		return sd_bus_message_append(reply, "u", *(const uint32_t *)field);
	case ROW_U64:
		return sd_bus_message_append(reply, "t", *(const uint64_t *)field);
	case ROW_BOOL:
		return sd_bus_message_append(reply, "b", (int)*(const bool *)field);
	case ROW_TEXT:
		return sd_bus_message_append(reply, "s", printable(field, text, sizeof(text)));
	case ROW_HEALTH:
		return sd_bus_message_append(reply, "s",
					     core_health_name(*(const uint32_t *)field));
	}
	return -EINVAL;
}

static int get_device(sd_bus *sd, const char *path, const char *interface, const char *property,
		      sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
	const struct mgmt_device *device = userdata;
	struct core_device_info info;

	(void)sd;
	(void)path;
	(void)interface;
	(void)error;
	mgmt_read(device->mgmt);
	core_device_info(device->mgmt->core, device->id, &info);
	for (size_t i = 0; i < ROWS; i++) {
		if (strcmp(rows[i].name, property) == 0)
			return row_append(&rows[i], &info, reply);
	}
	return -ENOENT;
}

static int get_version(sd_bus *sd, const char *path, const char *interface, const char *property,
		       sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
	const struct mgmt *mgmt = userdata;

	(void)sd;
	(void)path;
	(void)interface;
	(void)property;
	(void)error;
	return sd_bus_message_append(reply, "s", mgmt->version);
}

static int get_devices(sd_bus *sd, const char *path, const char *interface, const char *property,
		       sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
	const struct mgmt *mgmt = userdata;
	char object[MGMT_PATH_MAX];
	int r = sd_bus_message_open_container(reply, 'a', "o");

	(void)sd;
	(void)path;
	(void)interface;
	(void)property;
	(void)error;
	for (unsigned int i = 0; i < mgmt->device_count && r >= 0; i++)
		r = sd_bus_message_append(reply, "o", device_path(i, object));
	return r < 0 ? r : sd_bus_message_close_container(reply);
}

#define CONST  SD_BUS_VTABLE_PROPERTY_CONST
#define CHANGE SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE

static const sd_bus_vtable manager_vtable[] = {
	SD_BUS_VTABLE_START(0),
	SD_BUS_PROPERTY("Version", "s", get_version, 0, CONST),
	SD_BUS_PROPERTY("Devices", "ao", get_devices, 0, CONST),
	SD_BUS_METHOD_WITH_NAMES("Reset", "u", SD_BUS_PARAM(device), "", , admin_reset,
				 SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD_WITH_NAMES("Drain", "ub", SD_BUS_PARAM(device) SD_BUS_PARAM(on), "", ,
				 admin_drain, SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_VTABLE_END,
};

#define FAULT_SIGNATURE "tuusstbstt"

static const sd_bus_vtable device_vtable[] = {
	SD_BUS_VTABLE_START(0),
	SD_BUS_PROPERTY("Number", "u", get_device, 0, CONST),
	SD_BUS_PROPERTY("Name", "s", get_device, 0, CHANGE),
	SD_BUS_PROPERTY("Firmware", "s", get_device, 0, CHANGE),
	SD_BUS_PROPERTY("Driver", "s", get_device, 0, CHANGE),
	SD_BUS_PROPERTY("Transport", "s", get_device, 0, CHANGE),
	SD_BUS_PROPERTY("Health", "s", get_device, 0, CHANGE),
	SD_BUS_PROPERTY("Cores", "u", get_device, 0, CHANGE),
	SD_BUS_PROPERTY("MemoryTotal", "t", get_device, 0, CHANGE),
	SD_BUS_PROPERTY("MemoryFree", "t", get_device, 0, CHANGE),
	SD_BUS_PROPERTY("MemoryBad", "t", get_device, 0, CHANGE),
	SD_BUS_PROPERTY("Clients", "u", get_device, 0, CHANGE),
	SD_BUS_PROPERTY("Utilisation", "u", get_device, 0, CHANGE),
	SD_BUS_PROPERTY("Drained", "b", get_device, 0, CHANGE),
	SD_BUS_SIGNAL_WITH_NAMES(
		"Fault", FAULT_SIGNATURE,
		SD_BUS_PARAM(session) SD_BUS_PARAM(pid) SD_BUS_PARAM(uid) SD_BUS_PARAM(comm)
			SD_BUS_PARAM(kernel) SD_BUS_PARAM(address) SD_BUS_PARAM(address_known)
				SD_BUS_PARAM(kind) SD_BUS_PARAM(task) SD_BUS_PARAM(sequence),
		0),
	SD_BUS_SIGNAL("Reset", "", 0),
	SD_BUS_VTABLE_END,
};

int objects_add(struct mgmt *mgmt, sd_bus *sd)
{
	int r = sd_bus_add_object_manager(sd, NULL, MGMT_PATH);

	if (r >= 0)
		r = sd_bus_add_object_vtable(sd, NULL, MGMT_PATH, MGMT_MANAGER, manager_vtable,
					     mgmt);
	for (unsigned int i = 0; i < mgmt->device_count && r >= 0; i++) {
		char path[MGMT_PATH_MAX];

		r = sd_bus_add_object_vtable(sd, NULL, device_path(i, path), MGMT_DEVICE,
					     device_vtable, &mgmt->devices[i]);
	}
	return r;
}

void objects_settle(struct mgmt *mgmt)
{
	for (unsigned int i = 0; i < mgmt->device_count; i++)
		core_device_info(mgmt->core, i, &mgmt->devices[i].shown);
}

void objects_show(struct mgmt *mgmt)
{
	sd_bus *sd = bus_up(mgmt->bus);

	for (unsigned int i = 0; i < mgmt->device_count && sd; i++) {
		struct mgmt_device *device = &mgmt->devices[i];
		char *names[ROWS + 1], path[MGMT_PATH_MAX];
		struct core_device_info info;
		size_t count = 0;

		core_device_info(mgmt->core, i, &info);
		for (size_t k = 0; k < ROWS; k++) {
			if (memcmp((char *)&info + rows[k].offset,
				   (char *)&device->shown + rows[k].offset, rows[k].size) != 0)
				names[count++] = (char *)rows[k].name;
		}
		if (!count)
			continue;
		names[count] = NULL;
		device->shown = info;
		sd_bus_emit_properties_changed_strv(sd, device_path(i, path), MGMT_DEVICE, names);
	}
	bus_kick(mgmt->bus);
}

void objects_fault(struct mgmt *mgmt, const struct core_fault_report *report)
{
	const struct session_peer *peer = report->peer;
	const struct core_fault *fault = report->fault;
	char path[MGMT_PATH_MAX], comm[sizeof(peer->comm)], kernel[sizeof(fault->kernel)];
	sd_bus *sd = bus_up(mgmt->bus);

	if (!sd)
		return;
	sd_bus_emit_signal(sd, device_path(report->device, path), MGMT_DEVICE, "Fault",
			   FAULT_SIGNATURE, report->session, (uint32_t)peer->pid,
			   (uint32_t)peer->uid, printable(peer->comm, comm, sizeof(comm)),
			   printable(fault->kernel, kernel, sizeof(kernel)),
			   report->address_known ? fault->address : 0, (int)report->address_known,
			   report->kind, fault->task, fault->seq);
	bus_kick(mgmt->bus);
}

void objects_reset(struct mgmt *mgmt, unsigned int device)
{
	char path[MGMT_PATH_MAX];
	sd_bus *sd = bus_up(mgmt->bus);

	if (!sd)
		return;
	sd_bus_emit_signal(sd, device_path(device, path), MGMT_DEVICE, "Reset", "");
	bus_kick(mgmt->bus);
}
