// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "telemetry/escape.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>

namespace baton::telemetry {
namespace {

struct CodePoint {
  std::uint32_t value = 0;
  std::size_t bytes = 0;  // 0: not UTF-8
};

// Decodes the first code point of `text`, which is not empty and does not begin with ASCII.
CodePoint decode(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < length) return {};
  std::uint32_t value = lead & (0x7fu >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0u) != 0x80u) return {};
    value = value << 6 | (byte(i) & 0x3fu);
  }
  const bool overlong = (length == 3 && value < 0x800) || (length == 4 && value < 0x10000);
  const bool surrogate = value >= 0xd800 && value <= 0xdfff;
  if (overlong || surrogate || value > 0x10ffff) return {};
  return {value, length};
}

// Terminals and log viewers begin a line or obey a command at these.
bool is_control(std::uint32_t c) {
  return c < 0x20 || (c >= 0x7f && c <= 0x9f) || c == 0x2028 || c == 0x2029;
}

void append_ascii(fmt::memory_buffer& out, char c) {
  if (c == '"' || c == '\\') {
    out.push_back('\\');
    out.push_back(c);
  } else if (c == '\n') {
    out.append(std::string_view("\\n"));
  } else if (c == '\r') {
    out.append(std::string_view("\\r"));
  } else if (c == '\t') {
    out.append(std::string_view("\\t"));
  } else if (is_control(static_cast<unsigned char>(c))) {
    fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned>(c));
  } else {
    out.push_back(c);
  }
}

bool is_plain(char c) { return c >= ' ' && c < 0x7f && c != '"' && c != '\\'; }

}  // namespace

void append_escaped(fmt::memory_buffer& out, std::string_view text) {
  while (!text.empty()) {
    // Nearly all text is plain and is copied as one run.
    const auto run =
        static_cast<std::size_t>(std::ranges::find_if_not(text, is_plain) - text.begin());
    out.append(text.substr(0, run));
    text.remove_prefix(run);
    if (text.empty()) return;

    if (static_cast<unsigned char>(text.front()) < 0x80) {
      append_ascii(out, text.front());
      text.remove_prefix(1);
      continue;
    }
    const CodePoint point = decode(text);
    if (point.bytes == 0) {
      out.append(std::string_view("\xef\xbf\xbd"));
    } else if (is_control(point.value)) {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", point.value);
    } else {
      out.append(text.substr(0, point.bytes));
    }
    text.remove_prefix(std::max<std::size_t>(point.bytes, 1));
  }
}

}  // namespace baton::telemetry
