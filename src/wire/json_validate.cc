// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "wire/json_text.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <simdjson.h>

#include <optional>

namespace baton::wire {
namespace {

// simdjson holds some fourteen bytes per byte of text. Each thread keeps that much for texts up to
// this size; larger ones pay for their own.
constexpr std::size_t kKeptParserText = 256 * 1024;

// Finding the place of a fault needs a slower parser, so it is only done in texts up to this size.
constexpr std::size_t kMaxLocatedText = 64 * 1024;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Past the JSON number that starts at `at`; `at` itself where there is none.
std::size_t skip_number(std::string_view text, std::size_t at) {
  const auto skip_digits = [text](std::size_t i) {
    while (i < text.size() && is_digit(text[i])) ++i;
    return i;
  };
  const auto is_at = [text](std::size_t i, std::string_view any_of) {
    return i < text.size() && any_of.contains(text[i]);
  };
  std::size_t i = is_at(at, "-") ? at + 1 : at;
  const std::size_t whole = i;
  i = skip_digits(whole);
  if (i == whole || (text[whole] == '0' && i > whole + 1)) return at;
  if (is_at(i, ".")) {
    const std::size_t fraction = i + 1;
    i = skip_digits(fraction);
    if (i == fraction) return at;
  }
  if (is_at(i, "eE")) {
    const std::size_t exponent = is_at(i + 1, "+-") ? i + 2 : i + 1;
    i = skip_digits(exponent);
    if (i == exponent) return at;
  }
  return i;
}

// The text with every well-formed number replaced by a zero and blanks. The length stays.
std::string without_numbers(std::string_view text) {
  std::string plain(text);
  bool in_string = false;
  for (std::size_t i = 0; i < plain.size(); ++i) {
    const char c = plain[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '-' || is_digit(c)) {
      const std::size_t end = skip_number(text, i);
      if (end == i) break;  // simdjson will stumble over it
      plain[i] = '0';
      for (++i; i < end; ++i) plain[i] = ' ';
      --i;
    }
  }
  return plain;
}

enum class Wanted { Object, Any };

simdjson::error_code check_with(simdjson::dom::parser& parser, std::string_view text,
                                Wanted wanted) {
  simdjson::dom::element root;
  auto error = parser.parse(text.data(), text.size()).get(root);
  // simdjson also refuses numbers that fit no C++ type; an engine may well take them.
  if (error == simdjson::NUMBER_ERROR) {
    const std::string plain = without_numbers(text);
    error = parser.parse(plain).get(root);
  }
  if (error || wanted == Wanted::Any) return error;
  return root.is_object() ? simdjson::SUCCESS : simdjson::INCORRECT_TYPE;
}

simdjson::error_code check(std::string_view text, Wanted wanted) {
  if (text.size() > kKeptParserText) {
    simdjson::dom::parser parser;
    return check_with(parser, text, wanted);
  }
  thread_local simdjson::dom::parser parser;
  return check_with(parser, text, wanted);
}

// Takes everything but the place of the first fault.
class FaultLocator : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return true; }
  bool key(string_t&) override { return true; }
  bool end_object() override { return true; }
  bool start_array(std::size_t) override { return true; }
  bool end_array() override { return true; }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::json::exception&) override {
    offset = position == 0 ? 0 : position - 1;  // it counts from one
    return false;
  }

  std::optional<std::size_t> offset;
};

std::optional<std::size_t> locate_fault(std::string_view text) {
  if (text.size() > kMaxLocatedText) return std::nullopt;
  FaultLocator locator;
  nlohmann::json::sax_parse(without_numbers(text), &locator);
  return locator.offset;
}

// What a client should read; simdjson's own sentences speak of its insides.
std::string_view explain(simdjson::error_code error) {
  switch (error) {
    case simdjson::DEPTH_ERROR:
      return "nested too deeply";
    case simdjson::UTF8_ERROR:
      return "not valid UTF-8";
    case simdjson::UNCLOSED_STRING:
      return "a string is not closed";
    case simdjson::STRING_ERROR:
      return "a string is malformed";
    case simdjson::UNESCAPED_CHARS:
      return "a control character in a string is not escaped";
    case simdjson::NUMBER_ERROR:
      return "a number is malformed";
    case simdjson::T_ATOM_ERROR:
    case simdjson::F_ATOM_ERROR:
    case simdjson::N_ATOM_ERROR:
      return "a literal is neither true, false nor null";
    case simdjson::CAPACITY:
    case simdjson::MEMALLOC:
      return "too large to be checked";
    default:
      return "the structure is malformed";
  }
}

Error fault_in(std::string_view what, std::string_view text, simdjson::error_code error) {
  const auto offset = locate_fault(text);
  return {Errc::InvalidJson,
          fmt::format("{} is not valid JSON: {}{}", what, explain(error),
                      offset ? fmt::format(" (at byte {})", *offset) : std::string())};
}

}  // namespace

Result<void> validate_json_object(std::string_view text) {
  if (skip_space(text, 0) == text.size()) {
    return fail(Errc::InvalidJson, "request body is empty");
  }
  const auto error = check(text, Wanted::Object);
  if (!error) return {};
  if (error == simdjson::INCORRECT_TYPE) {
    return fail(Errc::InvalidJson, "request body must be a JSON object");
  }
  return fail(fault_in("request body", text, error));
}

Result<void> validate_json(std::string_view text) {
  const auto error = check(text, Wanted::Any);
  if (!error) return {};
  return fail(fault_in("the text", text, error));
}

}  // namespace baton::wire
