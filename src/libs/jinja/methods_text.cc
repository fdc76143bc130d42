// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/jinja/builtins.h"
#include "libs/jinja/failure.h"
#include "libs/jinja/formatting.h"
#include "libs/jinja/operators.h"
#include "libs/jinja/printing.h"
#include "libs/jinja/run.h"
#include "libs/jinja/text_operations.h"
#include "libs/jinja/unicode.h"

#include <algorithm>
#include <array>
#include <functional>

namespace baton::jinja {
namespace {

template <std::string (*change)(std::string_view)>
Value changed(Run& run, const Value& self, Arguments&) {
  return changed_text(run, self, change(self.as_string()));
}

template <bool left, bool right>
Value strip(Run& run, const Value& self, Arguments& arguments) {
  return stripped(run, self, arguments[0], left, right);
}

template <Side side>
Value pad(Run& run, const Value& self, Arguments& arguments) {
  const std::string_view fill = arguments.given(1) ? require_text(arguments[1]) : " ";
  return padded(run, self, require_int(arguments[0]), fill, side);
}

// A part of the text from `start` to `stop`, in code points as slices count them.
struct Window {
  std::string_view text;
  std::size_t first;  // the code point it begins with
  bool valid;         // false where it begins behind the end
};

Window window(const Value& self, Arguments& arguments, std::size_t from) {
  const auto length = static_cast<std::int64_t>(self.text().length());
  const auto bound = [&](std::size_t index, std::int64_t fallback) {
    if (!arguments.has(index)) return fallback;
    std::int64_t at = require_int(arguments[index]);
    if (at < 0) at = std::max<std::int64_t>(at < -length ? 0 : at + length, 0);
    return at;
  };
  const std::int64_t start = bound(from, 0);
  const std::int64_t stop = std::min(bound(from + 1, length), length);
  if (start > length || start > stop) return {.text = {}, .first = 0, .valid = false};
  const std::size_t begin = self.text().offset(static_cast<std::size_t>(start));
  const std::size_t end = self.text().offset(static_cast<std::size_t>(stop));
  return {.text = self.as_string().substr(begin, end - begin),
          .first = static_cast<std::size_t>(start),
          .valid = true};
}

enum class From { Front, Back };

std::int64_t position(const Value& self, Arguments& arguments, From from) {
  const std::string_view wanted = require_text(arguments[0]);
  const Window in = window(self, arguments, 1);
  if (!in.valid) return -1;
  const std::size_t at = from == From::Front ? in.text.find(wanted) : in.text.rfind(wanted);
  if (at == in.text.npos) return -1;
  return static_cast<std::int64_t>(in.first + count_code_points(in.text.substr(0, at)));
}

template <From from>
Value find(Run& run, const Value& self, Arguments& arguments) {
  run.step(self.as_string().size() / 256);
  return Value(position(self, arguments, from));
}

template <From from>
Value index(Run& run, const Value& self, Arguments& arguments) {
  run.step(self.as_string().size() / 256);
  const std::int64_t at = position(self, arguments, from);
  if (at < 0) raise("substring not found");
  return Value(at);
}

Value count(Run& run, const Value& self, Arguments& arguments) {
  run.step(self.as_string().size() / 256);
  const std::string_view wanted = require_text(arguments[0]);
  const Window in = window(self, arguments, 1);
  if (!in.valid) return Value(0);
  if (wanted.empty()) return Value(static_cast<std::int64_t>(count_code_points(in.text) + 1));
  std::int64_t found = 0;
  for (std::size_t at = in.text.find(wanted); at != in.text.npos;
       at = in.text.find(wanted, at + wanted.size())) {
    ++found;
  }
  return Value(found);
}

enum class End { Front, Back };

template <End end>
Value has_affix(Run&, const Value& self, Arguments& arguments) {
  const Window in = window(self, arguments, 1);
  const auto holds = [&](const Value& affix) {
    if (!affix.is_string()) {
      raise("{} first arg must be str or a tuple of str, not {}",
            end == End::Front ? "startswith" : "endswith", type_name(affix));
    }
    if (!in.valid) return false;
    return end == End::Front ? in.text.starts_with(affix.as_string())
                             : in.text.ends_with(affix.as_string());
  };
  const Value& affix = arguments[0];
  return Value(affix.kind() == Kind::Tuple ? std::ranges::any_of(affix.as_list(), holds)
                                           : holds(affix));
}

Value split_method(Run& run, const Value& self, Arguments& arguments) {
  return split(run, self, arguments[0], arguments.integer(1, -1));
}

Value rsplit(Run& run, const Value& self, Arguments& arguments) {
  return split_right(run, self, arguments[0], arguments.integer(1, -1));
}

Value splitlines(Run& run, const Value& self, Arguments& arguments) {
  return split_lines(run, self, arguments.truth(0, false));
}

Value replace_method(Run& run, const Value& self, Arguments& arguments) {
  const std::string_view old = require_text(arguments[0]);
  const std::string_view by = require_text(arguments[1]);
  const bool escapes = self.is_markup() && !arguments[1].is_markup();
  const std::string escaped = escapes ? escape_html(by) : std::string();
  return replaced(run, self, old, escapes ? escaped : by, arguments.integer(2, -1));
}

Value join_method(Run& run, const Value& self, Arguments& arguments) {
  return joined(run, self, arguments[0]);
}

Value format_method(Run& run, const Value& self, Arguments& arguments) {
  return brace_format(run, self, arguments);
}

Value remove_prefix(Run& run, const Value& self, Arguments& arguments) {
  std::string_view text = self.as_string();
  const std::string_view prefix = require_text(arguments[0]);
  if (text.starts_with(prefix)) text.remove_prefix(prefix.size());
  return piece_of(run, self, text);
}

Value remove_suffix(Run& run, const Value& self, Arguments& arguments) {
  std::string_view text = self.as_string();
  const std::string_view suffix = require_text(arguments[0]);
  if (text.ends_with(suffix)) text.remove_suffix(suffix.size());
  return piece_of(run, self, text);
}

Value zfill(Run& run, const Value& self, Arguments& arguments) {
  const std::string_view text = self.as_string();
  const bool has_sign = text.starts_with('-') || text.starts_with('+');
  const std::int64_t asked = require_int(arguments[0]);
  const std::int64_t width = asked <= 0 ? 0 : asked - (has_sign ? 1 : 0);
  const Value filled =
      padded(run, piece_of(run, self, text.substr(has_sign ? 1 : 0)), width, "0", Side::Left);
  if (!has_sign) return filled;
  return changed_text(run, self, std::string(1, text[0]) + std::string(filled.as_string()));
}

template <From from>
Value partition(Run& run, const Value& self, Arguments& arguments) {
  const std::string_view mark = require_text(arguments[0]);
  if (mark.empty()) raise("empty separator");
  const std::string_view text = self.as_string();
  const std::size_t at = from == From::Front ? text.find(mark) : text.rfind(mark);
  const Value nothing = piece_of(run, self, std::string_view());
  if (at == text.npos) {
    return from == From::Front ? run.tuple({self, nothing, nothing})
                               : run.tuple({nothing, nothing, self});
  }
  return run.tuple({piece_of(run, self, text.substr(0, at)),
                    piece_of(run, self, text.substr(at, mark.size())),
                    piece_of(run, self, text.substr(at + mark.size()))});
}

Value refuse_encode(Run&, const Value&, Arguments&) {
  raise("str.encode is not supported: templates make text, not bytes");
}

Value expand_tabs(Run& run, const Value& self, Arguments& arguments) {
  const std::int64_t size = std::min<std::int64_t>(arguments.integer(0, 8), 1000);
  std::string out;
  std::int64_t column = 0;
  std::string_view rest = self.as_string();
  while (!rest.empty()) {
    const std::string_view before = rest;
    const char32_t c = take_code_point(rest);
    if (c == '\t') {
      const std::int64_t spaces = size > 0 ? size - column % size : 0;
      run.charge(static_cast<std::size_t>(spaces));
      out.append(static_cast<std::size_t>(spaces), ' ');
      column += spaces;
    } else {
      out += before.substr(0, before.size() - rest.size());
      column = c == '\n' || c == '\r' ? 0 : column + 1;
    }
  }
  return changed_text(run, self, std::move(out));
}

constexpr auto kMethods = std::to_array<Builtin>({
    {"capitalize", changed<capitalize>, {}},
    {"casefold", changed<to_lower>, {}},
    {"center", pad<Side::Both>, {"width", "?fillchar"}},
    {"count", count, {"sub", "?start", "?end"}},
    {"encode", refuse_encode, {"*"}},
    {"endswith", has_affix<End::Back>, {"suffix", "?start", "?end"}},
    {"expandtabs", expand_tabs, {"?tabsize"}},
    {"find", find<From::Front>, {"sub", "?start", "?end"}},
    {"format", format_method, {"*"}},
    {"index", index<From::Front>, {"sub", "?start", "?end"}},
    {"join", join_method, {"iterable"}},
    {"ljust", pad<Side::Right>, {"width", "?fillchar"}},
    {"lower", changed<to_lower>, {}},
    {"lstrip", strip<true, false>, {"?chars"}},
    {"partition", partition<From::Front>, {"sep"}},
    {"removeprefix", remove_prefix, {"prefix"}},
    {"removesuffix", remove_suffix, {"suffix"}},
    {"replace", replace_method, {"old", "new", "?count"}},
    {"rfind", find<From::Back>, {"sub", "?start", "?end"}},
    {"rindex", index<From::Back>, {"sub", "?start", "?end"}},
    {"rjust", pad<Side::Left>, {"width", "?fillchar"}},
    {"rpartition", partition<From::Back>, {"sep"}},
    {"rsplit", rsplit, {"?sep", "?maxsplit"}},
    {"rstrip", strip<false, true>, {"?chars"}},
    {"split", split_method, {"?sep", "?maxsplit"}},
    {"splitlines", splitlines, {"?keepends"}},
    {"startswith", has_affix<End::Front>, {"prefix", "?start", "?end"}},
    {"strip", strip<true, true>, {"?chars"}},
    {"swapcase", changed<swap_case>, {}},
    {"title", changed<to_title>, {}},
    {"upper", changed<to_upper>, {}},
    {"zfill", zfill, {"width"}},
});

}  // namespace

std::span<const Builtin> text_methods() { return kMethods; }

}  // namespace baton::jinja
