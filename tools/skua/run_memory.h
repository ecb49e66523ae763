/* SPDX-License-Identifier: Apache-2.0 */
/* run_memory.h: the supervisor's memory is part of an idle box's: what loading the configuration has freed goes back. */
#pragma once
#include "base/base.h"

/* Free memory returns to the kernel. Once, behind the loading: a configuration of many zones is millions of small pieces. */
void run_memory_settle(void);
