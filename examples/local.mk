# SPDX-License-Identifier: Apache-2.0

# Programs to copy from; built, run by `quickstart demo` and the tests, not installed.
EXAMPLE_COMMON = examples/common/example.c examples/common/example.h examples/common/progress.c
EXAMPLE_KERNELS = examples/crash/crash.npuk examples/sgemm/sgemm.npuk
EXTRA_DIST += examples/README.md examples/crash/crash_kernel.c examples/edges/edges_kernel.c \
	examples/sgemm/sgemm_kernel.c

noinst_PROGRAMS += examples/crash/crash examples/sgemm/sgemm

examples_crash_crash_SOURCES = examples/crash/crash.c $(EXAMPLE_COMMON)
examples_crash_crash_LDADD = libnpu-client.la

examples_sgemm_sgemm_SOURCES = examples/sgemm/sgemm.c $(EXAMPLE_COMMON)
examples_sgemm_sgemm_LDADD = libnpu-client.la -lm

if HAVE_EDGES
EXAMPLE_KERNELS += examples/edges/edges.npuk
noinst_PROGRAMS += examples/edges/edges
examples_edges_edges_SOURCES = examples/edges/edges.c examples/edges/edges_ref.c \
	examples/edges/frame.h examples/edges/picture.c examples/edges/picture.h $(EXAMPLE_COMMON)
examples_edges_edges_CPPFLAGS = $(AM_CPPFLAGS) $(PNG_CFLAGS) $(JPEG_CFLAGS)
examples_edges_edges_LDADD = libnpu-client.la $(PNG_LIBS) $(JPEG_LIBS)
endif

# A kernel image lies beside its program and is made by the compiler of this build.
NPU_CC_DEPENDS = sim/npu-cc client/include/npu/npu_image.h client/include/npu/npu_kernel.h \
	client/include/npu/npu_symbols.h
npu_cc_verbose = $(npu_cc_verbose_@AM_V@)
npu_cc_verbose_ = $(npu_cc_verbose_@AM_DEFAULT_V@)
npu_cc_verbose_0 = @echo "  NPU-CC  " $@;
npu_cc_make = $(npu_cc_verbose)$(MKDIR_P) $(@D) && $(top_builddir)/sim/npu-cc

examples/crash/crash.npuk: examples/crash/crash_kernel.c $(NPU_CC_DEPENDS)
	$(npu_cc_make) -o $@ $(srcdir)/examples/crash/crash_kernel.c

examples/edges/edges.npuk: examples/edges/edges_kernel.c $(NPU_CC_DEPENDS)
	$(npu_cc_make) -o $@ $(srcdir)/examples/edges/edges_kernel.c

examples/sgemm/sgemm.npuk: examples/sgemm/sgemm_kernel.c $(NPU_CC_DEPENDS)
	$(npu_cc_make) -o $@ $(srcdir)/examples/sgemm/sgemm_kernel.c

noinst_DATA += $(EXAMPLE_KERNELS)
CLEANFILES += examples/crash/crash.npuk examples/edges/edges.npuk examples/sgemm/sgemm.npuk
