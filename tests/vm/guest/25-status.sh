# SPDX-License-Identifier: Apache-2.0
# what: npuctl status and busctl show both devices
# limit: 40
need_npud
npuctl status --json >/vm/run/status.json
npuctl status
check_is "npuctl status shows two devices" 2 "$(grep -c '"firmware"' /vm/run/status.json)"
check_says "of the card" '1\.0-vm' /vm/run/status.json
check_is "no software NPU was started" "" "$(running npu-sim)"
if ! busctl --no-pager list --acquired | grep -q org.npud; then
	not_there "org.npud on the system bus"
fi
busctl --no-pager tree org.npud >/vm/run/tree
for n in 0 1; do
	check_says "busctl shows device $n" "/org/npud/device/$n\$" /vm/run/tree
	check "it can be introspected" busctl --no-pager introspect org.npud "/org/npud/device/$n"
done
