/* SPDX-License-Identifier: Apache-2.0 */
/* A private message bus: see test_bus.h. */
#include "tests/lib/test_bus.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tests/lib/npud_fixture.h"

#define LIMIT_MS 20000

static void die(const char *what, int error)
{
	fprintf(stderr, "test_bus: %s: %s\n", what, strerror(error < 0 ? -error : error));
	abort();
}

static const char config[] =
	"<!DOCTYPE busconfig PUBLIC \"-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN\"\n"
	" \"http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd\">\n"
	"<busconfig>\n"
	" <listen>%s</listen>\n"
	" <auth>EXTERNAL</auth>\n"
	" <policy context=\"default\">\n"
	"  <allow user=\"*\"/>\n"
	"  <allow own=\"*\"/>\n"
	"  <allow send_destination=\"*\"/>\n"
	"  <allow receive_sender=\"*\"/>\n"
	" </policy>\n"
	"</busconfig>\n";

bool test_bus_installed(void)
{
	return access("/usr/bin/dbus-daemon", X_OK) == 0;
}

void test_bus_prepare(struct test_bus *bus)
{
	char path[96];
	FILE *file;

	memset(bus, 0, sizeof(*bus));
	snprintf(bus->dir, sizeof(bus->dir), "/tmp/npud-bus-XXXXXX");
	/* other users are to reach the socket */
	if (!mkdtemp(bus->dir) || chmod(bus->dir, 0755) < 0)
		die("directory", errno);
	snprintf(bus->address, sizeof(bus->address), "unix:path=%s/bus", bus->dir);
	snprintf(path, sizeof(path), "%s/bus.conf", bus->dir);
	file = fopen(path, "we");
	if (!file || fprintf(file, config, bus->address) < 0 || fclose(file))
		die(path, errno);
}

sd_bus *test_bus_connect(const struct test_bus *bus)
{
	sd_bus *sd = NULL;
	int r = sd_bus_new(&sd);

	if (r >= 0)
		r = sd_bus_set_address(sd, bus->address);
	if (r >= 0)
		r = sd_bus_set_bus_client(sd, true);
	if (r >= 0)
		r = sd_bus_start(sd);
	if (r < 0) {
		sd_bus_unref(sd);
		errno = -r;
		return NULL;
	}
	return sd;
}

static bool connects(void *arg)
{
	struct test_bus *bus = arg;

	bus->sd = test_bus_connect(bus);
	return bus->sd != NULL;
}

void test_bus_launch(struct test_bus *bus)
{
	char path[96], option[112];

	snprintf(path, sizeof(path), "%s/bus", bus->dir);
	unlink(path);
	snprintf(option, sizeof(option), "--config-file=%s/bus.conf", bus->dir);
	bus->daemon = fork();
	if (bus->daemon < 0)
		die("fork", errno);
	if (!bus->daemon) {
		int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

		/* it complains about limits that it may not raise */
		dup2(null, 2);
		/* a test that fails leaves by exit() */
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		execl("/usr/bin/dbus-daemon", "dbus-daemon", option, "--nofork", "--nopidfile",
		      "--nosyslog", (char *)NULL);
		_exit(127);
	}
	if (!wait_until(connects, bus, LIMIT_MS))
		die(bus->address, errno);
}

void test_bus_end(struct test_bus *bus)
{
	bus->sd = sd_bus_close_unref(bus->sd);
	if (!bus->daemon)
		return;
	kill(bus->daemon, SIGTERM);
	wait_for(bus->daemon, LIMIT_MS);
	bus->daemon = 0;
}

void test_bus_stop(struct test_bus *bus)
{
	static const char *const names[] = { "bus", "bus.conf" };
	char path[96];

	test_bus_end(bus);
	for (unsigned i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/%s", bus->dir, names[i]);
		unlink(path);
	}
	rmdir(bus->dir);
}

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000ull + ts.tv_nsec / 1000000;
}

bool test_bus_until(sd_bus *sd, bool (*condition)(void *arg), void *arg, unsigned limit_ms)
{
	uint64_t limit = now_ms() + limit_ms;

	for (;;) {
		int r = sd_bus_process(sd, NULL);

		if (condition(arg))
			return true;
		if (r < 0)
			die("the bus", r);
		if (now_ms() > limit)
			return false;
		if (r == 0)
			sd_bus_wait(sd, 20000);
	}
}

bool test_bus_has(sd_bus *sd, const char *name)
{
	sd_bus_message *reply = NULL;
	int has = 0, r;

	r = sd_bus_call_method(sd, "org.freedesktop.DBus", "/org/freedesktop/DBus",
			       "org.freedesktop.DBus", "NameHasOwner", NULL, &reply, "s", name);
	if (r >= 0)
		r = sd_bus_message_read(reply, "b", &has);
	if (r < 0)
		die("NameHasOwner", r);
	sd_bus_message_unref(reply);
	return has;
}

static void get(sd_bus *sd, const char *name, char type, void *value)
{
	int r = sd_bus_get_property_trivial(sd, "org.npud", DEVICE_PATH, NPUD_DEVICE, name, NULL,
					    type, value);

	if (r < 0)
		die(name, r);
}

uint64_t test_bus_u64(sd_bus *sd, const char *name)
{
	uint64_t value;

	get(sd, name, 't', &value);
	return value;
}

uint32_t test_bus_u32(sd_bus *sd, const char *name)
{
	uint32_t value;

	get(sd, name, 'u', &value);
	return value;
}

bool test_bus_flag(sd_bus *sd, const char *name)
{
	int value;

	get(sd, name, 'b', &value);
	return value;
}

int test_bus_admin(sd_bus *sd, const char *method, uint32_t device, int on, sd_bus_error *ret_error)
{
	int r;

	if (on < 0)
		r = sd_bus_call_method(sd, "org.npud", "/org/npud", NPUD_MANAGER, method,
				       ret_error, NULL, "u", device);
	else
		r = sd_bus_call_method(sd, "org.npud", "/org/npud", NPUD_MANAGER, method,
				       ret_error, NULL, "ub", device, on);
	return r < 0 ? r : 0;
}
