# SPDX-License-Identifier: Apache-2.0
# What the steps share. A step is a bash file that is read after this one; it prints one line
# "ok ..." or "FAIL ..." for each check and goes on after a failure.

# Lines of a kernel that has found a bug of its own or of a driver.
KERNEL_BAD='WARNING: |BUG: |BUG at|Oops|general protection|Call Trace|INFO: task .* blocked|'
KERNEL_BAD+='INFO: rcu|soft lockup|hard LOCKUP|UBSAN|refcount_t|list_(add|del) corruption|'
KERNEL_BAD+='kernel NULL pointer|unable to handle|nobody cared|Objects remaining|'
KERNEL_BAD+='Bad page state|DMA-API|scheduling while atomic|Voluntary context switch|'
KERNEL_BAD+='(Redzone|Poison|Padding|Object .*) overwritten'

USER_NPU=npu-user      # of group npu
USER_OTHER=npu-outside # of no group of ours
OBJ=/vm/obj            # link to where the tests were built

export HOME=/vm/run

now_ms() { local t=${EPOCHREALTIME/./}; echo $((t / 1000)); }
now_us() { echo "${EPOCHREALTIME/./}"; }

failed=0 absent=0

ok() { echo "ok $*"; }
fail() { echo "FAIL $*"; failed=$((failed + 1)); }

# check TEXT COMMAND...: the command succeeds. What it prints is shown.
check() {
	local text=$1
	shift
	if "$@"; then ok "$text"; else fail "$text (\"$*\" gave $?)"; fi
}

# check_not TEXT COMMAND...: it fails.
check_not() {
	local text=$1
	shift
	if "$@"; then fail "$text (\"$*\" succeeded)"; else ok "$text"; fi
}

# check_is TEXT WANTED GOT
check_is() {
	if [ "$2" = "$3" ]; then ok "$1"; else fail "$1: wanted \"$2\", got \"$3\""; fi
}

# check_says TEXT PATTERN FILE: a line of FILE matches.
check_says() {
	if grep -Eq -- "$2" "$3"; then
		ok "$1"
	else
		fail "$1: no \"$2\" in:"
		tail -n 15 "$3"
	fi
}

# The step cannot be done, since what it is about does not exist. Never a success.
not_there() {
	echo "not there yet: $*"
	absent=1
	step_end
}

step_end() {
	[ "$failed" -eq 0 ] || exit 1
	[ "$absent" -eq 0 ] || exit 3
	exit 0
}

# wait_for SECONDS COMMAND...: until the command succeeds; fails when the time is over.
wait_for() {
	local end=$(($(now_ms) + $1 * 1000))
	shift
	until "$@" >/dev/null 2>&1; do
		[ "$(now_ms)" -lt "$end" ] || return 1
		read -r -t 0.05 _ <>/vm/run/never || :
	done
}
[ -p /vm/run/never ] || mkfifo /vm/run/never 2>/dev/null || :

gone() { ! kill -0 "$1" 2>/dev/null; }
missing() { [ ! -e "$1" ]; }

# host COMMAND...: asks run.sh; its answer is printed when it is not "ok".
host() {
	local answer
	echo "@host $*" >&3
	read -r -t 20 answer <&3 || answer="no answer within 20 s"
	[ "$answer" = ok ] && return 0
	echo "host $*: $answer"
	return 1
}

# as USER COMMAND...
as() {
	local user=$1
	shift
	setpriv --reuid "$user" --regid "$user" --init-groups --no-new-privs -- "$@"
}

# What the kernel has said since the last mark.
kernel_mark() { echo "npu-vm: mark" >/dev/kmsg; }
kernel_since() { dmesg | awk '/npu-vm: mark/ { text = ""; next } { text = text $0 "\n" } END { printf "%s", text }'; }

# Process ids of programs of that name.
running() {
	local comm
	local name pid
	for comm in /proc/[0-9]*/comm; do
		read -r name 2>/dev/null <"$comm" || continue
		pid=${comm%/comm}
		[ "$name" != "$1" ] || echo "${pid##*/}"
	done 2>/dev/null
}

# Which cards are on the bus, one address a line.
cards() {
	local dev vendor device
	for dev in /sys/bus/pci/devices/*; do
		read -r vendor <"$dev/vendor" && read -r device <"$dev/device" || continue
		[ "$vendor,$device" != 0x1af4,0x1110 ] || echo "${dev##*/}"
	done
}
count_cards() { cards | wc -l; }

# The card under /dev/npuN, and back.
card_of() { basename "$(readlink -f "/sys/class/npu/npu$1/device")"; }

# The number that the host gave to the card under /dev/npuN: it sits behind root port N, on bus N + 1.
host_of() {
	local card
	card=$(card_of "$1")
	card=${card#*:}
	echo $((16#${card%%:*} - 1))
}

have_module() { [ -d /sys/module/npu ]; }
loaded() { have_module && [ -c /dev/npu-ctl0 ] && [ -c /dev/npu0 ] && [ -c /dev/npu1 ]; }

# The module is there, with both devices; else the step cannot be done.
need_module() {
	[ -n "$(modinfo -n npu 2>/dev/null)" ] || not_there "npu.ko"
	[ "$(count_cards)" -eq 2 ] || not_there "two cards on the bus"
	have_module || modprobe npu
	wait_for 10 loaded || {
		fail "both devices are there"
		dmesg | grep npu | tail -n 15
		step_end
	}
	udevadm settle -t 5
}

npud_active() { [ "$(systemctl is-active npud)" = active ]; }

npud_down() {
	systemctl -q stop npud.service npud.socket
	systemctl -q reset-failed npud.service npud.socket 2>/dev/null || :
}

need_npud() {
	need_module
	npud_active || systemctl start npud.socket npud.service
	npud_active && npuctl version >/dev/null && return 0
	fail "npud serves"
	systemctl --no-pager status npud | tail -n 20
	step_end
}

# All clients are gone, and so is npud: nothing should use the module now.
unused() {
	local count=0
	[ ! -e /sys/module/npu/refcnt ] || read -r count </sys/module/npu/refcnt
	[ "$count" = 0 ]
}
