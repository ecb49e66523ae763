/* SPDX-License-Identifier: Apache-2.0 */
/* What Criterion's runner leaves behind when a test's processes end in their own order is not ours. The linker is told to take
 * this in (-u in the Makefile): the sanitizer's own reference is weak. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) { return "leak:libcriterion\n"; }
