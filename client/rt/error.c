/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread's texts lie in a ring of lines, newest first when they are read. They belong to the
 * thread, or, when the program asks so, to the process. Reading assembles them into a buffer of the
 * thread.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/rt/internal.h"
#include "proto/status.h"

#define LINES	       16u
#define LINE_MAX_BYTES 512u

struct text_list {
	unsigned first, count; /* oldest, how many */
	char lines[LINES][LINE_MAX_BYTES];
};

struct thread_text {
	struct text_list list;
	char told[LINES * LINE_MAX_BYTES + 1]; /* what the last read gave */
};

static _Thread_local int last_code;
static _Thread_local struct thread_text *own_text;
static struct text_list shared_list;
static pthread_mutex_t shared_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic bool shared;
static pthread_key_t text_key;
static pthread_once_t text_once = PTHREAD_ONCE_INIT;
static bool text_keyed;

static void text_make_key(void)
{
	text_keyed = !pthread_key_create(&text_key, free);
}

static struct thread_text *thread_text(void)
{
	if (!own_text) {
		pthread_once(&text_once, text_make_key);
		own_text = calloc(1, sizeof(*own_text));
		if (own_text && text_keyed)
			pthread_setspecific(text_key, own_text);
	}
	return own_text;
}

static void list_add(struct text_list *list, const char *id, const char *format, va_list args)
{
	char *line = list->lines[(list->first + list->count) % LINES];
	int n;

	if (list->count == LINES)
		list->first = (list->first + 1) % LINES;
	else
		list->count++;
	n = snprintf(line, LINE_MAX_BYTES, "%s: ", id);
	vsnprintf(line + n, LINE_MAX_BYTES - (size_t)n, format, args);
}

static void text_add(const char *id, const char *format, va_list args)
{
	struct thread_text *text;

	if (atomic_load_explicit(&shared, memory_order_relaxed) && !drv_process_dead()) {
		pthread_mutex_lock(&shared_lock);
		list_add(&shared_list, id, format, args);
		pthread_mutex_unlock(&shared_lock);
		return;
	}
	text = thread_text();
	if (text)
		list_add(&text->list, id, format, args);
}

void rt_error_text(const char *id, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	text_add(id, format, args);
	va_end(args);
}

int rt_error(int code, const char *id, const char *format, ...)
{
	va_list args;

	last_code = code;
	va_start(args, format);
	text_add(id, format, args);
	va_end(args);
	return code;
}

static size_t list_take(struct text_list *list, char *to)
{
	size_t n = 0;

	for (; list->count; list->count--) {
		const char *line = list->lines[(list->first + list->count - 1) % LINES];
		size_t bytes = strlen(line);

		if (n)
			to[n++] = '\n';
		memcpy(to + n, line, bytes);
		n += bytes;
	}
	to[n] = 0;
	return n;
}

const char *rt_error_recent(void)
{
	struct thread_text *text = thread_text();
	size_t n;

	if (!text)
		return NULL;
	if (atomic_load_explicit(&shared, memory_order_relaxed) && !drv_process_dead()) {
		pthread_mutex_lock(&shared_lock);
		n = list_take(&shared_list, text->told);
		pthread_mutex_unlock(&shared_lock);
	} else {
		n = list_take(&text->list, text->told);
	}
	return n ? text->told : NULL;
}

void rt_error_share(bool process)
{
	atomic_store(&shared, process);
}

int rt_last_error_peek(void)
{
	return last_code;
}

int rt_last_error_get(void)
{
	int code = last_code;

	last_code = 0;
	return code;
}

int rt_error_forked(void)
{
	return rt_error(
		ACL_ERROR_RT_DEV_SETUP_ERROR, "EE1003",
		"this process is a fork of one that "
		"uses the device, whose objects it does not share; fork before the first call, or "
		"exec");
}

int rt_error_lost(const struct drv_space *space, uint32_t device)
{
	(void)space;
	return rt_error(ACL_ERROR_RT_SOCKET_CLOSE, "EL0003",
			"device %u is lost: card or simulator "
			"went away; all work and memory on it is gone, restart the program",
			device);
}

static int code_for(int error)
{
	switch (error) {
	case -ENODEV:
		return ACL_ERROR_RT_INVALID_DEVICEID;
	case -ENOSPC:
	case -EDQUOT:
	case -ENOMEM:
		return ACL_ERROR_RT_MEMORY_ALLOCATION;
	case -EPERM:
	case -EACCES:
		return ACL_ERROR_RT_NO_PERMISSION;
	case -EIO:
		return ACL_ERROR_RT_SOCKET_CLOSE;
	case -ENOEXEC:
		return ACL_ERROR_RT_PARAM_INVALID;
	case -EOPNOTSUPP:
	case -ENOSYS:
		return ACL_ERROR_RT_FEATURE_NOT_SUPPORT;
	case -EUSERS:
		return ACL_ERROR_RT_RESOURCE_ALLOC_FAIL;
	case -ENOTCONN:
	case -ESHUTDOWN:
		return ACL_ERROR_RT_LOST_HEARTBEAT;
	case -ETIMEDOUT:
		return ACL_ERROR_RT_REPORT_TIMEOUT;
	case -ENOENT:
		return drv_error()->status ? ACL_ERROR_RT_DRV_INTERNAL_ERROR :
					     ACL_ERROR_RT_DEV_SETUP_ERROR;
	case -ECONNREFUSED:
	case -ENAMETOOLONG:
	case -EPROTO:
	case -ECHILD:
		return ACL_ERROR_RT_DEV_SETUP_ERROR;
	default:
		return ACL_ERROR_RT_DRV_INTERNAL_ERROR;
	}
}

int rt_error_drv(int error, const char *what)
{
	int code = code_for(error);
	const char *id = "EL0003";

	if (code == ACL_ERROR_RT_MEMORY_ALLOCATION)
		id = "EL0004";
	else if (code == ACL_ERROR_RT_PARAM_INVALID)
		id = "EE1001";
	else if (code == ACL_ERROR_RT_RESOURCE_ALLOC_FAIL)
		id = "EE1003";
	return rt_error(code, id, "%s: %s", what,
			drv_error()->error == error ? drv_error()->text : strerror(-error));
}
