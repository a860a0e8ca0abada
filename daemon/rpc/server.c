/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listening and accepting. Who may connect is decided by the mode of the socket; who a peer is, by
 * the kernel (SO_PEERCRED, SO_PEERGROUPS) at the time it connected.
 */
#include "daemon/rpc/server_int.h"
#include "daemon/util/cleanup.h"
#include "daemon/util/fd.h"
#include "daemon/util/log.h"

#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#define ACCEPT_BATCH	  16
#define ACCEPT_PAUSE_MS	  100
/* Over the limits of sessions, in all and of one user: for npuctl, and to refuse politely. */
#define SPARE_CONNECTIONS    64
#define SPARE_PER_USER	     16
#define RESERVED_CONNECTIONS 32 /* of the spare ones: for root and npud's own user */
#define NEW_PER_USER	     32 /* connections that have not said Hello */
#define GROUPS_MAX	     1024

static bool peer_in_group(int fd, const struct ucred *peer, gid_t group)
{
	gid_t groups[GROUPS_MAX];
	socklen_t len = sizeof(groups);

	if (group == (gid_t)-1)
		return false;
	if (peer->gid == group)
		return true;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &len) < 0)
		return false;
	for (size_t i = 0; i < len / sizeof(gid_t); i++) {
		if (groups[i] == group)
			return true;
	}
	return false;
}

/* Start time (field 22 of stat) and name; they stay empty for a process we can't see. */
static void peer_process(struct session_peer *peer)
{
	char path[48], line[1024];
	unsigned long long start;
	char *end, *open;
	size_t n;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%ld/stat", (long)peer->pid);
	file = fopen(path, "re");
	if (!file)
		return;
	n = fread(line, 1, sizeof(line) - 1, file);
	fclose(file);
	line[n] = '\0';
	open = strchr(line, '(');
	end = strrchr(line, ')'); /* the name may have brackets and blanks of its own */
	if (!open || !end || end < open)
		return;
	n = (size_t)(end - open - 1);
	if (n >= sizeof(peer->comm))
		n = sizeof(peer->comm) - 1;
	memcpy(peer->comm, open + 1, n);
	if (sscanf(end + 1,
		   " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d "
		   "%*d %*d %llu",
		   &start) == 1)
		peer->pid_start = start;
}

static int identify(struct server *server, int fd, struct session_peer *ret_peer)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0)
		return -errno;
	*ret_peer = (struct session_peer){ .pid = cred.pid, .uid = cred.uid, .gid = cred.gid };
	ret_peer->admin = cred.uid == 0 || cred.uid == geteuid() ||
			  peer_in_group(fd, &cred, server->admin_gid);
	peer_process(ret_peer);
	return 0;
}

static bool too_many(struct server *server, const struct session_peer *peer)
{
	static struct log_limit limit;
	struct log_ident ident = { .pid = peer->pid, .uid = peer->uid, .comm = peer->comm };
	uint64_t most = server->conf->sessions + SPARE_CONNECTIONS;
	unsigned int count = 0, unnamed = 0;
	struct client *client;

	TAILQ_FOREACH(client, &server->clients, entry) {
		if (client->peer.uid != peer->uid)
			continue;
		count++;
		unnamed += client->state == CLIENT_NEW;
	}
	if (peer->uid != 0 && peer->uid != geteuid())
		most -= RESERVED_CONNECTIONS;
	if (server->connections < most && unnamed < NEW_PER_USER &&
	    count < server->conf->sessions_per_user + SPARE_PER_USER &&
	    closer_pending(server->closer) < CLOSER_QUEUE_MAX)
		return false;
	if (log_limit_ok(&limit, "rpc"))
		log_msg(LOG_LEVEL_WARNING, "rpc", &ident,
			"refused: %u connections, %u of this user, %u of those without Hello; see "
			"[limits] sessions_per_user",
			server->connections, count, unnamed);
	return true;
}

static void on_pause_over(void *arg)
{
	struct server *server = arg;

	if (!server->stopping)
		loop_fd_set(server->source, LOOP_READ);
}

static void on_connection(int listen_fd, unsigned int events, void *arg)
{
	struct server *server = arg;

	(void)events;
	for (unsigned int i = 0; i < ACCEPT_BATCH; i++) {
		int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		struct session_peer peer;
		struct client *client;

		if (fd < 0) {
			if (errno == EINTR || errno == ECONNABORTED)
				continue;
			if (errno != EAGAIN) {
				log_error("rpc",
					  "cannot accept clients: %m; raise the limit of open "
					  "files if this comes again");
				loop_fd_set(server->source, 0);
				loop_timer_set(server->pause, ACCEPT_PAUSE_MS);
			}
			return;
		}
		if (identify(server, fd, &peer) < 0 || too_many(server, &peer))
			closer_close(server->closer, fd);
		else if (client_new(server, fd, &peer, &client) < 0)
			log_error("rpc", "no memory for another client");
	}
}

static int make_socket(struct server *server)
{
	const struct conf *conf = server->conf;
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct group *group = getgrnam(conf->socket_group);

	if (asprintf(&server->path, "%s/npud.sock", server->runtime_dir) < 0) {
		server->path = NULL;
		return -ENOMEM;
	}
	if (strlen(server->path) >= sizeof(address.sun_path)) {
		log_error("rpc",
			  "%s: longer than the %zu bytes a socket may have; choose a shorter "
			  "--runtime-dir",
			  server->path, sizeof(address.sun_path) - 1);
		free(server->path);
		server->path = NULL;
		return -ENAMETOOLONG;
	}
	strcpy(address.sun_path, server->path);
	server->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (server->listen_fd < 0)
		return -errno;
	/* what lies there is of an npud that has ended: we hold the directory's lock */
	unlink(server->path);
	if (bind(server->listen_fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    chmod(server->path, 0) < 0)
		return -errno;
	if (!group)
		log_info("rpc", "%s: there is no group %s, its group stays as it is", server->path,
			 conf->socket_group);
	else if (chown(server->path, (uid_t)-1, group->gr_gid) < 0)
		log_warning("rpc", "%s: cannot give it to group %s: %m", server->path,
			    conf->socket_group);
	if (chmod(server->path, (mode_t)conf->socket_mode) < 0 ||
	    listen(server->listen_fd, 128) < 0)
		return -errno;
	return 0;
}

int server_new(struct loop *loop, struct core *core, struct closer *closer,
	       const struct server_config *config, struct server **ret_server)
{
	struct group *group = getgrnam(config->conf->admin_group);
	struct server *server = calloc(1, sizeof(*server));
	int r = 0;

	if (!server)
		return -ENOMEM;
	TAILQ_INIT(&server->clients);
	server->loop = loop;
	server->core = core;
	server->closer = closer;
	server->conf = config->conf;
	server->runtime_dir = config->runtime_dir;
	server->version = config->version;
	server->listen_fd = config->listen_fd;
	server->started_ms = loop_now_ms();
	server->admin_gid = group ? group->gr_gid : (gid_t)-1;
	if (server->listen_fd < 0)
		r = make_socket(server);
	else
		r = fd_set_nonblock(server->listen_fd, true);
	if (r == 0)
		r = loop_timer_new(loop, on_pause_over, server, &server->pause);
	if (r == 0)
		r = loop_fd_new(loop, server->listen_fd, LOOP_READ, on_connection, server,
				&server->source);
	if (r < 0) {
		log_error("rpc", "%s: cannot listen: %s", server->path ? server->path : "socket",
			  strerror(-r));
		server_free(server);
		return r;
	}
	*ret_server = server;
	return 0;
}

void server_stop(struct server *server)
{
	struct client *client;

	server->stopping = true;
	loop_fd_free(server->source);
	server->source = NULL;
	while ((client = TAILQ_FIRST(&server->clients)))
		client_close(client, NULL);
}

void server_free(struct server *server)
{
	if (!server)
		return;
	loop_fd_free(server->source);
	loop_timer_free(server->pause);
	if (server->listen_fd >= 0)
		close(server->listen_fd);
	if (server->path)
		unlink(server->path);
	free(server->path);
	free(server);
}
