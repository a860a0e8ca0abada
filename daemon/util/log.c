/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A line is put together in one buffer on the stack: "topic: [identity] text". stderr lines carry
 * the priority prefix "<N>" only towards the journal's stream transport, which we don't use: the
 * native protocol takes the fields. Hence stderr gets the level as a word.
 */
#include "daemon/util/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define SD_JOURNAL_SUPPRESS_LOCATION
#include <systemd/sd-journal.h>

#define LIMIT_BURST_DEFAULT 10
#define LIMIT_WINDOW_NS	    1000000000ull

static _Atomic int max_level = LOG_LEVEL_INFO;
static _Atomic bool to_journal;

static const char *const level_names[] = {
	[LOG_LEVEL_ERROR] = "error", [LOG_LEVEL_WARNING] = "warning", [LOG_LEVEL_NOTICE] = "notice",
	[LOG_LEVEL_INFO] = "info",   [LOG_LEVEL_DEBUG] = "debug",
};

/* syslog priorities of the levels */
static const int level_priorities[] = {
	[LOG_LEVEL_ERROR] = 3, [LOG_LEVEL_WARNING] = 4, [LOG_LEVEL_NOTICE] = 5,
	[LOG_LEVEL_INFO] = 6,  [LOG_LEVEL_DEBUG] = 7,
};

static bool stderr_is_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long dev, ino;
	struct stat st;

	if (!stream || sscanf(stream, "%llu:%llu", &dev, &ino) != 2)
		return false;
	return fstat(STDERR_FILENO, &st) == 0 && st.st_dev == dev && st.st_ino == ino;
}

void log_open(enum log_level level)
{
	atomic_store(&to_journal, stderr_is_journal());
	log_set_level(level);
}

void log_set_level(enum log_level level)
{
	atomic_store(&max_level, (int)level);
}

enum log_level log_get_level(void)
{
	return (enum log_level)atomic_load(&max_level);
}

bool log_is_journal(void)
{
	return atomic_load(&to_journal);
}

const char *log_level_name(enum log_level level)
{
	return (unsigned int)level <= LOG_LEVEL_DEBUG ? level_names[level] : NULL;
}

int log_level_parse(const char *word, enum log_level *ret_level)
{
	for (unsigned int i = 0; i <= LOG_LEVEL_DEBUG; i++) {
		if (strcmp(word, level_names[i]) == 0) {
			*ret_level = (enum log_level)i;
			return 0;
		}
	}
	return -EINVAL;
}

static void append(char *line, size_t *len, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void append(char *line, size_t *len, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(line + *len, LOG_LINE_MAX - *len, format, args);
	va_end(args);
	if (n > 0)
		*len = *len + (size_t)n < LOG_LINE_MAX ? *len + (size_t)n : LOG_LINE_MAX - 1;
}

static void append_ident(char *line, size_t *len, const struct log_ident *ident)
{
	append(line, len, "[");
	if (ident->session)
		append(line, len, "session %llu ", (unsigned long long)ident->session);
	if (ident->pid)
		append(line, len, "pid %ld uid %lu ", (long)ident->pid, (unsigned long)ident->uid);
	if (ident->comm && ident->comm[0])
		append(line, len, "%s ", ident->comm);
	if (ident->device)
		append(line, len, "device %u ", ident->device - 1);
	if (ident->context)
		append(line, len, "context %llu ", (unsigned long long)ident->context);
	if (ident->stream)
		append(line, len, "stream %llu ", (unsigned long long)ident->stream);
	if (ident->task)
		append(line, len, "task %llu ", (unsigned long long)ident->task);
	if (line[*len - 1] == ' ')
		(*len)--;
	append(line, len, "] ");
}

static void send_journal(enum log_level level, const char *topic, const struct log_ident *ident,
			 const char *line)
{
	static const struct log_ident nobody;

	if (!ident)
		ident = &nobody;
	sd_journal_send("PRIORITY=%i", level_priorities[level], "MESSAGE=%s", line, "NPU_TOPIC=%s",
			topic, "NPU_SESSION=%llu", (unsigned long long)ident->session,
			"NPU_PID=%ld", (long)ident->pid, "NPU_DEVICE=%i", (int)ident->device - 1,
			"NPU_STREAM=%llu", (unsigned long long)ident->stream, NULL);
}

void log_msg(enum log_level level, const char *topic, const struct log_ident *ident,
	     const char *format, ...)
{
	char line[LOG_LINE_MAX + 1];
	int saved = errno;
	size_t len = 0;
	va_list args;
	int n;

	if ((int)level > atomic_load(&max_level))
		return;
	if (!atomic_load(&to_journal))
		append(line, &len, "npud %s: ", log_level_name(level));
	append(line, &len, "%s: ", topic);
	if (ident)
		append_ident(line, &len, ident);
	errno = saved; /* for %m */
	va_start(args, format);
	n = vsnprintf(line + len, LOG_LINE_MAX - len, format, args);
	va_end(args);
	if (n > 0)
		len = len + (size_t)n < LOG_LINE_MAX ? len + (size_t)n : LOG_LINE_MAX - 1;
	for (size_t i = 0; i < len; i++) {
		if ((unsigned char)line[i] < 0x20 || line[i] == 0x7f)
			line[i] = '?';
	}
	line[len] = '\0';
	if (atomic_load(&to_journal)) {
		send_journal(level, topic, ident, line);
	} else {
		line[len] = '\n';
		while (write(STDERR_FILENO, line, len + 1) < 0 && errno == EINTR)
			;
	}
	errno = saved;
}

bool log_limit_ok(struct log_limit *limit, const char *topic)
{
	uint32_t burst = limit->burst ? limit->burst : LIMIT_BURST_DEFAULT;
	struct timespec ts;
	uint64_t now;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	now = (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
	if (!limit->window_ns || now - limit->window_ns >= LIMIT_WINDOW_NS) {
		uint32_t dropped = limit->dropped;

		limit->window_ns = now;
		limit->used = 0;
		limit->dropped = 0;
		if (dropped)
			log_notice(topic, "%u similar messages were dropped", dropped);
	}
	if (limit->used < burst) {
		limit->used++;
		return true;
	}
	limit->dropped++;
	return false;
}
