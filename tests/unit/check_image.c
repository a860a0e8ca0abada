/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine_image: images that npu-cc made load, have the kernels that the sources have, and these
 * compute what they should, argument by argument. What is refused is in check_image_refuse.c.
 */
#include <check.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <math.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/engine_block.h"
#include "sim/engine_symbols.h"
#include "tests/unit/image_file.h"

/* Packed arguments: each value in a slot of its own, as the client library does it. */
struct args {
	uint64_t slots[512];
	size_t used; /* bytes */
	uint32_t n;
	uint32_t sizes[32];
};

static void add(struct args *args, const void *value, size_t size)
{
	memcpy((char *)args->slots + args->used, value, size);
	args->used += (size + 7) / 8 * 8;
	args->sizes[args->n++] = (uint32_t)size;
}

#define ADD(args, type, ...)                        \
	do {                                        \
		type value_ = __VA_ARGS__;          \
		add(args, &value_, sizeof(value_)); \
	} while (0)

/* Runs a kernel over its blocks, after comparing what the image says with what was packed. */
static void run(const struct engine_image *image, const char *name, const struct args *args,
		uint32_t blocks)
{
	const struct engine_func *func = engine_image_find(image, name);

	ck_assert_msg(func != NULL, "no kernel '%s'", name);
	ck_assert_str_eq(func->name, name);
	ck_assert_uint_eq(func->n_params, args->n);
	ck_assert_uint_eq(func->args_size, args->used);
	ck_assert_mem_eq(func->param_sizes, args->sizes, args->n * sizeof(uint32_t));
	for (uint32_t i = 0; i < blocks; i++) {
		engine_block_set(i, blocks);
		func->entry(args->slots);
	}
}

struct odd {
	char c[3];
};

struct big {
	float a[6];
	int64_t z;
};

struct vec4 {
	float x, y, z, w;
};

static const char *const c_images[] = { "good_c", "good_g", "good_stripped" };

START_TEST(test_functions_of_an_image)
{
	static const char *const names[] = { "nothing", "get_calls", "saxpy", "mixed", "apply",
					     "maths",	"bytes",     "where", "trap",  "many" };
	struct engine_image *image = image_file_load(c_images[_i]);
	uint32_t n = sizeof(names) / sizeof(names[0]);

	ck_assert_uint_eq(engine_image_n_funcs(image), n);
	for (uint32_t i = 0; i < n; i++) {
		const struct engine_func *func = engine_image_func(image, i);
		uint64_t pc = (uint64_t)(uintptr_t)func->entry;

		ck_assert_str_eq(func->name, names[i]);
		ck_assert_ptr_eq(engine_image_find(image, names[i]), func);
		ck_assert(engine_image_contains(image, pc));
	}
	ck_assert_ptr_null(engine_image_func(image, n));
	ck_assert_ptr_null(engine_image_find(image, ""));
	ck_assert_ptr_null(engine_image_find(image, "absent"));
	ck_assert_ptr_null(engine_image_find(image, "saxp"));
	ck_assert_uint_gt(engine_image_size(image), 0);
	ck_assert_ptr_null(engine_image_free(image));
	ck_assert_ptr_null(engine_image_free(NULL));
}
END_TEST

START_TEST(test_blocks_share_the_work)
{
	struct engine_image *image = image_file_load(c_images[_i]);
	float x[1000], y[1000];

	for (uint32_t blocks = 1; blocks <= 7; blocks += 3) {
		struct args args = { 0 };

		for (int i = 0; i < 1000; i++) {
			x[i] = (float)i;
			y[i] = 1;
		}
		ADD(&args, float, 2);
		ADD(&args, const float *, x);
		ADD(&args, float *, y);
		ADD(&args, uint32_t, 999);
		run(image, "saxpy", &args, blocks);
		for (int i = 0; i < 999; i++)
			ck_assert_float_eq(y[i], 1 + 2 * (float)i);
		ck_assert_float_eq(y[999], 1);
	}
	engine_image_free(image);
}
END_TEST

START_TEST(test_arguments_in_c)
{
	struct engine_image *image = image_file_load(c_images[_i]);
	struct args args = { 0 }, many = { 0 };
	double out[9] = { 0 };
	int sum = 0, want = 0;

	ADD(&args, double *, out);
	ADD(&args, char, -7);
	ADD(&args, bool, true);
	ADD(&args, double, 0.125);
	ADD(&args, struct odd, { { 1, 2, 3 } });
	ADD(&args, struct big, { { 0, 1, 2, 3, 4, 5.5f }, -(1ll << 40) });
	ADD(&args, __int128, (__int128)-5 * ((__int128)1 << 64));
	ADD(&args, short, -32768);
	ADD(&args, float, 0.5f);
	run(image, "mixed", &args, 1);
	ck_assert_double_eq(out[0], -7);
	ck_assert_double_eq(out[1], 1);
	ck_assert_double_eq(out[2], 0.125);
	ck_assert_double_eq(out[3], 123);
	ck_assert_double_eq(out[4], 5.5);
	ck_assert_double_eq(out[5], -(double)(1ll << 40));
	ck_assert_double_eq(out[6], -5);
	ck_assert_double_eq(out[7], -32768);
	ck_assert_double_eq(out[8], 0.5);

	for (int i = 0; i < 27; i++) {
		ADD(&many, int, i *i - 40);
		want += (i * i - 40) * (i + 1);
	}
	ADD(&many, int *, &sum);
	run(image, "many", &many, 1);
	ck_assert_int_eq(sum, want);
	engine_image_free(image);
}
END_TEST

START_TEST(test_arguments_in_cxx)
{
	struct engine_image *image = image_file_load("good_cxx");
	struct args mixed = { 0 }, vadd = { 0 }, hello = { 0 }, nothing = { 0 };
	struct vec4 sum = { 0 };
	double out[6] = { 0 };
	int answer = 0;

	ck_assert_uint_eq(engine_image_n_funcs(image), 7);
	ADD(&mixed, double *, out);
	ADD(&mixed, char, -7);
	ADD(&mixed, bool, true);
	ADD(&mixed, double, 0.125);
	ADD(&mixed, struct vec4, { 1, 2, 3, 4 });
	ADD(&mixed, __int128, (__int128)-5 * ((__int128)1 << 64));
	ADD(&mixed, short, 99);
	run(image, "mixed", &mixed, 1);
	ck_assert_double_eq(out[0], -7);
	ck_assert_double_eq(out[1], 1);
	ck_assert_double_eq(out[2], 0.125);
	ck_assert_double_eq(out[3], 4);
	ck_assert_double_eq(out[4], -5);
	ck_assert_double_eq(out[5], 99);

	ADD(&vadd, struct vec4 *, &sum);
	ADD(&vadd, struct vec4, { 1, 2, 3, 4 });
	ADD(&vadd, struct vec4, { 10, 20, 30, 40 });
	run(image, "vadd", &vadd, 1);
	ck_assert_float_eq(sum.x, 11);
	ck_assert_float_eq(sum.w, 44);

	ADD(&hello, int *, &answer);
	run(image, "hello", &hello, 1);
	ck_assert_int_eq(answer, 42);
	run(image, "nothing", &nothing, 1);
	engine_image_free(image);
}
END_TEST

START_TEST(test_templates_and_virtual_functions)
{
	struct engine_image *image = image_file_load("good_cxx");
	struct args f32 = { 0 }, f64 = { 0 }, areas = { 0 };
	float x[100], out[2];
	double y[100];

	for (int i = 0; i < 100; i++) {
		x[i] = (float)-i;
		y[i] = -i;
	}
	ADD(&f32, float *, x);
	ADD(&f32, float, 3);
	ADD(&f32, unsigned, 100);
	run(image, "scale_f32", &f32, 4);
	ADD(&f64, double *, y);
	ADD(&f64, double, 5);
	ADD(&f64, unsigned, 100);
	run(image, "scale_f64", &f64, 4);
	for (int i = 0; i < 100; i++) {
		ck_assert_float_eq(x[i], (float)i * 3);
		ck_assert_double_eq(y[i], i * 5.0);
	}
	ADD(&areas, float *, out);
	ADD(&areas, float, 2);
	ADD(&areas, float, 5);
	run(image, "areas", &areas, 1);
	ck_assert_float_eq(out[0], 10);
	ck_assert_float_eq(out[1], 12);
	engine_image_free(image);
}
END_TEST

START_TEST(test_device_functions)
{
	struct engine_image *image = image_file_load(c_images[_i]);
	struct args maths = { 0 }, bytes = { 0 };
	double x[4] = { 3, 4.5, 10, 4 };
	uint64_t aligned = 0;
	char text[32] = "";

	for (int which = 0; which < 3; which++) {
		struct args args = { 0 };
		float value = 0.75f;

		ADD(&args, int, which);
		ADD(&args, float *, &value);
		run(image, "apply", &args, 1);
		ck_assert_float_eq_tol(value,
				       which == 0 ? 1.5f :
				       which == 1 ? sinf(0.75f) :
						    cosf(0.75f),
				       1e-6f);
	}
	ADD(&maths, double *, x);
	run(image, "maths", &maths, 1);
	ck_assert_double_eq_tol(x[0], pow(3, 2.5), 1e-12);
	ck_assert_double_eq_tol(x[1], tgamma(4.5), 1e-12);
	ck_assert_double_eq(x[2], remainder(10, 3));
	ck_assert_double_eq(x[3], 10);

	ADD(&bytes, char *, text);
	ADD(&bytes, const char *, "hello");
	ADD(&bytes, size_t, 5);
	ADD(&bytes, uint64_t *, &aligned);
	run(image, "bytes", &bytes, 1);
	ck_assert_str_eq(text, "hellox");
	ck_assert_uint_eq(aligned % 65536, 0);
	engine_image_free(image);
}
END_TEST

START_TEST(test_static_data_belongs_to_one_loaded_image)
{
	struct engine_image *first = image_file_load("good_c"), *second = image_file_load("good_c");
	struct args none = { 0 }, get = { 0 };
	int calls = -1;

	ADD(&get, int *, &calls);
	run(first, "nothing", &none, 5);
	run(first, "get_calls", &get, 1);
	ck_assert_int_eq(calls, 5);
	run(second, "get_calls", &get, 1);
	ck_assert_int_eq(calls, 0);
	engine_image_free(first);
	run(second, "nothing", &none, 2);
	run(second, "get_calls", &get, 1);
	ck_assert_int_eq(calls, 2);
	engine_image_free(second);
}
END_TEST

START_TEST(test_abort_traps)
{
	struct engine_image *image = image_file_load("good_c");
	struct args none = { 0 };

	run(image, "trap", &none, 1);
}
END_TEST

START_TEST(test_function_of_a_pc)
{
	struct engine_image *image = image_file_load(c_images[_i]);
	bool stripped = strcmp(c_images[_i], "good_stripped") == 0;
	const struct engine_func *where = engine_image_find(image, "where");
	const void *start, *end;
	struct args args = { 0 };
	uint64_t pc = 0;

	ADD(&args, uint64_t *, &pc);
	run(image, "where", &args, 1);
	ck_assert(engine_image_contains(image, pc));
	engine_image_code(image, &start, &end);
	ck_assert(pc >= (uintptr_t)start && pc < (uintptr_t)end);
	ck_assert_uint_lt(engine_image_offset(image, pc), engine_image_size(image));
	if (stripped) {
		ck_assert_ptr_null(engine_image_func_at(image, pc));
	} else {
		ck_assert_str_eq(engine_image_func_at(image, pc), "here");
		ck_assert_str_eq(engine_image_func_at(image, (uint64_t)(uintptr_t)where->entry),
				 "where");
	}
	ck_assert(!engine_image_contains(image, (uint64_t)(uintptr_t)end));
	ck_assert(!engine_image_contains(image, (uint64_t)(uintptr_t)start - 1));
	ck_assert(!engine_image_contains(image, (uint64_t)(uintptr_t)&pc));
	ck_assert(!engine_image_contains(image, 0));
	ck_assert_ptr_null(engine_image_func_at(image, 0));
	ck_assert_ptr_null(engine_image_func_at(image, (uint64_t)(uintptr_t)&pc));
	engine_image_free(image);
}
END_TEST

/* As /proc shows them: code where the kernels are, data writable, constants not. */
START_TEST(test_protections)
{
	struct engine_image *image = image_file_load(c_images[_i]);
	uint64_t base, size = engine_image_size(image), code;
	unsigned int executable = 0, writable = 0, readable = 0;
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];

	code = (uint64_t)(uintptr_t)engine_image_func(image, 0)->entry;
	base = code - engine_image_offset(image, code);
	ck_assert_ptr_nonnull(maps);
	while (fgets(line, sizeof(line), maps)) {
		unsigned long from, to;
		char prot[5];

		ck_assert_int_eq(sscanf(line, "%lx-%lx %4s", &from, &to, prot), 3);
		if (to <= base || from >= base + size)
			continue;
		ck_assert_msg(!(prot[1] == 'w' && prot[2] == 'x'), "%s", line);
		ck_assert_msg(prot[3] == 'p', "%s", line);
		executable += prot[2] == 'x';
		writable += prot[1] == 'w';
		readable += prot[0] == 'r' && prot[1] == '-' && prot[2] == '-';
		if (code >= from && code < to)
			ck_assert_int_eq(strncmp(prot, "r-x", 3), 0);
	}
	fclose(maps);
	ck_assert_uint_eq(executable, 1);
	ck_assert_uint_ge(writable, 1);
	ck_assert_uint_ge(readable, 2);
	engine_image_free(image);
}
END_TEST

#ifndef __SANITIZE_ADDRESS__ /* it makes system calls of its own */
#define ALLOW(nr) \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

/* Nothing but the three calls that the header names. */
START_TEST(test_needs_three_system_calls_only)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		ALLOW(SYS_mmap),
		ALLOW(SYS_munmap),
		ALLOW(SYS_mprotect),
		ALLOW(SYS_exit_group),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog program = { sizeof(filter) / sizeof(filter[0]), filter };
	struct image_file good = image_file_read("good_g"), bad = image_file_read("printf");
	int status;
	pid_t pid;

	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		struct engine_image *image;
		struct args none = { 0 };
		char error[256];

		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
		    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
			_exit(2);
		for (int i = 0; i < 10; i++) {
			if (engine_image_load(good.bytes, good.size, &image, error, sizeof(error)) <
			    0)
				_exit(3);
			engine_image_find(image, "nothing")->entry(none.slots);
			engine_image_free(image);
			if (engine_image_load(bad.bytes, bad.size, &image, error, sizeof(error)) ==
			    0)
				_exit(4);
		}
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status 0x%x", status);
	free(good.bytes);
	free(bad.bytes);
}
END_TEST
#endif

START_TEST(test_loading_leaves_nothing_behind)
{
	struct image_file file = image_file_read("good_g");
	unsigned int lines[2] = { 0 };
	struct engine_image *image;
	char error[256], line[512];

	for (int round = 0; round < 2; round++) {
		FILE *maps;

		for (int i = 0; i < 500; i++) {
			ck_assert_int_eq(engine_image_load(file.bytes, file.size, &image, error,
							   sizeof(error)),
					 0);
			engine_image_free(image);
		}
		maps = fopen("/proc/self/maps", "r");
		ck_assert_ptr_nonnull(maps);
		while (fgets(line, sizeof(line), maps))
			lines[round]++;
		fclose(maps);
	}
	/* Whatever else maps memory now and then (sanitizers do): a leak would be 500 lines. */
	ck_assert_uint_le(lines[1], lines[0] + 50);
	free(file.bytes);
}
END_TEST

START_TEST(test_symbol_table)
{
	unsigned int n = engine_symbols_count();

	ck_assert_uint_gt(n, 100);
	for (unsigned int i = 0; i < n; i++) {
		ck_assert_uint_ne(engine_symbols_find(engine_symbols_name(i)), 0);
		for (unsigned int j = 0; j < i; j++)
			ck_assert_str_ne(engine_symbols_name(i), engine_symbols_name(j));
	}
	ck_assert_uint_eq(engine_symbols_find("npu_block_idx"), (uintptr_t)npu_block_idx);
	ck_assert_uint_eq(engine_symbols_find("npu_block_num"), (uintptr_t)npu_block_num);
	ck_assert_uint_ne(engine_symbols_find("abort"), (uintptr_t)abort);
	ck_assert_uint_eq(engine_symbols_find("printf"), 0);
	ck_assert_uint_eq(engine_symbols_find("malloc"), 0);
	ck_assert_uint_eq(engine_symbols_find(""), 0);
}
END_TEST

int main(void)
{
	int n = sizeof(c_images) / sizeof(c_images[0]), failed;
	Suite *suite = suite_create("image");
	TCase *tests = tcase_create("good");
	SRunner *runner;

	tcase_add_loop_test(tests, test_functions_of_an_image, 0, n);
	tcase_add_loop_test(tests, test_blocks_share_the_work, 0, n);
	tcase_add_loop_test(tests, test_arguments_in_c, 0, n);
	tcase_add_test(tests, test_arguments_in_cxx);
	tcase_add_test(tests, test_templates_and_virtual_functions);
	tcase_add_loop_test(tests, test_device_functions, 0, n);
	tcase_add_test(tests, test_static_data_belongs_to_one_loaded_image);
	tcase_add_test_raise_signal(tests, test_abort_traps, SIGILL);
	tcase_add_loop_test(tests, test_function_of_a_pc, 0, n);
	tcase_add_loop_test(tests, test_protections, 0, n);
#ifndef __SANITIZE_ADDRESS__
	tcase_add_test(tests, test_needs_three_system_calls_only);
#endif
	tcase_add_test(tests, test_loading_leaves_nothing_behind);
	tcase_add_test(tests, test_symbol_table);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
