// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "engine/shared/stream_event.h"

#include "wire/json_array.h"
#include "wire/json_object.h"

#include <simdjson.h>

#include <algorithm>
#include <cstring>
#include <memory>

namespace baton::engine {
namespace {

namespace dom = simdjson::dom;

// simdjson reads past the end of its input; events are copied to where that is allowed.
constexpr std::size_t kScratch = 64 * 1024;

simdjson::error_code parse(std::string_view data, dom::element& document) {
  thread_local dom::parser parser;
  thread_local const auto scratch = std::make_unique<char[]>(kScratch + simdjson::SIMDJSON_PADDING);
  if (data.size() > kScratch) {
    // Rare (logprobs of a long answer): a parser of its own, so that its memory goes again.
    thread_local std::unique_ptr<dom::parser> large;
    large = std::make_unique<dom::parser>();
    return large->parse(data.data(), data.size()).get(document);
  }
  std::memcpy(scratch.get(), data.data(), data.size());
  return parser.parse(scratch.get(), data.size(), false).get(document);
}

// The length is constant, so that the compiler compares in place: this runs for every member of
// every event.
template <std::size_t kSize>
bool is(std::string_view key, const char (&name)[kSize]) {
  return key.size() == kSize - 1 && std::memcmp(key.data(), name, kSize - 1) == 0;
}

bool is_empty(const dom::element& value) {
  switch (value.type()) {
    case dom::element_type::NULL_VALUE:
      return true;
    case dom::element_type::STRING:
      return value.get_string_length().value_unsafe() == 0;
    case dom::element_type::ARRAY:
      return dom::array(value).begin() == dom::array(value).end();
    case dom::element_type::OBJECT:
      return dom::object(value).begin() == dom::object(value).end();
    default:
      return false;
  }
}

// An empty delta, or one with only a role, is no token: engines send one before the first.
bool is_token(const dom::element& delta) {
  dom::object members;
  if (delta.get(members) != simdjson::SUCCESS) return false;
  return std::ranges::any_of(members, [](const dom::key_value_pair& member) {
    return !is(member.key, "role") && !is_empty(member.value);
  });
}

void read_choice(const dom::object& choice, StreamEvent& event) {
  bool ends = false;  // or says that it does not
  for (const auto& [key, value] : choice) {
    if (ends && event.has_token) return;  // the rest changes nothing
    if (is(key, "delta")) {
      event.has_token = event.has_token || is_token(value);
    } else if (is(key, "text") || is(key, "logprobs") || is(key, "token_ids")) {
      event.has_token = event.has_token || !is_empty(value);
    } else if (is(key, "finish_reason")) {
      ends = true;
      if (!value.is_string()) continue;
      event.has_token = event.has_finish = true;
      if (means_failure(std::string_view(value))) event.kind = StreamEvent::Kind::Aborted;
    }
  }
}

void read_choices(const dom::array& choices, StreamEvent& event) {
  for (const dom::element one : choices) {
    dom::object choice;
    if (one.get(choice) == simdjson::SUCCESS) read_choice(choice, event);
  }
}

Usage read_usage(const dom::object& object) {
  Usage usage;
  std::int64_t number = 0;
  if (object["prompt_tokens"].get(number) == simdjson::SUCCESS) usage.prompt_tokens = number;
  if (object["completion_tokens"].get(number) == simdjson::SUCCESS)
    usage.completion_tokens = number;
  if (object["prompt_tokens_details"]["cached_tokens"].get(number) == simdjson::SUCCESS) {
    usage.cached_tokens = number;
  }
  return usage;
}

// simdjson knows no numbers beyond 64 bits; they are valid JSON all the same. In such an event any
// choice is taken for a token: no engine fills the time until the first one with them.
StreamEvent read_with_care(std::string_view data) {
  const auto object = wire::JsonObject::parse(data);
  if (!object) return {StreamEvent::Kind::Malformed, false, false, std::nullopt};
  const auto error = object->find("error");
  const auto choices = object->find("choices");
  const auto finish = finish_reason_of(*object);
  StreamEvent::Kind kind = StreamEvent::Kind::Chunk;
  if (finish && means_failure(*finish)) kind = StreamEvent::Kind::Aborted;
  if (error && *error != "null") kind = StreamEvent::Kind::Error;
  return {kind, choices && wire::first_element(*choices).has_value(), finish.has_value(),
          usage_of(*object)};
}

}  // namespace

StreamEvent read_stream_event(std::string_view data) {
  if (data == "[DONE]") return {StreamEvent::Kind::Done, false, false, std::nullopt};
  dom::element document;
  if (parse(data, document) != simdjson::SUCCESS || !document.is_object())
    return read_with_care(data);
  StreamEvent event{StreamEvent::Kind::Chunk, false, false, std::nullopt};
  for (const auto& [key, value] : dom::object(document)) {
    if (is(key, "error") && !value.is_null()) {
      event.kind = StreamEvent::Kind::Error;
    } else if (is(key, "choices")) {
      dom::array choices;
      if (value.get(choices) != simdjson::SUCCESS) continue;
      read_choices(choices, event);
    } else if (is(key, "usage")) {
      dom::object usage;
      if (value.get(usage) == simdjson::SUCCESS) event.usage = read_usage(usage);
    }
  }
  return event;
}

}  // namespace baton::engine
