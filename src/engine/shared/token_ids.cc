// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "engine/shared/token_ids.h"

#include <charconv>

namespace baton::engine {
namespace {

using model::Version;

constexpr std::size_t kLongestId = 10;  // digits of the largest one

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

// Into as much room as they may need; returns the end.
char* write_ids(char* out, const tokenizer::TokenIds& ids) {
  *out++ = '[';
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (i > 0) *out++ = ',';
    out = std::to_chars(out, out + kLongestId, ids[i]).ptr;
  }
  *out++ = ']';
  return out;
}

std::size_t room_for(const tokenizer::TokenIds& ids) { return ids.size() * (kLongestId + 1) + 2; }

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

std::string token_ids_json(std::span<const tokenizer::TokenIds> prompts) {
  std::size_t room = 2;
  for (const auto& ids : prompts) room += room_for(ids) + 1;
  std::string json;
  json.resize_and_overwrite(room, [&](char* begin, std::size_t) {
    if (prompts.size() == 1) return write_ids(begin, prompts.front()) - begin;
    char* out = begin;
    *out++ = '[';
    for (std::size_t i = 0; i < prompts.size(); ++i) {
      if (i > 0) *out++ = ',';
      out = write_ids(out, prompts[i]);
    }
    *out++ = ']';
    return out - begin;
  });
  return json;
}

}  // namespace baton::engine
