/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Start and end of use. Uses are counted; the settings are those of the first one.
 */
#include "client/acl/acl_internal.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t uses;
static char *content; /* of the file that the settings are from, see struct acl_config */

static int first_use(struct acl_config *config)
{
	int code = rt_init();

	if (code)
		return code;
	rt_error_share(config->share_errors);
	rt_device_default(config->default_device);
	content = config->content;
	config->content = NULL;
	uses = 1;
	return 0;
}

/* A file has to say what the first one said; without a file there is nothing to differ. */
static int more_use(const char *path, const struct acl_config *config)
{
	if (path && *path && strcmp(content, config->content))
		return acl_bad(ACL_ERROR_INVALID_PARAM, "aclInit",
			       "configPath %s: the library is in use with other settings: call "
			       "aclFinalize first",
			       path);
	uses++;
	return acl_bad(ACL_ERROR_REPEAT_INITIALIZE, "aclInit",
		       "the library is in use already, now %llu times", (unsigned long long)uses);
}

aclError aclInit(const char *configPath)
{
	struct acl_config config;
	int code = acl_process_check();

	if (code)
		return code;
	code = acl_config_read(configPath, &config);
	if (code)
		return code;
	pthread_mutex_lock(&lock);
	code = uses ? more_use(configPath, &config) : first_use(&config);
	pthread_mutex_unlock(&lock);
	free(config.content);
	return code;
}

/* Under the lock: takes uses off the count, and ends the use at 0. */
static int release(const char *function, bool all)
{
	if (uses == 0)
		return acl_bad(ACL_ERROR_REPEAT_FINALIZE, function,
			       "the library is not in use: aclInit has to come first");
	uses = all ? 0 : uses - 1;
	if (uses)
		return 0;
	free(content);
	content = NULL;
	rt_device_default(-1);
	rt_error_share(false);
	return rt_fini();
}

aclError aclFinalize(void)
{
	int code = acl_process_check();

	if (code)
		return code;
	pthread_mutex_lock(&lock);
	code = release(__func__, true);
	pthread_mutex_unlock(&lock);
	return code;
}

aclError aclFinalizeReference(uint64_t *refCount)
{
	int code = acl_process_check();

	if (code)
		return code;
	pthread_mutex_lock(&lock);
	code = release(__func__, false);
	if (code == 0 && refCount)
		*refCount = uses;
	pthread_mutex_unlock(&lock);
	return code;
}
