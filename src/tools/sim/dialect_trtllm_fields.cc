// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/sim/dialect.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <string_view>

namespace baton::sim {
namespace {

// Both endpoints: OpenAI's fields and TensorRT-LLM's own sampling and cache fields.
constexpr std::array<std::string_view, 47> kShared{"model",
                                                   "frequency_penalty",
                                                   "logit_bias",
                                                   "logprobs",
                                                   "max_tokens",
                                                   "n",
                                                   "presence_penalty",
                                                   "seed",
                                                   "stop",
                                                   "stream",
                                                   "stream_options",
                                                   "temperature",
                                                   "top_p",
                                                   "user",
                                                   "best_of",
                                                   "use_beam_search",
                                                   "top_k",
                                                   "top_p_min",
                                                   "min_p",
                                                   "repetition_penalty",
                                                   "length_penalty",
                                                   "early_stopping",
                                                   "stop_token_ids",
                                                   "include_stop_str_in_output",
                                                   "ignore_eos",
                                                   "min_tokens",
                                                   "skip_special_tokens",
                                                   "spaces_between_special_tokens",
                                                   "truncate_prompt_tokens",
                                                   "return_context_logits",
                                                   "detokenize",
                                                   "add_special_tokens",
                                                   "response_format",
                                                   "lora_request",
                                                   "disaggregated_params",
                                                   "conversation_params",
                                                   "cache_salt",
                                                   "priority",
                                                   "echo",
                                                   "prompt_ignore_length",
                                                   "beam_width",
                                                   "no_repeat_ngram_size",
                                                   "thinking_token_budget",
                                                   "metadata",
                                                   "store",
                                                   "service_tier",
                                                   "agent_hierarchy"};
constexpr std::array<std::string_view, 2> kCompletions{"prompt", "suffix"};
constexpr std::array<std::string_view, 14> kChat{"messages",
                                                 "max_completion_tokens",
                                                 "top_logprobs",
                                                 "tools",
                                                 "tool_choice",
                                                 "parallel_tool_calls",
                                                 "reasoning_effort",
                                                 "prompt_token_ids",
                                                 "add_generation_prompt",
                                                 "documents",
                                                 "chat_template",
                                                 "chat_template_kwargs",
                                                 "mm_processor_kwargs",
                                                 "media_io_kwargs"};

bool is_known(Api api, std::string_view name) {
  if (std::ranges::find(kShared, name) != kShared.end()) return true;
  return api == Api::Chat ? std::ranges::find(kChat, name) != kChat.end()
                          : std::ranges::find(kCompletions, name) != kCompletions.end();
}

}  // namespace

Result<void> refuse_unknown_trtllm_fields(Api api, const nlohmann::json& body) {
  for (const auto& [name, value] : body.items()) {
    if (is_known(api, name)) continue;
    return fail(
        Error(Errc::InvalidRequest, fmt::format("Extra inputs are not permitted: body.{}", name)));
  }
  return {};
}

}  // namespace baton::sim
