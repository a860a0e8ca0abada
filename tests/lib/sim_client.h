/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NPU_TESTS_LIB_SIM_CLIENT_H
#define NPU_TESTS_LIB_SIM_CLIENT_H

/*
 * sim_client - an npu-sim of a test's own, and the device interface over its socket, without npud.
 *
 * For Check tests, one thread: whatever a test does not expect to fail ends it with a message.
 * Calls give what the device answered. Call numbers of mutating calls are counted here.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "kdrv/uapi/npu.h"

#define SIM_WAIT_MS 20000 /* deadline of whatever a test waits for */
#define SIM_SLAB_ADDRESS (NPU_WINDOW_BASE + (256ull << 30))
#define SIM_CLIENT_EVENTS 64u

struct sim_board {
	pid_t pid;
	char dir[64];
	char socket[96];
	char log[96];
};

struct sim_client {
	int fd;
	uint64_t id;    /* of the last request */
	uint64_t call;  /* number of the last mutating call */
	int fds[4];     /* of the last reply */
	unsigned int nfds;
	struct npu_event events[SIM_CLIENT_EVENTS]; /* not yet taken */
	unsigned int nevents;

	/* the session, see sim_client_session() */
	uint64_t session;
	int slab_fd, doorbell, completion, life;
	char *slab;
};

/* Starts npu-sim in a fresh directory; more: options, NULL at the end. Listens on return. */
void sim_board_start(struct sim_board *board, const char *const more[]);
/* Ends it by SIGTERM, reaps it, removes its directory. Returns the wait status. */
int sim_board_stop(struct sim_board *board);

/* Removes the directory of a board that was killed, with what it left there. */
void sim_board_clear(struct sim_board *board);

/* A bare connection. */
int sim_connect(const struct sim_board *board);

void sim_client_open(struct sim_client *client, const struct sim_board *board);
/* Closes all fds and the mapping; the device sees the connection end. */
void sim_client_close(struct sim_client *client);

/* One call. head.size, session and call are filled in where 0. fds of the reply: client->fds. */
int sim_client_call(struct sim_client *client, unsigned int nr, void *arg, size_t bytes);
#define SIM_CALL(client, request, arg) \
	sim_client_call(client, _IOC_NR(NPU_IOCTL_##request), arg, sizeof(*(arg)))

/* The next event record of a type; others before it are dropped. Waits SIM_WAIT_MS at most. */
struct npu_event sim_client_event(struct sim_client *client, enum npu_event_type type);

/* ---- the usual calls, which must succeed --------------------------------------------------- */

/* Makes a session and maps its slab. */
void sim_client_session(struct sim_client *client);
void sim_client_session_end(struct sim_client *client); /* and waits until all is gone */
uint32_t sim_client_context(struct sim_client *client);
uint32_t sim_client_queue(struct sim_client *client, uint32_t ctx, uint32_t *ret_slot);
/* *ret_fd: -1 when not host visible. */
uint64_t sim_client_memory(struct sim_client *client, uint32_t kind, uint64_t bytes, int *ret_fd);
void sim_client_map(struct sim_client *client, uint64_t mem, uint64_t address, uint64_t bytes);
/* Loads an image file and waits for the end; gives the status, and the module. */
int sim_client_module(struct sim_client *client, const char *path, uint32_t *ret_module);
/* The index of a kernel, by name. */
uint32_t sim_client_function(struct sim_client *client, uint32_t module, const char *name);
uint64_t sim_client_counter(struct sim_client *client, uint64_t session, enum npu_counter counter);
/* Waits until an engine of the session runs that is not `other`. */
pid_t sim_client_engine(struct sim_client *client, pid_t other);

/* ---- rings --------------------------------------------------------------------------------- */

struct npu_ring_ctrl *sim_client_ring(struct sim_client *client, uint32_t slot);
void sim_client_submit(struct sim_client *client, uint32_t slot, const struct npu_entry *entry);
/* A kernel of one block; args are copied to the ring's argument space. */
void sim_client_launch(struct sim_client *client, uint32_t slot, uint32_t module, uint32_t func,
		       const void *args, uint32_t args_size, uint32_t timeout_us);
/* Waits until all that was submitted is done. False: not within ms. */
bool sim_client_sync(struct sim_client *client, uint32_t slot, unsigned int ms);

#endif
