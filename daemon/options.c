/* SPDX-License-Identifier: Apache-2.0 */
/* getopt_long; values that configuration has too are checked by its rules. */
#include "daemon/options.h"
#include "daemon/util/parse.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"

#define DEFAULT_CONFIG NPU_SYSCONFDIR "/npud/npud.conf"

static const char help[] =
	"Usage: npud [OPTION...]\n"
	"Shares the NPUs of this machine between programs.\n"
	"\n"
	"  --config FILE        configuration (default " DEFAULT_CONFIG ", if there)\n"
	"  --runtime-dir DIR    for socket, lock and software NPUs (default " NPUD_RUNTIME_DIR ")\n"
	"  --device WHAT        auto, sim, or /dev/npuN[,/dev/npuM...]\n"
	"  --foreground         stay in the foreground\n"
	"  --log-level LEVEL    error, warning, notice, info or debug\n"
	"  --print-config       print the configuration with all its options, and end\n"
	"  --version            print the version, and end\n"
	"  --help               print this, and end\n";

int options_parse(int argc, char **argv, struct options *ret_options)
{
	enum { CONFIG = 1, RUNTIME_DIR, DEVICE, FOREGROUND, LOG_LEVEL, PRINT, VERSION_, HELP };
	static const struct option table[] = {
		{ "config", required_argument, NULL, CONFIG },
		{ "runtime-dir", required_argument, NULL, RUNTIME_DIR },
		{ "device", required_argument, NULL, DEVICE },
		{ "foreground", no_argument, NULL, FOREGROUND },
		{ "log-level", required_argument, NULL, LOG_LEVEL },
		{ "print-config", no_argument, NULL, PRINT },
		{ "version", no_argument, NULL, VERSION_ },
		{ "help", no_argument, NULL, HELP },
		{ 0 },
	};
	struct options options = { .runtime_dir = NPUD_RUNTIME_DIR };
	enum log_level level;
	int c;

	opterr = 1;
	optind = 1;
	while ((c = getopt_long(argc, argv, "", table, NULL)) != -1) {
		switch (c) {
		case CONFIG:
			options.config = optarg;
			break;
		case RUNTIME_DIR:
			options.runtime_dir = optarg;
			break;
		case DEVICE:
			if (conf_check_transport(optarg) < 0) {
				fprintf(stderr,
					"npud: --device \"%s\" is not allowed, must be auto, "
					"sim or a comma-separated list of /dev/npuN\n",
					optarg);
				return 2;
			}
			options.device = optarg;
			break;
		case FOREGROUND:
			options.foreground = true;
			break;
		case LOG_LEVEL:
			if (log_level_parse(optarg, &level) < 0) {
				fprintf(stderr,
					"npud: --log-level \"%s\" is not allowed, must be "
					"error, warning, notice, info or debug\n",
					optarg);
				return 2;
			}
			options.log_level = optarg;
			break;
		case PRINT:
			options.print_config = true;
			break;
		case VERSION_:
			puts("npud " PACKAGE_VERSION);
			return 0;
		case HELP:
			fputs(help, stdout);
			return 0;
		default:
			fputs("Try npud --help.\n", stderr);
			return 2;
		}
	}
	if (optind < argc) {
		fprintf(stderr,
			"npud: \"%s\": there are no arguments besides options; try npud "
			"--help\n",
			argv[optind]);
		return 2;
	}
	*ret_options = options;
	return -1;
}

int options_load(const struct options *options, struct conf *ret_conf)
{
	char error[CONF_ERROR_MAX];
	struct conf conf;

	conf_init(&conf);
	if (conf_load(&conf, options->config ? options->config : DEFAULT_CONFIG,
		      options->config != NULL, error) < 0) {
		fprintf(stderr, "npud: %s\n", error);
		return 1;
	}
	if (options->device)
		str_copy(conf.transport, sizeof(conf.transport), options->device);
	if (options->log_level)
		log_level_parse(options->log_level, &conf.log_level);
	*ret_conf = conf;
	return 0;
}
