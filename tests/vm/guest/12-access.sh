# SPDX-License-Identifier: Apache-2.0
# what: a user of group npu reaches the socket and cannot open a node
# limit: 30
need_npud
check_is "the socket is for the group" "npud npu 660" "$(stat -c '%U %G %a' /run/npud/npud.sock)"
check "a user of group npu reaches npud" as "$USER_NPU" npuctl version
for node in npu-ctl0 npu0 npu1; do
	check_is "it cannot open /dev/$node" "/dev/$node: EACCES" \
		"$(as "$USER_NPU" npu_call "/dev/$node" open)"
done
check_not "it cannot read debugfs" as "$USER_NPU" ls /sys/kernel/debug/npu
check "npud itself can" as npud npu_call /dev/npu0 query
