/* SPDX-License-Identifier: Apache-2.0 */
/*
 * npud on a message bus: what it shows, what it signals, who may reset and drain a device; and npud
 * without a bus, which joins it when it comes. Without dbus-daemon only the last is tested.
 */
#include <check.h>
#include <errno.h>
#include <grp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/lib/client_process.h"
#include "tests/lib/runner.h"
#include "tests/lib/test_bus.h"

#define NOBODY	 65534
#define ADMINS	 "daemon" /* a group that every system has, and NOBODY is not in */
#define WAIT_MS	 20000
#define IDLE_MS	 1500
#define IDLE_CPU 20000000 /* ns */

static struct test_bus bus;

static void start_npud(void)
{
	char config[256];

	snprintf(config, sizeof(config),
		 "[daemon]\nadmin_group = " ADMINS "\n[device]\nsim_memory = 1G\n"
		 "[management]\nbus = %s\n",
		 bus.address);
	npud_start(&client_npud, config);
}

static bool npud_is_there(void *arg)
{
	return test_bus_has(arg, "org.npud");
}

static void setup(void)
{
	test_bus_prepare(&bus);
	test_bus_launch(&bus);
	start_npud();
	ck_assert(test_bus_until(bus.sd, npud_is_there, bus.sd, WAIT_MS));
}

static void teardown(void)
{
	npud_stop(&client_npud);
	test_bus_stop(&bus);
}

/* ---- clients -------------------------------------------------------------------------------- */

/* Opens the device and keeps it; works when it hears something, then ends. */
static void keeper(int in, int out)
{
	struct client c;

	client_begin(&c);
	client_say(out);
	THAT(client_hear(in));
	client_work(&c, 100);
	client_end(&c);
}

#define BAD_ADDRESS 0x7e9000000000

static void faulter(int in, int out)
{
	struct client c;

	client_begin(&c);
	client_launch(&c, "poke", 1, BAD_ADDRESS, 1, 2);
	THAT(aclrtSynchronizeStream(c.stream) != ACL_SUCCESS);
	client_say(out);
	THAT(client_hear(in));
}

/* Finds out that the device was reset. */
static void loser(int in, int out)
{
	struct client c;
	void *more;

	client_begin(&c);
	client_say(out);
	THAT(client_hear(in));
	THAT(aclrtMalloc(&more, MIB, ACL_MEM_MALLOC_HUGE_FIRST) != ACL_SUCCESS);
}

static void refused(int in, int out)
{
	const char *text;

	(void)in;
	(void)out;
	OK(aclInit(NULL));
	THAT(aclrtSetDevice(0) != ACL_SUCCESS);
	text = aclGetRecentErrMsg();
	THAT(text && strstr(text, "drained"));
}

static void run(void (*main)(int in, int out))
{
	int in, out;
	pid_t pid = client_start(main, &in, &out);

	client_assert_ok(pid);
	close(in);
	close(out);
}

/* ---- what npud shows ------------------------------------------------------------------------ */

static void assert_introspects(const char *path, const char *const *words)
{
	sd_bus_message *reply = NULL;
	const char *xml;

	ck_assert_int_ge(sd_bus_call_method(bus.sd, "org.npud", path,
					    "org.freedesktop.DBus.Introspectable", "Introspect",
					    NULL, &reply, ""), 0);
	ck_assert_int_ge(sd_bus_message_read(reply, "s", &xml), 0);
	for (; *words; words++)
		ck_assert_msg(strstr(xml, *words), "%s: no %s in %s", path, *words, xml);
	sd_bus_message_unref(reply);
}

START_TEST(introspection)
{
	static const char *const manager[] = {
		"\"org.npud.Manager1\"", "\"Reset\"", "\"Drain\"", "\"Version\"", "\"Devices\"", NULL,
	};
	static const char *const device[] = {
		"\"org.npud.Device1\"", "\"Name\"", "\"Health\"", "\"Firmware\"", "\"Cores\"",
		"\"MemoryTotal\"", "\"MemoryFree\"", "\"Clients\"", "\"Utilisation\"",
		"\"Fault\"", "\"Reset\"", NULL,
	};

	assert_introspects("/org/npud", manager);
	assert_introspects(DEVICE_PATH, device);
}
END_TEST

static void assert_text(const char *path, const char *interface, const char *name,
			const char *start)
{
	char *text = NULL;

	ck_assert_int_ge(sd_bus_get_property_string(bus.sd, "org.npud", path, interface, name, NULL,
						    &text), 0);
	ck_assert_msg(strncmp(text, start, strlen(start)) == 0, "%s: %s", name, text);
	free(text);
}

START_TEST(properties)
{
	sd_bus_message *reply = NULL;
	const char *object;

	assert_text("/org/npud", NPUD_MANAGER, "Version", "npud ");
	ck_assert_int_ge(sd_bus_get_property(bus.sd, "org.npud", "/org/npud", NPUD_MANAGER,
					     "Devices", NULL, &reply, "ao"), 0);
	ck_assert_int_ge(sd_bus_message_read(reply, "ao", 1, &object), 0);
	ck_assert_str_eq(object, DEVICE_PATH);
	sd_bus_message_unref(reply);
	assert_text(DEVICE_PATH, NPUD_DEVICE, "Name", "NPU");
	assert_text(DEVICE_PATH, NPUD_DEVICE, "Transport", "sim");
	assert_text(DEVICE_PATH, NPUD_DEVICE, "Health", "ok");
	ck_assert_uint_gt(test_bus_u32(bus.sd, "Cores"), 0);
	ck_assert_uint_gt(test_bus_u64(bus.sd, "MemoryTotal"), 900ull << 20);
	ck_assert_uint_le(test_bus_u64(bus.sd, "MemoryTotal"), 1ull << 30);
	ck_assert_uint_eq(test_bus_u32(bus.sd, "Clients"), 0);
	ck_assert(!test_bus_flag(bus.sd, "Drained"));
}
END_TEST

/* What PropertiesChanged has told. */
struct figures {
	uint32_t clients;
	uint64_t memory_free;
	char health[32];
};

static int on_properties(sd_bus_message *msg, void *userdata, sd_bus_error *error)
{
	struct figures *figures = userdata;
	const char *name, *text;

	(void)error;
	ck_assert_int_ge(sd_bus_message_read(msg, "s", &name), 0);
	ck_assert_str_eq(name, NPUD_DEVICE);
	ck_assert_int_ge(sd_bus_message_enter_container(msg, 'a', "{sv}"), 0);
	while (sd_bus_message_enter_container(msg, 'e', "sv") > 0) {
		ck_assert_int_ge(sd_bus_message_read(msg, "s", &name), 0);
		if (strcmp(name, "Clients") == 0) {
			ck_assert_int_ge(sd_bus_message_read(msg, "v", "u", &figures->clients), 0);
		} else if (strcmp(name, "MemoryFree") == 0) {
			ck_assert_int_ge(sd_bus_message_read(msg, "v", "t", &figures->memory_free),
					 0);
		} else if (strcmp(name, "Health") == 0) {
			ck_assert_int_ge(sd_bus_message_read(msg, "v", "s", &text), 0);
			snprintf(figures->health, sizeof(figures->health), "%s", text);
		} else {
			sd_bus_message_skip(msg, "v");
		}
		ck_assert_int_ge(sd_bus_message_exit_container(msg), 0);
	}
	return 0;
}

static void watch_properties(struct figures *figures)
{
	ck_assert_int_ge(sd_bus_match_signal(bus.sd, NULL, "org.npud", DEVICE_PATH,
					     "org.freedesktop.DBus.Properties",
					     "PropertiesChanged", on_properties, figures), 0);
}

static uint64_t total;

static bool one_client(void *arg)
{
	const struct figures *figures = arg;

	return figures->clients == 1 && figures->memory_free &&
	       figures->memory_free <= total - MIB;
}

static bool no_client(void *arg)
{
	const struct figures *figures = arg;

	return figures->clients == 0 && figures->memory_free == total;
}

static bool is_lost(void *arg)
{
	return strcmp(((struct figures *)arg)->health, "lost") == 0;
}

static bool is_ok(void *arg)
{
	return strcmp(((struct figures *)arg)->health, "ok") == 0;
}

START_TEST(changes)
{
	struct figures figures = { 0 };
	int in, out;
	pid_t pid;

	watch_properties(&figures);
	total = test_bus_u64(bus.sd, "MemoryTotal");
	pid = client_start(keeper, &in, &out);
	ck_assert(client_hear(out));
	ck_assert(test_bus_until(bus.sd, one_client, &figures, WAIT_MS));
	ck_assert_uint_eq(test_bus_u32(bus.sd, "Clients"), 1);
	client_say(in);
	client_assert_ok(pid);
	ck_assert(test_bus_until(bus.sd, no_client, &figures, WAIT_MS));
	/* a device that dies, and comes back */
	kill(client_npud.sim, SIGKILL);
	ck_assert(test_bus_until(bus.sd, is_lost, &figures, WAIT_MS));
	ck_assert(test_bus_until(bus.sd, is_ok, &figures, WAIT_MS));
}
END_TEST

static bool used_cpu(void *arg)
{
	return process_cpu_ns(client_npud.npud, false) > *(uint64_t *)arg + IDLE_CPU;
}

START_TEST(idle)
{
	uint64_t cpu = process_cpu_ns(client_npud.npud, false);

	ck_assert(!wait_until(used_cpu, &cpu, IDLE_MS));
}
END_TEST

struct fault {
	unsigned count;
	uint64_t session, address, task, sequence;
	uint32_t pid, uid;
	int address_known;
	char comm[32], kernel[64], kind[64];
};

static int on_fault(sd_bus_message *msg, void *userdata, sd_bus_error *error)
{
	struct fault *fault = userdata;
	const char *comm, *kernel, *kind;

	(void)error;
	ck_assert_int_ge(sd_bus_message_read(msg, "tuusstbstt", &fault->session, &fault->pid,
					     &fault->uid, &comm, &kernel, &fault->address,
					     &fault->address_known, &kind, &fault->task,
					     &fault->sequence), 0);
	snprintf(fault->comm, sizeof(fault->comm), "%s", comm);
	snprintf(fault->kernel, sizeof(fault->kernel), "%s", kernel);
	snprintf(fault->kind, sizeof(fault->kind), "%s", kind);
	fault->count++;
	return 0;
}

static bool has_fault(void *arg)
{
	return ((struct fault *)arg)->count;
}

START_TEST(fault)
{
	struct fault seen = { 0 };
	char *comm = read_file("/proc/self/comm");
	int in, out;
	pid_t pid;

	ck_assert_int_ge(sd_bus_match_signal(bus.sd, NULL, "org.npud", DEVICE_PATH, NPUD_DEVICE,
					     "Fault", on_fault, &seen), 0);
	pid = client_start(faulter, &in, &out);
	ck_assert(client_hear(out));
	ck_assert(test_bus_until(bus.sd, has_fault, &seen, WAIT_MS));
	client_say(in);
	client_assert_ok(pid);
	ck_assert_uint_eq(seen.pid, (uint32_t)pid);
	ck_assert_uint_eq(seen.uid, getuid());
	ck_assert_ptr_nonnull(comm);
	comm[strcspn(comm, "\n")] = '\0';
	ck_assert_str_eq(seen.comm, comm);
	ck_assert_str_eq(seen.kernel, "poke");
	ck_assert(seen.address_known);
	ck_assert_uint_eq(seen.address, BAD_ADDRESS);
	ck_assert_msg(strstr(seen.kind, "not mapped"), "%s", seen.kind);
	ck_assert_uint_eq(seen.count, 1);
	free(comm);
}
END_TEST

/* ---- administrators ------------------------------------------------------------------------- */

static int on_reset(sd_bus_message *msg, void *userdata, sd_bus_error *error)
{
	(void)msg;
	(void)error;
	++*(unsigned *)userdata;
	return 0;
}

static bool was_reset(void *arg)
{
	return *(unsigned *)arg;
}

START_TEST(reset)
{
	sd_bus_error error = SD_BUS_ERROR_NULL;
	unsigned resets = 0;
	int in, out;
	pid_t pid = client_start(loser, &in, &out);

	ck_assert_int_ge(sd_bus_match_signal(bus.sd, NULL, "org.npud", DEVICE_PATH, NPUD_DEVICE,
					     "Reset", on_reset, &resets), 0);
	ck_assert(client_hear(out));
	ck_assert_int_eq(test_bus_admin(bus.sd, "Reset", 0, -1, NULL), 0);
	ck_assert(test_bus_until(bus.sd, was_reset, &resets, WAIT_MS));
	client_say(in);
	client_assert_ok(pid);
	assert_text(DEVICE_PATH, NPUD_DEVICE, "Health", "ok");
	pid = client_start(keeper, &in, &out);
	client_say(in);
	client_assert_ok(pid);
	ck_assert_uint_eq(resets, 1);
	ck_assert_int_lt(test_bus_admin(bus.sd, "Reset", 7, -1, &error), 0);
	ck_assert_str_eq(error.name, "org.npud.Error.NoDevice");
	sd_bus_error_free(&error);
}
END_TEST

START_TEST(drain)
{
	int in, out;
	pid_t pid = client_start(keeper, &in, &out);

	ck_assert(client_hear(out));
	ck_assert_int_eq(test_bus_admin(bus.sd, "Drain", 0, true, NULL), 0);
	ck_assert(test_bus_flag(bus.sd, "Drained"));
	run(refused);
	client_say(in);
	client_assert_ok(pid);
	ck_assert_int_eq(test_bus_admin(bus.sd, "Drain", 0, false, NULL), 0);
	ck_assert(!test_bus_flag(bus.sd, "Drained"));
	pid = client_start(keeper, &in, &out);
	client_say(in);
	client_assert_ok(pid);
}
END_TEST

/* As another user: the name of the error, whether properties can be read, as exit status. */
static void assert_as_nobody(const char *wanted, gid_t group)
{
	pid_t pid = fork();
	int status;

	ck_assert_int_ge(pid, 0);
	if (!pid) {
		sd_bus_error error = SD_BUS_ERROR_NULL;
		sd_bus *sd;
		int r;

		if (setgroups(group ? 1 : 0, &group) || setresgid(NOBODY, NOBODY, NOBODY) ||
		    setresuid(NOBODY, NOBODY, NOBODY))
			_exit(2);
		sd = test_bus_connect(&bus);
		if (!sd || test_bus_u32(sd, "Number") != 0)
			_exit(3);
		r = test_bus_admin(sd, "Drain", 0, true, &error);
		if (r < 0 ? !wanted || strcmp(error.name, wanted) : !!wanted) {
			fprintf(stderr, "%d: %s: %s\n", r, error.name, error.message);
			_exit(4);
		}
		sd_bus_error_free(&error);
		sd_bus_close_unref(sd);
		_exit(0);
	}
	status = wait_for(pid, WAIT_MS);
	ck_assert_msg(WIFEXITED(status) && !WEXITSTATUS(status), "status %x", status);
}

START_TEST(only_administrators)
{
	const struct group *admins = getgrnam(ADMINS);

	if (geteuid() != 0) {
		fprintf(stderr, "test_bus: not root: other users are not tested\n");
		return;
	}
	assert_as_nobody(SD_BUS_ERROR_ACCESS_DENIED, 0);
	ck_assert(!test_bus_flag(bus.sd, "Drained"));
	ck_assert_ptr_nonnull(admins);
	assert_as_nobody(NULL, admins->gr_gid);
	ck_assert(test_bus_flag(bus.sd, "Drained"));
}
END_TEST

/* ---- polkit --------------------------------------------------------------------------------- */

/* Decides as it was told: bit 0 allowed, bit 1 challenge. */
static int on_check(sd_bus_message *msg, void *userdata, sd_bus_error *error)
{
	unsigned answer = *(unsigned *)userdata;
	const char *kind, *key, *name, *action;

	(void)error;
	THAT(sd_bus_message_read(msg, "(sa{sv})s", &kind, 1, &key, "s", &name, &action) >= 0);
	THAT(strcmp(kind, "system-bus-name") == 0 && strcmp(key, "name") == 0 && name[0] == ':');
	THAT(strcmp(action, "org.npud.drain") == 0);
	return sd_bus_reply_method_return(msg, "(bba{ss})", answer & 1, answer >> 1 & 1, 0);
}

static const sd_bus_vtable polkit_vtable[] = {
	SD_BUS_VTABLE_START(0),
	SD_BUS_METHOD("CheckAuthorization", "(sa{sv})sa{ss}us", "(bba{ss})", on_check,
		      SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_VTABLE_END,
};

static unsigned polkit_answer;

static void polkit(int in, int out)
{
	sd_bus *sd = test_bus_connect(&bus);

	(void)in;
	THAT(sd);
	THAT(sd_bus_add_object_vtable(sd, NULL, "/org/freedesktop/PolicyKit1/Authority",
				      "org.freedesktop.PolicyKit1.Authority", polkit_vtable,
				      &polkit_answer) >= 0);
	THAT(sd_bus_request_name(sd, "org.freedesktop.PolicyKit1", 0) >= 0);
	client_say(out);
	for (;;) {
		int r = sd_bus_process(sd, NULL);

		THAT(r >= 0);
		if (r == 0)
			sd_bus_wait(sd, UINT64_MAX);
	}
}

START_TEST(polkit_decides)
{
	static const char *const wanted[] = {
		SD_BUS_ERROR_ACCESS_DENIED, NULL, SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED,
	};

	if (geteuid() != 0)
		return;
	for (polkit_answer = 0; polkit_answer < 3; polkit_answer++) {
		int in, out;
		pid_t pid = client_start(polkit, &in, &out);

		ck_assert(client_hear(out));
		assert_as_nobody(wanted[polkit_answer], 0);
		ck_assert_int_eq(test_bus_flag(bus.sd, "Drained"), polkit_answer >= 1);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		close(in);
		close(out);
	}
}
END_TEST

/* ---- no bus --------------------------------------------------------------------------------- */

static unsigned count_lines(const char *what)
{
	char *log = read_file(client_npud.log);
	unsigned count = 0;

	for (const char *p = log; p && (p = strstr(p, what)); p++)
		count++;
	free(log);
	return count;
}

START_TEST(without_a_bus)
{
	test_bus_prepare(&bus);
	start_npud();
	run(client_memory);
	ck_assert_uint_eq(count_lines("no message bus"), 1);
	npud_stop(&client_npud);
	npud_start(&client_npud, "[management]\nbus = off\n");
	run(client_memory);
	ck_assert_uint_eq(count_lines("mgmt"), 0);
	npud_stop(&client_npud);
	test_bus_stop(&bus);
}
END_TEST

START_TEST(joins_when_the_bus_comes)
{
	test_bus_prepare(&bus);
	start_npud();
	for (unsigned round = 0; round < 2; round++) {
		test_bus_launch(&bus);
		ck_assert(test_bus_until(bus.sd, npud_is_there, bus.sd, WAIT_MS));
		ck_assert_uint_gt(test_bus_u32(bus.sd, "Cores"), 0);
		test_bus_end(&bus);
		run(client_memory);
	}
	teardown();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("bus");
	TCase *without = tcase_create("without"), *with;

	tcase_set_timeout(without, 120);
	tcase_add_test(without, without_a_bus);
	suite_add_tcase(suite, without);
	if (!test_bus_installed()) {
		fprintf(stderr, "test_bus: dbus-daemon is not installed: only npud without a bus "
				"is tested\n");
		return run_suite(suite);
	}
	tcase_add_test(without, joins_when_the_bus_comes);
	with = tcase_create("with a bus");
	tcase_add_checked_fixture(with, setup, teardown);
	tcase_set_timeout(with, 120);
	tcase_add_test(with, introspection);
	tcase_add_test(with, properties);
	tcase_add_test(with, changes);
	tcase_add_test(with, idle);
	tcase_add_test(with, fault);
	tcase_add_test(with, reset);
	tcase_add_test(with, drain);
	tcase_add_test(with, only_administrators);
	tcase_add_test(with, polkit_decides);
	suite_add_tcase(suite, with);
	return run_suite(suite);
}
