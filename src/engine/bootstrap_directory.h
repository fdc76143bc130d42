// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"
#include "engine/exchange.h"
#include "engine/upstream_pool.h"
#include "model/worker.h"

#include <boost/asio/awaitable.hpp>

#include <cstdint>
#include <optional>
#include <unordered_map>

namespace baton::engine {

// Role. Knows the bootstrap port of each SGLang prefill worker: from the configuration, or asked of
//   the worker once.
// Confinement. One I/O thread.
class BootstrapDirectory {
 public:
  BootstrapDirectory(UpstreamPool& pool, ExchangeTimeouts timeouts);

  // nullopt where neither the configuration nor the worker says it; the engine then uses its own
  // default.
  // EngineUnreachable where the worker had to be asked and is not there.
  awaitable<Result<std::optional<std::uint16_t>>> find_port(model::WorkerId id,
                                                            const model::WorkerSpec& spec);
  // The worker could not be reached: what it said may no longer be true.
  void forget(model::WorkerId id) { known_.erase(id.value); }

 private:
  UpstreamPool& pool_;
  ExchangeTimeouts timeouts_;
  std::unordered_map<std::uint64_t, std::uint16_t> known_;
};

}  // namespace baton::engine
