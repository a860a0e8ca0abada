/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NPUCTL_FORMAT_H
#define NPUCTL_FORMAT_H

#include <stddef.h>
#include <stdint.h>

/*
 * Numbers as people read them. Each function writes into buf (always terminated, cut when it does
 * not fit; FORMAT_MAX bytes are enough for the numbers) and returns buf.
 */

#define FORMAT_MAX 32

/* "0 B", "512 B", "1.5 KiB", "256.0 MiB", "2.0 GiB"; the unit is the largest with a value >= 1. */
const char *format_bytes(uint64_t bytes, char *buf, size_t len);
/* part of whole in percent: "6.2%", "-" when whole is 0. */
const char *format_share(uint64_t part, uint64_t whole, char *buf, size_t len);
/* "850 ms", "12.3 s", "3m 05s", "2h 07m", "4d 01h" */
const char *format_duration(uint64_t ms, char *buf, size_t len);
const char *format_count(uint64_t number, char *buf, size_t len);
/* Name of the user, or the number where there is no such user. */
const char *format_user(uint32_t uid, char *buf, size_t len);

/* "npu0"; "-" for UINT32_MAX, no device. */
const char *format_device(uint32_t device, char *buf, size_t len);

/*
 * Text from outside (a process may call itself anything): control characters and what is no UTF-8
 * become '?'.
 */
const char *format_text(const char *text, char *buf, size_t len);

#endif
