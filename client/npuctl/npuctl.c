/* SPDX-License-Identifier: Apache-2.0 */
/*
 * npuctl: parses the command line, runs one row of the command table, and turns what happened into
 * an exit code that scripts can tell apart (npuctl(1)).
 */
#include "config.h"

#include "client/npuctl/command.h"
#include "client/npuctl/format.h"
#include "client/npuctl/out_json.h"

#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define TIMEOUT_MS 2000

enum exit_code {
	EXIT_OK = 0,
	EXIT_FAILED = 1, /* npud answered with an error, or the output is lost */
	EXIT_USAGE = 2,
	EXIT_NOT_RUNNING = 3,
	EXIT_DENIED = 4,
	EXIT_NO_ANSWER = 5,
};

static const struct command *const commands[] = {
	&command_status,
	&command_ps,
	&command_mem,
	&command_version,
};

#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

static void print_help(const struct command *command, FILE *out)
{
	if (command) {
		fprintf(out, "usage: npuctl %s [--json] [--socket PATH]\n\nShows %s.\n\n%s",
			command->name, command->help, command->details);
		return;
	}
	fputs("usage: npuctl [--socket PATH] [--json] COMMAND\n\ncommands:\n", out);
	for (size_t i = 0; i < COMMANDS; i++)
		fprintf(out, "  %-12s %s\n", commands[i]->name, commands[i]->help);
	fputs("\noptions:\n"
	      "  --socket PATH  npud's socket (default: $NPUD_SOCKET, else /run/npud/npud.sock)\n"
	      "  --json         print JSON\n"
	      "  --help         print this, or with a command what its output means\n"
	      "  --version      print npuctl's version\n"
	      "\n"
	      "exit status: 0 done, 1 error from npud, 2 wrong command line,\n"
	      "3 npud is not running, 4 permission denied, 5 npud does not respond\n",
	      out);
}

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; i < COMMANDS; i++)
		if (strcmp(commands[i]->name, name) == 0)
			return commands[i];
	return NULL;
}

static enum exit_code exit_code_of(int error)
{
	switch (-error) {
	case ENOENT:
	case ECONNREFUSED:
		return EXIT_NOT_RUNNING;
	case EACCES:
	case EPERM:
		return EXIT_DENIED;
	case ETIMEDOUT:
		return EXIT_NO_ANSWER;
	default:
		return EXIT_FAILED;
	}
}

/* EXIT_OK when everything has been written, else says why not. */
static enum exit_code finish_output(int error)
{
	if (!error && fflush(stdout) != 0)
		error = -errno;
	if (!error && ferror(stdout))
		error = -EIO;
	if (!error)
		return EXIT_OK;
	fprintf(stderr, "npuctl: cannot write the output: %s\n", strerror(-error));
	return EXIT_FAILED;
}

static int print_result(const struct command *command, const union result *result, bool as_json)
{
	struct json_object *object;
	int r;

	if (as_json) {
		object = out_new();
		if (object)
			command->json(result, object);
		r = out_print(object, stdout);
		out_free(object);
	} else {
		r = command->print(result, stdout);
	}
	return r;
}

static enum exit_code run(const struct command *command, const char *path, bool as_json)
{
	struct npu_admin *admin = NULL;
	union result result;
	enum exit_code code;
	char text[1024];
	int r;

	r = npu_admin_open(path, TIMEOUT_MS, &admin);
	if (r == 0)
		r = command->query(admin, &result);
	if (r < 0) {
		fprintf(stderr, "npuctl: %s\n",
			format_text(admin ? npu_admin_error(admin) : strerror(-r), text,
				    sizeof(text)));
		code = exit_code_of(r);
	} else {
		code = finish_output(print_result(command, &result, as_json));
		command->clear(&result);
	}
	npu_admin_close(admin);
	return code;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "socket", required_argument, NULL, 's' },
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ NULL, 0, NULL, 0 },
	};
	const struct command *command = NULL;
	const char *path = NULL;
	bool as_json = false, help = false;
	int option;

	while ((option = getopt_long(argc, argv, "hV", options, NULL)) != -1) {
		switch (option) {
		case 's':
			path = optarg;
			break;
		case 'j':
			as_json = true;
			break;
		case 'h':
			help = true;
			break;
		case 'V':
			printf("npuctl %s\n", PACKAGE_VERSION);
			return finish_output(0);
		default:
			fputs("npuctl: see npuctl --help\n", stderr);
			return EXIT_USAGE;
		}
	}
	if (optind < argc) {
		command = find_command(argv[optind]);
		if (!command) {
			fprintf(stderr, "npuctl: unknown command \"%s\", see npuctl --help\n",
				argv[optind]);
			return EXIT_USAGE;
		}
		if (optind + 1 < argc) {
			fprintf(stderr, "npuctl: %s takes no argument, but got \"%s\"\n",
				command->name, argv[optind + 1]);
			return EXIT_USAGE;
		}
	}
	if (help) {
		print_help(command, stdout);
		return finish_output(0);
	}
	if (!command) {
		print_help(NULL, stderr);
		return EXIT_USAGE;
	}
	if (path && !*path) {
		fputs("npuctl: --socket wants the path of npud's socket, not an empty word\n",
		      stderr);
		return EXIT_USAGE;
	}
	return run(command, path, as_json);
}
