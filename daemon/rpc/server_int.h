/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NPU_RPC_SERVER_INT_H
#define NPU_RPC_SERVER_INT_H

#include "daemon/rpc/client.h"

/* Inside of struct server; only rpc/ includes this. */

struct server {
	struct loop *loop;
	struct core *core;
	struct closer *closer;
	const struct conf *conf;
	const char *runtime_dir;
	const char *version;
	int listen_fd;
	char *path; /* of the socket we made, else NULL */
	struct loop_fd *source;
	struct loop_timer *pause; /* out of fds: accept again later */
	gid_t admin_gid;	  /* (gid_t)-1: there is no such group */
	uint64_t started_ms;
	bool stopping;
	unsigned int connections;
	TAILQ_HEAD(, client) clients;
	/* one frame, cut short when it is longer than allowed, and the fds that came with it */
	_Alignas(8) unsigned char frame[WIRE_FRAME_MAX];
	int fds[WIRE_FDS_RECEIVE_MAX];
};

#endif
