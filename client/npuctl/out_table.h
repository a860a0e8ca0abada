/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NPUCTL_OUT_TABLE_H
#define NPUCTL_OUT_TABLE_H

#include <stdio.h>

/*
 * A table of text: columns as wide as their widest cell, two spaces between. It belongs to whoever
 * made it, and keeps copies of all text. Memory that runs out shows in table_print's result only.
 */
struct table;

/*
 * columns: the headings, with commas between; one that starts with '>' is aligned to the right.
 * NULL when there is no memory, which the other functions accept.
 */
struct table *table_new(const char *columns);
void table_free(struct table *table);

/* The next cell, from left to right; a row is full with as many cells as there are columns. */
void table_cell(struct table *table, const char *text);

/* 0 or -ENOMEM; what `out` does not take, ferror() tells. An unfinished row is not printed. */
int table_print(const struct table *table, FILE *out);

#endif
