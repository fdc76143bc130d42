// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "engine/stream_event.h"

#include "wire/json_array.h"
#include "wire/json_object.h"

#include <simdjson.h>

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

void read_choices(const dom::array& choices, StreamEvent& event) {
  for (const dom::element choice : choices) {
    event.has_content = true;
    std::string_view reason;
    if (choice["finish_reason"].get(reason) != simdjson::SUCCESS) continue;
    event.has_finish = true;
    if (means_failure(reason)) event.kind = StreamEvent::Kind::Aborted;
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

// simdjson knows no numbers beyond 64 bits; they are valid JSON all the same.
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
    if (key == "error" && !value.is_null()) {
      event.kind = StreamEvent::Kind::Error;
    } else if (key == "choices") {
      dom::array choices;
      if (value.get(choices) != simdjson::SUCCESS) continue;
      read_choices(choices, event);
    } else if (key == "usage") {
      dom::object usage;
      if (value.get(usage) == simdjson::SUCCESS) event.usage = read_usage(usage);
    }
  }
  return event;
}

}  // namespace baton::engine
