// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "engine/shared/running_requests.h"

#include "http_client/fetch.h"
#include "wire/http_status.h"
#include "wire/json_array.h"
#include "wire/json_object.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <span>
#include <utility>

namespace baton::engine {
namespace {

using Count = std::optional<std::uint64_t>;

using wire::kOk;
constexpr std::size_t kMostRanksRunning = 4096;
constexpr std::int64_t kMostRequests = 1'000'000'000;  // of a series: sums stay numbers

constexpr std::array<std::string_view, 2> kVllmSeries{"vllm:num_requests_running",
                                                      "vllm:num_requests_waiting"};
// A hand-off under way stands in none of the first two.
constexpr std::array<std::string_view, 6> kSglangSeries{"sglang:num_running_reqs",
                                                        "sglang:num_queue_reqs",
                                                        "sglang:num_prefill_bootstrap_queue_reqs",
                                                        "sglang:num_prefill_inflight_queue_reqs",
                                                        "sglang:num_decode_prealloc_queue_reqs",
                                                        "sglang:num_decode_transfer_queue_reqs"};

std::span<const std::string_view> series_of(model::Engine engine) {
  switch (engine) {
    case model::Engine::Vllm:
      return kVllmSeries;
    case model::Engine::Sglang:
      return kSglangSeries;
    case model::Engine::Trtllm:
      break;
  }
  return {};
}

std::uint64_t bounded(std::int64_t requests) {
  return static_cast<std::uint64_t>(std::clamp<std::int64_t>(requests, 0, kMostRequests));
}

// Requests of a rank that SGLang counts as neither running nor waiting: those of a prefill worker
// whose cache is still being sent, and those whose grammar is being compiled.
std::uint64_t uncounted(const wire::JsonObject& rank) {
  const auto count = [&rank](std::string_view section, std::string_view name) {
    const auto object = rank.find_object(section);
    return bounded(object ? object->find_integer(name).value_or(0) : 0);
  };
  return count("disaggregation", "prefill_inflight_queue_reqs") + count("queues", "grammar");
}

// name{labels} value, or name value.
Count sample(std::string_view line, std::string_view name) {
  if (!line.starts_with(name)) return std::nullopt;
  line.remove_prefix(name.size());
  if (line.starts_with('{')) {
    const auto close = line.rfind('}');
    if (close == line.npos) return std::nullopt;
    line.remove_prefix(close + 1);
  }
  if (!line.starts_with(' ')) return std::nullopt;  // another series that begins alike
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  double value = 0;
  if (std::from_chars(line.data(), line.data() + line.size(), value).ec != std::errc()) {
    return std::nullopt;
  }
  if (!(value >= 0) || value > static_cast<double>(kMostRequests)) return std::nullopt;
  return static_cast<std::uint64_t>(std::ceil(value));
}

// Fetches the document and applies `read` to it; nullopt if there is none.
template <class Read>
awaitable<Result<Count>> ask(http_client::UpstreamPool& pool, http_client::Target target,
                             std::string_view path, http_client::ExchangeTimeouts timeouts,
                             Read read) {
  const auto answer = co_await http_client::fetch(pool, target, {.path = path}, timeouts);
  if (!answer) co_return fail(answer.error());
  if (answer->status != kOk) co_return Count();
  co_return read(answer->body);
}

}  // namespace

Count read_requests_of_metrics(std::string_view text, model::Engine engine) {
  Count sum;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    for (const std::string_view name : series_of(engine)) {
      if (const auto value = sample(line, name)) sum = sum.value_or(0) + *value;
    }
  }
  return sum;
}

Count read_requests_of_loads(std::string_view json) {
  const auto object = wire::JsonObject::parse(json);
  if (!object) return std::nullopt;
  const auto loads = object->find("loads");
  if (!loads) return std::nullopt;
  Count sum;
  for (const std::string_view text : wire::elements(*loads, kMostRanksRunning)) {
    const auto rank = wire::JsonObject::within(text);
    const auto running = rank ? rank->find_integer("num_running_reqs") : std::nullopt;
    if (!running) return std::nullopt;
    const auto waiting = rank->find_integer("num_waiting_reqs").value_or(0);
    sum = sum.value_or(0) + bounded(*running) + bounded(waiting) + uncounted(*rank);
  }
  return sum;
}

awaitable<Result<Count>> count_requests(http_client::UpstreamPool& pool, http_client::Target target,
                                        const model::WorkerSpec& spec,
                                        http_client::ExchangeTimeouts timeouts) {
  const model::Engine engine = spec.engine;
  if (engine == model::Engine::Trtllm) co_return Count();
  if (engine == model::Engine::Sglang) {
    auto count = co_await ask(pool, target, "/v1/loads", timeouts, read_requests_of_loads);
    if (!count || *count) co_return count;
  }
  co_return co_await ask(pool, target, "/metrics", timeouts, [engine](std::string_view text) {
    return read_requests_of_metrics(text, engine);
  });
}

}  // namespace baton::engine
