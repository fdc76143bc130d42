// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <cstdlib>

namespace baton::test {

// Whether an exploration goes through all cases. It does without the address sanitizer, which makes the
// largest ones last minutes; with it only when BATON_LONG is set, as `./dev test long` does.
inline bool thorough() {
#if __has_feature(address_sanitizer)
  static const bool is_long = std::getenv("BATON_LONG") != nullptr;
  return is_long;
#else
  return true;
#endif
}

}  // namespace baton::test
