/* SPDX-License-Identifier: Apache-2.0 */
/*
 * References: the core's object, and messages to engines that still carry the fd. Only the last one
 * gives the file to the releaser, so an fd number never changes its meaning under a message.
 */
#include "sim/board_memory.h"

#include <fcntl.h>
#include <sys/mman.h>

#include "sim/sim_fd.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008u
#endif

int board_memory_file(const char *name, uint64_t bytes, int *ret_fd)
{
	cleanup(sim_fd_close) int fd = -1;

	/* Not executable where the kernel knows the flag (6.3). */
	fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
	if (fd < 0 && errno == EINVAL)
		fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)bytes) < 0)
		return -errno;
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		return -errno;
	*ret_fd = sim_fd_steal(&fd);
	return 0;
}

int board_memory_new(struct board_release *release, const char *name, uint64_t bytes,
		     struct board_memory **ret_memory)
{
	struct board_memory *memory = calloc(1, sizeof(*memory));
	int r;

	if (!memory)
		return -ENOMEM;
	r = board_memory_file(name, bytes, &memory->fd);
	if (r < 0) {
		free(memory);
		return r;
	}
	memory->release = release;
	memory->bytes = bytes;
	memory->refs = 1;
	*ret_memory = memory;
	return 0;
}

struct board_memory *board_memory_ref(struct board_memory *memory)
{
	memory->refs++;
	return memory;
}

static void memory_reached(struct board_job *mark)
{
	struct board_memory *memory = sim_container(mark, struct board_memory, mark);

	if (memory->retired)
		memory->retired(memory->arg);
	free(memory);
}

static void memory_release(struct board_memory *memory)
{
	board_release_file(memory->release, &memory->mark, memory->fd, memory->bytes,
			   memory_reached);
	memory->fd = -1;
}

static void memory_filled(struct board_job *job)
{
	struct board_memory *memory = sim_container(job, struct board_memory, filling);

	memory->fill = NULL;
	if (!memory->refs)
		memory_release(memory);
}

void board_memory_populate(struct board_memory *memory, struct board_release *fill)
{
	memory->fill = fill;
	board_release_populate(fill, &memory->filling, memory->fd, memory->bytes, memory_filled);
}

void board_memory_unref(struct board_memory *memory)
{
	if (!memory || --memory->refs)
		return;
	/* The piece that is being populated goes on in the file: memory_filled() sees to it. */
	if (!memory->fill || board_release_cancel(memory->fill, &memory->filling))
		memory_release(memory);
}

void board_memory_retire(struct board_memory *memory, void (*retired)(void *arg), void *arg)
{
	memory->retired = retired;
	memory->arg = arg;
	board_memory_unref(memory);
}
