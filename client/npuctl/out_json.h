/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NPUCTL_OUT_JSON_H
#define NPUCTL_OUT_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct json_object;

/*
 * A thin layer over json-c that remembers a failure: objects may be NULL everywhere (no memory),
 * and out_print() then says -ENOMEM. What is added belongs to the object it was added to. Text is
 * cleaned as format_text() does, so the output is valid UTF-8 whatever a process calls itself.
 */

struct json_object *out_list(struct json_object *object, const char *key);
/* A new object at the end of a list. */
struct json_object *out_item(struct json_object *list);
/* A text at the end of a list. */
void out_list_text(struct json_object *list, const char *text);

void out_text(struct json_object *object, const char *key, const char *text);
void out_number(struct json_object *object, const char *key, uint64_t number);
void out_bool(struct json_object *object, const char *key, bool value);
void out_null(struct json_object *object, const char *key);

/* 0, or -ENOMEM when something above had no memory. What `out` does not take, ferror() tells. */
int out_print(struct json_object *object, FILE *out);

/* Begins a document: forgets earlier failures. NULL when there is no memory. */
struct json_object *out_new(void);
void out_free(struct json_object *object);

#endif
