// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "prompt/completion_prompts.h"

#include "prompt/members.h"
#include "prompt/refusal.h"
#include "wire/json_array.h"
#include "wire/json_text.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

namespace baton::prompt {
namespace {

bool is_text(std::string_view json) { return json.front() == '"'; }
bool is_array(std::string_view json) { return json.front() == '['; }

std::string text_of(std::string_view json) {
  return wire::unescape(json.substr(1, json.size() - 2));
}

Result<std::vector<CompletionPrompt>> list_of(std::string_view array) {
  std::vector<CompletionPrompt> prompts;
  for (const std::string_view element : wire::elements(array, kMostPrompts)) {
    const std::string place = fmt::format("prompt[{}]", prompts.size());
    if (is_text(element)) {
      prompts.emplace_back(text_of(element));
    } else if (is_array(element)) {
      auto ids = token_ids_of(element, place);
      if (!ids) return fail(ids.error());
      prompts.emplace_back(std::move(*ids));
    } else {
      return refuse(place, "must be text or a list of token ids, as the first one is");
    }
  }
  return prompts;
}

}  // namespace

// An array of ids can be long: it is walked in place.
Result<tokenizer::TokenIds> token_ids_of(std::string_view array, const std::string& place) {
  tokenizer::TokenIds ids;
  std::size_t at = wire::skip_space(array, 1);
  while (at < array.size() && array[at] != ']') {
    const std::size_t end = wire::skip_value(array, at);
    tokenizer::TokenId id = 0;
    const auto read = std::from_chars(array.data() + at, array.data() + end, id);
    if (read.ec != std::errc() || read.ptr != array.data() + end) {
      return refuse(fmt::format("{}[{}]", place, ids.size()), "must be a token id");
    }
    ids.push_back(id);
    at = wire::skip_space(array, end);
    if (at < array.size() && array[at] == ',') at = wire::skip_space(array, at + 1);
  }
  return ids;
}

bool has_too_many_prompts(const wire::JsonObject& body) {
  const auto prompt = body.find("prompt");
  if (!prompt || !is_array(*prompt)) return false;
  const auto first = wire::first_element(*prompt);
  if (!first || !(is_text(*first) || is_array(*first))) return false;
  return wire::elements(*prompt, kMostPrompts + 1).size() > kMostPrompts;
}

Result<std::vector<CompletionPrompt>> completion_prompts(const wire::JsonObject& body) {
  const auto prompt = body.find("prompt");
  std::vector<CompletionPrompt> prompts;
  if (!prompt || *prompt == "null") return prompts;
  if (is_text(*prompt)) {
    prompts.emplace_back(text_of(*prompt));
    return prompts;
  }
  if (!is_array(*prompt)) return refuse("prompt", "must be text, token ids, or a list of either");
  const auto first = wire::first_element(*prompt);
  if (!first) return refuse("prompt", "must not be an empty list");
  if (is_text(*first) || is_array(*first)) return list_of(*prompt);
  auto ids = token_ids_of(*prompt, "prompt");
  if (!ids) return fail(ids.error());
  prompts.emplace_back(std::move(*ids));
  return prompts;
}

std::string completion_inexact(const wire::JsonObject& body) {
  if (is_given(body, "prompt_embeds")) return "prompt_embeds is set";
  if (is_given(body, "suffix")) return "suffix is set";
  if (is_given(body, "truncate_prompt_tokens")) return "truncate_prompt_tokens is set";
  if (has_too_many_prompts(body))
    return fmt::format("there are more than {} prompts", kMostPrompts);
  return {};
}

std::vector<tokenizer::TokenIds> given_token_ids(const wire::JsonObject& body) {
  const auto prompt = body.find("prompt");
  // A long text need not be read to see that it is one.
  if (!prompt || !is_array(*prompt)) return {};
  if (!completion_inexact(body).empty()) return {};
  auto prompts = completion_prompts(body);
  if (!prompts) return {};
  std::vector<tokenizer::TokenIds> given;
  for (CompletionPrompt& one : *prompts) {
    auto* const ids = std::get_if<tokenizer::TokenIds>(&one);
    if (ids == nullptr || ids->empty()) return {};
    given.push_back(std::move(*ids));
  }
  return given;
}

}  // namespace baton::prompt
