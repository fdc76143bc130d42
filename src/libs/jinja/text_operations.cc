// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/jinja/text_operations.h"

#include "libs/jinja/cursor.h"
#include "libs/jinja/failure.h"
#include "libs/jinja/operators.h"
#include "libs/jinja/printing.h"
#include "libs/jinja/run.h"
#include "libs/jinja/unicode.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace baton::jinja {
namespace {

Value like(const Value& text, Value value) { return text.is_markup() ? value.as_markup() : value; }

std::uint64_t limit_of(std::int64_t limit) {
  return limit < 0 ? std::numeric_limits<std::uint64_t>::max() : static_cast<std::uint64_t>(limit);
}

std::string_view separator_of(const Value& separator) {
  const std::string_view text = require_text(separator);
  if (text.empty()) raise("empty separator");
  return text;
}

Value split_on_space(Run& run, const Value& text, std::uint64_t limit) {
  List parts;
  std::string_view rest = strip_left(text.as_string());
  while (!rest.empty()) {
    if (parts.size() >= limit) {
      parts.push_back(piece_of(run, text, rest));
      break;
    }
    std::string_view after = rest;
    while (!after.empty()) {
      std::string_view peek = after;
      if (is_space(take_code_point(peek))) break;
      after = peek;
    }
    parts.push_back(piece_of(run, text, rest.substr(0, rest.size() - after.size())));
    rest = strip_left(after);
  }
  return run.list(std::move(parts));
}

Value split_right_on_space(Run& run, const Value& text, std::uint64_t limit) {
  List parts;
  std::string_view rest = strip_right(text.as_string());
  while (!rest.empty()) {
    if (parts.size() >= limit) {
      parts.push_back(piece_of(run, text, rest));
      break;
    }
    std::string_view before = rest;
    while (!before.empty()) {
      std::string_view peek = before;
      if (is_space(take_last_code_point(peek))) break;
      before = peek;
    }
    parts.push_back(piece_of(run, text, rest.substr(before.size())));
    rest = strip_right(before);
  }
  std::ranges::reverse(parts);
  return run.list(std::move(parts));
}

}  // namespace

Value piece_of(Run& run, const Value& text, std::string_view piece) {
  const std::string_view whole = text.as_string();
  if (piece.size() == whole.size()) return text;
  run.charge(std::min<std::size_t>(piece.size(), 64) + sizeof(Text));
  const auto begin = piece.empty() ? 0 : static_cast<std::size_t>(piece.data() - whole.data());
  return like(text, Value::text(text.text().piece(begin, piece.size())));
}

Value changed_text(Run& run, const Value& text, std::string changed) {
  return like(text, run.text(std::move(changed)));
}

Value stripped(Run& run, const Value& text, const Value& chars, bool left, bool right) {
  std::string_view rest = text.as_string();
  if (chars.is_unset() || chars.is_none()) {
    if (left) rest = strip_left(rest);
    if (right) rest = strip_right(rest);
  } else {
    if (!chars.is_string()) raise("strip arg must be None or str");
    if (left) rest = strip_left(rest, chars.as_string());
    if (right) rest = strip_right(rest, chars.as_string());
  }
  return piece_of(run, text, rest);
}

Value replaced(Run& run, const Value& text, std::string_view old, std::string_view by,
               std::int64_t count) {
  std::string_view rest = text.as_string();
  std::uint64_t left = limit_of(count);
  std::string out;
  run.step(rest.size() / 256);
  const auto grow = [&](std::string_view part) {
    out += part;
    if (out.size() > 4096) run.charge(part.size());
  };
  if (old.empty()) {
    for (; left > 0; --left) {
      grow(by);
      if (rest.empty()) return changed_text(run, text, std::move(out));
      std::string_view after = rest;
      take_code_point(after);
      grow(rest.substr(0, rest.size() - after.size()));
      rest = after;
    }
  } else {
    std::size_t at = 0;
    if (left == 0 || (at = rest.find(old)) == rest.npos) return text;
    for (; left > 0 && at != rest.npos; --left, at = rest.find(old)) {
      grow(rest.substr(0, at));
      grow(by);
      rest.remove_prefix(at + old.size());
    }
  }
  out += rest;
  return changed_text(run, text, std::move(out));
}

Value padded(Run& run, const Value& text, std::int64_t width, std::string_view fill, Side side) {
  if (count_code_points(fill) != 1) raise("The fill character must be exactly one character long");
  const auto length = static_cast<std::int64_t>(text.text().length());
  if (width <= length) return text;
  const auto missing = static_cast<std::uint64_t>(width - length);
  run.charge(std::max<std::uint64_t>(missing, missing * fill.size()));
  // Python's center puts the odd one to the left where the width is odd.
  const std::uint64_t left = side == Side::Left ? missing
                             : side == Side::Both
                                 ? missing / 2 + (missing & static_cast<std::uint64_t>(width) & 1)
                                 : 0;
  std::string out;
  for (std::uint64_t i = 0; i < left; ++i) out += fill;
  out += text.as_string();
  for (std::uint64_t i = left; i < missing; ++i) out += fill;
  return changed_text(run, text, std::move(out));
}

Value split(Run& run, const Value& text, const Value& separator, std::int64_t limit) {
  if (separator.is_unset() || separator.is_none()) {
    return split_on_space(run, text, limit_of(limit));
  }
  const std::string_view mark = separator_of(separator);
  List parts;
  std::string_view rest = text.as_string();
  run.step(rest.size() / 256);
  for (std::uint64_t left = limit_of(limit); left > 0; --left) {
    const std::size_t at = rest.find(mark);
    if (at == rest.npos) break;
    parts.push_back(piece_of(run, text, rest.substr(0, at)));
    rest.remove_prefix(at + mark.size());
  }
  parts.push_back(piece_of(run, text, rest));
  return run.list(std::move(parts));
}

Value split_right(Run& run, const Value& text, const Value& separator, std::int64_t limit) {
  if (separator.is_unset() || separator.is_none()) {
    return split_right_on_space(run, text, limit_of(limit));
  }
  const std::string_view mark = separator_of(separator);
  List parts;
  std::string_view rest = text.as_string();
  run.step(rest.size() / 256);
  for (std::uint64_t left = limit_of(limit); left > 0; --left) {
    const std::size_t at = rest.rfind(mark);
    if (at == rest.npos) break;
    parts.push_back(piece_of(run, text, rest.substr(at + mark.size())));
    rest = rest.substr(0, at);
  }
  parts.push_back(piece_of(run, text, rest));
  std::ranges::reverse(parts);
  return run.list(std::move(parts));
}

Value split_lines(Run& run, const Value& text, bool keep_ends) {
  List lines;
  std::string_view rest = text.as_string();
  while (!rest.empty()) {
    std::string_view after = rest;
    std::size_t end = rest.size();
    while (!after.empty()) {
      const std::size_t here = rest.size() - after.size();
      const char32_t c = take_code_point(after);
      if (!is_line_break(c)) continue;
      if (c == '\r' && after.starts_with('\n')) after.remove_prefix(1);
      end = keep_ends ? rest.size() - after.size() : here;
      break;
    }
    lines.push_back(piece_of(run, text, rest.substr(0, end)));
    rest = after;
  }
  return run.list(std::move(lines));
}

Value joined(Run& run, const Value& separator, const Value& strings) {
  std::string out;
  std::size_t index = 0;
  for (const Value& item : to_list(run, strings)) {
    if (index != 0) out += separator.as_string();
    if (!item.is_string()) {
      if (!separator.is_markup()) {
        raise("sequence item {}: expected str instance, {} found", index, type_name(item));
      }
      out += escape_html(str(item));
    } else if (separator.is_markup() && !item.is_markup()) {
      out += escape_html(item.as_string());
    } else {
      out += item.as_string();
    }
    run.charge(item.is_string() ? item.as_string().size() : 0);
    ++index;
  }
  return changed_text(run, separator, std::move(out));
}

}  // namespace baton::jinja
