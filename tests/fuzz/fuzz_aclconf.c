/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON file of aclInit(). One that is taken is given again in its one form: same settings. */
#include "tests/fuzz/fuzz.h"

#include <string.h>

#include "client/acl/acl_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct acl_config config = { 0 }, again = { 0 };
	int code = acl_config_read(fuzz_file(data, size), &config);

	if (code) {
		fuzz_check(!config.content, "refused, and set");
		fuzz_check(*rt_error_recent(), "refused without a reason");
		return 0;
	}
	fuzz_check(config.content && config.default_device >= -1, "settings");
	code = acl_config_read(fuzz_file((uint8_t *)config.content, strlen(config.content)), &again);
	fuzz_check(code == 0, config.content);
	fuzz_check(again.default_device == config.default_device &&
		   again.share_errors == config.share_errors, "read again it is something else");
	fuzz_check(strcmp(again.content, config.content) == 0, again.content);
	free(config.content);
	free(again.content);
	return 0;
}
