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
test_npuctl_SOURCES = tests/integration/test_npuctl.c tests/lib/npuctl_run.c tests/lib/npuctl_run.h
test_npuctl_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
test_npuctl_LDADD = $(CHECK_LIBS)
check_PROGRAMS += test_npuctl_live
TESTS += test_npuctl_live
test_npuctl_live_SOURCES = tests/integration/test_npuctl_live.c tests/lib/npuctl_run.c \
	tests/lib/npuctl_run.h
test_npuctl_live_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS) $(JSONC_CFLAGS)
test_npuctl_live_LDADD = libnpu-testlib.la libnpu-client.la $(JSONC_LIBS) $(CHECK_LIBS)
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
CLIENT_SOURCES = tests/lib/client_process.c tests/lib/client_process.h
CLIENT_CPPFLAGS = $(FIXTURE_CPPFLAGS) \
	-DNPU_TEST_KERNELS='"$(abs_top_builddir)/tests/unit/engine_kernels.npuk"'
CLIENT_LDADD = libnpu-testlib.la libnpu-client.la $(CHECK_LIBS)
check_PROGRAMS += test_sharing test_isolation
TESTS += test_sharing test_isolation
test_sharing_SOURCES = tests/integration/test_sharing.c $(CLIENT_SOURCES)
test_sharing_CPPFLAGS = $(CLIENT_CPPFLAGS)
test_sharing_LDADD = $(CLIENT_LDADD)
EXTRA_test_sharing_DEPENDENCIES = tests/unit/engine_kernels.npuk
test_isolation_SOURCES = tests/integration/test_isolation.c $(CLIENT_SOURCES)
test_isolation_CPPFLAGS = $(CLIENT_CPPFLAGS)
test_isolation_LDADD = $(CLIENT_LDADD)
EXTRA_test_isolation_DEPENDENCIES = tests/unit/engine_kernels.npuk
endif

# The rules of the device interface, on a bench; their fuzz target is in tests/fuzz/local.mk.
dist_check_SCRIPTS += tests/integration/test_core_freestanding.sh
TESTS += tests/integration/test_core_freestanding.sh
if HAVE_CHECK
CORE_CHECKS = check_core_call check_core_pages check_core_map check_core_window check_core_life \
	check_core_flood check_core_fuzz
check_PROGRAMS += $(CORE_CHECKS)
TESTS += $(CORE_CHECKS)
CORE_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
CORE_LDADD = libnpu-core.la $(CHECK_LIBS)
check_core_call_SOURCES = tests/unit/check_core_call.c tests/lib/core_rig.c tests/lib/core_rig.h
check_core_call_CPPFLAGS = $(CORE_CPPFLAGS)
check_core_call_LDADD = $(CORE_LDADD)
check_core_pages_SOURCES = tests/unit/check_core_pages.c
check_core_pages_CPPFLAGS = $(CORE_CPPFLAGS)
check_core_pages_LDADD = $(CORE_LDADD)
check_core_map_SOURCES = tests/unit/check_core_map.c tests/lib/core_rig.c tests/lib/core_rig.h
check_core_map_CPPFLAGS = $(CORE_CPPFLAGS)
check_core_map_LDADD = $(CORE_LDADD)
check_core_window_SOURCES = tests/unit/check_core_window.c tests/lib/core_rig.c \
	tests/lib/core_rig.h
check_core_window_CPPFLAGS = $(CORE_CPPFLAGS)
check_core_window_LDADD = $(CORE_LDADD)
check_core_life_SOURCES = tests/unit/check_core_life.c tests/lib/core_rig.c tests/lib/core_rig.h
check_core_life_CPPFLAGS = $(CORE_CPPFLAGS)
check_core_life_LDADD = $(CORE_LDADD)
check_core_flood_SOURCES = tests/unit/check_core_flood.c tests/lib/core_rig.c \
	tests/lib/core_rig.h
check_core_flood_CPPFLAGS = $(CORE_CPPFLAGS)
check_core_flood_LDADD = $(CORE_LDADD)
check_core_fuzz_SOURCES = tests/unit/check_core_fuzz.c tests/fuzz/fuzz_core.c \
	tests/fuzz/fuzz_core.h tests/lib/core_rig.c tests/lib/core_rig.h
check_core_fuzz_CPPFLAGS = $(CORE_CPPFLAGS)
check_core_fuzz_LDADD = $(CORE_LDADD)
endif

# The public calls: over a runtime without a device, then with npud and npu-sim.
if HAVE_CHECK
check_PROGRAMS += check_acl_args check_acl_list check_acl_config
TESTS += check_acl_args check_acl_list check_acl_config
check_LTLIBRARIES += libnpu-acl-fake.la
ACL_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS) $(JSONC_CFLAGS) -DNPU_TOP_SRCDIR='"$(abs_top_srcdir)"'
ACL_LDADD = libnpu-acl-fake.la $(JSONC_LIBS) $(CHECK_LIBS) -lm
libnpu_acl_fake_la_SOURCES = tests/lib/acl_calls.c tests/lib/acl_calls.h tests/lib/rt_fake.c \
	tests/lib/rt_fake.h $(client_acl_sources) client/drv/handle.c
libnpu_acl_fake_la_CPPFLAGS = $(ACL_CPPFLAGS)
check_acl_args_SOURCES = tests/unit/check_acl_args.c
check_acl_args_CPPFLAGS = $(ACL_CPPFLAGS)
check_acl_args_LDADD = $(ACL_LDADD)
check_acl_list_SOURCES = tests/unit/check_acl_list.c
check_acl_list_CPPFLAGS = $(ACL_CPPFLAGS)
check_acl_list_LDADD = $(ACL_LDADD)
check_acl_config_SOURCES = tests/unit/check_acl_config.c
check_acl_config_CPPFLAGS = $(ACL_CPPFLAGS)
check_acl_config_LDADD = $(ACL_LDADD)
API_TESTS = test_api test_api_streams test_api_memory test_api_kernels
check_PROGRAMS += $(API_TESTS)
TESTS += $(API_TESTS)
API_CPPFLAGS = $(FIXTURE_CPPFLAGS) \
	-DNPU_API_KERNELS='"$(abs_top_builddir)/tests/integration/api_kernels.npuk"'
API_LDADD = libnpu-testlib.la libnpu-client.la $(CHECK_LIBS)
API_LIB = tests/lib/api.c tests/lib/api.h tests/lib/runner.h
test_api_SOURCES = tests/integration/test_api.c $(API_LIB)
test_api_CPPFLAGS = $(API_CPPFLAGS)
test_api_LDADD = $(API_LDADD)
EXTRA_test_api_DEPENDENCIES = tests/integration/api_kernels.npuk
EXTRA_test_api_streams_DEPENDENCIES = tests/integration/api_kernels.npuk
EXTRA_test_api_memory_DEPENDENCIES = tests/integration/api_kernels.npuk
EXTRA_test_api_kernels_DEPENDENCIES = tests/integration/api_kernels.npuk
test_api_streams_SOURCES = tests/integration/test_api_streams.c $(API_LIB)
test_api_streams_CPPFLAGS = $(API_CPPFLAGS)
test_api_streams_LDADD = $(API_LDADD)
test_api_memory_SOURCES = tests/integration/test_api_memory.c $(API_LIB)
test_api_memory_CPPFLAGS = $(API_CPPFLAGS)
test_api_memory_LDADD = $(API_LDADD)
test_api_kernels_SOURCES = tests/integration/test_api_kernels.c $(API_LIB)
test_api_kernels_CPPFLAGS = $(API_CPPFLAGS)
test_api_kernels_LDADD = $(API_LDADD)
endif
dist_check_SCRIPTS += tests/abi/test_interposable.sh
TESTS += tests/abi/test_interposable.sh
EXTRA_DIST += tests/integration/api_kernels.c
CLEANFILES += tests/integration/api_kernels.npuk
tests/integration/api_kernels.npuk: tests/integration/api_kernels.c $(NPU_CC_DEPENDS)
	$(AM_V_GEN)$(MKDIR_P) tests/integration && NPU_CC_INCLUDE=$(abs_top_srcdir)/client/include \
		$(top_builddir)/sim/npu-cc -o $@ $(top_srcdir)/tests/integration/api_kernels.c

# The client's lower layers.
if HAVE_CHECK
CLIENT_LOW_CHECKS = check_ring check_waiter check_slab_heap check_handles check_last_error \
	check_drv_caps
check_PROGRAMS += $(CLIENT_LOW_CHECKS)
TESTS += $(CLIENT_LOW_CHECKS)
CLIENT_LOW_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
CLIENT_LOW_LDADD = libnpu-client-core.la $(CHECK_LIBS)
check_ring_SOURCES = tests/unit/check_ring.c tests/lib/fake_device.c tests/lib/fake_device.h
check_ring_CPPFLAGS = $(CLIENT_LOW_CPPFLAGS)
check_ring_LDADD = $(CLIENT_LOW_LDADD)
check_waiter_SOURCES = tests/unit/check_waiter.c tests/lib/fake_device.c tests/lib/fake_device.h
check_waiter_CPPFLAGS = $(CLIENT_LOW_CPPFLAGS)
check_waiter_LDADD = $(CLIENT_LOW_LDADD)
check_slab_heap_SOURCES = tests/unit/check_slab_heap.c
check_slab_heap_CPPFLAGS = $(CLIENT_LOW_CPPFLAGS)
check_slab_heap_LDADD = $(CLIENT_LOW_LDADD)
check_handles_SOURCES = tests/unit/check_handles.c
check_handles_CPPFLAGS = $(CLIENT_LOW_CPPFLAGS)
check_handles_LDADD = $(CLIENT_LOW_LDADD)
check_last_error_SOURCES = tests/unit/check_last_error.c
check_last_error_CPPFLAGS = $(CLIENT_LOW_CPPFLAGS)
check_last_error_LDADD = $(CLIENT_LOW_LDADD)
check_drv_caps_SOURCES = tests/unit/check_drv_caps.c
check_drv_caps_CPPFLAGS = $(CLIENT_LOW_CPPFLAGS)
check_drv_caps_LDADD = $(CLIENT_LOW_LDADD)
endif

# npu-sim's board, driven without npud.
if HAVE_CHECK
BOARD_CHECKS = check_board_memory check_board_engine check_board_hostile test_board \
	test_board_work
check_PROGRAMS += $(BOARD_CHECKS)
TESTS += $(BOARD_CHECKS)
BOARD_CPPFLAGS = $(FIXTURE_CPPFLAGS) \
	-DNPU_TEST_KERNELS='"$(abs_top_builddir)/tests/unit/engine_kernels.npuk"'
SIM_CLIENT_SOURCES = tests/lib/sim_client.c tests/lib/sim_client.h
BOARD_RIG_SOURCES = tests/lib/board_rig.c tests/lib/board_rig.h $(SIM_CLIENT_SOURCES)
check_board_memory_SOURCES = tests/unit/check_board_memory.c
check_board_memory_CPPFLAGS = $(BOARD_CPPFLAGS)
check_board_memory_LDADD = libnpusim.la $(CHECK_LIBS)
check_board_engine_SOURCES = tests/unit/check_board_engine.c $(BOARD_RIG_SOURCES)
check_board_engine_CPPFLAGS = $(BOARD_CPPFLAGS)
check_board_engine_LDADD = libnpu-testlib.la libnpusim.la $(CHECK_LIBS)
check_board_hostile_SOURCES = tests/unit/check_board_hostile.c $(BOARD_RIG_SOURCES)
check_board_hostile_CPPFLAGS = $(BOARD_CPPFLAGS)
check_board_hostile_LDADD = libnpu-testlib.la libnpusim.la $(CHECK_LIBS)
test_board_SOURCES = tests/integration/test_board.c $(SIM_CLIENT_SOURCES)
test_board_CPPFLAGS = $(BOARD_CPPFLAGS)
test_board_LDADD = libnpu-testlib.la $(CHECK_LIBS)
test_board_work_SOURCES = tests/integration/test_board_work.c $(SIM_CLIENT_SOURCES)
test_board_work_CPPFLAGS = $(BOARD_CPPFLAGS)
test_board_work_LDADD = libnpu-testlib.la $(CHECK_LIBS)
EXTRA_test_board_work_DEPENDENCIES = tests/unit/engine_kernels.npuk
endif

# npu-sim as a PCI card, without a virtual machine.
if HAVE_CHECK
CARD_TESTS = test_card test_card_work test_card_hostile
check_PROGRAMS += $(CARD_TESTS)
TESTS += $(CARD_TESTS)
CARD_SOURCES = tests/lib/card_rig.c tests/lib/card_rig.h
CARD_CPPFLAGS = $(FIXTURE_CPPFLAGS) \
	-DNPU_TEST_KERNELS='"$(abs_top_builddir)/tests/unit/engine_kernels.npuk"'
CARD_DEPENDS = npu-sim$(EXEEXT) mkfw$(EXEEXT) sim/npu-fw.bin tests/unit/engine_kernels.npuk
test_card_SOURCES = tests/integration/test_card.c $(CARD_SOURCES)
test_card_CPPFLAGS = $(CARD_CPPFLAGS)
test_card_LDADD = libnpu-testlib.la $(CHECK_LIBS)
EXTRA_test_card_DEPENDENCIES = $(CARD_DEPENDS)
test_card_work_SOURCES = tests/integration/test_card_work.c $(CARD_SOURCES)
test_card_work_CPPFLAGS = $(CARD_CPPFLAGS)
test_card_work_LDADD = libnpu-testlib.la $(CHECK_LIBS)
EXTRA_test_card_work_DEPENDENCIES = $(CARD_DEPENDS)
test_card_hostile_SOURCES = tests/integration/test_card_hostile.c $(CARD_SOURCES)
test_card_hostile_CPPFLAGS = $(CARD_CPPFLAGS)
test_card_hostile_LDADD = libnpu-testlib.la $(CHECK_LIBS)
EXTRA_test_card_hostile_DEPENDENCIES = $(CARD_DEPENDS)
endif

# Fuzz targets.
include tests/fuzz/local.mk

# The daemon: its parts, the control protocol against a real npud and npu-sim, hostile clients.
if HAVE_CHECK
DAEMON_CHECKS = check_util check_conf check_loop check_wire check_status check_charge \
	check_vaspace check_hal check_session
DAEMON_TESTS = test_control test_frames test_npud test_recovery test_crowd
check_PROGRAMS += $(DAEMON_CHECKS) $(DAEMON_TESTS)
TESTS += $(DAEMON_CHECKS) $(DAEMON_TESTS)
DAEMON_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS) $(PROTOBUFC_CFLAGS)
DAEMON_LDADD = libnpud.la $(CHECK_LIBS)
DAEMON_LIB = tests/lib/npud_proc.c tests/lib/npud_proc.h tests/lib/runner.h
FRAME_LIB = $(DAEMON_LIB) tests/lib/frame_client.c tests/lib/frame_client.h \
	tests/lib/frame_calls.c tests/lib/frame_calls.h
check_util_SOURCES = tests/unit/check_util.c $(DAEMON_LIB)
check_util_CPPFLAGS = $(DAEMON_CPPFLAGS)
check_util_LDADD = $(DAEMON_LDADD)
check_conf_SOURCES = tests/unit/check_conf.c tests/lib/runner.h
check_conf_CPPFLAGS = $(DAEMON_CPPFLAGS)
check_conf_LDADD = $(DAEMON_LDADD)
check_loop_SOURCES = tests/unit/check_loop.c tests/lib/runner.h
check_loop_CPPFLAGS = $(DAEMON_CPPFLAGS)
check_loop_LDADD = $(DAEMON_LDADD)
check_wire_SOURCES = tests/unit/check_wire.c tests/lib/runner.h
check_wire_CPPFLAGS = $(DAEMON_CPPFLAGS)
check_wire_LDADD = $(DAEMON_LDADD)
check_status_SOURCES = tests/unit/check_status.c tests/lib/runner.h
check_status_CPPFLAGS = $(DAEMON_CPPFLAGS)
check_status_LDADD = $(DAEMON_LDADD)
check_charge_SOURCES = tests/unit/check_charge.c tests/lib/runner.h
check_charge_CPPFLAGS = $(DAEMON_CPPFLAGS)
check_charge_LDADD = $(DAEMON_LDADD)
check_vaspace_SOURCES = tests/unit/check_vaspace.c tests/lib/runner.h
check_vaspace_CPPFLAGS = $(DAEMON_CPPFLAGS)
check_vaspace_LDADD = $(DAEMON_LDADD)
check_hal_SOURCES = tests/unit/check_hal.c $(DAEMON_LIB) tests/lib/fake_board.c \
	tests/lib/fake_board.h
check_hal_CPPFLAGS = $(DAEMON_CPPFLAGS)
check_hal_LDADD = $(DAEMON_LDADD)
check_session_SOURCES = tests/unit/check_session.c tests/lib/fake_board.c \
	tests/lib/fake_board.h tests/lib/runner.h
check_session_CPPFLAGS = $(DAEMON_CPPFLAGS)
check_session_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=hal_job_new
check_session_LDADD = $(DAEMON_LDADD)
test_crowd_SOURCES = tests/integration/test_crowd.c $(FRAME_LIB) tests/lib/fake_board.c \
	tests/lib/fake_board.h
test_crowd_CPPFLAGS = $(DAEMON_CPPFLAGS)
test_crowd_LDADD = $(DAEMON_LDADD)
test_control_SOURCES = tests/integration/test_control.c $(FRAME_LIB)
test_control_CPPFLAGS = $(DAEMON_CPPFLAGS)
test_control_LDADD = $(DAEMON_LDADD)
test_frames_SOURCES = tests/integration/test_frames.c $(FRAME_LIB)
test_frames_CPPFLAGS = $(DAEMON_CPPFLAGS)
test_frames_LDADD = $(DAEMON_LDADD)
test_npud_SOURCES = tests/integration/test_npud.c $(FRAME_LIB)
test_npud_CPPFLAGS = $(DAEMON_CPPFLAGS)
test_npud_LDADD = $(DAEMON_LDADD)
test_recovery_SOURCES = tests/integration/test_recovery.c $(FRAME_LIB)
test_recovery_CPPFLAGS = $(DAEMON_CPPFLAGS)
test_recovery_LDADD = $(DAEMON_LDADD)
endif

# The client library end to end.
if HAVE_CHECK
CLIENT_LIVE_TESTS = test_copies test_streams test_fork_and_loss
check_PROGRAMS += $(CLIENT_LIVE_TESTS)
TESTS += $(CLIENT_LIVE_TESTS)
CLIENT_LIVE_CPPFLAGS = $(FIXTURE_CPPFLAGS) \
	-DNPU_TEST_KERNELS='"$(abs_top_builddir)/tests/unit/engine_kernels.npuk"'
CLIENT_LIVE_LDADD = libnpu-testlib.la libnpu-client.la $(CHECK_LIBS)
test_copies_SOURCES = tests/integration/test_copies.c tests/lib/runner.h
test_copies_CPPFLAGS = $(CLIENT_LIVE_CPPFLAGS)
test_copies_LDADD = $(CLIENT_LIVE_LDADD)
test_streams_SOURCES = tests/integration/test_streams.c tests/lib/runner.h
test_streams_CPPFLAGS = $(CLIENT_LIVE_CPPFLAGS)
test_streams_LDADD = $(CLIENT_LIVE_LDADD)
EXTRA_test_streams_DEPENDENCIES = tests/unit/engine_kernels.npuk
test_fork_and_loss_SOURCES = tests/integration/test_fork_and_loss.c tests/lib/runner.h
test_fork_and_loss_CPPFLAGS = $(CLIENT_LIVE_CPPFLAGS)
test_fork_and_loss_LDADD = $(CLIENT_LIVE_LDADD)
EXTRA_test_fork_and_loss_DEPENDENCIES = tests/unit/engine_kernels.npuk
endif

# npud on a message bus of the test's own.
if HAVE_CHECK
check_PROGRAMS += test_bus
TESTS += test_bus
test_bus_SOURCES = tests/integration/test_bus.c tests/lib/test_bus.c tests/lib/test_bus.h \
	tests/lib/runner.h $(CLIENT_SOURCES)
test_bus_CPPFLAGS = $(CLIENT_CPPFLAGS) $(SYSTEMD_CFLAGS)
test_bus_LDADD = $(CLIENT_LDADD) $(SYSTEMD_LIBS)
EXTRA_test_bus_DEPENDENCIES = tests/unit/engine_kernels.npuk
endif

# In a virtual machine, with npu.ko.
include tests/vm/local.mk
