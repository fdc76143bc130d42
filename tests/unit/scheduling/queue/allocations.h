// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <cstddef>
#include <malloc.h>

#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#include <sanitizer/allocator_interface.h>
#endif

namespace baton::scheduling {

// Bytes of this program's heap that are in use.
inline std::size_t allocated_bytes() {
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
  return __sanitizer_get_current_allocated_bytes();
#else
  const struct mallinfo2 heap = mallinfo2();
  return heap.uordblks + heap.hblkhd;
#endif
}

}  // namespace baton::scheduling
