// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace baton::scan {

// The characters that are escaped inside a JSON string.
enum class Escape : std::uint8_t {
  AsJson,   // quotes, backslashes and control characters, as JSON demands
  OneLine,  // also those at which terminals and log viewers begin a line or obey a command
};

// The beginning of a text, up to and including its first character that needs an escape.
struct EscapedPart {
  std::size_t plain;           // bytes that stay as they are
  std::size_t replaced;        // bytes behind them that the escape stands for
  std::array<char, 6> escape;  // of `size` characters
  std::size_t size;
  std::string_view replacement() const { return {escape.data(), size}; }
};
EscapedPart next_escape(std::string_view text, Escape escape);

// Appends the text as the inside of a JSON string; each byte that is not UTF-8 becomes U+FFFD.
template <class Out>
void append_escaped(Out& out, std::string_view text, Escape escape = Escape::AsJson) {
  while (!text.empty()) {
    const EscapedPart part = next_escape(text, escape);
    out.append(text.substr(0, part.plain));
    out.append(part.replacement());
    text.remove_prefix(part.plain + part.replaced);
  }
}

// The text as a JSON string, quotes included.
std::string json_quote(std::string_view text);

}  // namespace baton::scan
