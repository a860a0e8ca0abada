# SPDX-License-Identifier: Apache-2.0
# what: a user outside of the group is refused with a clear message
# limit: 30
need_npud
as "$USER_OTHER" npuctl status >/vm/run/outside 2>&1
check_is "npuctl says that it is permission" 4 $?
cat /vm/run/outside
check_says "and what to do" 'npu' /vm/run/outside
as "$USER_OTHER" /vm/examples/sgemm -q -n 64 -r 1 >/vm/run/outside 2>&1
check_is "a program fails" 1 $?
cat /vm/run/outside
check_says "with the reason" 'ermission|not permitted|group' /vm/run/outside
check_says "which names the socket" '/run/npud/npud\.sock' /vm/run/outside
check_is "it cannot open a node" "/dev/npu0: EACCES" "$(as "$USER_OTHER" npu_call /dev/npu0 open)"
