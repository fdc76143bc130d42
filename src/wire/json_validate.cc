// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "core/memory_budget.h"
#include "libs/scan/json_text.h"
#include "wire/json_structure.h"
#include "wire/json_text.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <simdjson.h>

#include <bit>
#include <cstdint>
#include <optional>

namespace baton::wire {
namespace {

// simdjson holds four bytes per byte of text, and some fourteen where it has to parse it. Each thread
// keeps that much for texts up to this size; larger ones pay for their own.
constexpr std::size_t kKeptParserText = 256 * 1024;
constexpr std::size_t kToParse = 14;

// Finding the place of a fault needs a slower parser, so it is only done in texts up to this size,
// which takes it less than a millisecond.
constexpr std::size_t kMaxLocatedText = 16 * 1024;

Structure structure_of(const simdjson::dom::parser& parser) {
  const auto& found = *parser.implementation;
  return {found.structural_indexes.get(), found.n_structural_indexes};
}

// Most texts are valid, and simdjson's second stage only copies them: the structure that the first
// one finds is enough to know.
bool is_sure(simdjson::dom::parser& parser, std::string_view text) {
  if (text.empty()) return false;
  if (parser.capacity() < text.size()) {
    const std::size_t room =
        text.size() > kKeptParserText ? text.size() : std::bit_ceil(text.size());
    if (parser.allocate(room) != simdjson::SUCCESS) return false;
  }
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(text.data());
  const auto found =
      parser.implementation->stage1(bytes, text.size(), simdjson::stage1_mode::regular);
  return found == simdjson::SUCCESS && surely_valid(text, structure_of(parser));
}

simdjson::error_code check_with(simdjson::dom::parser& parser, std::string_view text,
                                MemoryShare* memory) {
  if (is_sure(parser, text)) {
    const bool object = text[skip_space(text, 0)] == '{';
    return object ? simdjson::SUCCESS : simdjson::INCORRECT_TYPE;
  }
  if (memory && !memory->cover_work(text.size(), kToParse)) return simdjson::MEMALLOC;
  simdjson::dom::element root;
  auto error = parser.parse(text.data(), text.size()).get(root);
  // simdjson also refuses numbers that fit no C++ type; an engine may well take them.
  if (error == simdjson::NUMBER_ERROR) {
    const std::string plain = scan::without_numbers(text);
    error = parser.parse(plain).get(root);
  }
  if (error) return error;
  return root.is_object() ? simdjson::SUCCESS : simdjson::INCORRECT_TYPE;
}

// Calls with the parser that has found the text to be a JSON object.
template <class Use>
simdjson::error_code check(std::string_view text, Use use, MemoryShare* memory = nullptr) {
  const auto check_and_use = [&](simdjson::dom::parser& parser) {
    const simdjson::error_code error = check_with(parser, text, memory);
    if (!error) use(parser);
    return error;
  };
  if (text.size() > kKeptParserText) {
    simdjson::dom::parser parser;
    return check_and_use(parser);
  }
  thread_local simdjson::dom::parser parser;
  return check_and_use(parser);
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
  nlohmann::json::sax_parse(scan::without_numbers(text), &locator);
  return locator.offset;
}

// An explanation for clients; simdjson's own sentences describe its internals.
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
      return "too large to be checked";
    default:
      return "the structure is malformed";
  }
}

Error fault_in(std::string_view text, simdjson::error_code error) {
  const auto offset = locate_fault(text);
  Error fault(Errc::InvalidJson,
              fmt::format("request body is not valid JSON: {}{}", explain(error),
                          offset ? fmt::format(" (at byte {})", *offset) : std::string()));
  if (error == simdjson::DEPTH_ERROR) fault.with_limit(Limit::JsonDepth);
  return fault;
}

}  // namespace

Result<void> validate_json_object(std::string_view text, const std::function<void(Structure)>& use,
                                  MemoryShare* memory) {
  if (skip_space(text, 0) == text.size()) {
    return fail(Errc::InvalidJson, "request body is empty");
  }
  const auto error =
      check(text, [&](const simdjson::dom::parser& parser) { use(structure_of(parser)); }, memory);
  if (!error) return {};
  if (error == simdjson::MEMALLOC) return fail(no_memory_for("parsing the request's body"));
  if (error == simdjson::INCORRECT_TYPE) {
    return fail(Errc::InvalidJson, "request body must be a JSON object");
  }
  return fail(fault_in(text, error));
}

Result<void> validate_json_object(std::string_view text) {
  return validate_json_object(text, [](Structure) {});
}

}  // namespace baton::wire
