# SPDX-License-Identifier: Apache-2.0

# The rules of the device interface: for npu-sim, and by its sources for the kernel module.
noinst_LTLIBRARIES += libnpu-core.la
libnpu_core_la_SOURCES = \
	kdrv/core/npu_call.c \
	kdrv/core/npu_core.c \
	kdrv/core/npu_core.h \
	kdrv/core/npu_core_int.h \
	kdrv/core/npu_ctx.c \
	kdrv/core/npu_device.c \
	kdrv/core/npu_event.c \
	kdrv/core/npu_fault.c \
	kdrv/core/npu_handle.c \
	kdrv/core/npu_map.c \
	kdrv/core/npu_mem.c \
	kdrv/core/npu_module.c \
	kdrv/core/npu_obj.c \
	kdrv/core/npu_pages.c \
	kdrv/core/npu_pages.h \
	kdrv/core/npu_queue.c \
	kdrv/core/npu_session.c \
	kdrv/core/npu_share.c \
	kdrv/core/npu_shim.h \
	kdrv/core/npu_shim_port.h \
	kdrv/core/npu_window.c
libnpu_core_la_CFLAGS = $(AM_CFLAGS) -Wvla
noinst_HEADERS += kdrv/uapi/npu.h kdrv/uapi/npu_queue.h
