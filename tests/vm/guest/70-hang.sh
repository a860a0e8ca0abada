# SPDX-License-Identifier: Apache-2.0
# what: a hung kernel ends by its limit; firmware death and reset fail every waiter, then all is well
# limit: 120
need_npud
health() { npu_call /dev/npu0 query; }
boot_id() { health | sed 's/.*boot \([0-9a-f]*\).*/\1/'; }
works() { as "$USER_NPU" /vm/examples/sgemm -q -n 64 -r 1; }
connected() { npuctl ps --json | grep -q '"pid"'; }
ended_with_error() {
	local victim=$1
	check "the client at work ends" wait_for 20 gone "$victim"
	wait "$victim"
	check_is "with an error" 1 $?
	tail -n 2 /vm/run/victim
}
at_work() {
	as "$USER_NPU" /vm/examples/sgemm -q -n 64 -r 100000 >/vm/run/victim 2>&1 &
	victim=$!
	check "a client is at work" wait_for 20 connected
}

check "a kernel that never ends is ended" as "$USER_NPU" /vm/examples/crash --kind loop
check "the device still works" works

# RESET by the interface.
first=$(boot_id)
at_work
check "reset" npu_call /dev/npu0 reset
ended_with_error "$victim"
check_not "the device has booted again" test "$first" = "$(boot_id)"
check "and works" wait_for 20 works

# Its firmware dies: the watchdog sees it and resets.
second=$(boot_id)
at_work
stdbuf -oL udevadm monitor --kernel --property --subsystem-match=npu --subsystem-match=pci >/vm/run/uevents 2>&1 &
monitor=$!
check "udevadm listens" wait_for 10 grep -q kernel /vm/run/uevents
kernel_mark
check "firmware death" npu_call /dev/npu0 inject 5
ended_with_error "$victim"
other_boot() { [ -n "$(boot_id)" ] && [ "$(boot_id)" != "$second" ]; }
check "the device comes back by itself" wait_for 20 other_boot
check "and works" wait_for 20 works
wedged() { grep -q '^WEDGED=' /vm/run/uevents; }
wait_for 5 wedged
kill "$monitor"
check_says "a uevent says WEDGED" '^WEDGED=' /vm/run/uevents
check "the state was dumped" test -n "$(ls /sys/class/devcoredump 2>/dev/null)"
kernel_since | grep npu
check "device 1 has not noticed" npu_call /dev/npu1 query

# debugfs answers.
check "debugfs has the state" grep -q . /sys/kernel/debug/npu/0/state

# ECC: corrected is counted, nobody is hurt.
check "a corrected bit" npu_call /dev/npu0 inject 1
check "the device works" works
