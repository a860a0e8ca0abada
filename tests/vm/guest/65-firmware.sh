# SPDX-License-Identifier: Apache-2.0
# what: wrong firmware leaves the device unusable and the system fine
# limit: 90
need_module
npud_down
check "nobody uses the module" wait_for 10 unused
fw=/usr/lib/firmware/npu/npu-fw.bin
check "rmmod" rmmod npu
for wrong in magic crc major short long missing; do
	if [ "$wrong" = missing ]; then rm -f "$fw"; else make_fw "$fw" "$wrong"; fi
	dmesg -C 2>/dev/null
	modprobe npu
	udevadm settle -t 5
	check "wrong $wrong: no device" missing /dev/npu0
	dmesg | grep -E 'npu[: 0-9].*irmware' >/vm/run/fw
	cat /vm/run/fw
	check_is "one line for each card" 2 "$(wc -l </vm/run/fw)"
	check_says "which names the file" 'npu/npu-fw\.bin' /vm/run/fw
	check "rmmod works" rmmod npu
done
make_fw "$fw"
check "with the right one" modprobe npu
check "both devices are there" wait_for 10 loaded
need_npud
check "and work" as "$USER_NPU" /vm/examples/sgemm -q -n 64 -r 1
