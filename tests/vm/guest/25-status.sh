# SPDX-License-Identifier: Apache-2.0
# what: npuctl status and busctl show both devices
# limit: 40
need_npud
npuctl status --json >/vm/run/status.json
npuctl status
check_is "npuctl status shows two devices" 2 "$(grep -c '"firmware"' /vm/run/status.json)"
check_says "they are the card's" '"/dev/npu0"' /vm/run/status.json
check_is "no software NPU was started" "" "$(running npu-sim)"
owned() { busctl --timeout=5 call org.freedesktop.DBus / org.freedesktop.DBus NameHasOwner s org.npud; }
check "the system bus answers" wait_for 15 owned
owned | grep -q true || not_there "org.npud on the system bus"
busctl --no-pager tree org.npud >/vm/run/tree
property() { busctl get-property org.npud "/org/npud/device/$1" org.npud.Device1 "$2"; }
for n in 0 1; do
	check_says "busctl shows device $n" "/org/npud/device/$n\$" /vm/run/tree
	check "it can be introspected" busctl --no-pager introspect org.npud "/org/npud/device/$n"
	check_is "its health" 's "ok"' "$(property "$n" Health)"
	check_is "its memory" "t $((512 << 20))" "$(property "$n" MemoryTotal)"
done
reset_by_bus() { busctl call org.npud /org/npud org.npud.Manager1 Reset u 1; }
boot_id() { npu_call /dev/npu1 query | sed 's/.*boot \([0-9a-f]*\).*/\1/'; }
first=$(boot_id)
check_not "a user may not reset" as "$USER_NPU" busctl call org.npud /org/npud org.npud.Manager1 Reset u 1
check_is "nothing has happened" "$first" "$(boot_id)"
check "root may" reset_by_bus
other_boot() { [ "$(boot_id)" != "$first" ]; }
check "the device has booted again" wait_for 10 other_boot
