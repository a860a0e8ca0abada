/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The machine's RAM is one shared file. RAM below 4 GiB lies at its own address, the rest from 4
 * GiB on: what is neither is no RAM, and never touched. The file may be made by QEMU after us, so
 * it is opened at the first access of each machine.
 */
#include "sim/card.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "sim/board_memory.h"
#include "sim/sim_fd.h"

#define FOUR_GIB (4ull << 30)
#define BELOW_4G_MOST (2ull << 30) /* of RAM, when --ram-below-4g says nothing (q35) */

void card_dma_forget(struct card *card)
{
	if (card->ram.map)
		munmap(card->ram.map, card->ram.bytes);
	card->ram = (struct card_ram){ 0 };
}

static int dma_open(struct card *card)
{
	const struct sim_options *options = &card->board->options;
	cleanup(sim_fd_close) int fd = -1;
	struct stat st;
	void *map;

	fd = open(options->ram, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size <= 0)
		return -ENXIO;
	map = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	card->ram.map = map;
	card->ram.bytes = (uint64_t)st.st_size;
	card->ram.below4g = options->ram_below_4g ? options->ram_below_4g : BELOW_4G_MOST;
	if (card->ram.below4g > card->ram.bytes)
		card->ram.below4g = card->ram.bytes;
	sim_log(SIM_LOG_INFO, "%s: %llu MiB of RAM, %llu of them below 4 GiB", options->ram,
		(unsigned long long)(card->ram.bytes >> 20),
		(unsigned long long)(card->ram.below4g >> 20));
	return 0;
}

char *card_dma_at(struct card *card, uint64_t bus, uint64_t bytes, uint64_t *ret_bytes)
{
	struct card_ram *ram = &card->ram;
	uint64_t offset, room;

	if (!ram->map) {
		int r = dma_open(card);

		if (r < 0) {
			if (sim_log_limit_ok(&card->limit))
				sim_log(SIM_LOG_ERROR, "%s: cannot open the machine's RAM: %s",
					card->board->options.ram, strerror(-r));
			return NULL;
		}
	}
	if (bus < ram->below4g) {
		offset = bus;
		room = ram->below4g - bus;
	} else {
		if (bus < FOUR_GIB || bus - FOUR_GIB >= ram->bytes - ram->below4g)
			return NULL;
		offset = bus - FOUR_GIB + ram->below4g;
		room = ram->bytes - offset;
	}
	*ret_bytes = bytes < room ? bytes : room;
	return ram->map + offset;
}

static int dma_move(struct card *card, uint64_t bus, char *buffer, uint64_t bytes, bool write)
{
	while (bytes) {
		uint64_t n;
		char *at = card_dma_at(card, bus, bytes, &n);

		if (!at) {
			card_regs_error(card, NPU_HW_CAUSE_DMA, bus, write);
			return -EFAULT;
		}
		if (write)
			memcpy(at, buffer, n);
		else
			memcpy(buffer, at, n);
		buffer += n;
		bytes -= n;
		if (bytes && __builtin_add_overflow(bus, n, &bus))
			return -EFAULT;
	}
	return 0;
}

int card_dma_read(struct card *card, uint64_t bus, void *buffer, uint64_t bytes)
{
	return dma_move(card, bus, buffer, bytes, false);
}

int card_dma_write(struct card *card, uint64_t bus, const void *buffer, uint64_t bytes)
{
	return dma_move(card, bus, (char *)buffer, bytes, true);
}

/* Device memory is mapped at its first copy, for as long as it lives. */
static char *dma_device_memory(struct card_mem *mem)
{
	struct board_memory *memory = mem->mem.backend;
	void *map;

	if (mem->map)
		return mem->map;
	map = mmap(NULL, mem->mem.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
		   memory->fd, 0);
	if (map == MAP_FAILED)
		return NULL;
	mem->map = map;
	return map;
}

/* The run that holds an offset below the memory's size; runs are in order and without gaps. */
static const struct card_run *mem_run(const struct card_mem *mem, uint64_t offset)
{
	uint32_t low = 0, high = mem->nruns;

	while (high - low > 1) {
		uint32_t mid = low + (high - low) / 2;

		if (mem->runs[mid].offset <= offset)
			low = mid;
		else
			high = mid;
	}
	return &mem->runs[low];
}

char *card_dma_memory(struct card_mem *mem, uint64_t offset, uint64_t bytes, uint64_t *ret_bytes,
		      uint64_t *ret_bus)
{
	const struct card_run *run = mem_run(mem, offset);
	uint64_t into = offset - run->offset;

	if (bytes > run->bytes - into)
		bytes = run->bytes - into;
	*ret_bus = run->bus + into;
	return card_dma_at(mem->card, *ret_bus, bytes, ret_bytes);
}

char *card_dma_device(struct card_space *space, uint64_t address, uint64_t bytes, bool write,
		      uint64_t *ret_bytes, uint64_t *ret_bus)
{
	struct card_map *map = card_map_find(space, address);
	uint64_t offset, room;
	char *memory;

	*ret_bus = UINT64_MAX;
	if (!map || (write && (map->map.flags & NPU_MAP_READ_ONLY)))
		return NULL;
	room = map->map.bytes - (address - map->map.address);
	offset = map->map.offset + (address - map->map.address);
	if (bytes > room)
		bytes = room;
	if (map->mem->mem.kind != NPU_MEM_DEVICE)
		return card_dma_memory(map->mem, offset, bytes, ret_bytes, ret_bus);
	memory = dma_device_memory(map->mem);
	if (!memory)
		return NULL;
	*ret_bytes = bytes;
	return memory + offset;
}
