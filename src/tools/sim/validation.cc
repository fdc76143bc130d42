// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/sim/validation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

namespace baton::sim {
namespace {

using nlohmann::json;

// The engine's text for a value; containers are described, not written out.
std::string summary(const json& value) {
  switch (value.type()) {
    case json::value_t::string:
      return value.get<std::string>();
    case json::value_t::array:
      return fmt::format("<list of {} items>", value.size());
    case json::value_t::object:
      return fmt::format("<dict of {} items>", value.size());
    case json::value_t::boolean:
      return value.get<bool>() ? "True" : "False";
    case json::value_t::null:
      return "None";
    default:
      return value.dump();
  }
}

template <typename Number>
std::optional<Number> number_in(const std::string& text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<bool> bool_in(std::string text) {
  std::ranges::transform(text, text.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  });
  static constexpr std::array<std::string_view, 6> kTrue{"true", "1", "yes", "on", "t", "y"};
  static constexpr std::array<std::string_view, 6> kFalse{"false", "0", "no", "off", "f", "n"};
  if (std::ranges::find(kTrue, text) != kTrue.end()) return true;
  if (std::ranges::find(kFalse, text) != kFalse.end()) return false;
  return std::nullopt;
}

std::optional<json> read_number(const json& value, const std::string& loc,
                                ValidationErrors& errors) {
  if (value.is_number()) return std::nullopt;
  if (value.is_boolean()) return json(value.get<bool>() ? 1.0 : 0.0);
  if (!value.is_string()) {
    errors.add("float_type", loc, "Input should be a valid number", value);
    return std::nullopt;
  }
  if (const auto number = number_in<double>(value.get<std::string>())) return json(*number);
  errors.add("float_parsing", loc,
             "Input should be a valid number, unable to parse string as a number", value);
  return std::nullopt;
}

std::optional<json> read_integer(const json& value, const std::string& loc,
                                 ValidationErrors& errors) {
  if (value.is_number_integer()) return std::nullopt;
  if (value.is_boolean()) return json(value.get<bool>() ? 1 : 0);
  if (value.is_number_float()) {
    const double number = value.get<double>();
    const bool whole = std::trunc(number) == number;
    if (whole && std::abs(number) < 9e15) return json(static_cast<std::int64_t>(number));
    errors.add(whole ? "int_parsing_size" : "int_from_float", loc,
               whole ? "Unable to parse input string as an integer, exceeded maximum size"
                     : "Input should be a valid integer, got a number with a fractional part",
               value);
  } else if (value.is_string()) {
    if (const auto number = number_in<std::int64_t>(value.get<std::string>())) return json(*number);
    errors.add("int_parsing", loc,
               "Input should be a valid integer, unable to parse string as an integer", value);
  } else {
    errors.add("int_type", loc, "Input should be a valid integer", value);
  }
  return std::nullopt;
}

std::optional<json> read_boolean(const json& value, const std::string& loc,
                                 ValidationErrors& errors) {
  if (value.is_boolean()) return std::nullopt;
  if (value.is_number() && (value == 0 || value == 1)) return json(value == 1);
  if (value.is_string()) {
    if (const auto truth = bool_in(value.get<std::string>())) return json(*truth);
  }
  if (value.is_structured() || value.is_null()) {
    errors.add("bool_type", loc, "Input should be a valid boolean", value);
  } else {
    errors.add("bool_parsing", loc, "Input should be a valid boolean, unable to interpret input",
               value);
  }
  return std::nullopt;
}

// A Python tuple from a dotted path; numbers are positions in lists.
std::string python_tuple(std::string_view loc) {
  std::string out;
  std::size_t parts = 0;
  while (!loc.empty()) {
    const std::size_t end = std::min(loc.find('.'), loc.size());
    const std::string part(loc.substr(0, end));
    if (parts++ > 0) out += ", ";
    out += number_in<std::uint64_t>(part) ? part : python_repr(part);
    loc.remove_prefix(std::min(end + 1, loc.size()));
  }
  return fmt::format("({}{})", out, parts == 1 ? "," : "");
}

}  // namespace

std::string python_repr(std::string_view text) {
  const bool single =
      text.find('\'') == std::string_view::npos || text.find('"') != std::string_view::npos;
  const char quote = single ? '\'' : '"';
  std::string out(1, quote);
  for (const char c : text) {
    switch (c) {
      case '\n':
        out += "\\n";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\\':
        out += "\\\\";
        break;
      default:
        if (c == quote) out += '\\';
        out += c;
    }
  }
  return out + quote;
}

std::string python_value(const json& value) {
  switch (value.type()) {
    case json::value_t::string:
      return python_repr(value.get_ref<const std::string&>());
    case json::value_t::array: {
      std::string out;
      for (const json& one : value) out += (out.empty() ? "" : ", ") + python_value(one);
      return "[" + out + "]";
    }
    case json::value_t::object: {
      std::string out;
      for (const auto& [name, one] : value.items()) {
        out +=
            fmt::format("{}{}: {}", out.empty() ? "" : ", ", python_repr(name), python_value(one));
      }
      return "{" + out + "}";
    }
    case json::value_t::boolean:
      return value.get<bool>() ? "True" : "False";
    case json::value_t::null:
      return "None";
    default:
      return value.dump();
  }
}

void ValidationErrors::add(std::string_view type, std::string loc, std::string_view message,
                           const json& input) {
  add_with({}, type, std::move(loc), message, input);
}

void ValidationErrors::add_union(std::size_t branches, std::string_view type, std::string loc,
                                 std::string_view message, const json& input) {
  add_with({}, type, std::move(loc), message, input);
  untold_ += branches - 1;
}

void ValidationErrors::add_with(std::string_view context, std::string_view type, std::string loc,
                                std::string_view message, const json& input) {
  entries_.push_back({.type = std::string(type),
                      .loc = std::move(loc),
                      .message = std::string(message),
                      .summary = summary(input),
                      .input = python_value(input),
                      .context = std::string(context)});
}

Error ValidationErrors::error() const {
  const std::size_t count = entries_.size() + untold_;
  std::string message = fmt::format("{} validation {}:", count, count == 1 ? "error" : "errors");
  for (const Entry& entry : entries_) {
    message += fmt::format("\n  {{'type': {}, 'loc': {}, 'msg': {}, 'input': {}}}",
                           python_repr(entry.type), python_repr(entry.loc),
                           python_repr(entry.message), python_repr(entry.summary));
  }
  Error error(kValidation, std::move(message));
  if (!entries_.empty()) error.with_param(entries_.front().loc);
  return error;
}

Error ValidationErrors::sglang_error(std::string_view function, std::string_view request) const {
  const std::size_t count = entries_.size() + untold_;
  std::string lines;
  std::string list;
  for (const Entry& entry : entries_) {
    const std::string text =
        fmt::format("{{'type': {}, 'loc': {}, 'msg': {}, 'input': {}{}}}", python_repr(entry.type),
                    python_tuple(entry.loc), python_repr(entry.message), entry.input,
                    entry.context.empty() ? "" : ", 'ctx': " + entry.context);
    lines += "\n  " + text;
    list += (list.empty() ? "" : ", ") + text;
  }
  return Error(
      kValidation,
      fmt::format("{} validation {}:{}\n\n  File \"http_server.py\", line 1, in {}\n    {} [{}]",
                  count, count == 1 ? "error" : "errors", lines, function, request, list));
}

std::optional<json> read_field(const FieldRule& rule, const json& value, const std::string& loc,
                               ValidationErrors& errors) {
  if (value.is_null() && rule.nullable) return std::nullopt;
  switch (rule.kind) {
    case FieldKind::Number:
      return read_number(value, loc, errors);
    case FieldKind::Integer:
      return read_integer(value, loc, errors);
    case FieldKind::Bool:
      return read_boolean(value, loc, errors);
    case FieldKind::Text:
      if (!value.is_string())
        errors.add("string_type", loc, "Input should be a valid string", value);
      break;
    case FieldKind::Object:
      if (!value.is_object())
        errors.add("dict_type", loc, "Input should be a valid dictionary", value);
      break;
    case FieldKind::List:
      if (!value.is_array()) errors.add("list_type", loc, "Input should be a valid list", value);
      break;
    case FieldKind::Model:
      if (!value.is_object())
        errors.add("model_attributes_type", loc,
                   "Input should be a valid dictionary or object to extract fields from", value);
      break;
  }
  return std::nullopt;
}

}  // namespace baton::sim
