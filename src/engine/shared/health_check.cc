// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "engine/shared/health_check.h"

#include "http_client/fetch.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>

namespace baton::engine {
namespace {

constexpr int kServerError = 500;
constexpr std::size_t kLargestHealthAnswer = std::size_t{64} * 1024;

}  // namespace

std::string_view to_string(Health health) {
  switch (health) {
    case Health::Answers:
      return "answers";
    case Health::NotYet:
      return "not_yet";
    case Health::Refused:
      return "refused";
    case Health::Unreachable:
      return "unreachable";
    case Health::NotAsked:
      return "not_asked";
  }
  return "";
}

awaitable<HealthResult> check_health(http_client::UpstreamPool& pool, http_client::Target target,
                                     const model::WorkerSpec& spec,
                                     std::chrono::milliseconds timeout) {
  if (spec.engine == model::Engine::Sglang) timeout = std::max(timeout, kLeastSglangTimeout);
  const auto answer = co_await http_client::fetch(
      pool, target, {.path = "/health", .largest_answer = kLargestHealthAnswer},
      {.first_byte = timeout, .idle = timeout});
  if (!answer) {
    if (answer.error().code() == Errc::OutOfResources)
      co_return HealthResult{Health::NotAsked, answer.error().message()};
    const bool refused = answer.error().cause() == std::errc::connection_refused;
    co_return HealthResult{refused ? Health::Refused : Health::Unreachable,
                           answer.error().message()};
  }
  co_return HealthResult{answer->status < kServerError ? Health::Answers : Health::NotYet,
                         fmt::format("worker {} answered GET /health with status {}",
                                     target.endpoint.to_string(), answer->status)};
}

}  // namespace baton::engine
