# SPDX-License-Identifier: Apache-2.0

# Fuzz targets, see tests/fuzz/README.md. Each has the driver of its own unless libFuzzer has it.
FUZZ_TARGETS = fuzz_image fuzz_frame fuzz_conf fuzz_aclconf fuzz_core fuzz_engine_msg fuzz_ring
FUZZ_DRIVER = libnpu-fuzz.la
check_PROGRAMS += $(FUZZ_TARGETS)
check_LTLIBRARIES += libnpu-fuzz.la
libnpu_fuzz_la_SOURCES = tests/fuzz/standalone.c

fuzz_image_SOURCES = tests/fuzz/fuzz_image.c tests/fuzz/fuzz.h
fuzz_image_LDADD = $(FUZZ_DRIVER) libnpusim.la -lm
EXTRA_fuzz_image_DEPENDENCIES = tests/unit/images.stamp

fuzz_frame_SOURCES = tests/fuzz/fuzz_frame.c tests/fuzz/fuzz.h
nodist_fuzz_frame_SOURCES = proto/npu.pb-c.h
fuzz_frame_CFLAGS = $(AM_CFLAGS) $(PROTOBUFC_CFLAGS)
fuzz_frame_LDADD = $(FUZZ_DRIVER) libnpud.la $(PROTOBUFC_LIBS)

fuzz_conf_SOURCES = tests/fuzz/fuzz_conf.c tests/fuzz/fuzz_file.c tests/fuzz/fuzz.h
fuzz_conf_LDADD = $(FUZZ_DRIVER) libnpud.la

fuzz_aclconf_SOURCES = tests/fuzz/fuzz_aclconf.c tests/fuzz/fuzz_file.c tests/fuzz/fuzz.h \
	client/acl/acl_config.c client/acl/acl_error.c
fuzz_aclconf_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS)
fuzz_aclconf_LDADD = $(FUZZ_DRIVER) libnpu-client-core.la $(JSONC_LIBS)

fuzz_core_SOURCES = tests/fuzz/fuzz_core.c tests/fuzz/fuzz_core.h tests/lib/core_rig.c \
	tests/lib/core_rig.h
fuzz_core_LDADD = $(FUZZ_DRIVER) libnpu-core.la

fuzz_engine_msg_SOURCES = tests/fuzz/fuzz_engine_msg.c tests/fuzz/fuzz.h
fuzz_engine_msg_LDADD = $(FUZZ_DRIVER) libnpusim.la

fuzz_ring_SOURCES = tests/fuzz/fuzz_ring.c tests/fuzz/fuzz.h tests/lib/engine_board.c \
	tests/lib/engine_board.h
fuzz_ring_CPPFLAGS = $(AM_CPPFLAGS) \
	-DNPU_TEST_KERNELS='"$(abs_top_builddir)/tests/unit/engine_kernels.npuk"'
fuzz_ring_LDADD = $(FUZZ_DRIVER) libnpusim.la
EXTRA_fuzz_ring_DEPENDENCIES = tests/unit/engine_kernels.npuk

# The smoke run: every target for some seconds from a fixed number.
dist_check_SCRIPTS += tests/fuzz/test_smoke.sh
TESTS += tests/fuzz/test_smoke.sh
EXTRA_DIST += tests/fuzz/README.md tests/fuzz/run.sh tests/fuzz/seeds

# make fuzz FUZZ=fuzz_image TIME=60: with libFuzzer where $(CC) has it.
FUZZ = fuzz_image
TIME = 60
.PHONY: fuzz
fuzz: all $(FUZZ)$(EXEEXT)
	@if echo 'int LLVMFuzzerTestOneInput(void); int LLVMFuzzerTestOneInput(void) { return 0; }' | \
		$(CC) -fsanitize=fuzzer -x c - -o fuzz-probe$(EXEEXT) 2>/dev/null; then \
		rm -f fuzz-probe$(EXEEXT); \
		$(LIBTOOL) --silent --tag=CC --mode=link $(CC) $(AM_CFLAGS) $(CFLAGS) $(AM_LDFLAGS) \
			$(LDFLAGS) -fsanitize=fuzzer -o $(FUZZ)-libfuzzer$(EXEEXT) $($(FUZZ)_OBJECTS) \
			$(filter-out $(FUZZ_DRIVER),$($(FUZZ)_LDADD)) $(LIBS) && \
		sh $(srcdir)/tests/fuzz/run.sh -l $(FUZZ) $(TIME) $(srcdir); \
	else \
		sh $(srcdir)/tests/fuzz/run.sh $(FUZZ) $(TIME) $(srcdir); \
	fi
CLEANFILES += *-libfuzzer fuzz_*.input crash-* leak-* timeout-* oom-* slow-unit-*

clean-local: clean-fuzz
.PHONY: clean-fuzz
clean-fuzz:
	rm -rf fuzz-corpus
