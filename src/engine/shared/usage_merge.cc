// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "engine/shared/usage_merge.h"

#include "engine/shared/text_patch.h"
#include "wire/json_array.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace baton::engine {
namespace {

constexpr std::string_view kInputLogprobs = "input_token_logprobs";
constexpr std::string_view kPromptDetails = "prompt_tokens_details";
constexpr std::string_view kNoDetails = "{}";
// Members about the worker's own cache. The others describe the prompt, on whichever worker it is
// computed.
constexpr std::array<const char*, 2> kCacheClaims{"cached_tokens", "created_cache_tokens"};

// Replaces values in place, if the decode worker's details have every member of the prefill
// worker's, as they do within one release. False: replacing in place is not enough.
bool replace_values(const wire::JsonObject& decode, const wire::JsonObject& prefill,
                    TextPatch& patch) {
  for (const char* claim : kCacheClaims) {
    if (decode.has(claim) && !prefill.has(claim)) return false;
  }
  bool enough = true;
  std::vector<std::pair<std::string_view, std::string_view>> changes;
  prefill.each([&](std::string_view key, std::string_view value) {
    const auto own = decode.find(key);
    const auto last = prefill.find(key);
    if (!last || last->data() != value.data()) {
      enough = false;  // a key that is escaped, or twice there
    } else if (!own) {
      enough = enough && value == "null";
    } else if (*own != value) {
      changes.emplace_back(*own, value);
    }
  });
  if (!enough) return false;
  for (const auto& [own, value] : changes) patch.replace(own, std::string(value));
  return true;
}

// The decode worker's details with all that the prefill worker's say; empty where nothing changes.
// A null adds no member: whole answers, as the prefill's is, have nulls that streams leave out.
std::string honest_details(std::string_view decode, std::string_view prefill) {
  using Details = nlohmann::ordered_json;
  const Details before = Details::parse(decode, nullptr, false);
  const Details said =
      prefill.empty() ? Details::object() : Details::parse(prefill, nullptr, false);
  if (!before.is_object() || !said.is_object()) return {};
  Details after = before;
  for (const auto& [key, value] : said.items()) {
    if (!value.is_null() || after.contains(key)) after[key] = value;
  }
  for (const char* claim : kCacheClaims) {
    if (!said.contains(claim)) after.erase(claim);
  }
  return after == before ? std::string()
                         : after.dump(-1, ' ', false, Details::error_handler_t::replace);
}

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

// The lists of a completion's logprobs, one entry for each token.
constexpr std::array<std::string_view, 4> kLists{"text_offset", "token_logprobs", "tokens",
                                                 "top_logprobs"};
constexpr std::size_t kMostEntries = std::size_t{1} << 24U;

std::string_view inside(std::string_view list) { return list.substr(1, list.size() - 2); }

// The prompt's share of a completion's logprobs: all but the tokens that were produced.
std::string prompt_lists(const wire::JsonObject& completion) {
  const auto choice = first_choice_of(completion);
  const auto logprobs = choice ? choice->find_object("logprobs") : std::nullopt;
  if (!logprobs) return {};
  const auto usage = usage_of(completion);
  const auto produced =
      static_cast<std::size_t>(std::max<std::int64_t>(0, usage ? usage->completion_tokens : 1));
  const auto tokens = logprobs->find("tokens");
  const std::size_t all = tokens ? wire::elements(*tokens, kMostEntries).size() : 0;
  if (all <= produced) return {};
  std::string lists;
  for (const std::string_view name : kLists) {
    const auto list = logprobs->find(name);
    const auto entries =
        list ? wire::elements(*list, kMostEntries) : std::vector<std::string_view>();
    if (entries.size() != all) continue;
    // From the first one to the end of the last one, as the engine wrote it.
    const std::string_view last = entries[all - produced - 1];
    const auto size = static_cast<std::size_t>(last.data() + last.size() - entries[0].data());
    lists += fmt::format(R"({}"{}":[{}])", lists.empty() ? "{" : ",", name,
                         std::string_view(entries[0].data(), size));
  }
  return lists.empty() ? lists : lists + "}";
}

std::optional<std::string> merge_lists(std::string_view json, const wire::JsonObject& completion,
                                       std::string_view prompt) {
  const auto lists = wire::JsonObject::within(prompt);
  const auto choice = first_choice_of(completion);
  const auto logprobs = choice ? choice->find_object("logprobs") : std::nullopt;
  if (!lists || !logprobs) return std::nullopt;
  // A worker that has them says more entries than it produced tokens.
  const auto usage = usage_of(completion);
  const auto tokens = logprobs->find("tokens");
  const std::size_t entries = tokens ? wire::elements(*tokens, kMostEntries).size() : 0;
  if (usage && std::cmp_greater(entries, usage->completion_tokens)) return std::nullopt;
  TextPatch patch(json);
  for (const std::string_view name : kLists) {
    const auto before = lists->find(name);
    const auto own = logprobs->find(name);
    if (!before || !own || !own->starts_with('[')) continue;
    const bool empty = !wire::first_element(*own);
    patch.replace(*own, fmt::format("[{}{}{}]", inside(*before), empty ? "" : ",",
                                    empty ? std::string_view() : inside(*own)));
  }
  if (patch.empty()) return std::nullopt;
  return patch.apply();
}

}  // namespace

bool wants_input_logprobs(const wire::JsonObject& body) {
  return body.find_bool("echo") == true && body.find_integer("logprobs").value_or(0) > 0;
}

std::optional<std::string> rewrite_usage(std::string_view json, const Usage& prefill,
                                         AnswerForm form) {
  const auto completion = wire::JsonObject::parse(json);
  const auto usage = completion ? completion->find_object("usage") : std::nullopt;
  if (!usage || usage->text().size() > kLongestUsage) return std::nullopt;
  const auto details = usage->find_object(kPromptDetails);
  if (!details && prefill.prompt_details.empty()) return std::nullopt;
  TextPatch patch(json);
  const auto said = details && !prefill.prompt_details.empty()
                        ? wire::JsonObject::within(prefill.prompt_details)
                        : std::nullopt;
  if (said && replace_values(*details, *said, patch))
    return patch.empty() ? std::nullopt : std::optional(patch.apply());
  const std::string_view own = details ? details->text() : kNoDetails;
  std::string honest = honest_details(own, prefill.prompt_details);
  if (honest.empty()) return std::nullopt;
  if (honest == kNoDetails && form == AnswerForm::Streamed) {
    patch.replace(usage->text(), wire::JsonSplice(*usage).remove(kPromptDetails).build().joined());
  } else if (details) {
    patch.replace(details->text(), honest == kNoDetails ? "null" : std::move(honest));
  } else {
    patch.replace(usage->text(),
                  wire::JsonSplice(*usage).set(kPromptDetails, honest).build().joined());
  }
  return patch.apply();
}

std::string input_logprobs_of(const wire::JsonObject& completion) {
  const auto found = find_input_logprobs(completion);
  if (found && wire::first_element(*found)) return std::string(*found);
  return prompt_lists(completion);
}

std::optional<std::string> merge_input_logprobs(std::string_view json, std::string_view logprobs) {
  if (logprobs.empty()) return std::nullopt;
  const auto completion = wire::JsonObject::parse(json);
  if (!completion) return std::nullopt;
  if (logprobs.starts_with('{')) return merge_lists(json, *completion, logprobs);
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
