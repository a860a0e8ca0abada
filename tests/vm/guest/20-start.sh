# SPDX-License-Identifier: Apache-2.0
# what: systemctl start npud is active only when it serves
# limit: 60
need_module
npud_down
check_is "npud is stopped" inactive "$(systemctl is-active npud)"
# No retries: when start returns it serves.
for i in 1 2 3; do
	check "start succeeds" systemctl start npud
	check "npud answers at once" npuctl status
	check_is "it is active" active "$(systemctl is-active npud)"
	systemctl stop npud.service npud.socket
done
# A configuration that it refuses: never active, and the message says where.
cp /etc/npud/npud.conf /vm/run/npud.conf.good
printf '[limits]\nsessions = many\n' >>/etc/npud/npud.conf
check_not "with a wrong configuration start fails" systemctl start npud.service
check_not "and it is not active" systemctl -q is-active npud
journalctl -q -u npud -o cat --since -20s >/vm/run/npud-refuses
check_says "the journal names file and line" 'npud\.conf:[0-9]+' /vm/run/npud-refuses
cp /vm/run/npud.conf.good /etc/npud/npud.conf
npud_down
# The socket wakes it.
check "the socket starts" systemctl start npud.socket
check "a client starts npud" as "$USER_NPU" npuctl version
check_is "npud is active" active "$(systemctl is-active npud)"
