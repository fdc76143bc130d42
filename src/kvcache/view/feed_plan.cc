// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvcache/view/feed_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace baton::kvcache {
namespace {

// vLLM's default; without events any size will do.
constexpr std::uint32_t kUsualBlockSize = 16;

std::string endpoint_text(const model::Endpoint& endpoint, const model::Endpoint& worker) {
  const std::string& host = endpoint.host.empty() ? worker.host : endpoint.host;
  return "tcp://" + model::Endpoint{host, endpoint.port}.to_string();
}

}  // namespace

std::string endpoint_of_rank(const std::string& endpoint, std::uint32_t rank) {
  if (rank == 0 || endpoint.empty()) return endpoint;
  const std::size_t colon = endpoint.rfind(':');
  std::uint32_t port = 0;
  std::from_chars(endpoint.data() + colon + 1, endpoint.data() + endpoint.size(), port);
  return fmt::format("{}{}", endpoint.substr(0, colon + 1), port + rank);
}

FeedPlan plan_feed(const model::WorkerSpec& spec, const engine::Facts* facts, std::uint32_t rank) {
  if (spec.kv_feed) {
    if (spec.kv_feed->events.empty()) return {};
    return {.way = FeedPlan::Way::Subscribe,
            .events = endpoint_of_rank(spec.kv_feed->events, rank),
            .replay = endpoint_of_rank(spec.kv_feed->replay, rank),
            .topic = spec.kv_feed->topic,
            .block_size = spec.block_size};
  }
  // SGLang's decode workers have no cache to speak of, unless it is configured.
  const bool caches = spec.engine != model::Engine::Sglang || spec.role != model::Role::Decode;
  if (facts != nullptr && facts->kv_events && caches) {
    const engine::Facts::KvEvents& events = *facts->kv_events;
    const model::Endpoint replay{events.endpoint.host, events.replay_port};
    const bool repeats = events.replay_port != 0;
    return {.way = FeedPlan::Way::Subscribe,
            .events = endpoint_of_rank(endpoint_text(events.endpoint, spec.endpoint), rank),
            .replay = repeats ? endpoint_of_rank(endpoint_text(replay, spec.endpoint), rank) : "",
            .topic = events.topic,
            .block_size = spec.block_size};
  }
  // TensorRT-LLM's events come with its HTTP server; its decode workers were seen to report none.
  if (spec.engine == model::Engine::Trtllm && spec.role != model::Role::Decode)
    return {.way = FeedPlan::Way::Poll,
            .events = {},
            .replay = {},
            .topic = {},
            .block_size = spec.block_size};
  return {};
}

BlockShape block_shape(const model::WorkerSpec& spec, const engine::Facts* facts) {
  if (spec.block_size) return {.size = *spec.block_size};
  if (facts != nullptr && facts->block_size && *facts->block_size > 0)
    return {.size = *facts->block_size};
  return {.size = kUsualBlockSize};
}

std::string adapter_of(const engine::Facts* facts, std::string_view model) {
  const auto* card = facts == nullptr ? nullptr : engine::find_card(*facts, model);
  return card == nullptr || card->parent.empty() ? std::string() : card->id;
}

bool serves_adapters(const engine::Facts& facts) {
  return std::ranges::any_of(facts.models, [](const auto& card) { return !card.parent.empty(); });
}

Hidden hidden_by(model::Engine engine, std::optional<model::Version> version) {
  const auto before = [&](model::Version release) { return version && *version < release; };
  switch (engine) {
    case model::Engine::Vllm:
      return {.salts = before({0, 17, 0})};
    case model::Engine::Sglang:
      return {.salts = before({0, 5, 18}), .adapters = before({0, 5, 23}), .keys = true};
    case model::Engine::Trtllm:
      break;
  }
  return {};
}

}  // namespace baton::kvcache
