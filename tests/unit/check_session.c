/* SPDX-License-Identifier: Apache-2.0 */
/*
 * daemon/core against a fake board: what sessions are charged and when it comes back, modules whose
 * event got lost, lines in the log, closing without memory.
 */
#include "daemon/core/space.h"
#include "tests/lib/fake_board.h"
#include "tests/lib/runner.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PAGE NPU_PAGE_SMALL

static char dir[64];
static struct conf conf;
static struct fake_board *board;
static struct loop *loop;
static struct core *core;
static bool opened;

/* What the board does and has seen; its thread only reads the settings. */
static _Atomic uint64_t host_limit, load_user;
static _Atomic unsigned int destroyed, lookups;
static _Atomic int module_status; /* of FUNC_LOOKUP; 0: `funcs` kernels */
static _Atomic uint32_t funcs;
static _Atomic bool drop_in_load;  /* an event was dropped before MODULE_LOAD ends */
static struct npu_event to_send;   /* at CTX_CREATE */
static _Atomic unsigned int sends; /* how often */

static _Atomic bool no_jobs;

struct hal_job *__real_hal_job_new(unsigned int nr, void (*done)(struct hal_job *job), void *owner);
struct hal_job *__wrap_hal_job_new(unsigned int nr, void (*done)(struct hal_job *job), void *owner);

struct hal_job *__wrap_hal_job_new(unsigned int nr, void (*done)(struct hal_job *job), void *owner)
{
	return atomic_load(&no_jobs) ? NULL : __real_hal_job_new(nr, done, owner);
}

static void on_call(struct fake_board *from, struct fake_call *call, void *arg)
{
	struct npu_event dropped = { .type = NPU_EVENT_ENGINE, .size = sizeof(dropped), .lost = 1 };
	struct npu_func_lookup *lookup = call->arg;

	(void)arg;
	fake_board_obey(call);
	switch (call->head->nr) {
	case _IOC_NR(NPU_IOCTL_SESSION_CREATE):
		atomic_store(&host_limit, ((struct npu_session_create *)call->arg)->host_limit);
		break;
	case _IOC_NR(NPU_IOCTL_SESSION_DESTROY):
		atomic_fetch_add(&destroyed, 1);
		break;
	case _IOC_NR(NPU_IOCTL_CTX_CREATE):
		for (unsigned int i = atomic_exchange(&sends, 0); i; i--)
			fake_board_event(from, &to_send);
		break;
	case _IOC_NR(NPU_IOCTL_MODULE_LOAD):
		atomic_store(&load_user, ((struct npu_module_load *)call->arg)->user);
		if (atomic_load(&drop_in_load))
			fake_board_event(from, &dropped);
		break;
	case _IOC_NR(NPU_IOCTL_FUNC_LOOKUP):
		atomic_fetch_add(&lookups, 1);
		call->result = atomic_load(&module_status);
		if (call->result == 0 && lookup->func >= atomic_load(&funcs))
			call->result = -ENOENT;
		break;
	}
}

static void on_opened(void *arg)
{
	(void)arg;
	opened = true;
	loop_stop(loop);
}

static void setup(void)
{
	strcpy(dir, "/tmp/check_session.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	log_open(LOG_LEVEL_WARNING);
	conf_init(&conf);
	strcpy(conf.transport, "sim");
	conf.rpc_timeout_ms = 2000;
}

static void start(void)
{
	struct fake_config fake = { .major = NPU_UAPI_MAJOR, .call = on_call };
	struct core_config config = {
		.conf = &conf, .runtime_dir = dir, .sim_attach_only = true, .open_files = 4000
	};

	board = fake_board_start(dir, &fake);
	ck_assert_int_eq(loop_new(&loop), 0);
	ck_assert_int_eq(core_new(loop, &config, on_opened, NULL, &core), 0);
	while (!opened)
		ck_assert_int_eq(loop_run(loop), 0);
}

static void on_idle(void *arg)
{
	(void)arg;
	loop_stop(loop);
}

/* All sessions must have been closed. */
static void finish(void)
{
	core_watch_idle(core, on_idle, NULL);
	while (!core_idle(core))
		ck_assert_int_eq(loop_run(loop), 0);
	core_free(core);
	loop_free(loop);
	fake_board_stop(board);
	rmdir(dir);
}

static struct op op;
static bool ended;

static void on_done(struct op *from)
{
	ck_assert_ptr_eq(from, &op);
	ended = true;
	loop_stop(loop);
}

static struct op *fresh(void)
{
	op_release(&op);
	op_init(&op, on_done);
	ended = false;
	return &op;
}

/* The result of an operation that was started with r. */
static int outcome(int r)
{
	if (r < 0)
		return r;
	while (!ended)
		ck_assert_int_eq(loop_run(loop), 0);
	return op.error;
}

static struct session *open_session(uid_t uid)
{
	struct session_peer peer = { .pid = 1, .uid = uid, .comm = "check" };
	struct session *session;

	ck_assert_int_eq(session_open(core, &peer, fresh(), &session), 0);
	return session;
}

static int open_device(struct session *session)
{
	int r = outcome(session_open_device(session, 0, fresh()));

	op_release(&op);
	return r;
}

static uint64_t alloc(struct session *session, uint64_t bytes, uint32_t kind)
{
	ck_assert_int_eq(outcome(memory_alloc(session, 0, bytes, kind, 0, fresh())), 0);
	return op.memory.id;
}

/* Makes the board send the event that many times. */
static void event(struct session *session, unsigned int count)
{
	atomic_store(&sends, count);
	ck_assert_int_eq(outcome(context_create(session, 0, &(struct context_params){ 0 },
						fresh())),
			 0);
}

static uint64_t used(const struct session *session, enum charge_kind kind)
{
	return session->charge.used[kind];
}

START_TEST(slabs_are_charged)
{
	uint64_t half = (uint64_t)sysconf(_SC_PHYS_PAGES) / 2 * (uint64_t)sysconf(_SC_PAGESIZE);
	struct session *sessions[64];

	start();
	/* as many as the default allows can all have the device open, and still allocate */
	for (unsigned int i = 0; i < 64; i++) {
		sessions[i] = open_session(1000);
		ck_assert_int_eq(open_device(sessions[i]), 0);
		ck_assert_uint_gt(used(sessions[i], CHARGE_HOST), 0);
	}
	ck_assert_uint_eq(atomic_load(&host_limit), half);
	ck_assert_uint_le(charge_user_used(&sessions[0]->charge, CHARGE_HOST), half / 2);
	alloc(sessions[0], half / 4, NPU_MEM_HOST);
	ck_assert_int_eq(outcome(session_close_device(sessions[0], 0, fresh())), 0);
	ck_assert_uint_eq(used(sessions[0], CHARGE_HOST), 0);
	ck_assert_uint_eq(used(sessions[0], CHARGE_FILE), 0);
	for (unsigned int i = 0; i < 64; i++)
		session_close(sessions[i]);
	finish();
}
END_TEST

START_TEST(slabs_have_to_fit)
{
	struct session *session;

	conf.slab_charge = 3 << 20;
	conf.host_memory = 2 << 20;
	start();
	session = open_session(1000);
	ck_assert_int_eq(open_device(session), -EDQUOT);
	ck_assert_msg(strstr(op.text, "[limits] host_memory") != NULL, "%s", op.text);
	ck_assert_uint_eq(used(session, CHARGE_FILE), 0);
	session_close(session);
	finish();
}
END_TEST

START_TEST(files_are_limited)
{
	struct session *first, *second, *other;
	uint64_t memory;

	conf.files_per_user = 18;
	start();
	first = open_session(1000);
	second = open_session(1000);
	other = open_session(1001);
	ck_assert_int_eq(open_device(first), 0);
	ck_assert_int_eq(open_device(second), 0);
	ck_assert_int_eq(open_device(other), 0);
	memory = alloc(first, PAGE, NPU_MEM_DEVICE);
	alloc(second, PAGE, NPU_MEM_HOST);
	ck_assert_int_eq(outcome(memory_alloc(first, 0, PAGE, NPU_MEM_DEVICE, 0, fresh())),
			 -EDQUOT);
	ck_assert_msg(strstr(op.text, "this user has 18 of 18") != NULL, "%s", op.text);
	ck_assert_msg(strstr(op.text, "[limits] files_per_user") != NULL, "%s", op.text);
	alloc(other, PAGE, NPU_MEM_DEVICE);
	ck_assert_int_eq(outcome(memory_free(first, memory, fresh())), 0);
	alloc(second, PAGE, NPU_MEM_DEVICE);
	session_close(first);
	session_close(second);
	session_close(other);
	finish();
}
END_TEST

START_TEST(files_have_a_default)
{
	struct session *session;

	start();
	session = open_session(1000);
	ck_assert_uint_eq(core->charges.limits.user[CHARGE_FILE], 1000);
	session_close(session);
	finish();
}
END_TEST

/* Starts to load an image of a page; the board sends no event. */
static uint64_t start_load(struct session *session)
{
	uint64_t image = alloc(session, PAGE, NPU_MEM_IMAGE);

	ck_assert_int_eq(module_load(session, image, PAGE - 100, fresh()), 0);
	return image;
}

static bool side_ended;

static void on_side_done(struct op *from)
{
	(void)from;
	side_ended = true;
	loop_stop(loop);
}

/* Makes the board send an event, while `op` may be under way; returns when it has been seen. */
static void send_event(struct session *session, const struct npu_event *what)
{
	static struct op side;

	to_send = *what;
	atomic_store(&sends, 1);
	op_init(&side, on_side_done);
	side_ended = false;
	ck_assert_int_eq(context_create(session, 0, &(struct context_params){ 0 }, &side), 0);
	while (!side_ended)
		ck_assert_int_eq(loop_run(loop), 0);
	ck_assert_int_eq(side.error, 0);
}

/* The event of the module whose loading began last. */
static struct npu_event loaded(struct session *session)
{
	return (struct npu_event){ .type = NPU_EVENT_MODULE,
				   .size = sizeof(struct npu_event),
				   .session = session->spaces[0]->hal_id,
				   .user = atomic_load(&load_user),
				   .module.funcs = 4 };
}

START_TEST(a_module_keeps_the_charge_of_its_image)
{
	struct session *session;
	struct npu_event what;
	uint64_t image, before, files;
	uint32_t module;

	conf.slab_charge = PAGE;
	start();
	session = open_session(1000);
	ck_assert_int_eq(open_device(session), 0);
	before = used(session, CHARGE_HOST);
	files = used(session, CHARGE_FILE);
	image = start_load(session);
	what = (struct npu_event){ .type = NPU_EVENT_ENGINE, .size = sizeof(what) };
	send_event(session, &what); /* the board has the module by then */
	what = loaded(session);
	send_event(session, &what);
	ck_assert_int_eq(outcome(0), 0);
	ck_assert_uint_eq(op.module.funcs, 4);
	module = op.module.id;
	ck_assert_int_eq(outcome(memory_free(session, image, fresh())), 0);
	ck_assert_uint_eq(used(session, CHARGE_HOST), before + PAGE);
	ck_assert_uint_eq(used(session, CHARGE_FILE), files + 1);
	ck_assert_uint_eq(session->spaces[0]->host_used, PAGE);
	ck_assert_int_eq(outcome(module_unload(session, module, fresh())), 0);
	ck_assert_uint_eq(used(session, CHARGE_HOST), before);
	ck_assert_uint_eq(used(session, CHARGE_FILE), files);
	ck_assert_uint_eq(session->spaces[0]->host_used, 0);
	session_close(session);
	finish();
}
END_TEST

START_TEST(an_image_fills_its_object)
{
	struct session *session;
	uint64_t image;

	start();
	session = open_session(1000);
	ck_assert_int_eq(open_device(session), 0);
	image = alloc(session, 4 * PAGE, NPU_MEM_IMAGE);
	ck_assert_int_eq(module_load(session, image, 3 * PAGE, fresh()), -EINVAL);
	ck_assert_msg(strstr(op.text, "as large as the image") != NULL, "%s", op.text);
	ck_assert_int_eq(module_load(session, image, 3 * PAGE + 1, fresh()), 0);
	session_close(session);
	finish();
}
END_TEST

static const uint32_t counts[] = { 1, 2, 3, 4, 5, 7, 8, 100, 1023 };

/* Somebody else's flood took the event with it: the module is asked for. */
START_TEST(survives_a_lost_event)
{
	struct npu_event dropped = { .type = NPU_EVENT_ENGINE, .size = sizeof(dropped), .lost = 7 };
	struct session *session;
	uint64_t begin;

	atomic_store(&funcs, counts[_i]);
	start();
	session = open_session(1000);
	ck_assert_int_eq(open_device(session), 0);
	begin = loop_now_ms();
	start_load(session);
	send_event(session, &dropped);
	ck_assert_int_eq(outcome(0), 0);
	ck_assert_uint_eq(op.module.funcs, counts[_i]);
	/* again, with the record dropped while the call was under way */
	atomic_store(&drop_in_load, true);
	start_load(session);
	ck_assert_int_eq(outcome(0), 0);
	ck_assert_uint_eq(op.module.funcs, counts[_i]);
	ck_assert_uint_lt(loop_now_ms() - begin, conf.rpc_timeout_ms);
	session_close(session);
	finish();
}
END_TEST

START_TEST(learns_of_a_refusal_that_was_lost)
{
	struct session *session;

	atomic_store(&module_status, -EINVAL);
	atomic_store(&drop_in_load, true);
	start();
	session = open_session(1000);
	ck_assert_int_eq(open_device(session), 0);
	start_load(session);
	ck_assert_int_eq(outcome(0), -ENOEXEC);
	ck_assert_msg(strstr(op.text, "Invalid argument") != NULL, "%s", op.text);
	session_close(session);
	finish();
}
END_TEST

START_TEST(waits_on_for_a_module_that_loads)
{
	struct session *session;
	struct npu_event what;

	atomic_store(&module_status, -EAGAIN);
	atomic_store(&drop_in_load, true);
	start();
	session = open_session(1000);
	ck_assert_int_eq(open_device(session), 0);
	start_load(session);
	/* the board serves in order, so by the second event it has been asked, and said "loading" */
	what = (struct npu_event){ .type = NPU_EVENT_ENGINE, .size = sizeof(what) };
	while (atomic_load(&lookups) == 0)
		send_event(session, &what);
	ck_assert(!ended);
	what = loaded(session);
	send_event(session, &what);
	ck_assert_int_eq(outcome(0), 0);
	ck_assert_uint_eq(op.module.funcs, 4);
	session_close(session);
	finish();
}
END_TEST

/* Lines of the log with these words. */
static unsigned int logged(const char *path, const char *words)
{
	unsigned int count = 0;
	char line[LOG_LINE_MAX + 2];
	FILE *file = fopen(path, "re");

	ck_assert_ptr_nonnull(file);
	while (fgets(line, sizeof(line), file))
		count += strstr(line, words) != NULL;
	fclose(file);
	return count;
}

START_TEST(logs_within_limits)
{
	struct session *loud, *quiet;
	char path[96];
	int fd, saved = dup(STDERR_FILENO);

	start();
	snprintf(path, sizeof(path), "%s/log", dir);
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	ck_assert_int_ge(fd, 0);
	loud = open_session(1000);
	quiet = open_session(1001);
	ck_assert_int_eq(open_device(loud), 0);
	ck_assert_int_eq(open_device(quiet), 0);
	dup2(fd, STDERR_FILENO);
	to_send = (struct npu_event){ .type = NPU_EVENT_FAULT,
				      .size = sizeof(to_send),
				      .session = loud->spaces[0]->hal_id,
				      .lost = 1,
				      .fault.kind = NPU_FAULT_ACCESS };
	event(loud, 200);
	to_send.session = quiet->spaces[0]->hal_id;
	event(quiet, 1);
	dup2(saved, STDERR_FILENO);
	/* the second window may have begun meanwhile */
	ck_assert_uint_ge(logged(path, "[session 1 "), 20);
	ck_assert_uint_le(logged(path, "[session 1 "), 40);
	ck_assert_uint_eq(logged(path, "[session 2 "), 1);
	ck_assert_uint_ge(logged(path, "dropped 1 event records"), 1);
	ck_assert_uint_le(logged(path, "dropped 1 event records"), 20);
	close(fd);
	close(saved);
	unlink(path);
	session_close(loud);
	session_close(quiet);
	finish();
}
END_TEST

/* With no memory for another job the device is still told that a session has ended. */
START_TEST(closes_without_memory)
{
	struct session *session;

	start();
	session = open_session(1000);
	ck_assert_int_eq(open_device(session), 0);
	atomic_store(&no_jobs, true);
	session_close(session);
	finish();
	ck_assert_uint_eq(atomic_load(&destroyed), 1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("session");
	TCase *tc = tcase_create("session");

	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_set_timeout(tc, 30);
	tcase_add_test(tc, slabs_are_charged);
	tcase_add_test(tc, slabs_have_to_fit);
	tcase_add_test(tc, files_are_limited);
	tcase_add_test(tc, files_have_a_default);
	tcase_add_test(tc, a_module_keeps_the_charge_of_its_image);
	tcase_add_test(tc, an_image_fills_its_object);
	tcase_add_loop_test(tc, survives_a_lost_event, 0, sizeof(counts) / sizeof(counts[0]));
	tcase_add_test(tc, learns_of_a_refusal_that_was_lost);
	tcase_add_test(tc, waits_on_for_a_module_that_loads);
	tcase_add_test(tc, logs_within_limits);
	tcase_add_test(tc, closes_without_memory);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
