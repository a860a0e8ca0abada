# SPDX-License-Identifier: Apache-2.0
include client/include/local.mk
include client/npuctl/local.mk

# Everything under the public calls, in a library that unit tests link too. All of it is hidden in
# libnpu-client.so, so its calls to itself never go through the PLT.
noinst_LTLIBRARIES += libnpu-client-core.la
libnpu_client_core_la_SOURCES = \
	client/drv/admin.c client/drv/admin.h client/drv/block.c client/drv/block.h \
	client/drv/calls.c client/drv/conn.c client/drv/conn.h client/drv/drv.c \
	client/drv/drv.h client/drv/drv_caps.h client/drv/handle.c client/drv/handle.h \
	client/drv/heap.c client/drv/heap.h client/drv/process.h client/drv/ring.c \
	client/drv/ring.h client/drv/space.c client/drv/space.h client/drv/waiter.c \
	client/drv/waiter.h
libnpu_client_core_la_SOURCES += \
	client/rt/callback.c client/rt/context.c client/rt/copy.c client/rt/copy_async.c \
	client/rt/device.c client/rt/dma.c client/rt/error.c client/rt/event.c \
	client/rt/fault.c client/rt/internal.h client/rt/launch.c client/rt/memory.c \
	client/rt/module.c client/rt/rt.h client/rt/stream.c
libnpu_client_core_la_CFLAGS = $(AM_CFLAGS) $(PROTOBUFC_CFLAGS) -fvisibility=hidden -pthread
libnpu_client_core_la_LIBADD = libnpu-proto.la $(PROTOBUFC_LIBS)

lib_LTLIBRARIES += libnpu-client.la
# The public calls.
client_acl_sources = \
	client/acl/acl_args.c client/acl/acl_binary.c client/acl/acl_callback.c \
	client/acl/acl_config.c client/acl/acl_context.c client/acl/acl_copy.c \
	client/acl/acl_data.c client/acl/acl_device.c client/acl/acl_error.c \
	client/acl/acl_event.c client/acl/acl_init.c client/acl/acl_internal.h \
	client/acl/acl_launch.c client/acl/acl_limits.c client/acl/acl_list.c \
	client/acl/acl_list.h client/acl/acl_memory.c client/acl/acl_stream.c
libnpu_client_la_SOURCES = $(client_acl_sources)
libnpu_client_la_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS) -fvisibility=hidden -pthread
libnpu_client_la_LIBADD = libnpu-client-core.la $(JSONC_LIBS)
libnpu_client_la_LDFLAGS = $(AM_LDFLAGS) -version-info 0:0:0 -Wl,-z,now \
	-Wl,--version-script=$(top_srcdir)/client/libnpu-client.map
if !SANITIZERS
libnpu_client_la_LDFLAGS += -Wl,-z,defs
endif
EXTRA_libnpu_client_la_DEPENDENCIES = $(top_srcdir)/client/libnpu-client.map
pkgconfig_DATA += client/npu-client.pc
