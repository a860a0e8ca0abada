/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NPU_UTIL_PARSE_H
#define NPU_UTIL_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Text to values, strictly: the whole word must be the value; no sign, no leading or trailing
 * space. 0 on success, -EINVAL for a wrong form, -ERANGE for a number that does not fit. Any
 * thread.
 */

/* Decimal, or hexadecimal after 0x. */
int parse_u64(const char *word, uint64_t *ret_value);
/* Octal, as in file modes ("0660", "660"). */
int parse_mode(const char *word, unsigned int *ret_mode);
/* A number with an optional unit K, M, G, T (powers of 1024; also KiB, MiB ...). Bytes. */
int parse_size(const char *word, uint64_t *ret_bytes);
/* yes/no, true/false, on/off, 1/0 */
int parse_bool(const char *word, bool *ret_value);

/* "64 MiB", "3.5 GiB", "512 B" into buf; returns buf. */
const char *format_size(uint64_t bytes, char *buf, size_t len);

/* Copies at most len - 1 bytes and terminates; false when it had to cut. */
bool str_copy(char *dst, size_t len, const char *src);

#endif
