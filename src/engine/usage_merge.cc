// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "engine/usage_merge.h"

#include "engine/text_patch.h"
#include "wire/json_array.h"

#include <fmt/format.h>

namespace baton::engine {
namespace {

constexpr std::string_view kInputLogprobs = "input_token_logprobs";

std::optional<wire::JsonObject> first_choice_of(const wire::JsonObject& completion) {
  const auto choices = completion.find("choices");
  const auto first = choices ? wire::first_element(*choices) : std::nullopt;
  return first ? wire::JsonObject::within(*first) : std::nullopt;
}

// The engine puts them into the choice, or into the meta information of choice or answer.
std::optional<std::string_view> find_input_logprobs(const wire::JsonObject& completion) {
  const auto inside = [](const wire::JsonObject& object) -> std::optional<std::string_view> {
    if (const auto own = object.find(kInputLogprobs)) return own;
    const auto meta = object.find_object("meta_info");
    return meta ? meta->find(kInputLogprobs) : std::nullopt;
  };
  const auto choice = first_choice_of(completion);
  if (const auto found = choice ? inside(*choice) : std::nullopt) return found;
  return inside(completion);
}

}  // namespace

std::optional<std::string> rewrite_usage(std::string_view json, const Usage& prefill) {
  const auto completion = wire::JsonObject::parse(json);
  const auto usage = completion ? completion->find_object("usage") : std::nullopt;
  if (!usage) return std::nullopt;
  const auto details = usage->find_object("prompt_tokens_details");
  const auto claim = details ? details->find("cached_tokens") : std::nullopt;
  TextPatch patch(json);
  if (!prefill.cached_tokens) {
    if (!claim) return std::nullopt;
    patch.replace(details->text(),
                  wire::JsonSplice(*details).remove("cached_tokens").build().joined());
    return patch.apply();
  }
  const std::string cached = fmt::format("{}", *prefill.cached_tokens);
  if (claim) {
    patch.replace(*claim, cached);
  } else if (details) {
    patch.replace(details->text(),
                  wire::JsonSplice(*details).set("cached_tokens", cached).build().joined());
  } else {
    patch.replace(usage->text(), wire::JsonSplice(*usage)
                                     .set("prompt_tokens_details",
                                          fmt::format(R"({{"cached_tokens":{}}})", cached))
                                     .build()
                                     .joined());
  }
  return patch.apply();
}

std::string input_logprobs_of(const wire::JsonObject& completion) {
  const auto found = find_input_logprobs(completion);
  return found && wire::first_element(*found) ? std::string(*found) : std::string();
}

std::optional<std::string> merge_input_logprobs(std::string_view json, std::string_view logprobs) {
  const auto completion = wire::JsonObject::parse(json);
  if (!completion || logprobs.empty()) return std::nullopt;
  TextPatch patch(json);
  if (const auto own = find_input_logprobs(*completion)) {
    patch.replace(*own, std::string(logprobs));
    return patch.apply();
  }
  const auto choice = first_choice_of(*completion);
  if (!choice) return std::nullopt;
  patch.replace(choice->text(),
                wire::JsonSplice(*choice).set(kInputLogprobs, logprobs).build().joined());
  return patch.apply();
}

}  // namespace baton::engine
