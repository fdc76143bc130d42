// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/jinja/failure.h"
#include "libs/jinja/formatting.h"
#include "libs/jinja/lookup.h"
#include "libs/jinja/operators.h"
#include "libs/jinja/printing.h"
#include "libs/jinja/run.h"
#include "libs/jinja/text_operations.h"
#include "libs/jinja/unicode.h"

#include <algorithm>
#include <charconv>
#include <optional>

namespace baton::jinja {
namespace {

bool all_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
}

std::optional<std::int64_t> integer(std::string_view text) {
  std::int64_t value = 0;
  if (!all_digits(text)) return std::nullopt;
  if (std::from_chars(text.data(), text.data() + text.size(), value).ec != std::errc()) {
    raise("Too many decimal digits in format string");
  }
  return value;
}

int take_number(std::string_view& spec) {
  int number = 0;
  while (!spec.empty() && spec.front() >= '0' && spec.front() <= '9') {
    number = std::min(number * 10 + (spec.front() - '0'), 1'000'000);
    spec.remove_prefix(1);
  }
  return number;
}

Layout read_layout(std::string_view spec) {
  Layout layout;
  const std::string_view aligns = "<>=^";
  if (spec.size() > 1 && aligns.contains(spec[1]) && static_cast<unsigned char>(spec[0]) < 0x80) {
    layout.fill = spec[0];
    layout.align = spec[1];
    spec.remove_prefix(2);
  } else if (!spec.empty() && aligns.contains(spec[0])) {
    layout.align = spec[0];
    spec.remove_prefix(1);
  }
  const auto take = [&](std::string_view any, char fallback) {
    if (spec.empty() || !any.contains(spec[0])) return fallback;
    const char c = spec[0];
    spec.remove_prefix(1);
    return c;
  };
  layout.sign = take("+- ", '-');
  layout.alternate = take("#", '\0') != '\0';
  if (take("0", '\0') != '\0') {
    layout.zero = true;
    if (layout.align == '\0') {
      layout.fill = '0';
      layout.align = '=';
    }
  }
  layout.width = take_number(spec);
  layout.grouping = take(",_", '\0');
  if (spec.starts_with('.')) {
    spec.remove_prefix(1);
    if (spec.empty() || spec[0] < '0' || spec[0] > '9') raise("Format specifier missing precision");
    layout.precision = take_number(spec);
  }
  if (spec.size() > 1) raise("Invalid format specifier");
  if (!spec.empty()) layout.type = spec[0];
  return layout;
}

std::string formatted(const Value& value, std::string_view spec) {
  if (spec.empty()) return str(value);
  const Layout layout = read_layout(spec);
  const char type = layout.type;
  const auto unknown = [&] {
    raise("Unknown format code '{}' for object of type '{}'", type, type_name(value));
  };
  if (value.is_string()) {
    if (type != '\0' && type != 's') unknown();
    if (layout.align == '=') raise("'=' alignment not allowed in string format specifier");
    return format_text(value.as_string(), layout);
  }
  if (is_int_like(value) && (value.kind() == Kind::Int || type != '\0')) {
    if (std::string_view("eEfFgG%").contains(type) && type != '\0') {
      return format_float(number_as_float(value), layout);
    }
    if (type != '\0' && !std::string_view("dxXobn").contains(type)) unknown();
    if (layout.precision >= 0) raise("Precision not allowed in integer format specifier");
    return format_integer(value.as_int(), layout);
  }
  if (value.kind() == Kind::Float) {
    if (type != '\0' && !std::string_view("eEfFgGn%").contains(type)) unknown();
    return format_float(value.as_float(), layout);
  }
  if (value.kind() == Kind::Bool) return format_text(str(value), layout);
  raise("unsupported format string passed to {}.__format__", type_name(value));
}

class BraceFormat {
 public:
  BraceFormat(Run& run, const Value& format, Arguments& arguments)
      : run_(run), markup_(format.is_markup()), arguments_(arguments) {}

  std::string format(std::string_view text, int depth) {
    if (depth > 2) raise("Max string recursion exceeded");
    std::string out;
    while (!text.empty()) {
      const std::size_t at = text.find_first_of("{}");
      out += text.substr(0, at);
      if (at == text.npos) break;
      const char brace = text[at];
      text.remove_prefix(at + 1);
      if (text.starts_with(brace)) {
        out += brace;
        text.remove_prefix(1);
        continue;
      }
      if (brace == '}') raise("Single '}}' encountered in format string");
      out += field(text, depth);
    }
    return out;
  }

 private:
  // One replacement field, up to its closing brace, which is taken off too.
  std::string field(std::string_view& text, int depth) {
    std::size_t end = 0;
    for (int open = 1; end < text.size(); ++end) {
      if (text[end] == '{') ++open;
      if (text[end] == '}' && --open == 0) break;
    }
    if (end == text.size()) raise("expected '}}' before end of string");
    std::string_view inside = text.substr(0, end);
    text.remove_prefix(end + 1);
    const std::size_t colon = inside.find(':');
    const std::string spec =
        colon == inside.npos ? "" : format(inside.substr(colon + 1), depth + 1);
    inside = inside.substr(0, colon);
    const std::size_t mark = inside.find('!');
    const std::string_view conversion = mark == inside.npos ? "" : inside.substr(mark + 1);
    Value value = look_up(inside.substr(0, mark));
    if (conversion == "r" || conversion == "a") {
      value = run_.text(repr(value));
    } else if (conversion == "s") {
      value = run_.text(str(value));
    } else if (mark != inside.npos) {
      raise("Unknown conversion specifier {}", conversion);
    }
    std::string result = formatted(value, spec);
    run_.charge(result.size());
    return markup_ && !value.is_markup() ? escape_html(result) : result;
  }

  Value look_up(std::string_view path) {
    const std::size_t end = path.find_first_of(".[");
    Value value = first(path.substr(0, end));
    path = end == path.npos ? std::string_view() : path.substr(end);
    while (!path.empty()) {
      Value scratch;
      if (path[0] == '.') {
        const std::size_t stop = std::min(path.find_first_of(".[", 1), path.size());
        const Value name(path.substr(1, stop - 1));
        value = Value(find_attribute(run_, value, name, scratch));
        path.remove_prefix(stop);
      } else {
        const std::size_t stop = path.find(']');
        if (stop == path.npos) raise("Missing ']' in format string");
        const std::string_view key = path.substr(1, stop - 1);
        const auto index = integer(key);
        const Value at = index ? Value(*index) : Value(key);
        value = Value(find_item(run_, value, at, scratch));
        path.remove_prefix(stop + 1);
      }
    }
    return value;
  }

  Value first(std::string_view name) {
    const auto index = name.empty() ? std::optional(automatic_++) : integer(name);
    if (name.empty() ? manual_ : (index && automatic_ > 0)) {
      raise("cannot switch between manual field specification and automatic field numbering");
    }
    if (!name.empty() && index) manual_ = true;
    if (index) {
      const auto at = static_cast<std::size_t>(*index);
      if (at >= arguments_.size()) {
        raise("Replacement index {} out of range for positional args tuple", at);
      }
      return arguments_[at];
    }
    for (const auto& [known, value] : arguments_.named()) {
      if (known->view() == name) return value;
    }
    raise("{}", in_quotes(name));
  }

  Run& run_;
  const bool markup_;
  Arguments& arguments_;
  std::int64_t automatic_ = 0;
  bool manual_ = false;
};

}  // namespace

Value brace_format(Run& run, const Value& format, Arguments& arguments) {
  return changed_text(run, format,
                      BraceFormat(run, format, arguments).format(format.as_string(), 0));
}

}  // namespace baton::jinja
