# SPDX-License-Identifier: Apache-2.0
# what: npu.ko loads by itself; both devices are there, owned by group npu-dev
# limit: 40
[ -n "$(modinfo -n npu 2>/dev/null)" ] || not_there "npu.ko"
check_is "two cards are on the bus" 2 "$(count_cards)"
wait_for 15 have_module
check "udev has loaded the module by its alias" have_module
need_module
udevadm settle -t 5
for node in npu-ctl0 npu0 npu1; do
	check_is "/dev/$node belongs to root, group npu-dev, and to nobody else" "root npu-dev 660" \
		"$(stat -c '%U %G %a' "/dev/$node")"
done
check_is "no third device" "/dev/npu0 /dev/npu1" "$(echo /dev/npu[0-9]*)"
for n in 0 1; do
	check "device $n answers" npu_call "/dev/npu$n" query
	check "its PCI device is bound to npu" test "$(basename "$(readlink -f \
		"/sys/class/npu/npu$n/device/driver")")" = npu
done
dmesg | grep -E 'npu[: 0-9]' | grep -v npu-vm
check_is "taint: out of tree and unsigned, nothing else" 12288 "$(cat /proc/sys/kernel/tainted)"
