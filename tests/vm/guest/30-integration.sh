# SPDX-License-Identifier: Apache-2.0
# what: the integration tests on the card, as a user of group npu
# limit: 240
need_npud
# Left out: tests that kill npud, or that look into the npu-sim that they have started.
declare -A leave_out=(
	[test_sharing]='a_second_npud_is_refused_by_name'
)
export CK_DEFAULT_TIMEOUT=60 CK_VERBOSITY=normal TMPDIR=/tmp
for program in "$OBJ"/test_*; do
	name=${program##*/}
	log=/vm/log/$name.txt
	begin=$(now_ms)
	as "$USER_NPU" timeout -k 2 100 "$program" >"$log" 2>&1 </dev/null
	status=$?
	line=$(grep -E '^[0-9]+%: Checks' "$log")
	echo "$name: ${line:-no closing line}, $(($(now_ms) - begin)) ms"
	if [ "$status" -eq 0 ] && [ -n "$line" ]; then
		ok "$name"
	elif [ -n "${leave_out[$name]:-}" ] &&
		! grep -E ':[EF]:' "$log" | grep -Evq "${leave_out[$name]}"; then
		ok "$name, but for ${leave_out[$name]}, which needs an npud of its own"
	else
		fail "$name (status $status)"
		tail -n 20 "$log" | cut -c1-300
	fi
	npud_active || { fail "npud is active after $name"; need_npud; }
done
check_is "no session is left" 0 "$(npuctl ps --json | grep -c '"pid"')"
