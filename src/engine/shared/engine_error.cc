// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "engine/shared/engine_error.h"

#include "wire/json_object.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string>

namespace baton::engine {
namespace {

constexpr std::size_t kLongestMessage = 2000;
constexpr std::chrono::seconds kDefaultRetryAfter{1};

struct Said {
  std::string message;
  std::optional<std::string> param;
};

Said from_object(const wire::JsonObject& object) {
  return {object.find_string("message").value_or(""), object.find_string("param")};
}

// vLLM nests under `error`; SGLang and TensorRT-LLM write the same members at the top; a refused
// key is a bare string; the web framework under all three uses `detail`.
Said what_it_said(std::string_view body) {
  const auto object = wire::JsonObject::parse(body);
  if (!object) return {std::string(body), std::nullopt};
  if (const auto nested = object->find("error")) {
    if (const auto inner = object->find_object("error")) return from_object(*inner);
    return {object->find_string("error").value_or(std::string(*nested)), std::nullopt};
  }
  if (object->has("message")) return from_object(*object);
  if (const auto detail = object->find("detail")) {
    return {object->find_string("detail").value_or(std::string(*detail)), std::nullopt};
  }
  return {std::string(body), std::nullopt};
}

// Members that reveal where a worker keeps its KV blocks.
constexpr std::array<std::string_view, 6> kWhereBlocksAre{"remote_block_ids", "remote_engine_id",
                                                          "remote_host",      "bootstrap_host",
                                                          "remote_port",      "opaque_state"};

// vLLM before 0.13 quotes the whole body in some refusals, and a decode leg's body says where the
// prompt's KV cache is. A prefill leg's has the same members without values.
bool shows_where_blocks_are(std::string_view body) {
  return std::ranges::any_of(kWhereBlocksAre, [&](std::string_view name) {
    for (std::size_t at = body.find(name); at != std::string_view::npos; at = body.find(name, at)) {
      at += name.size();
      const std::size_t value = body.find_first_not_of("'\"\\: ", at);
      if (value == std::string_view::npos) return false;
      const bool given = body.substr(at, value - at).contains(':');
      if (given && body[value] != 'N' && body[value] != 'n') return true;
    }
    return false;
  });
}

// The status that an error event has in place of the response's.
std::optional<int> code_in(std::string_view event_data) {
  const auto object = wire::JsonObject::parse(event_data);
  const auto error = object ? object->find_object("error") : std::nullopt;
  const auto code = error ? error->find_integer("code") : std::nullopt;
  if (!code || *code < 100 || *code > 599) return std::nullopt;
  return static_cast<int>(*code);
}

// Statuses that tell of the worker, or of the connection between Baton and it, and nothing of the
// client's request: Baton wrote the method, the length and the content type itself, and draws ids anew.
constexpr std::array kBetweenUs{405, 408, 409, 411, 415, 417, 421, 425, 426};

bool is_between_us(int status) { return std::ranges::find(kBetweenUs, status) != kBetweenUs.end(); }

std::chrono::seconds parse_retry_after(std::optional<std::string_view> text) {
  int seconds = 0;
  if (!text) return kDefaultRetryAfter;
  const auto [end, problem] = std::from_chars(text->data(), text->data() + text->size(), seconds);
  const bool number = problem == std::errc() && end == text->data() + text->size();
  return number ? std::chrono::seconds(std::clamp(seconds, 0, 3600)) : kDefaultRetryAfter;
}

}  // namespace

Error read_engine_error(int status, std::string_view body,
                        std::optional<std::string_view> retry_after) {
  Said said = what_it_said(body);
  if (shows_where_blocks_are(body)) said.message.clear();
  if (said.message.empty())
    said.message = fmt::format("the engine answered with status {}", status);
  if (said.message.size() > kLongestMessage) said.message.resize(kLongestMessage);

  if (status == 429 || status == 503) {
    return Error(Errc::EngineOverloaded, std::move(said.message))
        .with_status(status)
        .with_retry_after(parse_retry_after(retry_after));
  }
  if (status == 401 || status == 403 || status == 407) {
    // The client is not told whose key was wrong: it may be Baton's own.
    return Error(Errc::EngineUnauthorized,
                 fmt::format("the engine refused the key it was given (status {})", status));
  }
  if (status >= 400 && status < 500 && !is_between_us(status)) {
    Error error(Errc::EngineRejected, std::move(said.message));
    error.with_status(status);
    if (said.param) error.with_param(std::move(*said.param));
    return error;
  }
  return Error(Errc::EngineFailed,
               fmt::format("the engine failed with status {}: {}", status, said.message));
}

std::string error_type_of(std::string_view body) {
  const auto object = wire::JsonObject::parse(body);
  if (!object) return {};
  const auto nested = object->find_object("error");
  return (nested ? *nested : *object).find_string("type").value_or("");
}

Error read_refusal(const wire::ResponseHead& head, Result<std::string> body) {
  Error error = read_engine_error(head.status, body ? std::string_view(*body) : std::string_view(),
                                  head.headers.find("retry-after"));
  const bool plain = head.headers.find("content-encoding").value_or("identity") == "identity";
  if (error.code() == Errc::EngineRejected && body && !body->empty() && plain &&
      !shows_where_blocks_are(*body)) {
    error.with_reply({.content_type = std::string(head.headers.find("content-type").value_or("")),
                      .body = *std::move(body)});
  }
  return error;
}

Error read_stream_error(std::string_view event_data, StreamBegun begun) {
  const auto code = begun == StreamBegun::No ? code_in(event_data) : std::nullopt;
  if (code && *code >= 400 && *code < 500) {
    Error error = read_engine_error(*code, event_data, {});
    if (error.code() == Errc::EngineRejected && !shows_where_blocks_are(event_data))
      error.with_reply({.content_type = "application/json", .body = std::string(event_data)});
    return error;
  }
  Said said = what_it_said(event_data);
  if (said.message.empty()) said.message = "the engine ended the stream with an error";
  if (said.message.size() > kLongestMessage) said.message.resize(kLongestMessage);
  return Error(Errc::EngineFailed, std::move(said.message));
}

}  // namespace baton::engine
