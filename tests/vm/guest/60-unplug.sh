# SPDX-License-Identifier: Apache-2.0
# what: a card is unplugged with clients running, and plugged in again
# limit: 120
need_npud
# One at a time, and back before the next: QEMU does not survive it otherwise.
unplug() {
	local n=$1 bus
	bus=$(card_of "$n")
	host_n=$(host_of "$n")
	check "host takes card $n away" host unplug "$host_n"
	check "it has left the bus" wait_for 15 missing "/sys/bus/pci/devices/$bus"
	check "its node is gone" wait_for 5 missing "/dev/npu$n"
}
plug() {
	check "host plugs card $1 in" host plug "$host_n"
	check "it is there again" wait_for 20 test -c "/dev/npu$1"
	udevadm settle -t 5
	check "it answers" npu_call "/dev/npu$1" query
}
# A file of the device and a mapping outlive it.
npu_call /dev/npu1 hold >/vm/run/hold 2>&1 &
hold=$!
check "a session with a mapping" wait_for 5 grep -q ready /vm/run/hold
unplug 1
check "calls give ENODEV, the mapping reads as zero" wait "$hold"
cat /vm/run/hold
check "device 0 does not mind" as "$USER_NPU" /vm/examples/sgemm -q -n 64 -r 1
plug 1

# Under a client at work: it sees an error, soon, and no more than that.
as "$USER_NPU" /vm/examples/sgemm -q -n 64 -r 100000 >/vm/run/victim 2>&1 &
victim=$!
connected() { npuctl ps --json | grep -q '"pid"'; }
check "a client is at work" wait_for 20 connected
unplug 0
check "the client ends" wait_for 20 gone "$victim"
wait "$victim"
check_is "with an error, not by a signal" 1 $?
tail -n 3 /vm/run/victim
check "npud is alive" npuctl status
plug 0
again() { as "$USER_NPU" /vm/examples/sgemm -q -n 64 -r 1; }
check "a client works on it again" wait_for 30 again
