#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The library exports the calls of functions.list, all of them and nothing else, under the version
# node of the script; and npuctl's own calls under theirs.
set -u
export LC_ALL=C
top=${srcdir:-$(dirname "$0")/../..}
lib=${builddir:-.}/.libs/libnpu-client.so
list=$top/client/acl/functions.list
temp=$(mktemp -d "${TMPDIR:-/tmp}/npud-exports.XXXXXX") || exit 99
trap 'rm -rf "$temp"' EXIT

[ -s "$list" ] || { echo "$list: missing or empty"; exit 99; }
[ -e "$lib" ] || { echo "$lib: not built"; exit 99; }
nm -D --defined-only "$lib" | awk '$2 != "A" && $3 !~ /^npu_admin_[a-z_]*@@NPU_ADMIN_0$/ { print $3 }' | sort >"$temp/exported"
sed 's/$/@@NPU_CLIENT_0.1/' "$list" | sort >"$temp/wanted"
if diff "$temp/wanted" "$temp/exported" >"$temp/diff"; then
	echo "100%: Checks: $(wc -l <"$temp/wanted"), Failures: 0, Errors: 0"
	exit 0
fi
sed -n 's/^< \(.*\)@@.*/not exported: \1/p; s/^> /exported, but not in the list: /p' "$temp/diff"
echo "0%: Checks: 1, Failures: 1, Errors: 0"
exit 1
