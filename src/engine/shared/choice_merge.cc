// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "engine/shared/choice_merge.h"

#include "engine/shared/completion_json.h"
#include "engine/shared/text_patch.h"
#include "engine/shared/usage_total.h"
#include "wire/json_array.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

namespace baton::engine {
namespace {

std::unexpected<Error> refuse(std::string param, std::string message) {
  Error error(Errc::InvalidRequest, std::move(message));
  error.with_param(std::move(param));
  return fail(std::move(error));
}

Result<std::uint32_t> choices_of(const wire::JsonObject& body) {
  const auto raw = body.find("n");
  if (!raw || *raw == "null") return 1;
  const auto n = body.find_integer("n");
  if (!n || *n < 1 || *n > kMostChoices) {
    return refuse("n", fmt::format("n must be an integer from 1 to {}", kMostChoices));
  }
  return static_cast<std::uint32_t>(*n);
}

// One empty view where the body's own prompt is the only one.
Result<std::vector<std::string_view>> prompts_of(Api api, const wire::JsonObject& body) {
  std::vector<std::string_view> only{std::string_view()};
  const auto prompt = api == Api::Completions ? body.find("prompt") : std::nullopt;
  const auto first = prompt ? wire::first_element(*prompt) : std::nullopt;
  const auto is_prompt = [](std::string_view element) {
    return element.front() == '"' || element.front() == '[';
  };
  // A flat list of token ids is one prompt; a list of texts or of lists is several.
  if (!first || !is_prompt(*first)) return only;
  auto prompts = wire::elements(*prompt, kMostBranches + 1);
  if (!std::ranges::all_of(prompts, is_prompt)) {
    return refuse("prompt", "prompt must be text, token ids, or a list of either");
  }
  return prompts.size() == 1 ? only : prompts;
}

bool is_one_search(const wire::JsonObject& body) {
  return body.find_bool("use_beam_search") == true || body.find_integer("best_of") > 1;
}

std::string usage_text(const wire::JsonObject& completion) {
  const auto usage = completion.find_object("usage");
  const bool told = usage && usage->text().size() <= kLongestUsage;
  return told ? std::string(usage->text()) : std::string();
}

Result<wire::JsonObject> choice_of(std::string_view json) {
  auto choice = wire::JsonObject::within(json);
  if (!choice) return fail(Errc::EngineProtocol, "the engine sent a choice that is not an object");
  return std::move(*choice);
}

void set_index(TextPatch& patch, const wire::JsonObject& choice, std::uint32_t index) {
  const std::string number = fmt::format("{}", index);
  if (const auto own = choice.find("index")) {
    patch.replace(*own, number);
  } else {
    patch.replace(choice.text(), wire::JsonSplice(choice).set("index", number).build().joined());
  }
}

}  // namespace

bool wants_greedy_choices(const wire::JsonObject& body) {
  if (!(body.find_integer("n") > 1)) return false;
  const std::string_view text = body.find("temperature").value_or("");
  double temperature = 1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), temperature);
  return error == std::errc() && end == text.data() + text.size() && temperature == 0;
}

Result<std::vector<Branch>> branches_of(Api api, const wire::JsonObject& body) {
  const auto n = choices_of(body);
  if (!n) return fail(n.error());
  const auto prompts = prompts_of(api, body);
  if (!prompts) return fail(prompts.error());
  std::vector<Branch> branches;
  if (*n * prompts->size() == 1 || is_one_search(body)) return branches;
  if (*n * prompts->size() > kMostBranches) {
    return refuse(prompts->size() > 1 ? "prompt" : "n",
                  fmt::format("a request may have at most {} prompts times n", kMostBranches));
  }
  for (const std::string_view prompt : *prompts) {
    for (std::uint32_t choice = 0; choice < *n; ++choice) branches.push_back({choice, prompt});
  }
  return branches;
}

Result<MergedChunk> renumber(std::string_view chunk, std::uint32_t index, std::string_view id) {
  const auto object = wire::JsonObject::parse(chunk);
  if (!object) return fail(Errc::EngineProtocol, "the engine sent a chunk that is not JSON");
  MergedChunk merged;
  merged.usage = usage_text(*object);
  const auto choices = object->find("choices");
  const auto all =
      choices ? wire::elements(*choices, kMostBranches) : std::vector<std::string_view>();
  if (all.empty() && !merged.usage.empty()) return merged;

  TextPatch patch(chunk);
  for (const std::string_view text : all) {
    const auto choice = choice_of(text);
    if (!choice) return fail(choice.error());
    set_index(patch, *choice, index);
  }
  const auto own_id = object->find("id");
  if (own_id) patch.replace(*own_id, wire::json_quote(id));
  merged.json = patch.apply();
  if (own_id && !object->has("usage")) return merged;

  const auto patched = wire::JsonObject::within(merged.json);
  wire::JsonSplice splice(*patched);
  splice.remove("usage");
  if (!own_id) splice.set("id", wire::json_quote(id));
  merged.json = splice.build().joined();
  return merged;
}

Result<std::string> merge_whole(const std::vector<std::string>& completions,
                                std::size_t choices_per_prompt) {
  if (completions.empty()) return fail(Errc::Internal, "there is no completion to merge");
  std::string choices = "[";
  std::vector<std::string> usages;
  for (std::uint32_t index = 0; index < completions.size(); ++index) {
    const auto completion = wire::JsonObject::parse(completions[index]);
    const auto list = completion ? completion->find("choices") : std::nullopt;
    const auto first = list ? wire::first_element(*list) : std::nullopt;
    if (!first) return fail(Errc::EngineProtocol, "the engine's answer has no choices");
    const auto choice = choice_of(*first);
    if (!choice) return fail(choice.error());
    TextPatch patch(*first);
    set_index(patch, *choice, index);
    choices.append(index == 0 ? "" : ",").append(patch.apply());
    usages.push_back(usage_text(*completion));
  }
  const auto frame = wire::JsonObject::parse(completions.front());
  wire::JsonSplice merged(*frame);
  merged.set("choices", choices + "]").remove("usage");
  if (const std::string usage = total_usage(usages, choices_per_prompt); !usage.empty())
    merged.set("usage", usage);
  return merged.build().joined();
}

Result<std::string> usage_event(std::string_view chunk, std::string_view usage) {
  const auto object = wire::JsonObject::parse(chunk);
  if (!object) return fail(Errc::EngineProtocol, "the engine sent a chunk that is not JSON");
  std::string json = "{";
  for (const std::string_view key : {"id", "object", "created", "model", "system_fingerprint"}) {
    if (const auto value = object->find(key)) json += fmt::format(R"("{}":{},)", key, *value);
  }
  return as_event(json.append(R"("choices":[],"usage":)").append(usage).append("}"));
}

}  // namespace baton::engine
