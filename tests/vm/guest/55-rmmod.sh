# SPDX-License-Identifier: Apache-2.0
# what: rmmod is refused while somebody uses the device, and works when nobody does
# limit: 60
need_npud
check_not "rmmod under a serving npud" rmmod npu
check "everything still works" as "$USER_NPU" /vm/examples/sgemm -q -n 64 -r 1
npud_down
check "nobody uses the module" wait_for 10 unused
for i in 1 2 3; do
	check "rmmod" rmmod npu
	check_is "no node is left" "" "$(ls /dev | grep '^npu' | tr '\n' ' ')"
	check "modprobe" modprobe npu
	check "both devices are there" wait_for 10 loaded
done
udevadm settle -t 5
check_is "the group is right again" "npu-dev npu-dev" "$(stat -c %G /dev/npu0 /dev/npu1 | xargs)"
need_npud
check "a client works after it" as "$USER_NPU" /vm/examples/sgemm -q -n 64 -r 1
