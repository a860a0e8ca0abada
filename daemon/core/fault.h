/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NPU_CORE_FAULT_H
#define NPU_CORE_FAULT_H

#include "daemon/core/space.h"

/* Faults of the device, as they are logged. Only core/ includes this. */

/* In words; static. */
const char *fault_kind_name(uint32_t kind);
/* The line in the log, and the watcher; each session has its own budget. */
void fault_report(struct space *space, const struct npu_fault_record *fault);

#endif
