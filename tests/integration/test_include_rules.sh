#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The shape of the tree: includes keep to the table of DESIGN.md 9, each file
# names its licence, no file outgrows 600 lines. Each rule is shown to fail on a
# sample that breaks it.
set -u
export LC_ALL=C
here=$(cd "${srcdir:-$(dirname "$0")/../..}" && pwd)
rules=$here/tests/integration/include_rules.awk
sample=$(mktemp -d "${TMPDIR:-/tmp}/npud-rules.XXXXXX") || exit 99
trap 'rm -rf "$sample"' EXIT
checks=0
failures=0

# ok WHAT COMMAND...
ok() {
	what=$1
	shift
	checks=$((checks + 1))
	"$@" && return 0
	failures=$((failures + 1))
	echo "test_include_rules.sh: $what" >&2
}

# Files of the tree with one of the name endings given, none that a build makes.
files() {
	for d in client daemon docs examples kdrv proto sim systemd tests .ci m4; do
		[ ! -d "$d" ] || find "$d" -type f
	done | grep -E "$1" | grep -vE '\.pb-c\.[ch]$|/\.(deps|libs)/|tests/fuzz/seeds/'
}

includes_ok() {
	(cd "$1" && files '\.(c|h|cc|cpp|hpp)$' |
		xargs -r grep -nE '^[[:space:]]*#[[:space:]]*include' /dev/null | awk -f "$rules")
}

licence_ok() {
	(cd "$1" && { files '\.(c|h|cc|cpp|sh|awk|py|mk|proto|def|in|map|ver|service|socket|conf|[1578])$'
		for f in quickstart configure.ac Makefile.am .ci/run .clang-format; do
			[ ! -f "$f" ] || echo "$f"
		done; } | {
		bad=0
		while read -r f; do
			head -n 3 "$f" | grep -q 'SPDX-License-Identifier: ' && continue
			echo "$f: no SPDX-License-Identifier in its first three lines"
			bad=1
		done
		exit $bad
	})
}

length_ok() {
	(cd "$1" && { files '\.(c|h|cc|cpp|sh|awk|py)$'; [ ! -f quickstart ] || echo quickstart; } |
		xargs -r wc -l /dev/null | awk '
		$2 != "total" && $1 > 600 { print $2 ": " $1 " lines: that is two objects"; bad = 1 }
		END { exit bad }')
}

# refuses FILE LINE: a tree whose only fault is LINE in FILE does not pass.
refuses() {
	rm -rf "$sample/t"
	mkdir -p "$sample/t/$(dirname "$1")"
	printf '%s\n' "$2" >"$sample/t/$1"
	! includes_ok "$sample/t" >"$sample/out" && grep -q "^$1:1: " "$sample/out"
}

accepts() {
	rm -rf "$sample/t"
	mkdir -p "$sample/t/$(dirname "$1")"
	printf '%s\n' "$2" >"$sample/t/$1"
	includes_ok "$sample/t"
}

ok "the tree breaks an include rule" includes_ok "$here"
ok "a file without licence" licence_ok "$here"
ok "a file over 600 lines" length_ok "$here"

while read -r file line; do
	[ -n "$file" ] || continue
	ok "not seen: $line in $file" refuses "$file" "$line"
done <<'END'
daemon/util/a.c #include "daemon/loop/loop.h"
daemon/util/a.c #include <event2/event.h>
daemon/conf/a.c #include "daemon/loop/loop.h"
daemon/loop/a.c #include "daemon/core/session.h"
daemon/hal/a.c #include "daemon/core/session.h"
daemon/hal/a.c #include "kdrv/core/npu_core.h"
daemon/hal/a.c #include <event2/event.h>
daemon/core/a.c #include "kdrv/uapi/npu.h"
daemon/core/a.c # include  "proto/npu.pb-c.h"
daemon/core/a.c #include "daemon/rpc/server.h"
daemon/rpc/a.c #include "daemon/hal/hal.h"
daemon/rpc/a.c #include "../hal/hal.h"
daemon/rpc/a.h #include <event2/bufferevent.h>
daemon/mgmt/a.c #include "daemon/hal/hal.h"
daemon/mgmt/a.c #include "proto/wire.h"
daemon/rpc/a.c #include <systemd/sd-bus.h>
daemon/main.c #include "kdrv/uapi/npu.h"
daemon/new/a.c #include "daemon/util/log.h"
proto/a.c #include "daemon/util/fd.h"
client/acl/a.c #include "daemon/util/fd.h"
client/rt/a.c #include "kdrv/uapi/npu.h"
client/rt/a.c #include "proto/npu.pb-c.h"
client/npuctl/a.c #include "client/drv/call.h"
client/npuctl/a.c #include "client/rt/stream.h"
client/npuctl/a.c #include "proto/wire.h"
kdrv/core/a.c #include "sim/board.h"
sim/a.c #include "daemon/util/log.h"
sim/a.c #include "proto/wire.h"
examples/a/a.c #include "client/rt/stream.h"
daemon/core/a.c #include <ini.h>
daemon/core/a.c #include <json-c/json.h>
END

while read -r file line; do
	[ -n "$file" ] || continue
	ok "wrongly refused: $line in $file" accepts "$file" "$line"
done <<'END'
daemon/util/a.c #include "daemon/util/log.h"
daemon/util/a.c #include "log.h"
daemon/util/a.c #include <stdio.h>
daemon/util/a.c #include "config.h"
daemon/loop/a.c #include <event2/event.h>
daemon/hal/a.c #include "kdrv/uapi/npu.h"
daemon/rpc/a.c #include "proto/npu.pb-c.h"
daemon/npud.c #include "daemon/rpc/server.h"
client/drv/a.c #include "proto/npu.pb-c.h"
client/drv/a.c #include "kdrv/uapi/npu_queue.h"
client/acl/a.c #include <acl/acl.h>
client/npuctl/a.c #include "client/drv/admin.h"
sim/a.c #include "kdrv/core/npu_core.h"
examples/a/a.c #include <acl/acl.h>
END

rm -rf "$sample/t"
mkdir -p "$sample/t/sim"
echo 'int a;' >"$sample/t/sim/a.c"
no_licence() { ! licence_ok "$sample/t" >/dev/null; }
ok "a file without licence is not seen" no_licence
awk 'BEGIN { for (i = 0; i < 601; i++) print "" }' >"$sample/t/sim/a.c"
too_long() { ! length_ok "$sample/t" >/dev/null; }
ok "a file over 600 lines is not seen" too_long

echo "$(((checks - failures) * 100 / checks))%: Checks: $checks, Failures: $failures, Errors: 0"
[ "$failures" -eq 0 ]
