#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The library never goes through its own exported names: a program that replaces a call, and calls
# the library from there, does not come back to itself.
set -u
export LC_ALL=C
top=${srcdir:-$(dirname "$0")/../..}
lib=${builddir:-.}/.libs/libnpu-client.so
list=$top/client/acl/functions.list
temp=$(mktemp -d "${TMPDIR:-/tmp}/npud-interposable.XXXXXX") || exit 99
trap 'rm -rf "$temp"' EXIT

[ -s "$list" ] || { echo "$list: missing or empty"; exit 99; }
[ -e "$lib" ] || { echo "$lib: not built"; exit 99; }
readelf -rW "$lib" >"$temp/relocations" || exit 99
grep -q R_ "$temp/relocations" || { echo "$lib: no relocations seen"; exit 99; }
if sed 's/.*/ &[@ ]/' "$list" | grep -f - "$temp/relocations"; then
	echo "test_interposable.sh: the library uses its own exported names"
	echo "0%: Checks: 1, Failures: 1, Errors: 0"
	exit 1
fi
echo "100%: Checks: 1, Failures: 0, Errors: 0"
