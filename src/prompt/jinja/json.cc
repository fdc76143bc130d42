// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "prompt/jinja/value.h"

#include <simdjson.h>

#include <charconv>
#include <cmath>
#include <string>
#include <utility>

namespace baton::prompt::jinja {
namespace {

namespace ondemand = simdjson::ondemand;

std::unexpected<Error> bad(std::string_view why) {
  return fail(Errc::InvalidJson, "The text is not JSON: " + std::string(why) + ".");
}

std::string_view digits_at(std::string_view text) {
  return text.substr(0, text.find_first_not_of("0123456789"));
}

// Python's rules for a JSON number: an integer unless it has a fraction or an exponent.
Result<Value> number(std::string_view token) {
  while (!token.empty() && (token.back() == ' ' || token.back() == '\n' || token.back() == '\t' ||
                            token.back() == '\r')) {
    token.remove_suffix(1);
  }
  std::string_view rest = token;
  if (rest.starts_with('-')) rest.remove_prefix(1);
  const auto whole = digits_at(rest);
  if (whole.empty() || (whole.size() > 1 && whole[0] == '0')) return bad("a number is malformed");
  rest.remove_prefix(whole.size());
  const bool integer = rest.empty();
  if (rest.starts_with('.')) {
    const auto fraction = digits_at(rest.substr(1));
    if (fraction.empty()) return bad("a number is malformed");
    rest.remove_prefix(1 + fraction.size());
  }
  if (rest.starts_with('e') || rest.starts_with('E')) {
    rest.remove_prefix(1);
    if (rest.starts_with('+') || rest.starts_with('-')) rest.remove_prefix(1);
    const auto exponent = digits_at(rest);
    if (exponent.empty()) return bad("a number is malformed");
    rest.remove_prefix(exponent.size());
  }
  if (!rest.empty()) return bad("a number is malformed");
  const char* end = token.data() + token.size();
  if (integer) {
    std::int64_t value = 0;
    if (std::from_chars(token.data(), end, value).ec == std::errc()) return Value(value);
    return Value::big_integer(std::string(token));
  }
  double value = 0;
  if (std::from_chars(token.data(), end, value).ec == std::errc::result_out_of_range) {
    // Too large or too small: strtod tells which, and gives infinity or zero as Python does.
    value = std::strtod(std::string(token).c_str(), nullptr);
  }
  return Value(value);
}

Result<Value> convert(ondemand::value value, std::size_t depth);

Result<Value> convert_array(ondemand::array array, std::size_t depth) {
  List items;
  for (auto element : array) {
    ondemand::value item;
    if (const auto error = element.get(item)) return bad(simdjson::error_message(error));
    auto converted = convert(item, depth + 1);
    if (!converted) return converted;
    items.push_back(*std::move(converted));
  }
  return Value(std::move(items));
}

Result<Value> convert_object(ondemand::object object, std::size_t depth) {
  Dict entries;
  for (auto member : object) {
    ondemand::field field;
    if (const auto error = std::move(member).get(field)) return bad(simdjson::error_message(error));
    std::string_view key;
    if (const auto error = field.unescaped_key().get(key)) {
      return bad(simdjson::error_message(error));
    }
    Value name(key);
    auto converted = convert(field.value(), depth + 1);
    if (!converted) return converted;
    entries.set(std::move(name), *std::move(converted));
  }
  return Value(std::move(entries));
}

Result<Value> convert(ondemand::value value, std::size_t depth) {
  if (depth > kMaxNesting) return bad("it is nested too deep");
  ondemand::json_type type{};
  if (const auto error = value.type().get(type)) return bad(simdjson::error_message(error));
  const auto read = [&](auto& into) { return value.get(into); };
  switch (type) {
    case ondemand::json_type::array: {
      ondemand::array array;
      if (const auto error = read(array)) return bad(simdjson::error_message(error));
      return convert_array(array, depth);
    }
    case ondemand::json_type::object: {
      ondemand::object object;
      if (const auto error = read(object)) return bad(simdjson::error_message(error));
      return convert_object(object, depth);
    }
    case ondemand::json_type::string: {
      std::string_view text;
      if (const auto error = read(text)) return bad(simdjson::error_message(error));
      return Value(text);
    }
    case ondemand::json_type::boolean: {
      bool truth = false;
      if (const auto error = read(truth)) return bad(simdjson::error_message(error));
      return Value(truth);
    }
    case ondemand::json_type::null:
      if (!value.is_null()) return bad("a word is unknown");
      return Value::none();
    case ondemand::json_type::number:
      // Read by hand, because integers may have any length; simdjson skips it when it goes on.
      return number(value.raw_json_token());
  }
  return bad("a value is unknown");
}

}  // namespace

Result<Value> value_from_json(std::string_view json) {
  // As the one element of an array, a text that is a bare number or word reads like any other.
  std::string wrapped;
  wrapped.reserve(json.size() + 2 + simdjson::SIMDJSON_PADDING);
  wrapped += '[';
  wrapped += json;
  wrapped += ']';
  ondemand::parser parser;
  ondemand::document document;
  const simdjson::padded_string_view padded(wrapped.data(), wrapped.size(), wrapped.capacity());
  if (const auto error = parser.allocate(wrapped.size(), kMaxNesting + 4)) {
    return bad(simdjson::error_message(error));
  }
  if (const auto error = parser.iterate(padded).get(document)) {
    return bad(simdjson::error_message(error));
  }
  ondemand::array array;
  if (const auto error = document.get_array().get(array)) {
    return bad(simdjson::error_message(error));
  }
  auto whole = convert_array(array, 0);
  if (!whole) return whole;
  if (whole->as_list().size() != 1 ||
      document.current_location().error() != simdjson::OUT_OF_BOUNDS)
    return bad("there is more than one value");
  return whole->as_list()[0];
}

}  // namespace baton::prompt::jinja
