/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process - the window of device addresses in this process
 *
 * Reserved once, without access, for the life of the process; pinned memory is mapped into it. A
 * forked child keeps the reservation and none of what was mapped there.
 */
#ifndef NPU_CLIENT_DRV_PROCESS_H
#define NPU_CLIENT_DRV_PROCESS_H

#include <stddef.h>
#include <stdint.h>

/* Reserves the window that npud names and makes forks safe. The same again is fine. */
int drv_process_reserve(uint64_t base, uint64_t size);

/* Maps fd at a device address for reading and writing; unmap puts the reservation back. */
int drv_process_map(uintptr_t address, size_t bytes, int fd);
void drv_process_unmap(uintptr_t address, size_t bytes);

#endif
