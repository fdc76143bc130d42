// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "engine/shared/canary.h"

#include "engine/shared/completion_json.h"
#include "engine/shared/engine_error.h"
#include "http_client/fetch.h"
#include "wire/http_status.h"
#include "wire/json_object.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

namespace baton::engine {
namespace {

using wire::kForbidden;
using wire::kOk;
using wire::kUnauthorized;
constexpr std::size_t kLargestCanaryAnswer = std::size_t{64} * 1024;

// Unique enough to be found in an engine's log.
std::string request_id(model::WorkerId worker) {
  const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  return fmt::format("canary-{}-{:x}", worker.value, now);
}

Result<CanaryOutcome> read_completion(const http_client::Target& target, const std::string& body) {
  const auto malformed = [&target](std::string_view why) {
    return fail(Errc::EngineProtocol, fmt::format("worker {} answered the canary with {}",
                                                  target.endpoint.to_string(), why));
  };
  const auto completion = wire::JsonObject::parse(body);
  if (!completion) return malformed("no JSON object");
  const auto reason = finish_reason_of(*completion);
  if (!reason) return malformed("no completion");
  if (means_failure(*reason)) {
    return fail(Errc::EngineFailed, fmt::format("worker {} gave up on the canary ({})",
                                                target.endpoint.to_string(), *reason));
  }
  return CanaryOutcome::Served;
}

}  // namespace

awaitable<Result<CanaryOutcome>> send_canary(http_client::UpstreamPool& pool,
                                             http_client::Target target, const std::string& model,
                                             const model::WorkerSpec& spec,
                                             http_client::ExchangeTimeouts timeouts,
                                             std::string_view authorization) {
  const bool by_health =
      spec.engine == model::Engine::Sglang && spec.role != model::Role::Aggregated;
  std::string headers = fmt::format("x-request-id: {}\r\n", request_id(target.id));
  if (!authorization.empty()) headers += fmt::format("Authorization: {}\r\n", authorization);
  std::string body;
  if (!by_health) {
    body = fmt::format(R"({{"model":{},"prompt":"Hi","max_tokens":1,"stream":false}})",
                       wire::json_quote(model));
  }
  const auto answer =
      co_await http_client::fetch(pool, target,
                                  {.method = by_health ? "GET" : "POST",
                                   .path = by_health ? "/health_generate" : "/v1/completions",
                                   .own_headers = headers,
                                   .body = body,
                                   .largest_answer = kLargestCanaryAnswer},
                                  timeouts);
  if (!answer) co_return fail(answer.error());
  if (answer->status == kUnauthorized || answer->status == kForbidden)
    co_return CanaryOutcome::KeyRefused;
  if (answer->status == kOk && by_health) co_return CanaryOutcome::Served;
  if (answer->status == kOk) co_return read_completion(target, answer->body);
  Error refusal = read_engine_error(answer->status, answer->body, answer->retry_after);
  if (refusal.code() == Errc::EngineOverloaded && !by_health) co_return CanaryOutcome::PushedBack;
  if (by_health) {
    co_return fail(Errc::EngineFailed,
                   fmt::format("worker {} answered GET /health_generate with status {}",
                               target.endpoint.to_string(), answer->status));
  }
  co_return fail(std::move(refusal));
}

}  // namespace baton::engine
