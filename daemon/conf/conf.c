/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file is read whole and fed to inih line by line by our own reader, which counts lines and
 * refuses what inih would pass over: lines that are too long, bytes that are no text, lines that
 * say nothing. Leading blanks are dropped there, so inih's continuation lines can't occur.
 */
#include "daemon/conf/conf.h"
#include "daemon/util/cleanup.h"
#include "daemon/util/fd.h"
#include "daemon/util/parse.h"

#include <ctype.h>
#include <errno.h>
#include <ini.h>
#include <stdarg.h>
#include <string.h>

#define LINE_MAX_BYTES 190 /* inih: 200 with the terminators */

enum option_type {
	OPTION_NUMBER,
	OPTION_SIZE,
	OPTION_MODE,
	OPTION_BOOL,
	OPTION_NAME,
	OPTION_LEVEL,
	OPTION_TRANSPORT,
	OPTION_BUS,
};

struct option {
	const char *section, *key;
	enum option_type type;
	size_t offset;
	const char *initial;
	uint64_t min, max; /* numbers, sizes, modes */
	const char *help;
};

#define O(section, type, field, initial, min, max, help)                                     \
	{                                                                                    \
		section, #field, type, offsetof(struct conf, field), initial, min, max, help \
	}
#define TIB (1ull << 40)

static const struct option options[] = {
	O("daemon", OPTION_MODE, socket_mode, "0660", 0, 0777, "access mode of the client socket"),
	O("daemon", OPTION_NAME, socket_group, "npu", 0, 0,
	  "group of the client socket; left alone when there is no such group"),
	O("daemon", OPTION_NAME, admin_group, "npu-admin", 0, 0,
	  "members may use admin methods, as root and npud's own user may"),
	O("daemon", OPTION_LEVEL, log_level, "info", 0, 0,
	  "least important lines logged: error, warning, notice, info, debug"),
	O("daemon", OPTION_NUMBER, rpc_timeout_ms, "5000", 50, 600000,
	  "a call that the device has not answered by then fails (milliseconds)"),

	O("device", OPTION_TRANSPORT, transport, "auto", 0, 0,
	  "auto (device nodes, else the software NPU), sim, or a list of /dev/npuN"),
	O("device", OPTION_NUMBER, sim_devices, "1", 1, 16, "software NPUs to start"),
	O("device", OPTION_SIZE, sim_memory, "2G", 16ull << 20, TIB / 4,
	  "device memory of each software NPU"),
	O("device", OPTION_NUMBER, sim_cores, "0", 0, 64,
	  "cores of each software NPU; 0: as many as there are online cpus"),
	O("device", OPTION_BOOL, sim_host_visible, "yes", 0, 0,
	  "whether clients may map the memory of a software NPU"),
	O("device", OPTION_BOOL, sim_stop_with_daemon, "no", 0, 0,
	  "whether software NPUs that npud started end with it"),

	O("limits", OPTION_NUMBER, sessions, "256", 1, 65536, "client connections"),
	O("limits", OPTION_NUMBER, sessions_per_user, "64", 1, 65536,
	  "client connections of one user"),
	O("limits", OPTION_SIZE, memory, "0", 0, 1024 * TIB,
	  "device memory of one session; 0: all that the device has"),
	O("limits", OPTION_SIZE, memory_per_user, "0", 0, 1024 * TIB,
	  "device memory of one user; 0: all that the device has"),
	O("limits", OPTION_SIZE, host_memory, "0", 0, 1024 * TIB,
	  "pinned host memory of one session; 0: half of the machine's memory"),
	O("limits", OPTION_SIZE, host_memory_per_user, "0", 0, 1024 * TIB,
	  "pinned host memory of one user; 0: half of the machine's memory"),
	O("limits", OPTION_SIZE, slab_charge, "0", 0, TIB,
	  "host memory that an open device is charged for its rings; 0: an eighth of their size"),
	O("limits", OPTION_NUMBER, files_per_user, "0", 0, 1u << 20,
	  "files that a device may hold for one user; 0: a quarter of npud's limit"),
	O("limits", OPTION_NUMBER, allocations, "16384", 16, 1u << 20,
	  "memory objects of one session"),
	O("limits", OPTION_NUMBER, contexts, "256", 1, 65536, "contexts of one session"),
	O("limits", OPTION_NUMBER, streams, "1024", 1, 65536, "streams of one session"),
	O("limits", OPTION_NUMBER, modules, "1024", 1, 65536, "loaded modules of one session"),
	O("limits", OPTION_NUMBER, events, "65536", 64, 1u << 20, "events of one session"),
	O("limits", OPTION_NUMBER, requests, "64", 4, 1024,
	  "requests of one session that are being worked on; more wait in the socket"),

	O("management", OPTION_BUS, bus, "system", 0, 0,
	  "the message bus that npud is managed through"),
};

#define OPTIONS (sizeof(options) / sizeof(options[0]))

struct reader {
	struct conf *conf;
	const char *path;
	const char *pos;
	char *error;
	unsigned int line;
	unsigned int seen[OPTIONS]; /* line of the option's value */
	int failed;
};

static void fail(struct reader *reader, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Keeps the first error only: one line to the user. */
static void fail(struct reader *reader, int error, const char *format, ...)
{
	va_list args;
	int n;

	if (reader->failed)
		return;
	reader->failed = error;
	n = snprintf(reader->error, CONF_ERROR_MAX, "%s:%u: ", reader->path, reader->line);
	if (n < 0 || n >= CONF_ERROR_MAX)
		return;
	va_start(args, format);
	vsnprintf(reader->error + n, CONF_ERROR_MAX - (size_t)n, format, args);
	va_end(args);
}

static char *read_line(char *buf, int size, void *arg)
{
	struct reader *reader = arg;
	const char *start, *end;
	size_t len;

	if (reader->failed || !*reader->pos)
		return NULL;
	reader->line++;
	start = reader->pos;
	end = strchr(start, '\n');
	if (!end) {
		fail(reader, -EINVAL,
		     "the last line has no end: is the file truncated? End it with a newline");
		return NULL;
	}
	reader->pos = end + 1;
	while (start < end && (*start == ' ' || *start == '\t'))
		start++;
	len = (size_t)(end - start);
	if (len > LINE_MAX_BYTES || len + 2 > (size_t)size) {
		fail(reader, -EINVAL, "line of %zu bytes, at most %d are allowed", len,
		     LINE_MAX_BYTES);
		return NULL;
	}
	/* inih would go on after such a line, and report something that follows from it */
	if (len && *start != ';' && *start != '#' && *start != '\r' &&
	    !memchr(start, *start == '[' ? ']' : '=', len)) {
		fail(reader, -EINVAL, "neither [section] nor \"key = value\" nor a comment");
		return NULL;
	}
	memcpy(buf, start, len);
	buf[len] = '\n';
	buf[len + 1] = '\0';
	return buf;
}

static const char *option_allowed(const struct option *option, char *buf, size_t len)
{
	char low[32], high[32];

	switch (option->type) {
	case OPTION_NUMBER:
		snprintf(buf, len, "a number from %llu to %llu", (unsigned long long)option->min,
			 (unsigned long long)option->max);
		break;
	case OPTION_SIZE:
		snprintf(buf, len, "a size from %s to %s (units K, M, G, T)",
			 format_size(option->min, low, sizeof(low)),
			 format_size(option->max, high, sizeof(high)));
		break;
	case OPTION_MODE:
		snprintf(buf, len, "an octal mode from 0000 to %04llo",
			 (unsigned long long)option->max);
		break;
	case OPTION_BOOL:
		snprintf(buf, len, "yes or no");
		break;
	case OPTION_NAME:
		snprintf(buf, len, "a group name of at most %d bytes, without blanks",
			 CONF_NAME_MAX - 1);
		break;
	case OPTION_LEVEL:
		snprintf(buf, len, "error, warning, notice, info or debug");
		break;
	case OPTION_TRANSPORT:
		snprintf(buf, len, "auto, sim or a comma-separated list of /dev/npuN");
		break;
	case OPTION_BUS:
		snprintf(buf, len, "system, session, off or an address unix:path=PATH");
		break;
	}
	return buf;
}

int conf_check_transport(const char *word)
{
	if (strcmp(word, "auto") == 0 || strcmp(word, "sim") == 0)
		return 0;
	if (strlen(word) >= CONF_LIST_MAX)
		return -EINVAL;
	for (const char *p = word;; p++) {
		if (strncmp(p, "/dev/npu", 8) != 0)
			return -EINVAL;
		p += 8;
		if (!isdigit((unsigned char)*p))
			return -EINVAL;
		while (isdigit((unsigned char)*p))
			p++;
		if (!*p)
			return 0;
		if (*p != ',')
			return -EINVAL;
	}
}

/* No address that could make npud wait (tcp) or run something (unixexec). */
static int check_bus(const char *word)
{
	if (strcmp(word, "system") == 0 || strcmp(word, "session") == 0 || strcmp(word, "off") == 0)
		return 0;
	return strncmp(word, "unix:", 5) == 0 && word[5] && !strpbrk(word, " \t;") &&
			       strlen(word) < CONF_LIST_MAX ?
		       0 :
		       -EINVAL;
}

static int option_set(const struct option *option, struct conf *conf, const char *word)
{
	void *field = (char *)conf + option->offset;
	unsigned int mode;
	uint64_t value;
	int r = 0;

	switch (option->type) {
	case OPTION_NUMBER:
	case OPTION_SIZE:
	case OPTION_MODE:
		if (option->type == OPTION_NUMBER) {
			r = parse_u64(word, &value);
		} else if (option->type == OPTION_SIZE) {
			r = parse_size(word, &value);
		} else {
			r = parse_mode(word, &mode);
			value = r < 0 ? 0 : mode;
		}
		if (r < 0)
			return r;
		if (value < option->min || value > option->max)
			return -ERANGE;
		*(uint64_t *)field = value;
		return 0;
	case OPTION_BOOL:
		return parse_bool(word, field);
	case OPTION_LEVEL:
		return log_level_parse(word, field);
	case OPTION_NAME:
		if (!*word || strlen(word) >= CONF_NAME_MAX || strpbrk(word, " \t:/"))
			return -EINVAL;
		str_copy(field, CONF_NAME_MAX, word);
		return 0;
	case OPTION_TRANSPORT:
		r = conf_check_transport(word);
		if (r == 0)
			str_copy(field, CONF_LIST_MAX, word);
		return r;
	case OPTION_BUS:
		r = check_bus(word);
		if (r == 0)
			str_copy(field, CONF_LIST_MAX, word);
		return r;
	}
	return -EINVAL;
}

static int take_value(void *arg, const char *section, const char *key, const char *value)
{
	struct reader *reader = arg;
	char allowed[160];
	bool section_known = false;

	if (reader->failed)
		return 0;
	for (size_t i = 0; i < OPTIONS; i++) {
		const struct option *option = &options[i];

		if (strcmp(section, option->section) != 0)
			continue;
		section_known = true;
		if (strcmp(key, option->key) != 0)
			continue;
		if (reader->seen[i]) {
			fail(reader, -EINVAL, "%s.%s: given twice, first in line %u", section, key,
			     reader->seen[i]);
			return 0;
		}
		reader->seen[i] = reader->line;
		if (option_set(option, reader->conf, value) < 0) {
			fail(reader, -EINVAL, "%s.%s: \"%s\" is not allowed, must be %s", section,
			     key, value, option_allowed(option, allowed, sizeof(allowed)));
			return 0;
		}
		return 1;
	}
	if (section_known)
		fail(reader, -EINVAL,
		     "%s.%s: no such option, see npud --print-config for those of [%s]", section,
		     key, section);
	else
		fail(reader, -EINVAL,
		     "%s.%s: no such section, must be [daemon], [device], [limits] or "
		     "[management]",
		     *section ? section : "(none)", key);
	return 0;
}

void conf_init(struct conf *conf)
{
	memset(conf, 0, sizeof(*conf));
	for (size_t i = 0; i < OPTIONS; i++)
		option_set(&options[i], conf, options[i].initial);
}

/* The byte that makes a file no text, or NULL. */
static const char *find_binary(const char *data, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)data[i];

		if ((c < 0x20 && c != '\n' && c != '\t' && c != '\r') || c == 0x7f)
			return data + i;
	}
	return NULL;
}

int conf_load(struct conf *conf, const char *path, bool must_exist, char *error)
{
	cleanup(cleanup_free) char *data = NULL;
	struct conf fresh = *conf;
	struct reader reader = { .conf = &fresh, .path = path, .error = error };
	const char *binary;
	size_t len;
	int r;

	r = fd_read_file(path, CONF_FILE_MAX, &data, &len);
	if (r == -ENOENT && !must_exist)
		return 0;
	if (r < 0) {
		snprintf(error, CONF_ERROR_MAX, "%s: cannot read the configuration: %s%s", path,
			 r == -EINVAL ? "not a regular file" :
			 r == -EFBIG  ? "longer than 256 KiB" :
					strerror(-r),
			 r == -ENOENT ? "; name an existing file with --config" : "");
		return r;
	}
	if (!len) {
		snprintf(error, CONF_ERROR_MAX,
			 "%s: the file is empty; remove it to run with the defaults", path);
		return -EINVAL;
	}
	binary = find_binary(data, len);
	if (binary) {
		reader.line = 1;
		for (const char *p = data; p < binary; p++)
			reader.line += *p == '\n';
		fail(&reader, -EINVAL, "byte 0x%02x: not a text file, must be INI text",
		     (unsigned char)*binary);
		return -EINVAL;
	}
	reader.pos = data;
	r = ini_parse_stream(read_line, &reader, take_value, &reader);
	if (!reader.failed && r != 0) {
		/* inih goes on after an error and tells the line of the first one */
		reader.line = r > 0 ? (unsigned int)r : reader.line;
		fail(&reader, r > 0 ? -EINVAL : -ENOMEM, "%s",
		     r > 0 ? "neither [section] nor \"key = value\" nor a comment" : "no memory");
	}
	if (reader.failed)
		return reader.failed;
	*conf = fresh;
	return 0;
}

static void option_print(const struct option *option, const struct conf *conf, FILE *out)
{
	const void *field = (const char *)conf + option->offset;
	char size[32];

	fprintf(out, "%s = ", option->key);
	switch (option->type) {
	case OPTION_NUMBER:
		fprintf(out, "%llu", (unsigned long long)*(const uint64_t *)field);
		break;
	case OPTION_SIZE: {
		uint64_t bytes = *(const uint64_t *)field;
		static const char units[] = "\0KMGT";
		unsigned int unit = 0;

		while (bytes && bytes % 1024 == 0 && unit < 4) {
			bytes /= 1024;
			unit++;
		}
		snprintf(size, sizeof(size), "%llu%.1s", (unsigned long long)bytes, &units[unit]);
		fputs(size, out);
		break;
	}
	case OPTION_MODE:
		fprintf(out, "%04llo", (unsigned long long)*(const uint64_t *)field);
		break;
	case OPTION_BOOL:
		fputs(*(const bool *)field ? "yes" : "no", out);
		break;
	case OPTION_LEVEL:
		fputs(log_level_name(*(const enum log_level *)field), out);
		break;
	case OPTION_NAME:
	case OPTION_TRANSPORT:
	case OPTION_BUS:
		fputs((const char *)field, out);
		break;
	}
	fputc('\n', out);
}

void conf_print(const struct conf *conf, FILE *out)
{
	const char *section = "";
	char allowed[160];

	for (size_t i = 0; i < OPTIONS; i++) {
		const struct option *option = &options[i];

		if (strcmp(section, option->section) != 0) {
			fprintf(out, "%s[%s]\n", *section ? "\n" : "", option->section);
			section = option->section;
		}
		fprintf(out, "; %s\n; %s\n", option->help,
			option_allowed(option, allowed, sizeof(allowed)));
		option_print(option, conf, out);
	}
}
