# SPDX-License-Identifier: Apache-2.0
# what: everything stops, the module goes and leaves nothing
# limit: 60
need_module
npud_down
check "nobody uses the module" wait_for 20 unused
check "rmmod" rmmod npu
check_is "nothing of it is mapped" 0 "$(grep -c '\[npu\]' /proc/vmallocinfo)"
check "no debugfs" missing /sys/kernel/debug/npu
check_is "no process of ours is left" "" "$(running npud; running npu-sim)"
echo "at the end: $(grep MemAvailable /proc/meminfo)"
