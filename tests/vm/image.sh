#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# usage: image.sh CACHE
#
# Makes what the virtual machine boots from, unless CACHE has it, and prints its directory:
#   root.ext4   Debian root: systemd, our runtime libraries, modules of the kernel
#   vmlinux     Debian's kernel, uncompressed (TCG takes 3 s longer to unpack a vmlinuz)
#   initrd      busybox: finds the root, puts a tmpfs over it, unpacks the second disk into it
#   kver        its release
#   kdir        link to the headers for modules
# The name of the directory is a digest of all that it is made of. Nothing is installed on this
# machine; as an ordinary user it needs newuidmap (package uidmap).
set -eu
export LC_ALL=C PATH=$PATH:/usr/sbin:/sbin

here=$(cd "$(dirname "$0")" && pwd -P)
# Where packages come from: $NPU_VM_MIRROR, else wherever this machine has them from.
sources=()
work=

say() { printf 'image.sh: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

# The lines of a list, without comments.
list() { sed -e 's/#.*//' -e '/^[[:space:]]*$/d' "$here/$1"; }

# Packages of the kernel, as this machine's apt knows them.
kernel_packages() {
	local image
	image=$(apt-cache depends --no-recommends --no-suggests linux-image-amd64 |
		awk '$1 == "Depends:" && /linux-image-6\.1\./ { print $2; exit }')
	[ -n "$image" ] || die "apt knows no linux-image-amd64 of Debian 12 (6.1): run apt-get update"
	kver=${image#linux-image-}
	image_deb=$image
	header_debs=("linux-headers-$kver" "linux-headers-${kver%-amd64}-common" linux-kbuild-6.1)
}

versions() { apt-cache policy "$image_deb" | awk '$1 == "Candidate:" { print $2 }'; }

# Downloads packages and unpacks them into a directory.
unpack() {
	local dir=$1 deb
	shift
	mkdir -p "$work/debs" "$dir"
	chmod 777 "$work/debs"
	(cd "$work/debs" && apt-get -q download "$@" >"$work/download.log" 2>&1) || {
		tail -n 5 "$work/download.log" >&2
		die "cannot download $*: check the network and apt's sources"
	}
	for deb in "$work"/debs/*.deb; do
		dpkg-deb -x "$deb" "$dir"
		rm "$deb"
	done
}

make_kernel() {
	local vmlinuz=$work/kernel/boot/vmlinuz-$kver at
	unpack "$work/kernel" "$image_deb"
	# The payload is the last xz stream in it; what follows the stream is not ours.
	for at in $(grep -abo -P '\xfd7zXZ\x00' "$vmlinuz" | cut -d: -f1 | sort -rn); do
		tail -c "+$((at + 1))" "$vmlinuz" | xz -dcq >"$work/vmlinux" 2>/dev/null || :
		[ "$(head -c 4 "$work/vmlinux" | tail -c 3)" != ELF ] || return 0
	done
	die "$image_deb: no xz payload in its vmlinuz"
}

make_headers() {
	local dir=$work/headers
	unpack "$dir" "${header_debs[@]}"
	# They name each other by absolute paths; here they lie elsewhere.
	printf 'include %s/headers/usr/src/linux-headers-%s-common/Makefile\n' "$final" \
		"${kver%-amd64}" >"$dir/usr/src/linux-headers-$kver/Makefile"
	ln -s "headers/usr/src/linux-headers-$kver" "$work/kdir"
}

# Modules that we need, by modules.dep: files below lib/modules/KVER.
module_closure() {
	awk -v want="$(list modules | tr -d '*' | tr '\n' ' ')" '
		BEGIN { n = split(want, w, " ") }
		{
			file = $1; sub(/:$/, "", file)
			name = file; sub(/.*\//, "", name); sub(/\.ko.*/, "", name); gsub(/-/, "_", name)
			path[name] = file; line[file] = $0
		}
		END {
			for (i = 1; i <= n; i++) {
				if (!(w[i] in path)) continue # built in
				m = split(line[path[w[i]]], f, " ")
				for (j = m; j > 1; j--) if (!seen[f[j]]++) print f[j]
				if (!seen[path[w[i]]]++) print path[w[i]]
			}
		}' "$work/kernel/lib/modules/$kver/modules.dep"
}

# Only this part of the modules goes in: $work/modules.
make_modules() {
	local from=$work/kernel/lib/modules/$kver to=$work/modules/usr/lib/modules/$kver file
	busybox_depmod
	module_closure >"$work/closure"
	while read -r file; do
		mkdir -p "$to/$(dirname "$file")"
		cp "$from/$file" "$to/$file"
	done <"$work/closure"
	cp "$from/modules.builtin" "$from/modules.order" "$to/"
	[ ! -e "$from/modules.builtin.modinfo" ] || cp "$from/modules.builtin.modinfo" "$to/"
}

# kmod need not be on this machine: busybox knows the same file.
busybox_depmod() {
	if command -v depmod >/dev/null; then
		depmod -b "$work/kernel" "$kver"
	else
		busybox depmod -b "$work/kernel" "$kver"
	fi
}

make_initrd() {
	local dir=$work/initramfs file name
	mkdir -p "$dir"/{bin,dev,proc,sys,mnt,tmp,modules}
	cp "$(command -v busybox)" "$dir/bin/busybox"
	cp "$here/guest/init" "$dir/init"
	chmod 755 "$dir/init"
	# In order: what is marked, each behind what it needs.
	for name in $(list modules | sed -n 's/^\*//p'); do
		printf '%s\n' "$name"
	done >"$work/first"
	awk -v first="$(tr '\n' ' ' <"$work/first")" '
		BEGIN { n = split(first, w, " "); for (i = 1; i <= n; i++) last = w[i] }
		{ print }
		{ name = $1; sub(/.*\//, "", name); sub(/\.ko.*/, "", name); gsub(/-/, "_", name) }
		name == last { exit }' "$work/closure" >"$work/order"
	while read -r file; do
		cp "$work/kernel/lib/modules/$kver/$file" "$dir/modules/"
		basename "$file"
	done <"$work/order" >"$dir/modules/order"
	(cd "$dir" && find . | busybox cpio -o -H newc 2>/dev/null) | gzip -1 >"$work/initrd"
}

# Runs in mmdebstrap's view of the root, where its files belong to root.
finish_root() {
	local root=$1 name
	echo 0123456789abcdef0123456789abcdef >"$root/etc/machine-id"
	echo npu-vm >"$root/etc/hostname"
	printf '127.0.0.1 localhost npu-vm\n' >"$root/etc/hosts"
	: >"$root/etc/fstab"
	rm -rf "$root"/var/cache/apt "$root"/var/lib/apt/lists "$root"/usr/share/doc \
		"$root"/usr/share/locale "$root"/usr/share/man
	mkdir -p "$root/var/cache/apt/archives/partial" "$root/vm"
	cp -r "$work/modules/usr/lib/modules" "$root/usr/lib/"
	chown -R 0:0 "$root/usr/lib/modules"
	chroot "$root" depmod "$kver"
	# Nobody sits at this machine, nothing here happens by the clock, and it is to start fast.
	chroot "$root" systemctl -q mask $(list masked)
	mkdir -p "$root/etc/systemd/system-generators"
	for name in "$root"/usr/lib/systemd/system-generators/*; do
		ln -s /dev/null "$root/etc/systemd/system-generators/${name##*/}"
	done
	mkdir -p "$root/etc/systemd/system/systemd-udev-trigger.service.d"
	printf '[Service]\nExecStart=\nExecStart=-udevadm trigger --action=add %s\n' \
		"--subsystem-match=pci --subsystem-match=block" \
		>"$root/etc/systemd/system/systemd-udev-trigger.service.d/vm.conf"
	mkdir -p "$root/etc/systemd/journald.conf.d"
	printf '[Journal]\nStorage=volatile\nRuntimeMaxUse=16M\n' \
		>"$root/etc/systemd/journald.conf.d/vm.conf"
	# Without what is mounted in it.
	mkdir "$work/view"
	mount --bind "$root" "$work/view"
	mkfs.ext4 -q -F -L npu-vm -O ^has_journal -d "$work/view" "$work/root.ext4" 512M
	umount "$work/view"
	rmdir "$work/view"
}

# Debian's own lists of this machine; others may name releases that the guest does not have.
find_sources() {
	local file
	if [ -n "${NPU_VM_MIRROR:-}" ]; then
		sources=("deb $NPU_VM_MIRROR bookworm main")
		return
	fi
	for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources; do
		[ ! -s "$file" ] || ! grep -q bookworm "$file" || sources+=("$file")
	done
	[ "${#sources[@]}" -gt 0 ] || die "apt of this machine has no source of Debian 12: set NPU_VM_MIRROR=URL"
}

make_root() {
	local mode=auto
	find_sources
	[ "$(id -u)" -ne 0 ] || mode=root
	chmod 755 "$work"
	mmdebstrap --quiet --mode="$mode" --variant=essential --format=null \
		--include="$(list packages | paste -sd,)" \
		--customize-hook="NPU_VM_HOOK=$work KVER=$kver bash '$here/image.sh' --finish \"\$1\"" \
		bookworm /dev/null "${sources[@]}" >"$work/mmdebstrap.log" 2>&1 || {
		tail -n 20 "$work/mmdebstrap.log" >&2
		die "mmdebstrap failed (above); NPU_VM_MIRROR=URL names another source of Debian 12"
	}
}

if [ "${1:-}" = --finish ]; then
	work=$NPU_VM_HOOK kver=$KVER
	finish_root "$2"
	exit 0
fi

[ $# -eq 1 ] || die "usage: image.sh CACHE"
for tool in mmdebstrap busybox mkfs.ext4 xz apt-get dpkg-deb; do
	command -v "$tool" >/dev/null || die "$tool is missing: ./quickstart check --vm installs it"
done
kernel_packages
mkdir -p "$1"
cache=$(cd "$1" && pwd -P)
key=$( (list packages; list modules; list masked; cat "$here/image.sh" "$here/guest/init"; echo "$kver" \
	"$(versions)") | sha256sum | cut -c1-16)
final=$cache/$key
exec 9>"$cache/lock"
flock 9
if [ ! -e "$final/complete" ]; then
	rm -rf "$cache"/[0-9a-f]*[0-9a-f] # of an older list
	work=$final
	mkdir -p "$work"
	say "making the image of kernel $kver in $final"
	make_kernel
	make_headers
	make_modules
	make_initrd
	make_root
	echo "$kver" >"$work/kver"
	rm -rf "$work/kernel" "$work/debs" "$work/initramfs" "$work/modules"
	: >"$work/complete"
fi
echo "$final"
