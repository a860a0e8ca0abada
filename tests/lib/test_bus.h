/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NPU_TESTS_TEST_BUS_H
#define NPU_TESTS_TEST_BUS_H

/*
 * test_bus: a message bus of a test's own (dbus-daemon) and what a test asks npud over it. All
 * functions are for one thread; those without a result print why and abort when they fail.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <systemd/sd-bus.h>

#define NPUD_MANAGER "org.npud.Manager1"
#define NPUD_DEVICE  "org.npud.Device1"
#define DEVICE_PATH  "/org/npud/device/0"

struct test_bus {
	char dir[64];
	char address[96];
	pid_t daemon;
	sd_bus *sd; /* a connection of the test */
};

/* False when dbus-daemon is not installed. */
bool test_bus_installed(void);
/* Makes the directory with the bus's configuration; test_bus_launch() starts the bus. */
void test_bus_prepare(struct test_bus *bus);
/* Starts dbus-daemon and connects. */
void test_bus_launch(struct test_bus *bus);
/* Disconnects and ends dbus-daemon. */
void test_bus_end(struct test_bus *bus);
/* Ends it and removes the directory. */
void test_bus_stop(struct test_bus *bus);

/* Another connection, also in a child. */
sd_bus *test_bus_connect(const struct test_bus *bus);
/* Handles what comes until condition(arg), at most limit_ms; whether it came true. */
bool test_bus_until(sd_bus *sd, bool (*condition)(void *arg), void *arg, unsigned limit_ms);
/* Whether somebody has the name. */
bool test_bus_has(sd_bus *sd, const char *name);

/* Properties of device 0. */
uint64_t test_bus_u64(sd_bus *sd, const char *name);
uint32_t test_bus_u32(sd_bus *sd, const char *name);
bool test_bus_flag(sd_bus *sd, const char *name);

/* Reset(device), or with on >= 0 Drain(device, on): 0, or a negative errno with ret_error set. */
int test_bus_admin(sd_bus *sd, const char *method, uint32_t device, int on,
		   sd_bus_error *ret_error);

#endif
