// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace baton::engine {

// Role. Replaces parts of a text where they stand; every other byte stays as it was.
// Confinement. One thread.
// Lifetime. The text must outlive it.
class TextPatch {
 public:
  explicit TextPatch(std::string_view text) : text_(text) {}

  // `part` must be a view into the text, and overlap no other one.
  void replace(std::string_view part, std::string by);
  bool empty() const { return edits_.empty(); }
  std::string apply() const;

 private:
  struct Edit {
    std::size_t begin;
    std::size_t end;
    std::string by;
  };
  std::string_view text_;
  std::vector<Edit> edits_;  // in the order of the text
};

}  // namespace baton::engine
