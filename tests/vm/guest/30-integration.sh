# SPDX-License-Identifier: Apache-2.0
# what: the integration tests on the card, as a user of group npu
# limit: 240
need_npud
# The same programs as for npu-sim, led to the system's npud. What cannot hold here is named: the
# test, and the check in it that fails.
declare -A leave_out=(
	# looks whether the device is a simulator
	[test_api]='facts_of_the_device:0: Assertion .is_virtual == 1'
	# keeps mappings of memory files, of which a card has none; what it is about is in 60-unplug
	[test_isolation]='(memory_of_one_client_never_reaches_another|hidden_memory_is_not_mapped_by_clients):0: Assertion .client_hear'
	# start an npud, or look at the npu-sim below it
	[test_sharing]='a_second_npud_is_refused_by_name|a_killed_client_leaves_nothing'
)
# They count devices, and expect one.
export ASCEND_RT_VISIBLE_DEVICES=0
export CK_DEFAULT_TIMEOUT=40 CK_VERBOSITY=normal TMPDIR=/tmp
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
	elif [ -n "$line" ] && [ -n "${leave_out[$name]:-}" ] &&
		! grep -E ':[EF]:' "$log" | grep -Evq "${leave_out[$name]}"; then
		ok "$name, but for $(grep -Ec ':[EF]:' "$log") that want npu-sim"
	else
		fail "$name (status $status)"
		tail -n 20 "$log" | cut -c1-300
	fi
	npud_active || { fail "npud is active after $name"; need_npud; }
done
check_is "no session is left" 0 "$(npuctl ps --json | grep -c '"pid"')"
