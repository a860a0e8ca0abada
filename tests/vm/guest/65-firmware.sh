# SPDX-License-Identifier: Apache-2.0
# what: wrong firmware leaves the device unusable and the system fine
# limit: 90
need_module
npud_down
check "nobody uses the module" wait_for 10 unused
fw=/usr/lib/firmware/npu/npu-fw.bin
check "rmmod" rmmod npu
for wrong in magic crc major truncated huge missing; do
	if [ "$wrong" = missing ]; then rm -f "$fw"; else mkfw "$fw" wrong "$wrong"; fi
	kernel_mark
	modprobe npu
	udevadm settle -t 5
	check "wrong $wrong: no device" missing /dev/npu0
	kernel_since | grep -E 'npu [0-9a-f:.]+: .*stays unusable' >/vm/run/fw
	cat /vm/run/fw
	check_is "one line for each card" 2 "$(wc -l </vm/run/fw)"
	check_says "which names the file" 'npu/npu-fw\.bin' /vm/run/fw
	check "rmmod works" rmmod npu
done
mkfw "$fw" 2.0-vm
check "with the right one" modprobe npu
check "both devices are there" wait_for 10 loaded
npu_call /dev/npu0 query >/vm/run/query
check_says "with that version" 'firmware 2\.0-vm' /vm/run/query
need_npud
check "and work" as "$USER_NPU" /vm/examples/sgemm -q -n 64 -r 1
