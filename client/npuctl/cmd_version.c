/* SPDX-License-Identifier: Apache-2.0 */
/* npuctl version: every part that has one, from here to the device. */
#include "config.h"

#include "client/npuctl/command.h"
#include "client/npuctl/format.h"
#include "client/npuctl/out_json.h"

#include <inttypes.h>

static int query(struct npu_admin *admin, union result *ret_result)
{
	return npu_admin_version(admin, &ret_result->version);
}

static void clear(union result *result)
{
	npu_admin_version_clear(&result->version);
}

static int print(const union result *result, FILE *out)
{
	const struct npu_admin_version *version = &result->version;
	char text[256];

	fprintf(out, "npuctl    %s\n", PACKAGE_VERSION);
	fprintf(out, "library   %s\n", format_text(version->library, text, sizeof(text)));
	fprintf(out, "daemon    %s\n", format_text(version->daemon, text, sizeof(text)));
	fprintf(out, "protocol  %" PRIu32 ".%" PRIu32 "\n", version->major, version->minor);
	for (size_t i = 0; i < version->ndevices; i++)
		fprintf(out, "device    %s\n",
			format_text(version->devices[i], text, sizeof(text)));
	return 0;
}

static void json(const union result *result, struct json_object *object)
{
	const struct npu_admin_version *version = &result->version;
	struct json_object *devices;

	out_text(object, "npuctl", PACKAGE_VERSION);
	out_text(object, "library", version->library);
	out_text(object, "daemon", version->daemon);
	out_number(object, "protocol_major", version->major);
	out_number(object, "protocol_minor", version->minor);
	devices = out_list(object, "devices");
	for (size_t i = 0; i < version->ndevices; i++)
		out_list_text(devices, version->devices[i]);
}

const struct command command_version = {
	.name = "version",
	.help = "versions of npuctl, npud, the protocol and the devices",
	.details = "npuctl --version prints npuctl's own version without asking npud.\n",
	.query = query,
	.clear = clear,
	.print = print,
	.json = json,
};
