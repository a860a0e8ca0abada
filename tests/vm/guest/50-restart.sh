# SPDX-License-Identifier: Apache-2.0
# what: systemctl restart npud under load
# limit: 120
need_npud
# Long enough that both restarts fall into it.
as "$USER_NPU" /vm/examples/sgemm -q -n 64 -r 3000 >/vm/run/load 2>&1 &
load=$!
connected() { npuctl ps --json | grep -q '"pid"'; }
check "the load is connected" wait_for 20 connected
before=$(systemctl show -P MainPID npud)
check "restart" systemctl restart npud
check_not "it is another process" test "$before" = "$(systemctl show -P MainPID npud)"
check "it answers at once" npuctl status
check "the client comes back" wait_for 20 connected
check_not "the load is still at work" gone "$load"
kill -KILL "$(systemctl show -P MainPID npud)"
check "npud comes back by itself after kill -9" wait_for 20 npuctl version
check "the load ends with the right result" wait "$load"
cat /vm/run/load
