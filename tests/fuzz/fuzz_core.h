/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_core - bytes become calls and upcalls on a kdrv/core device; ends the process when a rule of
 * core_rig.h or a sanitizer is broken. libFuzzer's entry point; any number of inputs, one thread.
 */
#ifndef TESTS_FUZZ_FUZZ_CORE_H
#define TESTS_FUZZ_FUZZ_CORE_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
