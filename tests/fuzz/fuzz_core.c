/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An input is a row of steps. A step that is a call starts from a struct with a right head, zeroed
 * or filled in likely ways; the input then changes single fields: to raw values, to addresses of
 * the window, or to values that earlier calls gave back. So good calls are as likely as bad ones.
 * Other steps are the backend's upcalls, closing and opening of the file, and failures of memory,
 * fds and commands.
 */
#include "tests/fuzz/fuzz_core.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kdrv/core/npu_core_int.h"
#include "tests/lib/core_rig.h"

#define POOL 64u
#define KINDS 6u /* of what is remembered */
#define STEPS 512u

struct fuzz {
	const uint8_t *data;
	size_t size;
	struct core_rig rig;
	uint64_t pool[KINDS][POOL]; /* handles that were given back, by kind */
	uint32_t pooled[KINDS];
	uint64_t sessions[8];
	uint32_t nsessions;
};

enum { CTX, MEM, QUEUE, MODULE, TOKEN, OTHER };

static _Alignas(8) uint8_t buffer[NPU_CALL_MAX];

static uint8_t byte(struct fuzz *fuzz)
{
	if (!fuzz->size)
		return 0;
	fuzz->size--;
	return *fuzz->data++;
}

static uint64_t number(struct fuzz *fuzz, unsigned int bytes)
{
	uint64_t value = 0;

	while (bytes--)
		value = value << 8 | byte(fuzz);
	return value;
}

static void remember(struct fuzz *fuzz, unsigned int kind, uint64_t value)
{
	fuzz->pool[kind][fuzz->pooled[kind]++ % POOL] = value;
}

/* One of the last few. */
static uint64_t recall(struct fuzz *fuzz, unsigned int kind)
{
	uint32_t count = fuzz->pooled[kind] < POOL ? fuzz->pooled[kind] : POOL;

	return count ? fuzz->pool[kind][byte(fuzz) % count] : 0;
}

static void fill_memory(struct fuzz *fuzz, unsigned int nr)
{
	struct npu_mem_import *import = (struct npu_mem_import *)buffer;
	struct npu_mem_alloc *alloc = (struct npu_mem_alloc *)buffer;
	struct npu_mem_map *map = (struct npu_mem_map *)buffer;
	struct npu_host_register *host = (struct npu_host_register *)buffer;
	uint32_t i;

	switch (nr) {
	case _IOC_NR(NPU_IOCTL_MEM_ALLOC):
		alloc->kind = 1 + byte(fuzz) % 3;
		alloc->bytes = (1 + number(fuzz, 1) % 48) << 15;
		break;
	case _IOC_NR(NPU_IOCTL_MEM_MAP):
		map->mem = recall(fuzz, MEM);
		map->address = NPU_WINDOW_BASE + number(fuzz, 1) * NPU_PAGE_SMALL;
		map->bytes = (1 + byte(fuzz) % 4) * NPU_PAGE_SMALL;
		break;
	case _IOC_NR(NPU_IOCTL_MEM_UNMAP):
	case _IOC_NR(NPU_IOCTL_HOST_UNREGISTER):
		((struct npu_mem_unmap *)buffer)->address =
			NPU_WINDOW_BASE + number(fuzz, 1) * NPU_PAGE_SMALL;
		((struct npu_mem_unmap *)buffer)->bytes = (1 + byte(fuzz) % 4) * NPU_PAGE_SMALL;
		break;
	case _IOC_NR(NPU_IOCTL_HOST_REGISTER):
		host->mem = recall(fuzz, MEM);
		host->address = NPU_WINDOW_BASE + number(fuzz, 1) * NPU_PAGE_SMALL;
		host->bytes = NPU_PAGE_SMALL;
		break;
	case _IOC_NR(NPU_IOCTL_MEM_IMPORT):
		i = fuzz->pooled[TOKEN] ? (byte(fuzz) % fuzz->pooled[TOKEN] % POOL) & ~1u : 0;
		import->token[0] = fuzz->pool[TOKEN][i];
		import->token[1] = fuzz->pool[TOKEN][i + 1];
		break;
	default: /* FREE, EXPORT, QUERY: the handle comes first */
		((struct npu_mem_free *)buffer)->mem = recall(fuzz, MEM);
		break;
	}
}

/* What a caller who means well would send. */
static void fill_likely(struct fuzz *fuzz, unsigned int nr)
{
	struct npu_queue_ctrl *ctrl = (struct npu_queue_ctrl *)buffer;
	struct npu_module_load *load = (struct npu_module_load *)buffer;
	struct npu_submit *submit = (struct npu_submit *)buffer;
	struct npu_obj_tag *tag = (struct npu_obj_tag *)buffer;
	static const uint8_t pools[] = { OTHER, CTX, MEM, QUEUE, MODULE, OTHER };

	switch (nr >> 4) {
	case 2: /* restart */
		tag->type = 1 + byte(fuzz) % 6;
		tag->id = tag->type == NPU_OBJ_SESSION ? tag->head.session :
							 recall(fuzz, pools[tag->type - 1]);
		if (nr == _IOC_NR(NPU_IOCTL_OBJ_TAG))
			tag->bytes = byte(fuzz);
		if (nr == _IOC_NR(NPU_IOCTL_OBJ_ENUM))
			((struct npu_obj_enum *)buffer)->cursor = recall(fuzz, OTHER);
		break;
	case 3:
		if (nr != _IOC_NR(NPU_IOCTL_CTX_CREATE))
			((struct npu_ctx_set *)buffer)->ctx = (uint32_t)recall(fuzz, CTX);
		break;
	case 4:
		fill_memory(fuzz, nr);
		break;
	case 5:
		ctrl->queue = (uint32_t)recall(fuzz, nr == _IOC_NR(NPU_IOCTL_QUEUE_CREATE) ? CTX :
											 QUEUE);
		if (nr == _IOC_NR(NPU_IOCTL_QUEUE_CTRL))
			ctrl->op = 1 + byte(fuzz) % 5;
		else if (nr == _IOC_NR(NPU_IOCTL_SUBMIT))
			submit->count = byte(fuzz);
		else if (nr == _IOC_NR(NPU_IOCTL_WAIT))
			((struct npu_wait *)buffer)->done = byte(fuzz);
		break;
	case 6:
		if (nr == _IOC_NR(NPU_IOCTL_MODULE_LOAD)) {
			load->mem = recall(fuzz, MEM);
			load->bytes = 1 + byte(fuzz);
		} else {
			((struct npu_func_lookup *)buffer)->module = (uint32_t)recall(fuzz, MODULE);
		}
		break;
	default:
		break;
	}
}

static void change_field(struct fuzz *fuzz, uint32_t size)
{
	uint8_t kind = byte(fuzz);
	uint32_t offset = (uint32_t)number(fuzz, kind & 0x80 ? 2 : 1) * 4 % (size & ~3u);
	uint64_t value;

	switch (kind & 7) {
	case 0:
	case 1:
		value = byte(fuzz);
		break;
	case 2:
		value = number(fuzz, 4);
		break;
	case 3:
		value = number(fuzz, 8);
		break;
	case 4:
		value = NPU_WINDOW_BASE + number(fuzz, 1) * NPU_PAGE_SMALL;
		break;
	case 5:
		value = number(fuzz, 1) * NPU_PAGE_SMALL;
		break;
	default:
		value = recall(fuzz, byte(fuzz) % KINDS);
		break;
	}
	if (kind & 0x40 && offset + 8 <= size)
		memcpy(buffer + offset, &value, 8);
	else
		memcpy(buffer + offset, &value, 4);
}

/* What a call gave back, to be used by later ones. */
static void collect(struct fuzz *fuzz, unsigned int nr)
{
	switch (nr) {
	case _IOC_NR(NPU_IOCTL_SESSION_CREATE):
		fuzz->sessions[fuzz->nsessions++ % 8] =
			((struct npu_session_create *)buffer)->session;
		break;
	case _IOC_NR(NPU_IOCTL_CTX_CREATE):
		remember(fuzz, CTX, ((struct npu_ctx_create *)buffer)->ctx);
		break;
	case _IOC_NR(NPU_IOCTL_MEM_ALLOC):
		remember(fuzz, MEM, ((struct npu_mem_alloc *)buffer)->mem);
		break;
	case _IOC_NR(NPU_IOCTL_MEM_EXPORT):
		remember(fuzz, TOKEN, ((struct npu_mem_export *)buffer)->token[0]);
		remember(fuzz, TOKEN, ((struct npu_mem_export *)buffer)->token[1]);
		break;
	case _IOC_NR(NPU_IOCTL_MEM_IMPORT):
		remember(fuzz, MEM, ((struct npu_mem_import *)buffer)->mem);
		break;
	case _IOC_NR(NPU_IOCTL_QUEUE_CREATE):
		remember(fuzz, QUEUE, ((struct npu_queue_create *)buffer)->queue);
		break;
	case _IOC_NR(NPU_IOCTL_MODULE_LOAD):
		remember(fuzz, MODULE, ((struct npu_module_load *)buffer)->module);
		break;
	case _IOC_NR(NPU_IOCTL_MEM_MAP):
		remember(fuzz, OTHER, ((struct npu_mem_map *)buffer)->address);
		break;
	case _IOC_NR(NPU_IOCTL_OBJ_ENUM):
		remember(fuzz, OTHER, ((struct npu_obj_enum *)buffer)->cursor);
		break;
	default:
		break;
	}
}

static void step_call(struct fuzz *fuzz, const struct npu_row *row)
{
	struct npu_head *head = (struct npu_head *)buffer;
	uint8_t mode = byte(fuzz), fields = byte(fuzz) % 8;
	uint32_t size, n = fuzz->nsessions < 8 ? fuzz->nsessions : 8;

	/* what ends everything is to be rare */
	if ((row->handler == npu_call_session_destroy || row->handler == npu_call_reset) &&
	    byte(fuzz) & 0xf)
		row = npu_row_find(_IOC_NR(NPU_IOCTL_MODULE_LOAD));
	size = row->size;
	memset(buffer, 0, sizeof(buffer));
	if ((mode & 3) == 1)
		size += byte(fuzz);
	if (row->props & (NPU_ROW_SESSION | NPU_ROW_SESSION_OPT))
		head->session = fuzz->sessions[(mode >> 5) % n];
	head->flags = row->flags_mask & byte(fuzz);
	if (row->nr == _IOC_NR(NPU_IOCTL_SESSION_CREATE))
		((struct npu_session_create *)buffer)->slab_address = CORE_RIG_SLAB;
	if ((row->props & NPU_ROW_MUTATES) && (mode & 6) == 6)
		head->call = fuzz->rig.call - byte(fuzz) % 80;
	if (mode & 0x10)
		fill_likely(fuzz, row->nr);
	for (fields = fields < 4 && mode & 0x10 ? 0 : fields; fields; fields--)
		change_field(fuzz, size);
	if (mode & 8)
		head->size = size;
	if (core_rig_call(&fuzz->rig, row->nr, buffer, size) == 0)
		collect(fuzz, row->nr);
}

static void step_upcall(struct fuzz *fuzz, uint8_t kind)
{
	static struct npu_core_func funcs[3];
	struct core_rig *rig = &fuzz->rig;
	struct npu_session *session = core_rig_find(rig, fuzz->sessions[byte(fuzz) % 8]);
	struct npu_fault_record record = { .kind = byte(fuzz),
					   .module = (uint32_t)recall(fuzz, MODULE) };
	uint32_t value = (uint32_t)recall(fuzz, kind % 4 ? QUEUE : MODULE);

	if (!session)
		return;
	switch (kind % 4) {
	case 0:
		memset(funcs, 0, sizeof(funcs));
		memset(funcs[0].name, byte(fuzz), byte(fuzz));
		funcs[1].name[0] = (char)byte(fuzz);
		funcs[1].params = byte(fuzz) % 80;
		funcs[2].name[0] = 'k';
		npu_core_module_done(rig->core, session, value, -(int)(byte(fuzz) % 3), funcs,
				     byte(fuzz) % 4, "no");
		break;
	case 1:
		npu_core_fault(rig->core, session, byte(fuzz), &record);
		break;
	case 2:
		npu_core_queue_done(rig->core, session, value, byte(fuzz));
		break;
	default:
		npu_core_engine_started(rig->core, session);
		break;
	}
}

static void step_other(struct fuzz *fuzz, uint8_t kind)
{
	struct core_rig *rig = &fuzz->rig;
	struct npu_event event;
	size_t fail_at;

	switch (kind % 12) {
	case 0:
		npu_core_file_close(rig->core, rig->file, byte(fuzz) & 1);
		fail_at = rig->fail_at;
		rig->fail_at = 0;
		core_rig_check(npu_core_file_open(rig->core, rig, &rig->file) == 0, "file");
		rig->fail_at = fail_at;
		break;
	case 1:
		rig->now += byte(fuzz);
		npu_core_orphans_expire(rig->core, byte(fuzz));
		break;
	case 2:
		rig->fail_at = byte(fuzz) % 16;
		break;
	case 3:
		rig->fail_op = byte(fuzz) % 20;
		rig->fail_errno = -EIO;
		break;
	case 4:
		rig->fd_errno = byte(fuzz) & 3 ? 0 : -EMFILE;
		break;
	case 5:
		rig->space_pending = byte(fuzz) & 1;
		rig->mem_pending = byte(fuzz) & 1;
		break;
	case 6:
		core_rig_settle(rig);
		break;
	case 7:
		npu_core_page_bad(rig->core, (uint32_t)number(fuzz, 2));
		break;
	case 8:
		npu_core_health(rig->core, byte(fuzz) == 0xff ? NPU_HEALTH_LOST : byte(fuzz) % 2);
		break;
	case 9:
		while (npu_core_event_read(rig->core, rig->file, &event) == 0)
			core_rig_check(event.size == sizeof(event), "size of an event");
		break;
	case 10:
		rig->done = byte(fuzz);
		rig->taken = byte(fuzz);
		break;
	default:
		step_upcall(fuzz, byte(fuzz));
		break;
	}
}

/* The charges of all sessions and of the device agree with the memory that lives. */
static void check_sums(struct core_rig *rig)
{
	uint64_t used = 0, host = 0, pages = 0;
	struct npu_session *session;
	struct npu_list *lists[] = { &rig->core->mems, &rig->core->dying_mems }, *link;
	uint32_t i, slot;

	for (i = 0; i < 2; i++) {
		for (link = lists[i]->next; link != lists[i]; link = link->next) {
			struct npu_mem *mem = npu_container_of(link, struct npu_mem, link);

			if (mem->kind == NPU_MEM_DEVICE)
				used += mem->bytes;
			else
				host += mem->bytes;
			core_rig_check(mem->dying == (i == 1), "dying memory in the wrong list");
			core_rig_check(mem->dying == !mem->holders, "memory without a holder");
		}
	}
	pages = rig->core->pages.larges * NPU_PAGES_LARGE - rig->core->pages.nfree;
	core_rig_check(used == rig->core->mem_used && host == rig->core->host_used,
		       "device charge differs from the memory that lives");
	core_rig_check(used / NPU_PAGE_SMALL <= pages &&
			       used / NPU_PAGE_SMALL + rig->core->pages.nbad >= pages,
		       "pages in use differ from the memory that lives");
	for (slot = 0; (session = npu_table_next(&rig->core->sessions, &slot)); slot++) {
		core_rig_check(session->mem_used <= used && session->host_used <= host,
			       "a session is charged for more than there is");
		used -= session->mem_used;
		host -= session->host_used;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz *fuzz = calloc(1, sizeof(*fuzz));
	unsigned int steps = 0;
	uint8_t op;

	core_rig_check(fuzz != NULL, "host out of memory");
	fuzz->data = data;
	fuzz->size = size;
	core_rig_check(core_rig_init(&fuzz->rig, 16ull << 20, ~0ull, 6) == 0, "start");
	core_rig_check(core_rig_session(&fuzz->rig, &fuzz->sessions[0]) == 0, "session");
	fuzz->nsessions = 1;
	for (steps = 0; fuzz->size && steps < STEPS; steps++) {
		op = byte(fuzz);
		if (op < 0xd0)
			step_call(fuzz, &npu_rows[op % npu_rows_count]);
		else
			step_other(fuzz, op);
		check_sums(&fuzz->rig);
	}
	core_rig_fini(&fuzz->rig);
	free(fuzz);
	return 0;
}
