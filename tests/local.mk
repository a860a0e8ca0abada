# SPDX-License-Identifier: Apache-2.0

# Shape of the tree: include rules, licences, length of files.
dist_check_SCRIPTS += tests/integration/test_include_rules.sh
EXTRA_DIST += tests/integration/include_rules.awk
TESTS += tests/integration/test_include_rules.sh

# The public headers against the tables of tests/abi, in C and C++.
EXTRA_DIST += tests/abi/calls.inc tests/abi/enums.inc tests/abi/layout.inc tests/abi/prototypes.inc
dist_check_SCRIPTS += tests/abi/test_headers_compile.sh tests/abi/test_exports.sh
TESTS += tests/abi/test_headers_compile.sh tests/abi/test_exports.sh
if HAVE_CHECK
check_PROGRAMS += check_headers
TESTS += check_headers
check_headers_SOURCES = tests/abi/check_headers.c tests/abi/headers_cxx.cc
check_headers_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS) \
	-DNPU_TOP_SRCDIR='"$(abs_top_srcdir)"'
check_headers_CXXFLAGS = $(AM_CXXFLAGS) -std=gnu++17
check_headers_LDADD = $(CHECK_LIBS)
endif

# The examples: their files, their kernels as plain functions, what they refuse.
dist_check_SCRIPTS += tests/integration/test_examples_refuse.sh
TESTS += tests/integration/test_examples_refuse.sh
if HAVE_CHECK
check_PROGRAMS += check_example_kernels
TESTS += check_example_kernels
check_example_kernels_SOURCES = tests/unit/check_example_kernels.c examples/edges/edges_ref.c \
	examples/edges/frame.h
check_example_kernels_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
check_example_kernels_LDADD = $(CHECK_LIBS) -lm
if HAVE_EDGES
check_PROGRAMS += check_picture
TESTS += check_picture
check_picture_SOURCES = tests/unit/check_picture.c examples/edges/picture.c examples/edges/picture.h
check_picture_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS) $(PNG_CFLAGS) $(JPEG_CFLAGS)
check_picture_LDADD = $(CHECK_LIBS) $(PNG_LIBS) $(JPEG_LIBS) -lz
endif
endif

# npuctl: its output, and what it says where npud does not answer.
if HAVE_CHECK
check_PROGRAMS += check_npuctl test_npuctl
TESTS += check_npuctl test_npuctl
check_npuctl_SOURCES = tests/unit/check_npuctl.c
check_npuctl_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(JSONC_CFLAGS)
check_npuctl_LDADD = libnpuctl.la libnpu-client.la $(JSONC_LIBS) $(CHECK_LIBS)
test_npuctl_SOURCES = tests/integration/test_npuctl.c
test_npuctl_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
test_npuctl_LDADD = $(CHECK_LIBS)
endif

# Units, manual pages and example configuration say what the programs do.
dist_check_SCRIPTS += tests/integration/test_systemd_units.sh tests/integration/test_documentation.sh
TESTS += tests/integration/test_systemd_units.sh tests/integration/test_documentation.sh

# Kernel images: npu-cc, and the engine's loader on good, bad and damaged images.
dist_check_SCRIPTS += tests/integration/test_npu_cc.sh
TESTS += tests/integration/test_npu_cc.sh
EXTRA_DIST += tests/unit/make_images.sh tests/unit/image_good.c tests/unit/image_good.cc \
	tests/unit/image_bad.c
if HAVE_CHECK
check_PROGRAMS += check_image check_image_refuse
TESTS += check_image check_image_refuse
IMAGE_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS) \
	-DNPU_IMAGES_DIR='"$(abs_top_builddir)/tests/unit/images"'
check_image_SOURCES = tests/unit/check_image.c tests/unit/image_file.h
check_image_CPPFLAGS = $(IMAGE_CPPFLAGS)
check_image_LDADD = libnpusim.la $(CHECK_LIBS) -lm
EXTRA_check_image_DEPENDENCIES = tests/unit/images.stamp
check_image_refuse_SOURCES = tests/unit/check_image_refuse.c tests/unit/image_file.h
check_image_refuse_CPPFLAGS = $(IMAGE_CPPFLAGS)
check_image_refuse_LDADD = libnpusim.la $(CHECK_LIBS) -lm
EXTRA_check_image_refuse_DEPENDENCIES = tests/unit/images.stamp
endif

tests/unit/images.stamp: tests/unit/make_images.sh tests/unit/image_good.c \
		tests/unit/image_good.cc tests/unit/image_bad.c $(NPU_CC_DEPENDS)
	$(AM_V_GEN)NPU_CC_INCLUDE=$(abs_top_srcdir)/client/include \
		sh $(srcdir)/tests/unit/make_images.sh $(top_builddir)/sim/npu-cc "$(CC)" "$(CXX)" \
		$(srcdir)/tests/unit tests/unit/images && : >$@
CLEANFILES += tests/unit/images.stamp tests/unit/images/*.npuk

# The engine against its contract, in real processes.
if HAVE_CHECK
check_PROGRAMS += check_engine
TESTS += check_engine
check_engine_SOURCES = tests/unit/check_engine.c tests/lib/engine_board.c tests/lib/engine_board.h
check_engine_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS) \
	-DNPU_TEST_KERNELS='"$(abs_top_builddir)/tests/unit/engine_kernels.npuk"'
check_engine_LDADD = libnpusim.la $(CHECK_LIBS)
EXTRA_check_engine_DEPENDENCIES = tests/unit/engine_kernels.npuk
endif
EXTRA_DIST += tests/unit/engine_kernels.c
CLEANFILES += tests/unit/engine_kernels.npuk
tests/unit/engine_kernels.npuk: tests/unit/engine_kernels.c $(NPU_CC_DEPENDS)
	$(AM_V_GEN)$(MKDIR_P) tests/unit && NPU_CC_INCLUDE=$(abs_top_srcdir)/client/include \
		$(top_builddir)/sim/npu-cc -o $@ $(top_srcdir)/tests/unit/engine_kernels.c

# An npud and npu-sim for integration tests; users add FIXTURE_CPPFLAGS and libnpu-testlib.la.
FIXTURE_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS) -DNPU_BUILD_DIR='"$(abs_top_builddir)"'
check_LTLIBRARIES = libnpu-testlib.la
libnpu_testlib_la_SOURCES = tests/lib/npud_fixture.c tests/lib/npud_fixture.h
libnpu_testlib_la_CPPFLAGS = $(FIXTURE_CPPFLAGS)

# make bench
EXTRA_PROGRAMS = npu-bench
npu_bench_SOURCES = tests/bench/main.c tests/bench/bench.c tests/bench/bench.h
npu_bench_CPPFLAGS = $(FIXTURE_CPPFLAGS) $(PROTOBUFC_CFLAGS)
npu_bench_LDADD = libnpu-testlib.la libnpu-client.la libnpu-proto.la $(PROTOBUFC_LIBS)
EXTRA_npu_bench_DEPENDENCIES = tests/bench/bench_kernel.npuk
CLEANFILES += npu-bench bench.json tests/bench/bench_kernel.npuk
EXTRA_DIST += tests/bench/bench_kernel.c tests/bench/README.md
tests/bench/bench_kernel.npuk: tests/bench/bench_kernel.c $(NPU_CC_DEPENDS)
	$(AM_V_GEN)$(MKDIR_P) tests/bench && NPU_CC_INCLUDE=$(abs_top_srcdir)/client/include \
		$(top_builddir)/sim/npu-cc -o $@ $(top_srcdir)/tests/bench/bench_kernel.c

.PHONY: bench
bench: all npu-bench$(EXEEXT)
	./npu-bench$(EXEEXT) bench.json

# Birth, cage and faults of engines.
if HAVE_CHECK
check_PROGRAMS += check_fault check_abort check_sandbox check_nursery
TESTS += check_fault check_abort check_sandbox check_nursery
CAGE_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
check_fault_SOURCES = tests/unit/check_fault.c tests/lib/fault.h
check_fault_CPPFLAGS = $(CAGE_CPPFLAGS)
check_fault_LDADD = libnpusim.la $(CHECK_LIBS)
check_abort_SOURCES = tests/unit/check_abort.c tests/lib/fault.h
check_abort_CPPFLAGS = $(CAGE_CPPFLAGS)
check_abort_LDADD = libnpusim.la $(CHECK_LIBS)
check_sandbox_SOURCES = tests/unit/check_sandbox.c tests/lib/cage.h
check_sandbox_CPPFLAGS = $(CAGE_CPPFLAGS)
check_sandbox_LDADD = libnpusim.la $(CHECK_LIBS)
check_nursery_SOURCES = tests/unit/check_nursery.c tests/lib/cage.h
check_nursery_CPPFLAGS = $(CAGE_CPPFLAGS)
check_nursery_LDADD = libnpusim.la $(CHECK_LIBS)
endif

# Several clients on one npud.
if HAVE_CHECK
check_PROGRAMS += test_sharing
TESTS += test_sharing
test_sharing_SOURCES = tests/integration/test_sharing.c
test_sharing_CPPFLAGS = $(FIXTURE_CPPFLAGS) \
	-DNPU_TEST_KERNELS='"$(abs_top_builddir)/tests/unit/engine_kernels.npuk"'
test_sharing_LDADD = libnpu-testlib.la libnpu-client.la $(CHECK_LIBS)
EXTRA_test_sharing_DEPENDENCIES = tests/unit/engine_kernels.npuk
endif
