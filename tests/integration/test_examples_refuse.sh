#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# What the examples say to wrong options, files that are no picture, images that are not there and
# a daemon that is not there: one line on stderr that names the thing and the reason, and the exit
# status of --help.
set -u
export LC_ALL=C
build=${builddir:-.}
temp=$(mktemp -d "${TMPDIR:-/tmp}/npud-examples.XXXXXX") || exit 99
trap 'rm -rf "$temp"' EXIT
NPUD_SOCKET=$temp/nobody.sock
export NPUD_SOCKET
checks=0
failures=0

# refuses STATUS TEXT COMMAND...: COMMAND exits with STATUS and says one line with TEXT.
refuses() {
	status=$1
	text=$2
	shift 2
	checks=$((checks + 1))
	(cd "$temp" && "$@") >"$temp/out" 2>"$temp/err"
	got=$?
	lines=$(wc -l <"$temp/err")
	if [ "$got" -ne "$status" ] || [ "$lines" -ne 1 ] || ! grep -qF -- "$text" "$temp/err"; then
		failures=$((failures + 1))
		echo "$*: status $got, $lines lines, wanted $status and \"$text\":"
		cat "$temp/err"
	fi
}

helps() {
	checks=$((checks + 1))
	"$@" --help >"$temp/out" 2>"$temp/err" && grep -q '^usage: ' "$temp/out" &&
		[ ! -s "$temp/err" ] && return
	failures=$((failures + 1))
	echo "$*: --help does not help"
}

crash=$(realpath "$build/examples/crash/crash")
sgemm=$(realpath "$build/examples/sgemm/sgemm")
edges=$(realpath "$build/examples/edges/edges" 2>/dev/null)
[ -x "$crash" ] && [ -x "$sgemm" ] || { echo "the examples are not built under $build"; exit 99; }

helps "$crash"
helps "$sgemm"
refuses 2 '--kind: "tea"' "$crash" --kind tea
refuses 2 '"more" is no option' "$crash" more
refuses 2 '--size: "0"' "$sgemm" -n 0
refuses 2 '--size: "12x"' "$sgemm" -n 12x
refuses 2 '--size: "99999999999999999999"' "$sgemm" -n 99999999999999999999
refuses 2 '--repeats: ""' "$sgemm" -r ''
refuses 2 '"more" is no option' "$sgemm" more
refuses 1 "$NPUD_SOCKET" "$crash"
refuses 1 "$NPUD_SOCKET" "$sgemm"

if [ -x "$edges" ]; then
	helps "$edges"
	refuses 2 '--frames: "-1"' "$edges" -n -1
	refuses 2 'one picture at a time' "$edges" a.png b.png
	refuses 1 'none.png: No such file' "$edges" none.png
	: >"$temp/empty.png"
	refuses 1 'empty.png: the file is empty' "$edges" empty.png
	echo 'no picture at all' >"$temp/text.jpg"
	refuses 1 'text.jpg: neither a PNG nor a JPEG' "$edges" text.jpg
	printf '\377\330\377\340\000\020JFIF' >"$temp/cut.jpg"
	refuses 1 'cut.jpg: damaged JPEG' "$edges" cut.jpg
	printf '\211PNG\r\n\032\n\000\000\000\rIHDR' >"$temp/cut.png"
	refuses 1 'cut.png: damaged PNG' "$edges" cut.png
	refuses 1 "$temp: not a regular file" "$edges" "$temp"
	# a picture that is right: 1 x 1 pixel, grey
	printf 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNoAAAAggCBd81ytgAAAABJRU5ErkJggg==' |
		base64 -d >"$temp/good.png"
	refuses 1 "$NPUD_SOCKET" "$edges" good.png
fi

echo "$(((checks - failures) * 100 / checks))%: Checks: $checks, Failures: $failures, Errors: 0"
[ "$failures" -eq 0 ]
