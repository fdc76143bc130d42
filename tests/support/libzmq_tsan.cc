// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors

// Debian's libzmq is not built for the thread sanitizer, which therefore does not see how it hands
// memory from thread to thread. Belongs into the sources of a test that uses it, for a library
// would not be asked for this function.
extern "C" const char* __tsan_default_suppressions();
extern "C" const char* __tsan_default_suppressions() { return "called_from_lib:libzmq.so.5\n"; }
