// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/jinja/failure.h"
#include "libs/jinja/formatting.h"
#include "libs/jinja/operators.h"
#include "libs/jinja/printing.h"
#include "libs/jinja/run.h"
#include "libs/jinja/text_operations.h"
#include "libs/jinja/unicode.h"

#include <algorithm>
#include <cmath>

namespace baton::jinja {
namespace {

// Walks over "%(name)-5.2f" and its like, taking values as they are asked for.
class PercentFormat {
 public:
  PercentFormat(const Value& format, const Value& values)
      : markup_(format.is_markup()), rest_(format.as_string()), values_(values) {}

  std::string format() && {
    while (true) {
      const std::size_t at = rest_.find('%');
      out_ += rest_.substr(0, at);
      if (at == rest_.npos) break;
      rest_.remove_prefix(at + 1);
      conversion();
      check_printed(out_);
    }
    if (values_.kind() == Kind::Tuple ? next_ < values_.as_list().size() : unused()) {
      raise("not all arguments converted during string formatting");
    }
    return std::move(out_);
  }

 private:
  // Whatever has items might be a mapping, and so need not be used.
  bool unused() const {
    return next_ == 0 && !values_.is_dict() && !values_.is_list() && !values_.is_undefined() &&
           values_.kind() != Kind::Range;
  }

  void conversion() {
    Layout layout;
    const Value* named = nullptr;
    if (rest_.starts_with('(')) {
      const std::size_t end = rest_.find(')');
      if (end == rest_.npos) raise("incomplete format key");
      if (!values_.is_dict()) raise("format requires a mapping");
      const std::string_view key = rest_.substr(1, end - 1);
      named = values_.as_dict().find(key);
      if (named == nullptr) raise("{}", in_quotes(key));
      rest_.remove_prefix(end + 1);
    }
    bool left = false;
    for (; !rest_.empty() && std::string_view("-+ #0").contains(rest_.front());
         rest_.remove_prefix(1)) {
      const char flag = rest_.front();
      if (flag == '-') left = true;
      if (flag == '+' || (flag == ' ' && layout.sign != '+')) layout.sign = flag;
      if (flag == '#') layout.alternate = true;
      if (flag == '0') layout.zero = true;
    }
    layout.width = number();
    if (layout.width < 0) {
      left = true;
      layout.width = -layout.width;
    }
    if (rest_.starts_with('.')) {
      rest_.remove_prefix(1);
      layout.precision = std::max(number(), 0);
    }
    while (!rest_.empty() && std::string_view("hlL").contains(rest_.front()))
      rest_.remove_prefix(1);
    if (rest_.empty()) raise("incomplete format");
    const char type = rest_.front();
    rest_.remove_prefix(1);
    if (type == '%') {
      out_ += '%';
      return;
    }
    layout.align = left ? '<' : '>';
    convert(type, layout, left, named != nullptr ? *named : take());
  }

  void convert(char type, Layout layout, bool left, const Value& value) {
    const auto number_layout = [&](char as) {
      layout.type = as;
      if (layout.zero && !left) {
        layout.fill = '0';
        layout.align = '=';
      }
      return layout;
    };
    switch (type) {
      case 's':
      case 'r':
      case 'a':
        out_ += format_text(escaped(value, type == 's' ? str(value) : repr(value)), layout);
        break;
      case 'd':
      case 'i':
      case 'u':
        out_ += format_integer(whole(value, type), number_layout('d'));
        break;
      case 'x':
      case 'X':
      case 'o':
        if (!is_int_like(value)) {
          raise("%{} format: an integer is required, not {}", type, type_name(value));
        }
        out_ += format_integer(value.as_int(), number_layout(type));
        break;
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G':
        if (!is_number(value)) raise("must be real number, not {}", type_name(value));
        out_ += format_float(number_as_float(value), number_layout(type));
        break;
      case 'c':
        out_ += format_text(character(value), layout);
        break;
      default:
        raise("unsupported format character '{}'", type);
    }
  }

  std::string escaped(const Value& value, std::string text) const {
    return markup_ && !value.is_markup() ? escape_html(text) : std::move(text);
  }

  static std::int64_t whole(const Value& value, char type) {
    if (is_int_like(value)) return value.as_int();
    if (value.is_undefined()) raise("{}", value.undefined_message());
    if (value.kind() != Kind::Float) {
      raise("%{} format: a real number is required, not {}", type, type_name(value));
    }
    if (!(std::abs(value.as_float()) < 9.2e18)) raise("cannot convert float to integer");
    return static_cast<std::int64_t>(value.as_float());
  }

  static std::string character(const Value& value) {
    if (value.is_string() && value.text().length() == 1) return std::string(value.as_string());
    if (!is_int_like(value)) raise("%c requires int or char");
    const std::int64_t code = value.as_int();
    if (code < 0 || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) {
      raise("%c arg not in range(0x110000)");
    }
    std::string text;
    append_code_point(text, static_cast<char32_t>(code));
    return text;
  }

  int number() {
    if (rest_.starts_with('*')) {
      rest_.remove_prefix(1);
      const Value& value = take();
      if (!is_int_like(value)) raise("* wants int");
      return static_cast<int>(std::clamp<std::int64_t>(value.as_int(), -1'000'000, 1'000'000));
    }
    int result = 0;
    while (!rest_.empty() && rest_.front() >= '0' && rest_.front() <= '9') {
      result = std::min(result * 10 + (rest_.front() - '0'), 1'000'000);
      rest_.remove_prefix(1);
    }
    return result;
  }

  const Value& take() {
    if (values_.kind() == Kind::Tuple) {
      if (next_ == values_.as_list().size()) raise("not enough arguments for format string");
      return values_.as_list()[next_++];
    }
    if (next_++ != 0) raise("not enough arguments for format string");
    return values_;
  }

  const bool markup_;
  std::string_view rest_;
  const Value& values_;
  std::size_t next_ = 0;
  std::string out_;
};

}  // namespace

Value percent_format(Run& run, const Value& format, const Value& values) {
  return changed_text(run, format, PercentFormat(format, values).format());
}

}  // namespace baton::jinja
