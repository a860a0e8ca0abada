# SPDX-License-Identifier: Apache-2.0
# The commands are a library so that the tests can link them.
noinst_LTLIBRARIES += libnpuctl.la
libnpuctl_la_SOURCES = client/npuctl/command.h \
	client/npuctl/cmd_status.c client/npuctl/cmd_ps.c client/npuctl/cmd_mem.c \
	client/npuctl/cmd_version.c client/npuctl/format.c client/npuctl/format.h \
	client/npuctl/out_table.c client/npuctl/out_table.h client/npuctl/out_json.c \
	client/npuctl/out_json.h
libnpuctl_la_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS)
libnpuctl_la_LIBADD = $(JSONC_LIBS)

bin_PROGRAMS += npuctl
npuctl_SOURCES = client/npuctl/npuctl.c
npuctl_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS)
npuctl_LDADD = libnpuctl.la libnpu-client.la
