#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# run.sh [-l] TARGET SECONDS SRCDIR, in the top of the build tree: runs a fuzz target over its
# seeds and what it makes of them. With -l the target is one of libFuzzer, which keeps what it
# finds useful in fuzz-corpus/TARGET.
set -eu
libfuzzer=
if [ "$1" = -l ]; then
	libfuzzer=y
	shift
fi
target=$1 seconds=$2 srcdir=$3
seeds=$srcdir/tests/fuzz/seeds/${target#fuzz_}
case $target in
fuzz_image) seeds=tests/unit/images ;;
fuzz_ring) export NPU_FUZZ_KERNELS="$PWD/tests/unit/engine_kernels.npuk" ;;
esac

if [ -n "$libfuzzer" ]; then
	mkdir -p "fuzz-corpus/$target"
	exec "./$target-libfuzzer" -max_total_time="$seconds" -max_len=65536 -timeout=60 \
		"fuzz-corpus/$target" "$seeds"
fi
exec "./$target" -s 1 -t "$seconds" "$seeds"
