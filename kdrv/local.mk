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

# ---- npu.ko -----------------------------------------------------------------------------------
#
# make kdrv [KDIR=headers of a kernel] [W=1] [C=2]: kdrv/module/kdrv/npu.ko in the build tree. The
# sources are copied there, since the kernel's build writes beside them.
# make kdrv-dkms DESTDIR=: what dkms wants, in /usr/src/npu-VERSION.
KDRV_FILES = \
	kdrv/Kbuild \
	kdrv/npu_admin.c \
	kdrv/npu_admin_cq.c \
	kdrv/npu_command.c \
	kdrv/npu_compat.h \
	kdrv/npu_debugfs.c \
	kdrv/npu_drv.h \
	kdrv/npu_file.c \
	kdrv/npu_fw.c \
	kdrv/npu_ioctl.c \
	kdrv/npu_irq.c \
	kdrv/npu_mem.c \
	kdrv/npu_pci.c \
	kdrv/npu_shim.c \
	kdrv/npu_slab.c \
	kdrv/npu_space.c \
	kdrv/npu_trace.c \
	kdrv/npu_trace.h \
	kdrv/npu_view.c \
	kdrv/npu_watch.c
EXTRA_DIST += $(KDRV_FILES) kdrv/README.md kdrv/HARDWARE.md kdrv/dkms.conf.in

KDRV_COPY = $(KDRV_FILES) $(libnpu_core_la_SOURCES) kdrv/uapi/npu.h kdrv/uapi/npu_queue.h \
	kdrv/uapi/npu_hw.h
# The running kernel's headers, else the newest that are installed.
KDIR = $(shell for d in /lib/modules/$$(uname -r)/build \
	$$(ls -d /lib/modules/*/build /usr/src/linux-headers-*-$$(dpkg --print-architecture 2>/dev/null) \
	2>/dev/null | sort -rV); do [ ! -e $$d/Makefile ] || { echo $$d; break; }; done)

.PHONY: kdrv kdrv-dkms kdrv-clean
kdrv:
	@test -n "$(KDIR)" || { echo "make kdrv: no kernel headers here: install linux-headers-amd64," \
		"or name a directory with KDIR=" >&2; exit 1; }
	@$(MKDIR_P) kdrv/module/kdrv/core kdrv/module/kdrv/uapi
	@for f in $(KDRV_COPY); do cmp -s $(srcdir)/$$f kdrv/module/$$f || \
		cp $(srcdir)/$$f kdrv/module/$$f || exit 1; done
	$(MAKE) -C $(KDIR) M=$(abs_builddir)/kdrv/module/kdrv NPU_VERSION=$(PACKAGE_VERSION) modules

kdrv-dkms:
	$(MKDIR_P) $(DESTDIR)/usr/src/npu-$(PACKAGE_VERSION)/kdrv/core \
		$(DESTDIR)/usr/src/npu-$(PACKAGE_VERSION)/kdrv/uapi
	for f in $(KDRV_COPY); do $(INSTALL_DATA) $(srcdir)/$$f \
		$(DESTDIR)/usr/src/npu-$(PACKAGE_VERSION)/$$f || exit 1; done
	sed 's/@[P]ACKAGE_VERSION@/$(PACKAGE_VERSION)/g' $(srcdir)/kdrv/dkms.conf.in \
		>$(DESTDIR)/usr/src/npu-$(PACKAGE_VERSION)/dkms.conf

kdrv-clean:
	rm -rf kdrv/module
clean-local: kdrv-clean
