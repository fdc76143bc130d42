// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/tokenizer/text/char_set.h"
#include "libs/tokenizer/text/code_point_table.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace baton::tokenizer {

// Role. Maps characters that a pattern cannot tell apart to one byte, so that a text becomes a
//   string of such symbols, one for each character.
// Confinement. Immutable; any thread.
class Alphabet {
 public:
  // Nothing where more than 256 symbols would be needed.
  static std::optional<Alphabet> for_sets(std::span<const CharSet> sets);

  // The symbols of the members of the set at that place, in order.
  std::span<const std::uint8_t> symbols_of(std::size_t set) const { return symbols_[set]; }

  // Requires: valid UTF-8.
  void write(std::string_view text, std::string& symbols) const;

 private:
  Alphabet(std::span<const CodePointTable::Run> runs,
           std::vector<std::vector<std::uint8_t>> symbols)
      : table_(runs), symbols_(std::move(symbols)) {}

  CodePointTable table_;
  std::vector<std::vector<std::uint8_t>> symbols_;
};

}  // namespace baton::tokenizer
