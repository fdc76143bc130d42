// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/loadgen/answer_reader.h"

#include "wire/json_array.h"
#include "wire/json_object.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace baton::loadgen {
namespace {

constexpr std::size_t kErrorBytes = 4096;
constexpr std::size_t kNameBytes = 128;
constexpr std::size_t kMostIds = 1'000'000;

std::string name_in(const wire::Headers& headers, std::string_view field) {
  return std::string(headers.find(field).value_or("").substr(0, kNameBytes));
}

// The code of an error, or its type where it has none; short, for it becomes a name in the result.
std::optional<std::string> code_of(const wire::JsonObject& object) {
  const auto error = object.find_object("error");
  const wire::JsonObject& said = error ? *error : object;
  for (const std::string_view key : {"code", "type"}) {
    if (const auto text = said.find_string(key)) return text->substr(0, kNameBytes);
    if (const auto number = said.find_integer(key)) return std::to_string(*number);
  }
  return std::nullopt;
}

std::uint64_t count_of(const wire::JsonObject& object, std::string_view key) {
  return static_cast<std::uint64_t>(
      std::max<std::int64_t>(object.find_integer(key).value_or(0), 0));
}

bool has_text(const wire::JsonObject& object, std::string_view key) {
  const auto value = object.find(key);
  return value && value->size() > 2 && value->front() == '"';
}

}  // namespace

void AnswerReader::on_head(const wire::ResponseHead& head) {
  status_ = head.status;
  prefill_worker_ = name_in(head.headers, "X-Baton-Prefill-Worker");
  decode_worker_ = name_in(head.headers, "X-Baton-Decode-Worker");
  if (const auto text = head.headers.find("Retry-After")) {
    std::uint32_t seconds = 0;
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), seconds);
    if (error == std::errc() && end == text->data() + text->size())
      retry_after_ = std::chrono::seconds(seconds);
  }
  const auto type = head.headers.find("Content-Type").value_or("");
  stream_ = status_ == 200 && type.starts_with("text/event-stream");
  if (status_ != 200) error_ = fmt::format("http_{}", status_);
  if (status_ == 200 && !stream_) error_ = "not_a_stream";
}

void AnswerReader::on_body(std::string_view bytes) {
  if (!stream_) {
    if (error_body_.size() >= kErrorBytes) return;
    error_body_ += bytes.substr(0, kErrorBytes - error_body_.size());
    if (status_ == 200) return;
    const auto object = wire::JsonObject::parse(error_body_);
    if (const auto code = object ? code_of(*object) : std::nullopt)
      error_ = fmt::format("http_{} {}", status_, *code);
    return;
  }
  events_reader_.feed(bytes);
  while (const auto event = events_reader_.next()) {
    if (!event->data.empty()) on_event(event->data);
  }
  if (events_reader_.overflowed()) error_ = "event_too_large";
}

void AnswerReader::on_event(std::string_view data) {
  if (data == "[DONE]") {
    done_ = true;
    return;
  }
  const auto object = wire::JsonObject::parse(data);
  if (!object) {
    error_ = "bad_event";
    return;
  }
  if (const auto error = object->find("error"); error && *error != "null") {
    error_ = code_of(*object).value_or("error_event");
    return;
  }
  if (const auto choices = object->find("choices")) {
    if (const auto choice = wire::first_element(*choices); choice && read_choice(*choice)) {
      ++events_;
      on_token_();
    }
  }
  if (const auto usage = object->find("usage"); usage && *usage != "null") read_usage(*usage);
}

// True where it brings something new.
bool AnswerReader::read_choice(std::string_view text) {
  const auto choice = wire::JsonObject::within(text);
  if (!choice) return false;
  if (keep_ == Keep::Text) {
    if (const auto ids = choice->find("token_ids")) {
      for (const std::string_view id : wire::elements(*ids, kMostIds - ids_.size())) {
        std::uint32_t number = 0;
        std::from_chars(id.data(), id.data() + id.size(), number);
        ids_.push_back(number);
      }
    }
  }
  const auto delta = choice->find_object("delta");
  const wire::JsonObject& said = delta ? *delta : *choice;
  const std::string_view key = delta ? "content" : "text";
  if (has_text(said, key)) {
    if (keep_ == Keep::Text) text_ += said.find_string(key).value_or("");
    return true;
  }
  return has_text(said, "reasoning_content") || has_text(said, "reasoning") ||
         (delta && said.find("tool_calls").value_or("null").starts_with('['));
}

void AnswerReader::read_usage(std::string_view text) {
  const auto object = wire::JsonObject::within(text);
  if (!object) return;
  Usage usage{.prompt_tokens = count_of(*object, "prompt_tokens"),
              .completion_tokens = count_of(*object, "completion_tokens"),
              .cached_tokens = {}};
  if (const auto details = object->find_object("prompt_tokens_details")) {
    if (details->find_integer("cached_tokens"))
      usage.cached_tokens = count_of(*details, "cached_tokens");
  }
  usage_ = usage;
}

}  // namespace baton::loadgen
