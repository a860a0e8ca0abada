/* SPDX-License-Identifier: Apache-2.0 */
/* Samples, the table and bench.json of npu-bench, and the floors it compares with. */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "proto/npu.pb-c.h"
#include "proto/wire.h"
#include "tests/bench/bench.h"

uint64_t bench_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

void samples_init(struct samples *s)
{
	s->n = 0;
	s->v = calloc(BENCH_SAMPLES_MAX, sizeof(*s->v));
	if (!s->v)
		abort();
}

void samples_add(struct samples *s, double value)
{
	if (s->n < BENCH_SAMPLES_MAX)
		s->v[s->n++] = value;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double samples_quantile(struct samples *s, double q)
{
	if (!s->n)
		return 0;
	qsort(s->v, s->n, sizeof(*s->v), compare);
	return s->v[(size_t)(q * (s->n - 1) + 0.5)];
}

void samples_fini(struct samples *s)
{
	free(s->v);
	s->v = NULL;
}

/* ---- figures ------------------------------------------------------------------------------- */

static struct figure {
	const char *key, *what, *unit;
	double value, limit;
	bool ratio, higher;
} figures[64];
static unsigned nfigures;

static void add(struct figure f)
{
	f.higher = f.limit < 0; /* a negative limit: at least that much */
	if (f.higher)
		f.limit = -f.limit;
	if (nfigures < sizeof(figures) / sizeof(figures[0]))
		figures[nfigures++] = f;
}

void bench_ratio(const char *key, const char *what, double value, double limit)
{
	add((struct figure){ key, what, "", value, limit, true, false });
}

void bench_figure(const char *key, const char *what, double value, const char *unit, double limit)
{
	add((struct figure){ key, what, unit, value, limit, false, false });
}

static bool missed(const struct figure *f)
{
	if (f->limit == 0)
		return false;
	return f->higher ? f->value < f->limit : f->value > f->limit;
}

int bench_report(FILE *out, const char *json_path)
{
	FILE *json = fopen(json_path, "we");
	int misses = 0;

	for (int ratios = 1; ratios >= 0; ratios--) {
		fprintf(out, "\n%s\n", ratios ? "Ratios to the floor in the same run" : "Absolute");
		for (unsigned i = 0; i < nfigures; i++) {
			const struct figure *f = &figures[i];

			if (f->ratio != !!ratios)
				continue;
			fprintf(out, "  %-58s %10.*f %-4s", f->what,
				f->value < 10 ? 3 : f->value < 1000 ? 1 : 0, f->value, f->unit);
			if (f->limit)
				fprintf(out, "  %s %g%s", f->higher ? ">=" : "<=", f->limit,
					missed(f) ? "  MISSED" : "");
			fprintf(out, "\n");
			misses += missed(f);
		}
	}
	if (!json) {
		fprintf(stderr, "npu-bench: cannot write %s: %s\n", json_path, strerror(errno));
		return misses + 1;
	}
	fprintf(json, "{\n");
	for (unsigned i = 0; i < nfigures; i++)
		fprintf(json, "  \"%s\": %.6g%s\n", figures[i].key, figures[i].value,
			i + 1 < nfigures ? "," : "");
	fprintf(json, "}\n");
	fclose(json);
	fprintf(out, "\nwritten to %s\n", json_path);
	return misses;
}

/* ---- floors -------------------------------------------------------------------------------- */

int echo_start(struct echo *e)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	e->pid = fork();
	if (e->pid < 0)
		return -errno;
	if (!e->pid) {
		char buffer[4096];
		ssize_t n;

		close(pair[0]);
		while ((n = recv(pair[1], buffer, sizeof(buffer), 0)) > 0) {
			if (send(pair[1], buffer, n, 0) != n)
				break;
		}
		_exit(0);
	}
	close(pair[1]);
	e->fd = pair[0];
	return 0;
}

int echo_ping(struct echo *e, size_t bytes)
{
	char buffer[4096] = { 0 };

	if (send(e->fd, buffer, bytes, 0) != (ssize_t)bytes ||
	    recv(e->fd, buffer, sizeof(buffer), 0) != (ssize_t)bytes)
		return -EIO;
	return 0;
}

void echo_stop(struct echo *e)
{
	close(e->fd);
	waitpid(e->pid, NULL, 0);
}

static char frame[WIRE_FRAME_MAX];

static int call(int fd, uint16_t method, const void *body, size_t bytes)
{
	struct wire_header h = { .magic = WIRE_MAGIC, .method = method, .id = 1, .bytes = bytes };
	int fds[WIRE_FDS_MAX], r;
	size_t nfds;

	r = wire_send(fd, &h, body, NULL, 0);
	if (r < 0)
		return r;
	r = wire_receive(fd, frame, sizeof(frame), fds, WIRE_FDS_MAX, &nfds, 0);
	for (size_t i = 0; i < nfds; i++)
		close(fds[i]);
	if (r <= 0)
		return r ? r : -ECONNRESET;
	r = wire_header_check(frame, r, WIRE_REPLY);
	return r < 0 ? r : ((struct wire_header *)frame)->status;
}

int ping_open(const char *socket_path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	Npu__Hello hello = NPU__HELLO__INIT;
	uint8_t body[256];
	int fd, r;

	hello.major = NPU_PROTO_MAJOR;
	hello.minor = NPU_PROTO_MINOR;
	hello.library = (char *)"npu-bench";
	hello.admin = 1;
	if (strlen(socket_path) >= sizeof(addr.sun_path))
		return -ENAMETOOLONG;
	strcpy(addr.sun_path, socket_path);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0)
		return -errno;
	r = call(fd, NPU_METHOD_hello, body, npu__hello__pack(&hello, body));
	return r ? -EPROTO : fd;
}

int ping(int fd)
{
	return call(fd, NPU_METHOD_ping, NULL, 0);
}
