// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "engine/shared/tokenize_request.h"
#include "fuzz/fuzz_input.h"
#include "wire/json_object.h"

#include <string>

namespace {

using namespace baton;
using fuzz::require;

constexpr std::uint32_t kLargestId = 2147483647;

void read_answer(const std::string& answer) {
  const auto read = engine::read_token_ids(answer);
  if (!read) {
    require(!read.error().message().empty(), "a refusal says why");
    return;
  }
  for (const auto& ids : *read) {
    require(!ids.empty(), "a prompt has tokens");
    for (const auto id : ids) require(id <= kLargestId, "an id is in range");
  }
}

// The same bytes as a client's request, asked about in every way.
void ask(std::string_view text) {
  const auto body = wire::JsonObject::parse(text);
  if (!body) return;
  for (const auto api : {engine::Api::Chat, engine::Api::Completions}) {
    const engine::ClientCall call{.api = api, .body = *body, .model = "m"};
    for (const auto route : {engine::TokenRoute::Render, engine::TokenRoute::Tokenize}) {
      for (const auto kind : {model::Engine::Vllm, model::Engine::Sglang}) {
        const auto question = engine::token_question(call, kind, route);
        if (!question) continue;
        for (const auto& part : question->parts) {
          require(part.body.empty() || wire::JsonObject::parse(part.body).has_value(),
                  "a question is JSON");
        }
      }
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fuzz::Input input(data, size);
  read_answer(std::string(input.bytes));
  ask(input.bytes);
  return 0;
}
