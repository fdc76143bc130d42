// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/jinja/builtins.h"
#include "libs/jinja/cursor.h"
#include "libs/jinja/failure.h"
#include "libs/jinja/formatting.h"
#include "libs/jinja/operators.h"
#include "libs/jinja/printing.h"
#include "libs/jinja/run.h"
#include "libs/jinja/text_operations.h"
#include "libs/jinja/unicode.h"

#include <algorithm>
#include <array>

namespace baton::jinja {
namespace {

// The value as a string that keeps being markup.
Value soft_text(Run& run, const Value& value) {
  return value.is_string() ? value : run.text(str(value));
}

Value upper(Run& run, const Value& self, Arguments&) {
  const Value text = soft_text(run, self);
  return changed_text(run, text, to_upper(text.as_string()));
}

Value lower(Run& run, const Value& self, Arguments&) {
  const Value text = soft_text(run, self);
  return changed_text(run, text, to_lower(text.as_string()));
}

Value capitalized(Run& run, const Value& self, Arguments&) {
  const Value text = soft_text(run, self);
  return changed_text(run, text, capitalize(text.as_string()));
}

bool begins_word(char32_t c) {
  return is_space(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<';
}

// Not Python's title(): words begin after white space and opening brackets only.
Value title(Run& run, const Value& self, Arguments&) {
  const Value text = soft_text(run, self);
  std::string out;
  std::string_view rest = text.as_string();
  while (!rest.empty()) {
    const auto run_length = [&](bool between) {
      std::string_view after = rest;
      while (!after.empty()) {
        std::string_view peek = after;
        if (begins_word(take_code_point(peek)) != between) break;
        after = peek;
      }
      return rest.size() - after.size();
    };
    const std::size_t gap = run_length(true);
    out += rest.substr(0, gap);
    rest.remove_prefix(gap);
    const std::size_t size = run_length(false);
    std::string_view word = rest.substr(0, size);
    if (!word.empty()) {
      std::string_view tail = word;
      take_code_point(tail);
      out += to_upper(word.substr(0, word.size() - tail.size()));
      out += to_lower(tail);
    }
    rest.remove_prefix(size);
  }
  return run.text(std::move(out));
}

Value trim(Run& run, const Value& self, Arguments& arguments) {
  return stripped(run, soft_text(run, self), arguments[0], true, true);
}

Value replace(Run& run, const Value& self, Arguments& arguments) {
  const std::string old = str(arguments[0]);
  const std::string by = str(arguments[1]);
  // Without autoescape, markup becomes plain.
  const Value plain = self.is_markup() ? Value(self.as_string()) : soft_text(run, self);
  return replaced(run, plain, old, by, arguments.has(2) ? arguments.integer(2, -1) : -1);
}

Value center(Run& run, const Value& self, Arguments& arguments) {
  return padded(run, soft_text(run, self), arguments.integer(0, 80), " ", Side::Both);
}

Value indent(Run& run, const Value& self, Arguments& arguments) {
  if (!self.is_string()) {
    if (self.is_undefined()) raise("{}", self.undefined_message());
    raise("unsupported operand type(s) for +=: '{}' and 'str'", type_name(self));
  }
  const std::string prefix = arguments.given(0) && arguments[0].is_string()
                                 ? std::string(arguments[0].as_string())
                                 : std::string(static_cast<std::size_t>(std::clamp<std::int64_t>(
                                                   arguments.integer(0, 4), 0, 100'000)),
                                               ' ');
  const bool first = arguments.truth(1, false);
  const bool blank = arguments.truth(2, false);
  const Value lines = split_lines(run, Value(std::string(self.as_string()) + '\n'), false);
  std::string out;
  bool at_first = true;
  for (const Value& line : lines.as_list()) {
    const std::string_view text = line.as_string();
    if (!at_first) out += '\n';
    if (at_first ? first : (blank || !text.empty())) {
      out += prefix;
      run.charge(prefix.size());
    }
    out += text;
    at_first = false;
  }
  return changed_text(run, self, std::move(out));
}

Value truncate(Run& run, const Value& self, Arguments& arguments) {
  const std::int64_t length = arguments.integer(0, 255);
  const bool kill_words = arguments.truth(1, false);
  const Value end = arguments.given(2) ? arguments[2] : Value("...");
  const std::int64_t leeway = arguments.has(3) ? arguments.integer(3, 5) : 5;
  require_text(end);
  const auto end_length = static_cast<std::int64_t>(end.text().length());
  if (length < end_length) raise("expected length >= {}, got {}", end_length, length);
  if (leeway < 0) raise("expected leeway >= 0, got {}", leeway);
  const auto size = length_of(self);
  if (!size) raise("object of type '{}' has no len()", type_name(self));
  const auto have = static_cast<std::int64_t>(*size);
  if (have <= length || have - length <= leeway) return self;
  require_text(self);
  std::string_view kept =
      self.as_string().substr(0, self.text().offset(static_cast<std::size_t>(length - end_length)));
  if (!kill_words) {
    const std::size_t space = kept.rfind(' ');
    if (space != kept.npos) kept = kept.substr(0, space);
  }
  return changed_text(run, self, std::string(kept) + std::string(end.as_string()));
}

Value word_count(Run& run, const Value& self, Arguments&) {
  const Value text = soft_text(run, self);
  std::string_view rest = text.as_string();
  std::int64_t words = 0;
  bool in_word = false;
  while (!rest.empty()) {
    const char32_t c = take_code_point(rest);
    const bool letter = c == '_' || is_alpha(c) || is_numeric(c);
    if (letter && !in_word) ++words;
    in_word = letter;
  }
  return Value(words);
}

Value format(Run& run, const Value& self, Arguments& arguments) {
  const Value text = soft_text(run, self);
  if (arguments.named().empty()) {
    return percent_format(run, text, run.tuple(std::move(arguments.positional())));
  }
  if (arguments.size() != 0) {
    raise("can't handle positional and keyword arguments at the same time");
  }
  Dict named;
  for (auto& [name, value] : arguments.named()) named.set(name->view(), std::move(value));
  return percent_format(run, text, run.dict(std::move(named)));
}

Value escape(Run& run, const Value& self, Arguments&) {
  return self.is_markup() ? self : run.text(escape_html(str(self))).as_markup();
}

Value force_escape(Run& run, const Value& self, Arguments&) {
  return run.text(escape_html(str(self))).as_markup();
}

Value safe(Run& run, const Value& self, Arguments&) { return soft_text(run, self).as_markup(); }

Value string(Run& run, const Value& self, Arguments&) { return soft_text(run, self); }

Value url_encode(Run& run, const Value& self, Arguments&) {
  const auto quote = [&](const Value& value, bool query) {
    std::string out;
    for (const char c : str(value)) {
      const auto byte = static_cast<unsigned char>(c);
      const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                         (c >= '0' && c <= '9') || std::string_view("_.-~").contains(c) ||
                         (c == '/' && !query);
      if (plain) {
        out += c;
      } else if (c == ' ' && query) {
        out += '+';
      } else {
        out += fmt::format("%{:02X}", byte);
      }
    }
    return out;
  };
  if (self.is_string() || !Cursor::walks(self)) return run.text(quote(self, false));
  std::string out;
  const auto add = [&](const Value& key, const Value& value) {
    if (!out.empty()) out += '&';
    out += quote(key, true) + '=' + quote(value, true);
  };
  if (self.is_dict()) {
    for (const auto& [key, value] : self.as_dict()) add(key, value);
    return run.text(std::move(out));
  }
  Cursor cursor(run, self);
  Value item;
  while (cursor.next(item)) {
    const List pair = to_list(run, item);
    if (pair.size() != 2) raise("a query is made of pairs, not of {} values", pair.size());
    add(pair[0], pair[1]);
  }
  return run.text(std::move(out));
}

constexpr auto kTextFilters = std::to_array<Builtin>({
    {"capitalize", capitalized, {}},
    {"center", center, {"?width"}},
    {"e", escape, {}},
    {"escape", escape, {}},
    {"forceescape", force_escape, {}},
    {"format", format, {"*"}},
    {"indent", indent, {"?width", "?first", "?blank"}},
    {"lower", lower, {}},
    {"replace", replace, {"old", "new", "?count"}},
    {"safe", safe, {}},
    {"string", string, {}},
    {"title", title, {}},
    {"trim", trim, {"?chars"}},
    {"truncate", truncate, {"?length", "?killwords", "?end", "?leeway"}},
    {"upper", upper, {}},
    {"urlencode", url_encode, {}},
    {"wordcount", word_count, {}},
});

}  // namespace

std::span<const Builtin> text_filters() { return kTextFilters; }

}  // namespace baton::jinja
