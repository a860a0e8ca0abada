/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cells lie in one growing array, row after row, the headings being the first row; the number of
 * columns is fixed by them. After a failed allocation the table takes nothing more.
 */
#include "client/npuctl/out_table.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct table {
	size_t columns, used, room;
	bool failed;
	bool *right;
	char **cells;
};

/* Characters on the terminal, one for each code point. */
static size_t text_width(const char *text)
{
	size_t width = 0;

	for (; *text; text++)
		width += ((unsigned char)*text & 0xc0) != 0x80;
	return width;
}

void table_cell(struct table *table, const char *text)
{
	char **cells;

	if (!table || table->failed)
		return;
	if (table->used == table->room) {
		cells = reallocarray(table->cells, table->room * 2 + 16, sizeof(*cells));
		if (!cells) {
			table->failed = true;
			return;
		}
		table->cells = cells;
		table->room = table->room * 2 + 16;
	}
	table->cells[table->used] = strdup(text);
	if (table->cells[table->used])
		table->used++;
	else
		table->failed = true;
}

struct table *table_new(const char *columns)
{
	struct table *table = calloc(1, sizeof(*table));
	char *copy = strdup(columns), *next = copy, *heading;

	if (!table || !copy)
		goto fail;
	table->right = calloc(strlen(columns) + 1, sizeof(*table->right));
	if (!table->right)
		goto fail;
	while ((heading = strsep(&next, ","))) {
		table->right[table->columns] = *heading == '>';
		table_cell(table, heading + table->right[table->columns]);
		table->columns++;
	}
	if (table->failed)
		goto fail;
	free(copy);
	return table;
fail:
	free(copy);
	table_free(table);
	return NULL;
}

void table_free(struct table *table)
{
	if (!table)
		return;
	for (size_t i = 0; i < table->used; i++)
		free(table->cells[i]);
	free(table->cells);
	free(table->right);
	free(table);
}

static void print_row(const struct table *table, char **row, const size_t *width, FILE *out)
{
	for (size_t i = 0; i < table->columns; i++) {
		size_t pad = width[i] - text_width(row[i]);
		bool last = i + 1 == table->columns;

		if (table->right[i])
			fprintf(out, "%*s%s", (int)pad, "", row[i]);
		else
			fprintf(out, "%s%*s", row[i], last ? 0 : (int)pad, "");
		fputs(last ? "\n" : "  ", out);
	}
}

int table_print(const struct table *table, FILE *out)
{
	size_t *width;

	if (!table || table->failed)
		return -ENOMEM;
	width = calloc(table->columns, sizeof(*width));
	if (!width)
		return -ENOMEM;
	for (size_t i = 0; i < table->used; i++) {
		size_t w = text_width(table->cells[i]);

		if (w > width[i % table->columns])
			width[i % table->columns] = w;
	}
	for (size_t row = 0; row + table->columns <= table->used; row += table->columns)
		print_row(table, &table->cells[row], width, out);
	free(width);
	return 0;
}
