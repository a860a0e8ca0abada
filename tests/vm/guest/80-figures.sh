# SPDX-License-Identifier: Apache-2.0
# what: what a call, a submission and an interrupt cost
# limit: 90
[ -x /vm/bin/figures ] || not_there "figures"
need_npud
check "a batch of 32 by SUBMIT costs less than three times one" figures /dev/npu0
