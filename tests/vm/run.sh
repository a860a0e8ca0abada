#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Boots a virtual machine with two NPUs and lets it run the steps of guest/; see README.md.
set -u
export LC_ALL=C PATH=$PATH:/usr/sbin:/sbin

here=$(cd "$(dirname "$0")" && pwd -P)
dir= steps= cards=2 keep= limit=420 restage=1
pids=() ram= guard= mon= ctl_in= ctl_out=
declare -A chardev=([0]=n0 [1]=n1)
plugs=0

usage() {
	cat <<-END
	usage: run.sh --dir DIR [--steps LIST] [--cards N] [--limit SECONDS] [--no-build] [--keep]
	  --dir DIR     where image, build and logs are kept (make check-vm: build/vm)
	  --steps LIST  only these, by number or name: 10,fuzz
	  --cards N     0, 1 or 2 NPUs (2)
	  --limit S     the machine is ended after so many seconds ($limit)
	  --no-build    takes what the last run has packed
	  --keep        leaves the sockets and the run directory
	END
}

say() { printf 'run.sh: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }
now_ms() { local t=${EPOCHREALTIME/./}; echo $((t / 1000)); }
started=$(now_ms)

while [ $# -gt 0 ]; do
	case $1 in
	--dir | --steps | --cards | --limit)
		[ $# -gt 1 ] || { usage >&2; exit 2; }
		case $1 in
		--dir) dir=$2 ;; --steps) steps=$2 ;; --cards) cards=$2 ;; --limit) limit=$2 ;;
		esac
		shift ;;
	--no-build) restage=0 ;;
	--keep) keep=1 ;;
	-h | --help) usage; exit 0 ;;
	*) usage >&2; exit 2 ;;
	esac
	shift
done
[ -n "$dir" ] || { usage >&2; exit 2; }
for tool in qemu-system-x86_64 mmdebstrap busybox mkfs.ext4 mkfifo; do
	command -v "$tool" >/dev/null || die "$tool is missing: install the packages that README.md lists"
done
mkdir -p "$dir" || exit 1
dir=$(cd "$dir" && pwd -P)
exec 8>"$dir/lock"
flock -n 8 || die "another run uses $dir"

# ---- image and second disk ----------------------------------------------------------------

image=$("$here/image.sh" "$dir/cache") || exit 1
image_ms=$(($(now_ms) - started))
NPU_VM_RESTAGE=$restage "$here/stage.sh" "$dir" "$image" || exit 1
stage_ms=$(($(now_ms) - started - image_ms))

# ---- the machine --------------------------------------------------------------------------

# A socket's path is short; the logs stay.
run=$(mktemp -d "${TMPDIR:-/tmp}/npu-vm.XXXXXX") || exit 1
logs=$dir/logs
rm -rf "$logs"
mkdir -p "$logs"

stop() {
	local pid
	trap '' INT TERM
	exec 2>&1
	for pid in $guard "${pids[@]}"; do
		kill -TERM "$pid" 2>/dev/null
	done
	for pid in $guard "${pids[@]}"; do
		wait "$pid" 2>/dev/null
	done
	rm -f "$ram"
	[ -n "$keep" ] || rm -rf "$run"
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# wait_for SECONDS COMMAND...
wait_for() {
	local end=$(($(now_ms) + $1 * 1000))
	shift
	until "$@" >/dev/null 2>&1; do
		[ "$(now_ms)" -lt "$end" ] || return 1
		read -r -t 0.02 _ <>"$run/never" || :
	done
}
gone() { ! kill -0 "$1" 2>/dev/null; }
ready() { [ -S "$1" ] || gone "$2"; }
mkfifo "$run/never" "$run/ctl.in" "$run/ctl.out" "$run/mon.in" "$run/mon.out" || exit 1

# The guest's RAM: a file that the cards map for their DMA.
shm=/dev/shm
[ -w "$shm" ] || shm=$run
ram=$(mktemp "$shm/npu-vm-ram.XXXXXX") || exit 1
truncate -s 1G "$ram"

card_start() {
	local n=$1 pid
	"$dir/obj/npu-sim" --card "$run/n$n" --ram "$ram" --device "$n" --memory 512M \
		--cores 2 --bar 4G \
		>>"$logs/npu-sim-$n.log" 2>&1 8>&- &
	pid=$!
	pids+=("$pid")
	wait_for 10 ready "$run/n$n" "$pid"
	gone "$pid" || [ ! -S "$run/n$n" ] || return 0
	tail -n 5 "$logs/npu-sim-$n.log" >&2
	die "npu-sim --card for device $n does not start (above)"
}

devices=()
for ((n = 0; n < cards; n++)); do
	card_start "$n"
	devices+=(-chardev "socket,id=n$n,path=$run/n$n"
		-device "pcie-root-port,id=rp$n,chassis=$((n + 1)),slot=$((n + 1)),pref64-reserve=4G"
		-device "ivshmem-doorbell,chardev=n$n,vectors=16,ioeventfd=off,id=npu$n,bus=rp$n")
done

truncate -s 32M "$run/logs.tar"
append="console=ttyS0 systemd.show_status=0 loglevel=5 tsc=reliable panic=0 oops=panic log_buf_len=4M"
append+=" slub_debug=FZPU,kmalloc-* npuvm.steps=$steps"
exec {ctl_in}<>"$run/ctl.in" {ctl_out}<>"$run/ctl.out" {mon}<>"$run/mon.in" {mon_out}<>"$run/mon.out"
# -accel tcg, whatever this machine offers: one machine is tested, not two.
timeout -k 10 "$limit" qemu-system-x86_64 -M q35 -accel tcg,thread=multi,tb-size=256 -cpu max -smp 2 \
	-m 1024 -nodefaults -no-user-config -display none -no-reboot \
	-device pvpanic -action panic=exit-failure \
	-object "memory-backend-file,id=ram,mem-path=$ram,size=1G,share=on" -machine memory-backend=ram \
	-kernel "$image/vmlinux" -initrd "$image/initrd" -append "$append" \
	-serial "file:$logs/console" -chardev "pipe,id=ctl,path=$run/ctl" -serial chardev:ctl \
	-chardev "pipe,id=mon,path=$run/mon" -mon chardev=mon,mode=readline \
	-device isa-debug-exit,iobase=0x501,iosize=1 \
	-drive "file=$image/root.ext4,format=raw,if=virtio,readonly=on" \
	-drive "file=$dir/files.tar,format=raw,if=virtio,readonly=on" \
	-drive "file=$run/logs.tar,format=raw,if=virtio" \
	"${devices[@]}" >"$logs/qemu.log" 2>&1 8>&- &
guard=$!
boot=$(now_ms)

# ---- what the guest asks for --------------------------------------------------------------

monitor() { printf '%s\n' "$*" >&"$mon"; }

# Commands of a guest; each is answered by one line.
host_command() {
	case $1 in
	unplug) monitor "device_del npu$2" ;;
	plug)
		# A chardev's name cannot be used again at once.
		plugs=$((plugs + 1))
		monitor "chardev-remove ${chardev[$2]}"
		chardev[$2]=n$2p$plugs
		monitor "chardev-add socket,id=${chardev[$2]},path=$run/n$2"
		monitor "device_add ivshmem-doorbell,chardev=${chardev[$2]},vectors=16,ioeventfd=off,id=npu$2,bus=rp$2"
		;;
	*) echo "unknown command $*" >&"$ctl_in"; return ;;
	esac
	echo ok >&"$ctl_in"
}

# ---- results ------------------------------------------------------------------------------

names=() figures=() checks=0 failures=0 errors=0 ended= step=
declare -A what status_of ms_of

result() {
	local name=$1 status=$2
	status_of[$name]=$status ms_of[$name]=$3
	checks=$((checks + $4)) failures=$((failures + $5))
	# What did not come to a check of its own.
	case $status in
	pass) ;;
	fail) [ "$5" -gt 0 ] || errors=$((errors + 1)) ;;
	*) errors=$((errors + 1)) ;;
	esac
	[ "$4" -gt 0 ] || checks=$((checks + 1))
	printf '%-8s %-16s %6d ms  %s\n' "${status/absent/ABSENT}" "$name" "$3" "${what[$name]:-}" >&2
	step=
}

# A read that runs out of time has taken part of a line.
part=
while [ -z "$ended" ]; do
	if ! IFS= read -r -t 1 line <&"$ctl_out"; then
		part+=$line
		gone "$guard" || continue
		IFS= read -r -t 0.1 line <&"$ctl_out" || break
	fi
	line=$part$line part=
	line=${line%$'\r'}
	printf '%s\n' "$line" >>"$logs/control"
	# shellcheck disable=SC2086
	set -- $line
	case ${1:-} in
	@step)
		step=$2 && names+=("$2")
		[ -n "${boot_ms:-}" ] || boot_ms=$(($(now_ms) - boot))
		what[$2]=${line#"@step $2 "} ;;
	@result) result "$2" "$3" "$4" "$5" "$6" ;;
	@log) printf '    | %s\n' "${line#"@log $2"}" >&2 ;;
	@figure) figures+=("${line#@figure }") ;;
	@host) shift; host_command "$@" ;;
	@end) ended=$2 ;;
	esac
done
wait "$guard"
code=$?
guard=
tar -C "$logs" -xf "$run/logs.tar" 2>/dev/null

# ---- the table ----------------------------------------------------------------------------

total_ms=$(($(now_ms) - started))
printf '\n%-18s %-14s %9s  %s\n' step result time ''
for name in "${names[@]}"; do
	case ${status_of[$name]:-none} in
	pass) word=ok ;;
	absent) word="NOT THERE YET" ;;
	kernel) word="KERNEL BUG" ;;
	timeout) word="TIME OUT" ;;
	none) word="NO RESULT" ;;
	*) word=FAIL ;;
	esac
	printf '%-18s %-14s %6d ms  %s\n' "$name" "$word" "${ms_of[$name]:-0}" "${what[$name]:-}"
done
printf '%-18s %-14s %6d ms  %s\n' "boot" "" "${boot_ms:-0}" "until the first step"
printf '%-18s %-14s %6d ms  %s\n' "all" "" "$total_ms" \
	"of which image $image_ms ms, build and disk $stage_ms ms"
[ "${#figures[@]}" -eq 0 ] || printf '  %s\n' "${figures[@]}"

# Beyond the steps: one exit code, and nothing bad on the console, is success.
kernel_bad=$(. "$here/guest/lib.sh" >/dev/null 2>&1; echo "$KERNEL_BAD")
if [ -n "$step" ]; then
	checks=$((checks + 1)) errors=$((errors + 1))
	say "the machine ended in the middle of step $step"
fi
checks=$((checks + 2))
case $code in
85) ;; # 2 * 42 + 1
87) [ $((failures + errors)) -gt 0 ] || errors=$((errors + 1)) ;; # a step has failed
*)
	errors=$((errors + 1))
	case $code in
	124 | 137) say "the machine did not end within $limit s" ;;
	1) say "the kernel has panicked, or QEMU did not start" ;;
	*) say "QEMU ended with code $code" ;;
	esac
	tail -n 3 "$logs/qemu.log" >&2
	tail -n 30 "$logs/console" >&2 ;;
esac
if grep -aE "$kernel_bad" "$logs/console" >"$logs/console.bad"; then
	errors=$((errors + 1))
	say "the kernel complains on the console:"
	head -n 10 "$logs/console.bad" >&2
fi
bad=$((failures + errors))
printf '%d%%: Checks: %d, Failures: %d, Errors: %d\n' \
	$((checks > bad ? (checks - bad) * 100 / checks : 0)) "$checks" "$failures" "$errors"
[ "$bad" -eq 0 ] || say "logs are in $logs"
[ "$bad" -eq 0 ] && [ "$code" -eq 85 ]
