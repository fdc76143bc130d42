// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/tokenizer/text/pattern_reader.h"

#include "libs/tokenizer/text/utf8.h"

#include <fmt/format.h>

#include <algorithm>

namespace baton::tokenizer {
namespace {

bool is_digit(char32_t code) { return code >= '0' && code <= '9'; }
bool is_hex_digit(char32_t code) {
  return is_digit(code) || (code >= 'a' && code <= 'f') || (code >= 'A' && code <= 'F');
}
bool is_name_part(char32_t code) {
  return is_digit(code) || (code >= 'a' && code <= 'z') || (code >= 'A' && code <= 'Z') ||
         code == '_';
}

}  // namespace

std::string Repeat::to_pcre2() const {
  std::string text =
      max == kNoLimit ? fmt::format("{{{},}}", min) : fmt::format("{{{},{}}}", min, max);
  if (mode == Mode::Lazy) {
    text += '?';
  } else if (mode == Mode::Possessive) {
    text += '+';
  }
  return text;
}

PatternReader::PatternReader(std::string_view pattern, Dialect dialect)
    : dialect_(dialect), pattern_(pattern), codes_(to_code_points(pattern)) {}

bool PatternReader::skip(char32_t code) {
  if (at_end() || codes_[at_] != code) {
    return false;
  }
  ++at_;
  return true;
}

bool PatternReader::skip(std::string_view ascii) {
  for (std::size_t i = 0; i < ascii.size(); ++i) {
    if (at_ + i >= codes_.size() || codes_[at_ + i] != static_cast<unsigned char>(ascii[i])) {
      return false;
    }
  }
  at_ += ascii.size();
  return true;
}

bool PatternReader::skip_group_name() {
  const std::size_t start = at_;
  if (dialect_ == Dialect::FancyRegex) {
    skip('P');
  }
  if (skip('<')) {
    const std::size_t name = at_;
    while (is_name_part(peek())) {
      ++at_;
    }
    if (at_ > name && skip('>')) {
      return true;
    }
  }
  at_ = start;
  return false;
}

std::optional<std::string> PatternReader::read_until(char32_t end) {
  std::string text;
  for (std::size_t i = at_; i < codes_.size(); ++i) {
    if (codes_[i] == end) {
      at_ = i + 1;
      return text;
    }
    append_utf8(text, codes_[i]);
  }
  return std::nullopt;
}

std::string PatternReader::read_hex(std::size_t most) {
  std::string digits;
  while (digits.size() < most && is_hex_digit(peek())) {
    digits.push_back(static_cast<char>(next()));
  }
  return digits;
}

unsigned PatternReader::read_number() {
  constexpr unsigned kTooMuch = 1'000'000;
  unsigned number = 0;
  while (is_digit(peek())) {
    number = std::min(number * 10 + (next() - U'0'), kTooMuch);
  }
  return number;
}

std::optional<Repeat> PatternReader::read_interval() {
  const std::size_t start = at_;
  ++at_;  // '{'
  Repeat repeat;
  const bool has_min = is_digit(peek());
  repeat.min = read_number();
  if (skip(',')) {
    const bool has_max = is_digit(peek());
    repeat.max = has_max ? read_number() : Repeat::kNoLimit;
    if ((has_min || (has_max && dialect_ == Dialect::Oniguruma)) && skip('}')) {
      return repeat;
    }
  } else if (has_min && skip('}')) {
    repeat.max = repeat.min;
    return repeat;
  }
  at_ = start;
  return std::nullopt;
}

Result<std::optional<Repeat>> PatternReader::read_repeat() {
  std::optional<Repeat> repeat;
  bool interval = false;
  if (peek() == '{') {
    repeat = read_interval();
    interval = true;
  } else if (skip('*')) {
    repeat = {.min = 0};
  } else if (skip('+')) {
    repeat = {.min = 1};
  } else if (skip('?')) {
    repeat = {.min = 0, .max = 1};
  }
  if (!repeat) {
    return repeat;
  }
  if (repeat->min > repeat->max) {
    return refuse("a repeat of at least more than at most");
  }
  // Oniguruma reads {n}? as an optional {n} and {n,m}+ as many {n,m}.
  const bool fixed = interval && repeat->min == repeat->max;
  const bool oniguruma = dialect_ == Dialect::Oniguruma;
  if (peek() == '?' && !(fixed && oniguruma)) {
    ++at_;
    repeat->mode = Repeat::Mode::Lazy;
  } else if (peek() == '+' && !(interval && oniguruma)) {
    ++at_;
    repeat->mode = Repeat::Mode::Possessive;
  }
  return repeat;
}

std::unexpected<Error> PatternReader::refuse(std::string_view what) const {
  return fail(ErrorCode::InvalidFile,
              fmt::format("The regular expression {} holds something Baton does not know: {} "
                          "(near character {}).",
                          pattern_, what, at_));
}

}  // namespace baton::tokenizer
