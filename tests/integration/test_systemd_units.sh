#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The units that make install puts where systemd looks: complete, valid, and calling the programs with
# options that those have. Runs in the top build directory.
set -u
export LC_ALL=C
src=$(cd "${srcdir:-.}" && pwd)
root=$(mktemp -d "${TMPDIR:-/tmp}/npud-units.XXXXXX") || exit 99
trap 'rm -rf "$root"' EXIT
units=$root/usr/lib/systemd/system
checks=0
failures=0

# ok WHAT COMMAND...
ok() {
	what=$1
	shift
	checks=$((checks + 1))
	"$@" && return 0
	failures=$((failures + 1))
	echo "test_systemd_units.sh: $what" >&2
}

exec_line() { sed -n 's/^ExecStart=//p' "$1"; }

# options_known UNIT PROGRAM: the program's help knows each option of the unit's command.
options_known() {
	"$2" --help >"$root/help" || return 1
	for option in $(exec_line "$1" | tr ' ' '\n' | grep '^--'); do
		grep -q -e "$option" "$root/help" && continue
		echo "$1: $2 has no $option"
		return 1
	done
}

# The units as installed under /usr, with programs that exist, as systemd-analyze wants.
make_root() {
	mkdir -p "$units" "$root/usr/sbin" "$root/usr/libexec/npud" || return 1
	for unit in npud.service npu-sim@.service; do
		sed "s|^ExecStart=[^ ]*/\([^/ ]*\)|ExecStart=/usr/sbin/\1|" "systemd/$unit" >"$units/$unit"
	done
	cp "$src/systemd/npud.socket" "$units/"
	for program in npud npu-sim; do
		printf '#!/bin/sh\n' >"$root/usr/sbin/$program"
		chmod +x "$root/usr/sbin/$program"
	done
	for target in sysinit basic shutdown sockets multi-user; do
		printf '[Unit]\nDescription=%s\n' "$target" >"$units/$target.target"
	done
}

valid() {
	systemd-analyze verify --man=no --root="$root" "$@" >"$root/out" 2>&1 && [ ! -s "$root/out" ] && return 0
	cat "$root/out"
	return 1
}
invalid() { ! valid "$@" >/dev/null; }

for unit in npud.service npu-sim@.service; do
	ok "$unit was not generated" test -s "systemd/$unit"
	ok "$unit has variables left" sh -c "! grep -n '@[a-z]*@' 'systemd/$unit'"
	ok "$unit does not call its program by a full path" \
		sh -c "grep -q '^ExecStart=/' 'systemd/$unit'"
done
ok "npud.service calls npud with an unknown option" options_known systemd/npud.service ./npud
ok "npu-sim@.service calls npu-sim with an unknown option" options_known systemd/npu-sim@.service ./npu-sim
ok "npud.service is not of Type=notify" grep -q '^Type=notify$' systemd/npud.service
ok "npud.socket is not sequential" \
	grep -q '^ListenSequentialPacket=/run/npud/npud\.sock$' "$src/systemd/npud.socket"

if command -v systemd-analyze >/dev/null && systemd-analyze verify --help 2>/dev/null | grep -q -e --root; then
	ok "cannot set up $root" make_root
	ok "systemd refuses the units" valid npud.service npud.socket npu-sim@0.service
	echo 'NoSuchDirective=1' >>"$units/npud.socket"
	ok "systemd-analyze sees no fault in a faulty unit" invalid npud.socket
fi
if command -v systemd-sysusers >/dev/null; then
	mkdir -p "$root/etc"
	ok "systemd-sysusers refuses npud.conf" sh -c \
		"systemd-sysusers --root='$root' --dry-run '$src/systemd/sysusers.d/npud.conf' >'$root/out' 2>&1 ||
		{ cat '$root/out'; false; }"
	for group in npu-dev npu npu-admin npud; do
		ok "no group $group" grep -q "group '$group'" "$root/out"
	done
fi

echo "$(((checks - failures) * 100 / checks))%: Checks: $checks, Failures: $failures, Errors: 0"
[ "$failures" -eq 0 ]
