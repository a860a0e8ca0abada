/* SPDX-License-Identifier: Apache-2.0 */
/* strtoull accepts signs and leading blanks; the first character is checked here, so it can't. */
#include "daemon/util/parse.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static int parse_number(const char *word, int base, uint64_t *ret_value, const char **ret_end)
{
	unsigned long long value;
	char *end;

	if (!isdigit((unsigned char)word[0]))
		return -EINVAL;
	errno = 0;
	value = strtoull(word, &end, base);
	if (errno == ERANGE)
		return -ERANGE;
	*ret_value = value;
	*ret_end = end;
	return 0;
}

int parse_u64(const char *word, uint64_t *ret_value)
{
	int base = word[0] == '0' && (word[1] == 'x' || word[1] == 'X') ? 16 : 10;
	const char *end;
	uint64_t value;
	int r;

	if (base == 16 && !isxdigit((unsigned char)word[2]))
		return -EINVAL;
	r = parse_number(word, base, &value, &end);
	if (r < 0)
		return r;
	if (*end)
		return -EINVAL;
	*ret_value = value;
	return 0;
}

int parse_mode(const char *word, unsigned int *ret_mode)
{
	const char *end;
	uint64_t value;
	int r = parse_number(word, 8, &value, &end);

	if (r < 0)
		return r;
	if (*end)
		return -EINVAL;
	if (value > 07777)
		return -ERANGE;
	*ret_mode = (unsigned int)value;
	return 0;
}

int parse_size(const char *word, uint64_t *ret_bytes)
{
	static const char units[] = "KMGT";
	const char *end;
	uint64_t value;
	int r;

	r = parse_number(word, 10, &value, &end);
	if (r < 0)
		return r;
	if (*end) {
		const char *unit = strchr(units, toupper((unsigned char)*end));
		unsigned int shift;

		if (!unit)
			return -EINVAL;
		shift = 10 * (unsigned int)(unit - units + 1);
		end++;
		if (*end && strcasecmp(end, "iB") != 0)
			return -EINVAL;
		if (value > UINT64_MAX >> shift)
			return -ERANGE;
		value <<= shift;
	}
	*ret_bytes = value;
	return 0;
}

int parse_bool(const char *word, bool *ret_value)
{
	static const char *const yes[] = { "yes", "true", "on", "1" };
	static const char *const no[] = { "no", "false", "off", "0" };

	for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++) {
		if (strcasecmp(word, yes[i]) == 0) {
			*ret_value = true;
			return 0;
		}
		if (strcasecmp(word, no[i]) == 0) {
			*ret_value = false;
			return 0;
		}
	}
	return -EINVAL;
}

const char *format_size(uint64_t bytes, char *buf, size_t len)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
	unsigned int unit = 0;
	uint64_t rest = 0;

	while (bytes >= 1024 && unit < 4) {
		rest = bytes % 1024;
		bytes /= 1024;
		unit++;
	}
	if (rest * 10 / 1024)
		snprintf(buf, len, "%llu.%llu %s", (unsigned long long)bytes,
			 (unsigned long long)(rest * 10 / 1024), units[unit]);
	else
		snprintf(buf, len, "%llu %s", (unsigned long long)bytes, units[unit]);
	return buf;
}

bool str_copy(char *dst, size_t len, const char *src)
{
	size_t n = strnlen(src, len);
	bool whole = n < len;

	if (!len)
		return false;
	if (!whole)
		n = len - 1;
	memcpy(dst, src, n);
	dst[n] = '\0';
	return whole;
}
