// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "engine/shared/completion_json.h"

#include "engine/shared/choice_merge.h"
#include "wire/json_array.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>

namespace baton::engine {
namespace {

// Not ordered_json: that one goes over all members whenever one is added or looked up.
using Json = nlohmann::json;

// The members every chunk shares with the completion it is made from.
Json chunk_frame(Api api, const Json& completion) {
  Json chunk;
  for (const char* key : {"id", "created", "model", "system_fingerprint", "service_tier"}) {
    if (completion.contains(key)) chunk[key] = completion[key];
  }
  chunk["object"] = api == Api::Chat ? "chat.completion.chunk" : "text_completion";
  return chunk;
}

Json chat_delta(const Json& choice) {
  Json delta = choice.value("message", Json::object());
  if (!delta.contains("role")) delta["role"] = "assistant";
  // Streams name the place of each tool call; whole answers leave it to the order.
  if (delta.contains("tool_calls") && delta["tool_calls"].is_array()) {
    for (std::size_t i = 0; i < delta["tool_calls"].size(); ++i)
      delta["tool_calls"][i]["index"] = i;
  }
  return delta;
}

// Streams leave out the members that whole answers have as null.
Json without_nulls(const Json& object) {
  Json kept = Json::object();
  for (const auto& [key, value] : object.items()) {
    if (!value.is_null()) kept[key] = value.is_object() ? without_nulls(value) : value;
  }
  return kept;
}

Result<std::string> stream_of(Api api, const Json& whole, IncludeUsage include_usage) {
  std::string stream;
  const Json choices = whole.value("choices", Json::array());
  // Each of them becomes events that repeat the frame.
  if (choices.size() > kMostChoices)
    return fail(Errc::EngineProtocol, "the engine's answer has too many choices");
  for (const Json& choice : choices) {
    Json content = chunk_frame(api, whole);
    Json part;
    part["index"] = choice.value("index", 0);
    if (api == Api::Chat) {
      part["delta"] = chat_delta(choice);
    } else {
      part["text"] = choice.value("text", "");
    }
    if (choice.contains("logprobs")) part["logprobs"] = choice["logprobs"];
    part["finish_reason"] = nullptr;
    content["choices"] = Json::array({part});
    stream += as_event(content.dump());

    Json end = chunk_frame(api, whole);
    Json last;
    last["index"] = choice.value("index", 0);
    if (api == Api::Chat) {
      last["delta"] = Json::object();
    } else {
      last["text"] = "";
    }
    last["finish_reason"] = choice.value("finish_reason", Json());
    if (choice.contains("stop_reason")) last["stop_reason"] = choice["stop_reason"];
    end["choices"] = Json::array({last});
    stream += as_event(end.dump());
  }
  if (include_usage == IncludeUsage::Yes && whole.contains("usage")) {
    const Json& told = whole["usage"];
    Json usage = chunk_frame(api, whole);
    usage["choices"] = Json::array();
    usage["usage"] = told.is_object() ? without_nulls(told) : told;
    stream += as_event(usage.dump());
  }
  return stream + "data: [DONE]\n\n";
}

}  // namespace

Result<std::string> finish_reason_of(const wire::JsonObject& completion) {
  const auto choices = completion.find("choices");
  const auto first = choices ? wire::first_element(*choices) : std::nullopt;
  if (!first) return fail(Errc::EngineProtocol, "the engine's answer has no choices");
  const auto choice = wire::JsonObject::within(*first);
  const auto reason = choice ? choice->find_string("finish_reason") : std::nullopt;
  if (!reason) return fail(Errc::EngineProtocol, "the engine's answer has no finish_reason");
  return *reason;
}

bool means_end(std::string_view finish_reason) {
  constexpr std::array<std::string_view, 5> kEnds{"stop", "tool_calls", "function_call",
                                                  "content_filter", "repetition"};
  return std::ranges::find(kEnds, finish_reason) != kEnds.end();
}

bool means_failure(std::string_view finish_reason) {
  return finish_reason == "abort" || finish_reason == "error";
}

std::optional<Usage> usage_of(const wire::JsonObject& completion) {
  const auto usage = completion.find_object("usage");
  if (!usage) return std::nullopt;
  return read_usage(*usage);
}

Usage read_usage(const wire::JsonObject& usage) {
  Usage read;
  read.prompt_tokens = usage.find_integer("prompt_tokens").value_or(0);
  read.completion_tokens = usage.find_integer("completion_tokens").value_or(0);
  if (const auto details = usage.find_object("prompt_tokens_details")) {
    read.cached_tokens = details->find_integer("cached_tokens");
    if (details->text().size() <= kLongestUsage) read.prompt_details = details->text();
  }
  return read;
}

std::string as_event(std::string json) {
  std::ranges::replace_if(json, [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return json.insert(0, "data: ").append("\n\n");
}

Result<std::string> as_event_stream(Api api, const std::string& completion,
                                    IncludeUsage include_usage) {
  try {
    return stream_of(api, Json::parse(completion), include_usage);
  } catch (const Json::exception& problem) {  // a member of another type than the API says
    return fail(Errc::EngineProtocol, problem.what());
  }
}

}  // namespace baton::engine
