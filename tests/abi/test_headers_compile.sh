#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Each public header compiles alone, in every standard that programs use, without a warning.
set -u
top=${srcdir:-$(dirname "$0")/../..}
cc=${CC:-cc}
cxx=${CXX:-c++}
checks=0
failed=0

compile() {
	checks=$((checks + 1))
	printf '#include <%s>\nint npu_unit_not_empty;\n' "$header" |
		"$@" -Wall -Wextra -pedantic -Werror -I"$top/client/include" -fsyntax-only - || {
		echo "$header does not compile with: $*"
		failed=$((failed + 1))
	}
}

for path in $(cd "$top/client/include" && find acl -name '*.h' | sort); do
	header=$path
	for std in c99 c11 c17; do
		compile $cc -x c -std=$std
	done
	compile $cxx -x c++ -std=c++17
done

[ "$checks" -gt 60 ] || { echo "only $checks checks: headers not found under $top"; failed=1; }
if [ "$failed" -eq 0 ]; then
	echo "100%: Checks: $checks, Failures: 0, Errors: 0"
else
	echo "Checks: $checks, Failures: $failed, Errors: 0"
	exit 1
fi
