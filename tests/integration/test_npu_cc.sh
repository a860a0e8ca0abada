#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# npu-cc: what it compiles, and one line and an exit code for what it does not. Nothing is left behind
# in the temporary directory or beside the image.
set -u
export LC_ALL=C
here=$(cd "${srcdir:-$(dirname "$0")/../..}" && pwd)
npu_cc=$(readlink -f "${NPU_CC_UNDER_TEST:-sim/npu-cc}") || exit 99
[ -x "$npu_cc" ] || { echo "$npu_cc: not there; run it from the build directory" >&2; exit 99; }
work=$(mktemp -d "${TMPDIR:-/tmp}/npud-cc.XXXXXX") || exit 99
trap 'rm -rf "$work"' EXIT
mkdir "$work/tmp" "$work/src" || exit 99
export TMPDIR="$work/tmp"
cd "$work/src" || exit 99
checks=0
failures=0

fail()
{
	failures=$((failures + 1))
	echo "test_npu_cc.sh: $*" >&2
	[ ! -s "$work/err" ] || sed 's/^/    /' "$work/err" >&2
}

# write_source NAME: a source file from the standard input, behind the include line.
write_source()
{
	{ echo '#include <npu/npu_kernel.h>'; cat; } >"$1"
}

# run CODE WHAT ARGUMENT...: npu-cc ends with CODE and leaves no temporary file.
run()
{
	code=$1 what=$2
	shift 2
	checks=$((checks + 1))
	"$npu_cc" "$@" >"$work/out" 2>"$work/err"
	got=$?
	if [ "$got" -ne "$code" ]; then
		fail "$what: exit code $got instead of $code"
		return 1
	fi
	left=$(find "$work/tmp" "$work/src" -name '*npu-cc*' | head -n 1)
	[ -z "$left" ] || fail "$what: left $left"
}

# refused CODE PATTERN WHAT ARGUMENT...: one line, which matches, and no image.
refused()
{
	code=$1 pattern=$2
	shift 2
	rm -f ./*.npuk
	run "$code" "$@" || return
	[ "$(wc -l <"$work/err")" -eq 1 ] || fail "$1: not one line"
	grep -Eq "$pattern" "$work/err" || fail "$1: no '$pattern'"
	[ -z "$(ls ./*.npuk 2>/dev/null)" ] || fail "$1: there is an image all the same"
}

# kernels FILE NAME...: the image has exactly these.
kernels()
{
	checks=$((checks + 1))
	file=$1
	shift
	if [ ! -s "$file" ]; then
		fail "$file: no image"
		return
	fi
	[ "$(readelf -nW "$file" | grep -c '^  NPU ')" -eq $# ] || fail "$file: not $# kernels"
	for name; do
		grep -aq "$name" "$file" || fail "$file: no kernel $name"
	done
}

# --- what it says of itself
run 0 help --help
grep -q '^usage: npu-cc ' "$work/out" || fail "--help does not begin with usage"
for option in -o -O -g -I -D --march --verbose --version; do
	grep -q -- "$option" "$work/out" || fail "--help does not name $option"
done
run 0 version --version
grep -Eq '^npu-cc \(npud\) [0-9]+\.[0-9]+' "$work/out" || fail "--version"

# --- what it compiles
write_source one.c <<'END'
#include <math.h>
#ifndef __NPU__
#error not for the device
#endif
NPU_KERNEL(scale, (float *, x), (float, by)) { x[npu_block_idx()] *= by + sinf(x[0]); }
NPU_KERNEL(empty) { }
END
write_source two.cc <<'END'
template <class T> static void fill(T *x, T with, unsigned n)
{
	for (unsigned i = npu_block_idx(); i < n; i += npu_block_num())
		x[i] = with;
}
NPU_EXPORT_AS(fill_f32, fill<float>);
NPU_EXPORT_AS(fill_i64, fill<long>);
END
run 0 "one source" one.c && kernels one.npuk scale empty
run 0 "output option" -o named.npuk one.c && kernels named.npuk scale empty
run 0 "C++" -o./two.npuk two.cc && kernels two.npuk fill_f32 fill_i64
run 0 "both languages" --output=both.npuk one.c two.cc &&
	kernels both.npuk scale empty fill_f32 fill_i64
[ "$(stat -c %a one.npuk)" = "$(printf '%o' $((0666 & ~$(umask))))" ] ||
	fail "the image's mode does not follow the umask"
mkdir -p "sub dir/inc" && echo '#define BY 3' >"sub dir/inc/by.h"
write_source "sub dir/it's.c" <<'END'
#include "by.h"
NPU_KERNEL(quoted, (const char **, out)) { *out = TEXT; out[1] = BY + (const char *)0; }
END
run 0 "quotes and spaces" -I "sub dir/inc" -D 'TEXT="it'\''s $HOME"' -o "sub dir/o.npuk" "sub dir/it's.c" &&
	kernels "sub dir/o.npuk" quoted
grep -aqF "it's \$HOME" "sub dir/o.npuk" || fail "the value of -D did not arrive as it was"
run 0 "options are passed on" -v -O1 -g -Wall -Werror -std=gnu11 -funroll-loops -Wl,--warn-common one.c
grep -q -- '-O1 .*-Wall -Werror -std=gnu11 -funroll-loops' "$work/err" || fail "-v: options not seen"
readelf -SW one.npuk | grep -q debug_info || fail "-g: no debug information"
case $(uname -m) in
x86_64)
	run 0 "march" -v --march=x86-64 one.c
	grep -q -- '-march=x86-64 ' "$work/err" || fail "--march: not passed on"
	! grep -q 'prefer-vector-width' "$work/err" || fail "--march=x86-64 with 512 bit vectors"
	run 0 "march with 512 bits" -v --march x86-64-v4 one.c
	grep -q -- '-mprefer-vector-width=512' "$work/err" || fail "--march=x86-64-v4 without" ;;
esac
echo old >keep.npuk
write_source broken.c <<'END'
NPU_KERNEL(k, (int *, a)) { *a = nowhere; }
END
run 1 "error in the source" -o keep.npuk broken.c
grep -q 'broken.c:2' "$work/err" || fail "no place of the error"
[ "$(cat keep.npuk)" = old ] || fail "a failed run touched the image"
write_source second.c <<'END'
NPU_KERNEL(empty) { }
END
run 1 "the same kernel twice" one.c second.c
grep -q 'npu_thunk_empty' "$work/err" || fail "the kernel that is there twice is not named"

# --- wrong usage
refused 2 'no source file' "no argument"
refused 2 'needs a value' "-o alone" one.c -o
refused 2 'unknown option --frobnicate' "unknown option" --frobnicate one.c
refused 2 'not a level' "-O9" -O9 one.c
refused 2 'not an instruction set' "--march" --march=nonesuch one.c
refused 2 'name of a source' "-o source" -o one.c one.c
[ -s one.c ] || fail "-o one.c overwrote the source"

# --- sources
: >empty.c
mkdir -p dir.c
echo x >note.txt
refused 3 '^npu-cc: absent.c: no such file' "absent" absent.c
refused 3 '^npu-cc: empty.c: the file is empty' "empty" empty.c
refused 3 '^npu-cc: dir.c: not a regular file' "directory" dir.c
refused 3 '^npu-cc: note.txt: not a kernel source' "wrong name" note.txt
refused 3 '^npu-cc: absent.c' "second of two" one.c absent.c

# --- images that the device would refuse
n=0
refuse_c()
{
	n=$((n + 1))
	write_source "bad$n.${3:-c}"
	refused 4 "$2" "$1" "bad$n.${3:-c}" ${4:-}
}
refuse_c "no kernel" 'bad1.c: no kernel in it' <<'END'
int nothing;
END
refuse_c "printf" "^npu-cc: bad2.c: symbol 'printf' refused: .*print on the host" <<'END'
#include <stdio.h>
NPU_KERNEL(k, (int, a)) { printf("%d\n", a); }
END
refuse_c "unknown function" "bad3.c: symbol 'elsewhere' refused" <<'END'
int elsewhere(int);
NPU_KERNEL(k, (int *, a)) { *a = elsewhere(*a); }
END
refuse_c "malloc" "symbol 'malloc' refused: the device has no heap" <<'END'
#include <stdlib.h>
NPU_KERNEL(k, (void **, a)) { *a = malloc(10); }
END
refuse_c "long double" "'sinl' refused: .*double or float" <<'END'
#include <math.h>
NPU_KERNEL(k, (long double *, a)) { *a = sinl(*a); }
END
refuse_c "thread_local" 'bad6.c: .*thread_local' <<'END'
static _Thread_local int counter;
NPU_KERNEL(k, (int *, a)) { *a = ++counter; }
END
refuse_c "constructor" 'bad7.c: has a constructor' <<'END'
static int ready;
__attribute__((constructor)) static void set_up(void) { ready = 1; }
NPU_KERNEL(k, (int *, a)) { *a = ready; }
END
refuse_c "executable stack" 'bad8.c: needs an executable stack' <<'END'
__attribute__((noinline, noclone)) static void call(void (*f)(void)) { __asm__ volatile("" : "+r"(f)); f(); }
NPU_KERNEL(k, (int *, a)) { void inner(void) { *a = 1; } call(inner); }
END
refuse_c "ifunc" 'bad9.c: has an ifunc' <<'END'
static int one(void) { return 1; }
static int (*choose(void))(void) { return one; }
__attribute__((ifunc("choose"))) int chosen(void);
NPU_KERNEL(k, (int *, a)) { *a = chosen(); }
END
refuse_c "stack protector" "'__stack_chk_fail' refused: drop -fstack-protector" c -fstack-protector-all <<'END'
NPU_KERNEL(k, (int *, a)) { char b[64] = { 0 }; __asm__ volatile("" : : "r"(b), "r"(a) : "memory"); }
END
refuse_c "shared library" 'needs a shared library' c -Wl,--no-as-needed,-lm <<'END'
NPU_KERNEL(k, (int *, a)) { *a = 1; }
END
refuse_c "global object" "bad12.cc: symbol '__dso_handle' refused: a global object" cc <<'END'
struct kept { kept(); ~kept(); int value; };
kept::kept() : value(1) { }
kept::~kept() { value = 2; }
kept object;
NPU_KERNEL(k, (int *, a)) { *a = object.value; }
END
refuse_c "exception" "'__cxa_.*refused: exceptions do not exist" cc -fexceptions <<'END'
NPU_KERNEL(k, (int *, a)) { if (*a) throw 1; }
END
refuse_c "new" "'operator new\\(unsigned long\\)' refused: the device has no heap" cc <<'END'
NPU_KERNEL(k, (int **, a)) { *a = new int; }
END

# --- declarations that cannot be kernels
declares()
{
	n=$((n + 1))
	write_source "bad$n.$3"
	run 1 "$1" "bad$n.$3" || return
	grep -q "$2" "$work/err" || fail "$1: no '$2'"
}
declares "too large" "more than 4096 bytes of parameters" c <<'END'
struct large { char x[4097]; };
NPU_KERNEL(k, (struct large, a)) { (void)a; }
END
declares "reference" "cannot be copied as bytes" cc <<'END'
static void k(int &a) { a = 1; }
NPU_EXPORT(k);
END
declares "result" "has a result: return void" cc <<'END'
static int k(int a) { return a; }
NPU_EXPORT(k);
END
declares "not copyable" "cannot be copied as bytes" cc <<'END'
struct own { own(const own &); ~own(); int *p; };
NPU_KERNEL(k, (own, a)) { (void)a; }
END

# --- surroundings
refused 5 'directory nonesuch does not exist' "output directory" -o nonesuch/x.npuk one.c
refused 5 'is a directory' "output is a directory" -o "$work/tmp" one.c
NPU_CC_INCLUDE=/nonexistent && export NPU_CC_INCLUDE
refused 5 '/nonexistent/npu/npu_kernel.h: no such header' "headers" one.c
NPU_CC_INCLUDE=$here/client/include
run 0 "NPU_CC_INCLUDE" one.c && kernels one.npuk scale empty
unset NPU_CC_INCLUDE
NPU_CC=nonesuch-cc && export NPU_CC
refused 5 'nonesuch-cc: not found' "compiler" one.c
unset NPU_CC

# An installation that was moved: headers beside the script.
mkdir -p "$work/moved/bin" "$work/moved/include/npu"
cp "$npu_cc" "$work/moved/bin/npu-cc"
cp "$here"/client/include/npu/*.h "$work/moved/include/npu/"
npu_cc=$work/moved/bin/npu-cc
rm -f one.npuk
run 0 "moved installation" one.c && kernels one.npuk scale empty

echo "$(((checks - failures) * 100 / checks))%: Checks: $checks, Failures: $failures, Errors: 0"
[ "$failures" -eq 0 ]
