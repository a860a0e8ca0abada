#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# kdrv/core is compiled into a kernel module, too: no libc but mem*, no floating point, small frames.
set -eu
top=${srcdir:-.}
cc=${CC:-cc}
dir=$(mktemp -d "${TMPDIR:-/tmp}/core-free.XXXXXX")
trap 'rm -rf "$dir"' EXIT

fpu=
case $($cc -dumpmachine) in
x86_64-* | aarch64-*) fpu=-mgeneral-regs-only ;;
esac
for source in "$top"/kdrv/core/*.c; do
	object=$dir/$(basename "$source" .c).o
	$cc -std=gnu17 -O2 -ffreestanding -fno-common $fpu -Wall -Wextra -Wvla -Werror \
		-Wno-missing-field-initializers -Wframe-larger-than=512 -I"$top" \
		-c "$source" -o "$object"
done
alien=$(nm -u "$dir"/*.o | awk '$1 == "U" { print $2 }' | sort -u |
	grep -Ev '^(npu_.*|memcpy|memmove|memset|memcmp|_GLOBAL_OFFSET_TABLE_|__popcount[sd]i2)$' || true)
if [ -n "$alien" ]; then
	echo "kdrv/core calls what a kernel does not give it:" $alien >&2
	exit 1
fi
echo "kdrv/core: $(ls "$dir" | wc -l) files compile freestanding"
