# SPDX-License-Identifier: Apache-2.0
noinst_LTLIBRARIES += libnpu-proto.la

libnpu_proto_la_SOURCES = proto/wire.c proto/wire.h proto/status.c proto/status.h proto/methods.def
nodist_libnpu_proto_la_SOURCES = proto/npu.pb-c.c proto/npu.pb-c.h
libnpu_proto_la_CFLAGS = $(AM_CFLAGS) $(PROTOBUFC_CFLAGS)
libnpu_proto_la_LIBADD = $(PROTOBUFC_LIBS)

BUILT_SOURCES += proto/npu.pb-c.c proto/npu.pb-c.h
CLEANFILES += proto/npu.pb-c.c proto/npu.pb-c.h
EXTRA_DIST += proto/npu.proto

proto/npu.pb-c.c: proto/npu.proto
	$(AM_V_GEN)$(MKDIR_P) proto && \
	$(PROTOC_C) --proto_path=$(top_srcdir) --c_out=. $(top_srcdir)/proto/npu.proto

proto/npu.pb-c.h: proto/npu.pb-c.c
	@test -f $@ || { rm -f proto/npu.pb-c.c; $(MAKE) $(AM_MAKEFLAGS) proto/npu.pb-c.c; }
