#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# usage: stage.sh DIR IMAGE
#
# Builds what the virtual machine tests, with the prefix /usr, in DIR/obj, and packs it as its second
# disk, DIR/files.tar: the installed project, npu.ko for the kernel of IMAGE, firmware, tests,
# examples, and the steps.
set -eu
export LC_ALL=C
here=$(cd "$(dirname "$0")" && pwd -P)
top=$(cd "$here/../.." && pwd -P)
dir=$1 image=$2
obj=$dir/obj stage=$dir/stage
kver=$(cat "$image/kver")
jobs=$(nproc)
unset MAKEFLAGS MFLAGS MAKELEVEL

# Integration tests that find the npud that runs; run by guest/30-integration.sh.
tests=(test_api test_api_streams test_api_memory test_api_kernels test_copies test_streams
	test_sharing test_isolation)
kernels=(tests/unit/engine_kernels.npuk tests/integration/api_kernels.npuk)

say() { printf 'stage.sh: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }
run() {
	local log=$1
	shift
	"$@" >"$log" 2>&1 && return 0
	grep -E -A4 'error|Error' "$log" | tail -n 30 >&2
	say "failed: $*; see $log"
	return 1
}

[ "${NPU_VM_RESTAGE:-1}" = 1 ] || [ ! -e "$dir/files.tar" ] || exit 0

mkdir -p "$obj"
if [ ! -e "$obj/Makefile" ]; then
	(cd "$obj" && run configure.log "$top/configure" --prefix=/usr --sysconfdir=/etc \
		--localstatedir=/var) || exit 1
fi
# One after the other: "all" is a make of its own, which would build the libraries a second time.
run "$obj/make.log" make -C "$obj" -j"$jobs" all || exit 1
run "$obj/make-tests.log" make -C "$obj" -j"$jobs" "${tests[@]}" "${kernels[@]}" || exit 1
rm -rf "$stage"
mkdir -p "$stage/vm/bin" "$stage/vm/guest" "$stage/vm/examples"
run "$obj/install.log" make -C "$obj" install DESTDIR="$stage" || exit 1
# Debian's /lib is a link.
if [ -d "$stage/lib" ]; then
	mkdir -p "$stage/usr/lib"
	cp -a "$stage/lib/." "$stage/usr/lib/"
	rm -r "$stage/lib"
fi
rm -rf "$stage/usr/share/man" "$stage/usr/include"

# The module. Without it the steps say that it is not there.
mkdir -p "$stage/usr/lib/modules/$kver/updates"
ko=$obj/kdrv/module/kdrv/npu.ko
rm -f "$ko"
if run "$dir/kdrv.log" make -C "$obj" kdrv KDIR="$image/kdir"; then
	strip --strip-debug -o "$stage/usr/lib/modules/$kver/updates/npu.ko" "$ko"
fi

# What the clients of the test run: programs, as libtool's wrappers hide them, and their kernels.
program() { if [ -e "$obj/${1%/*}/.libs/${1##*/}" ]; then echo "$obj/${1%/*}/.libs/${1##*/}"; else
	echo "$obj/$1"; fi; }
for name in crash edges sgemm; do
	cp "$(program "examples/$name/$name")" "$obj/examples/$name/$name.npuk" "$stage/vm/examples/"
done
mkdir -p "$stage$obj/tests/unit" "$stage$obj/tests/integration"
for name in "${tests[@]}"; do
	cp "$(program "./$name")" "$stage$obj/$name"
done
for name in "${kernels[@]}"; do
	cp "$obj/$name" "$stage$obj/$name"
done
cp "$here/guest/npud-front" "$stage$obj/npud"
ln -s "$obj" "$stage/vm/obj"

# Our own programs.
for name in fuzz_ioctl npu_call figures; do
	gcc -std=gnu17 -O2 -Wall -Wextra -Werror -D_GNU_SOURCE -I"$top" \
		-o "$stage/vm/bin/$name" "$here/$name.c" || exit 1
done

mkdir -p "$stage/usr/lib/firmware/npu"
cp "$obj/sim/npu-fw.bin" "$stage/usr/lib/firmware/npu/"
cp "$(program ./mkfw)" "$stage/vm/bin/"
cp "$here"/guest/* "$stage/vm/guest/"
install -D -m 644 "$here/users.conf" "$stage/usr/lib/sysusers.d/npu-vm.conf"
install -D -m 644 "$here/npu-vm.service" "$stage/etc/systemd/system/npu-vm.service"
# Where the tests were built may lie below /tmp, which Debian empties at boot.
mkdir -p "$stage/etc/tmpfiles.d"
echo 'd /tmp 1777 root root -' >"$stage/etc/tmpfiles.d/tmp.conf"
mkdir -p "$stage/etc/systemd/system/multi-user.target.wants"
ln -s ../npu-vm.service "$stage/etc/systemd/system/multi-user.target.wants/npu-vm.service"
# Whatever else somebody wants to try in there.
[ -z "${NPU_VM_OVERLAY:-}" ] || cp -a "$NPU_VM_OVERLAY/." "$stage/"
find "$stage" -type f -perm -100 ! -name '*.sh' -exec sh -c \
	'for f; do strip --strip-debug "$f" 2>/dev/null || :; done' sh {} +
tar -C "$stage" --owner=0 --group=0 -cf "$dir/files.tar.new" .
# A disk is whole sectors.
truncate -s %512 "$dir/files.tar.new"
mv "$dir/files.tar.new" "$dir/files.tar"
