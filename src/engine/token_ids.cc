// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "engine/token_ids.h"

#include <charconv>

namespace baton::engine {
namespace {

using model::Version;

// Digits of an id, and its comma.
constexpr std::size_t kUsualIdLength = 7;
constexpr std::size_t kLongestId = 10;

Version first_release_with_chat_ids(model::Engine engine) {
  switch (engine) {
    case model::Engine::Vllm:
      return {.major = 0, .minor = 27, .patch = 0};
    case model::Engine::Sglang:
      return {.major = 0, .minor = 5, .patch = 16};
    case model::Engine::Trtllm:
      break;
  }
  return {.major = 1, .minor = 0, .patch = 0};
}

void append_ids(std::string& out, const prompt::TokenIds& ids) {
  out += '[';
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (i > 0) out += ',';
    char digits[kLongestId];
    const auto written = std::to_chars(digits, digits + sizeof digits, ids[i]);
    out.append(digits, written.ptr);
  }
  out += ']';
}

}  // namespace

bool takes_token_ids(model::Engine engine, Api api, std::optional<Version> version) {
  if (api == Api::Completions) return true;
  return version && *version >= first_release_with_chat_ids(engine);
}

bool sends_token_ids(model::SendTokenIds policy, model::Engine engine, Api api,
                     std::optional<Version> version, Leg leg) {
  if (engine == model::Engine::Trtllm && leg == Leg::Continue) return true;
  switch (policy) {
    case model::SendTokenIds::Always:
      return true;
    case model::SendTokenIds::Never:
      return false;
    case model::SendTokenIds::Auto:
      break;
  }
  return takes_token_ids(engine, api, version);
}

std::string token_ids_json(std::span<const prompt::TokenIds> prompts) {
  std::string json;
  std::size_t ids = 0;
  for (const auto& prompt : prompts) ids += prompt.size() + 1;
  json.reserve(ids * kUsualIdLength);
  if (prompts.size() == 1) {
    append_ids(json, prompts.front());
    return json;
  }
  json += '[';
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    if (i > 0) json += ',';
    append_ids(json, prompts[i]);
  }
  json += ']';
  return json;
}

}  // namespace baton::engine
