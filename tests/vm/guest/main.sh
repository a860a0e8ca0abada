#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs the steps in the virtual machine, as a service of its systemd. Speaks lines with run.sh
# over the second serial port (fd 3):
#   @step NAME WHAT                          a step begins
#   @result NAME STATUS MS CHECKS FAILED     STATUS: pass, fail, absent, timeout or kernel
#   @log NAME TEXT                           what a step that did not pass has printed last
#   @host COMMAND                            wants something of the host; it answers "ok" or why not
#   @figure TEXT                             a measurement
#   @end CODE                                the last line; then the machine stops
export LC_ALL=C PATH=/usr/sbin:/usr/bin:/sbin:/bin:/vm/bin
. /vm/guest/lib.sh

exec 3<>/dev/ttyS1
stty raw -echo <&3
mkdir -p /vm/log /vm/run
chmod 755 /vm /vm/run

wanted=$(sed -n 's/.*npuvm\.steps=\([^ ]*\).*/\1/p' /proc/cmdline)
seen=0 code=42

# Lines that the kernel has printed since we last looked and that it prints for its own bugs.
kernel_complaints() {
	dmesg >/vm/log/dmesg
	tail -n "+$((seen + 1))" /vm/log/dmesg | grep -E "$KERNEL_BAD"
	seen=$(wc -l </vm/log/dmesg)
	case $(cat /proc/sys/kernel/tainted) in
	0 | 12288) ;;
	*) echo "the kernel is tainted: $(cat /proc/sys/kernel/tainted)" ;;
	esac
}

selected() {
	local word
	[ -n "$wanted" ] || return 0
	for word in ${wanted//,/ }; do
		case $1 in $word | *-$word | $word-*) return 0 ;; esac
	done
	return 1
}

run_step() {
	local file=$1 name what limit log begin ms status bad
	name=$(basename "$file" .sh)
	what=$(sed -n 's/^# what: //p' "$file")
	limit=$(sed -n 's/^# limit: //p' "$file")
	log=/vm/log/$name.log
	echo "@step $name $what" >&3
	echo "npu-vm: step $name" >/dev/kmsg
	begin=$(now_ms)
	STEP=$name timeout -k 5 "${limit:-30}" bash -c '. /vm/guest/lib.sh; . "$1"; step_end' \
		"$name" "$file" </dev/null >"$log" 2>&1
	case $? in
	0) status=pass ;;
	3) status=absent ;;
	124 | 137) status=timeout ;;
	*) status=fail ;;
	esac
	ms=$(($(now_ms) - begin))
	bad=$(kernel_complaints)
	if [ -n "$bad" ]; then
		status=kernel
		printf '%s\n' "$bad" >>"$log"
	fi
	if [ "$status" != pass ]; then
		code=43
		[ "$status" != timeout ] || echo "not finished within ${limit:-30} s" >>"$log"
		{ grep -v '^ok ' "$log"; [ "$status" = absent ] || step_trouble; } |
			tail -n 60 | cut -c1-300 | sed "s/^/@log $name /" >&3
	fi
	echo "@result $name $status $ms $(grep -Ec '^(ok|FAIL) ' "$log") $(grep -c '^FAIL ' "$log")" >&3
	grep '^figure ' "$log" | sed 's/^figure /@figure /' >&3
}

# What else may explain a failure.
step_trouble() {
	echo "-- journal and kernel since the step began:"
	journalctl -q -o short-monotonic --no-hostname --since "-$(((ms + 1999) / 1000))s" |
		grep -v 'npu-vm: step' | tail -n 25
}

for file in /vm/guest/[0-9]*.sh; do
	! selected "$(basename "$file" .sh)" || run_step "$file"
done
journalctl -q -o short-monotonic --no-hostname >/vm/log/journal
dmesg >/vm/log/dmesg
tar -C /vm -cf /dev/vdc log 2>/dev/null
sync
echo "@end $code" >&3
# The host reads this code from QEMU's exit status: nothing else ends that way.
stty -F /dev/ttyS1 sane 2>/dev/null
printf "\\x$(printf %x "$code")" | dd of=/dev/port bs=1 seek=1281 conv=notrunc status=none
