/* SPDX-License-Identifier: Apache-2.0 */
#include "client/npuctl/out_json.h"
#include "client/npuctl/format.h"

#include <errno.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

static bool failed; /* npuctl has one thread and one document */

struct json_object *out_new(void)
{
	struct json_object *object = json_object_new_object();

	failed = !object;
	return object;
}

void out_free(struct json_object *object)
{
	json_object_put(object);
}

/* Takes over value. */
static void add(struct json_object *object, const char *key, struct json_object *value)
{
	if (object && value && json_object_object_add(object, key, value) == 0)
		return;
	json_object_put(value);
	failed = true;
}

static void append(struct json_object *list, struct json_object *value)
{
	if (list && value && json_object_array_add(list, value) == 0)
		return;
	json_object_put(value);
	failed = true;
}

static struct json_object *clean_string(const char *text)
{
	size_t len = strlen(text) + 1;
	char *clean = malloc(len);
	struct json_object *string;

	if (!clean)
		return NULL;
	string = json_object_new_string(format_text(text, clean, len));
	free(clean);
	return string;
}

struct json_object *out_list(struct json_object *object, const char *key)
{
	struct json_object *list = json_object_new_array();

	add(object, key, list);
	return failed ? NULL : list;
}

struct json_object *out_item(struct json_object *list)
{
	struct json_object *item = json_object_new_object();

	append(list, item);
	return failed ? NULL : item;
}

void out_list_text(struct json_object *list, const char *text)
{
	append(list, clean_string(text));
}

void out_text(struct json_object *object, const char *key, const char *text)
{
	add(object, key, clean_string(text));
}

void out_number(struct json_object *object, const char *key, uint64_t number)
{
	add(object, key, json_object_new_uint64(number));
}

void out_bool(struct json_object *object, const char *key, bool value)
{
	add(object, key, json_object_new_boolean(value));
}

void out_null(struct json_object *object, const char *key)
{
	if (!object || json_object_object_add(object, key, NULL) != 0)
		failed = true;
}

int out_print(struct json_object *object, FILE *out)
{
	const char *text;

	if (failed)
		return -ENOMEM;
	text = json_object_to_json_string_ext(object, JSON_C_TO_STRING_PRETTY |
							      JSON_C_TO_STRING_SPACED |
							      JSON_C_TO_STRING_NOSLASHESCAPE);
	if (!text)
		return -ENOMEM;
	fprintf(out, "%s\n", text);
	return 0;
}
