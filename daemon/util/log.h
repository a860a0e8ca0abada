/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NPU_UTIL_LOG_H
#define NPU_UTIL_LOG_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * One line a fact, with the identity of who it is about. The target is chosen once, by log_open():
 * the journal when stderr is connected to it (JOURNAL_STREAM names our stderr), else stderr; the
 * journal gets the identity as fields too. A line is one write, so threads don't mix theirs. All
 * functions may be called from any thread and leave errno alone; lines longer than LOG_LINE_MAX are
 * cut. Control characters in a line (a client's process name, say) are printed as '?'.
 */

#define LOG_LINE_MAX 1024

enum log_level {
	LOG_LEVEL_ERROR,
	LOG_LEVEL_WARNING,
	LOG_LEVEL_NOTICE,
	LOG_LEVEL_INFO,
	LOG_LEVEL_DEBUG,
};

/* What a line is about. Zero (NULL, 0) means "not known"; device is counted from 1 (0: none). */
struct log_ident {
	uint64_t session;
	pid_t pid;
	uid_t uid; /* valid when pid is set */
	const char *comm;
	unsigned int device; /* device number + 1 */
	uint64_t context;
	uint64_t stream;
	uint64_t task;
};

/*
 * A budget of lines for what a user can trigger: burst lines an interval of a second, then silence,
 * then one line that says how many were dropped. Static storage at the call site; zero-initialised
 * is the default of 10 lines a second. Not locked: a race costs a line, no more.
 */
struct log_limit {
	uint32_t burst;
	uint32_t used;
	uint32_t dropped;
	uint64_t window_ns;
};

void log_open(enum log_level level);
void log_set_level(enum log_level level);
enum log_level log_get_level(void);
/* True when lines go to the journal. */
bool log_is_journal(void);

/* Name of a level ("error" ... "debug") or NULL; and back: 0, or -EINVAL for another word. */
const char *log_level_name(enum log_level level);
int log_level_parse(const char *word, enum log_level *ret_level);

/* topic: the part of the daemon that speaks ("rpc", "hal" ...). ident may be NULL. */
void log_msg(enum log_level level, const char *topic, const struct log_ident *ident,
	     const char *format, ...) __attribute__((format(printf, 4, 5)));

/* True when the caller may log now. Says once, at the next allowed line, how many were dropped. */
bool log_limit_ok(struct log_limit *limit, const char *topic);

#define log_error(topic, ...)	log_msg(LOG_LEVEL_ERROR, topic, NULL, __VA_ARGS__)
#define log_warning(topic, ...) log_msg(LOG_LEVEL_WARNING, topic, NULL, __VA_ARGS__)
#define log_notice(topic, ...)	log_msg(LOG_LEVEL_NOTICE, topic, NULL, __VA_ARGS__)
#define log_info(topic, ...)	log_msg(LOG_LEVEL_INFO, topic, NULL, __VA_ARGS__)
#define log_debug(topic, ...)	log_msg(LOG_LEVEL_DEBUG, topic, NULL, __VA_ARGS__)

#endif
