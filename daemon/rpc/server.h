/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NPU_RPC_SERVER_H
#define NPU_RPC_SERVER_H

#include "daemon/conf/conf.h"
#include "daemon/core/core.h"
#include "daemon/loop/loop.h"
#include "daemon/util/closer.h"

/*
 * The control socket: accepts clients (client.h) and owns them. The loop's thread.
 */

struct server;

struct server_config {
	const struct conf *conf;
	const char *runtime_dir;
	const char *version; /* "npud 0.1.0" */
	int listen_fd;	     /* from the service manager; -1: make RUNTIME_DIR/npud.sock */
};

/* Takes listen_fd over. Strings and conf must outlive it. An error is logged. */
int server_new(struct loop *loop, struct core *core, struct closer *closer,
	       const struct server_config *config, struct server **ret_server);
/* Takes no new clients, and disconnects those there are: their sessions begin to go. */
void server_stop(struct server *server);
/* After server_stop(), when the core has no operation left. Removes the socket it made. */
void server_free(struct server *server);

#endif
