# SPDX-License-Identifier: Apache-2.0

# The compiler driver for kernel sources, made by configure.
bin_SCRIPTS += sim/npu-cc

# The engine's loader for kernel images; part of libnpusim.
SIM_IMAGE_SOURCES = sim/engine_elf.c sim/engine_elf.h sim/engine_elf_tables.c sim/engine_image.c \
	sim/engine_image.h sim/engine_symbols.c sim/engine_symbols.h

# The simulator as a library: programs and tests link it. Its parts append to it.
noinst_LTLIBRARIES += libnpusim.la
libnpusim_la_SOURCES = $(SIM_IMAGE_SOURCES)
libnpusim_la_CFLAGS = $(AM_CFLAGS) $(SECCOMP_CFLAGS) $(SYSTEMD_CFLAGS) -pthread
libnpusim_la_LIBADD = libnpu-core.la $(SECCOMP_LIBS) $(SYSTEMD_LIBS) -lm -lpthread

# The engine: rings, launches, modules.
libnpusim_la_SOURCES += sim/engine.h sim/engine_proto.h sim/engine_main.c sim/engine_control.c \
	sim/engine_ring.c sim/engine_exec.c sim/engine_data.c sim/engine_data.h \
	sim/engine_module.c sim/engine_sched.c

# Where engines come from, their cage, and how a core survives kernel code.
libnpusim_la_SOURCES += sim/nursery.c sim/nursery.h sim/nursery_process.c sim/nursery_process.h \
	sim/sandbox.c sim/sandbox.h sim/sandbox_ns.c sim/sandbox_filter.c \
	sim/engine_fault.c sim/engine_fault.h sim/engine_switch.S sim/engine_block.c sim/engine_block.h

# The board: npu-sim's own process, between npud and the engines.
libnpusim_la_SOURCES += sim/board.c sim/board.h sim/board_backend.c sim/board_channel.c \
	sim/board_channel.h sim/board_engine.c sim/board_engine.h sim/board_engine_msg.c \
	sim/board_engine_msg.h sim/board_loop.c sim/board_loop.h sim/board_memory.c \
	sim/board_memory.h sim/board_release.c sim/board_release.h sim/board_socket.c \
	sim/board_socket.h sim/board_space.c sim/board_space.h sim/board_upper.c sim/board_upper.h \
	sim/board_watch.c sim/board_watch.h \
	sim/sim_fd.h sim/sim_lock.c sim/sim_lock.h sim/sim_log.c sim/sim_log.h \
	sim/sim_options.c sim/sim_options.h sim/sim_start.c sim/sim_start.h
npudlibexecdir = $(libexecdir)/npud
npudlibexec_PROGRAMS = npu-sim
npu_sim_SOURCES = sim/main.c
npu_sim_LDADD = libnpusim.la

# The board as a PCI card for a virtual machine, and its firmware.
libnpusim_la_SOURCES += sim/card.c sim/card.h sim/card_admin.c sim/card_command.c sim/card_copy.c \
	sim/card_dma.c sim/card_fetch.c sim/card_ivshmem.c sim/card_mirror.c sim/card_object.c \
	sim/card_regs.c sim/fw_crc.h
noinst_PROGRAMS += mkfw
mkfw_SOURCES = sim/mkfw.c sim/fw_crc.h kdrv/uapi/npu_hw.h
noinst_DATA += sim/npu-fw.bin
CLEANFILES += sim/npu-fw.bin
sim/npu-fw.bin: mkfw$(EXEEXT)
	$(AM_V_GEN)$(MKDIR_P) sim && ./mkfw$(EXEEXT) $@ $(PACKAGE_VERSION)
