// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/jinja/value.h"
#include "libs/scan/json_text.h"

#include <simdjson.h>

#include <charconv>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

namespace baton::jinja {
namespace {

// Short strings are copied: that takes no memory of its own, and pointing to one saves nothing.
constexpr std::size_t kWorthPointing = 16;
constexpr std::size_t kUsualMembers = 4;

enum class Strings { Copied, Pointed };

// An integer unless it has a fraction or an exponent.
Value number(std::string_view token) {
  const char* const end = token.data() + token.size();
  if (token.find_first_of(".eE") == std::string_view::npos) {
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

// Role. Makes values of a text that is known to be valid JSON.
// Confinement. One thread.
class Reader {
 public:
  Reader(std::string_view json, Strings strings) : json_(json), strings_(strings) {}

  // Nothing where it is nested too deep.
  std::optional<Value> read(std::size_t depth = 1) {
    if (depth > kMaxNesting) return std::nullopt;
    skip_space();
    switch (json_[at_]) {
      case '[':
        return list(depth);
      case '{':
        return dict(depth);
      case '"':
        return string();
      case 't':
        at_ += 4;
        return Value(true);
      case 'f':
        at_ += 5;
        return Value(false);
      case 'n':
        at_ += 4;
        return Value::none();
      default:
        break;
    }
    const std::size_t begin = std::exchange(at_, scan::skip_value(json_, at_));
    return number(json_.substr(begin, at_ - begin));
  }

 private:
  void skip_space() {
    while (json_[at_] == ' ' || json_[at_] == '\n' || json_[at_] == '\r' || json_[at_] == '\t') {
      ++at_;
    }
  }
  // Over the comma or the bracket that comes next; whether it was the bracket.
  bool closes(char bracket) {
    skip_space();
    return json_[at_++] == bracket;
  }
  bool is_empty(char bracket) {
    ++at_;
    skip_space();
    if (json_[at_] != bracket) return false;
    ++at_;
    return true;
  }

  std::optional<Value> list(std::size_t depth) {
    List items;
    if (is_empty(']')) return Value(std::move(items));
    do {
      auto item = read(depth + 1);
      if (!item) return std::nullopt;
      items.push_back(*std::move(item));
    } while (!closes(']'));
    return Value(std::move(items));
  }

  std::optional<Value> dict(std::size_t depth) {
    Dict entries;
    if (is_empty('}')) return Value(std::move(entries));
    entries.reserve(kUsualMembers);
    do {
      skip_space();
      Value key = string();
      closes(':');
      auto value = read(depth + 1);
      if (!value) return std::nullopt;
      entries.set(std::move(key), *std::move(value));
    } while (!closes('}'));
    return Value(std::move(entries));
  }

  // Strings that are not as they were sent go into memory that all of them share.
  Value string() {
    const std::size_t begin = at_ + 1;
    const std::size_t size = scan::plain_size(json_.substr(begin));
    if (json_[begin + size] == '"') {
      at_ = begin + size + 1;
      return text(json_.substr(begin, size));
    }
    char* const to = room(json_.size() - begin);
    at_ = begin;
    room_ = scan::unescape_to(to, json_, at_);
    const std::string_view unescaped(to, static_cast<std::size_t>(room_ - to));
    return Value::text(make<Text>(memory_, unescaped));
  }
  Value text(std::string_view raw) {
    if (raw.size() < kWorthPointing) return Value(raw);
    if (strings_ == Strings::Pointed) return Value::text(make<Text>(Ref<const Object>(), raw));
    return Value(std::string(raw));
  }
  char* room(std::size_t rest) {
    if (!memory_) {
      memory_ = make<TextMemory>(rest);
      room_ = memory_->data();
    }
    return room_;
  }

  std::string_view json_;
  Strings strings_;
  std::size_t at_ = 0;
  Ref<TextMemory> memory_;
  char* room_ = nullptr;
};

simdjson::error_code fault_of(std::string_view json) {
  simdjson::dom::parser parser;
  const simdjson::error_code wrong = parser.parse(json.data(), json.size()).error();
  // simdjson also refuses numbers that fit no C++ type, which Python reads.
  return wrong == simdjson::NUMBER_ERROR ? parser.parse(scan::without_numbers(json)).error()
                                         : wrong;
}

Result<Value> read(std::string_view json, Strings strings) {
  auto value = Reader(json, strings).read();
  if (!value) return fail(ErrorCode::InvalidJson, "The text is nested too deep.");
  return *std::move(value);
}

}  // namespace

Result<Value> value_from_json(std::string_view json) {
  if (const auto wrong = fault_of(json)) {
    return fail(ErrorCode::InvalidJson,
                std::string("The text is not valid JSON: ") + simdjson::error_message(wrong));
  }
  return read(json, Strings::Copied);
}

Result<Value> value_within_json(std::string_view json) { return read(json, Strings::Pointed); }

}  // namespace baton::jinja
