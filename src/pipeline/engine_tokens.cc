// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "pipeline/engine_tokens.h"

#include "engine/shared/tokenize_request.h"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

namespace baton::pipeline {
namespace {

// Tokenizing is fast; an engine that takes longer than this has no time for it, and the request is
// better off without.
constexpr std::chrono::seconds kPatience{2};
constexpr std::chrono::seconds kPause{5};
constexpr std::chrono::minutes kKnownFor{10};

// Everything that engines look at when they make a prompt of a request that they can be asked for.
constexpr std::array<std::string_view, 16> kPromptFields{"messages",
                                                         "prompt",
                                                         "tools",
                                                         "tool_choice",
                                                         "documents",
                                                         "add_generation_prompt",
                                                         "add_special_tokens",
                                                         "chat_template_kwargs",
                                                         "continue_final_message",
                                                         "reasoning_effort",
                                                         "reasoning",
                                                         "task",
                                                         "mm_processor_kwargs",
                                                         "response_format",
                                                         "separate_reasoning",
                                                         "model"};

std::size_t order_of(model::Role role) {
  switch (role) {
    case model::Role::Prefill:
      return 0;
    case model::Role::Aggregated:
      return 1;
    case model::Role::Decode:
      return 2;
  }
  return 3;
}

}  // namespace

std::string prompt_key(engine::Api api, const wire::JsonObject& body,
                       std::chrono::system_clock::time_point now) {
  std::string key(engine::path_of(api));
  key += fmt::format(" {}", now.time_since_epoch() / kKnownFor);
  for (const std::string_view field : kPromptFields) {
    key += '\n';  // in no JSON text of a member, but for white space between its parts
    key += field;
    if (const auto value = body.find(field)) key.append(" ").append(*value);
  }
  return key;
}

std::shared_ptr<fleet::Worker> worker_to_ask(const fleet::Model& model) {
  using Rank = std::tuple<fleet::EligibilityTier, std::size_t, std::int64_t>;
  std::shared_ptr<fleet::Worker> best;
  Rank best_rank;
  const auto now = std::chrono::steady_clock::now();
  const auto pools = model.pools();
  for (const auto& pool : *pools) {
    for (const model::Role role :
         {model::Role::Prefill, model::Role::Aggregated, model::Role::Decode}) {
      const auto members = pool->workers(role).members();
      for (const auto& worker : members->workers) {
        const auto& spec = worker->spec();
        if (engine::token_route(spec.engine, worker->version()) == engine::TokenRoute::None)
          continue;
        const Rank rank{worker->tier(now), order_of(role), worker->in_flight()};
        if (std::get<0>(rank) >= fleet::EligibilityTier::Down) continue;
        if (best && rank >= best_rank) continue;
        best = worker;
        best_rank = rank;
      }
    }
  }
  return best;
}

awaitable<Result<std::vector<tokenizer::TokenIds>>> EngineTokens::ask(
    const handoff::HandoffRequest& job, std::atomic<bool>& said_route, Cancellation& cancellation) {
  const std::string& name = job.model->name();
  if (const auto quiet = quiet_until_.find(name);
      quiet != quiet_until_.end() && Clock::now() < quiet->second) {
    co_return fail(Errc::EngineTimeout, "no worker could tokenize a moment ago");
  }
  const auto worker = worker_to_ask(*job.model);
  if (!worker) co_return fail(Errc::NoWorkers, "no worker is there that could tokenize");
  const engine::ClientCall call{
      .api = job.api,
      .body = job.body->object(),
      // An adapter speaks as its model does, and this worker may not have it.
      .model = job.by_alias || job.adapter ? std::string_view(name) : std::string_view()};
  auto told = co_await engine::ask_tokens(
      pool_, cpu_, {worker->id(), worker->spec().endpoint}, worker->spec(), worker->version(), call,
      job.headers, {.first_byte = kPatience, .idle = kPatience}, largest_answer_, cancellation);
  if (!told && told.error().info().fault == Fault::Engine &&
      told.error().code() != Errc::EngineRejected) {
    quiet_until_[name] = Clock::now() + kPause;
    // At most once in each pause.
    if (log_)
      log_->write(telemetry::Level::Warning, "a worker could not be asked for tokens",
                  {{"model", name}, {"worker", worker->name()}, {"error", told.error().message()}});
  }
  if (!told) co_return fail(std::move(told.error()));
  if (told->render_refused && log_ && !said_route.exchange(true)) {
    log_->write(telemetry::Level::Warning,
                "a worker does not render requests, so /tokenize is asked, which knows fewer of "
                "their fields; vLLM renders with --enable-scale-out",
                {{"model", name}, {"worker", worker->name()}});
  }
  co_return std::move(told->prompts);
}

}  // namespace baton::pipeline
