# SPDX-License-Identifier: Apache-2.0

# make check-vm: the driver, the card and the daemon in a virtual machine; see tests/vm/README.md.
# Not part of make check. VM_STEPS=10,fuzz runs these steps alone.
EXTRA_DIST += tests/vm/README.md tests/vm/figures.c tests/vm/fuzz_ioctl.c tests/vm/image.sh \
	tests/vm/masked tests/vm/modules tests/vm/npu-vm.service \
	tests/vm/npu_call.c tests/vm/packages tests/vm/run.sh tests/vm/stage.sh tests/vm/users.conf \
	tests/vm/guest/init tests/vm/guest/lib.sh tests/vm/guest/main.sh tests/vm/guest/npud-front \
	tests/vm/guest/00-boot.sh tests/vm/guest/10-module.sh tests/vm/guest/12-access.sh \
	tests/vm/guest/20-start.sh tests/vm/guest/25-status.sh tests/vm/guest/30-integration.sh \
	tests/vm/guest/35-examples.sh tests/vm/guest/40-outsider.sh tests/vm/guest/45-crash.sh \
	tests/vm/guest/50-restart.sh tests/vm/guest/52-survive.sh \
	tests/vm/guest/55-rmmod.sh tests/vm/guest/60-unplug.sh \
	tests/vm/guest/65-firmware.sh tests/vm/guest/70-hang.sh tests/vm/guest/75-fuzz.sh \
	tests/vm/guest/80-figures.sh tests/vm/guest/90-end.sh

.PHONY: check-vm
check-vm:
	bash $(abs_top_srcdir)/tests/vm/run.sh --dir vm --steps "$(VM_STEPS)"
