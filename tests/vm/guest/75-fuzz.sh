# SPDX-License-Identifier: Apache-2.0
# what: 10,000 random ioctls of each call leave no trace
# limit: 240
need_module
npud_down
check "nobody uses the module" wait_for 10 unused
# Living objects that npu.ko has allocated, by size class and call site.
ours() { grep -h '\[npu\]' /sys/kernel/debug/slab/*/alloc_traces 2>/dev/null |
	awk '{ n += $1 } END { print n + 0 }'; }
maps() { grep '\[npu\]' /proc/vmallocinfo | cut -d' ' -f2- | sort; }
count_maps() { maps | wc -l; }
round() {
	check "fuzz_ioctl $1" fuzz_ioctl "$1" "$2"
	check "nobody uses the module" wait_for 20 unused
}
# Tables grow to what this needs, and stay.
round 1000 1
settled() { [ "$(ours)" -le "$slab" ] && [ "$(count_maps)" -le "$vmap" ]; }
slab=$(ours) vmap=$(count_maps)
maps >/vm/run/maps
round 10000 "${FUZZ_SEED:-20261}"
check "slab objects and mappings are as many as before ($slab, $vmap)" wait_for 20 settled
echo "now $(ours) and $(count_maps)"
maps | diff /vm/run/maps -
[ "$(ours)" -le "$slab" ] || grep -h '\[npu\]' /sys/kernel/debug/slab/*/alloc_traces | head -n 20
need_npud
check "the device works" as "$USER_NPU" /vm/examples/sgemm -q -n 64 -r 1
