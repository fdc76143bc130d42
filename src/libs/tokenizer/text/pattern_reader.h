// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/tokenizer/error.h"
#include "libs/tokenizer/text/pattern_syntax.h"

#include <optional>
#include <string>
#include <string_view>

namespace baton::tokenizer {

// A quantifier.
struct Repeat {
  static constexpr unsigned kNoLimit = static_cast<unsigned>(-1);
  enum class Mode { Greedy, Lazy, Possessive };

  unsigned min = 0;
  unsigned max = kNoLimit;
  Mode mode = Mode::Greedy;

  std::string to_pcre2() const;
};

// Role. The characters of a regular expression, one after the other.
// Confinement. One thread. Lifetime. While the pattern is read.
class PatternReader {
 public:
  // Requires: valid UTF-8.
  PatternReader(std::string_view pattern, Dialect dialect);

  Dialect dialect() const { return dialect_; }
  bool at_end() const { return at_ == codes_.size(); }
  char32_t peek(std::size_t ahead = 0) const {
    return at_ + ahead < codes_.size() ? codes_[at_ + ahead] : U'\0';
  }
  char32_t next() { return codes_[at_++]; }
  bool skip(char32_t code);
  bool skip(std::string_view ascii);
  // `<name>` or `P<name>` of a named group.
  bool skip_group_name();
  // Up to `end`, which is skipped; nothing where it does not come.
  std::optional<std::string> read_until(char32_t end);
  // Up to `most` hexadecimal digits.
  std::string read_hex(std::size_t most);
  // A quantifier, where one comes. A '{' that begins none is left for a literal.
  Result<std::optional<Repeat>> read_repeat();

  std::unexpected<Error> refuse(std::string_view what) const;

 private:
  std::optional<Repeat> read_interval();
  unsigned read_number();

  Dialect dialect_;
  std::string pattern_;
  std::u32string codes_;
  std::size_t at_ = 0;
};

}  // namespace baton::tokenizer
