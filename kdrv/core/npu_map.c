/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * The address ranges of a session: a skip list in order of the address, no two overlap, none
 * touches the slab. Levels are random, so no choice of addresses makes it slow.
 */
#include "kdrv/core/npu_core_int.h"

int npu_window_check(uint64_t address, uint64_t bytes, uint64_t align)
{
	uint64_t end;

	if (!bytes || address & (align - 1) || bytes & (NPU_PAGE_SMALL - 1))
		return -EINVAL;
	if (npu_add_overflow(address, bytes, &end) || address < NPU_WINDOW_BASE ||
	    end > NPU_WINDOW_BASE + NPU_WINDOW_SIZE)
		return -ERANGE;
	return 0;
}

/*
 * links[l]: the link of level l that leads to the first map at or above address. Result: the last
 * map below address, or NULL.
 */
static struct npu_map *npu_map_seek(struct npu_session *session, uint64_t address,
				    struct npu_map **links[NPU_CORE_MAP_LEVELS])
{
	struct npu_map **next = session->maps, *below = NULL;
	uint32_t level;

	for (level = NPU_CORE_MAP_LEVELS; level-- > 0;) {
		while (next[level] && next[level]->address < address) {
			below = next[level];
			next = below->next;
		}
		links[level] = &next[level];
	}
	return below;
}

struct npu_map *npu_map_from(struct npu_session *session, uint64_t address)
{
	struct npu_map **links[NPU_CORE_MAP_LEVELS];

	npu_map_seek(session, address, links);
	return *links[0];
}

struct npu_map *npu_session_map_find(struct npu_session *session, uint64_t address)
{
	struct npu_map *map = npu_map_from(session, address);

	return map && map->address == address ? map : NULL;
}

struct npu_map *npu_session_map_next(struct npu_session *session, uint64_t *cursor)
{
	struct npu_map *map = npu_map_from(session, *cursor);

	if (map)
		*cursor = map->address + 1;
	return map;
}

struct npu_map *npu_map_covering(struct npu_session *session, uint64_t address)
{
	struct npu_map **links[NPU_CORE_MAP_LEVELS], *below;

	below = npu_map_seek(session, address, links);
	if (*links[0] && (*links[0])->address == address)
		return *links[0];
	return below && address - below->address < below->bytes ? below : NULL;
}

uint32_t npu_map_page(struct npu_session *session, uint64_t address)
{
	const struct npu_map *map = npu_map_covering(session, address);
	uint64_t page;
	uint32_t i;

	if (!map || map->mem->kind != NPU_MEM_DEVICE)
		return NPU_PAGE_NONE;
	page = (address - map->address + map->offset) / NPU_PAGE_SMALL;
	for (i = 0; i < map->mem->nruns; i++) {
		if (page < map->mem->runs[i].count)
			return map->mem->runs[i].first + (uint32_t)page;
		page -= map->mem->runs[i].count;
	}
	return NPU_PAGE_NONE;
}

/* 1..NPU_CORE_MAP_LEVELS, each one more with a chance of a quarter. */
static uint8_t npu_map_levels(struct npu_session *session)
{
	uint64_t x = session->map_random;
	uint8_t levels = 1;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	session->map_random = x;
	for (x >>= 8; !(x & 3) && levels < NPU_CORE_MAP_LEVELS; x >>= 2)
		levels++;
	return levels;
}

static bool npu_map_taken(struct npu_session *session, uint64_t address, uint64_t bytes,
			  struct npu_map **links[NPU_CORE_MAP_LEVELS])
{
	struct npu_map *below = npu_map_seek(session, address, links), *above = *links[0];

	if (below && address - below->address < below->bytes)
		return true;
	if (above && above->address - address < bytes)
		return true;
	return address < session->slab_address + NPU_SLAB_SIZE &&
	       session->slab_address < address + bytes;
}

static int npu_map_new(struct npu_session *session, struct npu_mem_handle *handle,
		       uint64_t address, uint64_t offset, uint64_t bytes, uint32_t flags,
		       bool registered, __u64 *ret_generation)
{
	struct npu_core *core = session->core;
	struct npu_admin_cmd cmd = { .op = NPU_ADMIN_MAP, .session = session };
	struct npu_map **links[NPU_CORE_MAP_LEVELS], *map;
	uint8_t levels, level;
	uint64_t end;
	int r;

	r = npu_window_check(address, bytes, NPU_PAGE_SMALL);
	if (r < 0)
		return r;
	if (offset % NPU_PAGE_SMALL)
		return -EINVAL;
	if (npu_add_overflow(offset, bytes, &end) || end > handle->mem->bytes)
		return -ERANGE;
	if (npu_map_taken(session, address, bytes, links))
		return -EEXIST;
	levels = npu_map_levels(session);
	map = npu_alloc(core, sizeof(*map) + levels * sizeof(map->next[0]));
	if (!map)
		return -ENOMEM;
	npu_obj_init(&map->obj, NPU_OBJ_MAP, handle->obj.user);
	map->obj.id = address;
	map->handle = handle;
	map->mem = handle->mem;
	map->address = address;
	map->bytes = bytes;
	map->offset = offset;
	map->generation = session->map_generation + 1;
	map->flags = flags;
	map->registered = registered;
	map->levels = levels;
	cmd.map = map;
	r = npu_admin(core, &cmd);
	if (r < 0) {
		npu_free(core, map, sizeof(*map) + levels * sizeof(map->next[0]));
		return r;
	}
	for (level = 0; level < levels; level++) {
		map->next[level] = *links[level];
		*links[level] = map;
	}
	npu_list_add(&handle->maps, &map->link);
	session->map_generation++;
	session->map_count++;
	map->mem->maps++;
	*ret_generation = map->generation;
	return 0;
}

void npu_map_drop(struct npu_map *map)
{
	struct npu_session *session = map->handle->session;
	struct npu_core *core = session->core;
	struct npu_admin_cmd cmd = { .op = NPU_ADMIN_UNMAP, .session = session };
	struct npu_map **links[NPU_CORE_MAP_LEVELS];
	uint8_t level;

	npu_map_seek(session, map->address, links);
	for (level = 0; level < map->levels; level++)
		*links[level] = map->next[level];
	npu_list_del(&map->link);
	session->map_count--;
	map->mem->maps--;
	map->generation = ++session->map_generation;
	cmd.map = map;
	npu_admin(core, &cmd);
	npu_obj_fini(core, &map->obj);
	npu_free(core, map, sizeof(*map) + map->levels * sizeof(map->next[0]));
}

static int npu_map_remove(struct npu_session *session, uint64_t address, uint64_t bytes,
			  bool registered, __u64 *ret_generation)
{
	struct npu_map *map;
	int r;

	r = npu_window_check(address, bytes, NPU_PAGE_SMALL);
	if (r < 0)
		return r;
	map = npu_session_map_find(session, address);
	if (!map || map->bytes != bytes || map->registered != registered)
		return -ENOENT;
	npu_map_drop(map);
	*ret_generation = session->map_generation;
	return 0;
}

int npu_call_mem_map(struct npu_call *call, void *arg)
{
	struct npu_mem_map *map = arg;
	struct npu_mem_handle *handle = npu_mem_find(call->session, map->mem);

	if (!handle)
		return -ENOENT;
	if (handle->mem->kind == NPU_MEM_IMAGE)
		return -EINVAL;
	if (handle->mem->kind == NPU_MEM_HOST && !(call->core->config.caps & NPU_CAP_HOST_MAPPED))
		return -EOPNOTSUPP;
	return npu_map_new(call->session, handle, map->address, map->offset, map->bytes,
			   map->head.flags, false, &map->generation);
}

int npu_call_mem_unmap(struct npu_call *call, void *arg)
{
	struct npu_mem_unmap *unmap = arg;

	return npu_map_remove(call->session, unmap->address, unmap->bytes, false,
			      &unmap->generation);
}

int npu_call_host_register(struct npu_call *call, void *arg)
{
	struct npu_host_register *host = arg;
	struct npu_mem_handle *handle = npu_mem_find(call->session, host->mem);

	if (!handle)
		return -ENOENT;
	if (handle->mem->kind != NPU_MEM_HOST)
		return -EINVAL;
	if (!(call->core->config.caps & NPU_CAP_HOST_MAPPED))
		return -EOPNOTSUPP;
	return npu_map_new(call->session, handle, host->address, host->offset, host->bytes, 0,
			   true, &host->generation);
}

int npu_call_host_unregister(struct npu_call *call, void *arg)
{
	struct npu_host_unregister *host = arg;

	return npu_map_remove(call->session, host->address, host->bytes, true, &host->generation);
}
