/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The objects that a driver names: memory, maps, modules. What a command says is checked here as
 * far as the board's own safety goes; the rules of the interface are the driver's business.
 */
#include "sim/card.h"

#include <string.h>
#include <sys/mman.h>

#include "sim/board_memory.h"
#include "sim/sim_fd.h"

#define CARD_PAGE 4096u /* host memory comes in these */

/* ---- memory -------------------------------------------------------------------------------- */

static struct card_mem **mem_bucket(struct card *card, uint32_t id)
{
	return &card->mems[id % CARD_MEM_BUCKETS];
}

struct card_mem *card_mem_find(struct card *card, uint32_t id)
{
	struct card_mem *mem = *mem_bucket(card, id);

	while (mem && mem->id != id)
		mem = mem->next;
	return mem;
}

/* Our own copy of what a command names, not yet looked at. */
static int runs_read(struct card *card, const struct npu_hw_cmd *cmd, struct npu_hw_run **ret_runs)
{
	struct npu_hw_run *runs;
	int r;

	if (!cmd->mem.nruns || cmd->mem.nruns > CARD_RUNS_MAX - card->runs)
		return cmd->mem.nruns ? -ENOMEM : -EINVAL;
	runs = calloc(cmd->mem.nruns, sizeof(*runs));
	if (!runs)
		return -ENOMEM;
	r = card_dma_read(card, cmd->mem.runs, runs, cmd->mem.nruns * sizeof(*runs));
	if (r < 0) {
		free(runs);
		return r;
	}
	*ret_runs = runs;
	return 0;
}

/* Host memory: whole pages in order. Where they lie is looked at when they are used. */
static int mem_host_runs(struct card_mem *mem, const struct npu_hw_run *runs, uint32_t nruns)
{
	uint64_t sum = 0;

	mem->runs = calloc(nruns, sizeof(*mem->runs));
	if (!mem->runs)
		return -ENOMEM;
	for (uint32_t i = 0; i < nruns; i++) {
		if (!runs[i].count || runs[i].start % CARD_PAGE || runs[i].count % CARD_PAGE ||
		    runs[i].count > mem->mem.bytes - sum ||
		    runs[i].start > UINT64_MAX - runs[i].count)
			return -EINVAL;
		mem->runs[i].offset = sum;
		mem->runs[i].bus = runs[i].start;
		mem->runs[i].bytes = runs[i].count;
		sum += runs[i].count;
	}
	mem->nruns = nruns;
	mem->card->runs += nruns;
	return sum == mem->mem.bytes ? 0 : -EINVAL;
}

/* Device memory: the pages must exist; what backs them is a file of the board's. */
static int mem_device_runs(struct card_mem *mem, const struct npu_hw_run *runs, uint32_t nruns)
{
	struct card *card = mem->card;
	struct npu_admin_cmd admin = { .op = NPU_ADMIN_MEM_CREATE, .mem = &mem->mem };
	uint64_t memory = card->board->options.memory, pages = memory / NPU_PAGE_SMALL, sum = 0;
	int r;

	for (uint32_t i = 0; i < nruns; i++) {
		if (!runs[i].count || runs[i].count > pages ||
		    runs[i].start > pages - runs[i].count ||
		    runs[i].count > mem->mem.bytes / NPU_PAGE_SMALL - sum)
			return -EINVAL;
		sum += runs[i].count;
	}
	if (sum != mem->mem.bytes / NPU_PAGE_SMALL)
		return -EINVAL;
	if (mem->mem.bytes > memory - card->device_bytes)
		return -ENOSPC;
	r = board_backend_shim.admin(card->board, &admin);
	if (r == 0)
		card->device_bytes += mem->mem.bytes;
	return r;
}

/* Frees what belongs to it; the board's part has gone. */
static void mem_free(struct card_mem *mem)
{
	mem->card->runs -= mem->nruns;
	if (mem->map)
		board_release_unmap(mem->card->board->release, mem->map, mem->mem.bytes);
	free(mem->runs);
	free(mem);
}

int card_mem_create(struct card *card, const struct npu_hw_cmd *cmd)
{
	bool device = cmd->mem.kind == NPU_MEM_DEVICE;
	uint64_t page = device ? NPU_PAGE_SMALL : CARD_PAGE;
	cleanup(sim_free) struct npu_hw_run *runs = NULL;
	struct card_mem *mem;
	int r;

	if (!cmd->id || cmd->mem.kind < NPU_MEM_DEVICE || cmd->mem.kind > NPU_MEM_IMAGE ||
	    !cmd->mem.bytes || cmd->mem.bytes % page || cmd->mem.bytes > INT64_MAX / 2)
		return -EINVAL;
	if (card_mem_find(card, cmd->id))
		return -EEXIST;
	r = runs_read(card, cmd, &runs);
	if (r < 0)
		return r;
	mem = calloc(1, sizeof(*mem));
	if (!mem)
		return -ENOMEM;
	mem->card = card;
	mem->id = cmd->id;
	mem->refs = 1;
	mem->named = true;
	mem->mem.id = cmd->id;
	mem->mem.kind = cmd->mem.kind;
	mem->mem.flags = cmd->mem.flags;
	mem->mem.bytes = cmd->mem.bytes;
	r = device ? mem_device_runs(mem, runs, cmd->mem.nruns) :
		     mem_host_runs(mem, runs, cmd->mem.nruns);
	if (r < 0) {
		mem_free(mem);
		return r;
	}
	mem->next = *mem_bucket(card, cmd->id);
	*mem_bucket(card, cmd->id) = mem;
	return 0;
}

static void mem_tell_gone(struct card_mem *mem)
{
	struct card *card = mem->card;

	card_admin_complete(card, &(struct npu_hw_completion){
		.type = NPU_HW_CQ_MEM_GONE, .id = mem->id });
	if (mem->mem.backend)
		card->device_bytes -= mem->mem.bytes;
	mem_free(mem);
}

void card_mem_gone(struct card *card, struct npu_mem *gone)
{
	struct card_mem *mem = sim_container(gone, struct card_mem, mem);
	struct card_mem **at = &card->going;

	while (*at != mem)
		at = &(*at)->next;
	*at = mem->next;
	mem_tell_gone(mem);
}

void card_mem_unref(struct card_mem *mem)
{
	struct npu_admin_cmd admin = { .op = NPU_ADMIN_MEM_DESTROY, .mem = &mem->mem };

	if (--mem->refs)
		return;
	if (mem->mem.backend &&
	    board_backend_shim.admin(mem->card->board, &admin) == NPU_ADMIN_PENDING) {
		mem->next = mem->card->going;
		mem->card->going = mem;
		return;
	}
	mem_tell_gone(mem);
}

void card_mem_drop(struct card_mem *mem)
{
	struct card_mem **at = mem_bucket(mem->card, mem->id);

	while (*at != mem)
		at = &(*at)->next;
	*at = mem->next;
	mem->named = false;
	card_mem_unref(mem);
}

void card_mem_drop_all(struct card *card)
{
	for (uint32_t i = 0; i < CARD_MEM_BUCKETS; i++) {
		while (card->mems[i])
			card_mem_drop(card->mems[i]);
	}
}

/* ---- maps ---------------------------------------------------------------------------------- */

/* The index of the first map that begins behind the address. */
static uint32_t map_behind(struct card_space *space, uint64_t address)
{
	uint32_t low = 0, high = space->nmaps;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (space->maps[mid]->map.address <= address)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

struct card_map *card_map_find(struct card_space *space, uint64_t address)
{
	uint32_t behind = map_behind(space, address);
	struct card_map *map = behind ? space->maps[behind - 1] : NULL;

	return map && address - map->map.address < map->map.bytes ? map : NULL;
}

static bool ranges_meet(uint64_t a, uint64_t a_bytes, uint64_t b, uint64_t b_bytes)
{
	return a < b + b_bytes && b < a + a_bytes;
}

static int map_check(struct card_space *space, const struct npu_hw_cmd *cmd, struct card_mem *mem)
{
	uint64_t address = cmd->map.address, bytes = cmd->map.bytes;
	uint64_t page = mem->mem.kind == NPU_MEM_DEVICE ? NPU_PAGE_SMALL : CARD_PAGE;
	uint32_t behind;

	if (mem->mem.kind == NPU_MEM_IMAGE || !bytes || bytes % page || address % page ||
	    cmd->map.offset % page || (cmd->map.flags & ~NPU_MAP_READ_ONLY))
		return -EINVAL;
	if (bytes > NPU_WINDOW_SIZE || address < NPU_WINDOW_BASE ||
	    address - NPU_WINDOW_BASE > NPU_WINDOW_SIZE - bytes ||
	    cmd->map.offset > mem->mem.bytes || bytes > mem->mem.bytes - cmd->map.offset)
		return -ERANGE;
	if (ranges_meet(address, bytes, space->session.slab_address, NPU_SLAB_SIZE))
		return -ERANGE;
	behind = map_behind(space, address);
	if (behind && address - space->maps[behind - 1]->map.address <
		      space->maps[behind - 1]->map.bytes)
		return -EEXIST;
	if (behind < space->nmaps && space->maps[behind]->map.address - address < bytes)
		return -EEXIST;
	return space->nmaps < CARD_MAPS_MAX ? 0 : -ENOSPC;
}

static int map_room(struct card_space *space)
{
	uint32_t room = space->maps_room ? 2 * space->maps_room : 16;
	struct card_map **maps;

	if (space->nmaps < space->maps_room)
		return 0;
	maps = reallocarray(space->maps, room, sizeof(*maps));
	if (!maps)
		return -ENOMEM;
	space->maps = maps;
	space->maps_room = room;
	return 0;
}

int card_map_add(struct card_space *space, const struct npu_hw_cmd *cmd)
{
	struct npu_admin_cmd admin = { .op = NPU_ADMIN_MAP, .session = &space->session };
	struct card_mem *mem = card_mem_find(space->card, cmd->map.mem);
	struct card_map *map;
	uint32_t at;
	int r;

	if (!mem)
		return -ENOENT;
	r = map_check(space, cmd, mem);
	if (r == 0)
		r = map_room(space);
	if (r < 0)
		return r;
	map = calloc(1, sizeof(*map));
	if (!map)
		return -ENOMEM;
	map->mem = mem;
	map->map.mem = &mem->mem;
	map->map.address = cmd->map.address;
	map->map.bytes = cmd->map.bytes;
	map->map.offset = cmd->map.offset;
	map->map.generation = cmd->map.generation;
	map->map.flags = cmd->map.flags;
	admin.map = &map->map;
	r = board_backend_shim.admin(space->card->board, &admin);
	if (r < 0) {
		free(map);
		return r;
	}
	at = map_behind(space, map->map.address);
	memmove(&space->maps[at + 1], &space->maps[at], (space->nmaps - at) * sizeof(*space->maps));
	space->maps[at] = map;
	space->nmaps++;
	mem->refs++;
	space->session.map_generation = map->map.generation;
	card_fetch_maps(space);
	return 0;
}

int card_map_remove(struct card_space *space, uint64_t address, uint64_t generation)
{
	struct npu_admin_cmd admin = { .op = NPU_ADMIN_UNMAP, .session = &space->session };
	uint32_t behind = map_behind(space, address);
	struct card_map *map = behind ? space->maps[behind - 1] : NULL;

	if (!map || map->map.address != address)
		return -ENOENT;
	map->map.generation = generation;
	admin.map = &map->map;
	board_backend_shim.admin(space->card->board, &admin);
	space->session.map_generation = generation;
	space->nmaps--;
	memmove(&space->maps[behind - 1], &space->maps[behind],
		(space->nmaps - (behind - 1)) * sizeof(*space->maps));
	card_fetch_maps(space);
	card_mem_unref(map->mem);
	free(map);
	return 0;
}

/* ---- modules ------------------------------------------------------------------------------- */

struct card_module *card_module_find(struct card_space *space, uint32_t id)
{
	struct card_module *module = space->modules;

	while (module && module->module.obj.id != id)
		module = module->next;
	return module;
}

/* The bytes as they are now, in a file of the board's: nobody else changes those. */
static int module_gather(struct card_mem *mem, uint64_t bytes, struct board_memory **ret_memory)
{
	struct board *board = mem->card->board;
	uint64_t page = NPU_PAGE_SMALL, whole = (bytes + page - 1) & ~(page - 1), n, bus;
	struct board_memory *memory;
	char *map;
	int r;

	r = board_memory_new(board->release, "npu-image", whole, &memory);
	if (r < 0)
		return r == -EMFILE || r == -ENFILE ? -ENOMEM : r;
	map = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, memory->fd, 0);
	if (map == MAP_FAILED) {
		board_memory_unref(memory);
		return -ENOMEM;
	}
	for (uint64_t at = 0; at < bytes && r == 0; at += n) {
		char *from = card_dma_memory(mem, at, bytes - at, &n, &bus);

		if (!from) {
			card_regs_error(mem->card, NPU_HW_CAUSE_DMA, bus, 0);
			r = -EFAULT;
			break;
		}
		memcpy(map + at, from, n);
	}
	munmap(map, whole);
	if (r < 0)
		board_memory_unref(memory);
	else
		*ret_memory = memory;
	return r;
}

static void module_free(struct card_space *space, struct card_module *module)
{
	space->card->image_bytes -= module->module.bytes;
	space->nmodules--;
	board_memory_unref(module->image.backend);
	free(module->funcs);
	free(module);
}

int card_module_load(struct card_space *space, const struct npu_hw_cmd *cmd)
{
	struct npu_admin_cmd admin = { .op = NPU_ADMIN_MODULE_LOAD, .session = &space->session };
	struct card_mem *mem = card_mem_find(space->card, cmd->module.mem);
	struct board_memory *memory;
	struct card_module *module;
	int r;

	if (!mem)
		return -ENOENT;
	if (!cmd->id || mem->mem.kind != NPU_MEM_IMAGE || !cmd->module.bytes ||
	    cmd->module.bytes > mem->mem.bytes)
		return -EINVAL;
	if (card_module_find(space, cmd->id))
		return -EEXIST;
	if (space->nmodules == CARD_MODULES_MAX)
		return -ENOSPC;
	if (cmd->module.bytes > CARD_IMAGE_MAX - space->card->image_bytes)
		return -ENOMEM;
	module = calloc(1, sizeof(*module));
	if (!module)
		return -ENOMEM;
	r = module_gather(mem, cmd->module.bytes, &memory);
	if (r < 0) {
		free(module);
		return r;
	}
	module->image.kind = NPU_MEM_IMAGE;
	module->image.bytes = memory->bytes;
	module->image.backend = memory;
	module->module.obj.id = cmd->id;
	module->module.mem = &module->image;
	module->module.bytes = cmd->module.bytes;
	module->module.state = NPU_MODULE_LOADING;
	space->card->image_bytes += cmd->module.bytes;
	space->nmodules++;
	admin.load.module = &module->module;
	admin.load.bytes = cmd->module.bytes;
	r = board_backend_shim.admin(space->card->board, &admin);
	if (r < 0) {
		module_free(space, module);
		return r;
	}
	module->next = space->modules;
	space->modules = module;
	return 0;
}

int card_module_drop(struct card_space *space, uint32_t id)
{
	struct npu_admin_cmd admin = { .op = NPU_ADMIN_MODULE_DROP, .session = &space->session };
	struct card_module **at = &space->modules, *module;

	while (*at && (*at)->module.obj.id != id)
		at = &(*at)->next;
	module = *at;
	if (!module)
		return -ENOENT;
	*at = module->next;
	admin.module = &module->module;
	board_backend_shim.admin(space->card->board, &admin);
	module_free(space, module);
	return 0;
}

void card_space_clear(struct card_space *space)
{
	while (space->nmaps)
		card_map_remove(space, space->maps[space->nmaps - 1]->map.address, 0);
	while (space->modules)
		card_module_drop(space, (uint32_t)space->modules->module.obj.id);
	for (uint32_t i = 0; i < NPU_MAX_QUEUES; i++) {
		free(space->queues[i]);
		space->queues[i] = NULL;
	}
	for (uint32_t i = 0; i <= NPU_CORE_MAX_CTX; i++) {
		free(space->ctxs[i]);
		space->ctxs[i] = NULL;
	}
	free(space->maps);
	space->maps = NULL;
	space->maps_room = 0;
}
