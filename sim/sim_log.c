/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines are built in a buffer on the stack and leave by one write, so threads and processes that
 * share stderr never mix theirs. systemd understands the "<N>" prefix; JOURNAL_STREAM tells us that
 * stderr is its.
 */
#include "sim/sim_log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char *const level_names[] = { "error", "warning", "notice", "info", "debug" };
static const int level_priority[] = { 3, 4, 5, 6, 7 };

static enum sim_log_level log_level = SIM_LOG_NOTICE;
static unsigned int log_device;
static bool log_journal;

static bool stderr_is_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long dev, ino;
	struct stat st;

	if (!stream || sscanf(stream, "%llu:%llu", &dev, &ino) != 2)
		return false;
	return fstat(STDERR_FILENO, &st) == 0 && st.st_dev == dev && st.st_ino == ino;
}

void sim_log_open(enum sim_log_level level, unsigned int device)
{
	log_level = level;
	log_device = device;
	log_journal = stderr_is_journal();
}

int sim_log_level_parse(const char *word, enum sim_log_level *ret_level)
{
	for (unsigned int i = 0; i < sizeof(level_names) / sizeof(level_names[0]); i++) {
		if (strcmp(word, level_names[i]) == 0) {
			*ret_level = (enum sim_log_level)i;
			return 0;
		}
	}
	return -EINVAL;
}

static size_t log_prefix(char *line, size_t size, enum sim_log_level level)
{
	struct timespec now;
	struct tm tm;
	char when[32];
	int n;

	if (log_journal) {
		n = snprintf(line, size, "<%d>npu-sim %u: ", level_priority[level], log_device);
	} else {
		clock_gettime(CLOCK_REALTIME, &now);
		localtime_r(&now.tv_sec, &tm);
		strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S", &tm);
		n = snprintf(line, size, "%s.%03ld npu-sim %u %s: ", when,
			     now.tv_nsec / 1000000, log_device, level_names[level]);
	}
	return n > 0 ? (size_t)n : 0;
}

void sim_log(enum sim_log_level level, const char *format, ...)
{
	char line[SIM_LOG_LINE_MAX];
	int saved = errno;
	size_t start, len;
	va_list args;
	int n;

	if (level > log_level)
		return;
	start = log_prefix(line, sizeof(line), level);
	va_start(args, format);
	errno = saved; /* for %m */
	n = vsnprintf(line + start, sizeof(line) - start - 1, format, args);
	va_end(args);
	len = start + (n > 0 ? (size_t)n : 0);
	if (len > sizeof(line) - 2)
		len = sizeof(line) - 2;
	for (size_t i = start; i < len; i++) {
		if ((unsigned char)line[i] < 0x20 || line[i] == 0x7f)
			line[i] = '?';
	}
	line[len++] = '\n';
	if (write(STDERR_FILENO, line, len) < 0)
		errno = 0; /* nobody to tell */
	errno = saved;
}

bool sim_log_limit_ok(struct sim_log_limit *limit)
{
	struct timespec ts;
	uint64_t now;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	now = (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
	if (now - limit->window_ns > 1000000000u || !limit->window_ns) {
		if (limit->dropped)
			sim_log(SIM_LOG_WARNING, "%u similar lines dropped", limit->dropped);
		limit->window_ns = now;
		limit->used = 0;
		limit->dropped = 0;
	}
	if (limit->used >= 10) {
		limit->dropped++;
		return false;
	}
	limit->used++;
	return true;
}
