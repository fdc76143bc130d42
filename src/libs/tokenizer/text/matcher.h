// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace baton::tokenizer {

// A segment of text, in bytes.
struct Match {
  std::size_t begin;
  std::size_t end;
  bool operator==(const Match&) const = default;
};

// Role. Finds the matches in a text of a regular expression, a string, or a kind of character.
// Confinement. Immutable; any thread.
class Matcher {
 public:
  virtual ~Matcher() = default;

  // Appends the matches in order; they do not overlap and may be empty. Requires: valid UTF-8.
  virtual void find_all(std::string_view text, std::vector<Match>& matches) const = 0;
  // Appends the matches and what lies between them, without empty ones; false where this is no
  // faster than find_all, and nothing was done.
  virtual bool isolate(std::string_view /*text*/, std::vector<std::string_view>& /*pieces*/) const {
    return false;
  }
  // Nothing ever lies between matches.
  virtual bool covers_all() const { return false; }
  // A match begins with each space behind an ASCII letter; and what is matched on either side is
  // the same without the other side.
  virtual bool cuts_between_words() const { return false; }
};

}  // namespace baton::tokenizer
