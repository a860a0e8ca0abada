/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file of aclInit(): JSON, an object at the top. Known keys are checked; what configures parts
 * that this library does not have is accepted and has no effect, as unknown keys have.
 *
 *   "err_msg_mode"   "0": one list of error texts a thread (default), "1": one for the process
 *   "defaultDevice"  { "default_device": "N" }, set by calls that need a context and find none
 */
#include "client/acl/acl_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MAX  (1u << 20)
#define DEPTH_MAX 10

static int bad_file(int code, const char *path, const char *why)
{
	return acl_bad(code, "aclInit", "configPath %s: %s", path, why);
}

/* The whole of a regular file, which is not opened for longer than that. */
static int file_read(const char *path, char **ret_text, size_t *ret_size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	int code = 0;
	struct stat st;
	char *text = NULL;
	size_t size = 0;

	if (fd < 0)
		return bad_file(ACL_ERROR_INVALID_FILE, path, strerror(errno));
	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		code = bad_file(ACL_ERROR_INVALID_FILE, path, "not a regular file");
	} else if (st.st_size > FILE_MAX) {
		code = bad_file(ACL_ERROR_INVALID_FILE, path, "larger than 1 MiB");
	} else {
		text = malloc((size_t)st.st_size + 1);
		if (!text)
			code = bad_file(ACL_ERROR_BAD_ALLOC, path, "no host memory to read it");
	}
	while (code == 0 && size < (size_t)st.st_size) {
		ssize_t n = read(fd, text + size, (size_t)st.st_size - size);

		if (n < 0 && errno != EINTR)
			code = bad_file(ACL_ERROR_INVALID_FILE, path, strerror(errno));
		if (n == 0)
			break;
		if (n > 0)
			size += (size_t)n;
	}
	close(fd);
	if (code) {
		free(text);
		return code;
	}
	text[size] = 0;
	*ret_text = text;
	*ret_size = size;
	return 0;
}

static int parse(const char *path, const char *text, size_t size, struct json_object **ret_root)
{
	struct json_tokener *tokener;
	struct json_object *root;
	enum json_tokener_error error;
	size_t end;
	int code = 0;

	if (strspn(text, " \t\r\n") == size)
		return bad_file(ACL_ERROR_PARSE_FILE, path,
				"the file is empty, it should be a JSON object such as {}");
	tokener = json_tokener_new_ex(DEPTH_MAX + 1);
	if (!tokener)
		return bad_file(ACL_ERROR_BAD_ALLOC, path, "no host memory to parse it");
	json_tokener_set_flags(tokener, JSON_TOKENER_STRICT);
	root = json_tokener_parse_ex(tokener, text, (int)size + 1); /* the NUL ends a value */
	error = json_tokener_get_error(tokener);
	end = json_tokener_get_parse_end(tokener);
	if (error == json_tokener_continue || error == json_tokener_error_parse_eof)
		code = acl_bad(
			ACL_ERROR_PARSE_FILE, "aclInit",
			"configPath %s: not JSON, it ends after %zu bytes in the middle of a value",
			path, size);
	else if (error == json_tokener_error_depth)
		code = acl_bad(
			ACL_ERROR_PARSE_FILE, "aclInit",
			"configPath %s: at byte %zu more than %d objects and arrays in each other",
			path, end, DEPTH_MAX);
	else if (error != json_tokener_success)
		code = acl_bad(ACL_ERROR_PARSE_FILE, "aclInit",
			       "configPath %s: not JSON at byte %zu: %s", path, end,
			       json_tokener_error_desc(error));
	else if (end + strspn(text + end, " \t\r\n") != size)
		code = acl_bad(ACL_ERROR_PARSE_FILE, "aclInit",
			       "configPath %s: something follows the JSON value at byte %zu", path,
			       end);
	else if (!json_object_is_type(root, json_type_object))
		code = bad_file(ACL_ERROR_PARSE_FILE, path, "the JSON value is no object ({...})");
	json_tokener_free(tokener);
	if (code) {
		json_object_put(root);
		return code;
	}
	*ret_root = root;
	return 0;
}

static int bad_key(const char *path, const char *key, struct json_object *value,
		   const char *allowed)
{
	return acl_bad(ACL_ERROR_INVALID_PARAM, "aclInit",
		       "configPath %s: \"%s\" is %.64s, allowed: %s", path, key,
		       json_object_to_json_string_ext(value, JSON_C_TO_STRING_PLAIN), allowed);
}

/* A whole number from 0 to max, as a number or as a string of digits. */
static bool number(struct json_object *value, int32_t max, int32_t *ret_number)
{
	const char *text;
	char *end;
	long long n;

	if (json_object_is_type(value, json_type_int)) {
		n = json_object_get_int64(value);
	} else if (json_object_is_type(value, json_type_string)) {
		text = json_object_get_string(value);
		if (*text < '0' || *text > '9' ||
		    strlen(text) != (size_t)json_object_get_string_len(value))
			return false;
		errno = 0;
		n = strtoll(text, &end, 10);
		if (errno || *end)
			return false;
	} else {
		return false;
	}
	if (n < 0 || n > max)
		return false;
	*ret_number = (int32_t)n;
	return true;
}

static int settings(const char *path, struct json_object *root, struct acl_config *config)
{
	static const char *const objects[] = { "dump", "profiler", "defaultDevice", "StackSize" };
	static const char *const numbers[] = {
		"max_opqueue_num",
		"simt_printf_fifo_size",
		"simd_printf_fifo_size_per_core",
	};
	struct json_object *value, *inner;
	int32_t n;

	for (size_t i = 0; i < sizeof(objects) / sizeof(*objects); i++)
		if (json_object_object_get_ex(root, objects[i], &value) &&
		    !json_object_is_type(value, json_type_object))
			return bad_key(path, objects[i], value, "an object ({...})");
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		if (json_object_object_get_ex(root, numbers[i], &value) &&
		    !number(value, INT32_MAX, &n))
			return bad_key(path, numbers[i], value, "a whole number");
	if (json_object_object_get_ex(root, "err_msg_mode", &value)) {
		if (!number(value, 1, &n))
			return bad_key(path, "err_msg_mode", value,
				       "\"0\" (thread), \"1\" (process)");
		config->share_errors = n == 1;
	}
	if (json_object_object_get_ex(root, "defaultDevice", &value) &&
	    json_object_object_get_ex(value, "default_device", &inner)) {
		if (!number(inner, INT32_MAX, &n))
			return bad_key(path, "default_device", inner,
				       "the number of a device, 0 or more");
		config->default_device = n;
	}
	return 0;
}

int acl_config_read(const char *path, struct acl_config *ret_config)
{
	struct acl_config config = { .default_device = -1 };
	struct json_object *root = NULL;
	char *text = NULL;
	size_t size = 0;
	int code = 0;

	if (path && *path) {
		code = file_read(path, &text, &size);
		if (code == 0)
			code = parse(path, text, size, &root);
		if (code == 0)
			code = settings(path, root, &config);
	}
	if (code == 0) {
		config.content = strdup(
			root ? json_object_to_json_string_ext(root, JSON_C_TO_STRING_PLAIN) : "{}");
		if (!config.content)
			code = bad_file(ACL_ERROR_BAD_ALLOC, path ? path : "NULL",
					"no host memory");
	}
	json_object_put(root);
	free(text);
	if (code == 0)
		*ret_config = config;
	return code;
}
