/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who holds what, and that nothing is left: order of destruction, sharing, orphans, pending ends,
 * and the whole scenario with each allocation and each admin command failing in turn.
 */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kdrv/core/npu_core_int.h"
#include "tests/lib/core_rig.h"

#define P NPU_PAGE_SMALL
#define MEMORY (256ull << 20)

static struct core_rig rig;

static void setup(void)
{
	ck_assert_int_eq(core_rig_init(&rig, MEMORY, CORE_RIG_CAPS, 5), 0);
}

static void teardown(void)
{
	core_rig_fini(&rig);
}

static uint64_t counter(uint64_t session, enum npu_counter which)
{
	uint64_t value = 0;

	ck_assert_int_eq(core_rig_counter(&rig, session, which, &value), 0);
	return value;
}

static uint64_t memory_free(void)
{
	struct npu_query query;

	ck_assert_int_eq(core_rig_query(&rig, &query), 0);
	return query.memory_free;
}

static int export(uint64_t session, uint64_t mem, uint64_t token[2])
{
	struct npu_mem_export x = { .head.session = session, .mem = mem };
	int r = CORE_CALL(&rig, MEM_EXPORT, &x);

	if (r == 0)
		memcpy(token, x.token, sizeof(x.token));
	return r;
}

static int import(uint64_t session, const uint64_t token[2], uint64_t *ret_mem)
{
	struct npu_mem_import i = { .head.session = session, .token = { token[0], token[1] } };
	int r = CORE_CALL(&rig, MEM_IMPORT, &i);

	if (r == 0)
		*ret_mem = i.mem;
	return r;
}

static void load_done(uint64_t session, uint32_t module, int status)
{
	static const struct npu_core_func funcs[] = {
		{ .name = "add\tone", .args_size = 16, .params = 2, .param_sizes = { 8, 4 } },
		{ .name = "scale", .args_size = 8, .params = 1, .param_sizes = { 8 } },
	};

	npu_core_module_done(rig.core, core_rig_find(&rig, session), module, status,
			     status ? NULL : funcs, status ? 0 : 2,
			     status ? "not an image\n" : NULL);
}

/* Something of everything; stops at the first failure. */
static int scenario(uint64_t *ret_session)
{
	struct npu_obj_tag tag = { .head.flags = NPU_TAG_SET, .type = NPU_OBJ_SESSION, .bytes = 9 };
	struct npu_host_register host = { .bytes = P, .address = NPU_WINDOW_BASE + 64 * P };
	struct npu_queue_ctrl ctrl = { .op = NPU_QUEUE_ABORT };
	struct npu_mem_alloc big = { .kind = NPU_MEM_DEVICE, .bytes = 5ull << 20 };
	uint64_t session = 0, other = 0, mem = 0, image = 0, pinned = 0, shared = 0, token[2];
	uint32_t ctx = 0, queue = 0, module = 0, i;
	int r;

	r = core_rig_session(&rig, &session);
	if (r < 0)
		return r;
	*ret_session = session;
	tag.head.session = session;
	tag.id = session;
	big.head.session = session;
	big.head.flags = NPU_MEM_HUGE_FIRST;
	if ((r = CORE_CALL(&rig, OBJ_TAG, &tag)) < 0 || (r = core_rig_ctx(&rig, session, &ctx)) < 0)
		return r;
	for (i = 0; i < 20; i++) {
		if ((r = core_rig_queue(&rig, session, ctx, &queue)) < 0)
			return r;
	}
	ctrl.head.session = session;
	ctrl.queue = queue;
	if ((r = CORE_CALL(&rig, QUEUE_CTRL, &ctrl)) < 0 ||
	    (r = core_rig_mem(&rig, session, NPU_MEM_DEVICE, 3 * P, &mem)) < 0 ||
	    (r = CORE_CALL(&rig, MEM_ALLOC, &big)) < 0 ||
	    (r = core_rig_map(&rig, session, mem, NPU_WINDOW_BASE, P)) < 0 ||
	    (r = core_rig_map(&rig, session, mem, NPU_WINDOW_BASE + P, 2 * P)) < 0 ||
	    (r = core_rig_mem(&rig, session, NPU_MEM_HOST, P, &pinned)) < 0)
		return r;
	host.head.session = session;
	host.mem = pinned;
	if ((r = CORE_CALL(&rig, HOST_REGISTER, &host)) < 0 ||
	    (r = core_rig_mem(&rig, session, NPU_MEM_IMAGE, P, &image)) < 0 ||
	    (r = core_rig_module(&rig, session, image, &module)) < 0)
		return r;
	load_done(session, module, 0);
	if ((r = core_rig_mem_free(&rig, session, image)) < 0 ||
	    (r = export(session, mem, token)) < 0 || (r = core_rig_session(&rig, &other)) < 0)
		return r;
	if ((r = import(other, token, &shared)) < 0 ||
	    (r = core_rig_map(&rig, other, shared, NPU_WINDOW_BASE, 3 * P)) < 0)
		return r;
	return core_rig_mem_free(&rig, session, mem);
}

START_TEST(test_order)
{
	uint64_t session, image;
	uint32_t ctx, queue, module;
	struct npu_ctx_destroy cd;
	struct npu_queue_destroy qd;
	struct npu_module_unload mu;

	ck_assert_int_eq(core_rig_session(&rig, &session), 0);
	ck_assert_int_eq(core_rig_ctx(&rig, session, &ctx), 0);
	ck_assert_int_eq(core_rig_queue(&rig, session, ctx, &queue), 0);
	cd = (struct npu_ctx_destroy){ .head.session = session, .ctx = ctx };
	ck_assert_int_eq(CORE_CALL(&rig, CTX_DESTROY, &cd), -EBUSY);
	qd = (struct npu_queue_destroy){ .head.session = session, .queue = queue };
	ck_assert_int_eq(CORE_CALL(&rig, QUEUE_DESTROY, &qd), 0);
	cd.head.call = 0;
	ck_assert_int_eq(CORE_CALL(&rig, CTX_DESTROY, &cd), 0);
	/* a module keeps its image */
	ck_assert_int_eq(core_rig_mem(&rig, session, NPU_MEM_IMAGE, P, &image), 0);
	ck_assert_int_eq(core_rig_module(&rig, session, image, &module), 0);
	ck_assert_int_eq(core_rig_mem_free(&rig, session, image), 0);
	ck_assert_uint_eq(rig.admin[NPU_ADMIN_MEM_DESTROY], 0);
	ck_assert_uint_eq(counter(session, NPU_COUNTER_HOST_MEM), P);
	mu = (struct npu_module_unload){ .head.session = session, .module = module };
	ck_assert_int_eq(CORE_CALL(&rig, MODULE_UNLOAD, &mu), 0);
	ck_assert_uint_eq(rig.admin[NPU_ADMIN_MEM_DESTROY], 1);
	ck_assert_uint_eq(counter(session, NPU_COUNTER_HOST_MEM), 0);
	ck_assert_uint_eq(rig.objects, 1);
}
END_TEST

START_TEST(test_sharing)
{
	uint64_t a, b, mem, got, again, token[2], wrong[2];
	struct npu_mem_query query;

	ck_assert_int_eq(core_rig_session(&rig, &a), 0);
	ck_assert_int_eq(core_rig_session(&rig, &b), 0);
	ck_assert_int_eq(core_rig_mem(&rig, a, NPU_MEM_DEVICE, 4 * P, &mem), 0);
	ck_assert_int_eq(export(a, mem, token), 0);
	memcpy(wrong, token, sizeof(wrong));
	wrong[1] ^= 1;
	ck_assert_int_eq(import(b, wrong, &got), -ENOENT);
	ck_assert_int_eq(import(b, token, &got), 0);
	ck_assert_int_eq(export(b, got, wrong), -EPERM);
	query = (struct npu_mem_query){ .head.session = a, .mem = mem };
	ck_assert_int_eq(CORE_CALL(&rig, MEM_QUERY, &query), 0);
	ck_assert_uint_eq(query.imports, 1);
	ck_assert_uint_eq(query.bytes, 4 * P);
	ck_assert_int_eq(core_rig_map(&rig, b, got, NPU_WINDOW_BASE, 4 * P), 0);
	/* charged to the exporter, also when only the importer holds it */
	ck_assert_int_eq(core_rig_mem_free(&rig, a, mem), 0);
	ck_assert_uint_eq(counter(a, NPU_COUNTER_MEM_USED), 4 * P);
	ck_assert_uint_eq(counter(b, NPU_COUNTER_MEM_USED), 0);
	ck_assert_int_eq(import(b, token, &again), -ENOENT);
	ck_assert_uint_eq(rig.admin[NPU_ADMIN_MEM_DESTROY], 0);
	ck_assert_int_eq(core_rig_destroy(&rig, a), 0);
	ck_assert_uint_eq(memory_free(), MEMORY - 4 * P);
	ck_assert_int_eq(core_rig_mem_free(&rig, b, got), 0);
	ck_assert_uint_eq(memory_free(), MEMORY);
	ck_assert_uint_eq(rig.admin[NPU_ADMIN_MEM_DESTROY], 1);
}
END_TEST

START_TEST(test_limits)
{
	struct npu_session_create c = { .slab_address = CORE_RIG_SLAB, .memory_limit = 4 * P,
					.host_limit = 2 * P, .queue_limit = 2, .module_limit = 1 };
	uint64_t mem, image;
	uint32_t ctx, queue, module;
	struct npu_mem_alloc a;

	ck_assert_int_eq(CORE_CALL(&rig, SESSION_CREATE, &c), 0);
	ck_assert_int_eq(core_rig_mem(&rig, c.session, NPU_MEM_DEVICE, 3 * P + 1, &mem), 0);
	ck_assert_int_eq(core_rig_mem(&rig, c.session, NPU_MEM_DEVICE, 1, &mem), -EDQUOT);
	ck_assert_int_eq(core_rig_mem(&rig, c.session, NPU_MEM_HOST, P, &mem), 0);
	ck_assert_int_eq(core_rig_mem(&rig, c.session, NPU_MEM_IMAGE, P, &image), 0);
	ck_assert_int_eq(core_rig_mem(&rig, c.session, NPU_MEM_HOST, 1, &mem), -EDQUOT);
	ck_assert_int_eq(core_rig_ctx(&rig, c.session, &ctx), 0);
	ck_assert_int_eq(core_rig_queue(&rig, c.session, ctx, &queue), 0);
	ck_assert_int_eq(core_rig_queue(&rig, c.session, ctx, &queue), 0);
	ck_assert_int_eq(core_rig_queue(&rig, c.session, ctx, &queue), -EDQUOT);
	ck_assert_int_eq(core_rig_module(&rig, c.session, image, &module), 0);
	ck_assert_int_eq(core_rig_module(&rig, c.session, image, &module), -EDQUOT);
	ck_assert_uint_eq(counter(c.session, NPU_COUNTER_MEM_PEAK), 4 * P);
	/* the device's own ends, and sizes that no arithmetic may wrap */
	a = (struct npu_mem_alloc){ .head.session = c.session, .kind = NPU_MEM_DEVICE,
				    .bytes = UINT64_MAX };
	ck_assert_int_eq(CORE_CALL(&rig, MEM_ALLOC, &a), -ENOSPC);
	a.head.call = 0;
	a.bytes = UINT64_MAX - P;
	ck_assert_int_eq(CORE_CALL(&rig, MEM_ALLOC, &a), -EDQUOT);
	c = (struct npu_session_create){ .slab_address = CORE_RIG_SLAB };
	ck_assert_int_eq(CORE_CALL(&rig, SESSION_CREATE, &c), 0);
	ck_assert_int_eq(core_rig_mem(&rig, c.session, NPU_MEM_DEVICE, UINT64_MAX - P, &mem),
			 -ENOSPC);
	ck_assert_int_eq(core_rig_mem(&rig, c.session, NPU_MEM_DEVICE, MEMORY, &mem), -ENOSPC);
	ck_assert_int_eq(core_rig_mem(&rig, c.session, NPU_MEM_HOST, 1ull << 30, &mem), -ENOMEM);
	ck_assert_int_eq(core_rig_mem(&rig, c.session, NPU_MEM_HOST, 1ull << 63, &mem), -ENOMEM);
	ck_assert_int_eq(core_rig_mem(&rig, c.session, NPU_MEM_DEVICE, MEMORY - 4 * P, &mem), 0);
	ck_assert_uint_eq(memory_free(), 0);
}
END_TEST

START_TEST(test_modules)
{
	uint64_t session, image;
	uint32_t module, second, i;
	struct npu_func_lookup f;
	struct npu_event event;

	ck_assert_int_eq(core_rig_session(&rig, &session), 0);
	ck_assert_int_eq(core_rig_mem(&rig, session, NPU_MEM_IMAGE, P, &image), 0);
	ck_assert_int_eq(core_rig_module(&rig, session, image, &module), 0);
	f = (struct npu_func_lookup){ .head.session = session, .module = module };
	ck_assert_int_eq(CORE_CALL(&rig, FUNC_LOOKUP, &f), -EAGAIN);
	load_done(session, module, 0);
	ck_assert_int_eq(npu_core_event_read(rig.core, rig.file, &event), 0);
	ck_assert_uint_eq(event.type, NPU_EVENT_MODULE);
	ck_assert_uint_eq(event.id, module);
	ck_assert_uint_eq(event.user, 0x30d);
	ck_assert_uint_eq(event.module.funcs, 2);
	/* by index, then by name; the name was made printable */
	ck_assert_int_eq(CORE_CALL(&rig, FUNC_LOOKUP, &f), 0);
	ck_assert_str_eq(f.name, "add?one");
	ck_assert_uint_eq(f.params, 2);
	ck_assert_uint_eq(f.param_sizes[1], 4);
	f = (struct npu_func_lookup){ .head.session = session, .module = module, .name = "scale" };
	ck_assert_int_eq(CORE_CALL(&rig, FUNC_LOOKUP, &f), 0);
	ck_assert_uint_eq(f.func, 1);
	ck_assert_uint_eq(f.args_size, 8);
	strcpy(f.name, "scal");
	ck_assert_int_eq(CORE_CALL(&rig, FUNC_LOOKUP, &f), -ENOENT);
	strcpy(f.name, "scales");
	ck_assert_int_eq(CORE_CALL(&rig, FUNC_LOOKUP, &f), -ENOENT);
	memset(f.name, 'x', sizeof(f.name));
	ck_assert_int_eq(CORE_CALL(&rig, FUNC_LOOKUP, &f), -EINVAL);
	f = (struct npu_func_lookup){ .head.session = session, .module = module, .func = 2 };
	ck_assert_int_eq(CORE_CALL(&rig, FUNC_LOOKUP, &f), -ENOENT);
	/* refused, and malformed claims */
	ck_assert_int_eq(core_rig_module(&rig, session, image, &second), 0);
	load_done(session, second, -ENOEXEC);
	load_done(session, second, 0);
	ck_assert_int_eq(npu_core_event_read(rig.core, rig.file, &event), 0);
	ck_assert_int_eq(event.status, -ENOEXEC);
	ck_assert_str_eq(event.module.error, "not an image?");
	f = (struct npu_func_lookup){ .head.session = session, .module = second };
	ck_assert_int_eq(CORE_CALL(&rig, FUNC_LOOKUP, &f), -ENOEXEC);
	for (i = 0; i < 3; i++) {
		struct npu_core_func *bad = calloc(1, sizeof(*bad));

		memset(bad->name, 'y', i == 0 ? sizeof(bad->name) : i == 1 ? 0 : 4);
		bad->params = i == 2 ? NPU_MAX_PARAMS + 1 : 0;
		ck_assert_int_eq(core_rig_module(&rig, session, image, &second), 0);
		npu_core_module_done(rig.core, core_rig_find(&rig, session), second, 0, bad, 1,
				     NULL);
		ck_assert_int_eq(npu_core_event_read(rig.core, rig.file, &event), 0);
		ck_assert_int_eq(event.status, -EINVAL);
		free(bad);
	}
	/* late, for one that is gone */
	load_done(session, second + 1, 0);
	ck_assert_int_eq(npu_core_event_read(rig.core, rig.file, &event), -EAGAIN);
}
END_TEST

START_TEST(test_faults_and_events)
{
	struct npu_fault_record record = { .kind = NPU_FAULT_ACCESS, .address = 0x1234,
					   .seq = 77, .session = 99 };
	struct npu_error_query query = { 0 };
	struct npu_event event;
	uint64_t a, b;
	uint32_t ctx, queue, i, lost = 0, seen = 0;

	ck_assert_int_eq(core_rig_session(&rig, &a), 0);
	ck_assert_int_eq(core_rig_session(&rig, &b), 0);
	ck_assert_int_eq(core_rig_ctx(&rig, a, &ctx), 0);
	ck_assert_int_eq(core_rig_queue(&rig, a, ctx, &queue), 0);
	memset(record.kernel, 'z', sizeof(record.kernel));
	npu_core_fault(rig.core, core_rig_find(&rig, b), NPU_SLOT_NONE, &record);
	for (i = 0; i < 1000; i++)
		npu_core_fault(rig.core, core_rig_find(&rig, a), 0, &record);
	/* the one that fails much has not pushed the other out */
	query.head.session = b;
	ck_assert_int_eq(CORE_CALL(&rig, ERROR_QUERY, &query), 0);
	ck_assert_uint_eq(query.fault.seq, 1);
	ck_assert_uint_eq(query.fault.session, b);
	ck_assert_str_eq(query.fault.kernel, "");
	query.after = 1;
	ck_assert_int_eq(CORE_CALL(&rig, ERROR_QUERY, &query), -ENOENT);
	query.head.session = 0;
	ck_assert_int_eq(CORE_CALL(&rig, ERROR_QUERY, &query), 0);
	ck_assert_uint_eq(query.fault.seq, 1001 - NPU_CORE_FAULTS_SESSION + 1);
	ck_assert_uint_eq(query.fault.queue, queue);
	ck_assert_uint_eq(query.fault.context, ctx);
	ck_assert_uint_eq(query.fault.address, 0x1234);
	while (npu_core_event_read(rig.core, rig.file, &event) == 0) {
		ck_assert_uint_eq(event.type, NPU_EVENT_FAULT);
		seen++;
		lost += event.lost;
	}
	ck_assert_uint_eq(seen, 1 + NPU_CORE_EVENTS_FAULTS);
	ck_assert_uint_eq(lost + seen, 1001);
	ck_assert_uint_eq(counter(a, NPU_COUNTER_FAULTS), 1000);
	/* records of the same thing replace each other; a full queue loses the oldest */
	rig.ready = 0;
	for (i = 0; i < 10; i++)
		npu_core_engine_started(rig.core, core_rig_find(&rig, a));
	ck_assert_int_eq(npu_core_event_read(rig.core, rig.file, &event), 0);
	ck_assert_uint_eq(event.type, NPU_EVENT_ENGINE);
	ck_assert_int_eq(event.status, 10);
	ck_assert_int_eq(npu_core_event_read(rig.core, rig.file, &event), -EAGAIN);
	ck_assert_uint_gt(rig.ready, 0);
	for (i = 0; i < NPU_CORE_EVENTS + 5; i++) {
		struct npu_reset reset = { 0 };

		ck_assert_int_eq(CORE_CALL(&rig, RESET, &reset), 0);
	}
	ck_assert_int_eq(npu_core_event_read(rig.core, rig.file, &event), 0);
	ck_assert_uint_eq(event.lost, 5 + 2); /* the two lost sessions' faults came first */
	ck_assert_uint_eq(event.type, NPU_EVENT_RESET);
}
END_TEST

START_TEST(test_wait)
{
	struct npu_wait wait = { 0 };
	struct npu_event event;
	uint64_t session;
	uint32_t ctx, queue;

	ck_assert_int_eq(core_rig_session(&rig, &session), 0);
	ck_assert_int_eq(core_rig_ctx(&rig, session, &ctx), 0);
	ck_assert_int_eq(core_rig_queue(&rig, session, ctx, &queue), 0);
	rig.done = 7;
	wait = (struct npu_wait){ .head.session = session, .queue = queue, .done = 7 };
	ck_assert_int_eq(CORE_CALL(&rig, WAIT, &wait), 0);
	wait.done = 9;
	ck_assert_int_eq(CORE_CALL(&rig, WAIT, &wait), -EAGAIN);
	ck_assert_uint_eq(wait.done, 7);
	npu_core_queue_done(rig.core, core_rig_find(&rig, session), queue, 9);
	ck_assert_int_eq(npu_core_event_read(rig.core, rig.file, &event), -EAGAIN);
	wait.done = 9;
	wait.head.flags = NPU_WAIT_ARM;
	ck_assert_int_eq(CORE_CALL(&rig, WAIT, &wait), -EAGAIN);
	ck_assert(rig.last.wait.arm);
	npu_core_queue_done(rig.core, core_rig_find(&rig, session), queue, 8);
	npu_core_queue_done(rig.core, core_rig_find(&rig, session), queue + 1, 9);
	ck_assert_int_eq(npu_core_event_read(rig.core, rig.file, &event), -EAGAIN);
	npu_core_queue_done(rig.core, core_rig_find(&rig, session), queue, 9);
	npu_core_queue_done(rig.core, core_rig_find(&rig, session), queue, 10);
	ck_assert_int_eq(npu_core_event_read(rig.core, rig.file, &event), 0);
	ck_assert_uint_eq(event.type, NPU_EVENT_QUEUE);
	ck_assert_uint_eq(event.id, queue);
	ck_assert_int_eq(npu_core_event_read(rig.core, rig.file, &event), -EAGAIN);
}
END_TEST

/* A new daemon finds everything of the old one, tags and fds too, and makes it its own. */
START_TEST(test_orphans)
{
	struct npu_obj_enum *list = calloc(1, sizeof(*list));
	struct npu_obj_tag tag = { .type = NPU_OBJ_SESSION };
	struct npu_obj_fds fds = { .type = NPU_OBJ_SESSION };
	uint64_t session, mems[300], last = 0;
	uint32_t i, count[NPU_OBJ_MAP + 1] = { 0 }, type = 0, calls = 0;

	ck_assert_int_eq(scenario(&session), 0);
	for (i = 0; i < 300; i++)
		ck_assert_int_eq(core_rig_mem(&rig, session, NPU_MEM_DEVICE, P, &mems[i]), 0);
	npu_core_file_close(rig.core, rig.file, true);
	ck_assert_int_eq(npu_core_file_open(rig.core, &rig, &rig.file), 0);
	ck_assert_uint_eq(npu_core_orphans_expire(rig.core, 1), 2);
	do {
		ck_assert_int_eq(CORE_CALL(&rig, OBJ_ENUM, list), 0);
		calls++;
		for (i = 0; i < list->count; i++) {
			if (list->objects[i].type != type)
				last = 0;
			ck_assert_uint_ge(list->objects[i].type, type);
			type = list->objects[i].type;
			count[type]++;
			if (list->objects[i].session != session)
				continue;
			ck_assert_uint_gt(list->objects[i].id, last);
			last = list->objects[i].id;
			if (type == NPU_OBJ_SESSION)
				ck_assert_uint_eq(list->objects[i].arg, 42ull << 32 | 1000);
			/* SESSION_CREATE is counted by the file, the rest by the session */
			if (type == NPU_OBJ_SESSION)
				ck_assert_uint_eq(list->objects[i].bytes, rig.call);
		}
	} while (list->cursor);
	ck_assert_uint_eq(calls, 3);
	ck_assert_uint_eq(count[NPU_OBJ_SESSION], 2);
	ck_assert_uint_eq(count[NPU_OBJ_CONTEXT], 1);
	ck_assert_uint_eq(count[NPU_OBJ_QUEUE], 20);
	ck_assert_uint_eq(count[NPU_OBJ_MODULE], 1);
	ck_assert_uint_eq(count[NPU_OBJ_MEMORY], 303);
	ck_assert_uint_eq(count[NPU_OBJ_MAP], 2);
	free(list);
	tag.head.session = session;
	tag.id = session;
	ck_assert_int_eq(CORE_CALL(&rig, OBJ_TAG, &tag), 0);
	ck_assert_uint_eq(tag.bytes, 9);
	fds.head.session = session;
	fds.id = session;
	ck_assert_int_eq(CORE_CALL(&rig, OBJ_FDS, &fds), 0);
	ck_assert_int_eq(fds.fds[3], fds.fds[0] + 3);
	/* adopted by the call; the other one is not, and goes */
	rig.now += 100;
	ck_assert_uint_eq(npu_core_orphans_expire(rig.core, 101), 1);
	ck_assert_uint_eq(npu_core_orphans_expire(rig.core, 100), 0);
	ck_assert_int_eq(core_rig_mem_free(&rig, session, mems[0]), 0);
	npu_core_file_close(rig.core, rig.file, false);
	ck_assert_uint_eq(rig.objects, 0);
	ck_assert_int_eq(npu_core_file_open(rig.core, &rig, &rig.file), 0);
	ck_assert_uint_eq(memory_free(), MEMORY);
}
END_TEST

START_TEST(test_pending)
{
	struct npu_event event;
	uint64_t session, mem, other = 0;

	rig.space_pending = true;
	rig.mem_pending = true;
	ck_assert_int_eq(core_rig_session(&rig, &session), 0);
	ck_assert_int_eq(core_rig_mem(&rig, session, NPU_MEM_DEVICE, P, &mem), 0);
	ck_assert_int_eq(core_rig_mem_free(&rig, session, mem), 0);
	/* uncharged at once, given to nobody until the backend is through */
	ck_assert_uint_eq(counter(session, NPU_COUNTER_MEM_USED), 0);
	ck_assert_uint_eq(counter(0, NPU_COUNTER_MEM_USED), P);
	ck_assert_uint_eq(memory_free(), MEMORY - P);
	ck_assert_int_eq(core_rig_mem(&rig, session, NPU_MEM_DEVICE, P, &mem), 0);
	ck_assert_int_eq(core_rig_destroy(&rig, session), 0);
	ck_assert_int_eq(npu_core_event_read(rig.core, rig.file, &event), -EAGAIN);
	/* upcalls of what is going are ignored */
	npu_core_engine_started(rig.core, rig.sessions[0]);
	npu_core_module_done(rig.core, rig.sessions[0], 1, 0, NULL, 0, NULL);
	npu_core_queue_done(rig.core, rig.sessions[0], 1, 1);
	npu_core_fault(rig.core, rig.sessions[0], 0, &(struct npu_fault_record){ .kind = 1 });
	ck_assert_int_eq(npu_core_event_read(rig.core, rig.file, &event), -EAGAIN);
	core_rig_settle(&rig);
	ck_assert_int_eq(npu_core_event_read(rig.core, rig.file, &event), 0);
	ck_assert_uint_eq(event.type, NPU_EVENT_SESSION);
	ck_assert_uint_eq(event.session, session);
	ck_assert_uint_eq(event.user, 0x5e55);
	ck_assert_uint_eq(memory_free(), MEMORY);
	/* the file goes before its sessions have ended */
	ck_assert_int_eq(scenario(&other), 0);
	npu_core_file_close(rig.core, rig.file, false);
	core_rig_settle(&rig);
	ck_assert_int_eq(npu_core_file_open(rig.core, &rig, &rig.file), 0);
	ck_assert_uint_eq(memory_free(), MEMORY);
	/* and the device goes with everything still pending: teardown */
	ck_assert_int_eq(scenario(&other), 0);
	ck_assert_int_eq(core_rig_destroy(&rig, other), 0);
	rig.nsessions = 0;
	rig.nmems = 0;
}
END_TEST

START_TEST(test_all_alive)
{
	uint64_t session;

	ck_assert_int_eq(scenario(&session), 0);
	ck_assert_uint_gt(rig.objects, 25);
}
END_TEST

/* Everything as it was before, but for the table of sessions, whatever the scenario had come to. */
static void check_clean(void)
{
	/* device, page masks, faults, file and its events */
	const size_t live = 5;

	npu_core_file_close(rig.core, rig.file, false);
	ck_assert_uint_eq(rig.objects, 0);
	ck_assert_int_eq(npu_core_file_open(rig.core, &rig, &rig.file), 0);
	ck_assert_uint_eq(memory_free(), MEMORY);
	ck_assert_uint_eq(counter(0, NPU_COUNTER_MEM_USED), 0);
	ck_assert_uint_eq(counter(0, NPU_COUNTER_HOST_MEM), 0);
	ck_assert_uint_eq(rig.live, live + (rig.core->sessions.capacity != 0));
}

START_TEST(test_no_memory)
{
	uint64_t session;
	size_t n;
	int r = -ENOMEM;

	for (n = 1; r < 0; n++) {
		ck_assert_uint_lt(n, 1000);
		rig.fail_at = n;
		r = scenario(&session);
		/* keeping a module's kernels has no caller to tell: it is in its event */
		ck_assert(r == 0 || r == -ENOMEM);
		if (r == 0 && !rig.fail_at)
			r = -ENOMEM;
		rig.fail_at = 0;
		check_clean();
	}
	ck_assert_uint_gt(n, 40);
	core_rig_fini(&rig);
	/* the device itself */
	for (n = 1, r = -ENOMEM; r < 0; n++) {
		ck_assert_uint_lt(n, 10);
		memset(&rig.core, 0, sizeof(rig.core));
		rig.fail_at = n;
		r = core_rig_start(&rig);
		ck_assert(r == 0 || r == -ENOMEM);
		if (r < 0)
			ck_assert_uint_eq(rig.live, 0);
	}
	rig.fail_at = 0;
}
END_TEST

START_TEST(test_backend_refuses)
{
	static const int ops[] = { NPU_ADMIN_SPACE_CREATE, NPU_ADMIN_MEM_CREATE, NPU_ADMIN_MAP,
				   NPU_ADMIN_CTX_SET, NPU_ADMIN_QUEUE_SET, NPU_ADMIN_MODULE_LOAD };
	uint64_t session;

	rig.fail_op = ops[_i];
	rig.fail_errno = -EIO;
	rig.fail_each = true;
	ck_assert_int_eq(scenario(&session), -EIO);
	rig.fail_op = 0;
	check_clean();
	rig.fd_errno = -EMFILE;
	ck_assert_int_eq(scenario(&session), -EMFILE);
	rig.fd_errno = 0;
	ck_assert_uint_eq(rig.objects, 0);
	check_clean();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("core_life");
	TCase *tc = tcase_create("life");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, test_order);
	tcase_add_test(tc, test_sharing);
	tcase_add_test(tc, test_limits);
	tcase_add_test(tc, test_modules);
	tcase_add_test(tc, test_faults_and_events);
	tcase_add_test(tc, test_wait);
	tcase_add_test(tc, test_orphans);
	tcase_add_test(tc, test_pending);
	tcase_add_test(tc, test_all_alive);
	tcase_add_test(tc, test_no_memory);
	tcase_add_loop_test(tc, test_backend_refuses, 0, 6);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
