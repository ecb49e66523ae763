/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/skua/run_memory.h"

#include <malloc.h>

void run_memory_settle(void) { (void)malloc_trim(0); }
