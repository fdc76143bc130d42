// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/jinja/printing.h"

#include "libs/jinja/failure.h"
#include "libs/jinja/loop.h"
#include "libs/jinja/objects.h"
#include "libs/jinja/unicode.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <iterator>

namespace baton::jinja {
namespace {

// Python's repr() stops here too, where namespaces hold themselves.
constexpr int kReprDepth = 600;

void append_repr(std::string& out, const Value& value, int depth);

void append_items(std::string& out, const List& items, int depth) {
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i != 0) out += ", ";
    append_repr(out, items[i], depth);
  }
}

void append_dict(std::string& out, const Dict& dict, int depth) {
  out += '{';
  bool first = true;
  for (const auto& [key, value] : dict) {
    if (!first) out += ", ";
    first = false;
    append_repr(out, key, depth);
    out += ": ";
    append_repr(out, value, depth);
  }
  out += '}';
}

void append_view(std::string& out, const DictViewObject& view, int depth) {
  using Part = DictViewObject::Part;
  out += view.part == Part::Keys     ? "dict_keys(["
         : view.part == Part::Values ? "dict_values(["
                                     : "dict_items([";
  bool first = true;
  for (const auto& [key, value] : view.dict.as_dict()) {
    if (!first) out += ", ";
    first = false;
    if (view.part == Part::Items) out += '(';
    if (view.part != Part::Values) append_repr(out, key, depth);
    if (view.part == Part::Items) out += ", ";
    if (view.part != Part::Keys) append_repr(out, value, depth);
    if (view.part == Part::Items) out += ')';
  }
  out += "])";
}

void append_range(std::string& out, const RangeObject& range) {
  fmt::format_to(std::back_inserter(out), "range({}, {}", range.start, range.stop);
  if (range.step != 1) fmt::format_to(std::back_inserter(out), ", {}", range.step);
  out += ')';
}

void append_quoted(std::string& out, std::string_view text) {
  const char quote = text.contains('\'') && !text.contains('"') ? '"' : '\'';
  out += quote;
  while (!text.empty()) {
    const std::string_view before = text;
    const char32_t c = take_code_point(text);
    if (c == static_cast<char32_t>(quote) || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (is_printable(c)) {
      out += before.substr(0, before.size() - text.size());
    } else {
      const auto number = static_cast<std::uint32_t>(c);
      auto to = std::back_inserter(out);
      if (c < 0x100) {
        fmt::format_to(to, "\\x{:02x}", number);
      } else if (c < 0x10000) {
        fmt::format_to(to, "\\u{:04x}", number);
      } else {
        fmt::format_to(to, "\\U{:08x}", number);
      }
    }
  }
  out += quote;
}

void append_repr(std::string& out, const Value& value, int depth) {
  check_printed(out);
  if (depth > kReprDepth) raise("maximum recursion depth exceeded while printing a value");
  switch (value.kind()) {
    case Kind::Undefined:
      out += "Undefined";
      break;
    case Kind::None:
      out += "None";
      break;
    case Kind::Bool:
      out += value.as_bool() ? "True" : "False";
      break;
    case Kind::Int:
      fmt::format_to(std::back_inserter(out), "{}", value.as_int());
      break;
    case Kind::BigInt:
      out += value.as_string();
      break;
    case Kind::Float:
      out += float_repr(value.as_float());
      break;
    case Kind::String:
      if (value.is_markup()) out += "Markup(";
      append_quoted(out, value.as_string());
      if (value.is_markup()) out += ')';
      break;
    case Kind::List:
      out += '[';
      append_items(out, value.as_list(), depth + 1);
      out += ']';
      break;
    case Kind::Tuple:
      out += '(';
      append_items(out, value.as_list(), depth + 1);
      out += value.as_list().size() == 1 ? ",)" : ")";
      break;
    case Kind::Dict:
      append_dict(out, value.as_dict(), depth + 1);
      break;
    case Kind::DictView:
      append_view(out, object_as<DictViewObject>(value), depth + 1);
      break;
    case Kind::Range:
      append_range(out, object_as<RangeObject>(value));
      break;
    case Kind::Iterator:
      out += "<generator object>";
      break;
    case Kind::Namespace:
      out += "<Namespace ";
      append_dict(out, object_as<NamespaceObject>(value).attributes, depth + 1);
      out += '>';
      break;
    case Kind::Function:
      out += object_as<FunctionObject>(value).repr();
      break;
    case Kind::Loop:
      out += object_as<LoopObject>(value).repr();
      break;
    case Kind::Cycler:
      out += "<jinja2.utils.Cycler object>";
      break;
    case Kind::Joiner:
      out += "<jinja2.utils.Joiner object>";
      break;
  }
}

}  // namespace

void check_printed(const std::string& out) {
  if (out.size() > kMaxPrintedBytes)
    raise("a printed value has more than {} bytes", kMaxPrintedBytes);
}

void append_repr(std::string& out, const Value& value) { append_repr(out, value, 0); }

void append_str(std::string& out, const Value& value) {
  if (value.is_string()) {
    out += value.as_string();
  } else if (!value.is_undefined()) {
    append_repr(out, value, 0);
  }
}

std::string str(const Value& value) {
  std::string out;
  append_str(out, value);
  return out;
}

std::string repr(const Value& value) {
  std::string out;
  append_repr(out, value, 0);
  return out;
}

std::string in_quotes(std::string_view text) {
  std::string out;
  append_quoted(out, text);
  return out;
}

std::string float_repr(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::array<char, 64> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                 std::chars_format::scientific)
                       .ptr;
  const std::string_view text(buffer.data(), static_cast<std::size_t>(end - buffer.data()));
  const std::size_t mark = text.find('e');
  int exponent = 0;
  const char* digits = text.data() + mark + (text[mark + 1] == '+' ? 2 : 1);
  std::from_chars(digits, end, exponent);
  // Python writes an exponent outside of these bounds, C++ where it is shorter.
  if (exponent < -4 || exponent >= 16) return std::string(text);
  const auto fixed =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::fixed)
          .ptr;
  std::string out(buffer.data(), fixed);
  if (!out.contains('.')) out += ".0";
  return out;
}

std::string_view type_name(const Value& value) {
  switch (value.kind()) {
    case Kind::Undefined:
      return "Undefined";
    case Kind::None:
      return "NoneType";
    case Kind::Bool:
      return "bool";
    case Kind::Int:
    case Kind::BigInt:
      return "int";
    case Kind::Float:
      return "float";
    case Kind::String:
      return value.is_markup() ? "Markup" : "str";
    case Kind::List:
      return "list";
    case Kind::Tuple:
      return "tuple";
    case Kind::Dict:
      return "dict";
    case Kind::DictView: {
      const auto part = object_as<DictViewObject>(value).part;
      return part == DictViewObject::Part::Keys     ? "dict_keys"
             : part == DictViewObject::Part::Values ? "dict_values"
                                                    : "dict_items";
    }
    case Kind::Range:
      return "range";
    case Kind::Iterator:
      return "generator";
    case Kind::Namespace:
      return "Namespace";
    case Kind::Function:
      return object_as<FunctionObject>(value).type_name();
    case Kind::Loop:
      return "LoopContext";
    case Kind::Cycler:
      return "Cycler";
    case Kind::Joiner:
      return "Joiner";
  }
  return "object";
}

std::string object_type(Kind kind) {
  switch (kind) {
    case Kind::None:
      return "None";
    case Kind::Bool:
      return "bool object";
    case Kind::Int:
    case Kind::BigInt:
      return "int object";
    case Kind::Float:
      return "float object";
    case Kind::String:
      return "str object";
    case Kind::List:
      return "list object";
    case Kind::Tuple:
      return "tuple object";
    case Kind::Dict:
      return "dict object";
    case Kind::Range:
      return "range object";
    case Kind::Namespace:
      return "jinja2.utils.Namespace object";
    case Kind::Loop:
      return "jinja2.runtime.LoopContext object";
    case Kind::Cycler:
      return "jinja2.utils.Cycler object";
    case Kind::Joiner:
      return "jinja2.utils.Joiner object";
    case Kind::DictView:
      return "dict_items object";
    case Kind::Iterator:
      return "generator object";
    case Kind::Function:
      return "function object";
    case Kind::Undefined:
      return "jinja2.runtime.Undefined object";
  }
  return "object";
}

std::string escape_html(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '\'':
        out += "&#39;";
        break;
      case '"':
        out += "&#34;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

}  // namespace baton::jinja
