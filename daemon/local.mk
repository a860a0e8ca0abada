# SPDX-License-Identifier: Apache-2.0
noinst_LTLIBRARIES += libnpu-util.la libnpud.la
sbin_PROGRAMS += npud

libnpu_util_la_SOURCES = \
	daemon/util/cleanup.h \
	daemon/util/closer.c daemon/util/closer.h \
	daemon/util/fd.c daemon/util/fd.h \
	daemon/util/idtab.c daemon/util/idtab.h \
	daemon/util/log.c daemon/util/log.h \
	daemon/util/parse.c daemon/util/parse.h
libnpu_util_la_CFLAGS = $(AM_CFLAGS) $(SYSTEMD_CFLAGS)
libnpu_util_la_LIBADD = $(SYSTEMD_LIBS) -lpthread

libnpud_la_SOURCES = \
	daemon/conf/conf.c daemon/conf/conf.h \
	daemon/loop/loop.c daemon/loop/loop.h \
	daemon/hal/calls.c daemon/hal/calls.h \
	daemon/hal/device.c daemon/hal/device.h \
	daemon/hal/device_thread.c \
	daemon/hal/hal.h \
	daemon/hal/hal_ioctl.c \
	daemon/hal/hal_sim.c \
	daemon/hal/sim_start.c daemon/hal/sim_start.h \
	daemon/hal/transport.h \
	daemon/core/admin.c \
	daemon/core/charge.c daemon/core/charge.h \
	daemon/core/context.c \
	daemon/core/core.c daemon/core/core.h \
	daemon/core/fault.c daemon/core/fault.h \
	daemon/core/memory.c \
	daemon/core/module.c \
	daemon/core/object.c daemon/core/object.h \
	daemon/core/op.c daemon/core/op.h \
	daemon/core/queue.c \
	daemon/core/refresh.c \
	daemon/core/session.c daemon/core/session.h \
	daemon/core/space.c daemon/core/space.h \
	daemon/core/vaspace.c daemon/core/vaspace.h \
	daemon/mgmt/admin.c daemon/mgmt/admin.h \
	daemon/mgmt/bus.c daemon/mgmt/bus.h \
	daemon/mgmt/mgmt.c daemon/mgmt/mgmt.h daemon/mgmt/mgmt_int.h \
	daemon/mgmt/objects.c \
	daemon/rpc/client.c daemon/rpc/client.h \
	daemon/rpc/request.c daemon/rpc/request.h \
	daemon/rpc/rpc_admin.c \
	daemon/rpc/rpc_context.c \
	daemon/rpc/rpc_device.c \
	daemon/rpc/rpc_memory.c \
	daemon/rpc/rpc_module.c \
	daemon/rpc/rpc_queue.c \
	daemon/rpc/server.c daemon/rpc/server.h daemon/rpc/server_int.h \
	daemon/npud.c daemon/npud.h \
	daemon/options.c daemon/options.h
nodist_libnpud_la_SOURCES = proto/npu.pb-c.h
libnpud_la_CFLAGS = $(AM_CFLAGS) $(EVENT_CFLAGS) $(INIH_CFLAGS) $(PROTOBUFC_CFLAGS) $(SYSTEMD_CFLAGS)
libnpud_la_LIBADD = libnpu-util.la libnpu-proto.la $(EVENT_LIBS) $(INIH_LIBS) $(PROTOBUFC_LIBS) \
	$(SYSTEMD_LIBS) -lpthread

npud_SOURCES = daemon/main.c
npud_LDADD = libnpud.la

# Also when a single program is made, which does not build BUILT_SOURCES first.
$(libnpud_la_OBJECTS): proto/npu.pb-c.h
