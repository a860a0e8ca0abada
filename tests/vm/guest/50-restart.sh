# SPDX-License-Identifier: Apache-2.0
# what: systemctl restart npud and kill -9 under load: it serves at once, nothing is left behind
# limit: 120
need_npud
connected() { npuctl ps --json | grep -q '"pid"'; }
alone() { ! connected; }
main_pid() { systemctl show -P MainPID npud; }
replaced() { [ "$(main_pid)" != "$before" ] && npuctl version; }
engines() { npu_call /dev/npu0 query | sed 's/.*sessions \([0-9]*\) .*/\1/'; }
none() { [ "$(engines)" = 0 ]; }

# Long enough that the restart falls into it.
load_start() {
	as "$USER_NPU" /vm/examples/sgemm -q -n 64 -r 1500 >/vm/run/load 2>&1 &
	load=$!
	check "the load is connected" wait_for 20 connected
	before=$(main_pid)
}
# It goes on, or ends with an error that names the cause (52-survive asks for the former).
load_ends() {
	check_not "it is another process" test "$before" = "$(main_pid)"
	if wait "$load"; then
		ok "the load has the right result"
	else
		check_is "the load ends with an error, not by a signal" 1 $?
		check_says "it says what has happened" 'device 0 is lost' /vm/run/load
	fi
	check "no client is left" wait_for 10 alone
	check "no session is left on the device" wait_for 10 none
	check "clients work" as "$USER_NPU" /vm/examples/sgemm -q -n 64 -r 1
}

load_start
check "restart" systemctl restart npud
check "it answers at once" npuctl status
load_ends

load_start
kill -KILL "$before"
check "npud comes back by itself after kill -9" wait_for 20 replaced
load_ends
