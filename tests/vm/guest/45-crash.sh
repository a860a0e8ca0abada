# SPDX-License-Identifier: Apache-2.0
# what: a program whose kernels go wrong hurts only itself
# limit: 120
need_npud
pid=$(systemctl show -P MainPID npud)
as "$USER_NPU" /vm/examples/sgemm -q -n 128 -r 12 >/vm/run/beside 2>&1 &
beside=$!
for kind in null wild div0 ill stack loop; do
	check "crash --kind $kind sees its own error" as "$USER_NPU" /vm/examples/crash --kind "$kind"
done
check "sgemm beside it has the right result" wait "$beside"
cat /vm/run/beside
check_is "npud is the same process" "$pid" "$(systemctl show -P MainPID npud)"
check "and another client works" as "$USER_NPU" /vm/examples/sgemm -q -n 64 -r 1
for n in 0 1; do
	npu_call "/dev/npu$n" query >/vm/run/query
	check_says "device $n is healthy" '^health 0' /vm/run/query
done
