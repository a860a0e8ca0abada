#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Every fuzz target over its seeds and about two seconds of mutations that are the same each time.
# What ends a target leaves its input in TARGET.input.
set -u
here=${srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
out=$(mktemp "${TMPDIR:-/tmp}/npud-fuzz.XXXXXX") || exit 99
trap 'rm -f "$out"' EXIT
checks=0
failures=0

for target in $(sed -n 's/^FUZZ_TARGETS = //p' "$here/tests/fuzz/local.mk"); do
	checks=$((checks + 1))
	if sh "$here/tests/fuzz/run.sh" "$target" 2 "$here" >"$out" 2>&1; then
		tail -n 1 "$out"
	else
		failures=$((failures + 1))
		tail -n 60 "$out" >&2
		echo "test_smoke.sh: $target failed; its input is in $(pwd)/$target.input" >&2
	fi
done

# A target without seeds would pass and test nothing.
checks=$((checks + 1))
if ./fuzz_conf -n 1 >"$out" 2>&1; then
	failures=$((failures + 1))
	echo "test_smoke.sh: the driver runs without seeds" >&2
fi

echo "$(((checks - failures) * 100 / checks))%: Checks: $checks, Failures: $failures, Errors: 0"
[ "$failures" -eq 0 ]
