// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
// The prompts of a request, as text or as token ids.
#include "model/version.h"
#include "tools/sim/answer.h"
#include "tools/sim/dialect.h"
#include "tools/sim/dialect_fields.h"
#include "tools/sim/prompt.h"
#include "tools/sim/vllm_prompt.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <utility>

namespace baton::sim {
namespace {

using model::Engine;
using nlohmann::json;

// The first releases that look for token ids beside a chat's messages.
constexpr model::Version kFirstVllm{.major = 0, .minor = 27, .patch = 0};
constexpr model::Version kFirstSglang{.major = 0, .minor = 5, .patch = 16};
constexpr model::Version kFirstTrtllm{.major = 1, .minor = 0, .patch = 0};

// Token ids that stand in for the text of a chat, in the field each engine has for it. A release
// that does not know the field renders the messages.
const json* chat_token_ids(const Options& options, const json& body) {
  switch (options.engine) {
    case Engine::Vllm: {
      const json* params = field(body, "kv_transfer_params");
      return params != nullptr && params->is_object() && options.release() >= kFirstVllm
                 ? field(*params, "prompt_token_ids")
                 : nullptr;
    }
    case Engine::Sglang:
      return options.release() >= kFirstSglang ? field(body, "input_ids") : nullptr;
    case Engine::Trtllm:
      return field(body, "prompt_token_ids");
  }
  return nullptr;
}

// True if the given ids are the text's own ids, or these and a part of an answer.
bool follows_from(const std::vector<TokenId>& ids, const std::vector<TokenId>& own) {
  return ids.size() >= own.size() && std::equal(own.begin(), own.end(), ids.begin()) &&
         std::all_of(ids.begin() + static_cast<std::ptrdiff_t>(own.size()), ids.end(),
                     is_output_token);
}

// Messages beside token ids must be there, and are not rendered.
Result<void> read_chat_ids(const json& ids, const json& body, const PromptText& text,
                           GenerationRequest& out) {
  if (!ids.is_array()) return fail(Errc::InvalidRequest, "token ids must be a list");
  const json* messages = field(body, "messages");
  if (messages == nullptr || !messages->is_array() || messages->empty()) {
    return fail(Errc::InvalidRequest, "messages: a non-empty list is required");
  }
  auto tokens = token_list(ids, "token ids");
  if (!tokens) return fail(std::move(tokens.error()));
  out.with_token_ids = true;
  if (text.tokens.can_be_known()) {
    const auto own = text.tokens.prompts(Api::Chat, body, text.raw);
    out.token_mismatch = !own || !follows_from(*tokens, own->front());
  }
  out.prompts.push_back(std::move(*tokens));
  return {};
}

bool has_ids(const json* prompt) {
  if (prompt == nullptr || !prompt->is_array() || prompt->empty()) return false;
  return prompt->front().is_number() || prompt->front().is_array();
}

// The prompts that SGLang's completions echo. Ids become their text, or the ids as JSON if they
// have none.
// text.
std::vector<std::string> echoes_of(const json& body, const PromptText& text,
                                   const std::vector<std::vector<TokenId>>& prompts) {
  const json* given = field(body, "prompt");
  std::vector<std::string> echoes;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    const json& one = given->is_array() && !has_ids(given) ? (*given)[i] : *given;
    if (one.is_string()) {
      echoes.push_back(one.get<std::string>());
    } else {
      echoes.push_back(text.tokens.text(prompts[i], false).value_or(json(prompts[i]).dump()));
    }
  }
  return echoes;
}

Result<void> check_sglang_length(const Options& options, std::uint64_t prompt,
                                 std::uint64_t asked) {
  const std::uint64_t most = options.max_model_len;
  if (prompt >= most) {
    return fail(Errc::InvalidRequest,
                fmt::format("The input ({} tokens) is longer than the model's context length ({} "
                            "tokens).",
                            prompt, most));
  }
  if (prompt + asked <= most) return {};
  return fail(Errc::InvalidRequest,
              fmt::format("Requested token count exceeds the model's maximum context length of {} "
                          "tokens. You requested a total of {} tokens: {} tokens from the input "
                          "messages and {} tokens for the completion. Please reduce the number of "
                          "tokens in the input messages or the completion to fit within the limit.",
                          most, prompt + asked, prompt, asked));
}

void read_sglang_completion(const json& body, const PromptText& text, GenerationRequest& out) {
  if (const json* logprobs = field(body, "logprobs"); logprobs != nullptr)
    out.logprobs = *logprobs > 0 ? logprobs->get<std::uint32_t>() : 0;
  if (is_true(body, "echo")) out.echoes = echoes_of(body, text, out.prompts);
}

}  // namespace

Result<void> read_prompts(const Options& options, const json& body, const PromptText& text,
                          GenerationRequest& out) {
  if (options.engine == Engine::Vllm) {
    if (auto input = check_vllm_input(options, body, out.api); !input) return input;
  }
  const json* ids = out.api == Api::Chat ? chat_token_ids(options, body) : nullptr;
  if (ids != nullptr) {
    if (options.engine == Engine::Trtllm && options.release() < kFirstTrtllm)
      return fail(Errc::InvalidRequest, "Extra inputs are not permitted: body.prompt_token_ids");
    if (auto read = read_chat_ids(*ids, body, text, out); !read) return read;
  } else {
    auto prompts = text.tokens.prompts(out.api, body, text.raw);
    if (!prompts) return fail(std::move(prompts.error()));
    out.prompts = std::move(*prompts);
    out.with_token_ids = out.api == Api::Completions && has_ids(field(body, "prompt"));
  }
  if (options.engine == Engine::Vllm) {
    if (auto fits = check_vllm_lengths(options, body, out); !fits) return fits;
    add_vllm_texts(body, text.tokens, out);
    return {};
  }
  const bool sglang = options.engine == Engine::Sglang;
  if (sglang && out.api == Api::Completions) read_sglang_completion(body, text, out);
  const std::uint64_t asked = out.max_tokens.value_or(sglang ? 0 : 1);
  for (const auto& prompt : out.prompts) {
    if (sglang) {
      if (auto fits = check_sglang_length(options, prompt.size(), asked); !fits) return fits;
      continue;
    }
    if (prompt.size() + asked > options.max_model_len) {
      return fail(Errc::InvalidRequest,
                  fmt::format("This model's maximum context length is {} tokens. However, you "
                              "requested {} output tokens and your prompt contains {} tokens.",
                              options.max_model_len, asked, prompt.size()));
    }
  }
  return {};
}

}  // namespace baton::sim
