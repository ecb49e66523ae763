/* SPDX-License-Identifier: Apache-2.0 */
/* run_memory.h: the supervisor's memory is part of an idle box's: what loading the configuration has freed goes back. */
#pragma once
#include "base/base.h"

/* From here on free memory returns to the kernel at once. Before, that would cost more than everything else: a configuration of
 * many zones is millions of small pieces. Without jemalloc nothing happens. */
void run_memory_settle(void);
