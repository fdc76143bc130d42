// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "http_client/upstream_pool.h"
#include "model/worker.h"

#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <string>
#include <string_view>

namespace baton::engine {

using boost::asio::awaitable;

enum class Health {
  Answers,      // a server responds and does not say "not yet"
  NotYet,       // 5xx: it starts, drains, or its engine is dead
  Refused,      // the host is there, but nothing listens on the port
  Unreachable,  // no connection, no answer in time, or a broken one
  NotAsked,     // this machine lacks what a connection needs; it tells nothing of the worker
};
std::string_view to_string(Health health);

struct HealthResult {
  Health health;
  std::string text;  // for people: what was seen
};

// SGLang answers by generating a token and checks for it once a second: a shorter timeout would
// make every busy worker look dead.
inline constexpr std::chrono::milliseconds kLeastSglangTimeout{2'000};

// GET /health. vLLM and TensorRT-LLM answer at once, SGLang within 20 s; `timeout` is raised to
// kLeastSglangTimeout for it. No key is needed at any of them. `spec` must stay until then.
// Confinement. One I/O thread.
awaitable<HealthResult> check_health(http_client::UpstreamPool& pool, http_client::Target target,
                                     const model::WorkerSpec& spec,
                                     std::chrono::milliseconds timeout);

}  // namespace baton::engine
