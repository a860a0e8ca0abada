/* SPDX-License-Identifier: Apache-2.0 */
#include "client/npuctl/format.h"

#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>

const char *format_bytes(uint64_t bytes, char *buf, size_t len)
{
	static const char *const units[] = { "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	unsigned int unit = 0;
	double value = (double)bytes / 1024;

	if (bytes < 1024) {
		snprintf(buf, len, "%" PRIu64 " B", bytes);
		return buf;
	}
	/* 1023.95 would be printed as 1024.0 of the smaller unit */
	for (; value >= 1023.95 && unit < 5; unit++)
		value /= 1024;
	snprintf(buf, len, "%.1f %s", value, units[unit]);
	return buf;
}

const char *format_share(uint64_t part, uint64_t whole, char *buf, size_t len)
{
	if (whole)
		snprintf(buf, len, "%.1f%%", 100.0 * (double)part / (double)whole);
	else
		snprintf(buf, len, "-");
	return buf;
}

const char *format_duration(uint64_t ms, char *buf, size_t len)
{
	uint64_t s = ms / 1000;

	if (ms < 1000)
		snprintf(buf, len, "%" PRIu64 " ms", ms);
	else if (s < 60)
		snprintf(buf, len, "%" PRIu64 ".%" PRIu64 " s", s, ms % 1000 / 100);
	else if (s < 3600)
		snprintf(buf, len, "%" PRIu64 "m %02" PRIu64 "s", s / 60, s % 60);
	else if (s < 86400)
		snprintf(buf, len, "%" PRIu64 "h %02" PRIu64 "m", s / 3600, s % 3600 / 60);
	else
		snprintf(buf, len, "%" PRIu64 "d %02" PRIu64 "h", s / 86400, s % 86400 / 3600);
	return buf;
}

const char *format_count(uint64_t number, char *buf, size_t len)
{
	snprintf(buf, len, "%" PRIu64, number);
	return buf;
}

const char *format_user(uint32_t uid, char *buf, size_t len)
{
	const struct passwd *user = getpwuid(uid);

	if (user)
		format_text(user->pw_name, buf, len);
	else
		snprintf(buf, len, "%" PRIu32, uid);
	return buf;
}

const char *format_device(uint32_t device, char *buf, size_t len)
{
	if (device == UINT32_MAX)
		snprintf(buf, len, "-");
	else
		snprintf(buf, len, "npu%" PRIu32, device);
	return buf;
}

/* Bytes of the printable character at p, 0 when there is none. */
static size_t utf8_length(const unsigned char *p)
{
	/* first byte's range, and the range of the second one: no overlong forms, no surrogates */
	static const struct {
		unsigned char from, to, second_from, second_to, length;
	} forms[] = {
		{ 0xc2, 0xdf, 0x80, 0xbf, 2 }, { 0xe0, 0xe0, 0xa0, 0xbf, 3 },
		{ 0xe1, 0xec, 0x80, 0xbf, 3 }, { 0xed, 0xed, 0x80, 0x9f, 3 },
		{ 0xee, 0xef, 0x80, 0xbf, 3 }, { 0xf0, 0xf0, 0x90, 0xbf, 4 },
		{ 0xf1, 0xf3, 0x80, 0xbf, 4 }, { 0xf4, 0xf4, 0x80, 0x8f, 4 },
	};

	if (*p < 0x80)
		return *p >= 0x20 && *p != 0x7f;
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		if (*p < forms[i].from || *p > forms[i].to)
			continue;
		if (p[1] < forms[i].second_from || p[1] > forms[i].second_to)
			return 0;
		if (*p == 0xc2 && p[1] < 0xa0) /* C1 control characters */
			return 0;
		for (size_t n = 2; n < forms[i].length; n++)
			if ((p[n] & 0xc0) != 0x80)
				return 0;
		return forms[i].length;
	}
	return 0;
}

const char *format_text(const char *text, char *buf, size_t len)
{
	const unsigned char *p = (const unsigned char *)text;
	size_t used = 0;

	while (*p) {
		size_t n = utf8_length(p);

		if (used + (n ? n : 1) >= len)
			break;
		if (n)
			memcpy(buf + used, p, n);
		else
			buf[used] = '?';
		used += n ? n : 1;
		p += n ? n : 1;
	}
	buf[used] = '\0';
	return buf;
}
