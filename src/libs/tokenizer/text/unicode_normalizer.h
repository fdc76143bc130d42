// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/tokenizer/text/code_point_table.h"
#include "libs/tokenizer/text/normalizer.h"
#include "libs/tokenizer/text/unicode.h"

#include <string>
#include <string_view>

namespace baton::tokenizer {

// Role. Brings text into one of Unicode's normal forms, as Unicode 9 has them.
// Confinement. Immutable; any thread.
class UnicodeNormalizer : public Normalizer {
 public:
  explicit UnicodeNormalizer(NormalForm form);

  std::string_view apply(std::string_view text, std::string& buffer) const override;

 private:
  enum Care : std::uint8_t { Safe, Unsafe, Unknown };

  // The next character at or behind `at` that may change or join with the one before it.
  std::size_t find_unsafe(std::string_view text, std::size_t at) const;
  std::size_t find_safe(std::string_view text, std::size_t at) const;
  void normalize(std::string_view text, std::string& out) const;

  NormalForm form_;
  CodePointTable care_;
};

}  // namespace baton::tokenizer
