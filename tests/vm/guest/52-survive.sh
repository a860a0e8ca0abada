# SPDX-License-Identifier: Apache-2.0
# what: the work of clients survives a restart of npud and kill -9
# limit: 120
need_npud
connected() { npuctl ps --json | grep -q '"pid"'; }
main_pid() { systemctl show -P MainPID npud; }
replaced() { [ "$(main_pid)" != "$before" ] && npuctl version; }

# Objects belong to the open device file, so somebody must keep that.
[ "$(systemctl show -P FileDescriptorStoreMax npud)" -gt 0 ] ||
	not_there "npud's device files in systemd's fd store"

survives() {
	as "$USER_NPU" /vm/examples/sgemm -q -n 64 -r 1500 >/vm/run/load 2>&1 &
	load=$!
	check "the load is connected" wait_for 20 connected
	before=$(main_pid)
	"$@"
	check "npud is back" wait_for 20 replaced
	if gone "$load"; then
		fail "the load is still at work"
	else
		check "the client comes back" wait_for 20 connected
	fi
	check "the load ends with the right result" wait "$load"
	cat /vm/run/load
}
survives systemctl restart npud
survives systemctl -q kill --signal=KILL --kill-whom=main npud
