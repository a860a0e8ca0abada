/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A main for fuzz targets where the compiler has no libFuzzer. It runs the target over each seed,
 * then over mutations of them that follow from a number alone, so a run can be repeated. There is
 * no feedback: the seeds have to reach what is to be tested.
 *
 * The input that runs lies in a file in the current directory, which is removed at the good end. So
 * whatever ends the process (a sanitizer, a signal, the alarm of an endless input) leaves it.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define INPUT_MAX (1u << 20)
#define INPUT_SECONDS 60 /* one input may take */
#define GROWTH 4096u     /* bytes a mutation may add */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seed {
	uint8_t *data;
	size_t size;
};

static struct seed *seeds;
static size_t nseeds;
static uint64_t state;
static char left[256];
static int left_fd;

__attribute__((noreturn)) static void fail(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(2);
}

static uint64_t next(void)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return state * 0x2545f4914f6cdd1dull;
}

static size_t below(size_t limit)
{
	return limit ? (size_t)(next() % limit) : 0;
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* ---- seeds --------------------------------------------------------------------------------- */

static void seed_add(const char *path)
{
	struct seed seed = { .data = malloc(INPUT_MAX) };
	FILE *file = fopen(path, "rbe");
	uint8_t *fit;

	if (!file || !seed.data)
		fail(path);
	seed.size = fread(seed.data, 1, INPUT_MAX, file);
	if (ferror(file))
		fail(path);
	fclose(file);
	fit = realloc(seed.data, seed.size + 1);
	seed.data = fit ? fit : seed.data;
	seeds = reallocarray(seeds, nseeds + 1, sizeof(*seeds));
	if (!seeds)
		fail(path);
	seeds[nseeds++] = seed;
}

static int visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/* A file, or the files of a directory in the order of their names. */
static void seeds_add(const char *path)
{
	struct dirent **names;
	struct stat st;
	int count;

	if (stat(path, &st) < 0)
		fail(path);
	if (!S_ISDIR(st.st_mode)) {
		seed_add(path);
		return;
	}
	count = scandir(path, &names, visible, alphasort);
	if (count < 0)
		fail(path);
	for (int i = 0; i < count; i++) {
		char *name;

		if (asprintf(&name, "%s/%s", path, names[i]->d_name) < 0)
			fail(path);
		if (stat(name, &st) == 0 && S_ISREG(st.st_mode))
			seed_add(name);
		free(name);
		free(names[i]);
	}
	free(names);
}

static void seeds_free(void)
{
	while (nseeds)
		free(seeds[--nseeds].data);
	free(seeds);
}

/* ---- mutations ----------------------------------------------------------------------------- */

/* Writes a number that programs trip over, or one near to what is there. */
static void mutate_number(uint8_t *data, size_t size)
{
	static const uint64_t odd[] = {
		0, 1, 7, 8, 0x7f, 0x80, 0xff, 0x100, 0xfff, 0x1000, 0x7fff, 0x8000, 0xffff, 0x10000,
		0x7fffffff, 0x80000000, 0xfffffff0, 0xffffffff, 0x100000000, 0x7e8000000000,
		0x7fffffffffffffff, 0x8000000000000000, 0xfffffffffffff000, 0xffffffffffffffff,
	};
	size_t width = (size_t)1 << below(4), at;
	uint64_t value = 0;

	if (size < width)
		return;
	at = below(size - width + 1);
	if (below(4))
		at -= at % width;
	memcpy(&value, data + at, width);
	switch (below(4)) {
	case 0:
		value += below(17);
		break;
	case 1:
		value -= below(17);
		break;
	case 2:
		value = size - below(16);
		break;
	default:
		value = odd[below(sizeof(odd) / sizeof(*odd))];
		break;
	}
	memcpy(data + at, &value, width);
}

static size_t mutate_length(uint8_t *data, size_t size, size_t limit)
{
	const struct seed *other;
	size_t at = below(size), n, from;

	switch (below(5)) {
	case 0: /* cut the end off */
		return at;
	case 1: /* cut something out */
		n = 1 + below(below(4) ? 16 : size - at);
		if (n > size - at)
			n = size - at;
		memmove(data + at, data + at + n, size - at - n);
		return size - n;
	case 2: /* say something twice */
		n = 1 + below(below(4) ? 80 : size - at);
		if (n > size - at)
			n = size - at;
		if (n > limit - size)
			return size;
		memmove(data + at + n, data + at, size - at);
		return size + n;
	case 3: /* new bytes */
		n = 1 + below(32);
		if (n > limit - size)
			return size;
		memmove(data + at + n, data + at, size - at);
		for (size_t i = 0; i < n; i++)
			data[at + i] = (uint8_t)next();
		return size + n;
	default: /* go on as another seed does */
		other = &seeds[below(nseeds)];
		from = below(other->size);
		n = other->size - from;
		if (n > limit - at)
			n = limit - at;
		memcpy(data + at, other->data + from, n);
		return at + n;
	}
}

static size_t mutate(uint8_t *data)
{
	const struct seed *seed = &seeds[below(nseeds)];
	size_t size = seed->size, limit = seed->size + GROWTH, from, at, n;

	if (limit > INPUT_MAX)
		limit = INPUT_MAX;
	memcpy(data, seed->data, size);
	for (size_t steps = 1 + below(below(4) ? 4 : 32); steps; steps--) {
		at = below(size);
		switch (size ? below(8) : 7) {
		case 0:
		case 1:
			data[at] ^= (uint8_t)(1u << below(8));
			break;
		case 2:
			data[at] = (uint8_t)next();
			break;
		case 3:
		case 4:
		case 5:
			mutate_number(data, size);
			break;
		case 6: /* a piece of it somewhere else */
			from = below(size);
			n = 1 + below(64);
			n = n > size - from ? size - from : n;
			n = n > size - at ? size - at : n;
			memmove(data + at, data + from, n);
			break;
		default:
			size = mutate_length(data, size, limit);
			break;
		}
	}
	return size;
}

/* ---- running ------------------------------------------------------------------------------- */

static void run(const uint8_t *data, size_t size)
{
	/* A copy of exactly this size, so that a sanitizer sees a read behind it. */
	uint8_t *copy = malloc(size ? size : 1);

	if (!copy)
		fail("no memory for an input");
	memcpy(copy, data, size);
	if (ftruncate(left_fd, 0) < 0 || pwrite(left_fd, data, size, 0) != (ssize_t)size)
		fail(left);
	alarm(INPUT_SECONDS);
	LLVMFuzzerTestOneInput(copy, size);
	alarm(0);
	free(copy);
}

static uint64_t number(const char *name, const char *text)
{
	char *end;
	unsigned long long value;

	errno = 0;
	value = strtoull(text, &end, 0);
	if (errno || *end || end == text || *text == '-') {
		fprintf(stderr, "%s %s: not a number\n", name, text);
		exit(2);
	}
	return value;
}

int main(int argc, char **argv)
{
	uint64_t inputs = 0, most = UINT64_MAX, seed = 1, seconds = 0, begin = now_ns();
	static uint8_t data[INPUT_MAX];
	const char *name = strrchr(argv[0], '/');
	int option;

	name = name ? name + 1 : argv[0];
	while ((option = getopt(argc, argv, "n:s:t:")) != -1) {
		switch (option) {
		case 'n':
			most = number("-n", optarg);
			break;
		case 's':
			seed = number("-s", optarg);
			break;
		case 't':
			seconds = number("-t", optarg);
			break;
		default:
			fprintf(stderr, "usage: %s [-n mutations] [-s seed] [-t seconds] "
				"file|directory...\n", name);
			return 2;
		}
	}
	for (int i = optind; i < argc; i++)
		seeds_add(argv[i]);
	if (!nseeds) {
		fprintf(stderr, "%s: no seeds: name files or directories\n", name);
		return 2;
	}
	snprintf(left, sizeof(left), "%s.input", name);
	left_fd = open(left, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (left_fd < 0)
		fail(left);
	for (size_t i = 0; i < nseeds; i++)
		run(seeds[i].data, seeds[i].size);
	state = seed * 0x9e3779b97f4a7c15ull + 0x1234567;
	/* Without -n and -t the seeds are all. */
	if (most == UINT64_MAX && !seconds)
		most = 0;
	while (inputs < most && (!seconds || now_ns() - begin < seconds * 1000000000u)) {
		run(data, mutate(data));
		inputs++;
	}
	printf("%s: %zu seeds and %llu mutations of them (-s %llu) in %.1f s\n", name, nseeds,
	       (unsigned long long)inputs, (unsigned long long)seed,
	       (double)(now_ns() - begin) / 1e9);
	unlink(left);
	close(left_fd);
	seeds_free();
	return 0;
}
