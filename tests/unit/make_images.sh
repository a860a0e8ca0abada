#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# make_images.sh NPU_CC CC CXX SRCDIR OUTDIR: the images of check_image, good ones by npu-cc, bad ones by
# the compiler itself.
set -eu
npu_cc=$1 cc=$2 cxx=$3 src=$4 out=$5
mkdir -p "$out"

"$npu_cc" -Wall -Wextra -o "$out/good_c.npuk" "$src/image_good.c"
"$npu_cc" -Wall -Wextra -g -O1 -o "$out/good_g.npuk" "$src/image_good.c"
"$npu_cc" -Wall -Wextra -o "$out/good_cxx.npuk" "$src/image_good.cc"
cp "$out/good_c.npuk" "$out/good_stripped.npuk"
"${STRIP:-strip}" -s "$out/good_stripped.npuk"

flags="-O2 -fPIC -fvisibility=hidden -fno-plt -fno-stack-protector -fno-asynchronous-unwind-tables -w
	-I$NPU_CC_INCLUDE"
link="-shared -nostdlib -Wl,-z,now,-z,noexecstack,-z,separate-code,-z,max-page-size=4096"
sysv="-Wl,--hash-style=sysv"

# bad NAME NUMBER [FLAG...]: an image linked with the flags.
bad()
{
	name=$1 number=$2
	shift 2
	# shellcheck disable=SC2086
	$cc -std=gnu17 $flags -DBAD="$number" $link "$@" "$src/image_bad.c" -o "$out/$name.npuk" -lgcc
}

bad_cxx()
{
	name=$1 number=$2
	shift 2
	# shellcheck disable=SC2086
	$cxx -std=gnu++17 $flags -DBAD="$number" $link "$@" -x c++ "$src/image_bad.c" -o "$out/$name.npuk"
}

bad tls 1 $sysv
bad tls_extern 2 $sysv
bad constructor 3 $sysv
bad destructor 4 $sysv
bad printf 5 $sysv
bad errno 6 $sysv
bad ifunc 7 $sysv
bad irelative 8 $sysv
bad textrel 9 $sysv -Wl,-z,notext
bad interp 10 $sysv
bad nokernel 11 $sysv
bad bigbss 12 $sysv
bad twice 13 $sysv
bad toomany 14 $sysv
bad weak 15 $sysv
bad stack_protector 16 $sysv -fstack-protector-all
bad_cxx exceptions 17 $sysv -fexceptions
bad_cxx guard 18 $sysv -fno-exceptions
bad_cxx pure 19 $sysv -fno-rtti
bad execstack 20 $sysv -Wl,-z,execstack
bad writable_code 20 $sysv -Wl,--omagic 2>/dev/null
bad needed 20 $sysv -Wl,--no-as-needed -lm
bad init 20 $sysv -Wl,-init=npu_thunk_k
bad fini 20 $sysv -Wl,-fini=npu_thunk_k
bad gnu_hash 20 -Wl,--hash-style=gnu
bad fortify 22 $sysv
bad relr 21 $sysv -Wl,-z,pack-relative-relocs
# shellcheck disable=SC2086
$cc -std=gnu17 $flags -DBAD=20 -c "$src/image_bad.c" -o "$out/object.npuk"
# shellcheck disable=SC2086
$cc -std=gnu17 -O2 -no-pie -nostdlib -w -Wl,-e,0 -x c /dev/null -o "$out/program.npuk"
