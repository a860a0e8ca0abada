# SPDX-License-Identifier: Apache-2.0
# what: edges and sgemm, as a user of group npu
# limit: 120
need_npud
out=$(as "$USER_NPU" mktemp -d /tmp/examples.XXXXXX)
cd "$out" || exit 1
# Emulated cpus check every result: few and small ones.
check "edges" as "$USER_NPU" /vm/examples/edges -q -n 2 -o "$out/edges.png"
check "it has made a picture" test -s "$out/edges.png"
check "sgemm" as "$USER_NPU" /vm/examples/sgemm -q -n 128 -r 3
as "$USER_NPU" /vm/examples/sgemm -q -n 96 -r 3 &
one=$!
as "$USER_NPU" /vm/examples/edges -q -n 1 -o "$out/other.png" &
two=$!
check "both at the same time: sgemm" wait "$one"
check "both at the same time: edges" wait "$two"
