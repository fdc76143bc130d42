// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/sim/vllm_prompt.h"

#include "tools/sim/answer.h"
#include "tools/sim/dialect_fields.h"
#include "tools/sim/vllm_body.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <utility>

namespace baton::sim {
namespace {

using nlohmann::json;

Result<void> check_parts(const Options& options, const json& message) {
  const json* content = field(message, "content");
  if (content == nullptr || !content->is_array()) return {};
  static constexpr std::array kMedia{"image_url", "image_embeds", "input_audio",
                                     "audio_url", "audio_embeds", "video_url"};
  for (const json& part : *content) {
    const json type = part.is_object() ? part.value("type", json()) : json();
    if (type == "text" || type == "refusal" || type == "thinking") continue;
    bool media = false;
    for (const char* one : kMedia) media = media || type == one;
    if (!media)
      return fail(refused_request("validation errors for ValidatorIterator: unknown part type"));
    if (!options.multimodal)
      return fail(refused_request(fmt::format("{} is not a multimodal model", options.model)));
  }
  return {};
}

// The text that prompt `index` was given as; null where it came as ids, or is a chat.
const json* text_of_prompt(const json& body, std::size_t index) {
  const json* prompt = field(body, "prompt");
  if (prompt == nullptr) return nullptr;
  if (prompt->is_array() && index < prompt->size()) prompt = &(*prompt)[index];
  return prompt->is_string() ? prompt : nullptr;
}

std::string text_of_token(const TokenSource& tokens, TokenId id) {
  if (auto known = tokens.text(std::span(&id, 1), false)) return *std::move(known);
  return is_output_token(id) ? " " + word_of_output_token(id) : fmt::format("<{}>", id);
}

std::vector<std::string> texts_of(const std::vector<TokenId>& ids, const json* text,
                                  const TokenSource& tokens) {
  std::vector<std::string> texts;
  if (text != nullptr && !tokens.can_be_known()) {
    for (const std::string_view piece : pieces_of(text->get_ref<const std::string&>()))
      texts.emplace_back(piece);
    return texts;
  }
  texts.reserve(ids.size());
  for (const TokenId id : ids) texts.push_back(text_of_token(tokens, id));
  return texts;
}

}  // namespace

Result<void> check_vllm_input(const Options& options, const json& body, Api api) {
  if (api == Api::Chat) {
    const json& messages = body["messages"];
    if (messages.empty()) {
      return fail(refused_request(
          "Cannot apply chat template to an empty conversation. Provide at least one message."));
    }
    for (const json& message : messages) {
      if (auto checked = check_parts(options, message); !checked) return checked;
    }
    return {};
  }
  const json& prompt = body["prompt"];
  if (prompt.is_array() && prompt.empty())
    return fail(refused_request("You must pass at least one prompt"));
  for (std::size_t i = 0; prompt.is_array() && i < prompt.size(); ++i) {
    if (prompt[i] == "" || (prompt[i].is_array() && prompt[i].empty()))
      return fail(refused_request("The decoder prompt cannot be empty"));
  }
  return {};
}

Result<void> check_vllm_lengths(const Options& options, const json& body,
                                const GenerationRequest& request) {
  for (std::size_t i = 0; i < request.prompts.size(); ++i) {
    const auto unknown =
        std::ranges::find_if(request.prompts[i], [](TokenId id) { return id >= kVocabularySize; });
    if (options.tokenizer.empty() && unknown != request.prompts[i].end())
      return fail(refused_request(fmt::format("Token id {} is out of vocabulary", *unknown)));
    const std::size_t length = request.prompts[i].size();
    if (length < options.max_model_len) continue;
    // A text is not tokenized further than it takes to know.
    const bool text = request.api == Api::Chat || text_of_prompt(body, i) != nullptr;
    const std::size_t told = text ? std::size_t{options.max_model_len} + 1 : length;
    return fail(refused_parameter(
        fmt::format("This model's maximum context length is {} tokens. However, your prompt "
                    "contains {}{} input tokens, which exceeds this limit even without any output "
                    "tokens. Please reduce the length of the input prompt.",
                    options.max_model_len, text ? "at least " : "", told),
        "input_tokens", fmt::format("{}", told)));
  }
  return {};
}

void add_vllm_texts(const json& body, const TokenSource& tokens, GenerationRequest& out) {
  if (out.prompt_text) {
    for (const std::string& piece : texts_of(out.prompts.front(), nullptr, tokens))
      *out.prompt_text += piece;
  }
  if (!out.prompt_logprobs && !(out.echo && out.api == Api::Completions)) return;
  for (std::size_t i = 0; i < out.prompts.size(); ++i)
    out.pieces.push_back(texts_of(out.prompts[i], text_of_prompt(body, i), tokens));
}

}  // namespace baton::sim
