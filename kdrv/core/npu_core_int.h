/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * npu_core_int.h - what the files of kdrv/core share; not for fronts and backends
 *
 * Everything here is called with the core mutex held.
 */
#ifndef NPU_CORE_INT_H
#define NPU_CORE_INT_H

#include "kdrv/core/npu_core.h"
#include "kdrv/core/npu_pages.h"

#define NPU_EXPORT_BUCKETS 64u

struct npu_core_file {
	struct npu_list link; /* in npu_core.files */
	void *cookie;
	struct npu_event *events; /* NPU_CORE_EVENTS of them, a ring */
	uint32_t first;
	uint32_t count;
	uint32_t lost;
	struct npu_call_window window; /* of SESSION_CREATE */
};

struct npu_core {
	struct npu_shim shim;
	struct npu_core_config config;
	struct npu_list files;
	struct npu_table sessions;
	struct npu_list dying;      /* sessions whose SPACE_DESTROY is pending */
	struct npu_list mems;       /* all that live */
	struct npu_list dying_mems; /* whose MEM_DESTROY is pending */
	struct npu_list exports[NPU_EXPORT_BUCKETS];
	struct npu_pages pages;
	uint64_t mem_seq;
	uint64_t host_used;
	uint64_t boot_id;
	uint32_t health;
	uint64_t mem_used; /* bytes of device memory, bad pages in use included */
	uint64_t mem_peak;
	uint64_t fault_seq;
	uint64_t engine_starts;
	struct npu_fault_record *faults; /* NPU_CORE_FAULTS of them, seq 0: free */
	struct {
		uint64_t session;
		uint32_t count; /* 0: free */
	} fault_counts[2 * NPU_CORE_FAULTS]; /* hash table, for npu_fault.c to count in */
	struct {
		uint64_t session;
		uint64_t call;
	} tombs[NPU_CALL_WINDOW]; /* destroyed sessions, for a repeated SESSION_DESTROY */
	uint32_t tomb_next;
};

/* ---- calls: npu_call.c --------------------------------------------------------------------- */

struct npu_call {
	struct npu_core *core;
	struct npu_core_file *file;
	struct npu_session *session; /* NULL when the call names none */
	void *cookie;
};

#define NPU_ROW_SESSION 0x1u     /* head.session is needed */
#define NPU_ROW_SESSION_OPT 0x2u /* it may be 0 */
#define NPU_ROW_MUTATES 0x4u     /* head.call is needed, the result is kept */
#define NPU_ROW_MAKES 0x8u       /* refused when the session or the device is lost */

struct npu_row_zero {
	uint16_t offset;
	uint16_t bytes;
};

struct npu_row {
	uint16_t nr;
	uint16_t size;
	uint32_t flags_mask;
	uint32_t props; /* NPU_ROW_* */
	int (*handler)(struct npu_call *call, void *arg);
	/* Fills the fd slots of a repeated call; NULL: the struct has none. */
	int (*fds)(struct npu_call *call, void *arg);
	struct npu_row_zero zero[3]; /* reserved fields, bytes 0 ends */
};

/* The row of a call, or NULL; by number, or by index below npu_rows_count. */
const struct npu_row *npu_row_find(unsigned int nr);
extern const struct npu_row npu_rows[];
extern const uint32_t npu_rows_count;

/* Handlers: 0 or a negative errno. The head is checked, flags and reserved fields too. */
int npu_call_version(struct npu_call *call, void *arg);
int npu_call_discover(struct npu_call *call, void *arg);
int npu_call_query(struct npu_call *call, void *arg);
int npu_call_reset(struct npu_call *call, void *arg);
int npu_call_counters(struct npu_call *call, void *arg);
int npu_call_error_query(struct npu_call *call, void *arg);
int npu_call_inject(struct npu_call *call, void *arg);
int npu_call_session_create(struct npu_call *call, void *arg);
int npu_call_session_destroy(struct npu_call *call, void *arg);
int npu_call_obj_enum(struct npu_call *call, void *arg);
int npu_call_obj_fds(struct npu_call *call, void *arg);
int npu_call_obj_tag(struct npu_call *call, void *arg);
int npu_call_ctx_create(struct npu_call *call, void *arg);
int npu_call_ctx_destroy(struct npu_call *call, void *arg);
int npu_call_ctx_set(struct npu_call *call, void *arg);
int npu_call_mem_alloc(struct npu_call *call, void *arg);
int npu_call_mem_free(struct npu_call *call, void *arg);
int npu_call_mem_map(struct npu_call *call, void *arg);
int npu_call_mem_unmap(struct npu_call *call, void *arg);
int npu_call_mem_export(struct npu_call *call, void *arg);
int npu_call_mem_import(struct npu_call *call, void *arg);
int npu_call_host_register(struct npu_call *call, void *arg);
int npu_call_host_unregister(struct npu_call *call, void *arg);
int npu_call_mem_query(struct npu_call *call, void *arg);
int npu_call_queue_create(struct npu_call *call, void *arg);
int npu_call_queue_destroy(struct npu_call *call, void *arg);
int npu_call_queue_ctrl(struct npu_call *call, void *arg);
int npu_call_submit(struct npu_call *call, void *arg);
int npu_call_wait(struct npu_call *call, void *arg);
int npu_call_module_load(struct npu_call *call, void *arg);
int npu_call_module_unload(struct npu_call *call, void *arg);
int npu_call_func_lookup(struct npu_call *call, void *arg);

int npu_fds_session_create(struct npu_call *call, void *arg);
int npu_fds_mem_alloc(struct npu_call *call, void *arg);
int npu_fds_mem_export(struct npu_call *call, void *arg);
int npu_fds_mem_import(struct npu_call *call, void *arg);

/* ---- small helpers: npu_core.c ------------------------------------------------------------- */

void *npu_alloc(struct npu_core *core, size_t bytes);
/* count * size bytes; NULL on overflow, too. */
void *npu_alloc_array(struct npu_core *core, size_t count, size_t size);
void npu_free(struct npu_core *core, void *ptr, size_t bytes);
void npu_log(struct npu_core *core, enum npu_log_level level, uint64_t session, const char *text);
uint64_t npu_now(struct npu_core *core);
int npu_random(struct npu_core *core, void *ret_bytes, size_t bytes);
/* Posts a command; the status may be ignored for the drop commands. */
int npu_admin(struct npu_core *core, struct npu_admin_cmd *cmd);
/* Copies at most size - 1 bytes of a string whose end is not trusted: printable, NUL terminated. */
void npu_copy_text(char *dst, size_t size, const char *src, size_t max);

void npu_obj_init(struct npu_obj *obj, enum npu_object_type type, uint64_t user);
void npu_obj_fini(struct npu_core *core, struct npu_obj *obj);

/* ---- call-number window: npu_window.c ------------------------------------------------------ */

/* 1: repeated, *ret_result and arg's output are the stored ones; 0: new; -ESTALE, -EINVAL. */
int npu_window_replay(struct npu_call_window *window, const struct npu_row *row, uint64_t hash,
		      void *arg, int *ret_result);
void npu_window_store(struct npu_call_window *window, const struct npu_row *row, uint64_t call,
		      uint64_t hash, const void *arg, int result);
uint64_t npu_window_hash(const struct npu_row *row, const void *arg);

/* ---- handle tables: npu_handle.c ----------------------------------------------------------- */

void npu_table_init(struct npu_table *table, uint32_t max, uint32_t gen_bits, uint32_t gen_seed);
void npu_table_fini(struct npu_core *core, struct npu_table *table);
/* -ENOMEM, -ENOSPC: table is full. The object's id goes to *ret_id. */
int npu_table_insert(struct npu_core *core, struct npu_table *table, void *object,
		     uint64_t *ret_id);
/* More slots. -ENOMEM, -ENOSPC. */
int npu_table_grow(struct npu_core *core, struct npu_table *table);
void npu_table_remove(struct npu_table *table, uint64_t id);
void *npu_table_find(const struct npu_table *table, uint64_t id);
/* The first object in a slot >= *slot, whose number goes to *slot; NULL at the end. */
void *npu_table_next(const struct npu_table *table, uint32_t *slot);
uint32_t npu_table_slot_of(const struct npu_table *table, uint64_t id);

/* ---- sessions: npu_session.c --------------------------------------------------------------- */

/* Takes it out of reach and posts its end; freed here or by npu_core_space_gone(). */
void npu_session_destroy(struct npu_session *session);
/* Frees a session that the backend is through with. */
void npu_session_finish(struct npu_session *session);
/* The four fds; outputs are written on success only. */
int npu_session_fds(struct npu_call *call, struct npu_session *session, int32_t ret_fds[4]);
/* Every session is lost: with a fault record each. */
void npu_sessions_lose(struct npu_core *core);

/* ---- contexts: npu_ctx.c ------------------------------------------------------------------- */

struct npu_ctx *npu_ctx_find(struct npu_session *session, uint64_t id);
void npu_ctx_drop(struct npu_ctx *ctx); /* has no queues */

/* ---- memory: npu_mem.c, npu_share.c, npu_map.c --------------------------------------------- */

struct npu_mem_handle *npu_mem_find(struct npu_session *session, uint64_t id);
/* A new handle holds mem once more. -ENOMEM, -ENOSPC. */
int npu_mem_handle_new(struct npu_session *session, struct npu_mem *mem, uint64_t user,
		       bool imported, struct npu_mem_handle **ret_handle);
/* With its maps. */
void npu_mem_handle_drop(struct npu_mem_handle *handle);
/* A holder less; destroys with the last. */
void npu_mem_put(struct npu_core *core, struct npu_mem *mem);
/* Its pages are free, mem is freed. */
void npu_mem_finish(struct npu_core *core, struct npu_mem *mem);
/* No session is charged for it any more. */
void npu_mem_disown(struct npu_mem *mem);
/* No session finds it by its token any more. */
void npu_mem_unexport(struct npu_mem *mem);
int npu_mem_fd(struct npu_call *call, struct npu_mem *mem, int32_t *ret_fd);

/* Found with any address inside it, or NULL. */
struct npu_map *npu_map_covering(struct npu_session *session, uint64_t address);
/* The first map at or above address, or NULL. */
struct npu_map *npu_map_from(struct npu_session *session, uint64_t address);
/* Raises the generation, posts UNMAP and frees. */
void npu_map_drop(struct npu_map *map);
/* The physical page behind a device address, or NPU_PAGE_NONE. */
uint32_t npu_map_page(struct npu_session *session, uint64_t address);
/* -ERANGE, -EINVAL: not a range of whole pages in the window. */
int npu_window_check(uint64_t address, uint64_t bytes, uint64_t align);

/* ---- queues and modules: npu_queue.c, npu_module.c ----------------------------------------- */

struct npu_queue *npu_queue_find(struct npu_session *session, uint64_t id);
void npu_queue_drop(struct npu_queue *queue);
struct npu_module *npu_module_find(struct npu_session *session, uint64_t id);
void npu_module_drop(struct npu_module *module);
/* Name of a kernel, or NULL. */
const char *npu_module_func_name(const struct npu_module *module, uint32_t func);

/* ---- events and faults: npu_event.c, npu_fault.c ------------------------------------------- */

/*
 * A record to fill in, zeroed but for type, size, session, id, user and time; NULL when it is not
 * to be sent. Then npu_event_post().
 */
struct npu_event *npu_event_make(struct npu_core *core, struct npu_core_file *file, uint32_t type,
				 uint64_t session, uint64_t id, uint64_t user);
void npu_event_post(struct npu_core *core, struct npu_core_file *file);
/* A record without more than a status; file NULL: to nobody. */
void npu_event_send(struct npu_core *core, struct npu_core_file *file, uint32_t type,
		    uint64_t session, uint64_t id, uint64_t user, int32_t status);
void npu_event_send_all(struct npu_core *core, uint32_t type, uint64_t id, int32_t status);

/* Records it, counts it, sends NPU_EVENT_FAULT. */
void npu_fault_add(struct npu_core *core, struct npu_session *session, struct npu_queue *queue,
		   const struct npu_fault_record *record);

#endif
