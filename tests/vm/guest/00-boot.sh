# SPDX-License-Identifier: Apache-2.0
# what: Debian boots, systemd is process 1
# limit: 40
settled() { [ -z "$(systemctl list-jobs --no-legend)" ]; }
wait_for 20 settled
check_is "process 1 is systemd" systemd "$(cat /proc/1/comm)"
systemctl --no-legend --plain --failed >/vm/run/failed-units
check_is "no unit has failed" "" "$(cut -d' ' -f1 </vm/run/failed-units | tr '\n' ' ')"
check_is "no network but loopback" lo "$(ls /sys/class/net)"
read -r up _ </proc/uptime
echo "up since $up s; kernel $(uname -r); $(nproc) cpus"
lspci -nn 2>/dev/null | grep 1af4:1110
check "the clock is the time stamp counter" grep -q tsc \
	/sys/devices/system/clocksource/clocksource0/current_clocksource
