// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/cancellation.h"
#include "core/result.h"
#include "fleet/model.h"
#include "handoff/request.h"
#include "http_client/upstream_pool.h"
#include "libs/tokenizer/token.h"
#include "net/cpu_pool.h"
#include "telemetry/log.h"

#include <boost/asio/awaitable.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace baton::pipeline {

using boost::asio::awaitable;

// Role. Asks a model's workers for the tokens of prompts.
// Confinement. One I/O thread.
// Lifetime. A worker that is asked is held until it has answered, or the question is cancelled.
// Invariants. A model whose worker could not answer is not asked again for some seconds: its
//   requests are better off without tokens than late.
class EngineTokens {
 public:
  // `log` may be null.
  EngineTokens(http_client::UpstreamPool& pool, net::CpuPool& cpu, std::size_t largest_answer,
               telemetry::Logger* log = nullptr)
      : pool_(pool), cpu_(cpu), largest_answer_(largest_answer), log_(log) {}

  // A cancellation ends it, and is then the error. `said_route` is the model's: set once the log
  // has it that its workers do not render.
  // Requires: nothing makes the request inexact (prompt/exactness.h).
  awaitable<Result<std::vector<tokenizer::TokenIds>>> ask(const handoff::HandoffRequest& job,
                                                          std::atomic<bool>& said_route,
                                                          Cancellation& cancellation);

 private:
  using Clock = std::chrono::steady_clock;

  http_client::UpstreamPool& pool_;
  net::CpuPool& cpu_;
  std::size_t largest_answer_;
  telemetry::Logger* log_;
  std::map<std::string, Clock::time_point, std::less<>> quiet_until_;  // by model
};

// The worker to ask: the healthiest, and of them the least loaded; those that compute prompts
// first. Null if there is none that could be asked.
std::shared_ptr<fleet::Worker> worker_to_ask(const fleet::Model& model);

// All of a request that its tokens depend on, as text. Templates write dates and engines restart
// with others, so an entry is valid for some minutes only.
// Requires: nothing makes the request inexact.
std::string prompt_key(engine::Api api, const wire::JsonObject& body,
                       std::chrono::system_clock::time_point now);

}  // namespace baton::pipeline
