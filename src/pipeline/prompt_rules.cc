// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "pipeline/prompt_rules.h"

#include "fleet/worker.h"
#include "model/worker.h"

#include <algorithm>
#include <utility>

namespace baton::pipeline {
namespace {

template <class Visit>
void each_worker(const fleet::Model& model, Visit visit) {
  const auto pools = model.pools();
  for (const auto& pool : *pools) {
    for (const model::Role role :
         {model::Role::Prefill, model::Role::Decode, model::Role::Aggregated}) {
      const auto members = pool->workers(role).members();
      for (const auto& worker : members->workers) visit(*worker);
    }
  }
}

prompt::Rules rules_of_worker(const fleet::Worker& worker) {
  prompt::Rules rules = prompt::rules_of(worker.spec().engine, worker.version());
  rules.chats_in_code = worker.renders_chats_in_code();
  return rules;
}

Result<prompt::Prepared> prepare_one(const prompt::Preprocessor& preprocessor, engine::Api api,
                                     const wire::JsonObject& body,
                                     const prompt::RenderContext& context) {
  return api == engine::Api::Chat ? preprocessor.chat(body, context)
                                  : preprocessor.completion(body, context);
}

}  // namespace

std::vector<prompt::Rules> rules_in(const fleet::Model& model) {
  std::vector<prompt::Rules> found;
  each_worker(model, [&](const fleet::Worker& worker) {
    const prompt::Rules rules = rules_of_worker(worker);
    if (std::ranges::find(found, rules) == found.end()) found.push_back(rules);
  });
  if (found.empty()) found.emplace_back();
  return found;
}

Result<prompt::Prepared> prepare(const prompt::Preprocessor& preprocessor, engine::Api api,
                                 const wire::JsonObject& body, prompt::RenderContext context,
                                 std::span<const prompt::Rules> rules) {
  context.rules = rules.front();
  auto made = prepare_one(preprocessor, api, body, context);
  for (const prompt::Rules& others : rules.subspan(1)) {
    if (made && (made->too_much || !made->exact())) break;
    if (!made && made.error().code() == Errc::ClientGone) break;
    context.rules = others;
    auto other = prepare_one(preprocessor, api, body, context);
    if (other && other->too_much) return other;
    if (!made && !other) continue;
    if (made && other && other->exact() && made->prompts == other->prompts) continue;
    // A body that one release refuses, another may take.
    prompt::Prepared inexact;
    if (made) inexact = *std::move(made);
    inexact.inexact = "workers of several releases make different prompts of it";
    return inexact;
  }
  return made;
}

std::optional<std::uint64_t> max_model_len(const fleet::Model& model) {
  std::optional<std::uint64_t> least;
  each_worker(model, [&](const fleet::Worker& worker) {
    const auto length = worker.max_model_len();
    if (length) least = std::min(least.value_or(*length), *length);
  });
  return least;
}

}  // namespace baton::pipeline
