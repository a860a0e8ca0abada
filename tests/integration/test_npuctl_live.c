/* SPDX-License-Identifier: Apache-2.0 */
/*
 * npuctl against a real npud: what a client has is what is shown, in tables and in JSON; who sees
 * whose clients; and what is said when npud is stopped, and when it has gone.
 */
#include <acl/acl.h>
#include <check.h>
#include <json-c/json.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/npuctl_run.h"
#include "tests/lib/npud_fixture.h"

#define MIB    (1ull << 20)
#define NOBODY 65534

static struct npud_fixture f;

static void setup(void)
{
	npud_start(&f, "[daemon]\nsocket_mode = 0666\n");
	ck_assert_int_eq(chmod(f.dir, 0711), 0);
}

static void teardown(void)
{
	npud_stop(&f);
}

struct holder {
	pid_t pid;
	int ready, leave; /* pipes */
};

/* A client with a context, a stream and 64 MiB, until it may leave. */
static struct holder holder_start(void)
{
	int ready[2], leave[2];
	struct holder holder;
	char byte;

	ck_assert_int_eq(pipe(ready), 0);
	ck_assert_int_eq(pipe(leave), 0);
	holder = (struct holder){ .pid = fork(), .ready = ready[0], .leave = leave[1] };
	ck_assert_int_ge(holder.pid, 0);
	if (holder.pid == 0) {
		aclrtStream stream;
		void *memory;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_NAME, "holder");
		close(leave[1]);
		if (aclInit(NULL) || aclrtSetDevice(0) || aclrtCreateStream(&stream) ||
		    aclrtMalloc(&memory, 64 * MIB, ACL_MEM_MALLOC_HUGE_FIRST))
			_exit(1);
		if (write(ready[1], "r", 1) != 1 || read(leave[0], &byte, 1) < 0)
			_exit(1);
		_exit(0);
	}
	close(ready[1]);
	close(leave[0]);
	ck_assert_int_eq(read(holder.ready, &byte, 1), 1);
	return holder;
}

static void holder_end(struct holder *holder)
{
	int status;

	close(holder->leave);
	close(holder->ready);
	status = wait_for(holder->pid, 10000);
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static struct json_object *json_of(const struct npuctl_run *run)
{
	struct json_object *object;

	ck_assert_msg(run->code == NPUCTL_OK, "exit %d: %s", run->code, run->err);
	ck_assert_str_eq(run->err, "");
	object = json_tokener_parse(run->out);
	ck_assert_msg(object != NULL, "%s", run->out);
	return object;
}

static struct json_object *member(struct json_object *object, const char *key)
{
	struct json_object *value = NULL;

	ck_assert_msg(json_object_object_get_ex(object, key, &value), "no \"%s\"", key);
	return value;
}

static uint64_t number(struct json_object *object, const char *key)
{
	return json_object_get_uint64(member(object, key));
}

/* The row of that client in a list, or NULL. */
static struct json_object *find_pid(struct json_object *list, pid_t pid)
{
	for (size_t i = 0; i < json_object_array_length(list); i++) {
		struct json_object *item = json_object_array_get_idx(list, i);

		if (number(item, "pid") == (uint64_t)pid)
			return item;
	}
	return NULL;
}

static bool is_gone(void *arg)
{
	struct json_object *root = json_of(npuctl("ps", "--json"));
	bool gone = find_pid(member(root, "clients"), *(pid_t *)arg) == NULL;

	json_object_put(root);
	return gone;
}

START_TEST(test_shows_client)
{
	struct holder holder = holder_start();
	struct json_object *root, *item;
	char pid[16];

	root = json_of(npuctl("ps", "--json"));
	item = find_pid(member(root, "clients"), holder.pid);
	ck_assert_ptr_nonnull(item);
	ck_assert_str_eq(json_object_get_string(member(item, "comm")), "holder");
	ck_assert_uint_eq(number(item, "uid"), getuid());
	ck_assert_uint_eq(number(item, "device"), 0);
	ck_assert_uint_ge(number(item, "memory"), 64 * MIB);
	ck_assert_uint_lt(number(item, "memory"), 80 * MIB);
	json_object_put(root);

	root = json_of(npuctl("mem", "--json"));
	item = json_object_array_get_idx(member(root, "devices"), 0);
	ck_assert_uint_ge(number(item, "used"), 64 * MIB);
	ck_assert_uint_eq(number(item, "used") + number(item, "free") + number(item, "bad"),
			  number(item, "total"));
	item = find_pid(member(item, "clients"), holder.pid);
	ck_assert_ptr_nonnull(item);
	ck_assert_uint_ge(number(item, "used"), 64 * MIB);
	json_object_put(root);

	root = json_of(npuctl("status", "--json"));
	ck_assert_uint_eq(number(root, "pid"), (uint64_t)f.npud);
	ck_assert_str_eq(json_object_get_string(member(root, "runtime_dir")), f.dir);
	item = json_object_array_get_idx(member(root, "devices"), 0);
	ck_assert_uint_eq(number(item, "clients"), 1);
	ck_assert_uint_le(number(item, "engines"), 1); /* made when first needed */
	json_object_put(root);

	snprintf(pid, sizeof(pid), "%d", holder.pid);
	ck_assert_ptr_nonnull(strstr(npuctl("ps")->out, pid));
	ck_assert_ptr_nonnull(strstr(npuctl("mem")->out, pid));
	ck_assert_ptr_nonnull(strstr(npuctl("status")->out, "npu0"));
	ck_assert_ptr_nonnull(strstr(npuctl("--json", "version")->out, "protocol_major"));

	holder_end(&holder);
	ck_assert(wait_until(is_gone, &holder.pid, 10000));
}
END_TEST

/* npuctl is no client: it shows up nowhere. */
START_TEST(test_not_a_client)
{
	ck_assert_str_eq(npuctl("ps")->out, "no clients\n");
}
END_TEST

START_TEST(test_other_users)
{
	static const char *const ps[] = { "ps", NULL }, *const status[] = { "status", NULL };
	const struct npuctl_run *run;
	struct holder holder;
	char pid[16];

	if (geteuid() != 0)
		return; /* needs a second user */
	holder = holder_start();
	run = npuctl_as(NOBODY, NULL, ps);
	/* 126, 127: that user cannot even reach the build directory */
	if (run->code < 126) {
		snprintf(pid, sizeof(pid), "%d", holder.pid);
		ck_assert_msg(run->code == NPUCTL_OK, "exit %d: %s", run->code, run->err);
		ck_assert_ptr_nonnull(strstr(run->out, "1 client of other users not shown"));
		ck_assert_ptr_null(strstr(run->out, pid));
		ck_assert_int_eq(npuctl_as(NOBODY, NULL, status)->code, NPUCTL_OK);
	}
	holder_end(&holder);
}
END_TEST

START_TEST(test_stopped_and_gone)
{
	const struct npuctl_run *run;

	ck_assert_int_eq(kill(f.npud, SIGSTOP), 0);
	run = npuctl("status");
	npuctl_says(run, NPUCTL_NO_ANSWER, "");
	ck_assert_uint_lt(run->ms, 8000);
	ck_assert_int_eq(kill(f.npud, SIGCONT), 0);
	run = npuctl("status");
	ck_assert_msg(run->code == NPUCTL_OK, "exit %d: %s", run->code, run->err);

	npud_end(&f, SIGTERM);
	npuctl_says(npuctl("status"), NPUCTL_NOT_RUNNING, f.socket);
	npud_launch(&f);
	ck_assert_int_eq(npuctl("status")->code, NPUCTL_OK);
	npud_end(&f, SIGKILL);
	npuctl_says(npuctl("status"), NPUCTL_NOT_RUNNING, f.socket);
	npud_launch(&f);
	ck_assert_int_eq(npuctl("ps")->code, NPUCTL_OK);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("npuctl with npud");
	TCase *tcase = tcase_create("npuctl");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_set_timeout(tcase, 60);
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, test_shows_client);
	tcase_add_test(tcase, test_not_a_client);
	tcase_add_test(tcase, test_other_users);
	tcase_add_test(tcase, test_stopped_and_gone);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
