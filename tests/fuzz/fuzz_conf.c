/* SPDX-License-Identifier: Apache-2.0 */
/*
 * npud's configuration file. One that is refused leaves the configuration as it was and gets one
 * line; one that is taken is printed and read again, which must give the same.
 */
#include "tests/fuzz/fuzz.h"

#include <string.h>

#include "daemon/conf/conf.h"

static void print_and_read(const struct conf *conf)
{
	char error[CONF_ERROR_MAX], *text = NULL;
	struct conf again;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	fuzz_check(out, "no stream");
	conf_print(conf, out);
	fclose(out);
	conf_init(&again);
	fuzz_check(conf_load(&again, fuzz_file((uint8_t *)text, size), true, error) == 0, text);
	fuzz_check(memcmp(&again, conf, sizeof(again)) == 0, "printed and read is something else");
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char error[CONF_ERROR_MAX];
	struct conf conf, before;

	memset(error, 'x', sizeof(error));
	conf_init(&conf);
	conf_init(&before);
	if (conf_load(&conf, fuzz_file(data, size), true, error) == 0) {
		print_and_read(&conf);
		return 0;
	}
	fuzz_check(memcmp(&conf, &before, sizeof(conf)) == 0, "refused, and changed");
	fuzz_check(memchr(error, 0, sizeof(error)) && *error && !strchr(error, '\n'),
		   "the reason is not one line");
	return 0;
}
