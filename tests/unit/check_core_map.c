/* SPDX-License-Identifier: Apache-2.0 */
/* The address ranges of a session: window, alignment, overlap, generations, and a random model. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kdrv/core/npu_core_int.h"
#include "tests/lib/core_rig.h"

#define P NPU_PAGE_SMALL
#define BASE NPU_WINDOW_BASE
#define END (NPU_WINDOW_BASE + NPU_WINDOW_SIZE)
#define MODEL 256u

static struct core_rig rig;
static uint64_t session, mem;

static void setup(void)
{
	ck_assert_int_eq(core_rig_init(&rig, 256ull << 20, CORE_RIG_CAPS, 2), 0);
	ck_assert_int_eq(core_rig_session(&rig, &session), 0);
	ck_assert_int_eq(core_rig_mem(&rig, session, NPU_MEM_DEVICE, 16 * P, &mem), 0);
}

static void teardown(void)
{
	core_rig_fini(&rig);
}

static int map_at(uint64_t address, uint64_t offset, uint64_t bytes)
{
	struct npu_mem_map m = { .head.session = session, .mem = mem, .address = address,
				 .offset = offset, .bytes = bytes };

	return CORE_CALL(&rig, MEM_MAP, &m);
}

START_TEST(test_ranges)
{
	ck_assert_int_eq(map_at(BASE, 0, 0), -EINVAL);
	ck_assert_int_eq(map_at(BASE + 1, 0, P), -EINVAL);
	ck_assert_int_eq(map_at(BASE + 4096, 0, P), -EINVAL);
	ck_assert_int_eq(map_at(BASE, 0, P + 1), -EINVAL);
	ck_assert_int_eq(map_at(BASE, 4096, P), -EINVAL);
	ck_assert_int_eq(map_at(BASE - P, 0, P), -ERANGE);
	ck_assert_int_eq(map_at(0, 0, P), -ERANGE);
	ck_assert_int_eq(map_at(END, 0, P), -ERANGE);
	ck_assert_int_eq(map_at(END - P, 0, 2 * P), -ERANGE);
	ck_assert_int_eq(map_at(UINT64_MAX - P + 1, 0, P), -ERANGE);
	ck_assert_int_eq(map_at(BASE, 0, 17 * P), -ERANGE);
	ck_assert_int_eq(map_at(BASE, 16 * P, P), -ERANGE);
	ck_assert_int_eq(map_at(BASE, UINT64_MAX - P + 1, 2 * P), -ERANGE);
	ck_assert_int_eq(map_at(BASE, 0, (UINT64_MAX - BASE) & ~(P - 1)), -ERANGE);
	ck_assert_int_eq(map_at(BASE, 15 * P, P), 0);
	ck_assert_int_eq(map_at(END - P, 0, P), 0);
	/* the slab's range is taken from the start */
	ck_assert_int_eq(map_at(CORE_RIG_SLAB, 0, P), -EEXIST);
	ck_assert_int_eq(map_at(CORE_RIG_SLAB + NPU_SLAB_SIZE - P, 0, P), -EEXIST);
	ck_assert_int_eq(map_at(CORE_RIG_SLAB - P, 0, 2 * P), -EEXIST);
	ck_assert_int_eq(map_at(CORE_RIG_SLAB - P, 0, P), 0);
	ck_assert_int_eq(map_at(CORE_RIG_SLAB + NPU_SLAB_SIZE, 0, P), 0);
	ck_assert_int_eq(core_rig_unmap(&rig, session, CORE_RIG_SLAB, NPU_SLAB_SIZE), -ENOENT);
}
END_TEST

START_TEST(test_overlap)
{
	const uint64_t a = BASE + 100 * P;

	ck_assert_int_eq(map_at(a, 0, 4 * P), 0);
	ck_assert_int_eq(map_at(a, 0, 4 * P), -EEXIST);
	ck_assert_int_eq(map_at(a - P, 0, 2 * P), -EEXIST);
	ck_assert_int_eq(map_at(a + 3 * P, 0, 2 * P), -EEXIST);
	ck_assert_int_eq(map_at(a + P, 0, P), -EEXIST);
	ck_assert_int_eq(map_at(a - P, 0, 6 * P), -EEXIST);
	ck_assert_int_eq(map_at(a - P, 0, P), 0);
	ck_assert_int_eq(map_at(a + 4 * P, 0, P), 0);
	/* only exactly a range that was mapped */
	ck_assert_int_eq(core_rig_unmap(&rig, session, a, 3 * P), -ENOENT);
	ck_assert_int_eq(core_rig_unmap(&rig, session, a + P, P), -ENOENT);
	ck_assert_int_eq(core_rig_unmap(&rig, session, a, 4 * P), 0);
	ck_assert_int_eq(core_rig_unmap(&rig, session, a, 4 * P), -ENOENT);
	ck_assert_int_eq(map_at(a, 0, 4 * P), 0);
}
END_TEST

START_TEST(test_generation)
{
	struct npu_mem_map m = { .head = { .session = session, .flags = NPU_MAP_READ_ONLY },
				 .mem = mem, .address = BASE, .bytes = P };
	struct npu_mem_unmap u = { .head.session = session, .address = BASE, .bytes = P };
	struct npu_host_register h = { .head.session = session, .address = BASE, .bytes = P };
	struct npu_host_unregister hu = { .head.session = session, .address = BASE, .bytes = P };
	uint64_t host, image;

	ck_assert_int_eq(CORE_CALL(&rig, MEM_MAP, &m), 0);
	ck_assert_uint_eq(m.generation, 1);
	ck_assert_uint_eq(rig.last.map->flags, NPU_MAP_READ_ONLY);
	ck_assert_int_eq(map_at(BASE, 0, P), -EEXIST);
	ck_assert_int_eq(CORE_CALL(&rig, MEM_UNMAP, &u), 0);
	ck_assert_uint_eq(u.generation, 2);
	/* registered host memory is a range of its own kind */
	h.mem = mem;
	ck_assert_int_eq(CORE_CALL(&rig, HOST_REGISTER, &h), -EINVAL);
	ck_assert_int_eq(core_rig_mem(&rig, session, NPU_MEM_HOST, 2 * P, &host), 0);
	h = (struct npu_host_register){ .head.session = session, .mem = host, .offset = P,
					.bytes = P, .address = BASE };
	ck_assert_int_eq(CORE_CALL(&rig, HOST_REGISTER, &h), 0);
	ck_assert_uint_eq(h.generation, 3);
	ck_assert_int_eq(core_rig_unmap(&rig, session, BASE, P), -ENOENT);
	ck_assert_int_eq(CORE_CALL(&rig, HOST_UNREGISTER, &hu), 0);
	ck_assert_uint_eq(hu.generation, 4);
	ck_assert_int_eq(core_rig_map(&rig, session, host, BASE, P), 0);
	hu.head.call = 0;
	ck_assert_int_eq(CORE_CALL(&rig, HOST_UNREGISTER, &hu), -ENOENT);
	/* an image is never in the address space */
	ck_assert_int_eq(core_rig_mem(&rig, session, NPU_MEM_IMAGE, P, &image), 0);
	ck_assert_int_eq(core_rig_map(&rig, session, image, BASE + P, P), -EINVAL);
	/* freeing takes the maps along */
	ck_assert_int_eq(core_rig_mem_free(&rig, session, host), 0);
	ck_assert_uint_eq(rig.admin[NPU_ADMIN_UNMAP], 3);
	ck_assert_int_eq(core_rig_unmap(&rig, session, BASE, P), -ENOENT);
}
END_TEST

START_TEST(test_host_not_mapped)
{
	uint64_t host;

	core_rig_fini(&rig);
	ck_assert_int_eq(core_rig_init(&rig, 64ull << 20, 0, 3), 0);
	ck_assert_int_eq(core_rig_session(&rig, &session), 0);
	ck_assert_int_eq(core_rig_mem(&rig, session, NPU_MEM_HOST, P, &host), 0);
	ck_assert_int_eq(core_rig_map(&rig, session, host, BASE, P), -EOPNOTSUPP);
}
END_TEST

/* 16 pages of the object at random places of a window of MODEL pages, against an owner a page. */
START_TEST(test_random)
{
	uint32_t owner[MODEL] = { 0 }, length[MODEL] = { 0 }, i, j, first, count, taken, maps = 0;
	uint64_t x = 99;
	int r;

	for (i = 0; i < 30000; i++) {
		x = x * 6364136223846793005ull + 1442695040888963407ull;
		first = (uint32_t)(x >> 33) % MODEL;
		count = 1 + (uint32_t)(x >> 45) % 16;
		if (first + count > MODEL)
			count = MODEL - first;
		if (x >> 63) {
			r = core_rig_unmap(&rig, session, BASE + first * P, count * P);
			ck_assert_int_eq(r, length[first] == count ? 0 : -ENOENT);
			if (r < 0 && length[first]) {
				count = length[first];
				ck_assert_int_eq(core_rig_unmap(&rig, session, BASE + first * P,
								count * P), 0);
				r = 0;
			}
			if (r == 0) {
				memset(&owner[first], 0, count * sizeof(owner[0]));
				length[first] = 0;
				maps--;
			}
			continue;
		}
		for (j = 0, taken = 0; j < count; j++)
			taken += owner[first + j] != 0;
		ck_assert_int_eq(map_at(BASE + first * P, 0, count * P), taken ? -EEXIST : 0);
		if (taken)
			continue;
		for (j = 0; j < count; j++)
			owner[first + j] = first + 1;
		length[first] = count;
		maps++;
		ck_assert_uint_eq(core_rig_find(&rig, session)->map_count, maps);
	}
	for (i = 0; i < MODEL; i++) {
		struct npu_map *map = npu_map_covering(core_rig_find(&rig, session),
						       BASE + i * P + 123);

		ck_assert_int_eq(map != NULL, owner[i] != 0);
		if (map)
			ck_assert_uint_eq(map->address, BASE + (owner[i] - 1) * P);
	}
}
END_TEST

/* A device address leads to the physical page behind it. */
START_TEST(test_page_behind)
{
	struct npu_session *s = core_rig_find(&rig, session);
	struct npu_mem_handle *handle = npu_mem_find(s, mem);
	struct npu_inject inject = { .head.session = session, .address = BASE + 5 * P + 8,
				     .kind = NPU_INJECT_ECC_UNCORRECTABLE };
	struct npu_event event;
	struct npu_query query;
	uint32_t page;

	ck_assert_int_eq(CORE_CALL(&rig, INJECT, &inject), -ERANGE);
	ck_assert_int_eq(map_at(BASE, 2 * P, 8 * P), 0);
	ck_assert_int_eq(CORE_CALL(&rig, INJECT, &inject), 0);
	page = rig.last.inject.page;
	ck_assert_uint_eq(page, handle->mem->runs[0].first + 7);
	ck_assert_int_eq(npu_core_page_bad(rig.core, page), 0);
	ck_assert_int_eq(npu_core_page_bad(rig.core, page), -EEXIST);
	ck_assert_int_eq(npu_core_event_read(rig.core, rig.file, &event), 0);
	ck_assert_uint_eq(event.type, NPU_EVENT_MEMORY);
	ck_assert_uint_eq(event.id, mem);
	ck_assert_uint_eq(event.user, 0x3e);
	ck_assert_int_eq(event.status, (int)P);
	ck_assert_int_eq(npu_core_event_read(rig.core, rig.file, &event), -EAGAIN);
	ck_assert_int_eq(core_rig_mem_free(&rig, session, mem), 0);
	ck_assert_int_eq(core_rig_query(&rig, &query), 0);
	ck_assert_uint_eq(query.memory_bad, P);
	ck_assert_uint_eq(query.memory_total, (256ull << 20) - P);
	ck_assert_uint_eq(query.memory_free, query.memory_total);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("core_map");
	TCase *tc = tcase_create("map");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, test_ranges);
	tcase_add_test(tc, test_overlap);
	tcase_add_test(tc, test_generation);
	tcase_add_test(tc, test_host_not_mapped);
	tcase_add_test(tc, test_random);
	tcase_add_test(tc, test_page_behind);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
