#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# What the manual pages and the example configuration say is what the programs do: every option of
# --help and every configuration key with its default, no more and no less. Runs in the top build
# directory.
set -u
export LC_ALL=C
src=$(cd "${srcdir:-.}" && pwd)
dir=$(mktemp -d "${TMPDIR:-/tmp}/npud-docs.XXXXXX") || exit 99
trap 'rm -rf "$dir"' EXIT
checks=0
failures=0

# ok WHAT COMMAND...
ok() {
	what=$1
	shift
	checks=$((checks + 1))
	"$@" && return 0
	failures=$((failures + 1))
	echo "test_documentation.sh: $what" >&2
}

same() { diff -u "$1" "$2"; }

# "key = default" of each option, sorted: as npud has them, and as the two documents say.
keys_of_npud() { ./npud --print-config | grep -E '^[a-z_]+ = ' | sort; }
keys_of_example() { sed -n 's/^#\([a-z_]* = \)/\1/p' "$src/systemd/npud.conf" | sort; }
keys_of_page() { sed -n 's/^\.It Cm \([a-z_]*\) Pq \(.*\)$/\1 = \2/p' "$src/docs/npud.conf.5" | sort; }

uncommented() { sed 's/^#\([a-z_]* = \)/\1/' "$src/systemd/npud.conf"; }
accepted() { ./npud --config "$1" --print-config >/dev/null; }

# Long options of a program's help, and of a page (outside of literal text).
options_of_help() { "$1" --help | grep -oE -e '--[a-z][a-z0-9-]+' | sort -u; }
options_of_page() {
	grep -E '^\.(It|Op|Fl|Nm)' "$1" | grep -oE 'Fl -[a-z][a-z0-9-]+' | sed 's/^Fl -/--/' | sort -u
}

keys_of_npud >"$dir/npud"
keys_of_example >"$dir/example"
keys_of_page >"$dir/page"
uncommented >"$dir/npud.conf"
ok "npud prints no configuration" test -s "$dir/npud"
ok "systemd/npud.conf differs from what npud has" same "$dir/npud" "$dir/example"
ok "docs/npud.conf.5 differs from what npud has" same "$dir/npud" "$dir/page"
ok "npud refuses systemd/npud.conf" accepted "$src/systemd/npud.conf"
ok "npud refuses systemd/npud.conf with the defaults uncommented" accepted "$dir/npud.conf"

for pair in npud:npud.8 npu-sim:npu-sim.8 npuctl:npuctl.1; do
	program=${pair%:*}
	page=$src/docs/${pair#*:}
	options_of_help "./$program" >"$dir/help"
	options_of_page "$page" >"$dir/page"
	ok "$program --help prints no options" test -s "$dir/help"
	ok "$program --help and docs/${pair#*:} differ" same "$dir/help" "$dir/page"
done

if command -v mandoc >/dev/null; then
	for page in "$src"/docs/*.[1-8]; do
		ok "mandoc finds fault with $page" mandoc -Tlint -W warning "$page"
	done
fi

for path in $(grep -oE '\((docs|LICENSES|examples)/[^)]*\)' "$src/README.md" | tr -d '()'); do
	ok "README.md: $path does not exist" test -e "$src/$path"
done

# Tests that docs/status.md names.
exists() {
	for path in "$src"/tests/*/$1; do
		[ -e "$path" ] && return 0
	done
	return 1
}
for name in $(grep -oE '`(check|test)_[a-z_.*]*`' "$src/docs/status.md" | tr -d '`' | sort -u); do
	case $name in
	*.sh | *'*') ;;
	*) name=$name.c ;;
	esac
	ok "docs/status.md: there is no test $name" exists "$name"
done

echo "$(((checks - failures) * 100 / checks))%: Checks: $checks, Failures: $failures, Errors: 0"
[ "$failures" -eq 0 ]
