// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace baton::tokenizer {

// Role. The pieces a text was cut into. Most point into the text itself; those that had to be
//   changed on the way are kept here.
// Confinement. One thread.
// Lifetime. The text must outlive it. Cleared and used again, so that encoding rarely allocates.
struct Pieces {
  std::vector<std::string_view> views;
  std::deque<std::string> changed;

  void clear() {
    views.clear();
    changed.clear();
  }
};

}  // namespace baton::tokenizer
