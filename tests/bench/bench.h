/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NPU_TESTS_BENCH_H
#define NPU_TESTS_BENCH_H

/*
 * bench: what the parts of npu-bench share. Everything is measured in rounds that interleave the
 * contestants, so that a change of the machine's speed meets all of them; the median of the rounds
 * counts. Times are CLOCK_MONOTONIC in ns. Single-threaded.
 */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define BENCH_SAMPLES_MAX 100000u

struct samples {
	size_t n;
	double *v;
};

void samples_init(struct samples *s);
void samples_add(struct samples *s, double value);
double samples_quantile(struct samples *s, double q); /* sorts; 0 when there are none */
void samples_fini(struct samples *s);

uint64_t bench_now_ns(void);

/* A figure: printed in the order of calls, and a key of bench.json. */
void bench_ratio(const char *key, const char *what, double value, double limit);
void bench_figure(const char *key, const char *what, double value, const char *unit, double limit);
/* Prints the table, ratios first, and writes the JSON file. Returns how many missed their limit. */
int bench_report(FILE *out, const char *json_path);

/* A process at the other end of a SEQPACKET pair that echoes packets: the floor of any RPC. */
struct echo {
	int fd;
	int pid;
};
int echo_start(struct echo *e);
int echo_ping(struct echo *e, size_t bytes);
void echo_stop(struct echo *e);

/* A bare control connection: Hello, then pings. */
int ping_open(const char *socket_path);
int ping(int fd);

#endif
